"""Worlds as `offing sorel` and `offing torel` have them, shared by all that one log serves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from offing.data import Log
from offing.pil import PIL
from offing.posterior.models import get
from offing.report.store import identity, pil_dict
from offing.tune.choose import PosteriorChoice, choose_posterior, refit
from offing.tune.run import Run
from offing.types import Posterior, Task
from offing.version import __version__

from ..parts import Numbers, Place, Settings

MODELS = {"smoke": "linear"}  # a kind of worlds by scale; else the ensemble


class Worlds(NamedTuple):
    """The choice among settings, and the chosen one fitted to all rows."""

    choice: PosteriorChoice
    worlds: Posterior


def settings_of(scale: str, rows: int) -> list[Any]:
    return list(get(model_of(scale)).space(scale, rows))


def model_of(scale: str) -> str:
    return MODELS.get(scale, "ensemble")


def fit(
    place: Place,
    log: Log,
    seed: int,
    scale: str,
    settings: Sequence[Any] | None = None,
    wanted: int = 0,
    model: str = "",
) -> Worlds:
    """Worlds for a log; the same request is fitted once for all parts. `wanted`: worlds of a fold, if more."""
    model = model or model_of(scale)
    settings = list(get(model).space(scale, log.data.rows)) if settings is None else list(settings)
    request: Settings = {"request": identity(log.fingerprint, seed, settings, __version__, "worlds", model)}
    key = jax.random.split(jax.random.key(seed))[0]  # as `sorel` has it
    choice = choose_posterior(key, log, settings, seed, Run(place.cache("worlds", request)), get(model))
    again = Run(place.cache("refit", {**request, "wanted": wanted}))
    return Worlds(choice, refit(key, log, choice, again, wanted))


def loss(score: PIL, task: Task) -> Numbers:
    """A PIL as records have it, with the released code's convention."""
    plain = pil_dict(score, task)
    assert isinstance(plain, dict)
    return {**{name: plain[name] for name in LOSS}, "released": score.released}


LOSS = ("error", "spread", "total", "imbalance", "calibrated", "word", "units", "bound")


def about(fitted: Worlds, task: Task) -> Numbers:
    """Which worlds were chosen, and among what."""
    choice = fitted.choice
    tried = [
        {**loss(score, task), "nll": nll, **varied(choice.points)[i]}
        for i, (score, nll) in enumerate(zip(choice.scores, choice.nll, strict=True))
    ]
    return {
        "pil": loss(choice.pil, task),
        "tried": tried,
        "picked": choice.index,
        "worlds": fitted.worlds.members,
        "chance": float(np.mean(choice.share)),
    }


def varied(settings: Sequence[Any]) -> list[Numbers]:
    """What settings differ by, each as a dictionary."""
    from offing.hypers import asdict

    each = [asdict(setting) for setting in settings]
    names = [name for name in each[0] if any(one.get(name) != each[0][name] for one in each)]
    return [{name: one.get(name) for name in names} for one in each]
