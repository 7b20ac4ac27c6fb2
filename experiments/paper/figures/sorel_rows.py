"""Counterpart of fig:sorel_5_panel: predicted and true value against rows, with history and without."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from offing.report import canvas

from ..drawing import BLUE, GREEN, INK, MUTED, ORANGE, Paint, legend, panels, table
from ..published import TIMES_BEST
from .figure import Drawn, Figure, Record, Records, at, left_out, pairs, tasks, whole

SYSTEMS = {"memory": "the paper's, with a GRU", "none": "the paper's, without memory", "ours": "ours"}
COLOURS = {"memory": BLUE, "none": GREEN, "ours": INK}


BEHAVIOUR = ("behaviour.mean", "behaviour.best", "behaviour.worst")
PROMISE = ("predicted", "interval", "true.return", "true.return_stderr", *BEHAVIOUR)  # what a point needs
WORLDS, FQE, TRUE = "forgetful.worlds.median", "forgetful.fqe.median", "true.forgetful.value"


def draw(records: Records) -> Drawn:
    every = pairs(records, "sorel")
    points = whole(every, *PROMISE)
    gone = [left_out("Points", every, points)]
    gone += [
        left_out(f"Values without history by {name}", points, whole(points, path, TRUE))
        for name, path in (("worlds", WORLDS), ("FQE", FQE))
    ]
    said = " ".join(sentence for sentence in gone if sentence)
    if not points:
        return Drawn(said)
    of = lambda task: [p for p in points if p["task"] == task]
    upper = [(f"{task}: return", promises(of(task))) for task in tasks(points)]
    lower = [(f"{task}: value without history", forgetful(of(task))) for task in tasks(points)]
    pictures = {
        "sorel_rows": panels("sorel_rows", "Predicted and true returns against rows", upper),
        "sorel_forgetful": panels(
            "sorel_forgetful", "Policies without their history, by worlds and by FQE", lower
        ),
    }
    return Drawn("\n\n".join(part for part in (said, summary(points), every_point(points)) if part), pictures)


def promises(points: list[Record]) -> Paint:
    """Interval, median and truth of every point; hollow where PIL says that worlds are not calibrated."""

    def draw(axis: Axes) -> None:
        systems = [name for name in SYSTEMS if any(p["system"] == name for p in points)]
        for shift, system in enumerate(systems):
            for p in (p for p in points if p["system"] == system):
                at = p["rows"] * 1.07 ** (3 * p["seed"] + shift - 4)
                axis.vlines(at, *p["interval"], color=COLOURS[system], lw=1.6, alpha=0.35)
                face = COLOURS[system] if p["pil"]["calibrated"] else "none"
                axis.plot(at, p["predicted"], "o", ms=4, mec=COLOURS[system], mfc=face)
                axis.plot(at, p["true"]["return"], "x", ms=5, color=ORANGE, mew=1.5)
            axis.plot([], [], "o", ms=4, color=COLOURS[system], label=SYSTEMS[system])
        axis.plot([], [], "x", color=ORANGE, label="true")
        axis.axhline(points[0]["behaviour"]["mean"], color=MUTED, ls=":", lw=1)
        axis.set(xscale="log", xlabel="rows")
        canvas.plain_axis(axis.yaxis)
        legend(axis)

    return draw


def forgetful(points: list[Record]) -> Paint:
    """Discounted value without history: by worlds, by FQE, and true."""

    def draw(axis: Axes) -> None:
        for path, mark, colour, label, shift in (
            (WORLDS, "o", BLUE, "worlds", 0.96),
            (FQE, "o", GREEN, "FQE", 1.04),
            (TRUE, "x", ORANGE, "true", 1.0),
        ):
            mine = whole(points, path)
            rows = [p["rows"] * shift for p in mine]
            axis.plot(rows, [at(p, path) for p in mine], mark, ms=4 + 2 * (mark == "x"), color=colour, label=label)
        axis.set(xscale="log", xlabel="rows")
        canvas.plain_axis(axis.yaxis)
        legend(axis)

    return draw


def mean_error(points: Sequence[Record]) -> float | None:
    """Mean absolute error of the promised return."""
    return float(np.mean([abs(p["predicted"] - p["true"]["return"]) for p in points])) if points else None


def summary(points: list[Record]) -> str:
    """Errors, coverage and verdicts by task and system."""
    cells = []
    for task in tasks(points):
        for system in SYSTEMS:
            mine = [p for p in points if (p["task"], p["system"]) == (task, system)]
            if not mine:
                continue
            go = [p for p in mine if p["verdict"] == "GO"]
            sure = [p for p in mine if p["pil"]["calibrated"]]
            wrong = sum(p["true"]["return"] <= p["behaviour"]["mean"] for p in go)
            times = max(p["true"]["return"] / p["behaviour"]["best"] for p in mine)
            inside = float(np.mean([p["true"]["inside"] for p in mine]))
            cells.append(
                [task, SYSTEMS[system], len(mine), inside, mean_error(mine), mean_error(sure), mean_error(go),
                 f"{len(go)}, {wrong} wrong", times if mine[0]["behaviour"]["best"] > 0 else None,
                 TIMES_BEST.get(task)]
            )  # fmt: skip
    head = [
        "log",
        "system",
        "points",
        "inside 90%",
        "error",
        "where calibrated",
        "at GO",
        "GO",
        "times the best logged",
        "paper",
    ]
    return table(head, cells)


def every_point(points: list[Record]) -> str:
    cells = []
    for p in sorted(points, key=lambda p: (p["task"], p["system"], p["rows"], p["seed"])):
        low, high = p["interval"]
        truth = f"{p['true']['return']:,.1f} ± {p['true']['return_stderr']:.1f}"
        cells.append(
            [p["task"], SYSTEMS[p["system"]], p["rows"], p["seed"], p["pil"]["total"], p["pil"]["word"],
             f"{p['predicted']:,.1f}", f"{low:,.1f} … {high:,.1f}", truth, p["true"]["inside"], p["verdict"]]
        )  # fmt: skip
    head = ["log", "system", "rows", "seed", "PIL", "", "predicted", "90% interval", "true", "inside", "verdict"]
    return "Every point:\n\n" + table(head, cells)


figure = Figure("sorel_rows", "SOReL: value against rows", ("sorel/",), draw)
