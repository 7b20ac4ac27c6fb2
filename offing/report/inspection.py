"""What was found in a log, for people: tables for a terminal, and a page that stands alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table
from rich.text import Text

from . import figures
from .page import _reason, environment
from .store import write, write_json
from .verdict import number, percent

RESULT = "inspect.json"
PAGE = "inspect.html"
TONES = {"SOReL": "go", "TOReL": "unsure", "neither yet": "stop"}
ADVICE = {
    "SOReL": "Diverse enough to learn worlds from, to plan in them, and to have the policy's value predicted.",
    "TOReL": "Tune an offline planner on it and have its policies ranked; it does not carry a promise of what "
    "they will earn.",
    "neither yet": "Neither SOReL nor TOReL can use it as it is.",
}
NUMBERS = {
    "mean": "mean",
    "std": "std",
    "min": "min",
    "q25": "25%",
    "median": "median",
    "q75": "75%",
    "max": "max",
}
LISTED = 24  # columns that a terminal lists
PRINTED = 200  # columns that the page lists
DRAWN = 12  # actions that the page draws


def save_inspection(out: Path, found: dict[str, Any]) -> None:
    """Writes the page, then `inspect.json`."""
    write(out / PAGE, page(found).encode())
    write_json(out / RESULT, found)


def page(found: dict[str, Any]) -> str:
    """The HTML page of what `inspect.json` holds."""
    return (
        environment()
        .get_template("inspection.html.jinja")
        .render(
            found=found,
            tone=TONES[found["answer"]["system"]],
            advice=ADVICE[found["answer"]["system"]],
            reasons=[_reason(text) for text in found["answer"]["reasons"]],
            facts=facts(found),
            tables=tables(found),
            most=PRINTED,
            pictures={name: Markup(text) for name, text in pictures(found).items()},
        )
    )


def facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Sizes, ends, returns and what was measured, a line each."""
    told, acts, cover, copies = (found[name] for name in ("episodes", "actions", "coverage", "copies"))
    space = f"{found['action_width']} {'choices' if found['action_kind'] == 'discrete' else 'continuous'}"
    lines = [
        ("rows", f"{found['rows']:,} ({found['bytes'] / 1e6:,.1f} MB)"),
        ("observations", f"{found['obs_width']}"),
        *([("no action changes", ", ".join(found["exogenous"][:24]))] if found["exogenous"] else []),
        ("actions", space),
        ("horizon, discount", f"{found['horizon']:,}, {found['discount']:g}"),
    ]
    if told is None:
        lines.append(("episodes", f"none: a bag of transitions, of which {found['ends']:,} end an episode"))
    else:
        ends = (
            f"{told['terminated']:,} ended, {told['at_horizon']:,} ran to the horizon, {told['cut']:,} cut short"
        )
        lines.append(("episodes", f"{told['count']:,}: {ends}"))
        lines.append(("steps that do not follow", percent(found["broken"])))
    how = (
        "choices foretold by the state" if found["action_kind"] == "discrete" else "actions explained by the state"
    )
    lines.append((how, percent(acts["foretold"])))
    left = "of choices" if found["action_kind"] == "discrete" else "of the range"
    lines.append(("left over in alike states", f"{percent(acts['left_over'])} {left}"))
    lines.append(("who drove it", controllers(acts["controllers"])))
    near, far = number(cover["median_distance"]), number(cover["far_distance"])
    near = f"{near} standard deviations a column (1 in 100: {far})"
    lines.append(("nearest row of another episode", near))
    lines.append(("directions it spreads in", f"{number(cover['directions'])} of {cover['width']}"))
    again = "" if not copies.get("episodes") else f"; {copies['episodes']:,} whole episodes"
    lines.append(
        ("rows that repeat another", f"{percent(copies['exact'])}, nearly {percent(copies['near'])}{again}")
    )
    if found["drift"] is None:
        lines.append(("drift", "not measured: too few rows, or drawn in random order"))
    else:
        moved = ", ".join(f"{name} {number(part['moved'])}" for name, part in found["drift"].items())
        lines.append(("drift, first to last quarter", f"{moved} standard deviations"))
    return lines


def controllers(told: dict[str, Any] | None) -> str:
    """How many ways of acting there are, in words."""
    if told is None:
        return "cannot be told: too few long episodes"
    if told["count"] is not None:
        share = percent(told["foretold"][told["count"] - 1])
        what = "one controller explains" if told["count"] == 1 else f"{told['count']} controllers by turns explain"
        return f"{what} {share}"
    what = "several ways of acting: " if told["alone"] > told["foretold"][0] + 0.1 else ""
    return f"{what}one controller explains {percent(told['foretold'][0])}, one an episode {percent(told['alone'])}"


def tables(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Head and rows of every table, cells as text."""
    told, acts = found["episodes"], found["actions"]
    sums = {"reward of a step": found["rewards"]}
    if told is not None:
        sums |= {"length": told["lengths"], "return": told["returns"]}
        if told["whole_returns"] is not None:
            sums["return of whole episodes"] = told["whole_returns"]
        sums["discounted return"] = told["discounted"]
    made = {"Rewards and episodes": _table(sums, {})}
    if found["action_kind"] == "discrete":
        shares = [
            [name, percent(share)] for name, share in zip(found["action_names"], acts["shares"], strict=True)
        ]
        made["Actions"] = {"head": ["", "taken"], "rows": shares}
    else:
        columns = dict(zip(found["action_names"], acts["columns"], strict=True))
        left = [percent(share) for share in acts["left_over_columns"]]
        allowed = [f"{number(c['low'])} to {number(c['high'])}" for c in acts["columns"]]
        made["Actions"] = _table(columns, {"allowed": allowed, "left over": left})
    seen = dict(zip(found["names"], found["observations"], strict=True))
    made["Observations"] = _table(seen, {"": [", ".join(_remarks(c)) for c in found["observations"]]})
    return made


def _table(columns: dict[str, dict[str, Any]], more: dict[str, list[str]]) -> dict[str, Any]:
    rows = [
        [name, *(number(column[key]) for key in NUMBERS), *(texts[i] for texts in more.values())]
        for i, (name, column) in enumerate(columns.items())
    ]
    return {"head": ["", *NUMBERS.values(), *more], "rows": rows}


def _remarks(column: dict[str, Any]) -> Iterator[str]:
    if column["constant"]:
        yield "constant"
    elif column["values"] <= 20:
        yield f"{column['values']} values"
    for wall in column["walls"]:
        if wall is not None:
            yield f"stops at {number(wall)}"


def printed(found: dict[str, Any]) -> Iterator[Table]:
    """The tables for a terminal."""
    head = Table(box=None, pad_edge=False, show_header=False, title_justify="left")
    head.add_column(style="dim", no_wrap=True)
    head.add_column()
    for name, value in facts(found):
        head.add_row(_plain(name), _plain(value))
    yield head
    for title, content in tables(found).items():
        table = Table(box=None, pad_edge=False, header_style="bold")
        for i, name in enumerate(content["head"]):
            left = i == 0 or not name
            table.add_column(title if i == 0 else name, justify="left" if left else "right", no_wrap=not left)
        for row in content["rows"][:LISTED]:
            table.add_row(*map(_plain, row))
        if len(content["rows"]) > LISTED:
            table.add_row(f"… and {len(content['rows']) - LISTED} more")
        yield table


def _plain(text: str) -> Text:
    return Text(text)  # brackets are not markup


def summary(found: dict[str, Any]) -> list[str]:
    """Notes, warnings and the answer with its reasons, the answer last."""
    answer = found["answer"]
    return [
        *(f"note: {note}" for note in found["notes"]),
        *(f"look: {warning}" for warning in answer["warnings"]),
        f"SOReL or TOReL? {answer['system']}. {ADVICE[answer['system']]}",
        *(f"  {reason}" for reason in answer["reasons"]),
    ]


def pictures(found: dict[str, Any]) -> dict[str, str]:
    """The page's pictures, by name."""
    made = {"follows": _follows(found), "actions": _actions(found)}
    if found["episodes"] is not None:
        made |= {"returns": _returns(found["episodes"]), "in_time": _in_time(found["episodes"])}
    return made


def _follows(found: dict[str, Any]) -> str:
    """How much of the actions is foretold: by the state, by controllers in turn, by each episode's own."""
    acts = found["actions"]
    told = acts["controllers"] or {"foretold": [], "alone": None}
    bars = {"state alone": acts["foretold"]}
    bars |= {f"{k} controllers by turns": s for k, s in enumerate(told["foretold"], 1) if k > 1}
    bars |= {"one an episode": told["alone"]} if told["alone"] is not None else {}
    places = np.arange(len(bars))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.barh(places, list(bars.values()), color=figures.BLUE, alpha=0.6, height=0.6)
        for place, share in zip(places, bars.values(), strict=True):
            axes.text(share + 0.015, float(place), percent(share), va="center", color=figures.INK)
        axes.set_yticks(places, list(bars))
        axes.set(xlim=(0, 1.2), ylim=(len(bars) - 0.4, -0.6), xticks=[])
        axes.tick_params(left=False)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)

    return figures.svg("follows", "How much of the actions is foretold, by what", 350, 50 + 32 * len(bars), paint)


def _actions(found: dict[str, Any]) -> str:
    """How often each choice was taken, or how actions spread over their range."""
    acts = found["actions"]

    def choices(figure: Figure) -> None:
        axes = figure.subplots()
        edges = np.arange(len(acts["shares"]) + 1) - 0.5
        axes.stairs(acts["shares"], edges, fill=True, color=figures.BLUE, alpha=0.6)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set(xlabel="choice", ylabel="share of rows")
        figures.plain_axis(axes.yaxis)

    def amounts(figure: Figure) -> None:
        drawn = acts["columns"][:DRAWN]
        for i, (axes, column) in enumerate(
            zip(figure.subplots(len(drawn), 1, squeeze=False)[:, 0], drawn, strict=True)
        ):
            low = column["low"]
            high = column["high"] if column["high"] > low else low + 1.0
            edges = np.linspace(low, high, len(column["histogram"]) + 1)
            axes.stairs(column["histogram"], edges, fill=True, color=figures.BLUE, alpha=0.6)
            axes.set(yticks=[], xticks=[low, high])
            axes.set_xticklabels([number(low), number(high)])
            axes.set_ylabel(f"[{i}]", rotation=0, va="center", labelpad=12)
            axes.spines["left"].set_visible(False)

    if found["action_kind"] == "discrete":
        return figures.svg("actions", "How often each choice was taken", 350, 200, choices)
    height = 60 + 52 * min(len(acts["columns"]), DRAWN)
    return figures.svg("actions", "How actions spread over their range", 350, height, amounts)


def _returns(told: dict[str, Any]) -> str:
    shape = told["returns"]["histogram"]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.stairs(shape["counts"], shape["edges"], fill=True, color=figures.BLUE, alpha=0.6)
        axes.axvline(told["returns"]["mean"], color=figures.ORANGE, linewidth=1.4)
        axes.set(xlabel="return of an episode", ylabel="episodes")
        figures.plain_axis(axes.xaxis)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))

    return figures.svg("returns", "Returns of the logged episodes", 350, 230, paint)


def _in_time(told: dict[str, Any]) -> str:
    line = told["in_time"]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        figures.grid(axes, "y")
        axes.plot(line["episode"], line["returns"], color=figures.BLUE, marker=".", markersize=4, linewidth=1.2)
        axes.set(xlabel="episode, in the log's order", ylabel="return", ylim=figures.limits(line["returns"], 0.08))
        figures.plain_axis(axes.xaxis)
        figures.plain_axis(axes.yaxis)

    return figures.svg("in_time", "Returns in the order of the log", 350, 230, paint)
