"""Ways to step through a posterior: one hypothesis per episode, or a new one at every step.

Worlds are laid out [members, copies]: the copies of a world step together, as one batched product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..types import Array, Key, Posterior, Predict, Step
from ._levels import snapped

SLACK = 0.01  # of the largest reward: clipping by less than this is not worth a mention


def begin(key: Key, posterior: Posterior, copies: int) -> Array:
    """Starting observations [M, copies, S]: logged starts, drawn independently for every world and copy."""
    index = jax.random.randint(key, (posterior.members, copies), 0, posterior.starts.shape[0])
    return jnp.asarray(posterior.starts)[index]


def settle(
    key: Key, posterior: Posterior, said: Predict, obs: Array, action: Array
) -> tuple[tuple[Array, Array, Array], Array, Array]:
    """What a world's prediction comes to: next observation, reward, and whether the episode ended.

    And whether the reward was clipped, and whether the state left what the log knows. Rewards are clipped to the
    log's range on the mean, so that chance may still carry them beyond it. Where the log ends, the world ends:
    a state further out than `room` is held at the edge, earns the least that was ever logged, and if episodes
    can end at all then this one does, since nobody knows what is there.
    """
    k1, k2 = jax.random.split(key)
    low, high = jnp.asarray(posterior.low), jnp.asarray(posterior.high)
    reward = jnp.clip(said.mean[..., -1:], low[-1], high[-1])
    mean = jnp.concatenate([obs + said.mean[..., :-1], reward], -1)
    drawn = mean + jnp.sqrt(posterior.noise_scale) * said.std * jax.random.normal(k1, mean.shape)
    state = drawn[..., :-1] if posterior.walls is None else jnp.clip(drawn[..., :-1], *posterior.walls)
    room = jnp.where(jnp.isinf(posterior.room), jnp.inf, posterior.room * (high - low)[:-1])
    after = jnp.clip(state, low[:-1] - room, high[:-1] + room)
    left = jnp.any(after != state, -1)
    after = snapped(posterior.levels, after)
    if posterior.task.done is not None:
        ended = posterior.task.done(obs, action, after)
    else:
        ended = jax.random.bernoulli(k2, sharpened(said.done, posterior.ends_scale))
    if posterior.terminates:
        ended = ended | left
    size = jnp.maximum(jnp.abs(low[-1]), jnp.abs(high[-1]))
    clipped = jnp.abs(reward[..., 0] - said.mean[..., -1]) > SLACK * size
    return (after, jnp.where(left, low[-1], drawn[..., -1]), ended), clipped, left


def sharpened(chance: Array, scale: Array | float) -> Array:
    """A probability as it is at scale 1, and the likelier outcome for certain at scale 0.

    Where ends are certain, a small doubt at every step would end every long episode.
    """
    return jax.nn.sigmoid((jnp.log(chance + 1e-12) - jnp.log1p(-chance + 1e-12)) / jnp.maximum(scale, 0.01))


def watched(
    posterior: Posterior,
) -> Callable[[Key, Array, Array], tuple[tuple[Array, Array, Array], Array, Array]]:
    """As `fixed`, and says where rewards were clipped and states held back."""

    def step(key: Key, obs: Array, action: Array) -> tuple[tuple[Array, Array, Array], Array, Array]:
        return settle(key, posterior, jax.vmap(posterior.predict)(posterior.theta, obs, action), obs, action)

    return step


def fixed(posterior: Posterior) -> Step:
    """Every world steps its own copies: (key, obs [M, C, S], action [M, C, A]); one hypothesis per episode."""
    inner = watched(posterior)
    return lambda key, obs, action: inner(key, obs, action)[0]


def redrawn(posterior: Posterior) -> Step:
    """As `fixed`, but copies change worlds at every step (the released code's way)."""
    inner = fixed(posterior)

    def step(key: Key, obs: Array, action: Array) -> tuple[Array, Array, Array]:
        k1, k2 = jax.random.split(key)
        members, copies = obs.shape[:2]
        order = jax.random.permutation(k1, members * copies)
        mixed = lambda a: a.reshape(members * copies, -1)[order].reshape(a.shape)
        out = inner(k2, mixed(obs), mixed(action))
        back = jnp.argsort(order)
        return jax.tree.map(lambda a: a.reshape(members * copies, -1)[back].reshape(a.shape), out)

    return step


def everyone(posterior: Posterior, obs: Array, action: Array) -> tuple[Predict, Predict]:
    """What all worlds say of every step [M, M, C, ...], and what each says of its own copies' [M, C, ...]."""
    every = jax.vmap(posterior.predict, (0, None, None))(posterior.theta, obs, action)
    own = jnp.arange(obs.shape[0])
    return every, jax.tree.map(lambda leaf: leaf[own, own], every)


def penalised(posterior: Posterior, coefficient: float | Array, raw: bool = False) -> Step:
    """As `fixed`, and a step costs `coefficient` times what the least certain world doubts of it (MOPO).

        reward - coefficient * max_m |std_m(obs, action)|         (Yu et al., 2020)

    over change of state and reward. `raw` takes both in the log's own units, as the paper does: a coefficient
    then means one thing for one choice of units. Otherwise standard deviations are in widths of the log's ranges
    and the cost is in widths of the rewards', so that it does not matter what a column is measured in.
    """
    units = jnp.ones(()) if raw else widths(posterior)
    price = coefficient * (1.0 if raw else units[-1])

    def step(key: Key, obs: Array, action: Array) -> tuple[Array, Array, Array]:
        every, said = everyone(posterior, obs, action)
        (after, reward, ended), _, _ = settle(key, posterior, said, obs, action)
        doubt = jnp.sqrt(jnp.sum(jnp.square(every.std / units), -1)).max(0)  # [M, C]
        return after, reward - price * doubt, ended

    return step


def halting(posterior: Posterior, threshold: float | Array, offset: float | Array) -> Step:
    """As `fixed`, and an episode halts where two worlds are further `apart` than `threshold` (MOReL).

    The step that halts earns the least that was ever logged, plus `offset`, once, and is the last (Kidambi et al.,
    2020). So where every step costs something, an `offset` that is small beside what a whole episode costs makes
    halting worth it.
    """

    def step(key: Key, obs: Array, action: Array) -> tuple[Array, Array, Array]:
        every, said = everyone(posterior, obs, action)
        (after, reward, ended), _, _ = settle(key, posterior, said, obs, action)
        halted = apart(posterior, every.mean) > threshold
        return after, jnp.where(halted, jnp.asarray(posterior.low)[-1] + offset, reward), ended | halted

    return step


def apart(posterior: Posterior, mean: Array) -> Array:
    """How far apart the two worlds that differ most are, by their predictions of a step mean [M, ..., D]: [...].

    In widths of the log's ranges.
    """
    mean = mean / widths(posterior)
    return jnp.sqrt(jnp.sum(jnp.square(mean[:, None] - mean), -1)).max((0, 1))


def widths(posterior: Posterior) -> Array:
    """Of the log's ranges of state and reward [S + 1]; 1 where a column is constant."""
    width = jnp.asarray(posterior.high) - jnp.asarray(posterior.low)
    return jnp.where(width > 0, width, 1.0)


def roll(
    key: Key, step: Step, obs: Array, act: Callable[[Key, Array, Array], Array], steps: int
) -> dict[str, Array]:
    """`steps` steps from obs under act(key, obs, t): obs, reward, done and alive [T, M, C, ...]."""

    def one(carry: Any, at: Any) -> Any:
        (obs, alive), (key, t) = carry, at
        k1, k2 = jax.random.split(key)
        after, reward, done = step(k2, obs, act(k1, obs, t))
        row = {"obs": after, "reward": reward, "done": done, "alive": alive}
        return (after, alive & ~done), row

    times = (jax.random.split(key, steps), jnp.arange(steps))
    return jax.lax.scan(one, (obs, jnp.ones(obs.shape[:-1], bool)), times)[1]
