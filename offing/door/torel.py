"""TOReL: a log in; any offline planner's settings ranked without trying them, and the best policy out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import jax

from .. import planner as planners
from ..progress import Bar
from ..report.actor import Actor
from ..report.ranking import save_ranking, torel_report
from ..report.store import identity
from ..tune.plans import TrialPlan
from ..tune.run import Run
from ..tune.systems import torel as run_torel
from ..tune.trials import Contender
from ..types import BadInput, Planner, WorldModel
from ..version import __version__
from .common import How, Options, Scale, Source, facts, known, model_of, probability, resumed, worked_on
from .folder import read_torel, with_log
from .results import TorelResult


@dataclass(frozen=True)
class Tuning:
    """How `torel` tries settings: how often, whether the worse half stops early, and what ranks them."""

    seeds: int = 1
    halve: bool = False
    select: str = "predictive"
    model: str | WorldModel = "ensemble"
    search: tuple[str | int, ...] = ()  # how settings were found, if by a search

    def check(self) -> None:
        """BadInput if it cannot be done."""
        if self.seeds < 1:
            raise BadInput(f"--seeds {self.seeds}: at least 1")
        if self.halve and self.select != "predictive":
            raise BadInput("--halve: halving asks the worlds, so it goes with --select predictive alone")


def torel(
    log: Source,
    planner: str | Planner | Contender | Sequence[str | Planner | Contender] = ("rebrac", "iql"),
    scale: Scale = "quick",
    seed: int = 0,
    *,
    space: str = "default",
    level: float = 0.9,
    tuning: Tuning | None = None,
    **options: Unpack[Options],
) -> TorelResult:
    """A log in; any offline planner's settings ranked without trying them, and the best policy out (TOReL).

    `space` says which settings: default, paper, smoke. A `Contender` brings its own. `tuning` says how often
    each is trained, whether the worse half stops early, and what ranks.
    """
    how, tuning = How(**known(options, How)), tuning or Tuning()
    probability(level)
    tuning.check()
    contenders = _contenders(planner, space)
    data = how.log(log, seed)
    worlds = model_of(tuning.model)
    models = worlds.space(scale, data.data.rows)
    data = worked_on(data, models, seed)
    settings = [*models, *(setting for c in contenders for setting in c.settings)]
    wanted = (
        "torel",
        [c.name for c in contenders],
        tuning.seeds,
        tuning.halve,
        level,
        tuning.select,
        *tuning.search,
    )
    request = identity(data.fingerprint, seed, settings, __version__, *wanted)

    def work(run: Run, bar: Bar) -> TorelResult:
        plan = TrialPlan(seeds=tuning.seeds, halve=tuning.halve, select=tuning.select, level=level)
        ranking = run_torel(jax.random.key(seed), data, models, contenders, seed, plan, run, worlds)
        run_on = facts(data, request, seed, scale, worlds, bar)
        report = torel_report(ranking, level, run_on, space, bar.spent, data.columns)
        name = ranking.trials[ranking.index].planner
        return TorelResult(
            **vars(report),
            policy=Actor(ranking.picked, data.task, report.planned.width, data.columns, name),
            worlds=ranking.worlds,
            estimate=ranking.predicted.returns,
            log=data,
            saver=lambda folder: save_ranking(folder, ranking, report),
        )

    return resumed(request, how, lambda folder: with_log(read_torel(folder), data), work)


def _contenders(
    planner: str | Planner | Contender | Sequence[str | Planner | Contender], space: str
) -> list[Contender]:
    several = [planner] if isinstance(planner, (str, Planner, Contender)) else list(planner)
    contenders = [_contender(each, space) for each in several]
    if len({each.name for each in contenders}) != len(contenders):
        raise BadInput("--planner: the same one is named twice")
    return contenders


def _contender(planner: str | Planner | Contender, space: str) -> Contender:
    if isinstance(planner, Contender):
        return planner
    part = planners.get(planner) if isinstance(planner, str) else planner
    return Contender(part.name, part, tuple(planners.space(part, space)))
