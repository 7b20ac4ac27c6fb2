"""Pieces of Arrow as the cells of a table: numbers, words and moments, column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from ...types import BadInput
from .._cells import MISSING
from ..table.cells import Cells
from ..table.compact import NEVER, compact, joined
from . import size_of
from ._tables import Part, as_bad_input
from ._times import as_times

GATHERED = 2**20  # cells that are worked on at a time
WIDE = 1_000  # columns: so many are worked on together where that goes
SMALL = 126  # whole numbers below take one byte
PIECES = 32  # of a column, before they are put together
LONGEST = 10_000  # bytes of a word
MANY = 50_000  # different words that a column may hold whatever its length


class _Column:
    """One column as its pieces come in."""

    def __init__(self, name: str, where: str, form: str | None, is_time: bool) -> None:
        self.name, self.where, self.form, self.is_time = name, where, form, is_time
        self.kind, self.boolean, self.rows, self.zone = "", False, 0, ""
        self.pieces: list[tuple[np.ndarray, int]] = []  # as `compact` makes them
        self.words: pa.Array = pa.array([], pa.string())  # that were met so far, each once

    def add(self, column: Any) -> None:
        if pa.types.is_dictionary(column.type):
            if not self.is_time and pa.types.is_string(column.type.value_type):
                self._keep("word", self._codes(column))  # however long its words are, they are there once
                return
            column = column.dictionary_decode()
        kind = column.type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        if text and self.is_time:
            none = _among(column, pa.array(MISSING, column.type), True)
            column = pyarrow.compute.call_function("if_else", [none, pa.scalar(None, column.type), column])
            column, self.form = as_times(column, self.form, self.name, self.where)
            kind, text = column.type, False
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            self.zone = (kind.tz or "") if pa.types.is_timestamp(kind) else ""
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
        scale = self.pieces[-1][1] if self.pieces else 1
        self.store(*((piece, 0) if kind == "word" else compact(piece, kind, scale or 1)))

    def store(self, stored: np.ndarray, scale: int) -> None:
        """Adds cells as `compact` made them."""
        self.rows += len(stored)
        self.pieces.append((stored, scale))
        if len(self.pieces) >= PIECES:
            self.pieces = [joined(self.pieces, self.kind)]

    def _codes(self, column: Any) -> np.ndarray:
        """Places of the words among those of the column, -1 where one stands for an empty cell."""
        encoded = _used(column) if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        longest = pyarrow.compute.call_function("binary_length", [encoded.dictionary])
        longest = pyarrow.compute.call_function("max", [longest]).as_py() or 0
        if longest > LONGEST:
            raise BadInput(
                f"{self.where}, column {self.name!r}: a word of {longest} bytes, and {LONGEST} is the most; "
                "leave the column out, or name what its texts say by a word each"
            )
        own = _trimmed(encoded.dictionary)
        new = pyarrow.compute.call_function("unique", [own.filter(_among(own, self.words, False))])
        self.words = pa.concat_arrays([self.words, new.drop_null()])
        rows = self.rows + len(column)
        if len(self.words) > MANY and len(self.words) > 0.5 * rows:
            raise BadInput(
                f"{self.where}, column {self.name!r}: {len(self.words)} different words in {rows} rows; words "
                "that tell units, episodes or categories apart are there more than once, so leave the column out"
            )
        places = pyarrow.compute.call_function("index_in", [own], pyarrow.compute.SetLookupOptions(self.words))
        places = np.append(places.fill_null(-1).to_numpy(zero_copy_only=False), -1)
        places = places.astype(np.int8 if len(self.words) < 128 else np.int32)
        return places[encoded.indices.fill_null(len(own)).to_numpy(zero_copy_only=False)]

    def cells(self) -> Cells:
        stored, scale = joined(self.pieces, self.kind) if len(self.pieces) > 1 else self.pieces[0]
        self.pieces = []
        if self.kind == "word" and not len(self.words):
            return Cells("number", np.full(len(stored), np.iinfo(np.int8).min, np.int8), scale=1)
        return Cells(self.kind, stored, tuple(self.words.to_pylist()), self.boolean, scale, self.zone)


def _used(column: Any) -> Any:
    """A dictionary's words that are there, the first one first, as though they had been read one by one."""
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    values, first, places = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    order = order[values[order] >= 0]
    place = np.full(len(values), -1, np.int32)
    place[order] = np.arange(len(order))
    indices = pa.array(place[places], mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary.take(pa.array(values[order])))


def _trimmed(words: Any) -> Any:
    """Words without spaces around them; null for those that stand for an empty cell."""
    words = pyarrow.compute.call_function("utf8_trim_whitespace", [words])
    return pyarrow.compute.call_function(
        "if_else", [_among(words, pa.array(MISSING), True), pa.scalar(None, words.type), words]
    )


def _among(words: Any, others: Any, inside: bool) -> Any:
    """Which words are among the others, or which are not."""
    among = pyarrow.compute.call_function("is_in", [words], pyarrow.compute.SetLookupOptions(others))
    return among if inside else pyarrow.compute.call_function("invert", [among])


def read_cells(
    parts: Sequence[Part], names: list[str], time: str | None, form: str | None, budget: int
) -> dict[str, Cells]:
    """The cells of the named columns, of all parts one after the other."""
    columns = {name: _Column(name, parts[0].name, form, name == time) for name in names}
    size = 0
    for part in parts:
        for pieces in _gathered(part, names):
            size += sum(piece.num_rows for piece in pieces) * 8 * len(names)
            if size > 2 * budget:
                raise BadInput(f"{part.name}: more than {size_of(2 * budget)} of cells; give a part of it")
            ready = _digits(pieces, columns) if len(names) > WIDE else {}
            for name in names:
                if name in ready:
                    columns[name].store(ready[name], 1)
                else:
                    as_bad_input(part.name, lambda name=name, pieces=pieces: columns[name].add(_one(pieces, name)))
    if any(not column.pieces for column in columns.values()):
        raise BadInput(f"{parts[0].name}: the log is empty")
    pa.default_memory_pool().release_unused()  # else Arrow keeps what its last block took, while the log is made
    return {name: column.cells() for name, column in columns.items()}


def _gathered(part: Part, names: list[str]) -> Iterator[list[pa.RecordBatch]]:
    """Pieces of a part, some at a time: of a wide table each has but a few rows of very many columns."""
    pieces = as_bad_input(part.name, lambda: part.read(names))
    some: list[pa.RecordBatch] = []
    while (piece := as_bad_input(part.name, lambda: next(pieces, None))) is not None:
        some.append(piece)
        if sum(piece.num_rows for piece in some) * len(names) >= GATHERED:
            yield some
            some = []
    if some:
        yield some


def _one(pieces: list[pa.RecordBatch], name: str) -> Any:
    """A column of several pieces as one."""
    parts = [piece.column(piece.schema.get_field_index(name)) for piece in pieces]
    if len(parts) == 1:
        return parts[0]
    if pa.types.is_dictionary(parts[0].type):
        return pa.chunked_array(parts).unify_dictionaries().combine_chunks()
    return pa.concat_arrays(parts)


def _digits(pieces: list[pa.RecordBatch], columns: dict[str, _Column]) -> dict[str, np.ndarray]:
    """Of a wide table, columns of numbers that hold small whole ones alone, as `compact` makes them with scale 1.

    All together: that takes a tenth of the time that ten thousand columns take one by one.
    """
    numeric = [field.name for field in pieces[0].schema if field.type == pa.float64()]
    names = [name for name in numeric if columns[name].kind in ("", "number")]
    if not names:
        return {}
    tensors = [piece.select(names).to_tensor(null_to_nan=True, row_major=False) for piece in pieces]
    numbers = np.concatenate([np.asarray(tensor) for tensor in tensors])  # [rows, columns]
    del tensors
    whole = (np.abs(numbers).max(0) < SMALL) & ~(np.signbit(numbers) & (numbers == 0)).any(0)  # no nan passes
    chosen = np.flatnonzero(whole & (numbers == np.rint(numbers)).all(0))
    stored = np.ascontiguousarray(numbers[:, chosen].T, np.int8)
    for place in chosen:
        columns[names[place]].kind = "number"
    return {names[place]: stored[row] for row, place in enumerate(chosen)}
