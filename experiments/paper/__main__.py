"""The command line of the paper's figures; `experiments/paper/__init__.py` says what there is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from offing.report.store import write

from . import pages
from .contents import ours
from .figures import every as every_figure
from .figures import get
from .parts import PHASES, SCALES, Part, Place
from .records import RECORDS, ROOT, every, state, status
from .runner import Limits, run
from .studies import every as every_part


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.paper", description="The paper's figures and tables, and ours beside them."
    )
    parser.add_argument("name", choices=("all", *ours()), help="a figure or table")
    parser.add_argument("--part", nargs="+", help="only these parts, as STUDY/NAME or the beginning of it")
    parser.add_argument("--only", help="exactly the part of this id, whether it is done or not: what --jobs calls")
    parser.add_argument("--phase", nargs="+", choices=PHASES, default=list(PHASES))
    parser.add_argument("--scale", choices=SCALES, default="full", help="smoke: seconds, and numbers mean nothing")
    parser.add_argument("--out", type=Path, help="folder of records (default: experiments/paper/records)")
    parser.add_argument("--work", type=Path, help="folder of logs and policies (default: out/paper)")
    parser.add_argument("--docs", type=Path, help="folder of pages (default: docs/results/paper)")
    parser.add_argument("--jobs", type=int, default=1, help="parts at once, each on a core of its own")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing that would end later")
    parser.add_argument("--dry-run", action="store_true", help="list parts, hardware and cost, and run nothing")
    given = parser.parse_args(arguments)
    smoke = given.scale == "smoke"
    given.out = (given.out or (ROOT / "out/paper-smoke/records" if smoke else RECORDS)).resolve()
    given.work = (given.work or ROOT / ("out/paper-smoke" if smoke else "out/paper")).resolve()
    given.docs = (given.docs or (ROOT / "out/paper-smoke/pages" if smoke else pages.DOCS)).resolve()
    return given


def main(arguments: list[str] | None = None) -> int:
    """Runs what is asked; 0 once nothing of it is left."""
    given = parsed(arguments)
    place, parts = Place(given.out, given.work), every_part(given.scale)
    wanted = selected(given, parts)
    if given.dry_run:
        listed(wanted, place)
        return 0
    limits, again = Limits(given.jobs, 60 * given.minutes), given.only is not None
    left = run(list(wanted.values()), place, repeated(given), limits, parts, again) if wanted else 0
    if "draw" in given.phase and not given.part and not given.only:
        drawn(given, place, parts)
    return int(left > 0)


def selected(given: argparse.Namespace, parts: Mapping[str, Part]) -> dict[str, Part]:
    """The parts of the figure that are of the phases, and of those named; or the one part that is asked for."""
    if given.only:
        if given.only not in parts:
            raise SystemExit(f"{given.only}: no such part")
        return {given.only: parts[given.only]}
    mine = dict(parts) if given.name == "all" else get(given.name).made_of(parts)
    chosen = {name: part for name, part in mine.items() if part.phase in given.phase}
    if given.part:
        chosen = {name: part for name, part in chosen.items() if name.startswith(tuple(given.part))}
    return chosen


def repeated(given: argparse.Namespace) -> list[str]:
    """The call, for one part of it in a process of its own."""
    return [given.name, "--scale", given.scale, "--out", str(given.out), "--work", str(given.work)]


def listed(parts: Mapping[str, Part], place: Place) -> None:
    """Prints every part with its hardware and its cost: measured where it has a record, else expected."""
    tree, spent = str(state()["tree"]), {}
    print(f"{'part':52} {'phase':8} {'hardware':9} {'seconds':>8}  ")
    for part in parts.values():
        there = place.record_of(part.id).exists()
        record = place.read(part.id) if there else {}
        seconds = float(str(record["seconds"])) if there else part.seconds
        word = f"measured, {record['device']}" if there else "expected"
        print(
            f"{part.id:52} {part.phase:8} {part.hardware:9} {seconds:8,.0f}  {status(part, place, tree)}, {word}"
        )
        spent[part.hardware] = spent.get(part.hardware, 0.0) + seconds
    total = ", ".join(f"{hardware} {seconds / 3600:.2f} h" for hardware, seconds in spent.items())
    print(f"{len(parts)} parts one after the other: {total or 'nothing'}")


def drawn(given: argparse.Namespace, place: Place, parts: Mapping[str, Part]) -> None:
    """Draws the pages of the figures that are asked for, and the table of contents."""
    records = every(place.records)
    figures = {figure.name: figure for figure in every_figure()}
    for name in figures if given.name == "all" else [given.name]:
        for path in pages.draw(figures[name], records, parts, given.docs):
            print(path)
    index = given.docs / "index.md"
    if index.exists():
        write(index, pages.replaced(index.read_text(), pages.contents(figures, records)).encode())


if __name__ == "__main__":
    sys.exit(main())
