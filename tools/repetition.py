"""How much of a folder's Python stands twice: lines of a file that stand elsewhere, six or more in a row.

    python tools/repetition.py offing
    python tools/repetition.py offing --at REVISION

Lines are stripped, and blank lines are skipped. A line counts once, however often what it belongs to is repeated.
Prints the number of such lines, and with `--list` the places.
"""

from __future__ import annotations

import argparse
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

RUN = 6  # lines in a row that make a repetition


class Line(NamedTuple):
    """A line that is not blank, and where it stands."""

    number: int
    text: str


def lines_of(source: str) -> list[Line]:
    """The lines of a file, stripped, without the blank ones."""
    numbered = ((number, text.strip()) for number, text in enumerate(source.splitlines(), 1))
    return [Line(number, text) for number, text in numbered if text]


def repeated(sources: Mapping[str, str]) -> dict[str, list[int]]:
    """The numbers of the lines of each file that stand elsewhere too, in runs of six or more."""
    files = {name: lines_of(source) for name, source in sources.items()}
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in files.items():
        for first in range(len(lines) - RUN + 1):
            places[tuple(line.text for line in lines[first : first + RUN])].append((name, first))
    marked: dict[str, set[int]] = defaultdict(set)
    for several in places.values():
        for name, first in several if len(several) > 1 else ():
            marked[name].update(line.number for line in files[name][first : first + RUN])
    return {name: sorted(numbers) for name, numbers in sorted(marked.items())}


def in_folder(folder: Path) -> dict[str, str]:
    """The Python files under a folder, by their path in it."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.py"))}


def at_revision(folder: Path, revision: str) -> dict[str, str]:
    """The same, as they were at a revision."""
    git = lambda *words: subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout
    names = git("ls-tree", "-r", "--name-only", revision, "--", folder.as_posix()).splitlines()
    return {name: git("show", f"{revision}:{name}") for name in names if name.endswith(".py")}


def stretches(numbers: list[int]) -> Iterator[str]:
    """Line numbers as ranges; blank lines between two do not part them."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number > last + 3:
            yield f"{first}-{last}"
            first = number
        last = number
    yield f"{first}-{last}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--at", metavar="REVISION", help="as it was at a revision; default: as it is")
    parser.add_argument("--list", action="store_true", help="the places too")
    given = parser.parse_args()
    sources = at_revision(given.folder, given.at) if given.at else in_folder(given.folder)
    marked = repeated(sources)
    if given.list:
        for name, numbers in marked.items():
            print(f"{name}: {', '.join(stretches(numbers))}")
    print(sum(map(len, marked.values())))


if __name__ == "__main__":
    main()
