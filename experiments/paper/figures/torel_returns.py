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
            marks = [("chosen by TOReL", float(one.true[one.chosen]), BLUE)]
            usual = one.row["default"]
            marks += [("default", float(np.mean(one.true[usual])), ORANGE)] if usual else []
            rows.append((one.name.removeprefix(f"{task} "), one.true.tolist(), marks))
        each.append((task, strips(rows)))
    title = "True returns of all settings, and of the chosen ones"
    return Drawn(every(found), {"torel_returns": panels("torel_returns", title, each)})


def every(found: list[Sweep]) -> str:
    cells = []
    for one in found:
        true, usual = one.true, one.row["default"]
        at = (true[one.chosen] - true.min()) / max(np.ptp(true), 1e-9)
        cells.append(
            [one.task, one.planner, one.seed, len(true), float(true.min()), float(np.median(true)),
             float(np.mean(true[usual])) if usual else None, float(true[one.chosen]), float(true.max()), float(at),
             "no spread" if one.flat else ""]
        )  # fmt: skip
    head = [
        "log",
        "planner",
        "seed",
        "policies",
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
