"""What a policy will earn: a distribution over worlds and episodes, and an interval that counts every doubt.

The value of a policy in one world is its mean over that world's episodes. Worlds differ, and so the value has a
distribution; its median is the estimate (the paper's posterior predictive median). Doubt comes from

    between   the worlds do not agree: t-distributed, as they are few
    drawn     each world's mean is taken over finitely many episodes (contained in what is seen between them)
    starts    the log showed finitely many starts
    gap       worlds that the plan was trained in say more than worlds that it was not. Its use of errors that
              held-out worlds do not share is not in their word; `common` times as much may be its use of those
              they do share. And two folds that know alike differ by sqrt(2) of what one of them is off
    rare      an episode that goes as the log's go may come once in as many as were rolled out, and none did

and the interval is median +- t * sqrt(sum of their variances). What the log cannot tell at all is bounded, not
guessed (Manski, 1990): an episode that was stopped where the log ends may in truth have ended there, or gone on to
earn the least or the most that was ever logged at every step it had left. The interval reaches that far beyond.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats


class ValueEstimate(NamedTuple):
    """Returns of a policy in the worlds of a posterior, and what else the truth may differ by."""

    returns: np.ndarray  # [M, K]  of episode k in world m
    starts: float = 0.0  # variance of the value from knowing finitely many starts
    gap: float = 0.0  # value in the plan's own worlds, less the value here
    common: float = 0.0  # error that all folds share, relative to error that each has alone (PIL.common)
    widen: float = 1.0  # the worlds' spread is too small by this factor, where it could be checked
    rare: float = 0.0  # what the value would lose to one more episode, if that went as the log's go
    less: float = 0.0  # 0 or below: least that episodes stopped where the log ends might have earned after that
    more: float = 0.0  # 0 or above: most of it
    bounds: tuple[float, float] = (-np.inf, np.inf)  # least and most that the log's rewards can add up to

    @property
    def worlds(self) -> np.ndarray:
        """The policy's value in each world [M]."""
        return np.asarray(self.returns, np.float64).mean(1)

    @property
    def median(self) -> float:
        return float(np.median(self.worlds))

    @property
    def mean(self) -> float:
        return float(np.mean(self.worlds))

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest world: the paper's band, which covers only (M - 1) / (M + 1) at best."""
        return float(self.worlds.min()), float(self.worlds.max())

    def quantile(self, q: float) -> float:
        """Of single episodes, over all worlds: what one try may earn."""
        return float(np.quantile(self.returns, q))

    @property
    def aleatoric(self) -> float:
        """Standard deviation of episodes within a world: chance and starts."""
        return float(np.sqrt(np.mean(np.var(self.returns, axis=1, ddof=1)))) if self.returns.shape[1] > 1 else 0.0

    @property
    def stderr(self) -> float:
        """Of the mean over worlds and episodes, from the number of episodes alone."""
        return self.aleatoric / float(np.sqrt(np.size(self.returns)))

    @property
    def epistemic(self) -> float:
        """Standard deviation between worlds, cleared of the number of episodes."""
        between = (
            np.var(self.worlds, ddof=1) - self.aleatoric**2 / self.returns.shape[1] if self.members > 1 else 0.0
        )
        return float(np.sqrt(max(between, 0.0)))

    @property
    def members(self) -> int:
        return self.returns.shape[0]

    @property
    def deviation(self) -> float:
        """Standard deviation of the true value about the median, all doubts together.

        Two folds that know alike differ by sqrt(2) of what one is off. What a plan earns more in its training
        worlds is also its use of their errors: that is not in the median, but it may use errors that all share.
        """
        return float(np.sqrt(sum(term**2 for name, term in self.terms.items() if name != "unknown")))

    @property
    def terms(self) -> dict[str, float]:
        """What each doubt alone comes to, as a standard deviation; of what nobody knows, its half-width."""
        between = np.var(self.worlds, ddof=1) if self.members > 1 else self.aleatoric**2
        spread = (1 + 1 / self.members) * between
        used = (0.5 + (self.common**2 if self.gap > 0 else 0.0)) * self.gap**2
        squares = {
            "worlds": spread,
            "checks": spread * (self.widen**2 - 1),
            "starts": self.starts,
            "gap": used,
            "rare": self.rare**2,
        }
        return {name: float(np.sqrt(max(v, 0.0))) for name, v in squares.items()} | {
            "unknown": (self.more - self.less) / 2
        }

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Where the true value lies with probability `level`."""
        half = float(stats.t.ppf(0.5 + level / 2, max(self.members - 1, 1))) * self.deviation
        low, high = np.clip((self.median - half + self.less, self.median + half + self.more), *self.bounds)
        return float(min(low, self.median)), float(max(high, self.median))

    def least(self, level: float = 0.9, stderr: float = 0.0) -> float:
        """What the true value exceeds with probability `level`; less by a baseline's own doubt `stderr`."""
        scale = float(np.hypot(self.deviation, stderr))
        low = self.median + self.less - float(stats.t.ppf(level, max(self.members - 1, 1))) * scale
        return max(low, self.bounds[0])

    def above(self, baseline: float, stderr: float = 0.0) -> float:
        """Probability that the true value exceeds a baseline that is itself known up to `stderr`."""
        scale = float(np.hypot(self.deviation, stderr))
        off = self.median + self.less - baseline  # what nobody knows does not speak for the policy
        if scale == 0:
            return float(off > 0)
        return float(stats.t.cdf(off / scale, max(self.members - 1, 1)))


class Estimate(NamedTuple):
    """What an estimator says of a policy, how far it can be trusted, and what it had to assume."""

    estimate: ValueEstimate  # discounted by the task
    health: dict[str, float]
    notes: tuple[str, ...]
    returns: ValueEstimate | None = None  # undiscounted; None where the method has no such thing


def start_variance(returns: np.ndarray, first: np.ndarray, starts: int) -> float:
    """Variance of a value that comes of knowing only `starts` starts, from episodes and what each began in.

    The part of the episodes' variance that their starts explain (one-way analysis of variance), over the number
    of starts. Where hardly any start was used twice, all of it counts as theirs.
    """
    returns, first = np.ravel(returns).astype(np.float64), np.ravel(first)
    whole = float(np.var(returns))
    counts = np.bincount(first, minlength=starts)
    used = counts > 0
    spare = len(returns) - used.sum()
    if spare < max(10, used.sum() // 2) or used.sum() < 2:
        return whole / starts
    sums = np.bincount(first, returns, minlength=starts)[used]
    means, n = sums / counts[used], counts[used]
    within = (
        np.sum((returns - (sums / np.maximum(n, 1))[np.searchsorted(np.flatnonzero(used), first)]) ** 2) / spare
    )
    between = np.sum(n * (means - returns.mean()) ** 2) / (used.sum() - 1)
    each = (len(returns) - np.sum(n**2) / len(returns)) / (used.sum() - 1)
    return float(np.clip((between - within) / each, 0.0, whole) / starts)
