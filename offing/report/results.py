"""What a system came to, on disk: the policy, the worlds, the numbers and the page; whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from .. import hypers
from .. import planner as planners
from ..data.columns import Columns
from ..tune.choose import PosteriorChoice
from ..tune.systems import Result
from ..types import BadInput, Policy, Posterior, Task
from ..value.estimate import ValueEstimate
from ..value.policies import FORMS, described, same_actions
from ..value.predictive import Predictive
from ..wording import number
from .changes import Promise
from .jsonable import Json, from_json, to_json
from .page import page
from .reports import (
    CandidateReport,
    Earned,
    Facts,
    Predicted,
    Ruling,
    SavedPolicy,
    SorelReport,
    TorelReport,
    TriedPlan,
    upgraded,
)
from .store import (
    chosen_worlds,
    drop_others,
    keep,
    loss_report,
    name_of,
    pack,
    read_json,
    read_report,
    save_posterior,
    task_of,
    task_report,
    unpack,
    write,
    write_json,
)
from .verdict import Verdict

RESULT = "result.json"
PAGE = "report.html"
DOUBTS = {  # what makes an interval wide, by the names that `ValueEstimate.terms` has
    "worlds": "the worlds disagree",
    "checks": "the worlds are surer than they are right",
    "starts": "the log shows few starts",
    "gap": "the plan uses errors of its training worlds",
    "rare": "rare episodes were not imagined",
    "unknown": "episodes left what the log knows",
}


def read_result(out: Path) -> SorelReport | TorelReport | None:
    """The report of SOReL or TOReL in a folder, or None if there is none."""
    plain = read_json(out / RESULT)
    kind = TorelReport if isinstance(plain, dict) and plain.get("system") == "torel" else SorelReport
    return cast(SorelReport | TorelReport | None, read_report(kind, out / RESULT))


def sorel_report(
    result: Result, ruling: Verdict, baseline: float | None, level: float, facts: Facts, columns: Columns
) -> SorelReport:
    """What SOReL came to, as `result.json` has it."""
    plans = result.policy
    mark = result.behaviour.mean if baseline is None else baseline
    stderr = result.behaviour.stderr if baseline is None else 0.0
    tried = [
        TriedPlan(
            setting=hypers.asdict(point),
            score=score,
            own=tuple(np.asarray(planned.own, float).tolist()),
            held=tuple(np.asarray(planned.held, float).tolist()),
            best=int(planned.best),
        )
        for point, score, planned in zip(plans.points, plans.scores, plans.planned, strict=True)
    ]
    return SorelReport(
        **{**vars(facts), "notes": tuple(result.notes)},
        system=result.system,
        promise=result.promise,
        posterior=chosen_worlds(result.posterior, result.worlds),
        planned=saved_policy(result.picked, plans.planner, tried, plans.index, result.worlds, columns),
        pil=loss_report(result.pil, result.worlds.task, whole=True),
        value=earned(result.predicted.value, level),
        returns=earned(result.predicted.returns, level),
        length=result.predicted.length,
        support=result.predicted.support,
        episodes=name_of("episodes", pack(episodes_of(result.predicted))),
        behaviour=result.behaviour,
        candidates=()
        if plans.field is None
        else tuple(CandidateReport(**vars(r)) for r in plans.field.rows(level)),
        baseline=mark,
        probability=result.predicted.returns.above(mark, stderr),
        ruling=Ruling(word=ruling.word, reasons=ruling.reasons),
    )


def promise_of(report: SorelReport) -> Promise:
    """What a run promised, to be held against another's."""
    return Promise(
        run=report.run,
        data=report.data,
        rows=report.rows,
        verdict=report.ruling.word,
        median=report.returns.median,
        interval=report.returns.interval,
        level=report.returns.level,
        pil=report.pil.total,
    )


def save_result(out: Path, result: Result, report: SorelReport) -> None:
    """Writes posterior, policy, episodes and page, then `result.json`: a result exists once that does."""
    save_posterior(out, result.posterior._replace(picked=result.worlds), facts_of(report))
    save_parts(out, result.picked, result.predicted)
    write(out / PAGE, page(report, np.asarray(result.predicted.returns.returns)).encode())
    write_json(out / RESULT, report)
    drop_parts(out, report)


def save_parts(out: Path, policy: Policy, predicted: Predictive) -> None:
    """Writes the arrays of a policy, and what its imagined episodes earned."""
    keep(out, "episodes", episodes_of(predicted))
    keep(out, "policy", params_of(policy))


def drop_parts(out: Path, report: Predicted) -> None:
    """Removes what earlier runs kept in a folder."""
    drop_others(out, "policy", report.planned.arrays)
    drop_others(out, "episodes", report.episodes)


def facts_of(report: Facts) -> Facts:
    """The facts of a report alone."""
    return Facts(**{name: getattr(report, name) for name in Facts.__dataclass_fields__})


def episodes_of(predicted: Predictive) -> dict[str, np.ndarray]:
    """What the imagined episodes earned, as it is kept."""
    return {"return": np.asarray(predicted.returns.returns), "value": np.asarray(predicted.value.returns)}


def params_of(policy: Policy) -> dict[str, np.ndarray]:
    """The policy's arrays, as they are kept."""
    return {f"a{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(policy.params))}


def saved_policy(
    policy: Policy, planner: str, tried: Sequence[TriedPlan], index: int, worlds: Posterior, columns: Columns
) -> SavedPolicy:
    """What `load_policy` needs beside the arrays."""
    return SavedPolicy(
        planner=planner,
        settings=tuple(tried),
        chosen=index,
        arrays=name_of("policy", pack(params_of(policy))),
        width=int(worlds.starts.shape[1]),
        task=task_report(worlds.task),
        columns=columns.to_json() if columns.obs else None,
    )


def earned(estimate: ValueEstimate, level: float) -> Earned:
    """A ValueEstimate as reports have it; `estimate_of` reads it back."""
    return Earned(
        median=estimate.median,
        mean=estimate.mean,
        interval=estimate.interval(level),
        level=level,
        epistemic=estimate.epistemic,
        aleatoric=estimate.aleatoric,
        stderr=estimate.stderr,
        range=estimate.range,
        worlds=tuple(estimate.worlds.tolist()),
        terms=interval_terms(estimate, level),
        fields={name: value for name, value in estimate._asdict().items() if name != "returns"},
    )


def estimate_of(report: Earned, returns: np.ndarray) -> ValueEstimate:
    """The estimate again: its returns, and what else the truth may differ by."""
    known = {name: value for name, value in report.fields.items() if name in ValueEstimate._fields}
    if "bounds" in known:
        low, high = cast(tuple[float, float], known["bounds"])
        known["bounds"] = (-np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high)
    known["folds"] = int(cast(float, known.get("folds", 1)))
    return ValueEstimate(returns, **known)  # type: ignore[arg-type]


def interval_terms(estimate: ValueEstimate, level: float) -> dict[str, float]:
    """Half of the interval's width that each source of doubt alone would make, by what it is."""
    times = float(stats.t.ppf(0.5 + level / 2, estimate.freedom))
    sizes = {name: size if name == "unknown" else times * size for name, size in estimate.terms.items()}
    return {DOUBTS.get(name, name): size for name, size in sizes.items()}


def load_policy(out: str | os.PathLike[str]) -> tuple[Policy, Task]:
    """The policy that `offing sorel` or `offing torel` left in a folder, and the task that it is for."""
    policy, task, *_ = load_with_columns(out)
    return policy, task


def kept_policy(out: Path) -> SavedPolicy | None:
    """What a folder's report says of its policy, and of nothing else; None if there is no report."""
    plain = read_json(out / RESULT)
    if plain is None:
        return None
    whole = upgraded(plain)
    part = whole.get("policy") if isinstance(whole, dict) else None
    if isinstance(part, dict) and "arrays" in part:
        return from_json(SavedPolicy, {n: v for n, v in part.items() if n != "scores"}, f"{out / RESULT}.policy")
    report = read_result(out)
    return None if report is None else report.planned


def load_with_columns(out: str | os.PathLike[str]) -> tuple[Policy, Task, int, Columns]:
    """The same, with the width of its observations and the columns that it reads and writes."""
    folder = Path(out)
    damaged = BadInput(f"{folder}: the policy in it is damaged or of another version")
    try:
        kept = kept_policy(folder)
    except BadInput as error:
        raise damaged from error
    if kept is None:
        raise BadInput(f"{folder}: holds no finished result ({RESULT} is missing)")
    try:
        planner = planners.get(kept.planner)
        names = set(hypers.names(planner.Hypers))
        setting = planner.Hypers(**{name: value for name, value in kept.setting.items() if name in names})
        if kept.task is None:
            raise ValueError("task")
        task = task_of(kept.task)
        blank = planner.blank(setting, kept.width, task)
        arrays = unpack(folder / kept.arrays)
        leaves = [jnp.asarray(arrays[f"a{i}"]) for i in range(len(arrays))]
        shapes = [leaf.shape for leaf in jax.tree.leaves(blank.params)]
        if [leaf.shape for leaf in leaves] != shapes:
            raise ValueError("shapes")
        policy = replace(blank, params=jax.tree.unflatten(jax.tree.structure(blank.params), leaves))
        return policy, task, kept.width, Columns() if kept.columns is None else Columns.from_json(kept.columns)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        raise damaged from None


def summary(report: SorelReport, out: Path | None = None) -> list[str]:
    """The result in sentences, the verdict last."""
    gained, loss = report.returns, report.pil
    low, high = gained.interval
    tried = f"{len(report.posterior.settings)} worlds' and {len(report.planned.settings)} planners' settings"
    where = "" if out is None else f"{out / PAGE}  "
    return [
        f"{report.data}: {report.rows:,} rows, seed {report.seed}, {tried} ({report.scale}), "
        f"{report.seconds:.0f} s",
        f"PIL {loss.total:.3g} nats per step = error {loss.error:.3g} + spread {loss.spread:.3g}: {loss.word}",
        f"predicted return {gained.median:,.1f}, with {gained.level:.0%} probability between {low:,.1f} and "
        f"{high:,.1f}; logged behaviour {number(report.behaviour.mean)}",
        *(f"note: {note}" for note in report.notes),
        *(() if report.changes is None else report.changes.sentences()),
        f"verdict: {report.ruling.word}",
        *(f"  {reason}" for reason in report.ruling.reasons),
        f"{where}online samples used: {report.online_samples}",
    ]


def save_play(out: Path, played: object) -> None:
    """`play.json` beside the result that it checks."""
    write_json(out / "play.json", played)


def choice_dict(choice: PosteriorChoice, worlds: Posterior) -> Json:
    """The settings of worlds that were tried, as JSON."""
    return to_json(chosen_worlds(choice, worlds))


def finished_policy(path: str, task: Task, width: int) -> Policy:
    """The policy of a finished run, by its folder or a file in it; BadInput if it is another task's."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    kept = kept_policy(folder)
    mine = (RESULT, "" if kept is None else kept.arrays)
    if folder != Path(path) and Path(path).name not in mine:
        raise BadInput(f"{path}: is no policy; give {FORMS}")
    policy, theirs, seen, _ = load_with_columns(folder)
    if seen != width or not same_actions(theirs.actions, task.actions):
        its = f"is for observations of {seen} numbers and {described(theirs.actions)}"
        raise BadInput(f"{path}: {its}; the log has {width} numbers and {described(task.actions)}")
    return policy
