"""Beyond the paper: what each part of the worlds, of the planning and of the judging is worth."""

from __future__ import annotations

import numpy as np

from ..drawing import BLUE, ORANGE, against, panels, table
from .figure import Drawn, Figure, Record, Records, left_out, pairs, tasks, whole

NEEDED = ("pil.total", "pil.error", "pil.spread", "predicted", "true.return")


def draw(records: Records) -> Drawn:
    every = pairs(records, "ablations")
    found = whole(every, *NEEDED)
    gone = left_out("Plans", every, found)
    if not found:
        return Drawn(gone)
    cells, each = [], []
    for task in tasks(found):
        mine = [row for row in found if row["task"] == task]
        for case in dict.fromkeys(row["case"] for row in mine):
            cells.append(line(task, case, [row for row in mine if row["case"] == case]))
        plain = [row for row in mine if row["case"] == "as it is"]
        groups = [
            (label, [r["true"]["return"] for r in rows], [r["predicted"] for r in rows], colour)
            for label, rows, colour in (
                ("as it is", plain, BLUE),
                ("one thing changed", [r for r in mine if r not in plain], ORANGE),
            )
            if rows
        ]
        each.append((task, against(groups, "true return", "promised")))
    head = [
        "log",
        "case",
        "seeds",
        "PIL",
        "E",
        "V",
        "promised",
        "true",
        "error",
        "inside 90%",
        "controllers: error",
        "covered",
    ]
    title = "What was promised against what came, one thing changed at a time"
    text = "\n\n".join(part for part in (gone, table(head, cells)) if part)
    return Drawn(text, {"ablations": panels("ablations", title, each)})


def line(task: str, case: str, rows: list[Record]) -> list[object]:
    """Means over seeds."""
    mean = lambda of: float(np.mean([of(row) for row in rows]))
    known = whole(rows, "hands.off", "hands.inside")
    hand = lambda key: mean(lambda row: row["hands"][key]) if len(known) == len(rows) else None
    return [
        task, case, len(rows), mean(lambda r: r["pil"]["total"]), mean(lambda r: r["pil"]["error"]),
        mean(lambda r: r["pil"]["spread"]), mean(lambda r: r["predicted"]), mean(lambda r: r["true"]["return"]),
        mean(lambda r: abs(r["predicted"] - r["true"]["return"])), mean(lambda r: r["true"]["inside"]),
        hand("off"), hand("inside"),
    ]  # fmt: skip


figure = Figure("ablations", "What each part is worth", ("ablations/",), draw)
