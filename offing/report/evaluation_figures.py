"""The pictures of an evaluation's page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from ..value.estimators import PREDICTIVE
from ..value.left_out import LeftOut
from ..wording import number
from . import canvas
from .canvas import BLUE, INK, LINE, MUTED, ORANGE
from .evaluation import Evaluation

Curve = Callable[[np.ndarray], np.ndarray]
METHOD_COLOURS = (BLUE, ORANGE, "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
MARKS = "osD^vPX"


def policies(evaluation: Evaluation) -> str | None:
    """All policies in one picture: each one's return by the worlds, and by every method its discounted value."""
    names = list(evaluation.estimates)
    if len(names) < 2:
        return None
    order = sorted(names, key=lambda name: -np.nan_to_num(evaluation.earns(name).median, nan=-np.inf))
    earned = canvas.drawable([(evaluation.earns(n).median, *evaluation.earns(n).interval) for n in order])
    methods = list(dict.fromkeys(method for name in order for method in evaluation.estimates[name]))
    values = {m: canvas.drawable([_median(evaluation, name, m) for name in order]) for m in methods}
    at, logged = np.arange(len(order)), float(canvas.drawable([evaluation.behaviour.mean])[0])

    def paint(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        for axes in (left, right):
            canvas.grid(axes, "x")
            axes.tick_params(left=False)
            axes.spines["left"].set_visible(False)
            canvas.plain_axis(axes.xaxis)
        left.hlines(at, earned[:, 1], earned[:, 2], color=MUTED, linewidth=3)
        left.scatter(earned[:, 0], at, s=40, color=BLUE, zorder=3)
        if np.isfinite(logged):
            left.axvline(logged, color=ORANGE, linewidth=1.2, linestyle=(0, (4, 2)), label="logged behaviour")
        left.set_yticks(at, [_short(name) for name in order])
        left.set(xlabel="return of an episode", xlim=canvas.limits([*earned.ravel(), logged]))
        left.set_ylim(len(at) - 0.4, -0.6)
        for place, method in enumerate(methods):
            colour, mark = METHOD_COLOURS[place % len(METHOD_COLOURS)], MARKS[place % len(MARKS)]
            right.scatter(values[method], at, s=26, marker=mark, color=colour, label=method, alpha=0.85, zorder=3)
        right.set(xlabel="discounted value", xlim=canvas.limits(np.concatenate([*values.values()])))
        figure.legend(frameon=False, loc="outside upper left", ncols=4, columnspacing=1.2)

    return canvas.svg("policies", "Return and value of every policy", 720, 130 + 22 * len(at), paint)


def _median(evaluation: Evaluation, name: str, method: str) -> float:
    one = evaluation.estimates[name].get(method)
    return float("nan") if one is None else one.median


def _short(name: str, most: int = 28) -> str:
    return name if len(name) <= most else f"…{name[-(most - 1) :]}"


def methods(evaluation: Evaluation, name: str) -> str:
    """One policy's discounted value by every method, with intervals; the worlds' interval as a band."""
    rows = list(evaluation.estimates[name].items())
    middle = canvas.drawable([one.median for _, one in rows])
    ends = canvas.drawable([one.interval for _, one in rows]).reshape(-1, 2)
    at = np.arange(len(rows))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        canvas.grid(axes, "x")
        if np.isfinite(ends[0]).all():
            axes.axvspan(*ends[0], color=BLUE, alpha=0.1, linewidth=0)
        axes.hlines(at, ends[:, 0], ends[:, 1], color=MUTED, linewidth=3)
        well = [method == PREDICTIVE or not one.faults for method, one in rows]
        axes.scatter(middle, at, s=46, c=[BLUE if w else "none" for w in well], edgecolors=BLUE, zorder=3)
        axes.set_yticks(at, [method for method, _ in rows])
        axes.set(
            xlabel="discounted value", xlim=canvas.limits([*middle, *ends.ravel()]), ylim=(len(at) - 0.4, -0.6)
        )
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        canvas.plain_axis(axes.xaxis)

    return canvas.svg("methods", f"Value of {name} by method", 520, 90 + 28 * len(at), paint)


def past(evaluation: Evaluation) -> str | None:
    """What blocks of the log earned, against what was predicted of them."""
    if isinstance(evaluation.backtest, LeftOut) or not evaluation.backtest.blocks:
        return None
    blocks = evaluation.backtest.blocks
    logged = canvas.drawable([block.logged for block in blocks])
    middle = canvas.drawable([block.predicted for block in blocks])
    ends = canvas.drawable([block.interval for block in blocks]).reshape(-1, 2)
    inside = (ends[:, 0] <= logged) & (logged <= ends[:, 1])
    span = canvas.limits([*logged, *ends.ravel()])

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        canvas.grid(axes)
        axes.plot(span, span, color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
        axes.vlines(logged, ends[:, 0], ends[:, 1], color=LINE, linewidth=2.5)
        axes.scatter(logged, middle, s=30, c=[BLUE if i else ORANGE for i in inside], zorder=3)
        axes.set(xlabel="logged return", ylabel="predicted", xlim=canvas.limits(logged, 0.15), ylim=span)
        for axis in (axes.xaxis, axes.yaxis):
            canvas.plain_axis(axis)

    return canvas.svg("past", "Predicted against logged returns of the log's own behaviour", 350, 290, paint)


def far(evaluation: Evaluation) -> str | None:
    """Error and spread of the worlds by steps ahead."""
    curve = evaluation.horizon
    if curve is None or isinstance(curve, LeftOut):
        return None
    steps, error, spread = (canvas.drawable(each) for each in (curve.steps, curve.error, curve.spread))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        canvas.grid(axes)
        axes.plot(steps, error, color=ORANGE, marker="o", markersize=4, label="error")
        axes.plot(steps, spread, color=BLUE, linestyle=(0, (4, 2)), marker="s", markersize=4, label="spread")
        if curve.trusted:
            axes.axvline(curve.trusted, color=MUTED, linewidth=1.2, linestyle=(0, (1, 2)), label="trusted")
        if np.nanmax([*error, *spread], initial=0.0) > 0:
            axes.set_yscale("log", nonpositive="mask")
        axes.set(xlabel="steps ahead", ylabel="in widths of the observations")
        axes.set_xscale("log", base=2)
        axes.set_xticks(steps, [number(s) for s in steps])
        _plain_logs(axes.yaxis)
        figure.legend(frameon=False, loc="outside upper left", ncols=3, columnspacing=1.2)

    return canvas.svg("far", "Error and spread of the worlds by steps ahead", 350, 290, paint)


def loss(evaluation: Evaluation) -> str | None:
    """PIL against rows, and the law that it follows; dashed where nothing was seen."""
    if isinstance(evaluation.more_data, LeftOut):
        return None
    points, fitted = evaluation.more_data.points, evaluation.more_data.law
    rows, seen = canvas.drawable([(point.rows, point.pil) for point in points]).reshape(-1, 2).T
    law = lambda n: fitted.slope / n + fitted.floor
    return _against_rows("loss", "PIL against rows", "PIL, nats per step", rows, seen, law)


def width(evaluation: Evaluation, name: str) -> str | None:
    """Half-width of a policy's interval against rows, and its law; dashed where nothing was seen."""
    if isinstance(evaluation.more_data, LeftOut):
        return None
    width = evaluation.more_data.widths[name]
    if isinstance(width, LeftOut):
        return None
    rows, seen = canvas.drawable([(point.rows, point.half_width) for point in width.points]).reshape(-1, 2).T
    law = lambda n: np.sqrt(width.law.slope**2 / n + width.law.floor**2)
    title = f"Interval of {name} against rows"
    return _against_rows("width", title, "interval, ± of the return", rows, seen, law, width.target)


def _against_rows(
    kind: str, title: str, label: str, rows: np.ndarray, seen: np.ndarray, law: Curve, target: float | None = None
) -> str | None:
    if not len(rows) or not np.all(seen > 0) or not np.all(rows > 0):
        return None
    inside = np.geomspace(rows[0], rows[-1], 40)
    beyond = np.geomspace(rows[-1], 8 * rows[-1], 40)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        canvas.grid(axes)
        axes.plot(inside, law(inside), color=BLUE, linewidth=1.4)
        axes.plot(beyond, law(beyond), color=BLUE, linewidth=1.4, linestyle=(0, (3, 2)))
        axes.scatter(rows, seen, s=30, color=INK, zorder=3)
        if target is not None and 0 < target < canvas.LARGEST:
            axes.axhline(target, color=ORANGE, linewidth=1.2, linestyle=(0, (1, 2)))
        axes.set(xscale="log", yscale="log", xlabel="rows (dashed: extrapolated)", ylabel=label)
        ticks = [rows[0], rows[-1], 8 * rows[-1]]
        axes.set_xticks(ticks, [number(float(f"{t:.2g}")) for t in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
        _plain_logs(axes.yaxis)

    return canvas.svg(kind, title, 350, 270, paint)


def _plain_logs(axis: Any) -> None:
    axis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
    axis.set_minor_formatter(FuncFormatter(lambda y, _: number(y) if f"{y:e}"[0] in "25" else ""))
