"""The first decision: a posterior by PIL. The second, a policy by value, is in `candidates`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import jax
import numpy as np

from ..data import Log, Split, split, take
from ..hypers import groups
from ..pil import PIL, chance, evidence, judge
from ..posterior import ensemble
from ..posterior._known import walled
from ..posterior.replay import Replay
from ..types import BadInput, Dataset, Key, Posterior
from ._held import certain, unseen, with_scale
from .run import ALONE, Run
from .sweep import sweep

PLENTY = 50_000  # rows of which a fifth more is no longer worth the time
NEAR = 0.5  # nats a quantity: a setting that foretells worse than the best by more is no candidate


class PosteriorChoice(NamedTuple):
    """A posterior chosen by PIL, with all that the choice was based on."""

    index: int
    points: tuple[ensemble.Hypers, ...]
    scores: tuple[PIL, ...]  # on the same held-out rows, with the same noise
    nll: tuple[float, ...]  # mean held-out negative log-likelihood of the members: PIL up to a constant
    picked: Posterior
    replay: Replay | None  # of the picked one; None if the log has no runs of steps
    reference: int  # the setting nearest the log, which the noise was asked of
    notes: tuple[str, ...]
    split: Split  # which rows it learned from and which were held out
    whole: Split  # which rows the worlds that `refit` gives learned from, fold by fold
    share: float = 1.0  # of the unexplained residual that is chance, as the reference says

    @property
    def pil(self) -> PIL:
        return self.scores[self.index]


def choose_posterior(
    key: Key,
    log: Log,
    settings: Sequence[ensemble.Hypers],
    seed: int = 0,
    run: Run = ALONE,
) -> PosteriorChoice:
    """phi_I, phi_II = argmin PIL subject to E ~ V (Algorithms 1 and 2, first line), on held-out episodes,
    among settings that foretell about as well as the best does.

    Learning rates come first (`rated`). The variance of chance is asked once, of the setting that predicts
    held-out rows best, and shared: it is the log's, not the model's. If none of them is calibrated, the likeliest
    is taken and the notes say so.
    """
    if len({setting.folds for setting in settings}) != 1:
        raise BadInput("settings with different numbers of folds cannot be compared: they hold out different rows")
    data, task = log.data, log.task
    parts, notes = split(data, seed, settings[0].folds)
    whole = parts if data.rows > PLENTY else split(data, seed, settings[0].folds, held=0.0)[0]
    held, strange = take(data, parts.held), unseen(data, parts)
    settings, done = rated(key, data, parts, settings, run)
    rest = [i for i in range(len(settings)) if i not in done]
    more = _fit("fit", key, data, parts, [settings[i] for i in rest], run) if rest else []
    fitted = [each for _, each in sorted({**done, **dict(zip(rest, more, strict=True))}.items())]
    worlds = [ensemble.posterior(f, h, data, task) for f, h in zip(fitted, settings, strict=True)]

    found = []
    for i, world in enumerate(worlds):
        found.append(evidence(world, held, strange))
        run.tell("score", i + 1, len(worlds))
    reference = int(np.argmin(np.nan_to_num([np.sum(f.plain) for f in found], nan=np.inf)))
    share = float(with_scale(worlds[reference], key, held)[0].noise_scale)
    noise = chance(found[reference]._replace(share=share))
    scores = tuple(judge(f, noise, share) for f in found)
    nll = tuple(float(np.mean(f.nll)) for f in fitted)
    index = best([s.total for s in scores], [s.balanced for s in scores], nll, NEAR * len(noise))
    picked, curve = with_scale(worlds[index], key, held)
    picked = certain(picked, held)
    if curve is None:
        notes.append("no runs of steps to replay, so all of the learned variance counts as chance")
    if not picked.terminates:
        notes.append("no episode in the log ended by itself, so imagined ones end at the horizon alone")
    if scores[index].word == "unproven":
        notes.append(f"E and V agree, but on {scores[index].units} episodes: too few to call it calibrated")
    elif not scores[index].calibrated:
        who = "setting" if not any(s.calibrated for s in scores) else "setting that foretells well"
        notes.append(f"no {who} is calibrated; the one that foretells best is {scores[index].word}")
    return PosteriorChoice(
        index, tuple(settings), scores, nll, picked, curve, reference, tuple(notes), parts, whole, share
    )


def refit(
    key: Key,
    log: Log,
    choice: PosteriorChoice,
    run: Run = ALONE,
) -> Posterior:
    """The chosen setting, fitted once more, to folds of all rows: what was held out to choose it is not lost.

    A log of plenty of rows keeps the worlds it was chosen by.
    """
    data, hypers = log.data, choice.points[choice.index]
    if data.rows > PLENTY:
        return choice.picked
    fitted = _fit("refit", key, data, choice.whole, [hypers], run)[0]
    worlds = ensemble.posterior(fitted, hypers, data, log.task, float(choice.picked.noise_scale))
    return replace(worlds, ends_scale=choice.picked.ends_scale)


def best(totals: Sequence[float], balanced: Sequence[bool], nll: Sequence[float], near: float = np.inf) -> int:
    """Lowest PIL among the balanced whose held-out likelihood is within `near` nats of the best; if none is, the
    best likelihood.

    Not the least imbalanced, nor a balanced one at any price: strong priors spread worlds until they are as
    doubtful as they are wrong, and wrong they then are. Nor the lowest PIL: measured by one variance for all rows,
    a few that no world can foretell decide it. What spread is missing the value's interval makes up for
    (`ValueEstimate.widen`).
    """
    likely = np.nan_to_num(nll, nan=np.inf)  # a fit that diverged is nobody's choice
    able = np.asarray(balanced, bool) & (likely <= likely.min() + near)
    ranked = np.where(able, totals, np.inf) if able.any() else likely
    return int(np.argmin(np.nan_to_num(ranked, nan=np.inf)))


def rated(
    key: Key,
    data: Dataset,
    parts: Split,
    settings: Sequence[ensemble.Hypers],
    run: Run = ALONE,
) -> tuple[list[ensemble.Hypers], dict[int, ensemble.Fitted]]:
    """The settings, those of one shape at the rate that suits it, where its plainest setting is likeliest; and
    what of them was fitted to find out, by their numbers.

    Which rate suits is the log's affair. A smooth log is learned ten times as well at a bold one, and one of
    collisions not at all; and spread, which is what settings of a shape differ by, does not ask for another.
    """
    found, done, asked = list(settings), {}, []
    for group in groups(settings):
        alike = [settings[i] for i in group.index]
        plain = min(alike, key=lambda s: (s.prior_scale, s.bootstrap, s.jitter, s.ridge, 1 - s.own))
        if len(plain.rates) > 1 and len({setting.lr for setting in alike}) == 1:
            first = group.index[alike.index(plain)]
            asked.append((group.index, first, [replace(plain, lr=plain.lr * rate) for rate in plain.rates]))
    tried = [setting for _, _, many in asked for setting in many]
    fitted = iter(_fit("rate", key, data, parts, tried, run) if tried else [])
    for index, first, many in asked:
        fits = [next(fitted) for _ in many]
        best = int(np.argmin(np.nan_to_num([float(np.mean(fit.nll)) for fit in fits], nan=np.inf)))
        done[first] = fits[best]
        for i in index:
            found[i] = replace(found[i], lr=many[best].lr)
    return found, done


def _fit(
    what: str,
    key: Key,
    data: Dataset,
    parts: Split,
    settings: Sequence[ensemble.Hypers],
    run: Run,
) -> list[ensemble.Fitted]:
    """Every setting fitted to the folds of `parts`. What a fit does not read stays off the device."""
    work = _fitter(bool(np.any(data.steps.done[: data.rows])), walled(data))
    each = max(s.folds * s.members for s in settings) * len(data.episode) * (data.steps.obs.shape[1] + 2) * 8
    args = jax.device_put((key, data._replace(starts=np.zeros((0, 1))), parts._replace(held=np.zeros(0))))
    return sweep(what, work, settings, *args, bytes_each=each, run=run)


@cache
def _fitter(terminates: bool, at_walls: bool) -> Callable[..., ensemble.Fitted]:
    """One function per answer, so that compiled programs are found again."""
    return lambda hypers, key, data, parts: ensemble.fit(key, hypers, data, parts, terminates, at_walls)
