"""Pieces of Arrow as the cells of a table: numbers, words and moments, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from ...types import BadInput
from .._cells import MISSING
from ..table.cells import NEVER, Cells
from . import size_of
from ._tables import Part, as_bad_input

FORMS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d")  # dates, after ISO's own
CLOCKS = ("", " %H:%M", " %H:%M:%S")


class _Column:
    """One column as its pieces come in."""

    def __init__(self, name: str, where: str, form: str | None, is_time: bool) -> None:
        self.name, self.where, self.form, self.is_time = name, where, form, is_time
        self.kind, self.boolean = "", False
        self.pieces: list[np.ndarray] = []
        self.levels: dict[str, int] = {}

    def add(self, column: Any) -> None:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        if text and self.is_time:
            column = _emptied(column)
            column, self.form = as_times(column, self.form, self.name, self.where)
            kind, text = column.type, False
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            array = column.cast(pa.timestamp("us")).cast(pa.int64()).fill_null(NEVER)
            self._keep("time", array.to_numpy(zero_copy_only=False))
        elif text or pa.types.is_null(kind):
            self._keep("word", self._codes(column.cast(pa.string())))
        elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
            self.boolean = pa.types.is_boolean(kind)
            self._keep("number", column.cast(pa.float64()).to_numpy(zero_copy_only=False))
        elif pa.types.is_decimal(kind):
            self._keep("number", column.cast(pa.float64()).to_numpy(zero_copy_only=False))
        else:
            what = str(kind).splitlines()[0][:60]
            raise BadInput(f"{self.where}, column {self.name!r}: holds {what}; one cell per row was expected")

    def _keep(self, kind: str, piece: np.ndarray) -> None:
        if self.kind and self.kind != kind:
            raise BadInput(
                f"{self.where}, column {self.name!r}: holds {kind}s where rows before hold {self.kind}s"
            )
        self.kind = kind
        self.pieces.append(piece)

    def _codes(self, column: Any) -> np.ndarray:
        encoded = column.dictionary_encode()
        places = [self._place(word) for word in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
        return np.array([*places, -1], np.int32)[codes]

    def _place(self, word: str | None) -> int:
        word = "" if word is None else word.strip()
        return -1 if word in MISSING else self.levels.setdefault(word, len(self.levels))

    def cells(self) -> Cells:
        array = np.concatenate(self.pieces) if len(self.pieces) != 1 else self.pieces[0]
        if self.kind == "word" and not self.levels:
            return Cells("number", np.full(len(array), np.nan))
        return Cells(self.kind, array, tuple(self.levels), self.boolean)


def as_times(column: Any, form: str | None, name: str, where: str) -> tuple[Any, str]:
    """Texts as moments, and the form that fits all of them; day and month that could be either are a question."""
    if form is not None and form != "ISO":
        return _strict(column, form, name, where), form
    for zone in (None, "UTC"):
        try:
            return column.cast(pa.timestamp("us", zone)), "ISO"
        except pa.ArrowInvalid:
            continue
    if form == "ISO":
        raise BadInput(f"{where}, column {name!r}: a cell is no date in the form that rows before have")
    sample = column.slice(0, 10_000).drop_null()
    fits = [day + clock for day in FORMS for clock in CLOCKS if _parsed(sample, day + clock).null_count == 0]
    if len(fits) > 1 and len(sample):
        raise BadInput(
            f"{where}, column {name!r}: {sample[0].as_py()!r} may be the day or the month first; write "
            f'time_format = "{fits[0]}" or "{fits[1]}" in the schema'
        )
    if not fits:
        word = sample[0].as_py() if len(sample) else ""
        raise BadInput(
            f'{where}, column {name!r}: {word[:40]!r} is no date that is known; write its form as time_format = "'
            '%d.%m.%Y %H:%M" in the schema'
        )
    return _strict(column, fits[0], name, where), fits[0]


def _emptied(column: Any) -> Any:
    """Texts without those that stand for an empty cell."""
    none = pyarrow.compute.call_function(
        "is_in", [column], pyarrow.compute.SetLookupOptions(pa.array(MISSING, column.type))
    )
    return pyarrow.compute.call_function("if_else", [none, pa.scalar(None, column.type), column])


def _parsed(column: Any, form: str) -> Any:
    """Texts of one form as moments; null where one is of another."""
    options = pyarrow.compute.StrptimeOptions(form, "us", error_is_null=True)
    return pyarrow.compute.call_function("strptime", [column], options)


def _strict(column: Any, form: str, name: str, where: str) -> Any:
    try:
        times = _parsed(column, form)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadInput(f"schema, 'time_format': {form!r} is no form of dates") from None
    bad = times.is_null().to_numpy(zero_copy_only=False) & column.is_valid().to_numpy(zero_copy_only=False)
    if bad.any():
        word = column[int(bad.argmax())].as_py()
        raise BadInput(f"{where}, column {name!r}: {word[:40]!r} is no date of the form {form!r}")
    return times


def read_cells(
    parts: Sequence[Part], names: list[str], time: str | None, form: str | None, budget: int
) -> dict[str, Cells]:
    """The cells of the named columns, of all parts one after the other."""
    columns = {name: _Column(name, parts[0].name, form, name == time) for name in names}
    size = 0
    for part in parts:
        pieces = as_bad_input(part.name, lambda part=part: part.read(names))
        while (piece := as_bad_input(part.name, lambda pieces=pieces: next(pieces, None))) is not None:
            size += piece.num_rows * 8 * len(names)
            if size > 2 * budget:
                raise BadInput(f"{part.name}: more than {size_of(2 * budget)} of cells; give a part of it")
            for name, column in columns.items():
                cells = piece.column(piece.schema.get_field_index(name))
                as_bad_input(part.name, lambda column=column, cells=cells: column.add(cells))
    if any(not column.pieces for column in columns.values()):
        raise BadInput(f"{parts[0].name}: the log is empty")
    return {name: column.cells() for name, column in columns.items()}
