"""Logs of a task, sound ones and spoilt ones: made on the spot, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .play import Columns, Mind, Truth, mixed, remembers_nothing, tidy, truth, written
from .policies import Pool
from .tasks import Act, Choices, Task

EPISODES = 1000  # that a truth is taken over
TRUTH_SEED = 77  # of episodes that are played for a truth


class Behaviour(NamedTuple):
    """What the episodes of a log earned, those that are whole."""

    mean: float
    stderr: float
    episodes: int


def log_of(task: Task, pool: Pool, rows: int, seed: int, control: str = "none") -> Columns:
    """A task's log of so many rows, by its behaviours; spoilt where a control says so."""
    rng = np.random.default_rng([seed, rows, sum(map(ord, task.name))])
    if control == "one_behaviour":
        return written(task, [pool.policies[pool.ranked(0.5)]], 0.0, rows, rng)
    if control == "outside":
        worst = [pool.policies[name] for name in list(pool.policies)[: max(2, len(pool.policies) // 4)]]
        return written(task, worst, 0.05, rows, rng)
    behaviours = [pool.policies[name] for name in pool.behaviours(task)]
    columns = written(task, behaviours, task.noise, rows, rng)
    return SPOILT[control](columns, rng)


def _flipped(columns: Columns, rng: np.random.Generator) -> Columns:
    """The reward's sign is wrong in every second episode or so."""
    sign = rng.choice([-1.0, 1.0], columns.episode.max() + 1)[columns.episode]
    return columns._replace(reward=(columns.reward * sign).astype(np.float32))


def _shuffled_rewards(columns: Columns, rng: np.random.Generator) -> Columns:
    return columns._replace(reward=rng.permutation(columns.reward))


def _shuffled_next(columns: Columns, rng: np.random.Generator) -> Columns:
    return columns._replace(next_obs=rng.permutation(columns.next_obs))


SPOILT: dict[str, Callable[[Columns, np.random.Generator], Columns]] = {
    "none": lambda columns, rng: columns,
    "flipped": _flipped,
    "shuffled_rewards": _shuffled_rewards,
    "shuffled_next": _shuffled_next,
}
CONTROLS = {
    "sorel": ("flipped", "shuffled_rewards", "shuffled_next", "one_behaviour"),
    "evaluate": ("outside",),
    "worlds": (),
}


def given(task: Task, columns: Columns) -> dict[str, Any]:
    """The log as `offing.load` takes it: columns by name, with the task's horizon, discount and actions."""
    log: dict[str, Any] = {
        name: getattr(columns, name)
        for name in ("obs", "action", "reward", "next_obs", "terminated", "truncated", "episode")
    }
    log |= {"horizon": task.horizon, "discount": task.discount}
    if isinstance(task.actions, Choices):
        return log | {"n_actions": task.actions.n}
    edges = {"action_low": np.array(task.actions.low), "action_high": np.array(task.actions.high)}
    return log | {name: edge.astype(np.float32) for name, edge in edges.items()}


def behaviour_of(columns: Columns) -> Behaviour:
    """What the log's whole episodes earned; the last one may be cut off."""
    earned = np.bincount(columns.episode, columns.reward.astype(np.float64))
    whole = earned[:-1] if len(earned) > 2 else earned
    return Behaviour(float(whole.mean()), float(whole.std(ddof=1) / np.sqrt(len(whole))), len(whole))


def true_behaviour(task: Task, pool: Pool, seed: int) -> Truth:
    """What the log's behaviours earn with their noise over many episodes, not only those that a log holds."""
    names, rng = pool.behaviours(task), np.random.default_rng([seed, 5])
    minds = [_noisy(task, pool.policies[name], rng) for name in names]
    each = [truth(task, mind, EPISODES, TRUTH_SEED) for mind in minds]
    mean = lambda field: float(np.mean([getattr(one, field) for one in each]))
    error = lambda field: float(np.sqrt(np.sum([getattr(one, field) ** 2 for one in each]))) / len(each)
    return Truth(
        mean("mean"),
        error("stderr"),
        mean("discounted"),
        error("discounted_stderr"),
        mean("length"),
        EPISODES * len(each),
    )


def _noisy(task: Task, policy: Act, rng: np.random.Generator) -> Mind:
    """A behaviour with its noise, as logs are written by it."""
    return Mind(
        lambda obs, reward, memory: (mixed(task, [policy], np.zeros(len(obs), int), obs, task.noise, rng), memory)
    )


def truths(task: Task, pool: Pool) -> dict[str, Truth]:
    """What each policy of the pool truly earns."""
    tidied = lambda act: remembers_nothing(lambda obs: tidy(task, act(obs)))
    return {name: truth(task, tidied(act), EPISODES, TRUTH_SEED) for name, act in pool.policies.items()}
