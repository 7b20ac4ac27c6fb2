"""Where logs come from: one file per format, each of which says all about itself; the folder is the registry.

This is the only place of the data package that opens files. A file x.py holds the format named x, as a value
`source`; another package adds one by an entry point of the group `offing.sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...registry import Registry

if TYPE_CHECKING:
    from ..dataset import Log
    from ..schema import Schema
    from ..table.cells import Cells

BUDGET = 4 * 2**30  # bytes that a log may take in memory; a larger one lies on disk, or whole episodes are drawn
Kinds = Mapping[str, np.ndarray]  # some rows of each column, or none, but of its kind


class Request(NamedTuple):
    """What somebody wants to load, and how."""

    what: object  # a value of Python, the text that stands after a prefix, or the paths of the files
    name: str  # what messages call it
    schema: Schema | None = None
    budget: int = BUDGET
    seed: int = 0
    root: Path | None = None  # where datasets lie that are named by an id
    on_disk: bool = False  # whether a log above the budget is kept there whole, where its rows are in order

    @property
    def paths(self) -> list[Path]:
        """The files to read, or the folder."""
        return list(self.what) if isinstance(self.what, list) else [Path(str(self.what))]


class First(NamedTuple):
    """The first rows of a table, for a draft of a schema."""

    cells: Mapping[str, Cells]
    time: str | None  # the column of times, if one is plainly that
    notes: tuple[str, ...] = ()  # what was assumed on the way


class Source(NamedTuple):
    """A format: what it is in words, what it opens, and how it is loaded."""

    about: str  # for the help of the command line, such as "an .npz file"
    load: Callable[[Request], Log]
    columns: Callable[[Request], Kinds] | None = None  # for a draft of a schema; None: it says itself what is what
    suffixes: tuple[str, ...] = ()  # of files that it opens, and of folders of such files
    prefix: str = ""  # of texts that it opens, with the colon
    takes: Callable[[object], bool] | None = None  # whether it opens this value of Python, or this folder
    cells: Callable[[Request], First] | None = None
    whole: bool = False  # a folder is opened as one, not file by file
    extra: str = ""  # that it needs: pip install 'offing[EXTRA]'


registry: Registry[Source] = Registry(__name__, Source, "source")


def row_bytes(width: int, actions: int) -> int:
    """What a row takes in a Dataset: observation and action twice, reward, end and episode."""
    return 4 * (2 * (width + actions) + 3)


def size_of(count: float) -> str:
    """Bytes in words."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
