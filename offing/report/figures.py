"""A result's pictures as SVG text to stand inside a page, whose style sheet may recolour them.

They read a report and the returns of imagined episodes, so that a page can be made again from disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..pil import THRESHOLD
from ..wording import number
from .canvas import (
    BLUE,
    GREEN,
    INK,
    LARGEST,
    LINE,
    MUTED,
    ORANGE,
    drawable,
    finite,
    grid,
    limits,
    plain_axis,
    svg,
)
from .labels import differences
from .reports import ChosenWorlds, SavedPolicy, SorelReport

MOST = 24  # settings that one picture lists


def distribution(result: SorelReport, episodes: np.ndarray) -> str:
    """What new episodes will earn: single episodes, each world's average, the interval, what there is to beat.

    All of it corrected as the promise is.
    """
    earned = result.returns
    level = 100 * earned.level
    median, low, high = (float(x) for x in drawable([earned.median, *earned.interval]))
    baseline, logged = (float(x) for x in drawable([result.baseline, result.behaviour.mean]))
    rolled = drawable(episodes) if np.ndim(episodes) == 2 and np.size(episodes) else np.zeros((0, 1))
    if len(rolled) == len(earned.worlds):
        rolled = rolled + (drawable(earned.worlds) - rolled.mean(1))[:, None]
    returns, worlds = finite(rolled), finite(rolled.mean(1))
    tails = np.quantile(returns, (0.005, 0.995)) if len(returns) else np.zeros(0)
    left, right = limits(np.concatenate([tails, worlds, [median, low, high, baseline, logged]]))

    def paint(figure: Figure) -> None:
        top, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.3))
        top.hist(
            returns, bins=np.linspace(left, right, 61).tolist(), histtype="stepfilled", color=BLUE, alpha=0.35
        )
        top.set(yticks=[], ylabel="single\nepisodes")
        top.spines["left"].set_visible(False)
        top.tick_params(bottom=False)
        below.scatter(worlds, np.ones(len(worlds)), s=26, color=BLUE, alpha=0.75, linewidths=0)
        below.plot([low, high], [0, 0], color=INK, linewidth=5, alpha=0.35, solid_capstyle="butt")
        below.scatter([median], [0], s=44, color=INK, zorder=3)
        below.set_yticks([1, 0], ["each world", f"{level:g}% interval"])
        below.set(ylim=(-0.8, 1.7), xlim=(left, right), xlabel="return of an episode")
        below.tick_params(left=False)
        below.spines["left"].set_visible(False)
        plain_axis(below.xaxis)
        for axes in (top, below):
            axes.axvspan(low, high, color=BLUE, alpha=0.08, linewidth=0)
            axes.axvline(median, color=INK, linewidth=1.2)
            axes.axvline(baseline, color=ORANGE, linewidth=1.6, linestyle=(0, (4, 2)))
            if logged != baseline:
                axes.axvline(logged, color=MUTED, linewidth=1.2, linestyle=(0, (1, 2)))
        if logged != baseline:
            _name(top, logged, 1.02, f"logged {number(logged)}", MUTED)
        _name(top, baseline, 1.15, f"to beat {number(baseline)}", ORANGE)
        _name(top, median, 1.28, f"predicted {number(median)}", INK)

    return svg("distribution", "Distribution of the return of new episodes", 450, 270, paint)


def _name(axes: Axes, x: float, height: float, text: str, colour: str) -> None:
    """A word above the line at x, turned inwards near the edges."""
    if not np.isfinite(x):
        return
    left, right = axes.get_xlim()
    where = (x - left) / (right - left)
    side = "left" if where < 0.3 else "right" if where > 0.7 else "center"
    axes.text(x, height, text, color=colour, ha=side, transform=axes.get_xaxis_transform())


def calibration(worlds: ChosenWorlds) -> str:
    """E against V of every posterior setting; inside the wedge the worlds know how wrong they are."""
    settings, chosen = worlds.settings, worlds.chosen
    points = drawable([(s.error, s.spread) for s in settings]).reshape(-1, 2)
    points = np.where(points <= 0, np.nan, points)
    seen = finite(points)
    low, high = (seen.min() / 2, seen.max() * 2) if len(seen) else (0.1, 10.0)
    points = np.where(np.isnan(points), low, points)  # not positive: at the edge
    ratio = (1 + THRESHOLD) / (1 - THRESHOLD)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        line = np.array([low / 10, high * 10])
        axes.fill_between(line, line / ratio, line * ratio, color=GREEN, alpha=0.18, linewidth=0)
        axes.plot(line, line, color=GREEN, linewidth=1, linestyle=(0, (4, 2)))
        axes.scatter(*points.T, s=30, facecolors="none", edgecolors=BLUE, linewidths=1.4)
        axes.scatter(*points[[chosen]].T, s=80, color=ORANGE, marker="D", zorder=3)
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
        axes.set(xlabel="E, error on held-out rows", ylabel="V, spread between the worlds")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
            axis.set_minor_formatter(FuncFormatter(lambda x, _: ""))
        for x, y, text, side in ((0.03, 0.97, "over-dispersed", "left"), (0.97, 0.03, "over-confident", "right")):
            axes.text(
                x, y, text, color=MUTED, ha=side, va="top" if y > 0.5 else "bottom", transform=axes.transAxes
            )
        axes.annotate(
            "chosen", tuple(points[chosen]), (0, 9), textcoords="offset points", color=ORANGE, ha="center"
        )

    return svg("calibration", "Error against spread of every posterior tried", 350, 320, paint)


def settings(policy: SavedPolicy) -> str:
    """Every policy setting's return in held-out worlds and in its own, the best on top."""
    tried, chosen = policy.settings, policy.chosen
    labels = differences([each.setting for each in tried])
    held = drawable([s.score for s in tried])
    own = drawable([at_round(s.own, s.best) for s in tried])
    order = sorted(range(len(tried)), key=lambda i: (np.isnan(held[i]), -np.nan_to_num(held[i])))
    order = order[:MOST] if chosen in order[:MOST] else [*order[: MOST - 1], chosen]
    rows = np.arange(len(order))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        grid(axes, "x")
        axes.hlines(rows, held[order], own[order], color=LINE, linewidth=2)
        axes.scatter(
            own[order], rows, s=30, facecolors="none", edgecolors=MUTED, linewidths=1.4, label="training worlds"
        )
        axes.scatter(held[order], rows, s=34, color=BLUE, label="held-out worlds", zorder=3)
        best = order.index(chosen)
        axes.scatter(held[[chosen]], [best], s=80, color=ORANGE, marker="D", zorder=4, label="chosen")
        axes.set_yticks(rows, [labels[i] for i in order])
        axes.get_yticklabels()[best].set_color(ORANGE)
        axes.set(
            xlabel="predicted return", xlim=limits([*held[order], *own[order]]), ylim=(len(order) - 0.4, -0.6)
        )
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        plain_axis(axes.xaxis)
        figure.legend(frameon=False, loc="outside upper left", ncols=3, handletextpad=0.2, columnspacing=1.2)

    return svg("settings", "Predicted return of every policy setting tried", 350, 110 + 20 * len(order), paint)


def at_round(values: Sequence[float], index: int) -> float:
    return values[index] if 0 <= index < len(values) else np.nan


def planning(policy: SavedPolicy) -> str:
    """Return of the chosen setting round by round, in the worlds it was trained in and in others."""
    setting = policy.settings[policy.chosen]
    own, held, best = drawable(setting.own), drawable(setting.held), setting.best
    rounds = np.arange(1, len(held) + 1)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        grid(axes, "y")
        axes.plot(
            rounds, own, color=MUTED, linestyle=(0, (4, 2)), marker="o", markersize=4, markerfacecolor="none"
        )
        axes.plot(rounds, held, color=BLUE, marker="o", markersize=4)
        axes.scatter([best + 1], [at_round(list(held), best)], s=80, color=ORANGE, marker="D", zorder=3)
        axes.set(xlabel="round of planning", ylabel="predicted return", ylim=limits([*own, *held], 0.08))
        axes.set_xlim(0.5, max(len(held), 1) + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
        names = ("training worlds", "held-out worlds", "kept")
        handles = [*axes.lines, axes.collections[0]]
        figure.legend(handles, names, frameon=False, loc="outside upper left", ncols=3, columnspacing=1.2)

    return svg("planning", "Predicted return over the rounds of planning", 350, 270, paint)


def replay(worlds: ChosenWorlds) -> str | None:
    """Error against spread of the worlds by steps ahead, under logged actions; None if nothing was replayed."""
    curve = worlds.replay
    if curve is None or not curve.horizons:
        return None
    horizons = np.asarray(curve.horizons)
    scales = np.asarray(curve.scales, dtype=float)
    error, spread = drawable(curve.error), drawable(curve.spread)
    chosen = int(np.argmin(np.abs(scales - curve.scale)))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        grid(axes)
        others = [i for i in range(len(scales)) if i != chosen]
        for i in others:
            axes.plot(
                horizons,
                spread[i],
                color=LINE,
                linewidth=1.2,
                label="at other noise" if i == others[0] else "",
            )
        axes.plot(
            horizons, spread[chosen], color=BLUE, linestyle=(0, (4, 2)), marker="s", markersize=4, label="spread"
        )
        axes.plot(horizons, error[chosen], color=ORANGE, marker="o", markersize=4, label="error")
        positive = finite([error, spread])
        if np.any(positive > 0):
            axes.set_yscale("log", nonpositive="mask")
        axes.set_xscale("log", base=2)
        axes.set_xticks(horizons, [number(h) for h in horizons])
        axes.set(xlabel="steps ahead", ylabel="in units of the observations")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda y, _: ""))
        figure.legend(frameon=False, loc="outside upper left", ncols=3, columnspacing=1.2)

    return svg("replay", "Error and spread of the worlds by steps ahead", 350, 270, paint)


def terms(widths: Mapping[str, float]) -> str | None:
    """How far each source of doubt alone would let the interval reach either way; None if there is none."""
    shown_terms = {name: width for name, width in widths.items() if 0 < width <= LARGEST}
    if not shown_terms:
        return None
    names = sorted(shown_terms, key=lambda name: shown_terms[name])
    sizes = drawable([shown_terms[name] for name in names])

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.barh(np.arange(len(names)), sizes, color=BLUE, alpha=0.6, height=0.6)
        for place, size in enumerate(sizes):
            axes.annotate(number(size), (float(size), place), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(np.arange(len(names)), names)
        axes.set(xlabel="return, either way", xlim=(0, 1.15 * float(np.nanmax(sizes))))
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        plain_axis(axes.xaxis)

    return svg("terms", "What widened the interval", 520, 60 + 26 * len(names), paint)
