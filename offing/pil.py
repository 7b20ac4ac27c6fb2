"""Room 3: a posterior and held-out rows in, its posterior information loss out (the paper's Proposition 1).

    PIL = E + V,    E = sum_d E[(mean_m mu_m - mu*)^2] / (2 sigma_d^2),    V = sum_d E[Var_m mu_m] / (2 sigma_d^2)

E is the squared error of the posterior mean against the true mean function, V the spread of the worlds about
their mean, sigma^2 the variance of chance. Logs show single noisy outcomes y, not mu*, so the plain squared
error holds noise as well. What of the residual another regressor can still predict, out of its own fold, is
error for certain (`explained`); what it cannot predict is chance or error too fine to see, and the posterior's
noise scale says in which shares. Everything is in units of the target's variance, output by output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from .types import Array, Dataset, Posterior

FLOOR = 0.01  # least standard deviation of chance, relative to the target's: finer than this PIL does not look
RIDGE = 3.0  # of the second regressor, on standardised features
THRESHOLD = 0.25  # the paper's, on |E - V| / (E + V)
MOST = 4_096  # rows that are asked about
FEWEST = 10  # episodes that a fold has not seen: on fewer, that E and V agree may be luck


class Bound(NamedTuple):
    """Theorem 1's bound on the regret and its Pinsker form, as shares of the largest regret there can be."""

    theorem: float
    pinsker: float
    value: float  # the smaller
    vacuous: bool  # 1 or more: it says nothing


class PIL(NamedTuple):
    """Posterior information loss per output; sums and conventions are properties."""

    error: Array  # [D]  squared error of the posterior mean, cleared of noise
    spread: Array  # [D]  variance of the worlds about their mean
    noise: Array  # [D]  variance of chance, FLOOR^2 or more
    plain: Array  # [D]  squared error of the posterior mean against single outcomes
    explained: Array  # [D]  what of it a second regressor predicts: a lower bound of the true error
    learned: Array  # [D]  variance that the worlds themselves predict
    members: int  # worlds per fold
    apart: Array | float = 0.0  # [D]  variance between the folds' posterior means
    units: int = FEWEST  # episodes that a fold has not seen, or rows where the log has none

    @property
    def e(self) -> float:
        return float(np.sum(self.error / (2 * self.noise)))

    @property
    def v(self) -> float:
        return float(np.sum(self.spread / (2 * self.noise)))

    @property
    def total(self) -> float:
        """Proposition 1: nats a step lost to not knowing the world."""
        return self.e + self.v

    @property
    def imbalance(self) -> float:
        """(E - V) / (E + V): above 0 over-confident, below 0 over-dispersed."""
        return (self.e - self.v) / max(self.total, 1e-30)

    @property
    def common(self) -> float:
        """Error that worlds of all folds share, relative to error that each fold has alone.

        Worlds of another fold can see through the latter and not the former: what a plan gains in its own
        worlds over held-out ones is its use of the one, and this times as much may be its use of the other.
        """
        alone = float(np.sum(np.broadcast_to(self.apart, np.shape(self.noise)) / (2 * self.noise)))
        return max(self.e / alone - 1.0, 0.0) if alone > 0 else 0.0

    @property
    def balanced(self) -> bool:
        """E and V agree on the rows at hand."""
        return abs(self.imbalance) <= THRESHOLD

    @property
    def calibrated(self) -> bool:
        """They agree, and there are episodes enough to say so."""
        return self.balanced and self.units >= FEWEST

    @property
    def word(self) -> str:
        if self.balanced:
            return "calibrated" if self.calibrated else "unproven"
        return "over-confident" if self.imbalance > 0 else "over-dispersed"

    @property
    def released(self) -> dict[str, float]:
        """The released code's convention: members' own errors over target variance, learned variance in V."""
        e = float(np.sum(self.plain + (self.members - 1) / self.members * self.spread)) / 2
        v = float(np.sum(self.spread + self.learned)) / 2
        return {"error": e, "spread": v, "total": e + v}

    def bound(self, discount: float) -> Bound:
        return regret_bound(self.total, discount)


def regret_bound(information: float, discount: float) -> Bound:
    """Theorem 1, 2 sqrt(1 - exp(-I / (1 - discount))), and by Pinsker 2 sqrt(I / (2 (1 - discount)))."""
    over = information / max(1 - discount, 1e-12)
    theorem = 2 * float(np.sqrt(-np.expm1(-over)))
    pinsker = 2 * float(np.sqrt(over / 2))
    value = min(theorem, pinsker)
    return Bound(theorem, pinsker, value, value >= 1)


class Evidence(NamedTuple):
    """What held-out rows say of a posterior, per output and in units of the target's variance."""

    plain: np.ndarray  # [D]
    explained: np.ndarray  # [D]
    spread: np.ndarray  # [D]
    learned: np.ndarray  # [D]
    members: int
    share: float  # the posterior's own noise scale
    apart: np.ndarray | float = 0.0  # [D]  variance between the folds' means
    units: int = FEWEST  # episodes that a fold has not seen, or rows where the log has none

    @property
    def unexplained(self) -> np.ndarray:
        return np.maximum(self.plain - self.explained, 0.0)


def evenly(data: Dataset, most: int = MOST) -> np.ndarray:
    """At most that many rows, evenly taken."""
    return np.unique(np.linspace(0, data.rows - 1, min(most, data.rows)).astype(int))


@jax.jit
def say(posterior: Posterior, obs: Array, action: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of every world's prediction [M, N, D]."""
    predicted = jax.vmap(posterior.predict, in_axes=(0, None, None))(posterior.theta, obs, action)
    return predicted.mean, predicted.std


def evidence(posterior: Posterior, held: Dataset, unseen: Sequence[Dataset] | None = None) -> Evidence:
    """The posterior against rows that it has not seen, averaged over its folds.

    `held` are rows that no fold has seen. `unseen` are, for each fold, all that it has not: also what other folds
    learned from. Few held-out episodes go far, and whether there are any would decide what is found.
    """
    sets = [held] * posterior.folds if unseen is None else list(unseen)
    count = min(MOST, *(each.rows for each in sets))
    asked = [_asked(posterior.fold(fold), each, count) for fold, each in enumerate(sets)]
    y = np.stack([fold.y for fold in asked])  # [F, N, D]
    scale = _widths(y.reshape(-1, y.shape[-1]))
    mean = np.stack([fold.mean for fold in asked]) / scale  # [F, members, N, D]
    residual = y / scale - mean.mean(1)  # [F, N, D]
    members, none = mean.shape[1], np.zeros(y.shape[-1])
    between = none
    if posterior.folds > 1:
        folds = [posterior.fold(fold) for fold in range(posterior.folds)]
        same = asked if unseen is None else [_asked(fold, held, MOST) for fold in folds]
        between = np.var([fold.mean.mean(0) / scale for fold in same], 0, ddof=1).mean(0)
    return Evidence(
        plain=np.mean(residual**2, (0, 1)),
        explained=np.mean([explained(fold.x, r) for fold, r in zip(asked, residual, strict=True)], 0),
        spread=mean.var(1, ddof=1).mean((0, 1)) if members > 1 else none,
        learned=np.mean([np.square(fold.std / scale).mean((0, 1)) for fold in asked], 0),
        members=members,
        share=float(posterior.noise_scale),
        apart=between,
        units=min(_units(each) for each in sets),
    )


class Asked(NamedTuple):
    """Some rows, and what the worlds of a fold say of them."""

    x: np.ndarray  # [N, S + A]  standardised
    y: np.ndarray  # [N, D]
    mean: np.ndarray  # [members, N, D]
    std: np.ndarray


def _asked(fold: Posterior, data: Dataset, count: int) -> Asked:
    rows = evenly(data, count)
    steps = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64)[rows], data.steps)
    y = np.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1)
    x = np.concatenate([steps.obs, steps.action], -1)
    said = say(fold, data.steps.obs[rows], data.steps.action[rows])
    return Asked((x - x.mean(0)) / _widths(x), y, *(np.asarray(a, np.float64) for a in said))


def _units(data: Dataset) -> int:
    """Episodes, or rows where there are none."""
    episode = np.asarray(data.episode)[: data.rows]
    return len(np.unique(episode)) if episode[0] >= 0 else data.rows


def _widths(a: np.ndarray) -> np.ndarray:
    std = a.std(0)
    return np.where(std > 1e-6 * (1 + np.abs(a.mean(0))), std, 1.0)


def explained(inputs: np.ndarray, residual: np.ndarray, parts: int = 5, seed: int = 0) -> np.ndarray:
    """Share of the residuals [N, D] that their inputs predict out of fold, per output: 2 E[r g] - E[g^2], or 0.

    g is ridge regression on linear, square and random cosine features. In expectation this is the squared
    bias less g's own error, and free of noise, since noise is uncorrelated with a g fitted without it.
    """
    rng = np.random.default_rng(seed)
    rows, width = inputs.shape
    waves = rng.normal(size=(width, 64)) / np.sqrt(width)
    features = np.concatenate(
        [
            np.ones((rows, 1)),
            inputs,
            np.square(inputs),
            np.cos(inputs @ waves + rng.uniform(0, 2 * np.pi, 64)),
        ],
        1,
    )
    part = rng.permutation(rows) % parts
    guess = np.zeros_like(residual)
    for p in range(parts):
        own, other = part == p, part != p
        a = features[other]
        gram = a.T @ a + np.diag(np.r_[1e-6, np.full(features.shape[1] - 1, RIDGE)])
        guess[own] = features[own] @ np.linalg.solve(gram, a.T @ residual[other])
    return np.maximum(np.mean(2 * residual * guess - guess**2, 0), 0.0)


def chance(found: Evidence) -> np.ndarray:
    """Variance of chance per output [D]: the unexplained part of the residual, by the noise scale's share."""
    return found.share * found.unexplained


def judge(found: Evidence, noise: Array | None = None, share: float | None = None) -> PIL:
    """The information loss that the evidence comes to.

    `noise` is the variance of chance per output and `share` the part of the unexplained residual that is
    chance; both default to what the posterior says itself. Settings that are compared must share them, or
    a poor model that calls its errors noise would look good.
    """
    share = found.share if share is None else share
    noise = chance(found) if noise is None else np.asarray(noise, np.float64)
    return PIL(
        error=found.plain - share * found.unexplained,
        spread=found.spread,
        noise=np.maximum(noise, FLOOR**2),
        plain=found.plain,
        explained=found.explained,
        learned=found.learned,
        members=found.members,
        apart=found.apart,
        units=found.units,
    )


def pil(posterior: Posterior, held: Dataset, noise: Array | None = None, share: float | None = None) -> PIL:
    """The posterior's information loss on held-out rows; `noise` and `share` as `judge` has them."""
    return judge(evidence(posterior, held), noise, share)
