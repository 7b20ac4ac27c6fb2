"""SOReL: a log in; a policy, what it will earn, and whether to deploy it out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Unpack

import jax

from .. import planner as planners
from ..data import Log, broken
from ..planner import rppo
from ..progress import Bar
from ..report.actor import Actor
from ..report.changes import Changes
from ..report.reports import SorelReport
from ..report.results import promise_of, read_result, save_result, sorel_report
from ..report.store import identity
from ..report.verdict import verdict
from ..tune.portfolio import Portfolio, portfolio
from ..tune.run import Run
from ..tune.systems import sorel as run_sorel
from ..types import BadInput, WorldModel
from ..version import __version__
from .common import How, Options, Scale, Source, facts, known, model_of, probability, resumed, worked_on
from .folder import read_sorel, with_log
from .results import PathLike, SorelResult


class PlanOptions(Options, total=False):
    """What `sorel` takes beside them."""

    core: Literal["linear", "gru", "none"] | None  # how the policy remembers
    candidates: Sequence[str]  # which planners compete (default: those of the scale)
    paper: bool  # the paper's own system: recurrent PPO alone
    before: PathLike | None  # of several logs: the folder of the run on the first alone


@dataclass(frozen=True)
class Planning(How):
    """`PlanOptions` with their defaults."""

    core: Literal["linear", "gru", "none"] | None = None
    candidates: Sequence[str] = ()
    paper: bool = False
    before: PathLike | None = None

    def earlier(self, log: Log) -> SorelReport | None:
        """The earlier run that was named; BadInput unless it learned from the first part of the log."""
        if self.before is None:
            return None
        report = read_result(Path(self.before))
        if not isinstance(report, SorelReport):
            raise BadInput(f"--before {self.before}: holds no finished result of sorel")
        if not log.parts:
            raise BadInput("--before: goes with several logs, an earlier one and new rows")
        if report.fingerprint not in [part.fingerprint for part in log.parts]:
            raise BadInput(f"--before {self.before}: learned from {report.data}, which is none of the logs given")
        return report

    def plans(self, scale: str, log: Log) -> tuple[Sequence[rppo.Hypers] | Portfolio, Sequence[object]]:
        """What competes, and all of its settings."""
        if self.paper and self.candidates:
            raise BadInput("--paper and --candidates: the paper's system has one planner; give one of them")
        if self.paper:
            settings = planners.space("rppo", scale, core=self.core)
            return settings, settings
        chosen = portfolio(scale, log.task.actions, self.candidates, self.core, log.data.rows)
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

    A list of logs is learned from as one, and the result says what the later ones changed (`result.changes`); with
    `before`, the folder of the run on the first, also in the promise.
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
    data = worked_on(data, models, seed)
    plans, tried = how.plans(scale, data)
    earlier = how.earlier(data)
    wanted = ["sorel", worlds.name, "paper" if how.paper else "candidates", baseline, level]
    wanted += [] if earlier is None else [earlier.run]
    request = identity(data.fingerprint, seed, [*models, *tried], __version__, *wanted)

    def work(run: Run, bar: Bar) -> SorelResult:
        result = run_sorel(jax.random.key(seed), data, models, plans, seed, run=run, model=worlds)
        ruling = verdict(result.pil, result.predicted, result.behaviour, baseline, broken(data.data), level)
        run_on = facts(data, request, seed, scale, worlds, bar)
        report = sorel_report(result, ruling, baseline, level, run_on, data.columns)
        if data.parts:
            before = None if earlier is None else promise_of(earlier)
            changes = Changes(parts=data.parts, now=promise_of(report), before=before)
            report = replace(report, changes=changes)
        return SorelResult(
            **vars(report),
            policy=Actor(result.picked, data.task, report.planned.width, data.columns, result.policy.planner),
            worlds=result.worlds,
            estimate=result.predicted.returns,
            log=data,
            saver=lambda folder: save_result(folder, result, report),
        )

    return resumed(request, how, lambda folder: with_log(read_sorel(folder), data), work)
