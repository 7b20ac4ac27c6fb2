"""An evaluation as plain data: what its JSON, its page and its tables read, and nothing else.

`evaluation_of(assessment, facts)` makes one. What could not be added stands in it as LeftOut, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from ..data import Behaviour
from ..tune.evaluate import Assessment
from ..tune.more_data import MoreData, Width
from ..value.backtest import Backtest
from ..value.compare import Comparison, compare
from ..value.disagree import apart, explained, faults
from ..value.estimate import Estimate, ValueEstimate
from ..value.estimators import PREDICTIVE
from ..value.health import Check, checks
from ..value.horizon import Horizon
from ..value.left_out import LeftOut, attempt
from .evaluation_parts import (
    BacktestReport,
    Block,
    ConformalReport,
    EstimateReport,
    Facts,
    HorizonReport,
    Interval,
    LawReport,
    LossPoint,
    LossReport,
    MoreDataReport,
    Row,
    TaskReport,
    ValueReport,
    WidthPoint,
    WidthReport,
    WorldsReport,
)
from .jsonable import Json, from_json, to_json
from .results import choice_dict
from .store import pil_dict

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Evaluation(Facts):
    """What policies will earn by every method, whether that can be trusted, and what was run."""

    system: str = "evaluate"
    level: float
    task: TaskReport
    estimates: dict[str, dict[str, EstimateReport]]  # by policy, then method; the posterior's first
    left_out: dict[str, dict[str, str]]  # why a method says nothing, by policy, then method
    comparison: Comparison | LeftOut | None  # None where there is one policy
    backtest: BacktestReport | LeftOut
    horizon: HorizonReport | LeftOut | None  # None if the log has no runs of steps
    more_data: MoreDataReport | LeftOut
    checks: tuple[Check, ...]
    checks_left_out: dict[str, str]
    behaviour: Behaviour
    pil: LossReport | LeftOut
    posterior: WorldsReport | LeftOut
    figures_left_out: dict[str, str] = field(default_factory=dict)  # why a picture, or the page, could not be made

    def to_json(self) -> Json:
        """The evaluation as JSON has it."""
        return to_json(self)

    @classmethod
    def of_json(cls, plain: Json) -> Evaluation:
        """An evaluation from its JSON; BadInput names what does not fit."""
        return from_json(cls, plain, "evaluation.json")

    def earns(self, policy: str) -> ValueReport:
        """What an episode of the policy earns by the posterior."""
        ours = self.estimates[policy][PREDICTIVE]
        return ours if ours.returns is None else ours.returns

    def cautions(self, policy: str) -> list[Check]:
        """The checks that speak against trusting a policy's estimates."""
        return [c for c in self.checks if not c.passed and c.about in ("log", "worlds", policy)]

    def rows_of(self) -> list[Row]:
        """One row for every policy and method."""
        return [Row.of(policy, name, one) for policy, each in self.estimates.items() for name, one in each.items()]

    def to_frame(self) -> pandas.DataFrame:
        """The same rows as a table of pandas."""
        import pandas

        return pandas.DataFrame([vars(row) for row in self.rows_of()])

    def missing(self) -> list[str]:
        """What was left out of this evaluation, in sentences."""
        named = {
            "the comparison of the policies": self.comparison,
            "the prediction of the log's own behaviour": self.backtest,
            "how far ahead the worlds can be trusted": self.horizon,
            "how much more data would help": self.more_data,
            "the loss of information": self.pil,
            "the settings of worlds that were tried": self.posterior,
        }
        lost = [f"Left out: {what}; {part.reason}." for what, part in named.items() if isinstance(part, LeftOut)]
        lost += [f"Left out: the check {name}; {why}." for name, why in self.checks_left_out.items()]
        return lost + [f"Left out: {name}; {why}." for name, why in self.figures_left_out.items()]


def evaluation_of(assessment: Assessment, facts: Facts) -> Evaluation:
    """The plain data of an assessment; every part that fails is left out by itself."""
    checked = attempt(lambda: checks(assessment.evidence))
    passed, lost = ([], {"all of them": checked}) if isinstance(checked, LeftOut) else checked
    task = assessment.worlds.task
    return Evaluation(
        **{**vars(facts), "notes": tuple(assessment.notes)},
        level=assessment.level,
        task=TaskReport(task.horizon, float(task.discount)),
        estimates={name: _estimates(name, assessment) for name in assessment.estimates},
        left_out={
            name: {method: why.reason for method, why in each.items()}
            for name, each in assessment.left_out.items()
        },
        comparison=attempt(lambda: _comparison(assessment)),
        backtest=_added(assessment.backtest, _backtest),
        horizon=None if assessment.horizon is None else _added(assessment.horizon, _horizon),
        more_data=_added(assessment.more_data, _more),
        checks=tuple(passed),
        checks_left_out={name: why.reason for name, why in lost.items()},
        behaviour=assessment.behaviour,
        pil=attempt(lambda: from_json(LossReport, to_json(pil_dict(assessment.pil, task, whole=True)))),
        posterior=attempt(
            lambda: from_json(WorldsReport, to_json(choice_dict(assessment.posterior, assessment.worlds)))
        ),
    )


def _added(part: T | LeftOut, report: Callable[[T], S]) -> S | LeftOut:
    return part if isinstance(part, LeftOut) else attempt(lambda: report(cast(T, part)))


def _comparison(assessment: Assessment) -> Comparison | None:
    returns = {name: each[PREDICTIVE].returns for name, each in assessment.estimates.items()}
    known = {name: value for name, value in returns.items() if value is not None}
    return compare(known, assessment.starts, assessment.level)


def _estimates(name: str, assessment: Assessment) -> dict[str, EstimateReport]:
    given, level = assessment.estimates[name], assessment.level
    sentences = attempt(lambda: explained(given, assessment.worlds.task, level))
    return {method: _estimate(method, given, level, sentences, assessment) for method in given}


def _estimate(
    method: str,
    given: Mapping[str, Estimate],
    level: float,
    sentences: Mapping[str, str | LeftOut] | LeftOut,
    assessment: Assessment,
) -> EstimateReport:
    one, ours = given[method], method == PREDICTIVE
    why = sentences if isinstance(sentences, LeftOut) else None if ours else sentences[method]
    wrong = attempt(lambda: tuple(faults(method, one)))
    agrees = None if ours else attempt(lambda: not apart(one, given[PREDICTIVE], level))
    conformal = attempt(lambda: _conformal(one, assessment)) if ours else None
    return EstimateReport(
        **vars(_value(one.estimate, level)),
        returns=None if one.returns is None else _value(one.returns, level),
        health={key: float(number) for key, number in one.health.items()},
        faults=() if isinstance(wrong, LeftOut) else wrong,
        notes=tuple(one.notes),
        agrees=None if isinstance(agrees, LeftOut) else agrees,
        explained=why if isinstance(why, str) or why is None else f"Left out: why it differs; {why.reason}.",
        conformal=None if isinstance(conformal, LeftOut) else conformal,
    )


def _value(estimate: ValueEstimate, level: float) -> ValueReport:
    return ValueReport(
        median=estimate.median,
        interval=estimate.interval(level),
        level=level,
        deviation=estimate.deviation,
        range=estimate.range,
    )


def _conformal(estimate: Estimate, assessment: Assessment) -> Interval | None:
    """The return's interval by the factor that makes those of the log's own behaviour hold."""
    if isinstance(assessment.backtest, LeftOut) or estimate.returns is None:
        return None
    by = assessment.backtest.conformal
    plain = estimate.returns._replace(widen=1.0)  # as the factor's own estimates are
    return Interval(by.interval(plain), by.level) if np.isfinite(by.factor) else None


def _backtest(past: Backtest) -> BacktestReport:
    blocks = tuple(
        Block(
            b.fold,
            b.first,
            b.last,
            b.episodes,
            b.logged,
            b.predicted.median,
            b.predicted.interval(past.level),
        )
        for b in past.blocks
    )
    by = past.conformal
    factor = float(by.factor) if np.isfinite(by.factor) else None
    report = ConformalReport(factor, by.policies, by.note)
    return BacktestReport(blocks, past.inside, past.level, past.held, past.bias, past.error, report)


def _horizon(far: Horizon) -> HorizonReport:
    numbers = lambda array: tuple(float(x) for x in array)
    return HorizonReport(
        tuple(int(step) for step in far.steps),
        numbers(far.error),
        numbers(far.spread),
        tuple(bool(each) for each in far.agree),
        far.trusted,
        far.last,
        far.share,
    )


def _more(more_data: MoreData) -> MoreDataReport:
    points = tuple(
        LossPoint(float(rows), loss.total, loss.e, loss.v)
        for rows, loss in zip(more_data.rows, more_data.pil, strict=True)
    )
    return MoreDataReport(
        True,
        points,
        LawReport(float(more_data.law.slope), float(more_data.law.floor)),
        more_data.slope,
        {name: _added(width, _width) for name, width in more_data.widths.items()},
    )


def _width(width: Width) -> WidthReport:
    points = tuple(WidthPoint(float(n), float(w)) for n, w in zip(width.rows, width.halves, strict=True))
    finite = lambda x: float(x) if np.isfinite(x) else None
    return WidthReport(
        points,
        LawReport(float(np.sqrt(width.law.slope)), float(np.sqrt(width.law.floor))),
        width.now,
        width.target,
        finite(width.needed.rows),
        (finite(width.needed.low), finite(width.needed.high)),
    )
