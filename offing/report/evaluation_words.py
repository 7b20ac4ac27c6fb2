"""An evaluation in sentences."""

from __future__ import annotations

from ..value.estimators import PREDICTIVE
from ..value.estimators import words as called
from ..value.left_out import LeftOut
from ..wording import capital, number, percent
from .evaluation import Evaluation
from .evaluation_parts import BacktestReport


def run(found: Evaluation) -> list[str]:
    """What was run, and what its numbers are."""
    said = f"{found.data}: {found.rows:,} rows, seed {found.seed}"
    if not isinstance(found.posterior, LeftOut):
        said += f", {len(found.posterior.settings)} settings of worlds ({found.scale})"
    lines = [f"{said}, {found.seconds:.0f} s"]
    if not isinstance(found.pil, LeftOut):
        loss = found.pil
        lines.append(
            f"PIL {loss.total:.3g} nats per step = error {loss.error:.3g} + spread {loss.spread:.3g}: {loss.word}"
        )
    return [
        *lines,
        f"value: discounted by {found.task.discount:g}, which all methods give; return: what an episode of at "
        f"most {found.task.horizon} steps adds up to",
    ]


def headline(found: Evaluation, name: str) -> str:
    """What a policy will earn, by the worlds."""
    earned = found.earns(name)
    low, high = earned.interval
    return (
        f"{name} will earn about {number(earned.median)} an episode, with {earned.level:.0%} probability between "
        f"{number(low)} and {number(high)}; the logged behaviour earned {number(found.behaviour.mean)}."
    )


def policy(found: Evaluation, name: str) -> list[str]:
    """What is said of one policy on a terminal."""
    said = [one.explained for one in found.estimates[name].values() if one.explained]
    return [headline(found, name), *(f"  {s}" for s in [*said, *missing(found, name), more(found, name)])]


def missing(found: Evaluation, name: str) -> list[str]:
    """Why some methods say nothing of a policy."""
    return [f"{capital(called(method))}: left out; {why}." for method, why in found.left_out[name].items()]


def compared(found: Evaluation) -> list[str]:
    """Which policies earn more than which, beyond doubt."""
    if found.comparison is None:
        return []
    if isinstance(found.comparison, LeftOut):
        return [f"The policies could not be compared: {found.comparison.reason}."]
    level = f"{found.comparison.level:.0%}"
    return [f"Compared world by world ({level} for all statements together):", *found.comparison.sentences()]


def past(found: Evaluation) -> list[str]:
    """How the log's own behaviour was predicted, and what that shows and does not."""
    report = found.backtest
    if isinstance(report, LeftOut):
        return [f"The log's own behaviour could not be predicted: {report.reason}."]
    said = [
        "The log's own behaviour, cloned and predicted by worlds that did not learn from it: "
        f"{number(_mean(report, 'predicted'))} on average where {number(_mean(report, 'logged'))} was logged; of "
        f"{len(report.blocks)} blocks {report.inside} lie inside their {report.level:.0%} interval."
    ]
    factor, note = report.conformal.factor, report.conformal.note
    if factor is None:
        return [*said, f"No conformal interval: {note}."]
    return [*said, f"The conformal interval multiplies deviations by {number(factor)} and {note}."]


def _mean(report: BacktestReport, what: str) -> float:
    total = sum(block.episodes for block in report.blocks)
    return sum(getattr(block, what) * block.episodes for block in report.blocks) / max(total, 1)


def far(found: Evaluation) -> str:
    """How many steps ahead the worlds know how wrong they are."""
    report = found.horizon
    if report is None:
        return "The log has no runs of steps, so nothing says how far ahead the worlds can be trusted."
    if isinstance(report, LeftOut):
        return f"How far ahead the worlds can be trusted could not be told: {report.reason}."
    steps, of = report.trusted, found.task.horizon
    if steps == 0:
        return (
            "From the first step on, the worlds are surer than they should be where held-out actions are replayed."
        )
    share = f"{number(steps)} of the task's {number(of)} steps ({percent(steps / of)})"
    within = f"Where held-out actions are replayed, the worlds' error stays within their spread for {share}"
    if steps == report.steps[-1]:
        return f"{within}{'' if steps >= of else ', as far as logged runs of steps could be replayed'}."
    return (
        f"{within}; further ahead they are surer than they should be, and a policy that does not correct itself "
        "is misjudged."
    )


def more(found: Evaluation, name: str) -> str:
    """How many rows more another interval would take."""
    report = found.more_data
    width = report if isinstance(report, LeftOut) else report.widths[name]
    if isinstance(width, LeftOut):
        return f"How many more rows {name} would take could not be told: {width.reason}."
    rows, (low, high) = found.rows, width.between
    aim = f"an interval of ±{number(width.target)} for {name} (it is ±{number(width.now)})"
    if width.rows is None:
        some = "" if low is None else f" (at best {_rows(low - rows)} more would)"
        return (
            f"By extrapolation, no number of rows like these gives {aim}: its width has all but stopped "
            f"falling{some}. Rows from where the policy goes would be others."
        )
    if width.rows <= rows:
        return f"The log already has rows enough for {aim}."
    least = width.rows if low is None else low
    most = "on, without end," if high is None else f"to {_rows(high - rows)}"
    return (
        f"By extrapolation: about {_rows(width.rows - rows)} more rows like these for {aim}; anything from "
        f"{_rows(least - rows)} {most} is compatible with what was seen."
    )


def _rows(count: float) -> str:
    """Two digits of a count: more are not known."""
    return f"{float(f'{max(count, 0.0):.2g}'):,.0f}"


def cautions(found: Evaluation) -> list[str]:
    """The checks that failed; or that none did."""
    failed = [check for check in found.checks if not check.passed]
    said = []
    for check in failed:
        about = "" if check.about in ("log", "worlds") else f"{check.about}: "
        said.append(f"CAUTION {about}{check.question} {check.sentence}")
    return said or [f"all {len(found.checks)} checks passed"]


def conformal(found: Evaluation, name: str) -> str | None:
    """The return's conformal interval."""
    by = found.estimates[name][PREDICTIVE].conformal
    return None if by is None else " to ".join(map(number, by.interval))
