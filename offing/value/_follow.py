"""Policies along logged episodes: how likely each was to do what was done, and what they add up to by weight."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..data.dataset import laid_out
from ..nets import Net
from ..types import Array, BadInput, Box, Dataset, Discrete, Key, Memory, Policy, Seen, Task
from ._critic import value_of
from ._view import Density, Drawing, Scale, draws, enter, log_density


class Episodes(NamedTuple):
    """The log episode by episode, time first; what is beyond an episode's end repeats its last row."""

    obs: Array  # [T, E, S]
    action: Array  # [T, E, A]
    reward: Array  # [T, E]
    next_obs: Array  # [T, E, S]
    mask: Array  # [T, E]  0 at a true end
    alive: Array  # [T, E]  whether the row is the episode's own
    counted: Array  # [T, E]  that, or the episode truly ended before
    row: np.ndarray  # [T, E]


def episodes(data: Dataset, task: Task, name: str) -> Episodes:
    """The log's episodes, none longer than the task's horizon; BadInput where it has none."""
    episode = np.asarray(data.episode)[: data.rows]
    if episode[0] < 0:
        raise BadInput(
            f"{name} follows whole episodes, and this log is a bag of transitions: "
            "use fqe, dualdice or the posterior"
        )
    row, alive = laid_out(episode, task.horizon)
    steps = jax.tree.map(lambda leaf: jnp.asarray(leaf)[row], data.steps)
    over = np.asarray(data.steps.done)[row[-1]] > 0
    return Episodes(
        steps.obs, steps.action, steps.reward, steps.next_obs, 1 - steps.done, alive, alive | over, row
    )


class Weighing(Drawing, Protocol):
    """Hyperparameters of estimates that weigh episodes."""

    @property
    def least(self) -> float: ...  # of a step's log-ratio

    @property
    def most(self) -> float: ...

    @property
    def normalise(self) -> bool: ...

    @property
    def alive_only(self) -> bool: ...


class Way(NamedTuple):
    """One policy along the logged episodes."""

    logp: Array  # [T, E]  of the logged actions
    q: Array  # [M, T, E]  value a step of what was done; M = 0 without critics
    v_next: Array  # [M, T, E]  and of what the policy would do next
    v_first: Array  # [M, E]


def follow(
    key: Key,
    hypers: Weighing,
    policy: Policy,
    log: Episodes,
    scale: Scale,
    critics: Net | None,
    actions: Box | Discrete,
) -> Way:
    """A policy's memory rolled along every logged episode: how likely it was to do what was done, and Q there."""
    lead = log.reward.shape[1:]
    exact = hypers.sampled and isinstance(policy.act, Density)

    def value(x: Array) -> Array:
        assert critics is not None  # nobody asks where there are none
        return jax.vmap(value_of, (0, None))(critics, x)

    def worth(key: Key, memory: Memory, seen: Seen) -> Array:  # [M, E]
        shaken = draws(key, policy, memory, seen, actions, hypers)[1]
        obs = jnp.broadcast_to(seen.obs, (*shaken.shape[:-1], seen.obs.shape[-1]))
        return value(enter(scale, actions, obs, shaken)).mean(1)

    def one(carry: tuple[Memory, Seen], at: tuple[Array, ...]) -> tuple[tuple[Memory, Seen], tuple[Array, ...]]:
        memory, seen = carry
        key, obs, action, reward, next_obs = at
        k1, k2 = jax.random.split(key)
        seen = seen._replace(obs=obs)
        if exact:
            logp = policy.act.logp(policy.params, memory, seen, action)  # type: ignore[attr-defined]
        else:
            drawn = draws(k1, policy, memory, seen, actions, hypers)[0]
            logp = log_density(drawn, action, actions, hypers.smoothing)
        memory = policy.act(policy.params, memory, seen, None)[1]
        after = Seen(next_obs, action, reward, jnp.zeros(lead))
        if critics is None:
            return (memory, after), (logp, jnp.zeros((0, *lead)), jnp.zeros((0, *lead)))
        return (memory, after), (logp, value(enter(scale, actions, obs, action)), worth(k2, memory, after))

    k1, k2 = jax.random.split(key)
    first = Seen(log.obs[0], jnp.zeros_like(log.action[0]), jnp.zeros(lead), jnp.ones(lead))
    begun = policy.begin(*lead)
    v_first = jnp.zeros((0, *lead)) if critics is None else worth(k2, begun, first)
    xs = (jax.random.split(k1, log.reward.shape[0]), log.obs, log.action, log.reward, log.next_obs)
    _, (logp, q, v_next) = jax.lax.scan(one, (begun, first), xs)
    return Way(logp, jnp.moveaxis(q, 1, 0), jnp.moveaxis(v_next, 1, 0), v_first)


@partial(compiled, static_argnames="actions")
def follow_all(
    key: Key,
    hypers: Weighing,
    pool: Policy,
    log: Episodes,
    scale: Scale,
    critics: Net | None,
    actions: Box | Discrete,
) -> Way:
    each = lambda policy, critics: follow(key, hypers, policy, log, scale, critics, actions)
    return jax.vmap(each, (0, None if critics is None else 0))(pool, critics)


def weigh(hypers: Weighing, ratio: Array, alive: Array) -> tuple[Array, Array]:
    """Log-weights [T, E] of clipped log-ratios [T, E], kept after an episode's end; and the share clipped."""
    held = jnp.clip(ratio, hypers.least, hypers.most)
    clipped = jnp.sum((held != ratio) & alive) / jnp.sum(alive)
    return jnp.cumsum(jnp.where(alive, held, 0.0), 0), clipped


def add_up(
    hypers: Weighing, logw: Array, earned: Array, log: Episodes, omega: Array, discount: Array
) -> tuple[Array, Array]:
    """The estimate under every weighting of episodes, omega [B, E]: [B]; and effective episodes at each time [T].

    `earned` [T, E] is the reward, or what a critic leaves of it.
    """
    among = (log.alive if hypers.alive_only else log.counted).astype(jnp.float32)
    top = jnp.max(jnp.where(among > 0, logw, -jnp.inf), 1, keepdims=True)
    shift = jnp.where(jnp.isfinite(top), top, 0.0) if hypers.normalise else 0.0
    w = jnp.exp(logw - shift) * among
    over = w if hypers.normalise else among
    exact = partial(jnp.matmul, precision="highest")
    total = exact(omega, over.T)  # [B, T]
    mean = exact(omega, (w * log.alive * earned).T) / jnp.where(total > 0, total, 1.0)
    if hypers.alive_only:
        mean = mean * exact(omega, among.T) / jnp.sum(omega, 1, keepdims=True)
    effective = jnp.square(w.sum(1)) / jnp.maximum(jnp.sum(jnp.square(w), 1), 1e-30)
    return mean @ discount ** jnp.arange(mean.shape[1]), effective
