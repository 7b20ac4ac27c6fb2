"""The cells of a table, column by column, as numbers, words or moments; and rows that know which come next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...types import BadInput
from .._cells import MISSING, word_of
from ..clock import moments

NEVER = np.iinfo(np.int64).min  # the moment of an empty cell
COMMA = re.compile(r"-?\d+,\d+")  # a number with a decimal comma
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ]|$)|\d\d?[./]\d\d?[./]\d{4}\b")
YES_NO = (("no", "yes"), ("false", "true"), ("n", "y"), ("off", "on"), ("nein", "ja"), ("non", "oui"), ("f", "t"))


class Cells(NamedTuple):
    """One column: numbers with nan where empty, places in `levels` with -1 where empty, or moments."""

    kind: str  # "number", "word" or "time"
    array: np.ndarray  # [N]  float64, int32 or int64 (microseconds from 1970)
    levels: tuple[str, ...] = ()
    boolean: bool = False  # numbers that the file says are true or false

    @property
    def empty(self) -> np.ndarray:
        """Which cells hold nothing [N]."""
        if self.kind == "number":
            return np.isnan(self.array)
        return self.array < 0 if self.kind == "word" else self.array == NEVER

    def at(self, rows: np.ndarray) -> Cells:
        """The cells of these rows."""
        return self._replace(array=self.array[rows])

    @property
    def yes_no(self) -> tuple[str, str] | None:
        """The words for no and for yes, if it holds no others."""
        lower = {level.lower(): level for level in self.levels}
        for no, yes in YES_NO:
            if self.kind == "word" and lower and set(lower) <= {no, yes}:
                return lower.get(no, no), lower.get(yes, yes)
        return None


def refuse_words(cell: Cells, rows: Rows, name: str) -> None:
    """Refuses a column of words that are dates, or numbers but for a few; says of the first what to write."""
    if not cell.levels:
        return
    at = lambda place: rows.origin[int(np.argmax(cell.array == place))]
    if all(map(DATE.match, cell.levels)):
        raise BadInput(
            f"column {name!r}, row {at(0)}: {cell.levels[0][:40]!r} is a date where a number was expected; write "
            f'time = "{name}" and cyclic = {{hour = 24}} for the clock, or put it into leave_out'
        )
    commas = np.array([COMMA.fullmatch(level) is not None for level in cell.levels])
    plain = np.array([_is_number(level) for level in cell.levels])
    if (commas | plain).mean() <= 0.5:
        return
    if commas.all():
        raise BadInput(
            f"column {name!r}, row {at(0)}: {cell.levels[0][:40]!r} has a decimal comma; write a point, or "
            "separate the columns of the whole file by semicolons"
        )
    odd = commas if plain.mean() > 0.5 else plain
    place = int(odd.argmax()) if odd.any() else int((~plain).argmax())
    word = cell.levels[place]
    if commas.any() and odd.any():
        has, others = ("comma", "a point") if commas[place] else ("point or none", "a comma")
        what = f"has a decimal {has} where other cells have {others}; write one of the two throughout"
    else:
        what = (
            "is not a number, and most other cells are; empty such cells, or name the column among the categories"
        )
    raise BadInput(f"column {name!r}, row {at(place)}: {word[:40]!r} {what}")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def together(one: Cells, other: Cells) -> tuple[Cells, Cells]:
    """Two columns of words with the same levels."""
    if one.kind != "word" or other.kind != "word":
        return one, other
    levels = tuple(dict.fromkeys((*one.levels, *other.levels)))
    place = np.array([*(levels.index(level) for level in other.levels), -1], np.int32)
    return one._replace(levels=levels), other._replace(array=place[other.array], levels=levels)


def cells_of(array: np.ndarray, name: str) -> Cells:
    """A column of a dict of arrays: numbers, dates, or words."""
    array = np.asarray(array)
    if array.ndim != 1:
        raise BadInput(f"column {name!r}: shape {array.shape} where one cell per row was expected")
    if array.dtype.kind in "fiub":
        return Cells("number", array.astype(np.float64), boolean=array.dtype.kind == "b")
    if array.dtype.kind == "M":
        return Cells("time", moments(array))
    words = [word_of(cell) for cell in array.tolist()]
    words = ["" if word in MISSING else word for word in words]
    levels, places = np.unique(np.array(words, object), return_inverse=True)
    kept = tuple(level for level in levels.tolist() if level)
    return Cells("word", (places - (len(levels) - len(kept))).astype(np.int32), kept)


class Rows(NamedTuple):
    """A table in its order: rows of a run follow each other, and the last of one is followed by nothing."""

    cells: Mapping[str, Cells]
    unit: np.ndarray  # [N]  number of the unit
    time: np.ndarray | None  # [N]  microseconds, or numbers as they are
    origin: np.ndarray  # [N]  number of the row in the file
    last: np.ndarray  # [N]  whether nothing follows
    dated: bool = False  # whether `time` holds moments
    backwards: int = 0  # rows of a unit that stood before one of an earlier time
    copies: int = 0  # rows that were copies of the one before, and were dropped

    @property
    def count(self) -> int:
        return len(self.origin)

    def column(self, name: str, key: str) -> Cells:
        """A column by its name; `key` is what the schema says it is for."""
        if name not in self.cells:
            raise BadInput(f"schema, '{key}': there is no column {name!r}")
        return self.cells[name]

    def numbers(self, name: str) -> np.ndarray:
        """A column for a formula: numbers, yes and no as 1 and 0; words are refused by name."""
        cells = self.column(name, "formula")
        if cells.kind == "number":
            return cells.array
        if cells.kind == "time":
            raise BadInput(f"column {name!r}: holds dates, which a formula cannot count with")
        if not cells.levels:
            return np.full(self.count, np.nan)
        if (pair := cells.yes_no) is None:
            refuse_words(cells, self, name)
            example = f"{name} == '{cells.levels[0]}'"
            raise BadInput(f"column {name!r}: holds words, not numbers; a formula may compare them: {example}")
        value = np.array([float(level == pair[1]) for level in cells.levels] + [np.nan])
        return value[cells.array]

    def equals(self, name: str, word: str) -> np.ndarray | None:
        """1 where a column holds the word, 0 where another, nan where none; None if it holds numbers."""
        cells = self.column(name, "formula")
        if cells.kind != "word":
            return None
        if word not in cells.levels:
            raise BadInput(f"column {name!r}: never holds {word!r}; it holds {', '.join(cells.levels[:12])}")
        value = np.array([float(level == word) for level in cells.levels] + [np.nan])
        return value[cells.array]

    def after(self, column: np.ndarray) -> np.ndarray:
        """The next row's number [N], nan where none follows."""
        column = np.broadcast_to(column, (self.count,))
        following = np.empty(self.count)
        following[:-1], following[-1] = column[1:], np.nan
        following[self.last] = np.nan
        return following

    def at(self, rows: np.ndarray) -> Rows:
        """These rows, in their order; where one is missing between two, the run breaks."""
        whole = np.cumsum(self.last) - self.last  # number of the run
        whole = whole[rows]
        last = np.r_[(whole[1:] != whole[:-1]) | (np.diff(rows) != 1), True] if len(rows) else np.zeros(0, bool)
        cells = {name: cell.at(rows) for name, cell in self.cells.items()}
        time = None if self.time is None else self.time[rows]
        return self._replace(cells=cells, unit=self.unit[rows], time=time, origin=self.origin[rows], last=last)
