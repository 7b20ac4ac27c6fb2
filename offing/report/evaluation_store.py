"""An evaluation on disk (`evaluation.json` and its page, whole or not at all) and on a terminal."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from ..tune.evaluate import Assessment
from ..value.estimators import PREDICTIVE
from ..value.left_out import LeftOut, attempt
from ..wording import number
from . import evaluation_words as words
from .evaluation import Evaluation, evaluation_of
from .evaluation_page import evaluation_page
from .evaluation_parts import EstimateReport, Facts, ValueReport
from .jsonable import Json
from .store import read_json, write, write_json

RESULT, PAGE = "evaluation.json", "evaluation.html"


def load_evaluation(out: Path) -> Evaluation | None:
    """The evaluation in a folder, or None if there is none."""
    plain = read_json(out / RESULT)
    return None if plain is None else Evaluation.of_json(plain)


def save_evaluation(out: Path, assessment: Assessment, facts: Facts) -> Evaluation:
    """Writes the page, then `evaluation.json`: a result exists once that does."""
    evaluation, page = with_page(evaluation_of(assessment, facts))
    write(out / PAGE, page.encode())
    plain: Json = evaluation.to_json()
    assert isinstance(plain, dict)
    write_json(out / RESULT, plain)
    return evaluation


def with_page(evaluation: Evaluation) -> tuple[Evaluation, str]:
    """The evaluation and its page; pictures that fail are named in the one and missing from the other."""
    made = attempt(lambda: evaluation_page(evaluation))
    if isinstance(made, LeftOut):
        evaluation = replace(evaluation, figures_left_out={"the page": made.reason})
        return evaluation, _bare(evaluation)
    return replace(evaluation, figures_left_out=made.left_out), made.html


def _bare(evaluation: Evaluation) -> str:
    """A page of text alone, for what no page could be made of."""
    lines = [html.escape(line) for line in summary(evaluation, Path())]
    body = "\n".join(f"<p>{line}</p>" for line in lines)
    return f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>evaluation</title>\n{body}\n</html>\n'


# ---- on a terminal


def estimates_table(evaluation: Evaluation) -> Table:
    """Policies by methods: discounted value, undiscounted return, and whether the method agrees and is well."""
    level = f"{evaluation.level:.0%}"
    table = Table(title=None, box=None, header_style="bold")
    for head in ("policy", "method", "value", level, "return", level, "worlds", "health"):
        left = head in ("policy", "method", "worlds", "health")
        table.add_column(head, justify="left" if left else "right", overflow="fold", no_wrap=head != "policy")
    for name, methods in evaluation.estimates.items():
        for place, (method, one) in enumerate(methods.items()):
            earned = _cells(one.returns) if one.returns else ("", "")
            row = [*_cells(one), *earned, *beside(method, one)]
            table.add_row("" if place else name, method, *row)
        for method in evaluation.left_out[name]:
            table.add_row("", method, "–", "", "", "", "", "left out")
    return table


def beside(method: str, one: EstimateReport) -> tuple[str, str]:
    """Whether a method agrees with the worlds, and whether it is well, in a word each."""
    if method == PREDICTIVE:
        return "", ""
    return "agrees" if one.agrees else "differs", "see below" if one.faults else "well"


def _cells(one: ValueReport) -> tuple[str, str]:
    low, high = one.interval
    return number(one.median), f"{number(low)} … {number(high)}"


def summary(evaluation: Evaluation, out: Path) -> list[str]:
    """The result in sentences; a sentence that cannot be made is left out."""
    parts: list[Callable[[], Sequence[str]]] = [
        lambda: words.run(evaluation),
        lambda: [s for name in evaluation.estimates for s in words.policy(evaluation, name)],
        lambda: words.compared(evaluation),
        lambda: [*words.past(evaluation), words.far(evaluation)],
        lambda: words.cautions(evaluation),
        lambda: evaluation.missing(),
        lambda: [f"note: {note}" for note in evaluation.notes],
        lambda: [f"{out / PAGE}  online samples used: {evaluation.online_samples}"],
    ]
    lines: list[str] = []
    for part in parts:
        sentences = attempt(part)
        lines += [f"left out: {sentences.reason}"] if isinstance(sentences, LeftOut) else sentences
    return lines
