"""Controllers that somebody wrote, their gains varied: policies of spread quality that no world has seen."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from offing.types import Array, Key, Memory, Policy, Seen

# pendulum: gain of the energy's pump, of angle and speed near the top, and the height (cosine) they take over at
SWINGS = (
    (1.0, 12.0, 3.0, 0.9),
    (1.0, 8.0, 2.0, 0.8),
    (0.3, 12.0, 3.0, 0.9),
    (0.1, 8.0, 1.0, 0.9),
    (1.0, 12.0, 0.0, 0.9),
    (0.05, 4.0, 0.5, 0.95),
    (0.0, 10.0, 2.0, 0.7),
    (-0.3, 0.0, 0.0, 2.0),
)
# cartpole: weights of place, speed, angle and turn
LEANS = (
    (0.1, 0.3, 3.0, 1.0),
    (0.0, 0.0, 3.0, 1.0),
    (0.0, 0.0, 1.0, 0.03),
    (0.0, 0.0, 1.0, 0.01),
    (0.0, 0.0, 1.0, 0.0),
    (0.3, 0.0, 1.0, 0.02),
    (0.0, 0.3, 0.5, 0.2),
    (0.0, 0.0, -1.0, 0.0),
)
GAINS = {"pendulum": SWINGS, "cartpole": LEANS}


@dataclass(frozen=True)
class Hand:
    """A controller with its gains as parameters [4]."""

    env: str

    def __call__(self, params: Array, memory: Memory, seen: Seen, key: Key | None) -> tuple[Array, Memory]:
        return (swing if self.env == "pendulum" else lean)(params, seen.obs), memory


def swing(gains: Array, obs: Array) -> Array:
    """Pumps energy into a pendulum until it is nearly up, then holds it there: torque [..., 1]."""
    pump, hold, damp, near = gains
    cosine, sine, speed = jnp.moveaxis(obs, -1, 0)
    lacking = 15.0 * (1 - cosine) - 0.5 * jnp.square(speed)  # of the energy that it has at rest at the top
    torque = jnp.where(cosine > near, -hold * jnp.arctan2(sine, cosine) - damp * speed, pump * speed * lacking)
    return jnp.clip(torque, -2.0, 2.0)[..., None]


def lean(gains: Array, obs: Array) -> Array:
    """Pushes a cart to the side that a weighted sum of what is seen points to: a choice [..., 2]."""
    return jax.nn.one_hot((obs @ gains > 0).astype(int), 2)


def hands(env: str) -> list[Policy]:
    """All of them, from good to bad."""
    return [Policy(jnp.array(gains), (), Hand(env)) for gains in GAINS[env]]
