"""Soft actor-critic with N diverse critics (An, Moon, Kim & Song, 2021).

Q:  as `sacn`, + eta / (N - 1) * E[ sum_{i != j} <g_i, g_j> ],   g_n = grad_a Q_n(s, a) / |grad_a Q_n(s, a)|

Critics whose slopes point different ways differ on actions beside the logged ones, and their least is low there.
So fewer of them are needed. A critic of choices is linear in the row of probabilities: its slope is its row of
values, of which only what is left after taking their mean matters, as probabilities add up to 1. Among two
choices that has only a sign, so there lengths are counted softly, against those of the whole minibatch.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..hypers import grid, hypers
from ..nets import Net, tower
from ..types import Array, Box, Dataset, Discrete, Key, Planner, Posterior, Transition
from . import sacn
from ._parts import choices, minibatch
from ._sizes import BRIEF, LARGE, SMALL, TINY, WHOLE


@hypers
class Hypers(sacn.Hypers):
    """phi_III. Defaults: the paper's for HalfCheetah (An et al., 2021)."""

    eta: float = 1.0


def update(
    key: Key, hypers: Hypers, state: sacn.State, data: Dataset, posterior: Posterior
) -> tuple[sacn.State, dict[str, Array]]:
    """One step of critics, actor and temperature on one minibatch."""
    actions = posterior.task.actions
    k1, k2 = jax.random.split(key)
    b = minibatch(k1, data, hypers.batch_size, state.scale, actions)
    return sacn.learn(k2, hypers, state, b, actions, critic_loss)


def critic_loss(
    params: Net, hypers: Hypers, b: Transition, target: Array, actions: Box | Discrete
) -> tuple[Array, Array]:
    """Squared errors of all critics, and what their slopes have in common; also what they say [N, B]."""
    loss, q = sacn.critic_loss(params, hypers, b, target, actions)
    return loss + hypers.eta * similarity(slopes(params, b.obs, b.action, actions)), q


def slopes(params: Net, obs: Array, action: Array, actions: Box | Discrete) -> Array:
    """Where each critic says that an action should move: directions [N, B, A]."""
    if isinstance(actions, Discrete):
        values = choices(params, obs)
        slope = values - values.mean(-1, keepdims=True)
        length = jnp.sum(jnp.square(slope), -1, keepdims=True)
        return slope * jax.lax.rsqrt(length + jax.lax.stop_gradient(length.mean()) + 1e-12)
    one = lambda net, action: jnp.sum(tower(net, jnp.concatenate([obs, action], -1)))
    slope = jax.vmap(jax.grad(one, argnums=1), (0, None))(params, action)
    return slope * jax.lax.rsqrt(jnp.sum(jnp.square(slope), -1, keepdims=True) + 1e-12)


def similarity(slope: Array) -> Array:
    """What the directions [N, B, A] of different critics have in common, on average: N if all point one way.

    The sum over pairs is the square of the sum, less the squares.
    """
    pairs = jnp.sum(jnp.square(slope.sum(0)), -1) - jnp.sum(jnp.square(slope), (0, -1))  # [B]
    return jnp.mean(pairs) / max(slope.shape[0] - 1, 1)


planner = Planner(
    name="edac",
    words="soft actor-critic with critics that are made to differ beside the log",
    Hypers=Hypers,
    init=sacn.init,
    update=update,
    policy=sacn.policy,
    blank=sacn.blank,
    reports=sacn.REPORTS,
    spaces={
        "smoke": lambda: grid(Hypers(**TINY, critics=2), eta=(0.0, 1.0)),
        "quick": lambda: grid(Hypers(**BRIEF, critics=5), eta=(0.1, 1.0)),
        "standard": lambda: grid(Hypers(**SMALL, critics=5), polyak=(0.005, 0.02), eta=(0.1, 1.0, 5.0)),
        "large": lambda: grid(Hypers(**LARGE), eta=(0.1, 1.0)),
        # the weights that An et al. (2021) compare
        "paper": lambda: grid(Hypers(**WHOLE), eta=(0.0, 1.0, 5.0)),
    },
    imagines=False,
)
