"""Counterpart of fig:sorel_overall: on HalfCheetah and Hopper, the worlds' word and FQE's beside the truth."""

from __future__ import annotations

import numpy as np

from ..drawing import BLUE, GREEN, ORANGE, against, panels, table
from ..published import SOREL_ERROR
from .figure import Drawn, Figure, Record, Records, at, left_out, pairs, tasks, whole
from .sorel_rows import FQE, PROMISE, TRUE, WORLDS

SHOWN = ("halfcheetah", "hopper", "toy")
ENDLESS = "true.forgetful.endless"  # what FQE estimates
VALUES = (WORLDS, FQE, TRUE, ENDLESS)


def draw(records: Records) -> Drawn:
    every = [p for p in pairs(records, "sorel") if p["task"] in SHOWN]
    points = whole(every, *PROMISE)
    gone = left_out("Points", every, points), left_out("Values without history", points, whole(points, *VALUES))
    said = " ".join(sentence for sentence in gone if sentence)
    if not points:
        return Drawn(said)
    each = []
    for task in tasks(points):
        mine = [p for p in points if p["task"] == task]
        by = lambda path, mine=mine: [at(p, path) for p in whole(mine, *VALUES)]
        groups = [("worlds", by(TRUE), by(WORLDS), BLUE), ("FQE", by(ENDLESS), by(FQE), GREEN)]
        each.append((f"{task}: value without history", against(groups, "true value", "estimate")))
        approximate, real = regrets(mine)
        each.append((f"{task}: regret", against([("", real, approximate, ORANGE)], "true regret", "approximate")))
    title = "Value estimates beside the truth, and approximate regret beside true regret"
    pictures = {"sorel_overall": panels("sorel_overall", title, each, across=2)}
    return Drawn("\n\n".join(part for part in (said, errors(points), regret_words(points)) if part), pictures)


def off(points: list[Record], said: str, true: str) -> float | None:
    """The mean absolute difference of two numbers of points, or None where there are no points."""
    return float(np.mean([abs(at(p, said) - at(p, true)) for p in points])) if points else None


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
            judged = whole(mine, *VALUES)
            ours, theirs = SOREL_ERROR.get(task, (None, None)) if name == "calibrated" else (None, None)
            cells.append(
                [
                    task,
                    name,
                    len(mine),
                    off(mine, "predicted", "true.return"),
                    ours,
                    off(judged, WORLDS, TRUE),
                    off(judged, FQE, ENDLESS),
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
