"""Episodes in a true task: what a policy earns, and logs of what several did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .tasks import Act, Choices, State, Task

CHUNK = 2048  # episodes that are played at once


class Mind(NamedTuple):
    """A policy that may remember: (observations [N, S], last rewards [N], memory) -> actions, memory.

    Memory is None at the first step of an episode.
    """

    act: Callable[[np.ndarray, np.ndarray, Any], tuple[np.ndarray, Any]]


class Truth(NamedTuple):
    """What a policy earned over many episodes, with standard errors."""

    mean: float
    stderr: float
    discounted: float
    discounted_stderr: float
    length: float
    episodes: int


def remembers_nothing(act: Act) -> Mind:
    """A function of observations as a policy whose memory is empty."""
    return Mind(lambda obs, reward, memory: (act(obs), memory))


def seen(task: Task, state: State) -> np.ndarray:
    """Observations [N, S] as a log holds them: float32."""
    return task.observe(state).astype(np.float32)


def returns(task: Task, mind: Mind, episodes: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Returns, discounted returns and lengths [N] of so many episodes, played to their end or the horizon."""
    state = task.start(rng, episodes)
    earned, valued, lasted, alive = (np.zeros(episodes) for _ in range(4))
    alive, memory, reward = alive == 0, None, np.zeros(episodes)
    for t in range(task.horizon):
        action, memory = mind.act(seen(task, state), reward, memory)
        state, reward, ended = task.step(state, tidy(task, action), rng)
        paid = np.where(alive, reward, 0.0)
        earned, valued, lasted = earned + paid, valued + task.discount**t * paid, lasted + alive
        alive = alive & ~ended
        if not alive.any():
            break
    return earned, valued, lasted


def truth(task: Task, mind: Mind, episodes: int, seed: int) -> Truth:
    """What a policy truly earns; the same seed gives every policy the same luck at the start."""
    parts = [
        returns(task, mind, min(CHUNK, episodes - begun), np.random.default_rng([seed, begun]))
        for begun in range(0, episodes, CHUNK)
    ]
    earned, valued, lasted = (np.concatenate(column) for column in zip(*parts, strict=True))
    error = lambda of: float(of.std(ddof=1) / np.sqrt(len(of)))
    return Truth(
        float(earned.mean()), error(earned), float(valued.mean()), error(valued), float(lasted.mean()), episodes
    )


def tidy(task: Task, action: np.ndarray) -> np.ndarray:
    """Actions as a task takes them: whole numbers [N], or amounts [N, A] within their range."""
    if isinstance(task.actions, Choices):
        return np.asarray(action).reshape(-1).astype(int)
    return np.clip(np.asarray(action, np.float64).reshape(len(action), -1), task.actions.low, task.actions.high)


class Columns(NamedTuple):
    """A log, row by row and episode after episode, as `offing.load` takes it."""

    obs: np.ndarray  # [R, S]
    action: np.ndarray  # [R] or [R, A]
    reward: np.ndarray  # [R]
    next_obs: np.ndarray  # [R, S]
    terminated: np.ndarray  # [R]
    truncated: np.ndarray  # [R]
    episode: np.ndarray  # [R]
    behaviour: np.ndarray  # [R]  which of the behaviours drove it: not given to anybody


def written(task: Task, behaviours: Sequence[Act], noise: float, rows: int, rng: np.random.Generator) -> Columns:
    """A log of `rows` rows in which each episode is driven by one of the behaviours, disturbed by chance."""
    episodes = int(np.ceil(rows / 4)) if task.horizon <= 40 else int(np.ceil(rows / 8))
    who = rng.integers(len(behaviours), size=min(episodes, rows))
    state, alive, kept = task.start(rng, len(who)), np.ones(len(who), bool), []
    for t in range(task.horizon):
        obs = seen(task, state)
        action = mixed(task, behaviours, who, obs, noise, rng)
        state, reward, ended = task.step(state, action, rng)
        kept.append(
            (obs, action, reward, seen(task, state), ended, alive & (t + 1 == task.horizon) & ~ended, alive)
        )
        alive = alive & ~ended
    return _rows([np.stack(column, 1) for column in zip(*kept, strict=True)], who, rows)


def mixed(
    task: Task, behaviours: Sequence[Act], who: np.ndarray, obs: np.ndarray, noise: float, rng: np.random.Generator
) -> np.ndarray:
    """What each episode's own behaviour does, with a share of random actions, and amounts off by a little."""
    done = [tidy(task, behaviour(obs)) for behaviour in behaviours]
    action = np.stack(done)[who, np.arange(len(who))]
    strays = rng.random(len(who)) < noise
    if isinstance(task.actions, Choices):
        return np.where(strays, rng.integers(task.actions.n, size=len(who)), action)
    low, high = np.array(task.actions.low), np.array(task.actions.high)
    near = action + 0.5 * noise * (high - low) / 2 * rng.normal(size=action.shape)
    return np.clip(np.where(strays[:, None], rng.uniform(low, high, action.shape), near), low, high)


def _rows(tables: Sequence[np.ndarray], who: np.ndarray, rows: int) -> Columns:
    """The first episodes that fill `rows` rows; the last one is cut off there, which counts as a time-out."""
    obs, action, reward, after, ended, cut, alive = tables
    episode = np.broadcast_to(np.arange(len(who))[:, None], alive.shape)
    flat = [table[alive][:rows] for table in (obs, action, reward, after, ended, cut, episode)]
    if len(flat[0]) < rows:
        raise ValueError(f"{len(flat[0])} rows of {rows}: episodes are shorter than was thought")
    flat[5][-1] = not flat[4][-1]
    numbers = [np.asarray(part, np.float32) if part.dtype == np.float64 else part for part in flat]
    return Columns(*numbers, behaviour=who[flat[6]])
