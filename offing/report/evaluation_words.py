"""What an evaluation found, in sentences; read off the plain dictionary of `evaluation.json`."""

from __future__ import annotations

from typing import Any

from .disagree import WORDS
from .verdict import number, percent


def headline(told: dict[str, Any], name: str) -> str:
    """What a policy will earn, by the worlds."""
    earned = told["estimates"][name]["predictive"]["return"]
    low, high = earned["interval"]
    return (
        f"{name} will earn about {number(earned['median'])} an episode, with {earned['level']:.0%} probability "
        f"between {number(low)} and {number(high)}; the logged behaviour earned "
        f"{number(told['behaviour']['mean'])}."
    )


def past(told: dict[str, Any]) -> list[str]:
    """How the log's own behaviour was foretold, and what that shows and does not."""
    found = told["backtest"]
    if "left_out" in found:
        return [f"The log's own behaviour could not be foretold: {found['left_out']}."]
    blocks = found["blocks"]
    mean = lambda what: (
        sum(block[what] * block["episodes"] for block in blocks) / sum(b["episodes"] for b in blocks)
    )
    said = [
        "The log's own behaviour, cloned and foretold by worlds that did not learn from it: "
        f"{number(mean('predicted'))} on average where {number(mean('logged'))} was logged; of {len(blocks)} "
        f"blocks {found['inside']} lie inside their {found['level']:.0%} interval."
    ]
    factor = found["conformal"]["factor"]
    if factor is None:
        said.append(f"No conformal interval: {found['conformal']['note']}.")
    else:
        said.append(
            f"The conformal interval multiplies deviations by {factor:.2f} and {found['conformal']['note']}."
        )
    return said


def far(told: dict[str, Any]) -> str:
    """How many steps ahead the worlds know how wrong they are."""
    found = told["horizon"]
    if found is None:
        return "The log has no runs of steps, so nothing says how far ahead the worlds can be trusted."
    steps, of = found["trusted"], told["task"]["horizon"]
    if steps == 0:
        return (
            "From the first step on, the worlds are surer than they should be where held-out actions are replayed."
        )
    share = f"{number(steps)} of the task's {number(of)} steps ({percent(steps / of)})"
    if steps == found["steps"][-1]:
        reach = "" if steps >= of else ", as far as logged runs of steps could be replayed"
        return (
            f"Where held-out actions are replayed, the worlds' error stays within their spread for {share}{reach}."
        )
    return (
        f"Where held-out actions are replayed, the worlds' error stays within their spread for {share}; further "
        "ahead they are surer than they should be, and a policy that does not correct itself is misjudged."
    )


def more(told: dict[str, Any], name: str) -> str:
    """How many rows more another interval would take."""
    found, rows = told["more_data"]["widths"][name], told["rows"]
    now, target, low, high = found["now"], found["target"], *found["between"]
    aim = f"an interval of ±{number(target)} for {name} (it is ±{number(now)})"
    if found["rows"] is None:
        some = "" if low is None else f" (at best {_rows(low - rows)} more would)"
        return (
            f"By extrapolation, no number of rows like these gives {aim}: its width has all but stopped "
            f"falling{some}. Rows from where the policy goes would be others."
        )
    if found["rows"] <= rows:
        return f"The log already has rows enough for {aim}."
    least = found["rows"] if low is None else low
    most = "on, without end," if high is None else f"to {_rows(high - rows)}"
    return (
        f"By extrapolation: about {_rows(found['rows'] - rows)} more rows like these for {aim}; anything from "
        f"{_rows(least - rows)} {most} is compatible with what was seen."
    )


def _rows(count: float) -> str:
    """Two digits of a count: more are not known."""
    return f"{float(f'{max(count, 0.0):.2g}'):,.0f}"


def missing(told: dict[str, Any], name: str) -> list[str]:
    """Why some methods say nothing."""
    return [f"{_first(WORDS[method])}: left out; {why}." for method, why in told["left_out"][name].items()]


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]
