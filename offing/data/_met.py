"""How states were met: which actions were taken in which part of a column's range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..types import Discrete, Task
from ._glance import Column, Rows
from .facts import ActedIn

COLUMNS = 3  # that are shown: those that the action follows most
PARTS = 10  # of a column's range, with as many rows each
CHOICES = 24  # that are told apart; of amounts, tenths of the first one's range


def acted_in(data: Rows, task: Task, obs: Column, names: Sequence[str], drawn: np.ndarray) -> tuple[ActedIn, ...]:
    """Shares of the actions by parts of the range of the columns that they follow most."""
    taken, kinds = _taken(data.action[drawn], task)
    met = []
    for i in np.flatnonzero(obs.std > 0).tolist():
        column = data.obs[drawn, i].astype(np.float64)
        edges = np.unique(np.quantile(column, np.linspace(0, 1, PARTS + 1)))
        if len(edges) < 2:
            continue
        values = np.unique(column)
        if len(values) <= PARTS:  # a switch or a label: a part for each value
            edges = np.r_[values, values[-1] + 1.0]
        place = np.clip(np.searchsorted(edges, column, "right") - 1, 0, len(edges) - 2)
        counts = np.zeros((len(edges) - 1, kinds))
        np.add.at(counts, (place, taken), 1.0)
        rows = counts.sum(1)
        shares = counts / np.maximum(rows, 1)[:, None]
        apart = float((rows * ((shares - counts.sum(0) / len(drawn)) ** 2).sum(1)).sum() / len(drawn))
        met.append(
            (
                apart,
                ActedIn(names[i], _floats(edges), tuple(map(_floats, shares)), tuple(rows.astype(int).tolist())),
            )
        )
    return tuple(part for _, part in sorted(met, key=lambda each: -each[0])[:COLUMNS])


def _taken(action: np.ndarray, task: Task) -> tuple[np.ndarray, int]:
    """Which choice, or which tenth of the first amount's range, each row took; and how many there are."""
    if isinstance(task.actions, Discrete):
        return np.minimum(action.argmax(1), CHOICES - 1), min(task.actions.n, CHOICES)
    low, high = task.actions.low[0], task.actions.high[0]
    width = high - low if high > low else 1.0
    return np.clip(((action[:, 0] - low) / width * 10).astype(int), 0, 9), 10


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
