"""An explanation's pictures, as SVG text to stand inside a page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..report.canvas import BLUE, INK, LINE, MUTED, ORANGE, grid, plain_axis, svg
from ..report.figures import terms
from .explanation import Explanation

BINS = 10
COLUMNS = 3  # that are drawn
LONG = 60  # letters of a label


def pictures(explanation: Explanation) -> dict[str, Callable[[], str | None]]:
    """Every picture by name, to be drawn; None where there is nothing to draw."""
    return {
        "shares": lambda: shares(explanation) if explanation.discrete else None,
        "by_column": lambda: by_column(explanation),
        "regions": lambda: regions(explanation),
        "courses": lambda: courses(explanation),
        "worlds": lambda: worlds(explanation),
        "terms": lambda: terms(explanation.promised.terms),
    }


def top(explanation: Explanation) -> list[int]:
    """The columns that matter most for what is done."""
    return [int(i) for i in np.argsort(explanation.importance)[::-1][:COLUMNS]]


def shares(explanation: Explanation) -> str:
    """How often each choice is made at the log's states: by the policy and by the behaviour."""
    names = [_short(name) for name in explanation.shares]
    pairs = np.array(list(explanation.shares.values()))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        at = np.arange(len(names))
        axes.barh(at - 0.2, pairs[:, 0], 0.38, color=BLUE, label="the policy")
        axes.barh(at + 0.2, pairs[:, 1], 0.38, color=MUTED, alpha=0.6, label="the log")
        axes.set_yticks(at, names)
        axes.set(xlabel="share of choices at the log's states")
        axes.invert_yaxis()
        plain_axis(axes.xaxis)
        figure.legend(frameon=False, loc="outside upper left", ncols=2)

    return svg("shares", "Shares of choices", 560, 90 + 34 * len(names), paint)


def by_column(explanation: Explanation) -> str:
    """What is done by the columns that matter most, the policy beside the behaviour."""
    data = explanation.logged
    apart = np.abs(data.policy - data.behaviour).mean(0) / np.maximum(data.behaviour.std(0), 1e-9)
    action = int(apart.argmax())
    shown = top(explanation)

    def paint(figure: Figure) -> None:
        panels = np.atleast_1d(figure.subplots(1, len(shown), sharey=True))
        for axes, column in zip(panels, shown, strict=True):
            x = data.obs[:, column]
            edges = np.unique(np.quantile(x, np.linspace(0, 1, BINS + 1)))
            at = np.clip(np.searchsorted(edges, x, "right") - 1, 0, max(len(edges) - 2, 0))
            count = np.maximum(np.bincount(at), 1)
            middle = np.bincount(at, x) / count
            for rows, colour, label in ((data.behaviour, MUTED, "the log"), (data.policy, BLUE, "the policy")):
                axes.plot(
                    middle, np.bincount(at, rows[:, action]) / count, "o-", color=colour, label=label, ms=3.5
                )
            _titled(axes, explanation.names[column])
        what = "share of " if explanation.discrete else ""
        panels[0].set_ylabel(_short(what + explanation.action_names[action], 30))
        plain_axis(panels[0].yaxis)
        figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="outside upper left", ncols=2)

    return svg("by_column", "What is done, by the columns that matter most", 640, 250, paint)


def courses(explanation: Explanation) -> str:
    """Imagined episodes beside logged ones: the middle and the band of eight in ten, step by step."""
    data, episodes, shown = explanation.logged, explanation.imagined, top(explanation)
    steps = episodes.obs.shape[0]

    def band(axes: Axes, rows: list[np.ndarray], colour: str, label: str) -> None:
        full = [i for i, row in enumerate(rows) if len(row) >= 5]
        if full:
            low, middle, high = np.array([np.quantile(rows[i], (0.1, 0.5, 0.9)) for i in full]).T
            axes.fill_between(full, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(full, middle, color=colour, label=label)

    def paint(figure: Figure) -> None:
        panels = np.atleast_1d(figure.subplots(1, len(shown)))
        for axes, column in zip(panels, shown, strict=True):
            band(axes, [data.obs[data.time == t, column] for t in range(steps)], MUTED, "logged")
            band(axes, [episodes.obs[t][episodes.alive[t]][:, column] for t in range(steps)], BLUE, "imagined")
            _titled(axes, explanation.names[column])
            plain_axis(axes.yaxis)
        panels[len(panels) // 2].set_xlabel("step")
        figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="outside upper left", ncols=2)

    return svg("courses", "Imagined episodes beside logged ones", 640, 250, paint)


def regions(explanation: Explanation) -> str:
    """What every region brings beyond the behaviour, an episode."""
    order = sorted(explanation.regions, key=lambda region: -region.brings)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        at, brings = np.arange(len(order)), [region.brings for region in order]
        axes.barh(at, brings, 0.6, color=[BLUE if x >= 0 else ORANGE for x in brings])
        axes.axvline(0, color=LINE)
        axes.set_yticks(at, [_short(region.words) for region in order])
        axes.set(xlabel="return beyond the behaviour's, an episode")
        axes.invert_yaxis()
        plain_axis(axes.xaxis)

    return svg("regions", "What each region brings", 640, 80 + 30 * len(order), paint)


def worlds(explanation: Explanation) -> str:
    """What the policy earns in every world, from the worst to the best."""
    returns = np.sort(explanation.imagined.returns, 1)
    order = returns.mean(1).argsort()

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for place, m in enumerate(order):
            axes.plot([place, place], np.quantile(returns[m], (0.1, 0.9)), color=BLUE, alpha=0.3, linewidth=4)
        axes.scatter(np.arange(len(order)), returns.mean(1)[order], color=INK, s=22, zorder=3)
        axes.set(xlabel="worlds, from the worst to the best", ylabel="return", xticks=[])
        plain_axis(axes.yaxis)
        grid(axes, "y")

    return svg("worlds", "What the policy earns in each world", 560, 240, paint)


def _titled(axes: Axes, name: str) -> None:
    axes.set_title(_short(name, 24), fontsize=10, color=MUTED)
    plain_axis(axes.xaxis)


def _short(text: str, most: int = LONG) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
