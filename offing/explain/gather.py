"""The numbers of an explanation: the policy and the behaviour over the log's states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data import take
from ..data.dataset import runs
from ..types import Dataset, Policy, Task
from ..value.episodes import acted

ROWS = 4_096  # of the log, in whole episodes, that the policy acts at


class Logged(NamedTuple):
    """Rows of the log, in whole episodes, and what the policy would have done at each."""

    obs: np.ndarray  # [N, S]
    behaviour: np.ndarray  # [N, A]
    policy: np.ndarray  # [N, A]
    reward: np.ndarray  # [N]
    episode: np.ndarray  # [N]
    time: np.ndarray  # [N]


def some_episodes(data: Dataset) -> Dataset:
    """Whole episodes of a log in random order, about ROWS rows; of a bag of transitions, rows evenly taken."""
    rows, episode = data.rows, np.asarray(data.episode)[: data.rows]
    if episode[0] < 0:
        units = [np.array([row]) for row in np.linspace(0, rows - 1, min(ROWS, rows)).astype(int)]
    else:
        units = runs(episode)
    order = np.random.default_rng(0).permutation(len(units))
    before = np.cumsum([0, *(len(units[i]) for i in order[:-1])])
    taken = [units[i] for i in order[before < ROWS]]
    number = np.concatenate([np.full(len(unit), i, np.int32) for i, unit in enumerate(taken)])
    return take(data, np.concatenate(taken))._replace(episode=number)


def logged(policy: Policy, rows: Dataset, task: Task) -> Logged:
    """What the policy would have done along logged episodes, after what was done before."""
    obs, action, reward = (np.asarray(leaf, np.float32) for leaf in rows.steps[:3])
    episode = np.asarray(rows.episode)
    time = np.concatenate([np.arange(len(unit)) for unit in runs(episode)])
    return Logged(obs, action, acted(policy, rows, task), reward, episode, time)


def importance(policy: Policy, rows: Dataset, task: Task, usual: np.ndarray) -> np.ndarray:
    """How much actions depart from `usual` [N, A] if a column is shuffled among rows [S]; the largest is 1."""
    rng, obs = np.random.default_rng(1), np.asarray(rows.steps.obs, np.float32)
    spread = np.maximum(usual.std(0), 1e-9)
    change = []
    for column in range(obs.shape[1]):
        mixed = obs.copy()
        mixed[:, column] = rng.permutation(mixed[:, column])
        shuffled = rows._replace(steps=rows.steps._replace(obs=mixed))
        change.append(float(np.mean(np.abs(acted(policy, shuffled, task) - usual) / spread)))
    return np.array(change) / max(max(change), 1e-9)
