"""The two decisions: a posterior by PIL, a policy by value. Here the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Log, split, take
from ..pil import PIL, chance, evidence, judge
from ..posterior import ensemble
from ..posterior.replay import Replay, replay
from ..types import BadInput, Key, Posterior, Progress
from .sweep import Shelf, sweep


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

    @property
    def pil(self) -> PIL:
        return self.scores[self.index]


def choose_posterior(
    key: Key,
    log: Log,
    settings: Sequence[ensemble.Hypers],
    seed: int = 0,
    shelf: Shelf | None = None,
    progress: Progress | None = None,
) -> PosteriorChoice:
    """phi_I, phi_II = argmin PIL subject to E ~ V (Algorithms 1 and 2, first line), on held-out episodes.

    The variance of chance is asked once, of the setting that predicts held-out rows best, and shared: it is
    the log's, not the model's. If no setting is calibrated, the least imbalanced is taken and the notes say so.
    """
    if len({setting.folds for setting in settings}) != 1:
        raise BadInput("settings with different numbers of folds cannot be compared: they hold out different rows")
    data, task = log.data, log.task
    parts, notes = split(data, seed, settings[0].folds)
    held = take(data, parts.held)
    terminates = bool(np.any(data.steps.done[: data.rows]))
    each = max(s.folds * s.members for s in settings) * len(data.episode) * (data.steps.obs.shape[1] + 2) * 8
    on_device = jax.device_put((key, data._replace(starts=np.zeros((0, 1))), parts._replace(held=np.zeros(0))))
    fitted = sweep(
        "fit", _fitter(terminates), settings, *on_device, bytes_each=each, shelf=shelf, progress=progress
    )
    worlds = [ensemble.posterior(f, h, data, task) for f, h in zip(fitted, settings, strict=True)]

    found = []
    for i, world in enumerate(worlds):
        found.append(evidence(world, held))
        if progress:
            progress("score", i + 1, len(worlds))
    reference = int(np.argmin([np.sum(f.plain) for f in found]))
    share = float(_with_scale(worlds[reference], key, held)[0].noise_scale)
    noise = chance(found[reference]._replace(share=share))
    scores = tuple(judge(f, noise, share) for f in found)
    index = best([s.total for s in scores], [s.imbalance for s in scores], [s.calibrated for s in scores])
    picked, curve = _with_scale(worlds[index], key, held)
    if curve is None:
        notes.append("no runs of steps to replay, so all of the learned variance counts as chance")
    if not terminates:
        notes.append("no episode in the log ended by itself, so imagined ones end at the horizon alone")
    if not scores[index].calibrated:
        notes.append(f"no setting is calibrated; the least imbalanced is {scores[index].word}")
    nll = tuple(float(np.mean(f.nll)) for f in fitted)
    return PosteriorChoice(index, tuple(settings), scores, nll, picked, curve, reference, tuple(notes))


def best(totals: Sequence[float], imbalances: Sequence[float], calibrated: Sequence[bool]) -> int:
    """Lowest PIL among the calibrated; if there are none, the least imbalanced."""
    if any(calibrated):
        return int(np.argmin(np.where(calibrated, totals, np.inf)))
    return int(np.argmin(np.abs(imbalances)))


@cache
def _fitter(terminates: bool) -> Callable[..., ensemble.Fitted]:
    """One function per answer, so that compiled programs are found again."""
    return lambda hypers, key, data, parts: ensemble.fit(key, hypers, data, parts, terminates)


def _with_scale(posterior: Posterior, key: Key, held: Any) -> tuple[Posterior, Replay | None]:
    """The posterior with the noise scale that fits its replay of held-out rows, and that replay."""
    curve = replay(jax.random.fold_in(key, 1), posterior, held)
    scale = 1.0 if curve is None else curve.scale
    return replace(posterior, noise_scale=jnp.asarray(scale, jnp.float32)), curve
