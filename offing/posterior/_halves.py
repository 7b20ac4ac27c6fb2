"""Rows of a log that are asked about before any net is trained, in two halves of episodes: what the one teaches is
held against the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.dataset import runs
from ..trees import predict
from ..types import Dataset

MOST = 4_096  # rows that are asked about
EPISODES = 10  # in either half, at least
PIECE = 10  # steps of a piece of an episode, where episodes are few


class Halves(NamedTuple):
    """Some rows, and which half and which episode each belongs to."""

    rows: np.ndarray  # [N]  where they stand in the log
    half: np.ndarray  # [N]
    whose: np.ndarray  # [N]  episode

    def taken(self, leaf: object) -> np.ndarray:
        """These rows of a column of the log."""
        return np.asarray(leaf)[self.rows].astype(np.float64)

    def left(self, x: np.ndarray, y: np.ndarray, boosted: bool = True) -> np.ndarray:
        """What is left of y [N, D] when x is known, each half by what the other teaches."""
        rest = np.zeros_like(y)
        for part in (0, 1):
            learn, ask = self.half != part, self.half == part
            rest[ask] = y[ask] - predict(x[learn], y[learn], x[ask], boosted=boosted)
        return rest


def halves(data: Dataset) -> Halves | None:
    """The rows to ask; None where episodes are too few. Where they are few and long, pieces of them are as good as
    unrelated.
    """
    rows = data.rows
    episode = np.asarray(data.episode)[:rows]
    units = runs(episode) if episode[0] >= 0 else [np.array([i]) for i in range(rows)]
    if len(units) < 2 * EPISODES:
        pieces = -(-4 * EPISODES // len(units))
        units = [part for unit in units for part in np.array_split(unit, pieces) if len(part) >= PIECE]
    if len(units) < 2 * EPISODES:
        return None
    order = np.random.default_rng(0).permutation(len(units))
    parts = [np.concatenate([units[i] for i in order[part::2]])[: MOST // 2] for part in (0, 1)]
    chosen, half = np.concatenate(parts), np.repeat([0, 1], [len(part) for part in parts])
    unit_of = np.zeros(rows, np.int64)
    for number, unit in enumerate(units):
        unit_of[unit] = number
    return Halves(chosen, half, np.unique(unit_of[chosen], return_inverse=True)[1])


def scaled(a: np.ndarray) -> np.ndarray:
    """Columns about their mean, in units of their standard deviation; a constant one is nought."""
    std = a.std(0)
    return (a - a.mean(0)) / np.where(std > 1e-9 * (1 + np.abs(a.mean(0))), std, 1.0)
