"""An evaluation in sentences."""

from __future__ import annotations

from ..value.estimators import PREDICTIVE
from ..value.estimators import words as called
from ..value.left_out import LeftOut
from ..wording import capital, number, percent
from .evaluation import Evaluation
from .evaluation_parts import BacktestReport


def run(evaluation: Evaluation) -> list[str]:
    """What was run, and what its numbers are."""
    what = f"{evaluation.data}: {evaluation.rows:,} rows, seed {evaluation.seed}"
    if not isinstance(evaluation.posterior, LeftOut):
        what += f", {len(evaluation.posterior.settings)} settings of worlds ({evaluation.scale})"
    lines = [f"{what}, {evaluation.seconds:.0f} s"]
    if not isinstance(evaluation.pil, LeftOut):
        loss = evaluation.pil
        lines.append(
            f"PIL {loss.total:.3g} nats per step = error {loss.error:.3g} + spread {loss.spread:.3g}: {loss.word}"
        )
    return [
        *lines,
        f"value: discounted by {evaluation.task.discount:g}, which all methods give; "
        f"return: what an episode of at most {evaluation.task.horizon} steps adds up to",
    ]


def headline(evaluation: Evaluation, name: str) -> str:
    """What a policy will earn, by the worlds."""
    earned = evaluation.earns(name)
    low, high = earned.interval
    return (
        f"{name} will earn about {number(earned.median)} an episode, with {earned.level:.0%} probability between "
        f"{number(low)} and {number(high)}; the logged behaviour earned {number(evaluation.behaviour.mean)}."
    )


def policy(evaluation: Evaluation, name: str) -> list[str]:
    """What a terminal shows of one policy."""
    details = [*explained(evaluation, name), *missing(evaluation, name), more(evaluation, name)]
    return [headline(evaluation, name), *(f"  {detail}" for detail in details)]


def explained(evaluation: Evaluation, name: str) -> list[str]:
    """Why methods differ from the worlds on a policy, a sentence for each that does."""
    return [one.explained for one in evaluation.estimates[name].values() if one.explained]


def missing(evaluation: Evaluation, name: str) -> list[str]:
    """Why some methods say nothing of a policy."""
    return [f"{capital(called(method))}: left out; {why}." for method, why in evaluation.left_out[name].items()]


def compared(evaluation: Evaluation) -> list[str]:
    """Which policies earn more than which, beyond doubt."""
    if evaluation.comparison is None:
        return []
    if isinstance(evaluation.comparison, LeftOut):
        return [f"The policies could not be compared: {evaluation.comparison.reason}."]
    level = f"{evaluation.comparison.level:.0%}"
    return [f"Compared world by world ({level} for all statements together):", *evaluation.comparison.sentences()]


def past(evaluation: Evaluation) -> list[str]:
    """How the log's own behaviour was predicted, and what that shows and does not."""
    report = evaluation.backtest
    if isinstance(report, LeftOut):
        return [f"The log's own behaviour could not be predicted: {report.reason}."]
    sentences = [
        "The log's own behaviour, cloned and predicted by worlds that did not learn from it: "
        f"{number(_mean(report, 'predicted'))} on average where {number(_mean(report, 'logged'))} was logged; of "
        f"{len(report.blocks)} blocks {report.inside} lie inside their {report.level:.0%} interval."
    ]
    factor, note = report.conformal.factor, report.conformal.note
    if factor is None:
        return [*sentences, f"No conformal interval: {note}."]
    return [*sentences, f"The conformal interval multiplies deviations by {number(factor)} and {note}."]


def _mean(report: BacktestReport, what: str) -> float:
    total = sum(block.episodes for block in report.blocks)
    return sum(getattr(block, what) * block.episodes for block in report.blocks) / max(total, 1)


def far(evaluation: Evaluation) -> str:
    """How many steps ahead the worlds know how wrong they are."""
    report = evaluation.horizon
    if report is None:
        return "The log has no runs of steps, so nothing says how far ahead the worlds can be trusted."
    if isinstance(report, LeftOut):
        return f"How far ahead the worlds can be trusted could not be measured: {report.reason}."
    steps, of = report.trusted, evaluation.task.horizon
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


def more(evaluation: Evaluation, name: str) -> str:
    """How many rows more another interval would take."""
    report = evaluation.more_data
    width = report if isinstance(report, LeftOut) else report.widths[name]
    if isinstance(width, LeftOut):
        return f"How many more rows {name} would take could not be estimated: {width.reason}."
    rows, (low, high) = evaluation.rows, width.between
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


def cautions(evaluation: Evaluation) -> list[str]:
    """The checks that failed; or that none did."""
    failed = [check for check in evaluation.checks if not check.passed]
    sentences = []
    for check in failed:
        about = "" if check.about in ("log", "worlds") else f"{check.about}: "
        sentences.append(f"CAUTION {about}{check.question} {check.sentence}")
    return sentences or [f"all {len(evaluation.checks)} checks passed"]


def conformal(evaluation: Evaluation, name: str) -> str | None:
    """The return's conformal interval."""
    by = evaluation.estimates[name][PREDICTIVE].conformal
    return None if by is None else " to ".join(map(number, by.interval))
