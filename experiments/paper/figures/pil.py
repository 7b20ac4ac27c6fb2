"""Beyond the paper's figures: PIL against rows, and what tuning by PIL chooses (its Algorithm 1, first line)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from ..drawing import BLUE, INK, ORANGE, Paint, legend, panels, table
from .figure import Drawn, Figure, Record, Records, tasks


def draw(records: Records) -> Drawn:
    of = lambda kind: [{**r["settings"], **r["numbers"]} for name, r in records.items() if f"/{kind}-" in name]
    rows, tuned = of("rows"), of("tuned")
    each = [(task, curves([row for row in rows if row["task"] == task])) for task in tasks(rows)]
    pictures = {"pil": panels("pil", "Posterior information loss against rows", each)} if each else {}
    blocks = [against_rows(rows)] if rows else []
    blocks += [choices(tuned)] if tuned else []
    return Drawn("\n\n".join(blocks), pictures)


def curves(rows: list[Record]) -> Paint:
    """E, V and PIL of every seed."""

    def draw(axis: Axes) -> None:
        for key, colour, label in (
            ("error", ORANGE, "error E"),
            ("spread", BLUE, "spread V"),
            ("total", INK, "PIL"),
        ):
            axis.plot(
                [r["rows"] for r in rows], [r["pil"][key] for r in rows], "o", ms=4, color=colour, label=label
            )
        axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="nats per step")
        legend(axis)

    return draw


def against_rows(rows: list[Record]) -> str:
    """PIL by task and rows, geometric means over seeds."""
    cells = []
    for task in tasks(rows):
        for size in sorted({r["rows"] for r in rows if r["task"] == task}):
            mine = [r["pil"] for r in rows if (r["task"], r["rows"]) == (task, size)]
            mean = lambda key, mine=mine: float(np.exp(np.mean([np.log(one[key]) for one in mine])))
            released = float(np.exp(np.mean([np.log(one["released"]["total"]) for one in mine])))
            imbalance = float(np.mean([one["imbalance"] for one in mine]))
            words = ", ".join(dict.fromkeys(one["word"] for one in mine))
            cells.append(
                [task, size, len(mine), mean("error"), mean("spread"), mean("total"), released, imbalance, words]
            )
    head = ["log", "rows", "seeds", "E", "V", "PIL", "released code's PIL", "imbalance", ""]
    return table(head, cells)


def choices(tuned: list[Record]) -> str:
    """What PIL chooses, beside the best and the worst in hindsight and settings that nobody chose."""
    cells, chosen_at = [], []
    for row in tuned:
        tried = [one for one in row["tried"] if one["kind"] == "tried"]
        offs = [one["off"] for one in tried]
        chosen = next((one["off"] for one in tried if one["chosen"]), None)
        likely = tried[int(np.argmin([one["nll"] for one in tried]))]["off"]
        named = {one["kind"]: one["off"] for one in row["tried"] if one["kind"] != "tried"}
        cells.append(
            [
                row["task"],
                row["rows"],
                row["seed"],
                chosen,
                likely,
                min(offs),
                max(offs),
                *(named.get(k) for k in DEFAULTS),
            ]
        )
        chosen_at.append((chosen, min(offs), named))
    head = ["log", "rows", "seed", "chosen by PIL", "by likelihood", "best", "worst", *DEFAULTS]
    both = [(c, b) for c, b, _ in chosen_at if c is not None]
    mean = lambda values: float(np.mean(values)) if len(values) else float("nan")
    said = (
        f"Error of the worlds' word on written controllers, as a share of their range; on average over "
        f"{len(tuned)} logs {mean([c for c, _ in both]):.3f} chosen by PIL, {mean([b for _, b in both]):.3f} the "
        f"best in hindsight"
    )
    for name in DEFAULTS:
        values = [named[name] for _, _, named in chosen_at if name in named]
        said += f", {mean(values):.3f} the {name}" if values else ""
    return said + ":\n\n" + table(head, cells)


DEFAULTS = ("library default", "paper's table")
figure = Figure("pil", "PIL against rows, and tuning by it", ("posterior/rows-", "posterior/tuned-"), draw)
