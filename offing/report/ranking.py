"""What TOReL came to, on disk: every trial, the chosen policy, the page; whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.table import Table

from .. import hypers
from ..data.columns import Columns
from ..tune.systems import Ranking
from ..tune.trials import Trial
from ..wording import number
from .labels import shown
from .ranking_page import order, ranking_page, varied
from .reports import Facts, TorelReport, TriedPlan, TriedPolicy
from .results import (
    PAGE,
    RESULT,
    drop_parts,
    earned,
    episodes_of,
    facts_of,
    save_parts,
    saved_policy,
)
from .store import chosen_worlds, loss_report, name_of, pack, save_posterior, write, write_json

ROWS = 12  # trials that a terminal is shown


def torel_report(
    result: Ranking, level: float, facts: Facts, space: str, seconds: Mapping[str, float], columns: Columns
) -> TorelReport:
    """What TOReL came to, as `result.json` has it; `seconds` are those that each planner's trials took."""
    best = result.trials[result.index]
    plan = TriedPlan(setting=hypers.asdict(best.setting), score=_finite(best.score))
    return TorelReport(
        **{**vars(facts), "notes": tuple(result.notes)},
        system=result.system,
        promise=result.promise,
        select=result.select,
        space=space,
        posterior=chosen_worlds(result.posterior, result.worlds),
        trials=tuple(tried_policy(trial, level, _part(trial, result, seconds)) for trial in result.trials),
        chosen=result.index,
        indistinguishable=tuple(result.indistinguishable),
        saved=result.saved,
        planned=saved_policy(result.picked, best.planner, [plan], 0, result.worlds, columns),
        pil=loss_report(result.pil, result.worlds.task, whole=True),
        value=earned(result.predicted.value, level),
        returns=earned(result.predicted.returns, level),
        length=result.predicted.length,
        support=result.predicted.support,
        episodes=name_of("episodes", pack(episodes_of(result.predicted))),
        behaviour=result.behaviour,
    )


def save_ranking(out: Path, result: Ranking, report: TorelReport) -> None:
    """Writes posterior, policy, episodes and page, then `result.json`: a result exists once that does."""
    save_posterior(out, result.posterior._replace(picked=result.worlds), facts_of(report))
    save_parts(out, result.picked, result.predicted)
    write(out / PAGE, ranking_page(report).encode())
    write_json(out / RESULT, report)
    drop_parts(out, report)


def tried_policy(trial: Trial, level: float, seconds: float) -> TriedPolicy:
    """A trial as reports have it."""
    low, high = trial.estimate.interval(level)
    return TriedPolicy(
        planner=trial.planner,
        setting=hypers.asdict(trial.setting),
        seed=trial.seed,
        score=_finite(trial.score),
        interval=(_finite(low), _finite(high)),
        predicted=_finite(trial.returns.median),
        value=_finite(trial.value.median),
        updates=round(trial.share * trial.setting.updates * getattr(trial.setting, "every", 1)),  # gradient steps
        share=trial.share,
        seconds=seconds,
    )


def _finite(x: float) -> float | None:
    """None for what JSON has no number for: a trial that diverged."""
    return float(x) if np.isfinite(x) else None


def _part(trial: Trial, result: Ranking, seconds: Mapping[str, float]) -> float:
    """A trial's part of the time that its planner took, by its part of the updates."""
    whole = sum(each.share for each in result.trials if each.planner == trial.planner)
    return round(seconds.get(trial.planner, 0.0) * trial.share / whole, 2)


def trials_table(report: TorelReport, most: int = ROWS) -> Table:
    """The best of the trials, for a terminal."""
    names = varied(report.trials)
    table = Table(title=None, box=None, header_style="bold")
    for head in ("", "planner", *names, "seed", "score", "interval", ""):
        table.add_column(head, justify="left" if head in ("", "planner") else "right", no_wrap=True)
    for place, i in enumerate(order(report)[:most]):
        trial = report.trials[i]
        rival = "indistinguishable" if i in report.indistinguishable else ""
        mark = "chosen" if i == report.chosen else rival
        low, high = trial.interval
        cells = [shown(trial.setting[name]) if name in trial.setting else "" for name in names]
        reach = f"{number(low)} … {number(high)}"
        table.add_row(str(place + 1), trial.planner, *cells, str(trial.seed), number(trial.score), reach, mark)
    return table


def summary(report: TorelReport, out: Path | None = None) -> list[str]:
    """The result in sentences."""
    gained, loss, best = report.returns, report.pil, report.trials[report.chosen]
    others, (low, high) = len(report.indistinguishable), gained.interval
    setting = ", ".join(f"{k} {shown(v)}" for k, v in best.setting.items())
    planners = ", ".join(dict.fromkeys(trial.planner for trial in report.trials))
    lines = [
        f"{report.data}: {report.rows:,} rows, seed {report.seed}, {len(report.trials)} trials of {planners} "
        f"({report.space}), {report.seconds:.0f} s",
        f"PIL {loss.total:.3g} nats per step = error {loss.error:.3g} + spread {loss.spread:.3g}: {loss.word}",
        f"chosen: {best.planner} ({setting})",
        f"in held-out worlds it earns {gained.median:,.1f} ({low:,.1f} … {high:,.1f}); logged behaviour "
        f"{report.behaviour.mean:,.1f}",
    ]
    if others:
        lines.append(f"{others} other trials are indistinguishable from it offline: their intervals overlap")
    if report.saved:
        lines.append(f"halving spared {report.saved:.0%} of all updates")
    if report.select != "predictive":
        lines.append(f"ranked by {report.select}, for comparison; worlds were not used")
    lines += [f"note: {note}" for note in report.notes]
    lines.append("this ranks settings; it does not promise what they earn (for that: offing sorel)")
    where = "" if out is None else f"{out / PAGE}  "
    return [*lines, f"{where}online samples used: {report.online_samples}"]
