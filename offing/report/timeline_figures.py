"""Pictures of a log's episodes and of its time: returns, lengths, clock, jumps and drift."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..data.facts import Clock, Drift, EpisodeFacts, EpisodeSpread, InTime, Jumps
from ..wording import number
from . import canvas
from .bars import WIDTH, short, stairs

DAY = 86_400
COLOURS = (canvas.ORANGE, canvas.BLUE, canvas.GREEN, canvas.INK, canvas.MUTED)


def returns(returns: EpisodeSpread) -> str:
    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        stairs(axes, returns.histogram.counts, returns.histogram.edges)
        axes.axvline(returns.mean, color=canvas.ORANGE, linewidth=1.4)
        axes.set(xlabel="return of an episode", ylabel="episodes")
        canvas.plain_axis(axes.xaxis)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))

    return canvas.svg("returns", "Returns of the logged episodes", WIDTH, 230, paint)


def in_time(line: InTime) -> str:
    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        canvas.grid(axes, "y")
        axes.plot(line.episode, line.returns, color=canvas.BLUE, marker=".", markersize=4, linewidth=1.2)
        axes.set(xlabel="episode, in the log's order", ylabel="return", ylim=canvas.limits(line.returns, 0.08))
        canvas.plain_axis(axes.xaxis)
        canvas.plain_axis(axes.yaxis)

    return canvas.svg("in_time", "Returns in the order of the log", WIDTH, 230, paint)


def lengths(episodes: EpisodeFacts) -> str:
    lengths = episodes.lengths

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        stairs(axes, lengths.histogram.counts, lengths.histogram.edges)
        axes.set(xlabel="steps of an episode", ylabel="episodes")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))

    return canvas.svg("lengths", "Lengths of the logged episodes", WIDTH, 230, paint)


def clock(clock: Clock) -> str:
    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        counts = np.asarray(clock.steps.counts, float)
        stairs(axes, counts.tolist(), clock.steps.edges)
        axes.set_yscale("symlog", linthresh=1.0)
        axes.set_ylim(0, 2 * max(counts.max(), 1.0))
        axes.set(xlabel="time between rows, in usual steps (10 or more)", ylabel="steps")
        canvas.plain_axis(axes.xaxis)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))

    return canvas.svg("clock", "Time between neighbouring rows of a unit", WIDTH, 230, paint)


def jumps(jumps: Jumps) -> str:
    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for shape, colour, label in (
            (jumps.drawn, canvas.MUTED, "rows at random"),
            (jumps.steps, canvas.BLUE, "steps"),
        ):
            total = max(sum(shape.counts), 1)
            stairs(axes, [count / total for count in shape.counts], shape.edges, colour, label)
        axes.set(xlabel="standard deviations a column", ylabel="share")
        canvas.plain_axis(axes.xaxis)
        canvas.plain_axis(axes.yaxis)
        axes.legend(frameon=False, fontsize=9)

    return canvas.svg("jumps", "How far a step leads, beside rows drawn at random", WIDTH, 230, paint)


def drift(drift: Drift, dated: bool) -> str:
    dated = dated and drift.by == "time"

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        canvas.grid(axes, "y")
        for line, colour in zip(drift.lines, COLOURS, strict=False):
            axes.plot(drift.at, line.means, color=colour, linewidth=1.3, label=short(line.name))
        axes.set(ylabel="standard deviations", xlabel="time" if drift.by == "time" else "row")
        axes.set_ylim(canvas.limits(np.concatenate([line.means for line in drift.lines]), 0.08))
        canvas.plain_axis(axes.yaxis)
        canvas.plain_axis(axes.xaxis)
        if dated:
            axes.xaxis.set_major_locator(MaxNLocator(3))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _date(x, drift.at[-1] - drift.at[0])))
        axes.legend(frameon=False, fontsize=8.5, ncols=2, loc="lower center", bbox_to_anchor=(0.45, 1.0))

    return canvas.svg("drift", "Means of the reward and of what moves most, over time", WIDTH, 250, paint)


def _date(seconds: float, length: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d" if length > 3 * DAY else "%d %b %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""
