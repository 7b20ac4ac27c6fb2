"""The cells of a table, column by column, as numbers, words or moments; and rows that know which come next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ...types import BadInput
from .._cells import MISSING, word_of
from ..clock import moments
from ..expression import Node, columns_in, compute, reach
from .compact import NEVER, compact, expanded

BLOCK = 2**16  # rows that a formula is computed over at a time
COMMA = re.compile(r"-?\d+,\d+")  # a number with a decimal comma
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ]|$)|\d\d?[./]\d\d?[./]\d{4}\b")
NUMBER = r"-?\d[\d.,\s]*"
PRICED = re.compile(rf"[$€£¥]\s*{NUMBER}|{NUMBER}\s*[$€£¥%]")  # a number with a sign beside it
MEASURED = re.compile(rf"{NUMBER}\s*[A-Za-z°µ/²³]{{1,6}}")  # or with a unit
FEW = 20  # different words may well be names, such as 24h and 48h
YES_NO = (("no", "yes"), ("false", "true"), ("n", "y"), ("off", "on"), ("nein", "ja"), ("non", "oui"), ("f", "t"))


class Cells(NamedTuple):
    """One column: numbers with nan where empty, places in `levels` with -1 where empty, or moments.

    A table of digits would take many times its file as float64, so cells are stored as `compact` made them.
    """

    kind: str  # "number", "word" or "time"
    stored: np.ndarray  # [N]
    levels: tuple[str, ...] = ()
    boolean: bool = False  # numbers that the file says are true or false
    scale: int = 0  # of what is stored as whole numbers, see `compact`; 0: stored as it is
    zone: str = ""  # of moments, where the file says it; they are counted in UTC then

    @property
    def count(self) -> int:
        return len(self.stored)

    @property
    def array(self) -> np.ndarray:
        """The cells [N]: float64, places in `levels`, or int64 (microseconds from 1970)."""
        return self.stored if self.kind == "word" else expanded(self.stored, self.scale, self.kind)

    @property
    def empty(self) -> np.ndarray:
        """Which cells hold nothing [N]."""
        if self.kind == "word":
            return self.stored < 0
        if self.scale:
            return self.stored == np.iinfo(self.stored.dtype).min
        return np.isnan(self.stored) if self.kind == "number" else self.stored == NEVER

    def at(self, rows: np.ndarray | slice) -> Cells:
        """The cells of these rows."""
        return self._replace(stored=self.stored[rows])

    def holding(self, array: np.ndarray) -> Cells:
        """The same column with other cells."""
        stored, scale = (array, 0) if self.kind == "word" else compact(array, self.kind)
        return self._replace(stored=stored, scale=scale)

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
    at = lambda place: rows.origin[int(np.argmax(cell.stored == place))]
    if all(map(DATE.match, cell.levels)):
        raise BadInput(
            f"column {name!r}, row {at(0)}: {cell.levels[0][:40]!r} is a date where a number was expected; write "
            f'time = "{name}" and cyclic = {{hour = 24}} for the clock, or put it into leave_out'
        )
    if (what := with_sign(cell)) is not None:
        raise BadInput(f"column {name!r}, row {at(0)}: {what}, or name the column among the categories")
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


def with_sign(cell: Cells) -> str | None:
    """What to do about words that are numbers with a sign or a unit beside them; None if they are not."""
    forms = (PRICED, MEASURED) if len(cell.levels) > FEW else (PRICED,)
    share = (
        np.mean([any(form.fullmatch(level) for form in forms) for level in cell.levels]) if cell.levels else 0.0
    )
    if share <= 0.5:
        return None
    return (
        f"{cell.levels[0][:40]!r} is a number with a sign or a unit beside it; write the bare number in every row"
    )


def mostly_numbers(cell: Cells) -> str | None:
    """The first word of a column that is no number where most are; None if they are not."""
    odd = [level for level in cell.levels if not (_is_number(level) or COMMA.fullmatch(level))]
    return odd[0] if odd and len(odd) < 0.5 * len(cell.levels) else None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def together(one: Cells, other: Cells, category: bool = False) -> tuple[Cells, Cells]:
    """Two columns of words, or of numbers that are a category, with the same levels."""
    if category and one.kind == other.kind == "number":
        values = np.union1d(one.array, other.array)
        levels = tuple(str(number_of(value)) for value in values.tolist())
        place = lambda cell: Cells("word", np.searchsorted(values, cell.array).astype(np.int32), levels)
        return place(one), place(other)
    if one.kind != "word" or other.kind != "word":
        return one, other
    levels = tuple(dict.fromkeys((*one.levels, *other.levels)))
    places = {level: place for place, level in enumerate(levels)}
    place = np.array([*(places[level] for level in other.levels), -1], np.int32)
    return one._replace(levels=levels), other._replace(stored=place[other.stored], levels=levels)


def number_of(value: float) -> int | float:
    """A whole number as one."""
    return int(value) if value.is_integer() else value


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

    def numbers_at(self, name: str, rows: np.ndarray) -> np.ndarray:
        """The same of some rows alone."""
        part = {name: self.cells[name].at(rows)} if name in self.cells else {}
        return self._replace(cells=part, origin=self.origin[rows]).numbers(name)

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

    def computed(self, node: Node, key: str) -> np.ndarray:
        """What a formula gives in every row [N]."""
        result = np.empty(self.count)
        for first, numbers in self.blocks(node, key):
            result[first : first + BLOCK] = numbers
        return result

    def blocks(self, node: Node, key: str) -> Iterator[tuple[int, np.ndarray]]:
        """The same, some rows at a time and the number of the first: each sign of a formula takes a column."""
        names, ahead = columns_in(node), reach(node)
        for first in range(0, self.count, BLOCK):
            rows = slice(first, first + BLOCK + ahead)
            part = self._replace(
                cells={name: self.cells[name].at(rows) for name in names if name in self.cells},
                origin=self.origin[rows],
                last=self.last[rows],
            )
            numbers = np.broadcast_to(compute(node, part, key), (part.count,))
            yield first, numbers[:BLOCK]

    def at(self, rows: np.ndarray) -> Rows:
        """These rows, in their order; where one is missing between two, the run breaks."""
        whole = np.cumsum(self.last, dtype=np.int32)  # number of the run
        whole -= self.last
        whole = whole[rows]
        last = np.r_[(whole[1:] != whole[:-1]) | (np.diff(rows) != 1), True] if len(rows) else np.zeros(0, bool)
        cells = {name: cell.at(rows) for name, cell in self.cells.items()}
        time = None if self.time is None else self.time[rows]
        return self._replace(cells=cells, unit=self.unit[rows], time=time, origin=self.origin[rows], last=last)
