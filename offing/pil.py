"""A posterior and held-out rows in, its posterior information loss out (the paper's Proposition 1).

    PIL = E + V,    E = sum_d E[(mean_m mu_m - mu*)^2] / (2 sigma_d^2),    V = sum_d E[Var_m mu_m] / (2 sigma_d^2)

E is the squared error of the posterior mean against the true mean function, V the spread of the worlds about
their mean, sigma^2 the variance of chance. Logs show single noisy outcomes y, not mu*, so that the plain squared
error holds chance as well. Two folds that learned from other episodes tell them apart, output by output. With
residuals r1, r2 of their means on rows that neither saw, and g1, g2 what a strong second regressor (`trees`)
makes of each on other rows,

    A = E[(r1 - r2)^2] / 2                      what other episodes would have changed: the variance of the mean
    B = E[r1 g2] + E[r2 g1] - E[g1 g2]          what both folds get wrong alike, as far as it can be seen: bias
    E = A + B,    chance = E[r1 r2] - B

Noise of a held-out row is in r1 r2 and in neither A nor B, so no share of it has to be guessed. Everything is in
units of the target's variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from .compiling import compiled
from .posterior.walk import moments_of
from .trees import predict
from .types import Array, Dataset, Memory, Posterior, Transition

FLOOR = 0.01  # least standard deviation of chance, relative to the target's: finer than this PIL does not look
THRESHOLD = 0.25  # the paper's, on |E - V| / (E + V)
MOST = 4_096  # rows that are asked about, and that a second regressor learns from
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
    bias: Array  # [D]  B, what all folds get wrong alike
    learned: Array  # [D]  variance that the worlds themselves predict
    members: int  # worlds per fold
    between_fold_variance: Array | float = 0.0  # [D]  A
    units: int = FEWEST  # episodes that a fold has not seen, or rows where the log has none

    @property
    def e(self) -> float:
        return float(np.sum(self.error / (2 * self.noise)))

    @property
    def v(self) -> float:
        return float(np.sum(self.spread / (2 * self.noise)))

    @property
    def total(self) -> float:
        """Proposition 1: nats per step lost to not knowing the world."""
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
        alone = float(np.sum(np.broadcast_to(self.between_fold_variance, np.shape(self.noise)) / (2 * self.noise)))
        return max(float(np.sum(self.bias / (2 * self.noise))) / alone, 0.0) if alone > 0 else 0.0

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

    plain: np.ndarray  # [D]  squared residual
    between: np.ndarray  # [D]  A
    bias: np.ndarray  # [D]  B, where it was asked for
    spread: np.ndarray  # [D]
    learned: np.ndarray  # [D]
    members: int
    units: int = FEWEST  # held-out episodes, or rows where the log has none

    @property
    def chance(self) -> np.ndarray:
        """E[r1 r2] - B [D], and never below nought."""
        return np.maximum(self.plain - self.between - self.bias, 0.0)


def evenly(data: Dataset, most: int = MOST) -> np.ndarray:
    """At most that many rows, evenly taken."""
    return np.unique(np.linspace(0, data.rows - 1, min(most, data.rows)).astype(int))


@compiled
def expect(posterior: Posterior, memory: Memory, rows: Transition) -> tuple[Array, Array]:
    """Mean and standard deviation of every world's prediction of logged steps [M, N, D]."""
    ask = lambda theta: moments_of(posterior)(theta, memory, rows.obs, rows.action, rows.next_obs, rows.done)
    expected = jax.vmap(ask)(posterior.theta)
    return expected.mean, expected.std


class Rows(NamedTuple):
    """Some logged steps, and what the worlds of a fold expect of them."""

    x: np.ndarray  # [N, S + A]
    led: np.ndarray  # [N, S + 1]  where they led: the change, and whether it ended
    y: np.ndarray  # [N, D]
    mean: np.ndarray  # [members, N, D]
    std: np.ndarray


def evidence(posterior: Posterior, held: Dataset, others: Sequence[Dataset] | None = None) -> Evidence:
    """The posterior against rows that none of its folds has seen.

    `others` are, for each fold, rows that other folds learned from: given, the bias that all folds share is looked
    for as well. A posterior of one fold is asked alone, and what cannot be found in its residual is called chance.
    Worlds that read columns in coordinates of their own are asked in those: information does not depend on them.
    """
    if posterior.natural is not None:
        ask = posterior.natural
        others = None if others is None else [ask(posterior, rows)[1] for rows in others]
        posterior, held = ask(posterior, held)
    folds = [_rows(posterior.fold(f), held) for f in range(posterior.folds)]
    y, members, outputs = folds[0].y, folds[0].mean.shape[0], folds[0].y.shape[-1]
    scale = _widths(y)
    residual = np.stack([(y - fold.mean.mean(0)) / scale for fold in folds])  # [F, N, D]
    between, bias = np.zeros(outputs), np.zeros(outputs)
    if posterior.folds > 1:
        between = residual.var(0, ddof=1).mean(0)
        if others is not None:
            bias = _shared(posterior, folds, residual, others, scale)
    else:
        rows = folds[0]
        for inputs, columns in _inputs(rows, posterior.derived):
            bias[columns] = explained(inputs, residual[0][:, columns])
    return Evidence(
        plain=np.mean(residual**2, (0, 1)),
        between=between,
        bias=bias,
        spread=np.mean([(f.mean / scale).var(0, ddof=1).mean(0) for f in folds], 0) if members > 1 else 0 * scale,
        learned=np.mean([np.square(f.std / scale).mean((0, 1)) for f in folds], 0),
        members=members,
        units=_units(held),
    )


def _rows(fold: Posterior, data: Dataset, most: int = MOST) -> Rows:
    rows = evenly(data, most)
    same = np.resize(rows, most)  # the same number for every log, so that programs are shared
    at = lambda leaf: np.asarray(leaf)[same]
    moments = expect(fold, jax.tree.map(at, fold.along(data)), jax.tree.map(at, data.steps))
    mean, std = (np.asarray(a, np.float64)[:, : len(rows)] for a in moments)
    steps = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64)[rows], data.steps)
    change = steps.next_obs - steps.obs
    y = np.concatenate([change, steps.reward[:, None]], -1)
    led = np.concatenate([change, steps.done[:, None]], -1)
    return Rows(np.concatenate([steps.obs, steps.action], -1), led, y, mean, std)


def _shared(
    posterior: Posterior, folds: Sequence[Rows], residual: np.ndarray, others: Sequence[Dataset], scale: np.ndarray
) -> np.ndarray:
    """B [D]: what residuals of two folds have in common that a second regressor finds, and never below nought.

    Each fold's regressor learns from rows that the fold has not seen, and is held against the other fold's
    residual: what it says of its own fold's error alone, and of noise, is on average nought there.
    """
    guess = []
    for f, (fold, rows) in enumerate(zip(folds, others, strict=True)):
        seen = _rows(posterior.fold(f), rows)
        off, learned = (seen.y - seen.mean.mean(0)) / scale, np.zeros_like(fold.y)
        both = zip(_inputs(seen, posterior.derived), _inputs(fold, posterior.derived), strict=True)
        for (known, columns), (inputs, _) in both:
            learned[:, columns] = predict(known, off[:, columns], inputs)
        guess.append(learned)
    pairs = [(f, g) for f in range(len(folds)) for g in range(f)]
    each = [np.mean(residual[f] * guess[g] + residual[g] * guess[f] - guess[f] * guess[g], 0) for f, g in pairs]
    return np.clip(np.mean(each, 0), 0.0, np.mean(residual**2, (0, 1)))


def _inputs(rows: Rows, derived: tuple[int, ...]) -> list[tuple[np.ndarray, list[int]]]:
    """What may explain an error, and of which outputs: of a change not where the step led, which would say all of
    its noise, but for columns that follow from others where those were led; of the reward everything.
    """
    width = rows.led.shape[1] - 1
    leads = [c for c in range(width) if c not in derived]
    follow = np.concatenate([rows.x, rows.led[:, leads]], 1)
    every = [(rows.x, leads), (follow, list(derived)), (np.concatenate([rows.x, rows.led], 1), [width])]
    return [(inputs, columns) for inputs, columns in every if columns]


def _units(data: Dataset) -> int:
    """Episodes, or rows where there are none."""
    episode = np.asarray(data.episode)[: data.rows]
    return len(np.unique(episode)) if episode[0] >= 0 else data.rows


def _widths(a: np.ndarray) -> np.ndarray:
    std = a.std(0)
    return np.where(std > 1e-6 * (1 + np.abs(a.mean(0))), std, 1.0)


def explained(inputs: np.ndarray, residual: np.ndarray, parts: int = 3, seed: int = 0) -> np.ndarray:
    """What of the squared residuals [N, D] their inputs predict out of fold, per output: 2 E[r g] - E[g^2], or 0.

    In expectation this is the squared bias less g's own error, and free of noise, since noise is uncorrelated with
    a g fitted without it.
    """
    part = np.random.default_rng(seed).permutation(len(inputs)) % parts
    guess = np.zeros_like(residual)
    for p in range(parts):
        guess[part == p] = predict(inputs[part != p], residual[part != p], inputs[part == p], seed)
    return np.maximum(np.mean(2 * residual * guess - guess**2, 0), 0.0)


def judge(evidence: Evidence, chance: np.ndarray | None = None) -> PIL:
    """The information loss that the evidence comes to.

    `chance` is the variance of chance per output, by default what the evidence itself says. Settings that are
    compared must share it, or a poor model that calls its errors chance would look good.
    """
    chance = evidence.chance if chance is None else np.asarray(chance, np.float64)
    return PIL(
        error=np.maximum(evidence.plain - chance, 0.0),
        spread=evidence.spread,
        noise=np.maximum(chance, FLOOR**2),
        plain=evidence.plain,
        bias=evidence.bias,
        learned=evidence.learned,
        members=evidence.members,
        between_fold_variance=evidence.between,
        units=evidence.units,
    )


def pil(posterior: Posterior, held: Dataset, chance: np.ndarray | None = None) -> PIL:
    """The posterior's information loss on held-out rows; `chance` as `judge` has it."""
    return judge(evidence(posterior, held), chance)
