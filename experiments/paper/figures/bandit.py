"""Counterpart of fig:d4rl_torel_regret_sample_efficiency: an online bandit over the policies of a sweep."""

from __future__ import annotations

from matplotlib.axes import Axes

from offing.report import canvas

from ..drawing import BLUE, GREEN, INK, Paint, legend, panels, table
from ..published import ONLINE
from .figure import Drawn, Figure, Record, Records, pairs


def draw(records: Records) -> Drawn:
    rows = pairs(records, "torel")
    if not rows:
        return Drawn("")
    each = [(f"{row['task']} {row['planner']} {row['seed'] or ''}", curves(row)) for row in rows]
    cells = [cell for row in rows for cell in needed(row)]
    head = [
        "log",
        "planner",
        "seed",
        "arms",
        "TOReL's choice earns",
        "the bandit names at the end",
        "samples to match",
        "paper (ReBRAC, 20 arms)",
    ]
    said = "A dash: not within 200 pulls. TOReL used no sample.\n\n"
    title = "What an online bandit names, against the samples that it spent"
    return Drawn(said + table(head, cells), {"bandit": panels("bandit", title, each, across=4)})


def curves(row: Record) -> Paint:
    """The bandit's curve over twenty arms and over all, and the worth of TOReL's choice."""

    def draw(axis: Axes) -> None:
        for colour, (among, curve) in zip((BLUE, GREEN), row["true"]["bandit"].items(), strict=False):
            worth = [float("nan") if v is None else v for v in curve["worth"]]
            axis.plot(curve["samples"], worth, color=colour, label=f"{among} arms")
            low, high = ([float("nan") if v is None else v for v in curve[k]] for k in ("low", "high"))
            axis.fill_between(curve["samples"], low, high, color=colour, alpha=0.2, lw=0)
        if row["true"]["target"] is not None:
            axis.axhline(row["true"]["target"], color=INK, lw=1, ls=":", label="TOReL")
        axis.set(xlabel="online samples", ylabel="true return")
        canvas.plain_axis(axis.xaxis)
        canvas.plain_axis(axis.yaxis)
        legend(axis)

    return draw


def needed(row: Record) -> list[list[object]]:
    cells = []
    for among, curve in row["true"]["bandit"].items():
        theirs = ONLINE.get(row["task"]) if row["planner"] == "rebrac" else None
        target, last = row["true"]["target"], curve["worth"][-1]
        cells.append([row["task"], row["planner"], row["seed"], int(among), target, last, curve["needed"], theirs])
    return cells


figure = Figure("bandit", "An online bandit beside TOReL's choice", ("torel/",), draw)
