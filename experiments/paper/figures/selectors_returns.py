"""Counterpart of fig:d4rl_torel_barchart: what the choices of TOReL and of four estimators truly earn."""

from __future__ import annotations

import numpy as np

from ..drawing import BLUE, GREEN, INK, MUTED, ORANGE, panels, strips, table
from .figure import Drawn, Figure, Records
from .sweeps import NAMES, Sweep, left_out, sweeps

COLOURS = {"predictive": BLUE, "fqe": GREEN, "dualdice": ORANGE, "dr": INK, "is": MUTED}


def draw(records: Records) -> Drawn:
    found = [one for one in sweeps(records) if len(one.said) > 1]
    if not found:
        return Drawn("")
    each, cells = [], []
    for task in dict.fromkeys(one.task for one in found):
        rows = []
        for one in (one for one in found if one.task == task):
            marks = [(NAMES[s], one.earned(s), COLOURS[s]) for s in NAMES if s in one.said]
            shown = [(name, earned, colour) for name, earned, colour in marks if earned is not None]
            rows.append((one.planner, one.played.tolist(), shown))
            cells.append([task, one.planner, *(regret(one, s) for s in NAMES), one.blind()])
        each.append((task, strips(rows)))
    head = ["log", "planner", *NAMES.values(), "a blind choice"]
    said = "Regret of the choice, as a share of the sweep's range (0: the best was chosen):\n\n"
    whole = [row for row in cells if None not in row]
    columns = range(2, len(head))
    mean = [f"mean of {len(whole)} whole rows", "", *(average([row[i] for row in whole]) for i in columns)]
    title = "True returns of what each selector chooses"
    text = "\n\n".join(part for part in (left_out(found), said + table(head, [*cells, mean])) if part)
    return Drawn(text, {"selectors_returns": panels("selectors_returns", title, each)})


def regret(one: Sweep, selector: str) -> float | None:
    """A sweep and a selector in; the regret of its choice out, or None where it makes none."""
    return one.regret(selector) if selector in one.said else None


def average(values: list[object]) -> float | None:
    """The mean of the numbers among these, or None where there are none."""
    found = [value for value in values if isinstance(value, float)]
    return float(np.mean(found)) if found else None


figure = Figure("selectors_returns", "What each selector's choice earns", ("torel/", "judges/"), draw)
