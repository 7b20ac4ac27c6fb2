"""Copies of any true environment that step side by side on the host, each in an episode of its own.

gymnasium's environments hold their state and are stepped one by one; those of gymnax and brax are pure functions
and step as one program. A time-out is never a termination, and both are told apart at every step.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, BadInput, Box, Task
from . import envs

DISCOUNT = 0.99  # of a task whose environment names none


class Stepped(NamedTuple):
    """What a step led to, before anything begins anew; all [N, ...]."""

    obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray  # timed out, and did not end


class Copies(Protocol):
    """`count` copies of an environment; `reset` begins an episode where `which` [N] says so, by its seed."""

    task: Task
    width: int
    count: int

    def reset(self, which: np.ndarray, seeds: np.ndarray) -> np.ndarray: ...  # obs [N, S]

    def step(self, action: np.ndarray) -> Stepped: ...  # action rows [N, A]


def copies(stack: ExitStack, name: str, most: int, rows: int, horizon: int | None = None) -> Copies:
    """Copies of the environment of that name until the stack is left, no more than `rows` keep busy.

    `horizon` cuts its episodes earlier than its own limit, or at all where it has none.
    """
    if horizon is not None and horizon < 1:
        raise BadInput(f"a horizon of {horizon}: an episode needs at least 1 step")
    known = envs.source(name)
    if known is None:
        raise BadInput(f"{name}: no such environment; there are {envs.NAMES}")
    if known[0] != "gymnasium":
        env = envs.make(name)
        task = _task(name, env.task.actions, env.task.horizon, horizon, env.task.discount)
        return Pure(env, task, _busy(most, rows, task))
    first = envs.hold(stack, name, 1)
    task = _task(name, first.actions, first.horizon, horizon, DISCOUNT)
    count = _busy(most, rows, task)
    more = envs.hold(stack, name, count - 1).copies if count > 1 else []
    return Holding(first._replace(copies=[*first.copies, *more]), task)


def _task(name: str, actions: Any, limit: int | None, wanted: int | None, discount: float) -> Task:
    if limit is None and wanted is None:
        raise BadInput(f"{name}: its episodes have no time limit; set one (--horizon)")
    if isinstance(actions, Box) and not np.isfinite(actions).all():
        raise BadInput(f"{name}: the range of its actions has no end on some side; nothing can be drawn from it")
    return Task(min(each for each in (limit, wanted) if each), discount, actions)


def _busy(most: int, rows: int, task: Task) -> int:
    """More copies than whole episodes in a log would mostly step for nothing."""
    return max(1, min(most, rows // task.horizon))


class Pure:
    """Copies of an environment of pure functions: one program steps them all."""

    def __init__(self, env: envs.Env, task: Task, count: int):
        self.env, self.task, self.count = env, task, count
        self.clock, self.seeds = np.zeros(count, np.int32), np.zeros(count, np.uint32)
        self.state, obs = _begin(jnp.asarray(self.seeds), env)
        self.width = obs.shape[1]
        self.obs = obs

    def reset(self, which: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        self.seeds, self.clock = np.where(which, seeds, self.seeds), np.where(which, 0, self.clock)
        self.state, self.obs = _anew(jnp.asarray(self.seeds), which, (self.state, self.obs), self.env)
        return np.array(self.obs)

    def step(self, action: np.ndarray) -> Stepped:
        self.clock = self.clock + 1
        self.state, obs, reward, ended = _onward(self.seeds, self.clock, self.state, action, self.env)
        self.obs, done = obs, np.asarray(ended)
        return Stepped(np.asarray(obs), np.asarray(reward), done, (self.clock >= self.task.horizon) & ~done)


@partial(jax.jit, static_argnames="env")
def _begin(seeds: Array, env: envs.Env) -> tuple[Any, Array]:
    return jax.vmap(lambda seed: env.reset(jax.random.key(seed)))(seeds)


@partial(jax.jit, static_argnames="env")
def _anew(seeds: Array, which: Array, now: Any, env: envs.Env) -> Any:
    pick = lambda new, old: jnp.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    return jax.tree.map(pick, _begin(seeds, env), now)


@partial(jax.jit, static_argnames="env")
def _onward(seeds: Array, clock: Array, state: Any, action: Array, env: envs.Env) -> Any:
    def one(seed: Array, clock: Array, state: Any, action: Array) -> Any:
        return env.step(jax.random.fold_in(jax.random.key(seed), clock), state, action)

    return jax.vmap(one)(seeds, clock, state, action)


class Holding:
    """Copies of an environment that hold their own state: gymnasium's, one after the other."""

    def __init__(self, held: envs.Held, task: Task):
        self.held, self.task, self.width, self.count = held, task, held.width, len(held.copies)
        self.clock = np.zeros(self.count, np.int32)
        self.obs = np.zeros((self.count, held.width), np.float32)

    def reset(self, which: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        for i in np.flatnonzero(which):
            self.obs[i] = self.held.copies[i].reset(seed=int(seeds[i]))[0]
            self.clock[i] = 0
        return self.obs.copy()

    def step(self, action: np.ndarray) -> Stepped:
        reward, (ended, cut) = np.zeros(self.count, np.float32), np.zeros((2, self.count), bool)
        for i, env in enumerate(self.held.copies):
            self.obs[i], reward[i], ended[i], cut[i], _ = env.step(self.held.place(action[i]))
        self.clock += 1
        return Stepped(self.obs.copy(), reward, ended, (cut | (self.clock >= self.task.horizon)) & ~ended)
