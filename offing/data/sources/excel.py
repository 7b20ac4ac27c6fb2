"""Excel's .xlsx files: the first sheet, its first row the names of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa

from ...types import BadInput
from . import Request, Source, size_of
from ._packed import zip_content
from ._tables import WIDEST, Part, first_cells, parts_of, read_parts
from .frame import part_of

MOST = 128 * 2**20  # bytes that a file unpacks to
CELLS = 2**17  # that are Python's at a time, before Arrow has them


def opened(path: Path) -> Part:
    """The first sheet as a part of a table; formulas count as the value that Excel saved for them."""
    try:
        import openpyxl
    except ImportError:
        raise BadInput(f"{path}: Excel files need the extra: pip install 'offing[excel]'") from None
    if (content := zip_content(path)) > MOST:
        raise BadInput(f"{path}: unpacks to {size_of(content)}, {size_of(MOST)} is the most; save it as CSV")
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        names = _names(next(rows, ()), path)
        full = (_sized(row, len(names)) for row in rows if any(cell is not None for cell in row))
        parts: list[list[pa.Array]] = [[] for _ in names]
        while block := list(islice(full, max(1, CELLS // max(1, len(names))))):
            for part, cells in zip(parts, zip(*block, strict=True), strict=True):
                part.append(_column(cells))
    finally:
        book.close()
    if not names or not parts[0]:
        raise BadInput(f"{path}: the first sheet is empty")
    return part_of(pa.table([_joined(part) for part in parts], names=names), str(path))


def _names(cells: Sequence[object], path: Path) -> list[str]:
    """The names in the first row; columns to the right of the last are none of the table's."""
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    if len(names) > WIDEST:
        raise BadInput(f"{path}: {len(names)} columns; {WIDEST} is the most")
    if "" in names:
        raise BadInput(
            f"{path}: column {names.index('') + 1} of the first row has no name; one row of names, a cell for "
            "each column, was expected, so delete titles and further rows of names above the table"
        )
    return names


def _sized(row: Sequence[object], width: int) -> Sequence[object]:
    """As many cells as there are names."""
    return row[:width] if len(row) >= width else (*row, *(None,) * (width - len(row)))


def _column(cells: Sequence[object]) -> pa.Array:
    """Cells of one kind; where kinds are mixed, all of them as text."""
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    if all(cell is None or isinstance(cell, (int, float)) for cell in cells):
        return pa.array([None if cell is None else float(cell) for cell in cells])  # type: ignore[arg-type]
    return pa.array([None if cell is None else str(cell) for cell in cells])


def _joined(parts: list[pa.Array]) -> pa.Array:
    """Pieces of a column as one; read as cells again where they are of several kinds."""
    kinds = {part.type for part in parts if not pa.types.is_null(part.type)} or {pa.null()}
    if len(kinds) > 1:
        return _column([cell for part in parts for cell in part.to_pylist()])
    return pa.concat_arrays([part.cast(next(iter(kinds))) for part in parts])


def _parts(request: Request) -> list[Part]:
    return parts_of(request, opened)


source = Source(
    "an .xlsx file (extra `excel`)",
    lambda request: read_parts(_parts(request), request),
    lambda request: _parts(request._replace(what=request.paths[:1]))[0].kinds,
    cells=lambda request: first_cells(_parts(request._replace(what=request.paths[:1]))),
    suffixes=(".xlsx",),
    extra="excel",
)
