"""Counterpart of fig:d4rl_torel_barchart: what the choices of TOReL and of four estimators truly earn."""

from __future__ import annotations

import numpy as np

from offing.value import metrics

from ..drawing import BLUE, GREEN, INK, MUTED, ORANGE, panels, strips, table
from .figure import Drawn, Figure, Records
from .sweeps import NAMES, Sweep, sweeps

COLOURS = {"predictive": BLUE, "fqe": GREEN, "dualdice": ORANGE, "dr": INK, "is": MUTED}


def draw(records: Records) -> Drawn:
    found = [one for one in sweeps(records) if len(one.said) > 1]
    if not found:
        return Drawn("")
    each, cells = [], []
    for task in dict.fromkeys(one.task for one in found):
        rows = []
        for one in (one for one in found if one.task == task):
            marks = [(NAMES[s], float(one.true[one.choice(s)]), COLOURS[s]) for s in NAMES if s in one.said]
            rows.append((one.planner, one.true.tolist(), marks))
            cells.append([task, one.planner, *(regret(one, s) for s in NAMES), blind(one)])
        each.append((task, strips(rows)))
    head = ["log", "planner", *NAMES.values(), "a blind choice"]
    said = "Regret of the choice, as a share of the sweep's range (0: the best was chosen):\n\n"
    mean = ["mean", "", *(average([row[2 + i] for row in cells]) for i in range(len(NAMES) + 1))]
    title = "True returns of what each selector chooses"
    return Drawn(
        said + table(head, [*cells, mean]), {"selectors_returns": panels("selectors_returns", title, each)}
    )


def regret(one: Sweep, selector: str) -> float | None:
    if selector not in one.said:
        return None
    return float((one.true.max() - one.true[one.choice(selector)]) / max(np.ptp(one.true), 1e-9))


def blind(one: Sweep) -> float:
    return metrics.regret(one.true, one.true).chance


def average(values: list[object]) -> float | None:
    numbers = [value for value in values if isinstance(value, float)]
    return float(np.mean(numbers)) if numbers else None


figure = Figure("selectors_returns", "What each selector's choice earns", ("torel/", "judges/"), draw)
