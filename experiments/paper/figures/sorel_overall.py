"""Counterpart of fig:sorel_overall: on HalfCheetah and Hopper, the worlds' word and FQE's beside the truth."""

from __future__ import annotations

import numpy as np

from ..drawing import BLUE, GREEN, ORANGE, against, panels, table
from ..published import SOREL_ERROR
from .figure import Drawn, Figure, Record, Records, pairs, tasks

SHOWN = ("halfcheetah", "hopper", "toy")


def draw(records: Records) -> Drawn:
    points = [p for p in pairs(records, "sorel") if p["task"] in SHOWN]
    if not points:
        return Drawn("")
    each = []
    for task in tasks(points):
        mine = [p for p in points if p["task"] == task]
        true = lambda key, mine=mine: [p["true"]["forgetful"][key] for p in mine]
        by = lambda key, mine=mine: [p["forgetful"][key]["median"] for p in mine]
        groups = [("worlds", true("value"), by("worlds"), BLUE), ("FQE", true("endless"), by("fqe"), GREEN)]
        each.append((f"{task}: value without history", against(groups, "true value", "estimate")))
        approximate, real = regrets(mine)
        each.append((f"{task}: regret", against([("", real, approximate, ORANGE)], "true regret", "approximate")))
    title = "Value estimates beside the truth, and approximate regret beside true regret"
    pictures = {"sorel_overall": panels("sorel_overall", title, each, across=2)}
    return Drawn("\n\n".join([errors(points), regret_words(points)]), pictures)


def errors(points: list[Record]) -> str:
    """Mean absolute errors of returns, and of values without history by worlds and by FQE; the paper's beside."""
    cells = []
    for task in tasks(points):
        for name, some in (
            ("all", lambda p: True),
            ("calibrated", lambda p: p["pil"]["calibrated"]),
            ("GO", lambda p: p["verdict"] == "GO"),
        ):
            mine = [p for p in points if p["task"] == task and some(p)]
            if not mine:
                continue
            off = lambda said, true, mine=mine: float(np.mean([abs(said(p) - true(p)) for p in mine]))
            ours, theirs = SOREL_ERROR.get(task, (None, None)) if name == "calibrated" else (None, None)
            cells.append(
                [
                    task,
                    name,
                    len(mine),
                    off(lambda p: p["predicted"], lambda p: p["true"]["return"]),
                    ours,
                    off(lambda p: p["forgetful"]["worlds"]["median"], lambda p: p["true"]["forgetful"]["value"]),
                    off(lambda p: p["forgetful"]["fqe"]["median"], lambda p: p["true"]["forgetful"]["endless"]),
                    theirs,
                ]
            )
    head = [
        "log",
        "points",
        "of them",
        "error of the promised return",
        "paper's SOReL",
        "value without history: worlds",
        "FQE",
        "paper's FQE (return)",
    ]
    return table(head, cells)


def regrets(points: list[Record]) -> tuple[list[float], list[float]]:
    """Approximate and true regret against the best policy that was ever played there, over its range."""
    truths = [p["true"]["return"] for p in points]
    size = max(truths) - min(min(truths), points[0]["behaviour"]["worst"]) or 1.0
    real = [(max(truths) - t) / size for t in truths]
    return [(max(truths) - p["predicted"]) / size for p in points], real


def regret_words(points: list[Record]) -> str:
    said = []
    for task in tasks(points):
        approximate, real = regrets([p for p in points if p["task"] == task])
        flat = len(real) < 3 or np.ptp(real) == 0 or np.ptp(approximate) == 0
        r = "too few that differ" if flat else f"r {np.corrcoef(approximate, real)[0, 1]:.2f}"
        said.append(f"{task} {r}")
    return f"Approximate against true regret over points: {', '.join(said)}."


figure = Figure("sorel_overall", "SOReL's value beside FQE's and the truth", ("sorel/",), draw)
