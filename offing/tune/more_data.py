"""How much more data? The chosen setting, fitted to parts of the log: PIL and interval width against rows.

Parts are nested and made of whole episodes; held-out and validation rows stay what they are. Fits are runs of
the program that the setting was chosen by, since the number of rows is a traced number. Widths are those of the
undiscounted return, as they are before they are held to what the log's rewards can add up to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np
from scipy import stats

from ..data import Log, Split, take
from ..data.dataset import runs
from ..pil import PIL, evidence, judge
from ..types import Dataset, Key, Policy, Posterior
from ..value.estimate import ValueEstimate
from ..value.law import Law, Needed, fit, needed
from ..value.left_out import LeftOut, attempt
from ..value.many import rolled_all
from ..value.predictive import Rollouts, estimates, known_of
from .candidates import pad_starts
from .choose import Fitter, PosteriorChoice, abreast, calibrated
from .plans import EVALUATION, EvaluationPlan
from .run import ALONE, Run

SHARES = (0.25, 0.5)  # of the rows, beside all of them; with fewer, nets fail in ways that follow no law
REPLICATES = 200
COPIES = 64


class Width(NamedTuple):
    """Half-widths of one policy's interval against rows, and what another one would take."""

    rows: np.ndarray  # [K]
    halves: np.ndarray  # [K]
    law: Law  # of their squares
    now: float
    target: float
    needed: Needed  # rows of a log, all in all


class MoreData(NamedTuple):
    """PIL and widths against rows."""

    rows: np.ndarray  # [K]  of a log whose worlds would learn from as many rows as these did
    pil: tuple[PIL, ...]
    law: Law  # of PIL
    widths: dict[str, Width | LeftOut]

    @property
    def slope(self) -> float:
        """Of the logarithm of PIL against that of rows: -1 by the law."""
        return float(np.polyfit(np.log(self.rows), np.log([loss.total for loss in self.pil]), 1)[0])


def more_data(
    key: Key,
    log: Log,
    choice: PosteriorChoice,
    policies: Mapping[str, Policy],
    now: Mapping[str, ValueEstimate],
    plan: EvaluationPlan = EVALUATION,
    seed: int = 0,
    run: Run = ALONE,
) -> MoreData:
    """Rows that an interval of `plan.within` either way would take, by extrapolation.

    `now` is what each policy is worth by all rows.
    """
    data, (k1, k2) = log.data, jax.random.split(key)
    parts = choice.split
    held, shares = take(data, parts.held), np.array([*SHARES, 1.0])
    worlds = [*_fewer(k1, log, choice, parts, seed, run), choice.picked]
    losses = [judge(evidence(world, held), choice.chance) for world in worlds]
    whole = choice.whole.sizes.mean()  # what worlds learn from once nothing is held out
    rows = data.rows * shares * parts.sizes.mean() / whole
    refitted = bool(rows[-1] < data.rows)
    at = np.r_[rows, data.rows] if refitted else rows
    halves: dict[str, list[ValueEstimate]] = {name: [] for name in policies}
    for i, (world, loss) in enumerate(zip(worlds, losses, strict=True)):
        rolled = rolled_all(
            jax.random.fold_in(k2, i), [*policies.values()], pad_starts(world), COPIES, plan.sampled
        )
        for name, journey in zip(policies, rolled, strict=True):
            halves[name].append(_by_fewer(journey.rollouts, world, log, loss, shares[i]))
        run.tell("widths", i + 1, len(worlds))
    plain = lambda name, e: now[name]._replace(errors=(), widen=e[-1].widen)  # as estimates by fewer rows are
    widths = {
        name: attempt(lambda n=name, e=each: _width([*e, plain(n, e)] if refitted else e, at, now[n], plan))
        for name, each in halves.items()
    }
    return MoreData(rows, tuple(losses), fit(rows, np.array([loss.total for loss in losses])), widths)


def _fewer(
    key: Key,
    log: Log,
    choice: PosteriorChoice,
    parts: Split,
    seed: int,
    run: Run,
) -> list[Posterior]:
    """The worlds that each of SHARES of the rows would have given."""
    data, setting, model = log.data, choice.points[choice.index], choice.model
    fitter = Fitter(key, data, model, choice.prepared, None, abreast(model, [setting]))
    thin = [thinned(data, parts, share, seed) for share in SHARES]
    both = list(zip(SHARES, thin, strict=True))
    fitted = [fitter("rows", part, [setting], run.part(f"{share}"))[0] for share, part in both]
    bare = [model.posterior(each, setting, choice.prepared, data, log.task) for each in fitted]
    return [calibrated(choice, world, data, choice.split, part) for world, part in zip(bare, thin, strict=True)]


def thinned(data: Dataset, parts: Split, share: float, seed: int) -> Split:
    """The split with a share of the rows that each fold learns from: whole episodes at random, the last cut."""
    rng = np.random.default_rng([seed, 4])
    episode = np.asarray(data.episode)
    train, sizes = np.zeros_like(parts.train), np.zeros_like(parts.sizes)
    for fold, size in enumerate(parts.sizes):
        rows = parts.train[fold, :size]
        units = runs(episode[rows]) if episode[0] >= 0 else [np.array([i]) for i in range(size)]
        mixed = np.concatenate([units[i] for i in rng.permutation(len(units))])
        sizes[fold] = max(2, round(share * size))
        train[fold, : sizes[fold]] = np.sort(rows[mixed[: sizes[fold]]])
    return parts._replace(train=train, sizes=sizes, held=np.zeros(0))


def _by_fewer(rollouts: Rollouts, worlds: Posterior, log: Log, loss: PIL, share: float) -> ValueEstimate:
    """The return by fewer rows, which would also have shown fewer starts."""
    returns = estimates(rollouts, None, worlds, known_of(log.data, log.task, loss))[1]
    return returns._replace(starts=returns.starts / share)


def half_width(estimate: ValueEstimate, level: float) -> float:
    """Half of the interval's width, not held to any bounds."""
    known = float(stats.t.ppf(0.5 + level / 2, estimate.freedom)) * estimate.deviation
    return known + (estimate.more - estimate.less) / 2


def _width(estimates: list[ValueEstimate], rows: np.ndarray, now: ValueEstimate, plan: EvaluationPlan) -> Width:
    """The law of squared half-widths; what they might as well have been is asked of worlds drawn again."""
    rng = np.random.default_rng(0)
    half = lambda estimate: half_width(estimate, plan.level)
    again = lambda e: e._replace(returns=np.asarray(e.returns)[rng.integers(0, e.members, e.members)])
    halves = np.array([half(estimate) for estimate in estimates])
    drawn = np.array([[half(again(estimate)) for estimate in estimates] for _ in range(REPLICATES)])
    target = half(now) / 2 if plan.within is None else plan.within
    rows_needed = needed(rows, halves**2, drawn**2, (target / max(half(now), 1e-30)) ** 2)
    return Width(rows, halves, fit(rows, halves**2), half(now), target, rows_needed)
