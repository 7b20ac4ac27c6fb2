"""The least and the most that a step of a log earned, and how far beyond these the true ends may lie.

What is paid once, as an episode ends, is not paid at every step: a goal that ends an episode pays no step after
which the episode goes on, and worlds and bounds must not say that it does.
"""

from __future__ import annotations

import numpy as np

from ..types import Dataset

ENDS = 38  # times the smaller distance between the three outermost values: where their range ends, at 95%


def beyond(values: np.ndarray) -> tuple[float, float]:
    """How far below the least and above the most of these values (negative, positive) the ends of their range may
    lie. What is paid by degrees goes on as it came; a goal that always pays the same, or paid once, is the end.
    """
    if len(values) < 3:
        return 0.0, 0.0
    least, most = np.sort(np.partition(values, 2)[:3]), np.sort(np.partition(values, -3)[-3:])
    return float(-ENDS * np.diff(least).min()), float(ENDS * np.diff(most).min())


def earned(data: Dataset) -> np.ndarray:
    """Least and most [2, 2] that a step can earn: one after which its episode goes on, and one that ends it.

    An episode may also end as any step went.
    """
    reward = np.asarray(data.steps.reward, np.float64)[: data.rows]
    each = (of_going(data), reward)
    return np.array([(r.min() + beyond(r)[0], r.max() + beyond(r)[1]) for r in each])


def of_going(data: Dataset) -> np.ndarray:
    """The rewards of steps after which episodes went on; all of them where none did."""
    reward = np.asarray(data.steps.reward, np.float64)[: data.rows]
    on = np.asarray(data.steps.done)[: data.rows] <= 0
    return reward[on] if on.any() else reward
