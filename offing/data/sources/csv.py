"""CSV files and folders of them: with comma, semicolon, tab or bar, a decimal comma, packed by gzip or zip."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as csv

from ...types import BadInput
from . import Request, Source, size_of
from ._packed import gzip_head, zip_content
from ._tables import WIDEST, Part, first_cells, parts_of, read_parts, reason

BLOCK = 2**20  # bytes that are read at a time
ROW = 8 * 2**20  # bytes of a row
WIDE = 1_000  # columns: of a wider table twice as much is read at a time
HEADER = 2**20  # bytes of the first line
NONE = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "n/a", "#N/A", "-", "?"]  # empty cells
LOOK = 2_000  # characters of a row that tell a decimal comma from a point
SOME = 10_000  # cells that are looked through at a time
COMMA = re.compile(r"\s*-?\d+,\d+\s*")  # a number with a decimal comma


class Form(NamedTuple):
    """How a file is written."""

    delimiter: str
    decimal: str
    encoding: str
    block: int = BLOCK

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

    def table(self, lines: bytes, names: list[str] | None, converting: csv.ConvertOptions) -> pa.Table:
        """Lines as a table; without names, the first line has them."""
        reading = csv.ReadOptions(
            use_threads=False, block_size=len(lines) + 1, encoding=self.encoding, column_names=names
        )
        return csv.read_csv(pa.BufferReader(lines), reading, self.parse, converting)


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
    form = form._replace(block=2 * BLOCK) if width > WIDE else form
    try:
        fields = form.table(
            head[: head.rfind(b"\n") + 1] if size > len(head) else head, None, form.convert()
        ).schema
    except pa.ArrowInvalid as error:
        raise BadInput(f"{path}{_where(path, str(error), [], form)}") from None
    types = {field.name: _read_as(field.type) for field in fields}

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        converting = form.convert(include_columns=names, column_types={name: types[name] for name in names})
        try:
            yield from _pieces(path, form, fields.names, converting)
        except pa.ArrowInvalid as error:
            raise BadInput(f"{path}{_where(path, str(error), list(types), form)}") from None

    seen = pa.schema(
        [pa.field(name, kind) for name, kind in zip(fields.names, map(_seen, fields.types), strict=True)]
    )
    return Part(str(path), seen, size // max(2 * width, 2) + 1, read, _notes(form))


def _notes(form: Form) -> tuple[str, ...]:
    """How the file was read, where that is not how most are written."""
    marks = {";": "semicolons", "\t": "tabs", "|": "bars"}
    notes = (
        [f"file: cells are separated by {marks[form.delimiter]}, as in its first line"]
        if form.delimiter in marks
        else []
    )
    if form.decimal == ",":
        notes.append("file: a comma stands before decimals, as in its first rows")
    if form.encoding != "utf8":
        notes.append("file: not in UTF-8, so it was read as Windows-1252; look whether the names are right")
    return tuple(notes)


def _lines(path: Path, block: int) -> Iterator[bytes]:
    """Whole lines, about a block of them at a time. Arrow's own reader would read some forty blocks ahead."""
    rest = b""
    with _stream(path) as raw:
        while piece := raw.read(block):
            end = piece.rfind(b"\n") + 1
            if len(rest) + (piece.find(b"\n") if end else len(piece)) > ROW:
                raise BadInput(f"{path}: a row is longer than {size_of(ROW)}, which is the most")
            if end:
                yield rest + piece[:end]
                rest = piece[end:]
            else:
                rest += piece
    yield rest


def _pieces(path: Path, form: Form, names: list[str], converting: csv.ConvertOptions) -> Iterator[pa.RecordBatch]:
    """The file's rows, piece by piece."""
    known, rows = None, 0
    for lines in _lines(path, form.block):
        if not lines or lines.isspace():
            continue
        try:
            table = form.table(lines, known, converting)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(_counted(str(error), rows + (known is not None))) from None
        known, rows = names, rows + table.num_rows
        yield from table.to_batches()


def _counted(text: str, before: int) -> str:
    """What Arrow says of a piece, with the row's number in the file."""
    return re.sub(r"Row #(\d+)", lambda row: f"Row #{int(row[1]) + before}", text)


def _head(path: Path) -> tuple[bytes, int]:
    """The first bytes of a file, unpacked, and how many there may be in all."""
    if path.name.lower().endswith(".gz"):
        return gzip_head(path, HEADER)
    if path.name.lower().endswith(".zip"):
        zip_content(path)
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
    counts = {mark: line.count(mark.encode()) for mark in (",", ";", "\t", "|")}
    delimiter = max(counts, key=lambda mark: counts[mark])
    delimiter = ";" if counts[";"] and counts[";"] >= counts[","] else delimiter
    cells = [cell for row in text.split("\n", 50)[1:50] for cell in row[:LOOK].split(delimiter)]
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


def _where(path: Path, text: str, names: list[str], form: Form) -> str:
    """Where a cell is that could not be read, in our words: its column is read again, as bytes."""
    place, row = (re.search(what, text) for what in (r"In CSV column #(\d+): ", r"Row #(\d+)"))
    if "out of sync" in text or (row and _quoted(path) == int(row[1]) - 2):
        return f", row {_quoted(path)}: a quotation mark is opened and not closed; repair or drop the row"
    if not place or int(place[1]) >= len(names):
        return f": {reason(ValueError(text))}"
    name, first = names[int(place[1])], 0
    test = _is_text if "UTF8" in text else lambda cell: _is_number(cell.replace(form.decimal.encode(), b"."))
    converting = csv.ConvertOptions(include_columns=[name], column_types={name: pa.binary()})
    for piece in _pieces(path, form, names, converting):
        for begin in range(0, piece.num_rows, SOME):
            cells = piece.column(0).slice(begin, SOME).to_pylist()
            bad = next((number for number, cell in enumerate(cells) if not test(cell)), None)
            if bad is not None:
                return f", column {name!r}, row {first + begin + bad}: {_words(cells[bad], form)}"
        first += piece.num_rows
    return f", column {name!r}: holds what is not a number"


def _quoted(path: Path) -> int | None:
    """The first row with a quotation mark too many."""
    with _stream(path) as raw:
        lines = io.BufferedReader(raw)
        for number, line in enumerate(iter(lambda: lines.readline(BLOCK), b"")):
            if line.count(b'"') % 2:
                return number - 1
    return None


def _words(given: bytes, form: Form) -> str:
    cell = given.decode("utf-8", "replace")
    if not _is_text(given):
        return f"{cell[:40]!r} is not UTF-8; save the whole file as UTF-8 (in Excel: CSV UTF-8)"
    if COMMA.fullmatch(cell) and form.decimal == ".":
        return f"{cell[:40]!r} has a decimal comma where other cells have a point; write one of the two throughout"
    return f"{cell[:40]!r} is not a number; repair or drop the row, or name the column among the categories"


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.strip().decode("utf-8", "replace") in NONE
    return True


def _is_text(cell: bytes) -> bool:
    try:
        cell.decode("utf-8")
    except UnicodeDecodeError:
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
