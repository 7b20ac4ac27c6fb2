"""How good are estimates over a pool of policies whose truth is known? Each figure beside what chance gives.

Estimates are numbers, or ValueEstimates (whose medians count); intervals come from the latter or as pairs. A
figure says little alone: of eleven policies a random five hold one that is nearly the best. So each comes with
`chance`, what it is on average when the estimates are shuffled among the policies, and `luck`, what shuffling
reaches one time in twenty.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from ..types import BadInput
from .estimate import ValueEstimate

SHUFFLES = 2_000
LUCK = 0.05
POINTS = 99  # quantiles that stand for a distribution

Estimates = Sequence[ValueEstimate] | Sequence[float] | np.ndarray
Truths = Sequence[float] | np.ndarray


class Figure(NamedTuple):
    """A figure over a pool, its interval over policies like these, and what chance gives for this very pool."""

    value: float
    low: float
    high: float
    chance: float
    luck: float
    policies: int
    p: float = float("nan")  # of a correlation: the chance of one as far from 0 where there is none


class Gate(NamedTuple):
    """Errors of a gate at a threshold, both as shares of those let through or held; nan where there are none."""

    false_deploy: Figure  # truly below the threshold, among those deployed
    false_hold: Figure  # truly at or above it, among those held
    deployed: int
    held: int


def points(estimates: Estimates) -> np.ndarray:
    """One number for each policy [n]."""
    medians = [e.median if isinstance(e, ValueEstimate) else e for e in estimates]
    return np.asarray(medians, np.float64)


def intervals(estimates: Estimates, level: float) -> np.ndarray:
    """Low and high for each policy [n, 2]; pairs are taken as they are."""
    limits = [e.interval(level) if isinstance(e, ValueEstimate) else e for e in estimates]
    pairs = np.asarray(limits, np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise BadInput(f"intervals: shape {pairs.shape}; give ValueEstimates, or a low and a high for each policy")
    return pairs


def _both(estimates: Estimates, truths: Truths) -> tuple[np.ndarray, np.ndarray]:
    x, y = points(estimates), np.asarray(truths, np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise BadInput(f"{x.shape} estimates for {y.shape} truths: give one of each for two policies or more")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise BadInput(
            "estimates and truths must be finite: leave out policies that could not be judged, and say so"
        )
    return x, y


@cache
def _shuffles(n: int) -> np.ndarray:
    """Orders of n, SHUFFLES of them, the same ones for every figure."""
    return np.random.default_rng(0).permuted(np.tile(np.arange(n), (SHUFFLES, 1)), axis=1)


# ---- figures that are means of something between an estimate and a truth


def _paired(losses: np.ndarray) -> Figure:
    """The mean of the diagonal of [n, n]; chance is the mean of all of it."""
    n, own = len(losses), np.diag(losses)
    half = float(stats.t.ppf(0.975, n - 1) * own.std(ddof=1) / np.sqrt(n))
    shuffled = losses[np.arange(n), _shuffles(n)].mean(1)
    value = float(own.mean())
    return Figure(value, value - half, value + half, float(losses.mean()), float(np.quantile(shuffled, LUCK)), n)


def absolute_error(estimates: Estimates, truths: Truths) -> Figure:
    """Mean of |estimate - truth|."""
    x, y = _both(estimates, truths)
    return _paired(np.abs(x[:, None] - y))


def interval_score(estimates: Estimates, truths: Truths, level: float = 0.9) -> Figure:
    """Width, plus 2 / (1 - level) times how far outside the truth lies (Gneiting & Raftery, 2007)."""
    (low, high), y = intervals(estimates, level).T[:, :, None], np.asarray(truths, np.float64)
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return _paired(high - low + 2 / (1 - level) * outside)


def crps(estimates: Sequence[ValueEstimate] | np.ndarray, truths: Truths) -> Figure:
    """Continuous ranked probability score, E|X - y| - E|X - X'| / 2, of each predictive distribution of the value.

    Of a ValueEstimate that is Student's about its median; of draws [n, K] their own.
    """
    if len(estimates) and isinstance(estimates[0], ValueEstimate):
        estimates = np.stack([_quantiles(e) for e in estimates])  # type: ignore[arg-type]
    x, y = np.asarray(estimates, np.float64), np.asarray(truths, np.float64)
    apart = np.abs(x[:, :, None] - x[:, None]).mean((1, 2))
    return _paired(np.abs(x[:, None] - y[:, None]).mean(2) - 0.5 * apart[:, None])


def _quantiles(estimate: ValueEstimate) -> np.ndarray:
    at = (np.arange(POINTS) + 0.5) / POINTS
    off = np.asarray(stats.t.ppf(at, estimate.freedom)) * estimate.deviation
    return np.clip(estimate.median + off, *estimate.bounds)


def coverage(estimates: Estimates, truths: Truths, level: float = 0.9) -> Figure:
    """Share of truths inside their interval, with Clopper and Pearson's interval; hold it against `level`."""
    (low, high), y = intervals(estimates, level).T[:, :, None], np.asarray(truths, np.float64)
    inside = ((low <= y) & (y <= high)).astype(np.float64)
    plain = _paired(inside)
    shuffled = inside[np.arange(len(y)), _shuffles(len(y))].mean(1)
    edges = binomial(round(float(np.diag(inside).sum())), len(y))
    return plain._replace(low=edges[0], high=edges[1], luck=float(np.quantile(shuffled, 1 - LUCK)))


def binomial(count: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share."""
    if of == 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    low = 0.0 if count == 0 else float(stats.beta.ppf(tail, count, of - count + 1))
    high = 1.0 if count == of else float(stats.beta.ppf(1 - tail, count + 1, of - count))
    return low, high


# ---- order


def _correlation(x: np.ndarray, y: np.ndarray, spread: float) -> Figure:
    """Pearson's r; a constant says nothing, so its r counts as 0. `spread`: of atanh(r), times root n - 3."""
    n = len(x)
    unit = lambda a: (a - a.mean()) / max(float(np.linalg.norm(a - a.mean())), 1e-300)
    flat = np.ptp(x) == 0 or np.ptp(y) == 0
    if flat:
        return Figure(0.0, -1.0, 1.0, 0.0, 0.0, n, 1.0)
    u, v = unit(x), unit(y)
    r = float(np.clip(u @ v, -1, 1))
    luck = float(np.quantile(u[_shuffles(n)] @ v, 1 - LUCK))
    low, high = -1.0, 1.0
    if n > 3:
        middle = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
        low, high = (float(np.tanh(middle + side * spread / np.sqrt(n - 3))) for side in (-1.96, 1.96))
    t = abs(r) * np.sqrt((n - 2) / max(1 - r * r, 1e-300))
    p = float(2 * stats.t.sf(t, n - 2)) if n > 2 else 1.0
    return Figure(r, low, high, 0.0, luck, n, p)


def pearson(estimates: Estimates, truths: Truths) -> Figure:
    """Pearson's correlation, with Fisher's interval."""
    return _correlation(*_both(estimates, truths), 1.0)


def spearman(estimates: Estimates, truths: Truths) -> Figure:
    """Spearman's rank correlation, ties sharing their mean rank; interval after Bonett & Wright (2000)."""
    x, y = (stats.rankdata(a) for a in _both(estimates, truths))
    r = _correlation(x, y, 1.0).value
    return _correlation(x, y, float(np.sqrt(1 + r * r / 2)))


def kendall(estimates: Estimates, truths: Truths) -> Figure:
    """Kendall's tau-b; interval after Fieller et al. (1957)."""
    x, y = _both(estimates, truths)
    n = len(x)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return Figure(0.0, -1.0, 1.0, 0.0, 0.0, n, 1.0)
    signs = lambda a: np.sign(a[..., :, None] - a[..., None, :])
    u, v = signs(x), signs(y)
    size = float(np.sqrt(np.sum(u * u) * np.sum(v * v)))
    tau = float(np.sum(u * v) / size)
    shuffled = [np.sum(u[np.ix_(order, order)] * v) / size for order in _shuffles(n)]
    low, high = -1.0, 1.0
    if n > 4:
        middle, half = np.arctanh(np.clip(tau, -1 + 1e-12, 1 - 1e-12)), 1.96 * np.sqrt(0.437 / (n - 4))
        low, high = float(np.tanh(middle - half)), float(np.tanh(middle + half))
    p = float(stats.kendalltau(x, y)[1])  # type: ignore[arg-type]
    return Figure(tau, low, high, 0.0, float(np.quantile(shuffled, 1 - LUCK)), n, p)


# ---- choice


def regret(estimates: Estimates, truths: Truths, k: int = 1, scaled: bool = True) -> Figure:
    """Best truth, less the best among the k highest estimates; over the pool's range if `scaled`.

    Ties are broken at random, and the figure is the mean over all ways to break them. `low` and `high` are the
    least and the most that it can be over them.
    """
    x, y = _both(estimates, truths)
    n = len(x)
    if not 1 <= k <= n:
        raise BadInput(f"regret@{k}: the pool has {n} policies")
    size = float(np.ptp(y)) if scaled and np.ptp(y) > 0 else 1.0
    edge = np.sort(x)[n - k]
    sure, tied = y[x > edge], np.sort(y[x == edge])
    floor = sure.max() if len(sure) else -np.inf
    places = k - len(sure)
    best = lambda value: (y.max() - max(float(value), floor)) / size
    value = float(_chances(len(tied), places) @ [best(v) for v in tied])
    ordered = np.sort(y)
    each, losses = _chances(n, k), (y.max() - ordered) / size
    luck = float(losses[np.flatnonzero(np.cumsum(each[::-1])[::-1] >= LUCK).max()])
    return Figure(value, best(tied[-1]), best(tied[places - 1]), float(each @ losses), luck, n)


def _chances(n: int, k: int) -> np.ndarray:
    """Chance that the highest of k drawn from n without replacement is the one of rank j, lowest first [n]."""
    ranks = np.arange(1, n + 1)
    log = lambda a, b: special.gammaln(a + 1) - special.gammaln(b + 1) - special.gammaln(a - b + 1)
    return np.where(ranks >= k, np.exp(log(np.maximum(ranks - 1, k - 1), k - 1) - log(n, k)), 0.0)


def gate(
    estimates: Sequence[ValueEstimate] | Sequence[bool],
    truths: Truths,
    threshold: float,
    risk: float = 0.1,
) -> Gate:
    """Errors of deploying where a value above `threshold` has a probability of 1 - risk; or of given decisions.

    Chance is a gate that lets through as many, blindly.
    """
    let = [e.above(threshold) >= 1 - risk if isinstance(e, ValueEstimate) else e for e in estimates]
    let, good = np.asarray(let, bool), np.asarray(truths, np.float64) >= threshold
    if let.shape != good.shape or let.ndim != 1:
        raise BadInput(f"{let.shape} decisions for {good.shape} truths: give one of each for every policy")

    def share(wrong: np.ndarray, among: np.ndarray) -> Figure:
        count, of = int(np.sum(wrong & among)), int(among.sum())
        value = count / of if of else float("nan")
        luck = float(stats.hypergeom.ppf(LUCK, len(let), int(wrong.sum()), of)) / of if of else float("nan")
        return Figure(value, *binomial(count, of), float(wrong.mean()), luck, of)

    return Gate(share(~good, let), share(good, ~let), int(let.sum()), int((~let).sum()))


def table(estimates: Estimates, truths: Truths) -> dict[str, Figure]:
    """The figures that need no interval, by name."""
    figures = {
        "absolute_error": absolute_error,
        "pearson": pearson,
        "spearman": spearman,
        "kendall": kendall,
        "regret@1": regret,
    }
    return {name: figure(estimates, truths) for name, figure in figures.items()}
