"""Counterpart of fig:brax_datasets: what the agents earned that made the logs."""

from __future__ import annotations

from matplotlib.axes import Axes

from offing.report import canvas

from ..drawing import BLUE, Paint, panels, table
from .figure import Drawn, Figure, Record, Records


def line(n: Record) -> Paint:
    def draw(axis: Axes) -> None:
        axis.plot(n["steps"], n["returns"], color=BLUE)
        axis.set(xlabel="steps", ylabel="return")
        canvas.plain_axis(axis.xaxis)
        canvas.plain_axis(axis.yaxis)

    return draw


def draw(records: Records) -> Drawn:
    logs = {name.partition("/")[2]: record["numbers"] for name, record in records.items()}
    each = [(name, line(n)) for name, n in logs.items() if "returns" in n]
    rows = [
        [name, n["rows"], n["episodes"], min(n["returns"]), n["best"], "ours" if n.get("ours") else "replay"]
        for name, n in logs.items()
        if "returns" in n
    ]
    head = ["log", "rows", "episodes", "least on the way", "best", ""]
    title = "Returns of the agents that made the logs"
    return Drawn(table(head, rows), {"training_curves": panels("training_curves", title, each)} if each else {})


figure = Figure("training_curves", "Training curves of the agents that made the logs", ("logs/",), draw)
