"""All that a learning agent did in a simulator of pure functions, from its first stumbles to its best.

The paper's Brax logs. `learner.py` does the like in any environment, and knows its log-probabilities.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..planner import rppo
from ..types import Array, Key, Progress
from . import envs
from .columns import columns, pieces, taken
from .policies import uniform

LEARNER = rppo.Hypers(
    envs=32,  # with `segment` 2,048 steps to an update: by 8,192 a run of a million steps seldom taught a Hopper
    segment=64,
    epochs=8,
    minibatches=8,
    width=256,
    core="none",
    lr=3e-4,
    discount=0.99,
    entropy=0.0,
    first_std=0.6,
)
POOL = 256  # starts that episodes begin in: resetting a simulator inside every step would cost more than the step
WARM = 128  # random steps that the scale of observations is taken from


def arena(env: envs.Env, pool: Any, count: int) -> rppo.Arena:
    """That many copies of a true environment as a planner's arena; episodes begin in a state of the pool."""

    def reset(key: Key) -> tuple[Any, Array]:
        index = jax.random.randint(key, (count,), 0, POOL)
        return jax.tree.map(lambda leaf: leaf[index], pool)

    def step(key: Key, state: Any, action: Array) -> tuple[Any, Array, Array, Array]:
        return jax.vmap(env.step)(jax.random.split(key, count), state, action)

    return rppo.Arena(reset, step)


def full_replay(env: envs.Env, rows: int, seed: int, progress: Progress | None = None) -> dict[str, np.ndarray]:
    """Columns of all that an online run of feed-forward PPO of `rows` steps saw and did.

    Without log-probabilities: this agent's amounts are clipped to their box, and what is clipped has no density.
    """
    hypers = replace(LEARNER, steps=rows)
    k1, k2, k3 = jax.random.split(jax.random.key(seed), 3)
    pool = jax.jit(jax.vmap(env.reset))(jax.random.split(k1, POOL))
    begin = jax.jit(lambda key, pool: _begin(key, env, hypers, arena(env, pool, hypers.envs)))
    learn = jax.jit(
        lambda key, state, pool: rppo.lesson(key, hypers, state, arena(env, pool, hypers.envs), env.task)
    )
    state = begin(k2, pool)
    segments: list[dict[str, np.ndarray]] = []
    updates = -(-rows // (hypers.envs * hypers.segment))
    for i in range(updates):
        state, _, out = learn(jax.random.fold_in(k3, i), state, pool)
        kept = {name: np.asarray(out[name]) for name in ("obs", "action", "reward", "next_obs", "ended", "late")}
        segments.append(kept)
        if progress:
            progress("collect", min((i + 1) * hypers.envs * hypers.segment, rows), rows)
    whole = {name: np.concatenate([part[name] for part in segments]) for name in segments[0]}  # [T, N, ...]
    whole["terminated"] = whole["ended"]
    parts = sorted(pieces(whole["ended"] | whole["late"]), key=lambda part: (part.end, part.env))
    return columns(taken(whole, parts, rows), env.task)


def _begin(key: Key, env: envs.Env, hypers: rppo.Hypers, where: rppo.Arena) -> rppo.State:
    """A learner whose scale of observations comes from random actions."""
    k1, k2, k3 = jax.random.split(key, 3)
    state, first = where.reset(k1)

    def one(state: Any, key: Key) -> tuple[Any, tuple[Array, Array]]:
        a, b = jax.random.split(key)
        state, obs, reward, _ = where.step(b, state, uniform(a, env.task.actions, hypers.envs))
        return state, (obs, reward)

    _, (obs, reward) = jax.lax.scan(one, state, jax.random.split(k2, WARM))
    seen = jnp.concatenate([first[None], obs]).reshape(-1, first.shape[-1])
    scale = rppo.Scale(seen.mean(0), jnp.maximum(seen.std(0), 1e-3), jnp.maximum(reward.std(), 1e-3))
    return rppo.begin_in(k3, hypers, scale, where, env.task)
