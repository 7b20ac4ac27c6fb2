"""An evaluation as one page: what each policy will earn, the policies and the methods side by side, and why they
differ. A picture that cannot be drawn is left out, and the page says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from markupsafe import Markup

from ..value.estimators import PREDICTIVE
from ..value.health import Check
from ..value.left_out import LeftOut, attempt
from ..wording import capital, number
from . import evaluation_figures as drawn
from . import evaluation_words as words
from .drawing import Draw, draw_all
from .evaluation import Evaluation
from .evaluation_parts import EstimateReport, ValueReport
from .page import FACTS, environment


class Page(NamedTuple):
    """The page, and why some of its pictures are missing."""

    html: str
    left_out: dict[str, str]


class TableOf(NamedTuple):
    head: list[str]
    rows: list[list[str]]


class Section(NamedTuple):
    """What the page says of one policy."""

    name: str
    tone: str
    headline: str
    cautions: int
    checks: list[dict[str, str]]
    table: TableOf
    sentences: list[str]
    notes: dict[str, tuple[str, ...]]
    more: str
    conformal: str | None
    pictures: dict[str, Markup]


def evaluation_page(found: Evaluation) -> Page:
    """The HTML page of an evaluation."""
    lost: dict[str, str] = {}
    of_all: dict[str, Draw] = {
        "policies": lambda: drawn.policies(found),
        "past": lambda: drawn.past(found),
        "far": lambda: drawn.far(found),
        "loss": lambda: drawn.loss(found),
    }
    sections = [_section(found, name, lost) for name in found.estimates]
    pictures = _pictures(of_all, lost)
    text = (
        environment()
        .get_template("evaluation.html.jinja")
        .render(
            found=found,
            policies=sections,
            checks=[_check(check) for check in found.checks if check.about in ("log", "worlds")],
            compared=words.compared(found),
            past=words.past(found),
            far=words.far(found),
            slope=None if isinstance(found.more_data, LeftOut) else found.more_data.slope,
            pictures=pictures,
            blocks=_blocks(found),
            missing=[*found.missing(), *(f"Left out: {name}; {why}." for name, why in lost.items())],
            facts=_facts(found),
        )
    )
    return Page(text, lost)


def _pictures(asked: dict[str, Draw], lost: dict[str, str], of: str = "") -> dict[str, Markup]:
    """The pictures that can be drawn; the others' reasons go to `lost`."""
    made = draw_all(asked, of)
    lost |= made.left_out
    return {name: Markup(svg) for name, svg in made.pictures.items()}


def _said(work: Callable[[], str], lost: dict[str, str], what: str) -> str:
    """A sentence, or nothing where it cannot be made; its reason then goes to `lost`."""
    text = attempt(work)
    if isinstance(text, LeftOut):
        lost[what] = text.reason
        return ""
    return text


def _section(found: Evaluation, name: str, lost: dict[str, str]) -> Section:
    methods, caution = found.estimates[name], found.cautions(name)
    asked: dict[str, Draw] = {
        "methods": lambda: drawn.methods(found, name),
        "width": lambda: drawn.width(found, name),
    }
    return Section(
        name=name,
        tone="unsure" if caution else "go",
        headline=words.headline(found, name),
        cautions=len(caution),
        checks=[_check(check) for check in found.checks if check.about == name],
        table=_table(methods),
        sentences=[*(one.explained for one in methods.values() if one.explained), *words.missing(found, name)],
        notes={method: one.notes for method, one in methods.items() if one.notes},
        more=_said(lambda: words.more(found, name), lost, f"what more rows would bring for {name}"),
        conformal=words.conformal(found, name),
        pictures=_pictures(asked, lost, f" of {name}"),
    )


def _check(check: Check) -> dict[str, str]:
    doubtful = check.name == "worse" and check.value < 0.5  # allowed, and no good news
    kind = "plain" if check.passed and doubtful else "yes" if check.passed else "no"
    return {"question": check.question, "answer": capital(check.sentence), "kind": kind}


def _table(methods: dict[str, EstimateReport]) -> TableOf:
    rows = []
    for method, one in methods.items():
        agrees = "" if method == PREDICTIVE else "agrees" if one.agrees else "differs"
        well = "" if method == PREDICTIVE else "see below" if one.faults else "well"
        rows.append([method, *_cells(one), *(_cells(one.returns) if one.returns else ("", "", "")), agrees, well])
    head = ["method", "value", "low", "high", "return", "low", "high", "beside the worlds", "health"]
    return TableOf(head, rows)


def _cells(one: ValueReport) -> tuple[str, str, str]:
    low, high = one.interval
    return number(one.median), number(low), number(high)


def _blocks(found: Evaluation) -> TableOf | None:
    if isinstance(found.backtest, LeftOut):
        return None
    rows = [
        [
            f"{b.first} to {b.last}",
            str(b.episodes),
            *map(number, (b.logged, b.predicted, *b.interval)),
        ]
        for b in found.backtest.blocks
    ]
    return TableOf(["among episodes", "of them", "logged", "predicted", "low", "high"], rows)


def _facts(found: Evaluation) -> list[tuple[str, str]]:
    facts = [(label, str(getattr(found, name))) for name, label in FACTS.items() if hasattr(found, name)]
    facts.append(("rows", number(found.rows)))
    if not isinstance(found.posterior, LeftOut):
        facts.append(("settings tried", f"{len(found.posterior.settings)} of the posterior"))
    return [*facts, ("seconds", number(found.seconds))]
