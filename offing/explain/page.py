"""Explanations as figures by name, as a section of a run's page, as a page of their own, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup, escape

from ..report.drawing import Draw, draw_all
from ..report.jsonable import Json, to_json
from ..report.page import environment
from ..report.store import read, read_json, write, write_json
from ..value.left_out import LeftOut
from ..wording import number, percent
from .explanation import Explanation
from .figures import pictures

END = "</main>"
BEGIN = '<section id="explained">'
PAGE, NUMBERS = "explain.html", "explain.json"


@dataclass(frozen=True, repr=False)
class Explained:
    """What policies do, and what their promises hang on: sentences, figures as SVG, and HTML for a notebook.

    `figures` are by name (`by_column`, `regions`, `worlds`, ...); of several policies each name begins with the
    policy's. What could not be made stands in `left_out`, with its reason.
    """

    explanations: dict[str, Explanation]  # by policy
    figures: dict[str, str]
    left_out: dict[str, str]

    def sentences(self) -> list[str]:
        """Every explanation in words."""
        several = len(self.explanations) > 1
        lines = []
        for name, explanation in self.explanations.items():
            lines += [f"{name}:"] * several + explanation.sentences()
        return [*lines, *self._missing()]

    def _missing(self) -> list[str]:
        return [f"Left out: {what}; {why}." for what, why in self.left_out.items()]

    def __repr__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        return _template("explained.html.jinja").render(section=Markup(self.section()))

    def section(self, without: tuple[str, ...] = ()) -> str:
        """The part of a page that explains, as HTML; `without` are figures that the page has already."""
        several = len(self.explanations) > 1
        parts = []
        for name, explanation in self.explanations.items():
            own = {figure: self.figures.get(_named(name, figure, several)) for figure in pictures(explanation)}
            shown = {figure: svg for figure, svg in own.items() if svg and figure not in without}
            parts.append(_section(explanation, shown, name if several else ""))
        return "\n".join([*parts, *(f"<p>{escape(sentence)}</p>" for sentence in self._missing())])

    def to_json(self) -> Json:
        """All but the episodes; of several policies, by their names."""
        each = {name: _numbers(explanation) for name, explanation in self.explanations.items()}
        one = next(iter(each.values())) if len(each) == 1 else {"policies": each}
        return to_json({**one, "left_out": self.left_out})


def explained_by(
    explanations: Mapping[str, Explanation | LeftOut], more: Mapping[str, Draw] | None = None
) -> Explained:
    """Explanations with their figures, and `more` figures of all policies together; what fails is left out."""
    made = {name: each for name, each in explanations.items() if not isinstance(each, LeftOut)}
    lost = {f"what {name} does": each.reason for name, each in explanations.items() if isinstance(each, LeftOut)}
    draws = dict(more or {})
    for name, explanation in made.items():
        draws |= {_named(name, figure, len(made) > 1): draw for figure, draw in pictures(explanation).items()}
    drawn = draw_all(draws)
    return Explained(made, drawn.pictures, lost | drawn.left_out)


def _named(policy: str, figure: str, several: bool) -> str:
    return f"{policy}: {figure}" if several else figure


def _section(explanation: Explanation, figures: Mapping[str, str], name: str) -> str:
    rows = [
        [
            region.words,
            number(region.brings),
            percent(region.share),
            _done(explanation, region.policy),
            _done(explanation, region.behaviour),
        ]
        for region in sorted(explanation.regions, key=lambda region: -region.share)
    ]
    return _template("section.html.jinja").render(
        explanation=explanation,
        name=name,
        gain=explanation.promised.gain,
        sentences=explanation.sentences(),
        rows=rows,
        pictures={figure: Markup(svg) for figure, svg in figures.items()},
    )


def _done(explanation: Explanation, action: np.ndarray) -> str:
    names = explanation.action_names
    if explanation.discrete:
        best = int(np.argmax(action))
        return f"{names[best]} ({percent(float(action[best]))})"
    return ", ".join(f"{name} {number(float(x))}" for name, x in zip(names, action, strict=True))


def _template(name: str) -> jinja2.Template:
    made = environment()
    made.loader = jinja2.ChoiceLoader(
        [jinja2.PackageLoader("offing.explain", "."), *([made.loader] if made.loader else [])]
    )
    return made.get_template(name)


def inserted(page: str, section: str) -> str:
    """A page with the section at its end, in the place of one that was there."""
    if END not in page:
        return page
    body = page.split(BEGIN)[0] if BEGIN in page else page[: page.rindex(END)]
    return f"{body.rstrip()}\n{BEGIN}\n{section}</section>\n{END}\n</body>\n</html>\n"


def attach(folder: Path, page: str, explained: Explained | LeftOut, data: str, run: str) -> None:
    """Writes `explain.html` and `explain.json` into a run's folder, and the section into its own page."""
    if isinstance(explained, LeftOut):
        section = f"<p>{escape(f'What the policy does could not be explained: {explained.reason}.')}</p>\n"
        numbers: Json = {"left_out": {"all of it": explained.reason}}
    else:
        section = explained.section()
        numbers = explained.to_json()
    write(folder / PAGE, _template("explain.html.jinja").render(section=Markup(section), name=data).encode())
    whole = read(folder / page)
    if whole is not None:
        own = section if isinstance(explained, LeftOut) else explained.section(without=("terms",))
        write(folder / page, inserted(whole, own).encode())
    assert isinstance(numbers, dict)
    write_json(folder / NUMBERS, {"run": run, **numbers})


def is_attached(folder: Path, page: str, run: str) -> bool:
    """Whether the explanation in a folder is that of this run, and stands in its page."""
    numbers = read_json(folder / NUMBERS)
    return isinstance(numbers, dict) and numbers.get("run") == run and BEGIN in (read(folder / page) or "")


def _numbers(explanation: Explanation) -> dict[str, Json]:
    return {
        "sentences": to_json(explanation.sentences()),
        "importance": to_json(dict(zip(explanation.names, explanation.importance, strict=True))),
        "shares": to_json(explanation.shares),
        "fidelity": to_json(explanation.fidelity),
        "regions": to_json(explanation.regions),
        "difference": to_json(explanation.difference),
        "promised": to_json(explanation.promised.gain),
        "hangs_on": to_json(explanation.hangs_on),
        "worlds": to_json(explanation.worlds),
        "terms": to_json(explanation.promised.terms),
    }
