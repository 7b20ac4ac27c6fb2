"""A log in; a posterior over worlds, and whether it is calibrated, out."""

from __future__ import annotations

from typing import Unpack

import jax

from ..progress import Bar
from ..report.store import identity
from ..tune.choose import choose_posterior
from ..tune.run import Run
from ..types import WorldModel
from ..version import __version__
from .common import How, Options, Scale, Source, facts, known, model_of, resumed, worked_on
from .folder import read_posterior
from .results import PosteriorResult


def posterior(
    log: Source,
    scale: Scale = "standard",
    seed: int = 0,
    *,
    model: str | WorldModel = "ensemble",
    **options: Unpack[Options],
) -> PosteriorResult:
    """A log in; a posterior over worlds, its settings chosen by PIL, and whether it is calibrated, out."""
    how = How(**known(options, How))
    whole = how.log(log, seed)
    worlds = model_of(model)
    settings = worlds.space(scale, whole.data.rows)
    data = worked_on(whole, settings, seed)
    request = identity(data.fingerprint, seed, settings, __version__, worlds.name)

    def work(run: Run, bar: Bar) -> PosteriorResult:
        choice = choose_posterior(jax.random.key(seed), data, settings, seed, run, worlds)
        if data is not whole:
            choice = choice._replace(notes=(data.notes[0], *choice.notes))
        return PosteriorResult.of(choice, facts(data, request, seed, scale, worlds, bar))

    return resumed(request, how, read_posterior, work)
