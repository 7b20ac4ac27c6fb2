"""The pictures of an inspection's page, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..data.facts import (
    ActedIn,
    ActionFacts,
    Alignment,
    AmountFacts,
    Effect,
    Facts,
    Leak,
    RewardPart,
    UnitFacts,
)
from ..wording import number, percent
from . import canvas
from . import timeline_figures as timeline
from .bars import WIDTH, bars, short, stairs

DRAWN = 12  # actions, units or columns that one picture shows


def pictures(facts: Facts) -> dict[str, Markup]:
    """The page's pictures by name: those for which the log has something to show."""
    made = {"follows": _follows(facts.actions), "actions": _actions(facts)}
    if facts.episodes is not None:
        made |= {
            "returns": timeline.returns(facts.episodes.returns),
            "in_time": timeline.in_time(facts.episodes.in_time),
        }
        made["lengths"] = timeline.lengths(facts.episodes)
    if facts.units:
        made["units"] = _units(facts.units)
    if facts.clock is not None:
        made["clock"] = timeline.clock(facts.clock)
    if facts.jumps is not None:
        made["jumps"] = timeline.jumps(facts.jumps)
    if facts.drift is not None:
        dated = facts.clock is not None and facts.clock.dated
        made["drift"] = timeline.drift(facts.drift, dated)
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


def _follows(acts: ActionFacts) -> str:
    """How much of the actions is predicted: by the state, by controllers in turn, by each episode's own."""
    shares = {"state alone": acts.predicted}
    if acts.controllers is not None:
        shares |= {f"{k} controllers by turns": s for k, s in enumerate(acts.controllers.predicted, 1) if k > 1}
        shares["one an episode"] = acts.controllers.alone
    shown = [(label, share, percent(share)) for label, share in shares.items()]
    return bars("follows", "How much of the actions is predicted, by what", shown, most=1.0)


def _actions(facts: Facts) -> str:
    """How often each choice was taken, or how actions spread over their range."""
    acts = facts.actions
    if facts.action_kind == "continuous":
        height = 60 + 52 * min(len(acts.amounts), DRAWN)
        title = "How actions spread over their range"
        return canvas.svg("actions", title, WIDTH, height, _amounts(acts.amounts[:DRAWN], facts.action_names))
    title = "How often each choice was taken"
    if len(acts.shares) <= DRAWN:
        shown = [
            (name.split("=", 1)[-1], share, percent(share))
            for name, share in zip(facts.action_names, acts.shares, strict=True)
        ]
        return bars("actions", title, shown)

    def choices(figure: Figure) -> None:
        axes = figure.subplots()
        stairs(axes, acts.shares, (np.arange(len(acts.shares) + 1) - 0.5).tolist())
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set(xlabel="choice", ylabel="share of rows")
        canvas.plain_axis(axes.yaxis)

    return canvas.svg("actions", title, WIDTH, 200, choices)


def _amounts(amounts: Sequence[AmountFacts], names: Sequence[str]) -> Callable[[Figure], None]:
    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(amounts), 1, squeeze=False)[:, 0]
        for axes, amount, name in zip(panels, amounts, names, strict=False):
            high = amount.high if amount.high > amount.low else amount.low + 1.0
            stairs(axes, amount.histogram, np.linspace(amount.low, high, len(amount.histogram) + 1).tolist())
            axes.set(yticks=[], xticks=[amount.low, high])
            axes.set_xticklabels([number(amount.low), number(high)])
            axes.set_ylabel(short(name), rotation=0, va="center", ha="right")
            axes.spines["left"].set_visible(False)

    return paint


def _units(units: Sequence[UnitFacts]) -> str:
    shown = [(unit.name, unit.reward, f"{number(unit.reward)}, {unit.rows:,} rows") for unit in units[:DRAWN]]
    return bars("units", "Reward of a step, by unit", shown)


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
            _squares(axes, part, labels)

    rows = min(kinds, DRAWN)
    title = "Which actions were taken in which part of a column's range"
    return canvas.svg("acted_in", title, WIDTH, len(met) * (60 + 15 * rows), paint)


def _squares(axes: Axes, part: ActedIn, labels: Sequence[str]) -> None:
    """A square for each part of the range and each action: the fuller, the more often."""
    shares = np.asarray(part.shares)
    for i, row in enumerate(shares):
        for j, share in enumerate(row):
            if share > 0:
                axes.barh(j, 0.96, left=i + 0.02, height=0.9, color=canvas.BLUE, alpha=0.08 + 0.8 * float(share))
    every = max(1, -(-len(labels) // 6))
    axes.set_yticks(range(0, len(labels), every), [short(label) for label in labels[::every]])
    whole = len(part.edges) - 1
    marks = np.unique(np.linspace(0, whole, min(whole, 5) + 1).round().astype(int))
    axes.set_xticks(marks, [number(part.edges[mark]) for mark in marks])
    axes.set(xlim=(0, whole), ylim=(-0.6, len(labels) - 0.4), xlabel=short(part.name))
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _alignment(line: Alignment) -> str:
    parts = (("row before", line.before), ("its own", line.own), ("row after", line.after))
    shown = [(label, share, percent(share)) for label, share in parts]
    colours = [canvas.BLUE if label == "its own" else canvas.ORANGE for label, _ in parts]
    title = f"What each row's action alone tells of the steps of {line.column}"
    return bars("alignment", title, shown, colours)


def _effects(effects: Sequence[Effect]) -> str:
    most = sorted(effects, key=lambda effect: -effect.share)[: 2 * DRAWN]
    shown = [(effect.name, effect.share, percent(effect.share)) for effect in most]
    colours = [canvas.MUTED if effect.named else canvas.BLUE for effect in most]
    return bars("effects", "What the action tells of each column's next value", shown, colours, most=1.0)


def _leak(leak: Leak) -> str:
    parts = (
        ("observation", leak.state),
        ("+ action", leak.action),
        ("+ next observation", leak.step),
        ("+ row before", leak.before),
        ("+ row after the next", leak.after),
    )
    shown = [(label, share, percent(share)) for label, share in parts]
    colours = [canvas.BLUE] * 3 + [canvas.MUTED, canvas.ORANGE if leak.ahead else canvas.MUTED]
    return bars("leak", "How much of the reward is explained, by what", shown, colours, most=1.0)


def _reward_parts(parts: Sequence[RewardPart]) -> str:
    shown = [(part.text, part.mean, number(part.mean)) for part in parts[:DRAWN]]
    return bars("reward_parts", "What each part adds to the reward of a step, on average", shown)
