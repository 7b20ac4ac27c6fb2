"""Do imagined rows look like logged ones, where chance is all there is to a column, and is the reward understood?

The worlds of a log are held against a fresh log of the same behaviours: what share of each change and of the
reward they leave unexplained one step ahead, and how often columns of 0 and 1 are 1, and columns that jump do, in
episodes that are imagined from the fresh log's starts under its actions.
"""

from __future__ import annotations

import numpy as np

from .play import Columns
from .product import Numbers, Worlds
from .tasks import Task

LEAP = 0.25  # of a column's standard deviation: a change by more is a jump


def imagined(task: Task, log: Columns, fresh: Columns, worlds: Worlds) -> Numbers:
    """What a record of worlds holds; `log` is what they learned from."""
    before, after = (part[worlds.alive] for part in (worlds.before, worlds.after))  # [N, S]
    seen = {"log": (log.obs, log.next_obs), "fresh": (fresh.obs, fresh.next_obs), "imagined": (before, after)}
    return {
        "reward_unexplained": float(worlds.unexplained[-1]),
        "unexplained": dict(zip(task.columns, worlds.unexplained[:-1].tolist(), strict=True)),
        "coins": {
            name: {whose: float(np.mean(rows[1][:, column])) for whose, rows in seen.items()}
            for column, name in enumerate(task.columns)
            if "coin" in task.kinds and is_coin(log.next_obs[:, column])
        },
        "jumps": {name: jumps(seen, task.columns.index(name)) for name in task.jumping},
    }


def is_coin(values: np.ndarray) -> bool:
    """Whether a column is 0 or 1, and both."""
    return set(np.unique(values).tolist()) == {0.0, 1.0}


def jumps(seen: dict[str, tuple[np.ndarray, np.ndarray]], column: int) -> Numbers:
    """How often a column jumps, and how far on average, in each set of rows."""
    least = LEAP * float(np.std(seen["log"][0][:, column]))

    def one(before: np.ndarray, after: np.ndarray) -> dict[str, float]:
        change = np.abs(after[:, column].astype(np.float64) - before[:, column])
        leaps = change[change > least]
        return {"often": len(leaps) / len(change), "far": float(leaps.mean()) if len(leaps) else 0.0}

    return {whose: one(*rows) for whose, rows in seen.items()}
