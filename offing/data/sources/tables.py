"""Parquet and CSV, files and folders of them, and any DataFrame that speaks the Arrow protocol."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from ...types import BadInput
from ..columns import table_columns
from ..dataset import Log
from ..schema import QUESTION, Schema, complete
from . import TABLES
from .rows import BATCH, MOST, Batch, Rows, collect

BLOCK = 8 * 2**20  # bytes of a CSV that are read at a time; no row may be longer
HEADER = 2**20  # bytes of a CSV's first line
WIDEST = 10_000  # columns
FOOTER = 64 * 2**20  # bytes of a Parquet file's footer

Reader = Callable[[list[str]], Iterator[pa.RecordBatch]]  # column names -> pieces of the file


def read_tables(paths: list[Path], name: str, schema: Schema, budget: int, seed: int) -> Log:
    """The log in files of one kind, one after the other."""
    opened = _csv if TABLES[paths[0].suffix.lower()] == "csv" else _parquet
    parts = [(str(path), *_guarded(str(path), lambda path=path: opened(path, schema))) for path in paths]
    return _log(parts, name, schema, budget, seed)


def kinds_of(path: Path) -> dict[str, np.ndarray]:
    """No rows of each column, but of its kind."""
    opened = _csv if TABLES[path.suffix.lower()] == "csv" else _parquet
    return _guarded(str(path), lambda: opened(path, Schema()))[0]


def read_frame(frame: Any, schema: Schema, budget: int, seed: int) -> Log:
    """The log in a DataFrame of any library, through the Arrow protocol."""
    name = "table"

    def opened() -> tuple[dict[str, np.ndarray], int, Reader]:
        if hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            from pyarrow.interchange import from_dataframe

            table = from_dataframe(frame)
        read = lambda names: iter(table.select(names).to_batches(max_chunksize=BATCH))
        return _kinds(table.schema, name), table.num_rows, read

    return _log([(name, *_guarded(name, opened))], name, schema, budget, seed)


def _guarded(name: str, work: Callable[[], Any]) -> Any:
    """What `work` returns; whatever goes wrong in it becomes one line."""
    try:
        return work()
    except BadInput:
        raise
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise BadInput(f"{name}: cannot be read ({error.strerror or 'no such file'})") from None
    except UnicodeEncodeError:
        raise BadInput(f"{name}: its name is not UTF-8; rename it") from None
    except Exception as error:  # a damaged file may fail in any of a dozen ways
        raise BadInput(f"{name}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    text = (str(error).splitlines() or [type(error).__name__])[0]
    if "straddling" in text:
        return f"a row is longer than {BLOCK} bytes"
    found = re.search(r"Expected (\d+) columns, got (\d+)", text)
    if found:
        row = re.search(r"Row #(\d+)", text)
        where = f"row {int(row[1]) - 2} has" if row else "a row has"
        return f"{where} {found[2]} cells where the header has {found[1]}"
    return f"damaged or not what its name says ({text[:120]})"


def _log(parts: list[tuple[Any, ...]], name: str, schema: Schema, budget: int, seed: int) -> Log:
    kinds = parts[0][1]
    whole, _, notes = complete(kinds, name, schema)
    for other, theirs, _, _ in parts:
        for role in whole.roles:
            for column in whole.names(role):
                if column not in theirs:
                    raise BadInput(f"{other}, column {column!r}: missing, and {parts[0][0]} has it")
    if whole.discrete is None and all(kinds[column].dtype.kind in "iub" for column in whole.names("action")):
        raise BadInput(f"{name}, column '{whole.names('action')[0]}': {QUESTION}")

    def read(roles: tuple[str, ...]) -> Iterator[Batch]:
        columns = [column for role in roles for column in whole.names(role)]
        for where, _, _, reader in parts:
            first = 0
            pieces = _guarded(where, lambda reader=reader: reader(columns))
            while True:
                piece = _guarded(where, lambda pieces=pieces: next(pieces, None))
                if piece is None:
                    break
                if piece.num_rows == 0:
                    continue
                found = {role: _role(piece, whole.names(role), where, first) for role in roles}
                yield Batch(found, where, first)
                first += piece.num_rows

    rows = Rows(name, whole.roles, read, min(MOST, sum(most for _, _, most, _ in parts)), {}, notes)
    log = collect(rows, whole, budget, seed)
    used = {*whole.names("obs"), *whole.names("action")}
    others = [column for column in kinds if column not in used]
    width = log.data.steps.obs.shape[1]
    named = table_columns(whole.names("obs"), whole.names("action"), width, log.task.actions, others)
    return log._replace(columns=named)


def _role(piece: pa.RecordBatch, names: tuple[str, ...], where: str, first: int) -> np.ndarray:
    arrays = [_numbers(piece.column(name), name, where, first) for name in names]
    if len(arrays) == 1:
        return arrays[0]
    for name, array in zip(names, arrays, strict=True):
        if array.ndim != 1:
            raise BadInput(
                f"{where}, column {name!r}: a list per row where one of {len(names)} columns was expected"
            )
    return np.stack(arrays, -1)


def _numbers(column: Any, name: str, where: str, first: int) -> np.ndarray:
    """An Arrow column as numpy: [n], or [n, k] for lists of k; empty cells and words are refused by row."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise BadInput(
            f"{where}, column {name!r}, row {first + row}: empty or marked as missing; repair or drop the row"
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = _numbers(column.flatten(), name, where, first) if len(column) else np.empty(0, np.float32)
        lengths = pc.call_function("list_value_length", [column]).to_numpy(zero_copy_only=False)
        if len(lengths) and (lengths != lengths[0]).any():
            row = int(np.argmax(lengths != lengths[0]))
            text = f"{lengths[row]} numbers where rows before have {lengths[0]}"
            raise BadInput(f"{where}, column {name!r}, row {first + row}: {text}")
        if inner.ndim != 1:
            raise BadInput(f"{where}, column {name!r}: lists of lists; give one flat vector of numbers per row")
        return inner.reshape(len(column), -1) if len(column) else inner.reshape(0, 1)
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise BadInput(f"{where}, column {name!r}: holds {_kind_name(kind)}, not numbers{_advice(kind)}")
    return column.to_numpy(zero_copy_only=False)


def column_numbers(column: Any, name: str, where: str) -> np.ndarray:
    """A whole Arrow column as numpy."""
    return _numbers(
        pa.concat_arrays(column.chunks) if column.num_chunks else column.combine_chunks(), name, where, 0
    )


def _kind_name(kind: Any) -> str:
    return str(kind).splitlines()[0][:60]


def _advice(kind: Any) -> str:
    if pa.types.is_struct(kind):
        return "; flatten it to one column per number"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "; images need an encoder first"
    return "; give each word a number, or one column of 0 and 1 per word"


def _kinds(schema: pa.Schema, name: str) -> dict[str, np.ndarray]:
    """No rows of each column, but of its kind, which is all that a draft looks at."""
    if len(schema.names) > WIDEST:
        raise BadInput(f"{name}: {len(schema.names)} columns; {WIDEST} is the most")
    found: dict[str, np.ndarray] = {}
    for field in schema:
        kind = field.type
        while hasattr(kind, "value_type") and not pa.types.is_map(kind):
            kind = kind.value_type  # of a list or a dictionary
        whole = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        if field.name in found:
            raise BadInput(f"{name}, column {field.name!r}: there twice")
        found[field.name] = np.empty(0, np.int64 if whole else np.float64)
    return found


def _parquet(path: Path, schema: Schema) -> tuple[dict[str, np.ndarray], int, Reader]:
    del schema
    with path.open("rb") as raw:
        raw.seek(0, 2)
        size = raw.tell()
        raw.seek(max(0, size - 8))
        length = int.from_bytes(raw.read(4), "little")
    if size < 12 or length > min(size, FOOTER):
        raise BadInput(f"{path}: damaged or not a Parquet file")
    with pq.ParquetFile(path) as file:
        kinds, most = _kinds(file.schema_arrow, str(path)), file.metadata.num_rows
    if most < 0:
        raise BadInput(f"{path}: damaged; it claims {most} rows")

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=BATCH, columns=names)

    return kinds, most, read


def _csv(path: Path, schema: Schema) -> tuple[dict[str, np.ndarray], int, Reader]:
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
        kinds = _kinds(file.schema, str(path))

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        told = {name: _told(types[name]) for name in names}
        converting = csv.ConvertOptions(include_columns=names, column_types=told)
        try:
            with csv.open_csv(path, reading, parsing, converting) as file:
                yield from file
        except pa.ArrowInvalid as error:
            raise BadInput(f"{path}{_cell(path, str(error), list(types), reading, parsing)}") from None

    return kinds, size // max(2 * width, 2) + 1, read


def _told(kind: Any) -> Any:
    """The kind to read a column as: later blocks may hold fractions where the first had whole numbers."""
    return pa.bool_() if pa.types.is_boolean(kind) else pa.float64()


def _cell(path: Path, text: str, names: list[str], reading: Any, parsing: Any) -> str:
    """Where a cell is that could not be read as a number, in our words: the column is read again, as text."""
    found = re.search(r"In CSV column #(\d+): ", text)
    if not found or int(found[1]) >= len(names):
        return f": {_reason(ValueError(text))}"
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
