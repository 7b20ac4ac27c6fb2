"""The figures in words, and records made small enough to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .table import (
    GO,
    LEVELS,
    Evaluate,
    Field,
    Record,
    Share,
    Sorel,
    better,
    by_commit,
    evaluate_figures,
    field_figures,
    flips,
    gain,
    imagined_figures,
    inside,
    latest,
    sorel_figures,
    stopped,
)
from .tasks import EVERY, HALVES

PAID = tuple(task.name for task in EVERY if "paid for what comes" in task.kinds)


def printed(every: Sequence[Record]) -> str:
    """Every figure of the last record of each job: open and sealed apart, scale by scale, overall and by task."""
    sealed = by_commit(r for r in every if r["half"] == "sealed")
    parts = [f"sealed runs at {commit}: {count}" for commit, count in sealed.items()]
    records = latest(every)
    for half in HALVES:
        for scale in sorted({r["scale"] for r in records if r["half"] == half}):
            mine = [r for r in records if (r["half"], r["scale"]) == (half, scale)]
            parts += [f"== {half} half, {scale}; commits {', '.join(sorted({r['commit'] for r in mine}))}"]
            parts += _sorel(_of(mine, "sorel")) + _evaluate(_of(mine, "evaluate"))
            parts += _worlds(_of(mine, "worlds")) + _controls(mine)
        share, turned = flips([r for r in records if r["half"] == half])
        if share.of:
            parts.append(f"== {half} half: good and GO at quick, good and not GO at large: {share} (none may)")
            parts += [f"   {r['task']} {r['rows']} seed {r['seed']}: {stopped([r])}" for r in turned]
    return "\n".join(parts) if parts else "no records"


def _of(records: Sequence[Record], what: str) -> list[Record]:
    return [r for r in records if r["what"] == what and r["control"] == "none"]


def _levels(covered: dict[str, Share]) -> str:
    return "; ".join(f"at {float(level):.0%} asked {share}" for level, share in covered.items())


def _sorel(records: list[Record]) -> list[str]:
    if not records:
        return []
    lines = ["-- offing sorel", *_sorel_lines(sorel_figures(records))]
    lines += [f"   stopped {count}: {question}" for question, count in stopped(records).items()]
    field = field_figures(records)
    lines += _field_lines(field) if field else []
    lines.append(f"   {'run':34} {'verdict':20} {'promised':>10} {'90% interval':>24} {'earned':>17} {'log':>17}")
    for r in records:
        low, high = r["promise"]["intervals"]["0.9"]
        marks = ("" if inside(r["promise"]["intervals"], r["realised"]["mean"], "0.9") else " outside") + (
            " beats" if better(r) else ""
        )
        wrong = " WRONG" if r["verdict"] == GO and gain(r)[0] <= 0 else ""
        lines.append(
            f"   {r['task']:16} {r['rows']:6} seed {r['seed']:<5} {r['verdict']:20} "
            f"{r['promise']['median']:10.4g} "
            f"{f'{low:.4g} … {high:.4g}':>24} {_pm(r['realised']):>17} {_pm(r['log']):>17}{marks}{wrong} "
            f"{r['seconds']:.0f} s"
        )
    return lines


def _sorel_lines(f: Sorel) -> list[str]:
    verdicts = ", ".join(f"{word} {count}" for word, count in sorted(f.verdicts.items()))
    return [
        f"   runs {f.runs}: {verdicts}; median {f.seconds:.0f} s",
        f"   GO where the plan truly beats the log by two standard errors: {f.go_where_better} (75% asked)",
        f"   wrong GO: {f.wrong_go} (at most 5%)",
        f"   NO-GO right: {f.no_go_right} (90% asked)",
        f"   realised return inside the interval: {_levels(f.covered)} (87% to 95% at 90%)",
        f"   whole 90% interval above what came: {f.too_high}",
        f"   the same verdict over seeds: {f.same_over_seeds} (85% asked)",
    ]


def _field_lines(f: Field) -> list[str]:
    return [
        f"   candidates {f.candidates} of {f.runs} runs, each played in its true task",
        f"   the chosen one earned no less than the log by two standard errors: {f.at_least_log} (97% asked)",
        f"   at least the best candidate's return less 5% of the range: {f.near_best} (80% asked)",
        f"   at 90% of the way from the worst candidate to the best, or above: {f.far_enough}",
        f"   Spearman of promised and earned over a run's candidates: {f.spearman:.2f} on average (0.9 asked)",
        f"   candidates inside their 90% interval: {f.covered}",
    ]


def _pm(one: Record) -> str:
    return f"{one['mean']:.4g} ± {one['stderr']:.2g}"


def _evaluate(records: list[Record]) -> list[str]:
    if not records:
        return []
    lines = ["-- offing evaluate", *_evaluate_lines(evaluate_figures(records))]
    lines.append(
        f"   {'by task':16} {'error':>7} {'FQE':>7} {'Spearman':>8} {'FQE':>6} {'50%':>5} {'90%':>5} {'99%':>5} "
        f"{'width':>7}"
    )
    for task in sorted({r["task"] for r in records}):
        f = evaluate_figures([r for r in records if r["task"] == task])
        covered = " ".join(f"{f.covered[level].value:5.0%}" for level in LEVELS)
        lines.append(
            f"   {task:16} {f.error:7.3f} {f.fqe_error:7.3f} {f.spearman:8.2f} {f.fqe_spearman:6.2f} {covered} "
            f"{f.width:7.2f}"
        )
    return lines


def _evaluate_lines(f: Evaluate) -> list[str]:
    return [
        f"   logs {f.runs}, policies {f.policies}; median {f.seconds:.0f} s",
        f"   error {f.error:.3f} of the pool's range, FQE's {f.fqe_error:.3f}: {f.ratio:.2f} of it (0.15 asked)",
        f"   the median log's error {f.middle[0]:.3f}, FQE's {f.middle[1]:.3f}",
        f"   Spearman {f.spearman:.2f} on average (0.93 asked), FQE's {f.fqe_spearman:.2f}",
        f"   covered: {_levels(f.covered)} (87% to 95% at 90%)",
        f"   covered by FQE: {_levels(f.fqe_covered)}",
        f"   median width of the 90% interval {f.width:.2f} of the pool's range (0.3 asked)",
        f"   undiscounted: error {f.return_error:.3f}, width {f.return_width:.2f}, {_levels(f.return_covered)}",
    ]


def _worlds(records: list[Record]) -> list[str]:
    if not records:
        return []
    f = imagined_figures(records, PAID)
    ratios = lambda many: ", ".join(f"{each:.2f}" for each in many) or "none"
    names = [f"{r['task']} {name}" for r in records for name in r["coins"]]
    jumping = [f"{r['task']} {name}" for r in records for name in r["jumps"]]
    lines = [
        "-- learned worlds against a fresh log of the same behaviours",
        f"   logs {f.runs}; the reward's unexplained share, mean over tasks that pay for what comes: "
        f"{f.unexplained:.4f} (under 0.01 asked)",
        f"   columns of 0 and 1: {', '.join(names) or 'none'}",
        f"   imagined frequency over the log's: {ratios(f.coins)} (within 10% asked)",
        f"   a fresh log's over it: {ratios(f.slack[0])}",
        f"   columns that jump: {', '.join(jumping) or 'none'}",
        f"   imagined over the log's, how often: {ratios(f.often)}; how far: {ratios(f.far)}",
        f"   a fresh log's over it, how often: {ratios(f.slack[1])}; how far: {ratios(f.slack[2])}",
        f"   {'by task':16} reward's unexplained share, and the three worst columns'",
    ]
    for r in records:
        worst = sorted(r["unexplained"].items(), key=lambda each: -each[1])[:3]
        shares = ", ".join(f"{name} {share:.3f}" for name, share in worst)
        lines.append(f"   {r['task']:16} seed {r['seed']:<3} {r['reward_unexplained']:.4f}  {shares}")
    return lines


def _controls(records: Sequence[Record]) -> list[str]:
    """Negative controls: none may be GO."""
    spoilt = [r for r in records if r["control"] != "none"]
    if not spoilt:
        return []
    plans = [r for r in spoilt if r["what"] == "sorel"]
    go = Share(sum(r["verdict"] == GO for r in plans), len(plans))
    lines = ["-- negative controls", f"   GO: {go} (none may)"]
    lines += [f"   {r['control']:17} {r['task']:16} {r['rows']:6} {r['verdict']}" for r in plans]
    for r in spoilt:
        if r["what"] == "evaluate":
            f = evaluate_figures([r])
            lines.append(f"   {r['control']:17} {r['task']:16} {r['rows']:6} covered {_levels(f.covered)}")
    return lines


def compact(record: Record) -> Record:
    """A record without what no figure is made of: terms of intervals of estimates, and digits beyond the sixth."""
    small = _rounded(
        {name: value for name, value in record.items() if name not in ("worlds", "product_behaviour")}
    )
    for policy in small.get("policies", {}).values():
        for method in policy.values():
            for kind in ("value", "return"):
                if isinstance(method.get(kind), dict):
                    method[kind].pop("terms", None)
    return small


def _rounded(thing: Any) -> Any:
    if isinstance(thing, float):
        return float(f"{thing:.6g}")
    if isinstance(thing, dict):
        return {name: _rounded(value) for name, value in thing.items()}
    return [_rounded(value) for value in thing] if isinstance(thing, list | tuple) else thing
