"""CSV files and folders of them: with comma, semicolon or tab, a decimal comma, packed by gzip or zip."""

from __future__ import annotations

import gzip
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as csv

from ...types import BadInput
from . import Request, Source
from ._tables import WIDEST, Part, first_cells, parts_of, read_parts, reason

BLOCK = 8 * 2**20  # bytes that are read at a time; no row may be longer
HEADER = 2**20  # bytes of the first line
NONE = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "n/a", "#N/A", "-", "?"]  # empty cells
COMMA = re.compile(r"\s*-?\d+,\d+\s*")  # a number with a decimal comma


class Form(NamedTuple):
    """How a file is written."""

    delimiter: str
    decimal: str
    encoding: str

    def convert(self, **more: Any) -> csv.ConvertOptions:
        """What cells mean: which are empty, and what stands before decimals."""
        return csv.ConvertOptions(
            null_values=NONE,
            strings_can_be_null=False,  # what a word says is read with the words: `none` may be a choice
            decimal_point=self.decimal,
            **more,
        )

    @property
    def parse(self) -> csv.ParseOptions:
        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=False)

    @property
    def read(self) -> csv.ReadOptions:
        return csv.ReadOptions(block_size=BLOCK, encoding=self.encoding)


def opened(path: Path) -> Part:
    """The kinds of a CSV's columns by its first block, an upper bound on its rows, and how to read it."""
    head, size = _head(path)
    line = head.split(b"\n", 1)[0]
    if size == 0 or not head:
        raise BadInput(f"{path}: the file is empty")
    if len(line) == len(head) and size > HEADER:
        raise BadInput(
            f"{path}: the first line is longer than {HEADER} bytes; a line of column names was expected"
        )
    form = _form(path, head, line)
    width = line.count(form.delimiter.encode()) + 1
    if width > WIDEST:
        raise BadInput(f"{path}: {width} columns; {WIDEST} is the most")
    with _stream(path) as raw, csv.open_csv(raw, form.read, form.parse, form.convert()) as file:
        fields = file.schema
    types = {field.name: _read_as(field.type) for field in fields}

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        converting = form.convert(include_columns=names, column_types={name: types[name] for name in names})
        try:
            with _stream(path) as raw, csv.open_csv(raw, form.read, form.parse, converting) as file:
                yield from file
        except pa.ArrowInvalid as error:
            raise BadInput(f"{path}{_cell(path, str(error), list(types), form)}") from None

    seen = pa.schema(
        [pa.field(name, kind) for name, kind in zip(fields.names, map(_seen, fields.types), strict=True)]
    )
    return Part(str(path), seen, size // max(2 * width, 2) + 1, read)


def _head(path: Path) -> tuple[bytes, int]:
    """The first bytes of a file, unpacked, and how many there may be in all."""
    if path.name.lower().endswith(".gz"):
        with gzip.open(path, "rb") as raw:
            return raw.read(HEADER), max(1, path.stat().st_size * 40)
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive, archive.open(_member(archive, path)) as raw:
            return raw.read(HEADER), max(1, archive.getinfo(_member(archive, path)).file_size)
    with path.open("rb") as raw:
        return raw.read(HEADER), raw.seek(0, 2)


def _stream(path: Path) -> Any:
    """The file as a stream of plain bytes."""
    if path.name.lower().endswith(".gz"):
        return pa.input_stream(str(path), compression="gzip")
    if path.name.lower().endswith(".zip"):
        archive = zipfile.ZipFile(path)
        return archive.open(_member(archive, path))
    return path.open("rb")


def _member(archive: zipfile.ZipFile, path: Path) -> str:
    names = [
        name for name in archive.namelist() if name.lower().endswith(".csv") and not name.startswith("__MACOSX")
    ]
    if len(names) != 1:
        raise BadInput(f"{path}: {len(names)} .csv files in it; one was expected, so unpack it into a folder")
    return names[0]


def _form(path: Path, head: bytes, line: bytes) -> Form:
    """The delimiter by the first line, the decimal sign by the first rows, the encoding by the first block."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadInput(f"{path}: in UTF-16; save it as UTF-8 (in Excel: CSV UTF-8)")
    encoding = "utf8"
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        cut = error.start >= len(head) - 4  # a letter that the end of the block cut in two
        encoding = "utf8" if cut else "cp1252"
        text = head.decode("utf-8" if cut else "cp1252", "replace")
    counts = {mark: line.count(mark.encode()) for mark in (",", ";", "\t")}
    delimiter = max(counts, key=lambda mark: counts[mark])
    delimiter = ";" if counts[";"] and counts[";"] >= counts[","] else delimiter
    cells = [cell for row in text.split("\n")[1:50] for cell in row.split(delimiter)]
    commas = 0 if delimiter == "," else sum(COMMA.fullmatch(cell) is not None for cell in cells)
    points = sum(re.fullmatch(r"\s*-?\d+\.\d+\s*", cell) is not None for cell in cells)
    return Form(delimiter, "," if commas > points else ".", encoding)


def _read_as(kind: Any) -> Any:
    """The kind to read a column as: later blocks may hold fractions where the first had whole numbers."""
    if pa.types.is_boolean(kind):
        return pa.bool_()
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_floating(kind) else pa.string()


def _seen(kind: Any) -> Any:
    """The kind that a column has for those who ask: dates are read as text, but are dates."""
    return (
        kind
        if _read_as(kind) != pa.string() or pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        else pa.string()
    )


def _cell(path: Path, text: str, names: list[str], form: Form) -> str:
    """Where a cell is that could not be read as a number, in our words: the column is read again, as text."""
    column = re.search(r"In CSV column #(\d+): ", text)
    if not column or int(column[1]) >= len(names):
        return f": {reason(ValueError(text))}"
    name, first = names[int(column[1])], 0
    converting = csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()})
    with _stream(path) as raw, csv.open_csv(raw, form.read, form.parse, converting) as file:
        for piece in file:
            try:
                piece.column(0).cast(pa.float64())
            except pa.ArrowInvalid:
                for row, cell in enumerate(piece.column(0).to_pylist()):
                    if not _is_number(cell) and cell.strip() not in NONE:
                        return f", column {name!r}, row {first + row}: {_words(cell)}"
            first += piece.num_rows
    return f", column {name!r}: holds what is not a number"


def _words(cell: str) -> str:
    if COMMA.fullmatch(cell):
        return f"{cell[:40]!r} has a decimal comma where other cells have a point; write one of the two throughout"
    return f"{cell[:40]!r} is not a number; repair or drop the row, or name the column among the categories"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parts(request: Request) -> list[Part]:
    return parts_of(request, opened)


source = Source(
    "a .csv file (also .csv.gz and .zip)",
    lambda request: read_parts(_parts(request), request),
    lambda request: _parts(request._replace(what=request.paths[:1]))[0].kinds,
    cells=lambda request: first_cells(_parts(request._replace(what=request.paths[:1]))),
    suffixes=(".csv", ".csv.gz", ".tsv", ".zip"),
)
