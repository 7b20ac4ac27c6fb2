"""The pictures of an inspection's page, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..data.facts import (
    ActedIn,
    ActionFacts,
    Alignment,
    AmountFacts,
    Clock,
    Drift,
    Effect,
    EpisodeFacts,
    EpisodeSpread,
    Facts,
    InTime,
    Jumps,
    Leak,
    RewardPart,
    UnitFacts,
)
from . import figures
from .verdict import number, percent

DRAWN = 12  # actions, units or columns that one picture shows
LONGEST = 30  # letters of a label
WIDTH = 350
DAY = 86_400
COLOURS = (figures.ORANGE, figures.BLUE, figures.GREEN, figures.INK, figures.MUTED)


def pictures(facts: Facts) -> dict[str, Markup]:
    """The page's pictures by name: those for which the log has something to show."""
    made = {"follows": _follows(facts.actions), "actions": _actions(facts)}
    if facts.episodes is not None:
        made |= {"returns": _returns(facts.episodes.returns), "in_time": _in_time(facts.episodes.in_time)}
        made["lengths"] = _lengths(facts.episodes)
    if facts.units:
        made["units"] = _units(facts.units)
    if facts.clock is not None:
        made["clock"] = _clock(facts.clock)
    if facts.jumps is not None:
        made["jumps"] = _jumps(facts.jumps)
    if facts.drift is not None:
        dated = facts.clock is not None and facts.clock.dated
        made["drift"] = _drift(facts.drift, dated)
    if facts.acted_in:
        made["acted_in"] = _acted_in(facts)
    if facts.alignment is not None:
        made["alignment"] = _alignment(facts.alignment)
    if facts.effects:
        made["effects"] = _effects(facts.effects)
    if facts.leak is not None:
        made["leak"] = _leak(facts.leak)
    if facts.reward_parts:
        made["reward_parts"] = _reward_parts(facts.reward_parts)
    return {name: Markup(text) for name, text in made.items()}


def _bars(
    name: str,
    title: str,
    bars: Sequence[tuple[str, float, str]],
    colours: Sequence[str] | None = None,
    most: float | None = None,
) -> str:
    """Lying bars, each with its name and its number in words."""
    places = np.arange(len(bars))
    sizes = [size for _, size, _ in bars]
    top = most if most is not None else max(max(map(abs, sizes), default=0.0), 1e-9)
    low = -top if min(sizes, default=0.0) < 0 else 0.0

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.barh(places, sizes, color=list(colours or [figures.BLUE] * len(bars)), alpha=0.6, height=0.6)
        for place, (_, size, text) in zip(places, bars, strict=True):
            axes.text(
                max(size, 0.0) + (0.05 if low < 0 else 0.015) * top,
                float(place),
                text,
                va="center",
                color=figures.INK,
            )
        axes.set_yticks(places, [_short(label) for label, _, _ in bars])
        axes.set(xlim=(1.05 * low, 1.3 * top), ylim=(len(bars) - 0.4, -0.6), xticks=[])
        axes.tick_params(left=False)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)

    return figures.svg(name, title, WIDTH, 50 + 26 * len(bars), paint)


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def _stairs(
    axes: Axes, counts: Sequence[float], edges: Sequence[float], colour: str = figures.BLUE, label: str = ""
) -> None:
    axes.stairs(counts, edges, fill=True, color=colour, alpha=0.5, label=label or None)


def _follows(acts: ActionFacts) -> str:
    """How much of the actions is predicted: by the state, by controllers in turn, by each episode's own."""
    bars = {"state alone": acts.predicted}
    if acts.controllers is not None:
        bars |= {f"{k} controllers by turns": s for k, s in enumerate(acts.controllers.predicted, 1) if k > 1}
        bars["one an episode"] = acts.controllers.alone
    shown = [(label, share, percent(share)) for label, share in bars.items()]
    return _bars("follows", "How much of the actions is predicted, by what", shown, most=1.0)


def _actions(facts: Facts) -> str:
    """How often each choice was taken, or how actions spread over their range."""
    acts = facts.actions
    if facts.action_kind == "continuous":
        height = 60 + 52 * min(len(acts.amounts), DRAWN)
        title = "How actions spread over their range"
        return figures.svg("actions", title, WIDTH, height, _amounts(acts.amounts[:DRAWN], facts.action_names))
    title = "How often each choice was taken"
    if len(acts.shares) <= DRAWN:
        shown = [
            (name.split("=", 1)[-1], share, percent(share))
            for name, share in zip(facts.action_names, acts.shares, strict=True)
        ]
        return _bars("actions", title, shown)

    def choices(figure: Figure) -> None:
        axes = figure.subplots()
        _stairs(axes, acts.shares, (np.arange(len(acts.shares) + 1) - 0.5).tolist())
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set(xlabel="choice", ylabel="share of rows")
        figures.plain_axis(axes.yaxis)

    return figures.svg("actions", title, WIDTH, 200, choices)


def _amounts(amounts: Sequence[AmountFacts], names: Sequence[str]) -> Callable[[Figure], None]:
    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(amounts), 1, squeeze=False)[:, 0]
        for axes, amount, name in zip(panels, amounts, names, strict=False):
            high = amount.high if amount.high > amount.low else amount.low + 1.0
            _stairs(axes, amount.histogram, np.linspace(amount.low, high, len(amount.histogram) + 1).tolist())
            axes.set(yticks=[], xticks=[amount.low, high])
            axes.set_xticklabels([number(amount.low), number(high)])
            axes.set_ylabel(_short(name), rotation=0, va="center", ha="right")
            axes.spines["left"].set_visible(False)

    return paint


def _returns(returns: EpisodeSpread) -> str:
    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        _stairs(axes, returns.histogram.counts, returns.histogram.edges)
        axes.axvline(returns.mean, color=figures.ORANGE, linewidth=1.4)
        axes.set(xlabel="return of an episode", ylabel="episodes")
        figures.plain_axis(axes.xaxis)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))

    return figures.svg("returns", "Returns of the logged episodes", WIDTH, 230, paint)


def _in_time(line: InTime) -> str:
    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        figures.grid(axes, "y")
        axes.plot(line.episode, line.returns, color=figures.BLUE, marker=".", markersize=4, linewidth=1.2)
        axes.set(xlabel="episode, in the log's order", ylabel="return", ylim=figures.limits(line.returns, 0.08))
        figures.plain_axis(axes.xaxis)
        figures.plain_axis(axes.yaxis)

    return figures.svg("in_time", "Returns in the order of the log", WIDTH, 230, paint)


def _lengths(episodes: EpisodeFacts) -> str:
    lengths = episodes.lengths

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        _stairs(axes, lengths.histogram.counts, lengths.histogram.edges)
        axes.set(xlabel="steps of an episode", ylabel="episodes")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))

    return figures.svg("lengths", "Lengths of the logged episodes", WIDTH, 230, paint)


def _units(units: Sequence[UnitFacts]) -> str:
    shown = [(unit.name, unit.reward, f"{number(unit.reward)}, {unit.rows:,} rows") for unit in units[:DRAWN]]
    return _bars("units", "Reward of a step, by unit", shown)


def _clock(clock: Clock) -> str:
    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        counts = np.asarray(clock.steps.counts, float)
        _stairs(axes, counts.tolist(), clock.steps.edges)
        axes.set_yscale("symlog", linthresh=1.0)
        axes.set_ylim(0, 2 * max(counts.max(), 1.0))
        axes.set(xlabel="time between rows, in usual steps (10 or more)", ylabel="steps")
        figures.plain_axis(axes.xaxis)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y)))

    return figures.svg("clock", "Time between neighbouring rows of a unit", WIDTH, 230, paint)


def _jumps(jumps: Jumps) -> str:
    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for shape, colour, label in (
            (jumps.drawn, figures.MUTED, "rows at random"),
            (jumps.steps, figures.BLUE, "steps"),
        ):
            total = max(sum(shape.counts), 1)
            _stairs(axes, [count / total for count in shape.counts], shape.edges, colour, label)
        axes.set(xlabel="standard deviations a column", ylabel="share")
        figures.plain_axis(axes.xaxis)
        figures.plain_axis(axes.yaxis)
        axes.legend(frameon=False, fontsize=9)

    return figures.svg("jumps", "How far a step leads, beside rows drawn at random", WIDTH, 230, paint)


def _drift(drift: Drift, dated: bool) -> str:
    dated = dated and drift.by == "time"

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        figures.grid(axes, "y")
        for line, colour in zip(drift.lines, COLOURS, strict=False):
            axes.plot(drift.at, line.means, color=colour, linewidth=1.3, label=_short(line.name))
        axes.set(ylabel="standard deviations", xlabel="time" if drift.by == "time" else "row")
        axes.set_ylim(figures.limits(np.concatenate([line.means for line in drift.lines]), 0.08))
        figures.plain_axis(axes.yaxis)
        figures.plain_axis(axes.xaxis)
        if dated:
            axes.xaxis.set_major_locator(MaxNLocator(3))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _date(x, drift.at[-1] - drift.at[0])))
        axes.legend(frameon=False, fontsize=8.5, ncols=2, loc="lower center", bbox_to_anchor=(0.45, 1.0))

    return figures.svg("drift", "Means of the reward and of what moves most, over time", WIDTH, 250, paint)


def _date(seconds: float, length: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d" if length > 3 * DAY else "%d %b %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""


def _acted_in(facts: Facts) -> str:
    """Shares of the actions by parts of the columns that they follow most."""
    met = facts.acted_in
    discrete = facts.action_kind == "discrete"
    kinds = len(met[0].shares[0])
    if discrete:
        labels = [name.split("=", 1)[-1] for name in facts.action_names[:kinds]]
    else:
        low, high = facts.actions.amounts[0].low, facts.actions.amounts[0].high
        labels = [number(low + (high - low) * (i + 0.5) / kinds) for i in range(kinds)]

    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(met), 1, squeeze=False)[:, 0]
        for axes, part in zip(panels, met, strict=True):
            _heat(axes, part, labels)

    rows = min(kinds, DRAWN)
    title = "Which actions were taken in which part of a column's range"
    return figures.svg("acted_in", title, WIDTH, len(met) * (60 + 15 * rows), paint)


def _heat(axes: Axes, part: ActedIn, labels: Sequence[str]) -> None:
    """A square for each part of the range and each action: the fuller, the more often."""
    shares = np.asarray(part.shares)
    for i, row in enumerate(shares):
        for j, share in enumerate(row):
            if share > 0:
                axes.barh(j, 0.96, left=i + 0.02, height=0.9, color=figures.BLUE, alpha=0.08 + 0.8 * float(share))
    every = max(1, -(-len(labels) // 6))
    axes.set_yticks(range(0, len(labels), every), [_short(label) for label in labels[::every]])
    whole = len(part.edges) - 1
    marks = np.unique(np.linspace(0, whole, min(whole, 5) + 1).round().astype(int))
    axes.set_xticks(marks, [number(part.edges[mark]) for mark in marks])
    axes.set(xlim=(0, whole), ylim=(-0.6, len(labels) - 0.4), xlabel=_short(part.name))
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _alignment(line: Alignment) -> str:
    parts = (("row before", line.before), ("its own", line.own), ("row after", line.after))
    shown = [(label, share, percent(share)) for label, share in parts]
    colours = [figures.BLUE if label == "its own" else figures.ORANGE for label, _ in parts]
    title = f"What each row's action alone tells of the steps of {line.column}"
    return _bars("alignment", title, shown, colours)


def _effects(effects: Sequence[Effect]) -> str:
    most = sorted(effects, key=lambda effect: -effect.share)[: 2 * DRAWN]
    shown = [(effect.name, effect.share, percent(effect.share)) for effect in most]
    colours = [figures.MUTED if effect.named else figures.BLUE for effect in most]
    return _bars("effects", "What the action tells of each column's next value", shown, colours, most=1.0)


def _leak(leak: Leak) -> str:
    parts = (
        ("observation", leak.state),
        ("+ action", leak.action),
        ("+ next observation", leak.step),
        ("+ row before", leak.before),
        ("+ row after the next", leak.after),
    )
    shown = [(label, share, percent(share)) for label, share in parts]
    colours = [figures.BLUE] * 3 + [figures.MUTED, figures.ORANGE if leak.ahead else figures.MUTED]
    return _bars("leak", "How much of the reward is explained, by what", shown, colours, most=1.0)


def _reward_parts(parts: Sequence[RewardPart]) -> str:
    shown = [(part.text, part.mean, number(part.mean)) for part in parts[:DRAWN]]
    return _bars("reward_parts", "What each part adds to the reward of a step, on average", shown)
