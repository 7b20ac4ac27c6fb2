"""A result as one page that a practitioner can act on: the verdict first, then what it rests on.

The page stands alone: style and pictures are inside, nothing is fetched and no script runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypedDict

import jinja2
import numpy as np
from markupsafe import Markup

from ..value.support import CLIPPED, GUARDED, OUTSIDE, Support
from ..wording import number, percent
from . import figures
from .drawing import Draw, draw_all
from .labels import differing, shown
from .reports import ChosenWorlds, SavedPolicy, SorelReport

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
}


class Table(NamedTuple):
    """What a template lists: the chosen row is marked."""

    head: list[str]
    rows: list[list[str]]
    chosen: int


def page(result: SorelReport, episodes: np.ndarray) -> str:
    """The HTML page of a result as `result.json` has it, and of the returns [M, K] of its imagined episodes."""
    return (
        environment()
        .get_template("page.html.jinja")
        .render(
            result=result,
            tone="unsure" if result.scale == "smoke" else TONES.get(result.ruling.word, "unsure"),
            reasons=[_reason(text) for text in result.ruling.reasons],
            sentences=sentences(result),
            **pictures(_pictures(result, episodes)),
            worlds=_worlds_table(result.posterior),
            plans=_plans_table(result.planned),
            chosen={"posterior": _chosen_words(result.posterior), "policy": _chosen_words(result.planned)},
            doubts=_doubts(result),
            support=support_rows(result.support),
            facts=_facts(result),
            bound=result.pil.bound,
            smoke=result.scale == "smoke",
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


class Shown(TypedDict):
    """What a template is given to show."""

    pictures: dict[str, Markup]
    missing: list[str]


def pictures(drawings: Mapping[str, Draw]) -> Shown:
    """The pictures that can be drawn, and sentences on those that cannot: a page stands without them."""
    drawn = draw_all(drawings)
    return {"pictures": {n: Markup(svg) for n, svg in drawn.pictures.items()}, "missing": drawn.sentences}


def _pictures(result: SorelReport, episodes: np.ndarray) -> dict[str, Draw]:
    return {
        "distribution": lambda: figures.distribution(result, episodes),
        "calibration": lambda: figures.calibration(result.posterior),
        "replay": lambda: figures.replay(result.posterior),
        "settings": lambda: figures.settings(result.planned),
        "planning": lambda: figures.planning(result.planned),
        "terms": lambda: figures.terms(result.returns.terms),
    }


def _reason(text: str) -> dict[str, str]:
    """The answer to one question: which, whether it passed, and why."""
    question, mark, answer = text.partition("? ")
    for word, kind in (("Yes", "yes"), ("No", "no"), ("It cannot", "plain")):
        if mark and answer.startswith(word):
            return {"question": question + "?", "answer": answer, "kind": kind}
    return {"question": "", "answer": text, "kind": "plain"}


def sentences(result: SorelReport) -> list[str]:
    """The number with its interval, and what it is held against."""
    earned, logged, baseline = result.returns, result.behaviour, result.baseline
    low, high = earned.interval
    lines = [
        f"In new episodes this policy will earn about {number(earned.median)} on average; "
        f"with {100 * earned.level:g}% probability between {number(low)} and {number(high)}."
    ]
    if logged.estimated:
        lines.append(
            f"The logged behaviour earned about {number(logged.mean)}, estimated from what a step earns, "
            "since the log has too few whole episodes."
        )
    else:
        lines.append(f"The logged behaviour earned {number(logged.mean)}.")
    if baseline is not None:
        what = "that" if baseline == logged.mean else f"the baseline of {number(baseline)}"
        lines.append(f"The policy earns more than {what} with probability {percent(result.probability)}.")
    if result.promise == "ranking":
        lines.append("An estimate of this kind ranks policies; it does not promise what they earn.")
    return lines


def _worlds_table(posterior: ChosenWorlds) -> Table:
    """Scores come first: what a narrow screen cuts off is what was tried, not what came of it."""
    tried = posterior.settings
    names = differing([s.setting for s in tried])
    rows = [
        [
            *(number(x) for x in (s.error, s.spread, s.total)),
            _signed(s.imbalance),
            s.word,
            *(shown(s.setting.get(n)) for n in names),
        ]
        for s in tried
    ]
    return Table(["E", "V", "PIL", "imbalance", "", *map(_spaced, names)], rows, posterior.chosen)


def _plans_table(policy: SavedPolicy) -> Table:
    tried = policy.settings
    names = differing([s.setting for s in tried])
    rows = [
        [
            number(s.score),
            number(figures.at_round(s.own, s.best)),
            f"{s.best + 1} of {len(s.held)}" if s.held else "",
            *(shown(s.setting.get(n)) for n in names),
        ]
        for s in tried
    ]
    head = ["held-out worlds", "training worlds", "kept round", *map(_spaced, names)]
    return Table(head, rows, policy.chosen)


def _chosen_words(choice: ChosenWorlds | SavedPolicy) -> str:
    """Every hyperparameter of the chosen setting, in a line."""
    setting = choice.settings[choice.chosen].setting
    plain = {n: v for n, v in setting.items() if not isinstance(v, (dict, list, tuple))}
    return ", ".join(f"{_spaced(name)} {shown(value)}" for name, value in plain.items())


def _doubts(result: SorelReport) -> list[list[str]]:
    """What each number is made of: the undiscounted return, and the discounted value."""
    both = (result.returns, result.value)
    rows = [[words, *(number(getattr(part, name)) for part in both)] for name, words in DOUBTS.items()]
    known = [[number(end) for end in part.interval] for part in both]
    rows.insert(1, [f"{100 * both[0].level:g}% interval", *(f"{low} to {high}" for low, high in known)])
    return rows


def support_rows(support: Support) -> list[tuple[str, str, str]]:
    """Shares of steps and episodes that strayed, what they are of, and how much is too much."""
    return [
        (percent(support.outside), "of imagined steps lie outside the log", f"at most {100 * OUTSIDE:g}%"),
        (
            percent(support.guarded),
            "of imagined episodes run away from all that it knows",
            f"at most {100 * GUARDED:g}%",
        ),
        (
            percent(support.clipped),
            "of imagined rewards are held to the log's range",
            f"at most {100 * CLIPPED:g}%",
        ),
    ]


def _facts(result: SorelReport) -> list[tuple[str, str]]:
    facts = [(label, str(getattr(result, name))) for name, label in FACTS.items()]
    counts = f"{len(result.posterior.settings)} of the posterior, {len(result.planned.settings)} of "
    counts += result.planned.planner
    sizes = [("rows", number(result.rows)), ("settings tried", counts), ("seconds", number(result.seconds))]
    return [*facts, *sizes]


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _signed(x: float | None) -> str:
    return number(x) if x is None or not np.isfinite(x) else f"{x:+.2f}"
