"""The tables of docs/results/judged.md, from the records of version 0.1: figures over pools, and a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from offing.report.verdict import GUARDED
from offing.value import metrics

ENDLESS = ("fqe", "dr", "dualdice")  # what these estimate has no time limit, and neither has their truth
ORDER = ("predictive", "fqe", "is", "dr", "dualdice")
RATIO, RANK, COVERS = 0.25, 0.9, (0.85, 0.97)  # what the posterior is due to reach
SHOWN = {
    "predictive": ("outside", "clipped", "guarded"),
    "fqe": ("converged", "bellman"),
    "is": ("effective",),
    "dr": ("effective",),
    "dualdice": ("mean_zeta", "converged"),
}
Record = dict[str, Any]


def truth_of(record: Record, truths: list[Record]) -> Record | None:
    """The played pool that a record judged, if there is one."""
    alike = [t for t in truths if all(t[name] == record[name] for name in ("task", "pool", "policies"))]
    return alike[0] if alike else None


def quantity(method: str, what: str) -> str:
    """Which truth an estimate is held against: one without a time limit, where the method knows none."""
    return "endless" if what == "value" and method in ENDLESS else what


def figures(record: Record, truth: Record, what: str = "value", against: str | None = None) -> Record:
    """Figures of one method over one pool. Errors and widths are shares of the pool's range of true values.

    What is not finite is left out of all figures and counted.
    """
    estimates, true = record[what], np.array(truth[against or quantity(record["method"], what)])
    good = np.isfinite(estimates["median"])
    pick = lambda name: np.array(estimates[name])[good]
    true, size = true[good], float(np.ptp(true))
    error, regret = metrics.absolute_error(pick("median"), true), metrics.regret(pick("median"), true)
    inside = lambda pairs: (pairs[:, 0] <= true) & (true <= pairs[:, 1])
    return {
        "error": error.value / size,
        "raw": error.value,
        "bias": float(np.mean(pick("median") - true)) / size,
        "spearman": metrics.spearman(pick("median"), true).value,
        "regret": regret.value,
        "chance": regret.chance,
        "inside": inside(pick("interval")).tolist(),
        "inside_range": inside(pick("range")).tolist(),
        "width": float(np.mean(np.ptp(pick("interval"), 1))) / size,
        "left_out": int(np.sum(~good)),
    }


def pooled(records: list[Record], truths: list[Record], what: str = "value", against: str | None = None) -> Record:
    """Figures of one method over several logs: means, and what is inside counted together.

    A pool in which fewer than two policies could be judged has no figures.
    """
    of_logs = []
    for record in records:
        truth = truth_of(record, truths)
        if truth is not None and record[what] is not None and np.isfinite(record[what]["median"]).sum() > 1:
            of_logs.append(figures(record, truth, what, against))
    if not of_logs:
        return {}
    means = {n: float(np.mean([f[n] for f in of_logs])) for n, v in of_logs[0].items() if not isinstance(v, list)}
    every = {n: [each for f in of_logs for each in f[n]] for n in ("inside", "inside_range")}
    return {**means, **every, "logs": len(of_logs), "least": min(f["spearman"] for f in of_logs)}


def covers(inside: list[bool]) -> str:
    """A share with its binomial interval, as if policies and logs were independent, which they are not quite."""
    low, high = metrics.binomial(sum(inside), len(inside))
    return f"{np.mean(inside):.0%} ({low:.0%}–{high:.0%})"


def health(records: list[Record]) -> str:
    """The figures of health that tell most, averaged over policies and logs."""
    shown = SHOWN[records[0]["method"]]
    means = {n: np.mean([np.mean(r["health"][n]) for r in records]) for n in shown}
    return ", ".join(f"{n.replace('_', ' ')} {mean:.2g}" for n, mean in means.items())


def groups(records: list[Record]) -> dict[tuple[str, str, int], dict[str, list[Record]]]:
    """Records by task, pool and rows, then by method."""
    grouped: dict[Any, dict[str, list[Record]]] = {}
    for method in ORDER:
        for r in (r for r in records if r["method"] == method):
            grouped.setdefault((r["task"], r["pool"], r["rows"]), {}).setdefault(method, []).append(r)
    return grouped


def own(records: list[Record], truths: list[Record], plans: list[Record]) -> list[str]:
    """How far each method is from the true discounted value of the one policy that SOReL chose from its pool."""
    lines = []
    for (task, pool, rows), methods in groups(records).items():
        for plan in (p for p in plans if (p["task"], p["rows"], f"sorel-{p['core']}") == (task, rows, pool)):
            off = {}
            for method, mine in methods.items():
                for record in (r for r in mine if r["seed"] == plan["seed"]):
                    truth = truth_of(record, truths)
                    if truth is not None:
                        true = truth[quantity(method, "value")][plan["chosen"]]
                        off[method] = abs(record["value"]["median"][plan["chosen"]] - true)
            if off:
                each = ", ".join(f"{method} {error:,.1f}" for method, error in off.items())
                lines.append(f"- {task}, {pool}, the policy that was chosen: off by {each}")
    return lines


def table(records: list[Record], truths: list[Record], plans: list[Record] | None = None) -> str:
    """The pools as Markdown, discounted values first, then returns, and what they come to; `plans` are SOReL's."""
    lines = []
    for what, title in (("value", "Discounted value"), ("return", "Return, undiscounted")):
        lines += [f"{title}:", "", *_head()]
        for (task, pool, rows), methods in groups(records).items():
            for method, mine in methods.items():
                summary = pooled(mine, truths, what)
                if summary:
                    lines.append(_row(task, pool, rows, method, mine, summary))
        lines.append("")
    return "\n".join([*lines, *own(records, truths, plans or []), *account(records, truths)])


def _head() -> list[str]:
    return [
        "| task | pool | rows | method | logs × policies | error | bias | raw error | Spearman (least) "
        "| regret@1 (chance) | 90% interval covers | width | range covers | core-s | health |",
        "|---|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]


def _row(task: str, pool: str, rows: int, method: str, records: list[Record], f: Record) -> str:
    seconds = np.mean([r.get("core_seconds", r["seconds"]) for r in records])
    alone = covers(f["inside_range"]) if method == "predictive" else "–"
    count = f"{f['logs']} × {len(records[0]['policies'])}"
    return (
        f"| {task} | {pool} | {rows:,} | {method} | {count} | {f['error']:.3f} | {f['bias']:+.3f} "
        f"| {f['raw']:,.1f} | {f['spearman']:.2f} ({f['least']:.2f}) "
        f"| {f['regret']:.3f} ({f['chance']:.2f}) | {covers(f['inside'])} | {f['width']:.2f} | {alone} "
        f"| {seconds:.0f} | {health(records)} |"
    )


def split(records: list[Record], truths: list[Record]) -> list[str]:
    """The posterior's figures for policies whose imagined episodes stay where the log has been, and for others.

    Told apart by its own figure of health: the share of episodes that were stopped for leaving what the log knows.
    """
    lines = []
    for (task, pool, _), methods in groups(records).items():
        parts: dict[str, list[tuple[float, bool]]] = {"at most": [], "more than": []}
        for record in methods.get("predictive", []):
            truth = truth_of(record, truths)
            if truth is None or np.ptp(truth["value"]) == 0:
                continue
            true, size = np.array(truth["value"]), float(np.ptp(truth["value"]))
            off, pairs = np.abs(record["value"]["median"] - true) / size, np.array(record["value"]["interval"])
            inside = (pairs[:, 0] <= true) & (true <= pairs[:, 1])
            for each in zip(off.tolist(), inside.tolist(), record["health"]["guarded"], strict=True):
                parts["at most" if each[2] <= GUARDED else "more than"].append(each[:2])
        for word, judgements in parts.items():
            if judgements:
                off, inside = zip(*judgements, strict=True)
                lines.append(
                    f"- {task}, {pool}, {word} {GUARDED:.0%} of episodes stopped where the log ends: "
                    f"{len(judgements)} judgements, error {np.mean(off):.3f}, "
                    f"interval covers {covers(list(inside))}"
                )
    return lines


def account(records: list[Record], truths: list[Record]) -> list[str]:
    """Whether the posterior reaches what it is due to reach, pool by pool and over all of them."""
    lines, errors, rivals, ranks, inside = [], [], [], [], []
    for (task, pool, _), methods in groups(records).items():
        ours = pooled(methods.get("predictive", []), truths)
        theirs = pooled(methods.get("fqe", []), truths)
        if not ours or not theirs:
            continue
        errors, rivals = [*errors, ours["error"]], [*rivals, theirs["error"]]
        ranks, inside = [*ranks, ours["spearman"]], [*inside, *ours["inside"]]
        times = ours["error"] / max(theirs["error"], 1e-12)
        lines.append(
            f"- {task}, {pool}: the posterior's error is {times:.2f} of FQE's "
            f"({ours['error']:.3f} against {theirs['error']:.3f}), Spearman {ours['spearman']:.2f} against "
            f"{theirs['spearman']:.2f}, its interval covers {covers(ours['inside'])}"
        )
    if not errors:
        return ["nothing has been both judged and played yet"]
    ratio, rank, share = np.mean(errors) / max(np.mean(rivals), 1e-12), np.mean(ranks), np.mean(inside)
    yes = lambda reached: "reached" if reached else "NOT reached"
    return [
        *lines,
        *split(records, truths),
        f"- error over FQE's, on average: {ratio:.2f}, due {RATIO} at most: {yes(ratio <= RATIO)}",
        f"- Spearman on average: {rank:.2f}, due {RANK} at least: {yes(rank >= RANK)}",
        f"- interval covers {covers(inside)}, due {COVERS[0]:.0%} to {COVERS[1]:.0%}: "
        f"{yes(COVERS[0] <= share <= COVERS[1])}",
    ]


def draw(records: list[Record], truths: list[Record], path: Path) -> None:
    """Estimate against truth, the posterior's with its interval and FQE's, for each task and pool."""
    parts = groups(records)
    if not parts:
        return
    across = min(3, len(parts))
    down = -(-len(parts) // across)
    figure = Figure(figsize=(4.6 * across, 4.4 * down), layout="constrained")
    axes = np.ravel(figure.subplots(down, across))
    for axis in axes[len(parts) :]:
        axis.set_axis_off()
    for axis, ((task, pool, _), methods) in zip(axes, parts.items(), strict=False):
        _scatter(axis, methods.get("predictive", []), methods.get("fqe", []), truths)
        axis.set(title=f"{task}, {pool}", xlabel="true discounted value", ylabel="estimate")
        axis.legend(frameon=False, fontsize=8)
    with rc_context({"svg.hashsalt": path.stem}):  # same records, same file
        figure.savefig(path, metadata={"Date": None})


def _scatter(axis: Any, ours: list[Record], theirs: list[Record], truths: list[Record]) -> None:
    for records, colour, mark, label in (
        (theirs, "#d55e00", "x", "FQE"),
        (ours, "#0072b2", "o", "posterior, 90%"),
    ):
        for i, record in enumerate(records):
            truth = truth_of(record, truths)
            if truth is None:
                continue
            true, estimates = truth[quantity(record["method"], "value")], record["value"]
            if mark == "o":
                low, high = np.transpose(estimates["interval"])
                axis.vlines(true, low, high, color=colour, lw=1.5, alpha=0.35)
            axis.plot(true, estimates["median"], mark, color=colour, ms=4, alpha=0.8, label=None if i else label)
            axis.axline((true[0], true[0]), slope=1, color="0.6", lw=1, ls=":")
