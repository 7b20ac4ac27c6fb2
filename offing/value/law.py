"""What would more rows buy? The 1/N law, fitted to a few sizes of the log and read off beyond it.

    y(n) = slope / n + floor,    slope, floor >= 0

by squares of the logarithm, so that every size counts alike. Posterior information loss falls so (the paper's
Theorem 2), and with it the square of an interval's width. `floor` is what no number of rows like these takes away:
nets that are too small, ground that the behaviour never visits, a policy that magnifies what is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BEYOND = 100.0  # the logarithm of how many times as many rows are the same as no number of rows
MOST = 1e30  # a larger number is that large
TRIES = np.r_[0.0, np.logspace(-4, 2, 121)]  # of floor / slope, in units of one over the largest size


class Law(NamedTuple):
    """y(n) = slope / n + floor."""

    slope: float
    floor: float

    def at(self, rows: float) -> float:
        return self.slope / rows + self.floor

    def rows(self, y: float) -> float:
        """How many rows it takes for y; infinite where the floor is higher."""
        return self.slope / (y - self.floor) if y > self.floor else float("inf")


class Needed(NamedTuple):
    """Rows that a width takes, by extrapolation, and where that may lie; infinite: no number of such rows."""

    rows: float
    low: float
    high: float


def fit(rows: np.ndarray, y: np.ndarray) -> Law:
    """The law that is nearest to y [K] at `rows` [K], by squares of the logarithm."""
    rows, y = np.asarray(rows, np.float64), _held(y)
    share = rows.max() / rows  # [K]
    off = np.log(y) - np.log(share + TRIES[:, None])  # [T, K]
    best = int(np.argmin(off.var(1)))
    scale = float(np.exp(off[best].mean()))
    return Law(scale * rows.max(), scale * float(TRIES[best]))


def needed(rows: np.ndarray, y: np.ndarray, drawn: np.ndarray, share: float, level: float = 0.8) -> Needed:
    """Rows at which y is `share` of what it is at the most rows, by y [K] and by `drawn` [R, K].

    `drawn` is what y might as well have been. Shares, so that y's luck at the most rows does not count. Where y
    may lie also counts that it goes on to fall as steeply as it did so far, which no law promises.
    """
    most = float(np.max(rows))

    def by_law(y: np.ndarray) -> float:
        law = fit(rows, y)
        return law.rows(share * law.at(most))

    each = np.sort([take(one) for one in drawn for take in (by_law, lambda y: _as_so_far(rows, y, share))])
    at = lambda q: float(each[min(int(q * len(each)), len(each) - 1)])  # no interpolation: some are infinite
    return Needed(by_law(y), at((1 - level) / 2), at((1 + level) / 2))


def _as_so_far(rows: np.ndarray, y: np.ndarray, share: float) -> float:
    """Rows at which y is that share of what it is, if it goes on to fall by the same power of the rows."""
    if len(rows) < 2:
        return float("inf")
    power = -float(np.polyfit(np.log(rows), np.log(_held(y)), 1)[0])
    # As a logarithm: a curve that is nearly flat asks for more rows than a float can hold.
    times = -np.log(share) / power if power > 0 else np.inf
    return float(np.max(rows)) * float(np.exp(times)) if times < BEYOND else float("inf")


def _held(y: np.ndarray) -> np.ndarray:
    """Positive numbers whose logarithms and ratios floats can hold: no width is nothing, and none is infinite."""
    return np.clip(np.nan_to_num(np.asarray(y, np.float64), nan=MOST), 1 / MOST, MOST)
