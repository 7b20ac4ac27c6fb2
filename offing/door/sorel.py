"""SOReL: a log in; a policy, what it will earn, and whether to deploy it out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

import jax

from .. import planner as planners
from ..data import Log, broken
from ..planner import rppo
from ..progress import Bar
from ..report.actor import Actor
from ..report.results import save_result, sorel_report
from ..report.store import identity
from ..report.verdict import verdict
from ..tune.portfolio import Portfolio, portfolio
from ..tune.run import Run
from ..tune.systems import sorel as run_sorel
from ..types import BadInput, WorldModel
from ..version import __version__
from .common import How, Options, Scale, Source, facts, known, model_of, probability, resumed
from .results import SorelResult, read_sorel, with_log


class PlanOptions(Options, total=False):
    """What `sorel` takes beside them."""

    core: Literal["linear", "gru", "none"] | None  # how the policy remembers
    candidates: Sequence[str]  # which planners compete (default: those of the scale)
    paper: bool  # the paper's own system: recurrent PPO alone


@dataclass(frozen=True)
class Planning(How):
    """`PlanOptions` with their defaults."""

    core: Literal["linear", "gru", "none"] | None = None
    candidates: Sequence[str] = ()
    paper: bool = False

    def plans(self, scale: str, log: Log) -> tuple[Sequence[rppo.Hypers] | Portfolio, Sequence[object]]:
        """What competes, and all of its settings."""
        if self.paper and self.candidates:
            raise BadInput("--paper and --candidates: the paper's system has one planner; give one of them")
        if self.paper:
            settings = planners.space("rppo", scale, core=self.core)
            return settings, settings
        chosen = portfolio(scale, log.task.actions, self.candidates, self.core)
        return chosen, chosen.settings


def sorel(
    log: Source,
    scale: Scale = "quick",
    seed: int = 0,
    *,
    baseline: float | None = None,
    level: float = 0.9,
    model: str | WorldModel = "ensemble",
    **options: Unpack[PlanOptions],
) -> SorelResult:
    """A log in; a policy, what it will earn, and GO, NO-GO or NOT-ENOUGH-EVIDENCE out (SOReL, Algorithm 1).

    `baseline` is the return to beat (default: what the logged behaviour earned), `level` the probability that is
    asked for. `options` are those of `PlanOptions`: with a folder `out` the result is written there.
    """
    how = Planning(**known(options, Planning))
    probability(level)
    if baseline is not None and not math.isfinite(baseline):
        raise BadInput(f"--baseline {baseline}: not a number")
    data = how.log(log, seed)
    worlds = model_of(model)
    models = worlds.space(scale, data.data.rows)
    plans, tried = how.plans(scale, data)
    wanted = ("sorel", worlds.name, "paper" if how.paper else "candidates", baseline, level)
    request = identity(data.fingerprint, seed, [*models, *tried], __version__, *wanted)

    def work(run: Run, bar: Bar) -> SorelResult:
        result = run_sorel(jax.random.key(seed), data, models, plans, seed, run=run, model=worlds)
        ruling = verdict(result.pil, result.predicted, result.behaviour, baseline, broken(data.data), level)
        run_on = facts(data, request, seed, scale, worlds, bar)
        report = sorel_report(result, ruling, baseline, level, run_on, data.columns)
        return SorelResult(
            **vars(report),
            policy=Actor(result.picked, data.task, report.planned.width, data.columns, result.policy.planner),
            worlds=result.worlds,
            estimate=result.predicted.returns,
            log=data,
            saver=lambda folder: save_result(folder, result, report),
        )

    return resumed(request, how, lambda folder: with_log(read_sorel(folder), data), work)
