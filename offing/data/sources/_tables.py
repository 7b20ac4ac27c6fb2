"""Tables of any format, as pieces of Arrow: read piece by piece, or shaped whole where the schema asks for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...types import BadInput
from .._cells import MISSING
from ..columns import table_columns
from ..dataset import Log
from ..schema import QUESTION, Schema, complete
from ..table.cells import DATE
from . import First, Request
from ._rows import MOST, Batch, Rows, collect

WIDEST = 10_000  # columns

Reader = Callable[[list[str]], Iterator[pa.RecordBatch]]  # column names -> pieces of the file


class Part(NamedTuple):
    """One file of a table: its columns, how many rows it may have, and how it is read."""

    name: str
    fields: pa.Schema
    most: int
    read: Reader
    notes: tuple[str, ...] = ()  # what was assumed on the way

    @property
    def kinds(self) -> dict[str, np.ndarray]:
        """No rows of each column, but of its kind."""
        return _kinds(self.fields, self.name)


def parts_of(request: Request, opened: Callable[[Path], Part]) -> list[Part]:
    """The parts of a table that lies in files."""
    return [as_bad_input(str(path), lambda path=path: opened(path)) for path in request.paths]


def as_bad_input(name: str, work: Callable[[], Any]) -> Any:
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
        raise BadInput(f"{name}: {reason(error)}") from None


def reason(error: Exception) -> str:
    """Why a file could not be read, in our words."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    if "codec can't decode" in text:
        return "holds bytes that are neither UTF-8 nor Windows-1252; save it as UTF-8"
    if "straddling" in text:
        return "a row is longer than can be read"
    counts = re.search(r"Expected (\d+) columns, got (\d+)", text)
    if counts:
        row = re.search(r"Row #(\d+)", text)
        where = f"row {int(row[1]) - 2} has" if row else "a row has"
        return f"{where} {counts[2]} cells where the header has {counts[1]}"
    return f"damaged or not what its name says ({text[:120]})"


def read_parts(parts: Sequence[Part], request: Request) -> Log:
    """The log in a table's parts, one after the other."""
    name, schema = request.name, request.schema or Schema()
    kinds = parts[0].kinds
    if (log := _shaped(parts, request, schema, kinds)) is not None:
        return log
    whole, _, notes = complete(kinds, name, schema)
    for part in parts[1:]:
        for column in (column for role in whole.roles for column in whole.names(role)):
            if column not in part.kinds:
                raise BadInput(f"{part.name}, column {column!r}: missing, and {parts[0].name} has it")
    if whole.discrete is None and all(kinds[column].dtype.kind in "iub" for column in whole.names("action")):
        raise BadInput(f"{name}, column '{whole.names('action')[0]}': {QUESTION}")

    def read(roles: tuple[str, ...]) -> Iterator[Batch]:
        columns = [column for role in roles for column in whole.names(role)]
        for part in parts:
            where, first = part.name, 0
            pieces = as_bad_input(where, lambda part=part: part.read(columns))
            while True:
                piece = as_bad_input(where, lambda pieces=pieces: next(pieces, None))
                if piece is None:
                    break
                if piece.num_rows == 0:
                    continue
                batch = {role: _role(piece, whole.names(role), where, first) for role in roles}
                yield Batch(batch, where, first)
                first += piece.num_rows

    notes = [*parts[0].notes, *notes]
    rows = Rows(name, whole.roles, read, min(MOST, sum(part.most for part in parts)), {}, notes)
    log = collect(rows, whole, request)
    used = {*whole.names("obs"), *whole.names("action")}
    others = [column for column in kinds if column not in used]
    width = log.data.steps.obs.shape[1]
    named = table_columns(whole.names("obs"), whole.names("action"), width, log.task.actions, others)
    return log._replace(columns=named)


SEEN = 50_000  # rows that a draft looks at,
CELLS = 2**23  # and cells: of a wide table fewer rows, but never less than
LEAST = 500
GLANCE = 100  # cells that show whether a column of texts holds dates
TIMES = ("time", "timestamp", "date", "datetime", "zeit", "datum", "zeitstempel")


def first_cells(parts: Sequence[Part]) -> First:
    """The cells of a table's first rows, and the column of times, if one is plainly that."""
    from ._times import UnsureDate
    from ._values import read_cells

    part = parts[0]
    _kinds(part.fields, part.name)  # refuses a name that is there twice
    fields = [field for field in part.fields if not pa.types.is_nested(field.type)]
    most = max(LEAST, min(SEEN, CELLS // max(1, len(fields))))
    part = part._replace(read=lambda names: _first(parts[0].read(names), most))
    names, notes = [field.name for field in fields], list(part.notes)
    for time in _time_hints(part, fields):
        try:
            return First(read_cells([part], names, time, None, 2**32), time, tuple(notes))
        except UnsureDate as error:
            if not error.forms:
                notes.append(
                    f"column {time!r}: {error.example[:40]!r} is no date that is known; if it is the time, "
                    f'write time = "{time}" and its form as in time_format = "%d.%m.%Y %H:%M"'
                )
                continue
            form, *others = error.forms
            notes.append(
                f"time_format: {error.example[:40]!r} may be the day or the month first; which is it? "
                f'(time_format = "{form}" or time_format = "{others[0]}")'
            )
            return First(read_cells([part], names, time, form, 2**32), time, tuple(notes))
        except BadInput:
            continue
    return First(read_cells([part], names, None, None, 2**32), None, tuple(notes))


def _time_hints(part: Part, fields: Sequence[pa.Field]) -> list[str]:
    """Columns that may be the time, the likeliest first: by their kind, by their name, by their first cells."""
    hints = [f.name for f in fields if pa.types.is_timestamp(f.type) or pa.types.is_date(f.type)]
    hints += [f.name for f in fields if f.name.lower() in TIMES]
    texts = [f.name for f in fields if not _counts(f.type) and f.name not in hints]
    piece = as_bad_input(part.name, lambda: next(iter(part.read(texts)), None)) if texts else None
    if piece is None:
        return list(dict.fromkeys(hints))
    for name in texts:
        if _dates(piece.column(piece.schema.get_field_index(name)).slice(0, GLANCE)):
            hints.append(name)
    return list(dict.fromkeys(hints))


def _dates(column: Any) -> bool:
    """Whether all words of a column look like dates; one after the other, since a word may be long."""
    some = False
    for cell in column:
        word = str(cell.as_py()).strip() if cell.is_valid else None
        if word is None or word in MISSING:
            continue
        if not DATE.match(word):
            return False
        some = True
    return some


def _first(pieces: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    count = 0
    for piece in pieces:
        yield piece.slice(0, most - count)
        count += piece.num_rows
        if count >= most:
            return


def _shaped(
    parts: Sequence[Part], request: Request, schema: Schema, kinds: Mapping[str, np.ndarray]
) -> Log | None:
    """The log of a table that is more than columns of numbers; None if it is not."""
    from ..table.log import completed, is_shaped, needed, shaped
    from ._values import read_cells

    plain = not is_shaped(schema, kinds)
    if plain:
        whole, _, _ = complete(kinds, request.name, schema)
        used = [name for role in whole.roles for name in whole.names(role)]
        if all(_counts(parts[0].fields.field(name).type) for name in used):
            return None
    schema, reasons = completed(schema, kinds, request.name)
    names = needed(schema, kinds)
    cells = read_cells(parts, names, schema.time or schema.step, schema.time_format, request.budget)
    own = {*schema.names("obs"), *schema.names("action")}
    with naming(request.name):
        log = shaped(cells, schema, request, [name for name in kinds if name not in own])
    return log._replace(notes=(*parts[0].notes, *reasons, *log.notes))


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Puts the name of the log before refusals that name a column alone."""
    try:
        yield
    except BadInput as error:
        text = str(error)
        raise BadInput(text if text.startswith(name) else f"{name}, {text}") from None


def _counts(kind: Any) -> bool:
    """Whether a column holds numbers, or vectors of them, or what only its own message can refuse."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    words = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return not (words or pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_null(kind))


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
    kinds: dict[str, np.ndarray] = {}
    for field in schema:
        kind = field.type
        while hasattr(kind, "value_type") and not pa.types.is_map(kind):
            kind = kind.value_type  # of a list or a dictionary
        whole = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        if field.name in kinds:
            raise BadInput(f"{name}, column {field.name!r}: there twice")
        kinds[field.name] = np.empty(0, np.int64 if whole else np.float64)
    return kinds
