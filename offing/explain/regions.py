"""What departing from the behaviour is promised to bring, region by region.

For any function V of state and steps left, with V = 0 when none are left or the episode ended,

    sum_t [r_t + V(s_{t+1}, T - t - 1) - V(s_t, T - t)] = return - V(s_0, T)

since V telescopes. With V what the behaviour earns from a state on, the bracket is what a step brings beyond the
behaviour; summed over the steps that imagined episodes spend in a region, regions add up to the promised return
less the behaviour's. V is a ridge regression of the log's returns to go on random features (Rahimi & Recht, 2007),
moved so that at the starts it is on average what the behaviour earned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..value.episodes import Imagined
from .gather import Logged

FEATURES = 256
RIDGE = 1e-3


class Region(NamedTuple):
    """A part of the state space, in words, and what the policy does and brings there."""

    words: str
    share: float  # of imagined steps
    policy: np.ndarray  # [A]  mean action, or shares of choices
    behaviour: np.ndarray
    brings: float  # return beyond the behaviour's, an episode


def to_go(past: Logged) -> np.ndarray:
    """What was still earned from each row on, to the end of its episode [N]."""
    back = past.reward[::-1].astype(float)
    last = np.r_[True, past.episode[::-1][1:] != past.episode[::-1][:-1]]
    total = np.cumsum(back)
    before = np.where(last, total - back, 0.0)
    offset = np.maximum.accumulate(np.where(last, np.arange(len(back)), 0))
    return (total - before[offset])[::-1]


def behaviour_value(past: Logged, horizon: int, mean: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """(states [N, S], steps left [N]) -> what the behaviour earns from there on, `mean` on average at starts."""
    rng = np.random.default_rng(2)
    centre, spread = past.obs.mean(0), np.maximum(past.obs.std(0), 1e-6)
    width = past.obs.shape[1] + 1
    turn, phase = rng.normal(size=(width, FEATURES)) / np.sqrt(width), rng.uniform(0, 2 * np.pi, FEATURES)

    def features(obs: np.ndarray, left: np.ndarray) -> np.ndarray:
        x = np.concatenate([np.clip((obs - centre) / spread, -5, 5), 2 * left[:, None] / horizon], -1)
        share = left[:, None] / horizon  # value goes to 0 with the steps that are left
        return share * np.concatenate([np.cos(x @ turn + phase), np.ones((len(obs), 1))], -1)

    x, y = features(past.obs, horizon - past.time.astype(float)), to_go(past)
    weights = np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(x.shape[1]), x.T @ y)
    first = past.obs[past.time == 0]
    off = mean - float(np.mean(features(first, np.full(len(first), float(horizon))) @ weights))
    return lambda obs, left: features(obs, left) @ weights + off * left / horizon


def brought(
    episodes: Imagined, value: Callable[[np.ndarray, np.ndarray], np.ndarray], leaf: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """By region, return beyond the behaviour's and share of steps; and the mean of V at imagined starts.

    `leaf` [T, M, K] is the region of each step.
    """
    steps, alive = episodes.obs.shape[0], episodes.alive
    flat = episodes.obs.reshape(-1, episodes.obs.shape[-1])
    left = np.broadcast_to((steps - np.arange(steps, dtype=float))[:, None, None], alive.shape)
    worth = value(flat, left.ravel()).reshape(alive.shape)
    after = np.concatenate([worth[1:] * alive[1:], np.zeros_like(worth[:1])])
    each = np.where(alive, episodes.reward + after - worth, 0.0)
    total = np.bincount(leaf[alive], each[alive], minlength=count) / alive[0].size
    share = np.bincount(leaf[alive], minlength=count) / alive.sum()
    return total, share, float(worth[0].mean())
