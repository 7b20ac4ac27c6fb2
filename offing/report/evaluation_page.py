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


def evaluation_page(evaluation: Evaluation) -> Page:
    """The HTML page of an evaluation."""
    lost: dict[str, str] = {}
    of_all: dict[str, Draw] = {
        "policies": lambda: drawn.policies(evaluation),
        "past": lambda: drawn.past(evaluation),
        "far": lambda: drawn.far(evaluation),
        "loss": lambda: drawn.loss(evaluation),
    }
    sections = [_section(evaluation, name, lost) for name in evaluation.estimates]
    pictures = _pictures(of_all, lost)
    text = (
        environment()
        .get_template("evaluation.html.jinja")
        .render(
            evaluation=evaluation,
            policies=sections,
            checks=[_check(check) for check in evaluation.checks if check.about in ("log", "worlds")],
            compared=words.compared(evaluation),
            past=words.past(evaluation),
            far=words.far(evaluation),
            slope=None if isinstance(evaluation.more_data, LeftOut) else evaluation.more_data.slope,
            pictures=pictures,
            blocks=_blocks(evaluation),
            missing=[*evaluation.missing(), *(f"Left out: {name}; {why}." for name, why in lost.items())],
            facts=_facts(evaluation),
        )
    )
    return Page(text, lost)


def _pictures(drawings: dict[str, Draw], lost: dict[str, str], of: str = "") -> dict[str, Markup]:
    """The pictures that can be drawn; the others' reasons go to `lost`."""
    made = draw_all(drawings, of)
    lost |= made.left_out
    return {name: Markup(svg) for name, svg in made.pictures.items()}


def _sentence(work: Callable[[], str], lost: dict[str, str], what: str) -> str:
    """A sentence, or nothing where it cannot be made; its reason then goes to `lost`."""
    text = attempt(work)
    if isinstance(text, LeftOut):
        lost[what] = text.reason
        return ""
    return text


def _section(evaluation: Evaluation, name: str, lost: dict[str, str]) -> Section:
    methods, caution = evaluation.estimates[name], evaluation.cautions(name)
    drawings: dict[str, Draw] = {
        "methods": lambda: drawn.methods(evaluation, name),
        "width": lambda: drawn.width(evaluation, name),
    }
    return Section(
        name=name,
        tone="unsure" if caution else "go",
        headline=words.headline(evaluation, name),
        cautions=len(caution),
        checks=[_check(check) for check in evaluation.checks if check.about == name],
        table=_table(methods),
        sentences=[*words.explained(evaluation, name), *words.missing(evaluation, name)],
        notes={method: one.notes for method, one in methods.items() if one.notes},
        more=_sentence(lambda: words.more(evaluation, name), lost, f"what more rows would bring for {name}"),
        conformal=words.conformal(evaluation, name),
        pictures=_pictures(drawings, lost, f" of {name}"),
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


def _blocks(evaluation: Evaluation) -> TableOf | None:
    if isinstance(evaluation.backtest, LeftOut):
        return None
    rows = [
        [
            f"{b.first} to {b.last}",
            str(b.episodes),
            *map(number, (b.logged, b.predicted, *b.interval)),
        ]
        for b in evaluation.backtest.blocks
    ]
    return TableOf(["among episodes", "of them", "logged", "predicted", "low", "high"], rows)


def _facts(evaluation: Evaluation) -> list[tuple[str, str]]:
    facts = [(label, str(getattr(evaluation, name))) for name, label in FACTS.items() if hasattr(evaluation, name)]
    facts.append(("rows", number(evaluation.rows)))
    if not isinstance(evaluation.posterior, LeftOut):
        facts.append(("settings tried", f"{len(evaluation.posterior.settings)} of the posterior"))
    return [*facts, ("seconds", number(evaluation.seconds))]
