"""Pages of docs/results/paper: between two markers stands what records say, and nobody writes there by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from offing.report.store import write

from .contents import BEYOND, CONTENTS
from .figures.figure import Figure, Record
from .parts import Part
from .records import ROOT

DOCS = ROOT / "docs" / "results" / "paper"
BEGIN, END = "<!-- drawn from records -->", "<!-- end of what is drawn -->"
BETWEEN = re.compile(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def expected(parts: Mapping[str, Part]) -> str:
    """What parts are expected to cost, in words."""
    words = []
    for hardware in ("GPU", "CPU"):
        seconds = sum(part.seconds for part in parts.values() if part.hardware == hardware)
        if seconds:
            unit = "an H200" if hardware == "GPU" else "one CPU core"
            amount = f"{seconds / 3600:.1f} hours" if seconds > 5_400 else f"{max(1, round(seconds / 60))} minutes"
            words.append(f"{amount} of {unit}")
    return " and ".join(words)


def state_of(figure: Figure, records: Mapping[str, Record], parts: Mapping[str, Part]) -> str:
    """Which records there are, and what they rest on; or that there are none, and what they would cost."""
    mine, own = figure.of(records), [part for part in parts if part.startswith(figure.parts)]
    command = f"`python -m experiments.paper {figure.name}`"
    if not mine:
        cost = expected(figure.made_of(parts))
        return f"No record of this exists yet: {command} makes them, and is expected to take {cost}."
    distinct = lambda key: ", ".join(dict.fromkeys(str(record[key])[:9] for record in mine.values()))
    devices = ", ".join(dict.fromkeys(str(record["device"]) for record in mine.values()))
    spent = lambda key: sum(record[key] for record in mine.values())
    versions = next(iter(mine.values()))["versions"]
    return (
        f"Drawn by {command} from {len(mine)} records of {len(own)}: tree {distinct('tree')} of `offing/`, "
        f"commit {distinct('commit')}, on {devices} (Python {versions['python']}, "
        f"JAX {versions['jax']}), {spent('seconds'):,.0f} s, {spent('core_seconds'):,.0f} core-seconds."
    )


def block(figure: Figure, records: Mapping[str, Record], parts: Mapping[str, Part]) -> tuple[str, dict[str, str]]:
    """What stands between the markers of a page, and its pictures."""
    mine = figure.of(records)
    if figure.always:
        drawn = figure.draw({})
        head = "Read off the library's presets: no record is needed."
    else:
        drawn, head = figure.draw(mine), state_of(figure, records, parts)
    shown = "\n\n".join(f"![{figure.title}](img/{name}.svg)" for name in drawn.pictures)
    pieces = [piece.strip() for piece in (head, shown, drawn.text) if piece.strip()]
    return "\n\n".join([BEGIN, *pieces, END]), drawn.pictures


def replaced(page: str, text: str) -> str:
    """A page with what is drawn in it, in place of what was."""
    if len(BETWEEN.findall(page)) != 1:
        raise ValueError("a page needs one pair of markers")
    return BETWEEN.sub(lambda _: text, page)


def draw(
    figure: Figure, records: Mapping[str, Record], parts: Mapping[str, Part], docs: Path = DOCS
) -> list[Path]:
    """Draws a figure into its page, and its pictures beside it; which files were written."""
    text, pictures = block(figure, records, parts)
    page = docs / f"{figure.name}.md"
    written = [page, *(docs / "img" / f"{name}.svg" for name in pictures)]
    before = page.read_text() if page.exists() else f"# {figure.title}\n\n{BEGIN}\n{END}\n"
    write(page, replaced(before, text).encode())
    for name, svg in pictures.items():
        write(docs / "img" / f"{name}.svg", svg.encode())
    return written


def contents(figures: Mapping[str, Figure], records: Mapping[str, Record]) -> str:
    """The paper's table of contents with ours beside it, and how many records stand behind each."""
    link = lambda name: f"[{figures[name].title}]({name}.md)"
    state = lambda name: "presets" if figures[name].always else str(len(figures[name].of(records)))
    lines = ["| the paper's | shows | ours | records |", "|---|---|---|--:|"]
    for entry in CONTENTS:
        ours = ", ".join(link(name) for name in entry.figures) or entry.why
        count = ", ".join(state(name) for name in entry.figures) or "–"
        lines.append(f"| `{entry.label}` | {entry.shows} | {ours} | {count} |")
    lines += [f"| – | {shows} | {link(name)} | {state(name)} |" for name, shows in BEYOND.items()]
    return "\n".join([BEGIN, "", *lines, "", END])
