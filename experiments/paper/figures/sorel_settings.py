"""Counterpart of fig:sorel_hyper_sweep: predicted against true over all settings, at the rows of the sweep."""

from __future__ import annotations

import numpy as np

from offing.value import metrics

from ..drawing import BLUE, GREEN, INK, ORANGE, against, panels, table
from ..published import SETTINGS_R
from .figure import Drawn, Figure, Record, Records, pairs, tasks
from .sorel_rows import SYSTEMS

COLOURS = {"memory": BLUE, "none": GREEN, "ours": INK}


def draw(records: Records) -> Drawn:
    swept = [p for p in pairs(records, "sorel") if p["true"]["every"] is not None]
    if not swept:
        return Drawn("")
    each, cells = [], []
    for task in tasks(swept):
        mine = [p for p in swept if p["task"] == task]
        groups = []
        for system in SYSTEMS:
            said, true = joined([p for p in mine if p["system"] == system])
            if len(said):
                groups.append((SYSTEMS[system], true, said, COLOURS[system]))
                cells.append([task, SYSTEMS[system], *figures(said, true), SETTINGS_R.get(task)])
        both = [(p["true"]["every"]["return"][p["chosen"]], p["scores"][p["chosen"]]) for p in mine]
        marks = [pair for pair in both if None not in pair]
        groups.append(("chosen", [true for true, _ in marks], [said for _, said in marks], ORANGE))
        each.append((task, against(groups, "true return", "predicted")))
    head = ["log", "system", "policies", "r", "p", "Spearman", "regret@1", "by chance", "paper's r"]
    title = "Predicted against true returns over settings"
    count, kept = sum(len(p["scores"]) for p in swept), len(joined(swept)[0])
    said = f"Policies: {count - kept} of {count} left out, whose numbers are not all finite.\n\n"
    return Drawn(
        said * (kept < count) + table(head, cells), {"sorel_settings": panels("sorel_settings", title, each)}
    )


def joined(points: list[Record]) -> tuple[list[float], list[float]]:
    """Predicted and true returns of all policies of some points, without those that diverged."""
    every = [pair for p in points for pair in zip(p["scores"], p["true"]["every"]["return"], strict=True)]
    kept = [(said, true) for said, true in every if said is not None and true is not None]
    return [said for said, _ in kept], [true for _, true in kept]


def figures(said: list[float], true: list[float]) -> list[object]:
    """How many, Pearson's r with its p, Spearman's, and regret@1 beside what a blind choice gives."""
    if len(said) < 3 or np.ptp(said) == 0 or np.ptp(true) == 0:
        return [len(said), None, None, None, None, None]
    r, blind = metrics.pearson(said, true), metrics.regret(said, true)
    return [len(said), r.value, r.p, metrics.spearman(said, true).value, blind.value, blind.chance]


figure = Figure("sorel_settings", "SOReL: predicted against true over settings", ("sorel/",), draw)
