"""The tables of docs/results/sorel.md, from the records of version 0.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

MANY = 200_000  # rows from which points are counted apart
# least and most that an episode can earn, where a task sets it: what errors are measured against
SPAN = {"pendulum": (-1_700.0, 0.0), "cartpole": (0.0, 500.0)}


def table(records: list[dict[str, Any]]) -> str:
    """The points as Markdown, and what they come to."""
    lines = [
        "| task | rows | seed | memory | PIL | | predicted | 90% interval | realised | inside | verdict | s |",
        "|---|--:|--:|---|--:|---|--:|--:|--:|---|---|--:|",
    ]
    for r in sorted(records, key=lambda r: (r["task"], r["core"], r["rows"], r["seed"])):
        low, high = r["interval"]
        word = r.get("word", "calibrated" if r["calibrated"] else "not calibrated")
        truth = f"{r['realised']:,.1f} ± {r['stderr']:.1f}" if "realised" in r else "–"
        lines.append(
            f"| {r['task']} | {r['rows']:,} | {r['seed']} | {r['core']} | {r['pil']:.3g} | {word} "
            f"| {r['predicted']:,.1f} | {low:,.1f} … {high:,.1f} | {truth} "
            f"| {'yes' if r.get('inside') else 'no'} | {r['verdict']} | {r['seconds']:.0f} |"
        )
    return "\n".join([*lines, "", *account(records)])


def account(records: list[dict[str, Any]]) -> list[str]:
    """Coverage, error and correlation, task by task, over calibrated points and over all."""
    lines = []
    done = [r for r in records if "realised" in r]
    for task in dict.fromkeys(r["task"] for r in done):
        for core in dict.fromkeys(r["core"] for r in done if r["task"] == task):
            mine = [r for r in done if r["task"] == task and r["core"] == core]
            kinds = {"calibrated": [r for r in mine if r["calibrated"]], "all": mine}
            if any(r["rows"] >= MANY for r in mine):
                more = {
                    f"{n}, {MANY:,} rows or more": [r for r in k if r["rows"] >= MANY] for n, k in kinds.items()
                }
                kinds |= more
            for what, some in kinds.items():
                if not some:
                    lines.append(f"{task}, {core}: no {what} points")
                    continue
                error = np.mean([abs(r["predicted"] - r["realised"]) for r in some])
                cover = np.mean([r["inside"] for r in some])
                part = ""
                if task in SPAN:
                    part = f" ({error / (SPAN[task][1] - SPAN[task][0]):.1%} of the range of returns)"
                lines.append(
                    f"{task}, {core}, {what}: {len(some)} points, interval covers {cover:.0%}, "
                    f"mean absolute error {error:.1f}{part}"
                )
            if task not in SPAN:
                times, top = max((r["realised"] / r["behaviour"]["best"], r["realised"]) for r in mine)
                lines.append(f"{task}, {core}: at best {top:,.0f}, {times:.2f} times the best tenth of its log")
            pairs = [
                (a, b)
                for r in mine
                for a, b in zip(r["sweep"], r.get("realised_sweep", []), strict=False)
                if r["rows"] == 200_000
            ]
            if len(pairs) > 2:
                r = np.corrcoef(np.transpose(pairs))[0, 1]
                lines.append(f"{task}, {core}: correlation over {len(pairs)} settings at 200,000 rows {r:.2f}")
    wrong = [r for r in done if r["verdict"] == "GO" and r["realised"] <= r["behaviour"]["mean"]]
    lines.append(f"GO given {sum(r['verdict'] == 'GO' for r in done)} times, wrongly {len(wrong)} times")
    return lines


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Predicted median and interval beside the realised return, against rows; hollow where not calibrated."""
    tasks = list(dict.fromkeys(r["task"] for r in records))
    figure = Figure(figsize=(5.2 * len(tasks), 4), layout="constrained")
    for axis, task in zip(np.ravel(figure.subplots(1, len(tasks))), tasks, strict=True):
        mine = [r for r in records if r["task"] == task and "realised" in r]
        for i, r in enumerate(mine):
            at = r["rows"] * 1.06 ** (r["seed"] * 2 - 2 + (r["core"] == "none"))
            low, high = r["interval"]
            colour = "#0072b2" if r["core"] != "none" else "#56b4e9"
            axis.plot(
                [at, at], [low, high], color=colour, lw=2, alpha=0.5, label="90% interval" if not i else None
            )
            face = colour if r["calibrated"] else "none"
            axis.plot(at, r["predicted"], "o", mec=colour, mfc=face, label="predicted" if not i else None)
            axis.plot(at, r["realised"], "x", color="#d55e00", mew=2, label="realised" if not i else None)
        if mine:
            axis.axhline(mine[-1]["behaviour"]["mean"], color="0.6", ls=":", label="logged behaviour")
        axis.set(title=task, xscale="log", xlabel="rows", ylabel="return")
        sizes = sorted({r["rows"] for r in mine})
        axis.set_xticks(sizes, [f"{rows:,}" for rows in sizes])
        axis.minorticks_off()
        axis.legend(frameon=False, fontsize=8)
    with rc_context({"svg.hashsalt": path.stem}):  # same records, same file
        figure.savefig(path, metadata={"Date": None})
