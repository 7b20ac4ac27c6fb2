"""What a policy will earn: a distribution over worlds and episodes, and an interval that counts every doubt.

The value of a policy in one world is its mean over that world's episodes. Worlds differ, and so the value has a
distribution; its median is the estimate (the paper's posterior predictive median). What the log's own behaviour
earned is known, and what a world says too much of that it mostly says too much of other policies as well. So
each world's value V_m is corrected by its error e_m on behaviour that it did not learn from, as an ensemble Kalman
filter does (Evensen, 2003),

    V_m - K e_m,    K = Cov(V, e) / (Var e + noise)         noise: variance of e from chance in what was earned

which is nothing where the two have nothing to do with each other or too few episodes tell. Doubt comes from

    worlds    they do not agree, corrected as they are: t-distributed, as they are few. Contained in it: each
              world's mean is taken over finitely many episodes, K from finitely many worlds, and the noise
    checks    their spread was too small, or too large, by a factor, where it could be checked
    starts    the log showed finitely many starts
    gap       a plan's use of errors of the worlds it was trained in, which others do not share, is not in their
              word; `common` times as much may be its use of those that they do share. Two folds that know alike
              differ by sqrt(2) of what one of them is off, so only a gap beyond that is use
    rare      an episode that goes as the log's go may come once in as many as were rolled out, and none did

and the interval is median +- t * sqrt(sum of their variances). What the log cannot tell at all is bounded, not
guessed (Manski, 1990): an episode that was stopped where the log ends may in truth have ended there, or gone on to
earn the least or the most that was ever logged at every step it had left; and where episodes do not end, a step
taken beyond the log may have earned the least or the most, whatever worlds say. The interval reaches that far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

FEWEST = 6  # worlds of a fold, fewer than which do not tell how values go with errors


class Error(NamedTuple):
    """What worlds said too much of behaviour whose return is known."""

    worlds: tuple[float, ...]  # [M]
    noise: float  # variance of these from chance in what the behaviour earned
    seen: float = 0.0  # share of the log's episodes that they were measured on


class Errors(NamedTuple):
    """The same of its value, discounted, and of its return; `folds` are those that the worlds are of."""

    values: Error
    returns: Error
    folds: int = 1


class ValueEstimate(NamedTuple):
    """Returns of a policy in the worlds of a posterior, and what else the truth may differ by."""

    returns: np.ndarray  # [M, K]  of episode k in world m
    starts: float = 0.0  # variance of the value from knowing finitely many starts
    gap: float = 0.0  # value in the plan's own worlds, less the value here
    common: float = 0.0  # error that all folds share, relative to error that each has alone (PIL.common)
    widen: float = 1.0  # what the worlds' spread must be multiplied by, as far as it could be checked
    rare: float = 0.0  # what the value would lose to one more episode, if that went as the log's go
    less: float = 0.0  # 0 or below: least that steps beyond the log may have earned, less what is counted
    more: float = 0.0  # 0 or above: most of it
    bounds: tuple[float, float] = (-np.inf, np.inf)  # least and most that the log's rewards can add up to
    errors: tuple[float, ...] = ()  # [M]  what each world said too much of the log's own behaviour; () if unknown
    noise: float = 0.0  # variance of these from chance in what the behaviour earned, alike for worlds of a fold
    seen: float = 0.0  # share of the log's episodes that these were measured on
    folds: int = 1  # that the worlds are of, fold by fold

    @property
    def slope(self) -> float:
        """K: how much of its error on known behaviour a world passes on to this policy."""
        return self._regression[0]

    @property
    def _regression(self) -> tuple[float, float]:
        """K, and the variance of the corrected values' mean from not knowing it better."""
        each = self.members // self.folds
        if len(self.errors) != self.members or each < FEWEST:
            return 0.0, 0.0
        error = np.asarray(self.errors, np.float64).reshape(self.folds, each)
        value = np.asarray(self.returns, np.float64).mean(1).reshape(self.folds, each)
        centred = error - error.mean(1, keepdims=True)
        squares, products = np.sum(centred**2), np.sum(centred * (value - value.mean(1, keepdims=True)))
        if not squares > 0 or not np.isfinite(products):
            return 0.0, 0.0
        freedom = self.folds * (each - 1)
        slope = products / (squares + freedom * self.noise)
        left = np.sum((value - value.mean(1, keepdims=True) - products / squares * centred) ** 2) / (freedom - 1)
        kept = squares / (squares + freedom * self.noise)
        return float(slope), float(left / squares * (kept * error.mean()) ** 2)

    @property
    def shift(self) -> np.ndarray:
        """What each world's values are corrected by [M]."""
        return -self.slope * np.asarray(self.errors, np.float64) if self.slope else np.zeros(self.members)

    @property
    def worlds(self) -> np.ndarray:
        """The policy's value by each world [M], corrected by what the world is known to be off.

        Not beyond what rewards can add up to: there a correction has gone too far.
        """
        plain = np.asarray(self.returns, np.float64).mean(1)
        low, high = self.bounds
        return np.clip(plain + self.shift, np.minimum(plain, low), np.maximum(plain, high))

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
        return float(np.quantile(np.asarray(self.returns) + self.shift[:, None], q))

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
    def freedom(self) -> int:
        """Of the t-distribution: worlds less what was learned from them."""
        return max(self.members - 1 - (self.slope != 0), 1)

    @property
    def spread(self) -> float:
        """Variance of the true value about the worlds' mean, if the truth is one more such world."""
        between = np.var(self.worlds, ddof=1) if self.members > 1 else self.aleatoric**2
        slope, unsure = self._regression
        return float((1 + 1 / self.members) * between + slope**2 * self.noise / self.folds + unsure)

    @property
    def settled(self) -> float:
        """What of `spread` is no disagreement of worlds, so that no check makes it less."""
        slope, unsure = self._regression
        chance = self.stderr**2 + slope**2 * self.noise / self.folds + unsure
        return min(chance, self.spread)

    @property
    def deviation(self) -> float:
        """Standard deviation of the true value about the median, all doubts together."""
        return float(np.sqrt(sum(term**2 for name, term in self.terms.items() if name != "unknown")))

    @property
    def terms(self) -> dict[str, float]:
        """What each doubt alone comes to, as a standard deviation; of what nobody knows, its half-width."""
        spread, settled = self.spread, self.settled
        used = max(self.gap**2 - 2 * spread, 0.0) if self.gap > 0 else 0.0
        squares = {
            "worlds": settled + (spread - settled) * min(self.widen**2, 1.0),
            "checks": spread * max(self.widen**2 - 1, 0.0),
            "starts": self.starts,
            "gap": self.common**2 * used,
            "rare": self.rare**2,
        }
        return {name: float(np.sqrt(v)) for name, v in squares.items()} | {"unknown": (self.more - self.less) / 2}

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Where the true value lies with probability `level`."""
        half = float(stats.t.ppf(0.5 + level / 2, self.freedom)) * self.deviation
        low, high = np.clip((self.median - half + self.less, self.median + half + self.more), *self.bounds)
        return float(min(low, self.median)), float(max(high, self.median))

    def apart(self, stderr: float) -> float:
        """Standard deviation of the true value less what the log's behaviour truly earns, known up to `stderr`.

        Chance that made the behaviour's logged return too high also made worlds seem to say too little of it, and
        so corrected the policy's value upwards as well: that much of the two doubts cancels.
        """
        both = self.slope * min(self.noise * self.seen, stderr**2)
        return float(np.sqrt(max(self.deviation**2 + stderr**2 - 2 * both, self.deviation**2 / 2)))

    def least(self, level: float = 0.9, stderr: float = 0.0) -> float:
        """What the true value exceeds with probability `level`; less by a baseline's own doubt `stderr`."""
        scale = self.apart(stderr)
        low = self.median + self.less - float(stats.t.ppf(level, self.freedom)) * scale
        return float(np.clip(low, *self.bounds))

    def above(self, baseline: float, stderr: float = 0.0) -> float:
        """Probability that the true value exceeds a baseline that is itself known up to `stderr`, at least: what
        nobody knows does not speak for the policy.
        """
        return self._exceeds(baseline, stderr, self.less)

    def above_at_most(self, baseline: float, stderr: float = 0.0) -> float:
        """The same at most: all that nobody knows speaks for the policy."""
        return self._exceeds(baseline, stderr, self.more)

    def _exceeds(self, baseline: float, stderr: float, unknown: float) -> float:
        scale = self.apart(stderr)
        if baseline >= self.bounds[1]:
            return 0.0  # nothing earns more than rewards can add up to
        off = self.median + unknown - baseline
        if scale == 0:
            return float(off > 0)
        return float(stats.t.cdf(off / scale, self.freedom))


def corrected(estimate: ValueEstimate, error: Error, folds: int) -> ValueEstimate:
    """The estimate, its worlds corrected by what they are known to be off."""
    return estimate._replace(errors=error.worlds, noise=error.noise, seen=error.seen, folds=folds)


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
