"""Counterpart of fig:torel_barplot: true returns over four planners' grids, and of what TOReL chooses."""

from __future__ import annotations

import numpy as np

from ..drawing import BLUE, ORANGE, panels, strips, table
from .figure import Drawn, Figure, Records
from .sweeps import Sweep, sweeps


def draw(records: Records) -> Drawn:
    found = sweeps(records)
    if not found:
        return Drawn("")
    each = []
    for task in dict.fromkeys(one.task for one in found):
        rows = []
        for one in (one for one in found if one.task == task):
            chosen, usual = one.earned("predictive"), default(one)
            marks = [] if chosen is None else [("chosen by TOReL", chosen, BLUE)]
            marks += [] if usual is None else [("default", usual, ORANGE)]
            rows.append((one.name.removeprefix(f"{task} "), one.played.tolist(), marks))
        each.append((task, strips(rows)))
    title = "True returns of all settings, and of the chosen ones"
    return Drawn(every(found), {"torel_returns": panels("torel_returns", title, each)})


def default(one: Sweep) -> float | None:
    """The mean return of the planner's default settings, where the grid holds them and it is finite."""
    true = one.true[one.row["default"]]
    return float(true[np.isfinite(true)].mean()) if np.isfinite(true).any() else None


def every(found: list[Sweep]) -> str:
    """A line for every sweep, of the policies whose return is finite; how many are not stands beside."""
    cells = []
    for one in found:
        true, chosen = one.played, one.earned("predictive")
        if not len(true):
            cells.append([one.task, one.planner, one.seed, 0, len(one.true), *[None] * 6, ""])
            continue
        at = None if chosen is None else float((chosen - true.min()) / max(np.ptp(true), 1e-9))
        cells.append(
            [one.task, one.planner, one.seed, len(true), len(one.true) - len(true), float(true.min()),
             float(np.median(true)), default(one), chosen, float(true.max()), at, "no spread" if one.flat else ""]
        )  # fmt: skip
    head = [
        "log",
        "planner",
        "seed",
        "policies",
        "not finite",
        "worst",
        "median",
        "default",
        "chosen",
        "best",
        "chosen lies at",
        "",
    ]
    return table(head, cells)


figure = Figure("torel_returns", "TOReL: what its choices earn", ("torel/",), draw)
