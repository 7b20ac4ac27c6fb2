"""Excel's .xlsx files: the first sheet, its first row the names of the columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from ...types import BadInput
from . import Request, Source
from ._tables import Part, first_cells, parts_of, read_parts
from .frame import part_of

MOST = 64 * 2**20  # bytes of a file


def opened(path: Path) -> Part:
    """The first sheet as a part of a table; formulas count as the value that Excel saved for them."""
    try:
        import openpyxl
    except ImportError:
        raise BadInput(f"{path}: Excel files need the extra: pip install 'offing[excel]'") from None
    if path.stat().st_size > MOST:
        raise BadInput(f"{path}: larger than {MOST // 2**20} MB; save it as CSV")
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        names = [str(cell) for cell in next(rows, ()) if cell is not None]
        columns = list(
            zip(*(row[: len(names)] for row in rows if any(cell is not None for cell in row)), strict=False)
        )
    finally:
        book.close()
    if not names or not columns:
        raise BadInput(f"{path}: the first sheet is empty")
    table = pa.table([_column(cells, name, path) for name, cells in zip(names, columns, strict=True)], names=names)
    return part_of(table, str(path))


def _column(cells: tuple[object, ...], name: str, path: Path) -> pa.Array:
    """A column of one kind; where kinds are mixed, all of it as text."""
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    if all(cell is None or isinstance(cell, (int, float)) for cell in cells):
        return pa.array([None if cell is None else float(cell) for cell in cells])  # type: ignore[arg-type]
    return pa.array([None if cell is None else str(cell) for cell in cells])


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
