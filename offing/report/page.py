"""A result as one page that a practitioner can act on: the verdict first, then what it rests on.

The page stands alone: style and pictures are inside, nothing is fetched and no script runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from ..value.left_out import LeftOut, attempt
from . import figures
from .verdict import CLIPPED, GUARDED, OUTSIDE, number, percent

TONES = {"GO": "go", "NO-GO": "stop"}
FACTS = {
    "data": "data",
    "seed": "seed",
    "scale": "scale",
    "system": "system",
    "version": "offing",
    "jax": "jax",
    "device": "device",
}
DOUBTS = {
    "median": "predicted (median over worlds)",
    "mean": "mean over worlds",
    "epistemic": "worlds differ by (standard deviation)",
    "aleatoric": "episodes of one world differ by",
    "stderr": "from the number of imagined episodes",
    "gap": "more in the plan's own worlds",
}


def page(result: dict[str, Any], episodes: np.ndarray) -> str:
    """The HTML page of a result as `result.json` has it, and of the returns [M, K] of its imagined episodes."""
    return (
        environment()
        .get_template("page.html.jinja")
        .render(
            result=result,
            tone=TONES.get(result["verdict"]["word"], "unsure"),
            reasons=[_reason(text) for text in result["verdict"]["reasons"]],
            sentences=sentences(result),
            **pictures(_pictures(result, episodes)),
            worlds=_worlds_table(result["posterior"]),
            plans=_plans_table(result["policy"]),
            chosen={name: _settled(result[name]) for name in ("posterior", "policy")},
            doubts=_doubts(result),
            support=support_rows(result["support"]),
            facts=_facts(result),
            bound=result["pil"].get("bound"),
        )
    )


def environment() -> jinja2.Environment:
    """Where the pages' templates are, and how they write numbers."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("offing.report", "."),
        autoescape=True,  # always: the file's ending alone would not turn it on
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(number=number, percent=percent)
    return made


def pictures(asked: Mapping[str, Callable[[], str | None]]) -> dict[str, Any]:
    """The pictures that can be drawn, and sentences on those that cannot: a page stands without them."""
    drawn = {name: attempt(draw) for name, draw in asked.items()}
    lost = {name: part for name, part in drawn.items() if isinstance(part, LeftOut)}
    there = {name: Markup(part) for name, part in drawn.items() if part and name not in lost}
    return {"pictures": there, "missing": [f"Left out: the picture {n}; {p.reason}." for n, p in lost.items()]}


def _pictures(result: dict[str, Any], episodes: np.ndarray) -> dict[str, Callable[[], str | None]]:
    return {
        "distribution": lambda: figures.distribution(result, episodes),
        "calibration": lambda: figures.calibration(result),
        "replay": lambda: figures.replay(result),
        "settings": lambda: figures.settings(result),
        "planning": lambda: figures.planning(result),
    }


def _reason(text: str) -> dict[str, str]:
    """The answer to one question: which, whether it passed, and why."""
    question, mark, answer = text.partition("? ")
    if mark and answer.startswith(("Yes", "No")):
        return {"question": question + "?", "answer": answer, "kind": "yes" if answer.startswith("Yes") else "no"}
    return {"question": "", "answer": text, "kind": "plain"}


def sentences(result: dict[str, Any]) -> list[str]:
    """The number with its interval, and what it is held against."""
    earned, logged, baseline = result["return"], result["behaviour"], result["baseline"]
    low, high = earned["interval"]
    said = [
        f"In new episodes this policy will earn about {number(earned['median'])} on average; "
        f"with {100 * earned['level']:g}% probability between {number(low)} and {number(high)}."
    ]
    if logged["estimated"]:
        said.append(
            f"The logged behaviour earned about {number(logged['mean'])}, estimated from what a step earns, "
            "since the log has too few whole episodes."
        )
    else:
        said.append(f"The logged behaviour earned {number(logged['mean'])}.")
    if baseline is not None:
        what = "that" if baseline == logged["mean"] else f"the baseline of {number(baseline)}"
        said.append(f"The policy earns more than {what} with probability {percent(result['probability'])}.")
    if result["promise"] == "ranking":
        said.append("An estimate of this kind ranks policies; it does not promise what they earn.")
    return said


def _worlds_table(posterior: dict[str, Any]) -> dict[str, Any]:
    tried = posterior["settings"]
    names = figures.differing(tried)
    rows = [
        [
            *(figures.shown(s[n]) for n in names),
            *(number(s[n]) for n in ("error", "spread", "total")),
            _signed(s["imbalance"]),
            s["word"],
        ]
        for s in tried
    ]
    return {
        "head": [*map(_spaced, names), "E", "V", "PIL", "imbalance", ""],
        "rows": rows,
        "chosen": posterior["chosen"],
    }


def _plans_table(policy: dict[str, Any]) -> dict[str, Any]:
    tried = policy["settings"]
    names = figures.differing(tried)
    rows = [
        [
            *(figures.shown(s[n]) for n in names),
            number(s["score"]),
            number(figures.at_round(s["own"], s["best"])),
            f"{s['best'] + 1} of {len(s['held'])}",
        ]
        for s in tried
    ]
    head = [*map(_spaced, names), "held-out worlds", "own worlds", "kept round"]
    return {"head": head, "rows": rows, "chosen": policy["chosen"]}


def _settled(choice: dict[str, Any]) -> str:
    """Every hyperparameter of the chosen setting, in a line."""
    setting = choice["settings"][choice["chosen"]]
    plain = {n: v for n, v in setting.items() if n not in figures.SCORES and not isinstance(v, (dict, list))}
    return ", ".join(f"{_spaced(name)} {figures.shown(value)}" for name, value in plain.items())


def _doubts(result: dict[str, Any]) -> list[list[str]]:
    """What each number is made of: the undiscounted return, and the discounted value."""
    both = (result["return"], result["value"])
    rows = [[words, *(number(part.get(name)) for part in both)] for name, words in DOUBTS.items()]
    known = [[number(end) for end in part["interval"]] for part in both]
    rows.insert(1, [f"{100 * both[0]['level']:g}% interval", *(f"{low} to {high}" for low, high in known)])
    starts = [part.get("starts") for part in both]
    rows.append(
        ["from knowing few starts", *(number(None if s is None else np.sqrt(max(s, 0.0))) for s in starts)]
    )
    return rows


def support_rows(support: dict[str, float]) -> list[tuple[str, str, str]]:
    """Shares of steps and episodes that strayed, what they are of, and how much is too much."""
    return [
        (percent(support["outside"]), "of imagined steps lie outside the log", f"at most {100 * OUTSIDE:g}%"),
        (
            percent(support["guarded"]),
            "of imagined episodes run away from all that it knows",
            f"at most {100 * GUARDED:g}%",
        ),
        (
            percent(support["clipped"]),
            "of imagined rewards are held to the log's range",
            f"at most {100 * CLIPPED:g}%",
        ),
    ]


def _facts(result: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [(label, str(result[name])) for name, label in FACTS.items() if result.get(name) is not None]
    tried = [len(result[name]["settings"]) for name in ("posterior", "policy")]
    counts = f"{tried[0]} of the posterior, {tried[1]} of {result['policy']['planner']}"
    sizes = [("rows", number(result["rows"])), ("settings tried", counts), ("seconds", number(result["seconds"]))]
    return [*facts, *sizes]


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _signed(x: float | None) -> str:
    return number(x) if x is None or not np.isfinite(x) else f"{x:+.2f}"
