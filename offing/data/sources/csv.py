"""CSV files, and folders of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from ...types import BadInput
from . import Request, Source
from ._tables import WIDEST, Part, parts_of, read_parts, reason

BLOCK = 8 * 2**20  # bytes that are read at a time; no row may be longer
HEADER = 2**20  # bytes of the first line


def opened(path: Path) -> Part:
    """The kinds of a CSV's columns by its first block, an upper bound on its rows, and how to read it."""
    with path.open("rb") as raw:
        header = raw.read(HEADER).split(b"\n", 1)
        size = raw.seek(0, 2)
    if size == 0:
        raise BadInput(f"{path}: the file is empty")
    if len(header) == 1 and size > HEADER:
        raise BadInput(
            f"{path}: the first line is longer than {HEADER} bytes; a line of column names was expected"
        )
    width = header[0].count(b",") + 1
    if width > WIDEST:
        raise BadInput(f"{path}: {width} columns; {WIDEST} is the most")
    reading, parsing = csv.ReadOptions(block_size=BLOCK), csv.ParseOptions(newlines_in_values=False)
    with csv.open_csv(path, reading, parsing) as file:
        types = {field.name: field.type for field in file.schema}
        fields = file.schema

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        told = {name: _told(types[name]) for name in names}
        converting = csv.ConvertOptions(include_columns=names, column_types=told)
        try:
            with csv.open_csv(path, reading, parsing, converting) as file:
                yield from file
        except pa.ArrowInvalid as error:
            raise BadInput(f"{path}{_cell(path, str(error), list(types), reading, parsing)}") from None

    return Part(str(path), fields, size // max(2 * width, 2) + 1, read)


def _told(kind: Any) -> Any:
    """The kind to read a column as: later blocks may hold fractions where the first had whole numbers."""
    return pa.bool_() if pa.types.is_boolean(kind) else pa.float64()


def _cell(path: Path, text: str, names: list[str], reading: Any, parsing: Any) -> str:
    """Where a cell is that could not be read as a number, in our words: the column is read again, as text."""
    found = re.search(r"In CSV column #(\d+): ", text)
    if not found or int(found[1]) >= len(names):
        return f": {reason(ValueError(text))}"
    name, first = names[int(found[1])], 0
    converting = csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()})
    with csv.open_csv(path, reading, parsing, converting) as file:
        for piece in file:
            try:
                piece.column(0).cast(pa.float64())
            except pa.ArrowInvalid:
                for row, cell in enumerate(piece.column(0).to_pylist()):
                    if not _is_number(cell):
                        what = "empty" if not cell.strip() else f"{cell[:40]!r} is not a number"
                        return f", column {name!r}, row {first + row}: {what}; repair or drop the row"
            first += piece.num_rows
    return f", column {name!r}: holds what is not a number"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parts(request: Request) -> list[Part]:
    return parts_of(request, opened)


source = Source(
    "a .csv file",
    lambda request: read_parts(_parts(request), request),
    lambda request: _parts(request._replace(what=request.paths[:1]))[0].kinds,
    suffixes=(".csv",),
)
