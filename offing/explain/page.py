"""An explanation as a section of a run's page, as a page of its own, and as JSON."""

from __future__ import annotations

from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup

from ..data import Log
from ..report.jsonable import Json, to_json
from ..report.page import environment
from ..report.results import PAGE
from ..report.store import read, write, write_json
from ..report.verdict import number, percent
from .explain import Explanation, explain
from .figures import pictures

END = "</main>"
BEGIN = '<section id="explained">'


def section(found: Explanation) -> str:
    """The part of a page that explains, as HTML."""
    rows = [
        [
            region.words,
            percent(region.share),
            _done(found, region.policy),
            _done(found, region.behaviour),
            number(region.brings),
        ]
        for region in sorted(found.regions, key=lambda region: -region.share)
    ]
    return _template("section.html.jinja").render(
        found=found,
        sentences=found.sentences(),
        rows=rows,
        pictures={name: Markup(text) for name, text in pictures(found).items()},
    )


def _done(found: Explanation, action: np.ndarray) -> str:
    if found.discrete:
        best = int(np.argmax(action))
        return f"{found.action_names[best]} ({percent(float(action[best]))})"
    return ", ".join(f"{name} {number(float(x))}" for name, x in zip(found.action_names, action, strict=True))


def _template(name: str) -> jinja2.Template:
    made = environment()
    made.loader = jinja2.ChoiceLoader(
        [jinja2.PackageLoader("offing.explain", "."), *([made.loader] if made.loader else [])]
    )
    return made.get_template(name)


def attach(folder: Path, log: Log) -> Explanation:
    """Explains a finished run: `explain.json`, `explain.html`, and a section at the end of the run's own page."""
    found = explain(folder, log)
    made = section(found)
    whole = _template("explain.html.jinja").render(section=Markup(made), name=log.name)
    write(folder / "explain.html", whole.encode())
    write_json(folder / "explain.json", as_json(found))
    page = read(folder / PAGE)
    if page is not None and END in page:
        body = page.split(BEGIN)[0] if BEGIN in page else page[: page.rindex(END)]
        write(folder / PAGE, f"{body.rstrip()}\n{BEGIN}\n{made}</section>\n{END}\n</body>\n</html>\n".encode())
    return found


def as_json(found: Explanation) -> dict[str, Json]:
    """All but the episodes."""
    return {
        "sentences": to_json(found.sentences()),
        "importance": to_json(dict(zip(found.names, found.importance, strict=True))),
        "shares": to_json(found.shares),
        "fidelity": to_json(found.fidelity),
        "regions": to_json(found.regions),
        "difference": to_json(found.difference),
        "promised": to_json(found.promised),
        "hangs_on": to_json(found.hangs_on),
        "worlds": to_json(found.worlds),
        "terms": to_json(found.terms),
    }
