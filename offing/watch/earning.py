"""Does the deployed policy earn what was promised? KEEP, STOP or NOT-YET, whenever one looks.

STOP     the mean return lies below the promised interval (or below the baseline, where that is in the interval):
         the claim that it does not has been bet against, and wealth has exceeded 1 / 0.05 once
KEEP     the mean return exceeds the baseline, by a bet of the same kind, and it was not STOP
NOT-YET  neither; how many more episodes would settle it is said

Bets need to know how high a return can be (STOP) and how low (KEEP). The rewards' range gives one bound; where
imagined returns reach far less, their extremes and as much again are taken, and what is beyond counts as the edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .evidence import Bet

KEEP, STOP, NOT_YET = "KEEP", "STOP", "NOT-YET"
EXIT = {KEEP: 0, STOP: 5, NOT_YET: 6}
ERROR = 0.05  # probability of a false STOP, and of a false KEEP, over all looks together


class Promise(NamedTuple):
    """What a run promised of the mean return, and what it is to beat."""

    low: float
    median: float
    high: float
    baseline: float
    least: float  # that a return can be
    most: float


class Standing(NamedTuple):
    """What can be said after so many episodes."""

    word: str
    episodes: int
    mean: float
    below: float  # logarithm of the evidence that it earns less than promised
    above: float  # of the evidence that it earns more than the baseline
    more: int | None  # episodes like those before that would settle it


def promise_of(
    returns: np.ndarray,
    median: float,
    interval: tuple[float, float],
    baseline: float,
    bounds: tuple[float, float],
) -> Promise:
    """A promise from its median and interval, imagined returns [M, K], and what rewards can add up to at most."""
    seen = np.asarray(returns, float)
    reach = float(seen.max() - seen.min()) or 1.0
    least, most = max(bounds[0], float(seen.min()) - reach), min(bounds[1], float(seen.max()) + reach)
    least, most = min(least, interval[0], baseline), max(most, interval[1], baseline)
    return Promise(interval[0], median, interval[1], baseline, least, most)


class Earning:
    """Returns against a promise, episode by episode."""

    def __init__(self, promise: Promise):
        self.promise = promise
        floor = promise.baseline if promise.low < promise.baseline < promise.median else promise.low
        self.floor = floor
        self.below = Bet(max(promise.most - floor, 1e-9))
        self.above = Bet(max(promise.baseline - promise.least, 1e-9))
        self.returns: list[float] = []
        self.history: list[tuple[float, float]] = []
        self.word = NOT_YET

    def update(self, earned: float) -> Standing:
        """One episode more."""
        self.returns.append(float(earned))
        below = self.below.update(self.floor - min(float(earned), self.promise.most))
        above = self.above.update(max(float(earned), self.promise.least) - self.promise.baseline)
        self.history.append((below, above))
        due = np.log(1 / ERROR)
        if self.below.peak >= due:
            self.word = STOP
        elif self.above.peak >= due:
            self.word = KEEP
        return self.standing

    @property
    def standing(self) -> Standing:
        mean = float(np.mean(self.returns)) if self.returns else float("nan")
        ahead = [more for more in (self.below.more(ERROR), self.above.more(ERROR)) if more is not None]
        more = min(ahead) if ahead and self.returns and self.word == NOT_YET else None
        more = 0 if self.word != NOT_YET else more
        return Standing(self.word, len(self.returns), mean, self.below.total, self.above.total, more)
