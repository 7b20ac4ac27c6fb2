"""Evidence that may be looked at as often as one likes: bets against a claim that cannot gain if it holds.

    claim: E[y | past] <= 0, y >= -reach;   wealth of one bet: prod (1 + c y / reach), 0 < c < 1

If the claim holds, wealth is a supermartingale that starts at 1, and the probability that it ever exceeds 1 / a is
at most a, however often one looks (Ville, 1939). How much to stake and since when is not known beforehand: wealth
is spread over stakes (Waudby-Smith & Ramdas, 2024: betting) and over starts at rows 1, 2, 4, 8, ...; a mixture of
supermartingales is one. Starts later than the first find a change that came late (Shin, Ramdas & Rinaldo, 2023).
"""

from __future__ import annotations

import math

import numpy as np

STAKES = np.array([0.9, 0.6, 0.4, 0.25, 0.16, 0.1, 0.06, 0.03, 0.015, 0.0075])


class Bet:
    """Wealth of bets against one claim, as numbers come in."""

    def __init__(self, reach: float):
        self.reach = max(reach, 1e-12)
        self.count = 0
        self.wealth = np.zeros((0, len(STAKES)))  # logarithms, by start and stake
        self.peak = 0.0  # the highest that the logarithm of all wealth together has been
        self.growth = np.zeros(len(STAKES))  # of each stake since the first number

    def update(self, y: float) -> float:
        """One number more; the logarithm of all wealth together."""
        self.count += 1
        if self.count & (self.count - 1) == 0:
            self.wealth = np.vstack([self.wealth, np.zeros(len(STAKES))])
        step = np.log1p(STAKES * max(y / self.reach, -1.0))
        self.wealth = self.wealth + step
        self.growth = self.growth + step
        self.peak = max(self.peak, self.total)
        return self.total

    @property
    def total(self) -> float:
        """The logarithm of all wealth; what is kept for later starts counts as it is."""
        starts = len(self.wealth)
        weights = -np.log((np.arange(starts) + 1.0) * (np.arange(starts) + 2.0))  # 1/2, 1/6, ...; the rest 1/(n+1)
        parts = (weights[:, None] + self.wealth - math.log(len(STAKES))).ravel()
        return float(np.logaddexp.reduce([*parts, -math.log(starts + 1)]))

    @property
    def since(self) -> int:
        """The start, as a number of rows before it, whose bets have earned most."""
        return int(2 ** int(np.argmax(self.wealth.max(1)))) - 1 if len(self.wealth) else 0

    def more(self, level: float) -> int | None:
        """How many more numbers like those before would exceed log(1 / level); None if none would."""
        pace = float(self.growth.max()) / max(self.count, 1)
        short = math.log(1 / level) - self.total
        return 0 if short <= 0 else math.ceil(short / pace) if pace > 1e-6 else None


class Both:
    """Bets against `low <= E[x] <= high`, half of the wealth on either side; x beyond [-1, 1] is held to it."""

    def __init__(self, low: float, high: float):
        self.low, self.high = low, high
        self.above, self.below = Bet(1 + high), Bet(1 - low)
        self.peak = 0.0

    def update(self, x: float) -> float:
        x = float(np.clip(x, -1, 1))
        total = float(
            np.logaddexp(self.above.update(x - self.high), self.below.update(self.low - x)) - math.log(2)
        )
        self.peak = max(self.peak, total)
        return total

    @property
    def since(self) -> int:
        return (self.above if self.above.total >= self.below.total else self.below).since

    @property
    def side(self) -> int:
        """1 where x is higher than claimed, -1 where it is lower."""
        return 1 if self.above.total >= self.below.total else -1
