"""The pictures of an evaluation's page, from the plain dictionary of `evaluation.json`."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from . import figures
from .figures import BLUE, INK, LINE, MUTED, ORANGE
from .verdict import number


def methods(told: dict[str, Any], name: str) -> str:
    """One policy's discounted value by every method, with intervals; the worlds' interval as a band."""
    rows = list(told["estimates"][name].items())
    middle = figures.drawable([one["median"] for _, one in rows])
    ends = figures.drawable([one["interval"] for _, one in rows]).reshape(-1, 2)
    at = np.arange(len(rows))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        figures.grid(axes, "x")
        axes.axvspan(*ends[0], color=BLUE, alpha=0.1, linewidth=0)
        axes.hlines(at, ends[:, 0], ends[:, 1], color=MUTED, linewidth=3)
        well = [method == "predictive" or not one["faults"] for method, one in rows]
        axes.scatter(middle, at, s=46, c=[BLUE if w else "none" for w in well], edgecolors=BLUE, zorder=3)
        axes.set_yticks(at, [method for method, _ in rows])
        axes.set(
            xlabel="discounted value", xlim=figures.limits([*middle, *ends.ravel()]), ylim=(len(at) - 0.4, -0.6)
        )
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        figures.plain_axis(axes.xaxis)

    return figures.svg("methods", f"Value of {name} by method", 520, 90 + 28 * len(at), paint)


def past(told: dict[str, Any]) -> str | None:
    """What blocks of the log earned, against what was foretold of them."""
    blocks = told["backtest"].get("blocks")
    if not blocks:
        return None
    logged = figures.drawable([block["logged"] for block in blocks])
    middle = figures.drawable([block["predicted"] for block in blocks])
    ends = figures.drawable([block["interval"] for block in blocks])
    inside = (ends[:, 0] <= logged) & (logged <= ends[:, 1])
    span = figures.limits([*logged, *ends.ravel()])

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        figures.grid(axes)
        axes.plot(span, span, color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
        axes.vlines(logged, ends[:, 0], ends[:, 1], color=LINE, linewidth=2.5)
        axes.scatter(logged, middle, s=30, c=[BLUE if i else ORANGE for i in inside], zorder=3)
        axes.set(xlabel="logged return", ylabel="foretold", xlim=figures.limits(logged, 0.15), ylim=span)
        for axis in (axes.xaxis, axes.yaxis):
            figures.plain_axis(axis)

    return figures.svg("past", "Foretold against logged returns of the log's own behaviour", 350, 290, paint)


def far(told: dict[str, Any]) -> str | None:
    """Error and spread of the worlds by steps ahead."""
    found = told["horizon"]
    if found is None:
        return None
    steps, error, spread = (figures.drawable(found[name]) for name in ("steps", "error", "spread"))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        figures.grid(axes)
        axes.plot(steps, error, color=ORANGE, marker="o", markersize=4, label="error")
        axes.plot(steps, spread, color=BLUE, linestyle=(0, (4, 2)), marker="s", markersize=4, label="spread")
        if found["trusted"]:
            axes.axvline(found["trusted"], color=MUTED, linewidth=1.2, linestyle=(0, (1, 2)), label="trusted")
        axes.set(yscale="log", xlabel="steps ahead", ylabel="in widths of the observations")
        axes.set_xscale("log", base=2)
        axes.set_xticks(steps, [number(s) for s in steps])
        _plain_logs(axes.yaxis)
        figure.legend(frameon=False, loc="outside upper left", ncols=3, columnspacing=1.2)

    return figures.svg("far", "Error and spread of the worlds by steps ahead", 350, 290, paint)


def loss(told: dict[str, Any]) -> str | None:
    """PIL against rows, and the law that it follows; dashed where nothing was seen."""
    found = told["more_data"]
    rows = figures.drawable([point["rows"] for point in found["points"]])
    seen = figures.drawable([point["pil"] for point in found["points"]])
    law = lambda n: found["law"]["slope"] / n + found["law"]["floor"]
    return _against_rows("loss", "PIL against rows", "PIL, nats a step", rows, seen, law)


def width(told: dict[str, Any], name: str) -> str | None:
    """Half-width of a policy's interval against rows, and its law; dashed where nothing was seen."""
    found = told["more_data"]["widths"][name]
    rows = figures.drawable([point["rows"] for point in found["points"]])
    seen = figures.drawable([point["half_width"] for point in found["points"]])
    law = lambda n: np.sqrt(found["law"]["slope"] ** 2 / n + found["law"]["floor"] ** 2)
    title = f"Interval of {name} against rows"
    return _against_rows("width", title, "interval, ± of the return", rows, seen, law, found["target"])


def _against_rows(
    kind: str, title: str, label: str, rows: np.ndarray, seen: np.ndarray, law: Any, target: float | None = None
) -> str | None:
    if not np.all(seen > 0):
        return None
    inside = np.geomspace(rows[0], rows[-1], 40)
    beyond = np.geomspace(rows[-1], 8 * rows[-1], 40)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        figures.grid(axes)
        axes.plot(inside, law(inside), color=BLUE, linewidth=1.4)
        axes.plot(beyond, law(beyond), color=BLUE, linewidth=1.4, linestyle=(0, (3, 2)))
        axes.scatter(rows, seen, s=30, color=INK, zorder=3)
        if target is not None:
            axes.axhline(target, color=ORANGE, linewidth=1.2, linestyle=(0, (1, 2)))
        axes.set(xscale="log", yscale="log", xlabel="rows (dashed: extrapolated)", ylabel=label)
        ticks = [rows[0], rows[-1], 8 * rows[-1]]
        axes.set_xticks(ticks, [number(float(f"{t:.2g}")) for t in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
        _plain_logs(axes.yaxis)

    return figures.svg(kind, title, 350, 270, paint)


def _plain_logs(axis: Any) -> None:
    axis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
    axis.set_minor_formatter(FuncFormatter(lambda y, _: number(y) if f"{y:e}"[0] in "25" else ""))
