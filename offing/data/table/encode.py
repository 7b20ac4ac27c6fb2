"""Columns of a table as numbers: what observations and actions become, and the Columns that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ...types import BadInput
from ..clock import PARTS
from ..columns import ActionColumn, Cell, Column
from ..schema import QUESTION, Schema, listed
from .cells import Cells, Rows, mostly_numbers, number_of, refuse_words, with_sign

LEVELS = 100  # words of a category, at most
LARGEST = 1e12  # amounts that are sure to be taken


class Encoded(NamedTuple):
    """One column of the observation and where its numbers come from."""

    column: Column
    numbers: Callable[[np.ndarray], np.ndarray]  # of these rows [K]: [K] or [K, as many as it becomes]


def observation_columns(
    rows: Rows, schema: Schema, stands: dict[str, float], notes: list[str]
) -> Iterator[Encoded]:
    """Every column of the observation, in the schema's order, then clocks, lags and differences."""
    out, cyclic = set(schema.names("leave_out")), dict(schema.cyclic or {})
    exogenous = set(schema.names("exogenous"))
    for name in schema.names("obs"):
        if name in out or name in cyclic:
            continue
        yield _one(rows, schema, name, stands, name in exogenous, notes)
        if (schema.fill or {}).get(name) == "indicator":
            empty = rows.cells[f"{name} missing"]
            column = Column(name, "indicator", exogenous=name in exogenous)
            yield Encoded(column, lambda at, empty=empty: empty.at(at).array)
    for name, period in cyclic.items():
        yield _cyclic(rows, schema, name, float(period), name in exogenous)
    begins = np.flatnonzero(np.r_[True, rows.last[:-1]]) if schema.lags or schema.differences else np.zeros(0, int)
    for key, encoding in (("lags", "lag"), ("differences", "difference")):
        for name, most in (getattr(schema, key) or {}).items():
            for lag in range(1, int(most) + 1) if key == "lags" else [int(most)]:
                column = Column(name, encoding, lag=lag, exogenous=name in exogenous)
                yield Encoded(column, _lagged(rows, name, lag, encoding, begins))
    if schema.lags or schema.differences:
        notes.append("lags and differences: before a run's first row, that row stands in")


def _one(
    rows: Rows, schema: Schema, name: str, stands: dict[str, float], exogenous: bool, notes: list[str]
) -> Encoded:
    cell = rows.column(name, "obs")
    fill = stands.get(name)
    if cell.kind == "time":
        raise BadInput(
            f"column {name!r}: holds dates, not numbers; write time = {name!r} and cyclic = {{hour = 24}} for the "
            "clock, or put it into leave_out"
        )
    if name in schema.names("categories"):
        return _category(cell, name, name in schema.names("other"), exogenous)
    if cell.kind == "number":
        if name in schema.names("yes_no") and not set(np.unique(cell.array[:100_000])) <= {0.0, 1.0}:
            raise BadInput(f"column {name!r}: holds more than 0 and 1, and the schema says yes_no")
        return Encoded(Column(name, fill=fill, exogenous=exogenous), lambda at: cell.at(at).array)
    pair = cell.yes_no
    if pair is None and name in schema.names("yes_no"):
        if len(cell.levels) != 2:
            raise BadInput(f"column {name!r}: {len(cell.levels)} words where two were expected, as yes_no says")
        pair = (cell.levels[0], cell.levels[1])
    if pair is not None:
        if name not in schema.names("yes_no"):
            notes.append(f"column {name!r}: {pair[1]!r} is 1 and {pair[0]!r} is 0, by its words")
        yes = np.array([float(level == pair[1]) for level in cell.levels] + [np.nan])
        return Encoded(Column(name, "yes-no", levels=pair, exogenous=exogenous), lambda at: yes[cell.stored[at]])
    refuse_words(cell, rows, name)
    notes.append(f"column {name!r}: {len(cell.levels)} words, one number each")
    return _category(cell, name, name in schema.names("other"), exogenous)


def _category(cell: Cells, name: str, other: bool, exogenous: bool) -> Encoded:
    words, codes = words_of(cell)
    if not 1 <= len(words) <= LEVELS:
        raise BadInput(
            f"column {name!r}: {len(words)} different words, {LEVELS} is the most of a category; leave it out "
            "(leave_out), or group them"
        )
    column = Column(name, "category", levels=tuple(map(str, words)), other=other, exogenous=exogenous)
    each = np.eye(len(column.names), dtype=np.float32)
    return Encoded(column, lambda at: each[codes[at]])


def words_of(cell: Cells) -> tuple[list[str | int | float], np.ndarray]:
    """The words of a column in order, numbers as numbers, and which one each row has [N]."""
    if cell.kind == "word":
        order = _in_order(cell.levels)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return [cell.levels[i] for i in order], place.astype(np.int32)[cell.stored]
    values, codes = np.unique(cell.array, return_inverse=True)
    codes = codes.astype(np.int32)
    return [number_of(value) for value in values.tolist()], codes


def _in_order(words: tuple[str, ...]) -> np.ndarray:
    """The places of the words in order: of their letters, or of the numbers that all of them are."""
    try:
        return np.argsort(np.array([float(word) for word in words]), kind="stable")
    except ValueError:
        return np.argsort(np.array(words, object))


def _cyclic(rows: Rows, schema: Schema, name: str, period: float, exogenous: bool) -> Encoded:
    if name in rows.cells and rows.cells[name].kind == "number":
        place, source = (lambda at: rows.cells[name].at(at).array), None
    elif name in PARTS and rows.dated and rows.time is not None:
        time, of = rows.time, PARTS[name][1]
        place, source, exogenous = (lambda at: of(time[at])), schema.time, True
    else:
        raise BadInput(
            f"schema, 'cyclic': {name!r} is no column of numbers, and cannot be read off the time; "
            f"{', '.join(PARTS)} can, where 'time' holds dates"
        )
    column = Column(name, "cyclic", period=period, source=source, exogenous=exogenous)
    turn = 2 * np.pi / period

    def numbers(at: np.ndarray) -> np.ndarray:
        angle = turn * place(at)
        return np.stack([np.sin(angle), np.cos(angle)], -1)

    return Encoded(column, numbers)


def _lagged(
    rows: Rows, name: str, lag: int, encoding: str, begins: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """A column's value of so many rows before, or the change since then; runs begin in the rows `begins`."""

    def numbers(at: np.ndarray) -> np.ndarray:
        first = begins[np.searchsorted(begins, at, "right") - 1]
        then = rows.numbers_at(name, np.maximum(at - lag, first))
        return then if encoding == "lag" else rows.numbers_at(name, at) - then

    return numbers


class Acted(NamedTuple):
    """The actions of every row, their columns, and what a check of them needs to know."""

    columns: tuple[ActionColumn, ...]
    numbers: np.ndarray  # [N, A] amounts, or [N] choices
    settings: dict[str, object]


def actions_of(rows: Rows, schema: Schema, name: str, notes: list[str]) -> Acted:
    """Amounts side by side, or choices: of several columns together, each combination is one choice."""
    cells = {column: rows.column(column, "action") for column in schema.names("action")}
    words = [column for column, cell in cells.items() if cell.kind == "word" or cell.boolean]
    discrete = schema.discrete if schema.discrete is not None else bool(words) or schema.choices is not None
    if not discrete:
        for column, cell in cells.items():
            if cell.kind == "word":
                refuse_words(cell, rows, column)
            if cell.kind != "number" or (words and column in words):
                raise BadInput(f"{name}, column {column!r}: words, and the schema says that actions are amounts")
            if schema.discrete is None and (cell.array == np.round(cell.array)).all():
                raise BadInput(f"{name}, column {column!r}: {QUESTION}")
        return _amounts(cells, schema)
    parts = [_choices(column, cell, schema, rows, notes) for column, cell in cells.items()]
    sizes = [len(column.levels) for column, _ in parts]
    choices = int(np.prod(sizes))
    if choices > 10_000:
        raise BadInput(f"schema, 'action': {choices} combinations of choices; 10000 is the most")
    index = np.ravel_multi_index(tuple(codes for _, codes in parts), tuple(sizes))
    return Acted(tuple(column for column, _ in parts), index.astype(np.float32), {"n_actions": choices})


def _amounts(cells: dict[str, Cells], schema: Schema) -> Acted:
    numbers = np.stack([cell.array for cell in cells.values()], -1)
    edges = []
    for bound, seen in ((schema.low, np.nanmin(numbers, 0)), (schema.high, np.nanmax(numbers, 0))):
        given = seen if bound is None else np.asarray(bound, np.float64)
        if given.shape not in ((), (1,), (len(cells),)):
            raise BadInput(f"schema, 'low' and 'high': {given.size} numbers for {len(cells)} actions")
        edges.append(np.broadcast_to(given, (len(cells),)).astype(float).tolist())
    if np.abs(numbers).max(initial=0.0) < LARGEST:  # what is beyond is refused as it was written
        numbers = numbers.astype(np.float32)
    columns = tuple(ActionColumn(column, (low,), (high,)) for column, low, high in zip(cells, *edges, strict=True))
    return Acted(columns, numbers, {})


def _choices(
    name: str, cell: Cells, schema: Schema, rows: Rows, notes: list[str]
) -> tuple[ActionColumn, np.ndarray]:
    """A column's choices, in the schema's order or sorted, and which one each row took [N]."""
    if cell.kind == "time":
        raise BadInput(f"column {name!r}: holds dates, and the schema says it is the 'action'")
    words, codes = words_of(cell)
    choices = (schema.choices or {}).get(name)
    if choices is None and schema.n is not None and len(schema.names("action")) == 1:
        choices = tuple(range(schema.n))
    if choices is None and (what := with_sign(cell)) is not None:
        raise BadInput(f"column {name!r}: {what}, or name all of them in choices")
    if choices is None and (odd := mostly_numbers(cell)) is not None:
        raise BadInput(
            f"column {name!r}: {odd[:40]!r} is not a number, and most of its choices are; repair it, or name "
            "all of them in choices"
        )
    if choices is None:
        notes.append(f"choices of {name!r}: {listed([str(word) for word in words])}, as found in the log")
        return ActionColumn(name, levels=tuple(words)), codes
    places: dict[Cell, int] = {choice: place for place, choice in enumerate(choices)}
    unknown = [place for place, word in enumerate(words) if word not in places]
    if unknown:
        row = rows.origin[int(np.argmax(codes == unknown[0]))]
        raise BadInput(f"column {name!r}, row {row}: {words[unknown[0]]!r} is none of its choices {list(choices)}")
    return ActionColumn(name, levels=tuple(choices)), np.array([places[word] for word in words], np.int64)[codes]
