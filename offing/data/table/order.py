"""Rows of a table in order: by unit and time, resampled if the schema says so, runs broken at pauses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...types import BadInput
from .._wanted import span
from ..clock import MICRO
from ..schema import Schema
from .cells import NEVER, Cells, Rows

BLOCK = 2**16  # rows worked on at a time, so that a long table is never copied whole
STEADY = 0.8  # share of the steps that have the usual length: a longer one is then a pause
PAUSE, LONG = 1.5, 10.0  # usual steps that make a pause, where steps are steady and where they are not


def ordered(cells: dict[str, Cells], schema: Schema, name: str, notes: list[str]) -> Rows:
    """The rows unit by unit and in time order; `cells` is emptied on the way, so that no column is there twice."""
    count = next(iter(cells.values())).count
    unit = _units(cells, schema, count, notes)
    time, dated = _times(cells, schema, name)
    if (zone := cells[timed(schema) or ""].zone if dated else "") != "":
        notes.append(f"time: has a zone ({zone}); hours and days are counted in UTC")
    order, backwards = _order(unit, time, notes)
    rows = Rows(cells, unit, time, np.arange(count, dtype=np.int32), np.zeros(count, bool), dated, backwards)
    if order is not None:
        rows = rows._replace(
            cells={key: cells.pop(key).at(order) for key in list(cells)},
            unit=unit[order],
            time=None if time is None else time[order],
            origin=order.astype(np.int32),
        )
    rows = rows._replace(last=np.r_[rows.unit[1:] != rows.unit[:-1], True])
    if rows.time is None:
        return rows
    if schema.every is not None:
        return _resampled(rows, schema, notes)
    return _paused(_once(rows, schema, name, notes), schema, notes)


def _units(cells: Mapping[str, Cells], schema: Schema, count: int, notes: list[str]) -> np.ndarray:
    """Which unit each row is of, counted from 0 in the order of their names [N]."""
    names = () if schema.unit == "none" else schema.names("unit") or schema.names("episode")
    unit = np.zeros(count, np.int32)
    for place, name in enumerate(names):
        if (empty := cells[name].empty).any():
            raise BadInput(
                f"column {name!r}, row {int(empty.argmax())}: empty, and the schema says it is the 'unit'"
            )
        cell = cells[name]
        if cell.kind == "word":
            rank = np.argsort(np.argsort(np.array(cell.levels, object))).astype(np.int32)
            code = rank[cell.stored]
        else:
            minus = cell.scale and (cell.stored == np.iinfo(cell.stored.dtype).min + 1).any()  # -0.0 is 0.0
            code = _ranked(cell.stored if cell.scale and not minus else cell.array)
        unit = code if not place else _ranked(unit.astype(np.int64) * (int(code.max(initial=0)) + 1) + code)
    if names and schema.unit is not None:
        notes.append(f"unit: {int(unit.max(initial=-1)) + 1} by {', '.join(map(repr, names))}")
    return unit


def _ranked(array: np.ndarray) -> np.ndarray:
    """The place of each value among all that there are [N]; small whole numbers need no sorting for it."""
    if not len(array):
        return np.zeros(0, np.int32)
    if array.dtype.kind == "i":
        least, most = int(array.min()), int(array.max())
        if most - least < max(len(array), 2**16):
            there = np.zeros(most - least + 1, bool)
            for first in range(0, len(array), BLOCK):
                there[array[first : first + BLOCK].astype(np.int64) - least] = True
            rank = (np.cumsum(there) - 1).astype(np.int32)
            ranked = np.empty(len(array), np.int32)
            for first in range(0, len(array), BLOCK):
                ranked[first : first + BLOCK] = rank[array[first : first + BLOCK].astype(np.int64) - least]
            return ranked
    return np.unique(array, return_inverse=True)[1].astype(np.int32)


def timed(schema: Schema) -> str | None:
    """The column that rows are ordered by."""
    return schema.time or schema.step


def _times(cells: Mapping[str, Cells], schema: Schema, name: str) -> tuple[np.ndarray | None, bool]:
    column = timed(schema)
    if column is None:
        return None, False
    cell = cells[column]
    if (empty := cell.empty).any():
        raise BadInput(f"{name}, column {column!r}, row {int(empty.argmax())}: empty, and it is the 'time'")
    if cell.kind == "word":
        word = cell.levels[int(cell.stored[0])] if cell.levels else ""
        raise BadInput(
            f"{name}, column {column!r}: {word!r} is no date that is known; write its form as "
            'time_format = "%d.%m.%Y %H:%M" in the schema'
        )
    return cell.array, cell.kind == "time"


def _order(unit: np.ndarray, time: np.ndarray | None, notes: list[str]) -> tuple[np.ndarray | None, int]:
    """How to sort rows by unit and time, None if they are; and how often time goes back within a unit."""
    same = unit[1:] == unit[:-1]
    if time is None:
        return (None if (unit[1:] >= unit[:-1]).all() else np.argsort(unit, kind="stable")), 0
    back = same & (time[1:] < time[:-1])
    if (unit[1:] >= unit[:-1]).all() and not back.any():
        return None, 0
    order = np.argsort(unit, kind="stable").astype(np.int32)
    inside, whose = time[order], unit[order]
    again = (inside[1:] < inside[:-1]) & (whose[1:] == whose[:-1])
    del inside, whose
    if again.any():
        notes.append(f"time: goes back {int(again.sum())} times within a unit; rows were sorted")
        return np.lexsort((time, unit)), int(again.sum())
    notes.append("rows of several units were interleaved: put unit by unit, in time order")
    return order, 0


def _once(rows: Rows, schema: Schema, name: str, notes: list[str]) -> Rows:
    """Rows whose time is there once in their unit: exact copies are dropped, others refused."""
    assert rows.time is not None
    again = np.r_[False, (rows.time[1:] == rows.time[:-1]) & ~rows.last[:-1]]  # has the time of the row before
    if not again.any():
        return rows
    at = _unlike(rows.cells, again)
    if at is not None:
        column = "column" if schema.unit is None else "other column"
        remedy = (
            f'name the {column} that tells machines or people apart (unit = "COLUMN"), resample (every = "1min"), '
            f"or leave '{'time' if schema.time else 'step'}' out if rows stand in their order"
        )
        raise BadInput(
            f"{name}, column {timed(schema)!r}, row {rows.origin[at + 1]}: has the time of row {rows.origin[at]}, "
            f"and they differ; {remedy}"
        )
    copies = int(again.sum())
    notes.append(f"{copies} rows are exact copies of the row before: dropped")
    keep = np.flatnonzero(~again)
    cells, unit = {name: cell.at(keep) for name, cell in rows.cells.items()}, rows.unit[keep]
    last = np.r_[unit[1:] != unit[:-1], True]
    return rows._replace(
        cells=cells, unit=unit, time=rows.time[keep], origin=rows.origin[keep], last=last, copies=copies
    )


def _unlike(cells: Mapping[str, Cells], again: np.ndarray) -> int | None:
    """The row before the first of the rows `again` that differs from it; None if all are copies."""
    for first in range(0, len(again), BLOCK):
        after = first + np.flatnonzero(again[first : first + BLOCK])
        alike = np.ones(len(after), bool)
        for cell in cells.values():
            one, other = cell.at(after - 1), cell.at(after)
            alike &= (one.array == other.array) | (one.empty & other.empty)
        if not alike.all():
            return int(after[int(np.argmin(alike))]) - 1
    return None


def _paused(rows: Rows, schema: Schema, notes: list[str]) -> Rows:
    """Runs broken where more time passed than a step takes; irregular steps are noted."""
    assert rows.time is not None
    passed = np.diff(rows.time)
    steps = passed[~rows.last[:-1]]
    if not (count := len(steps)):
        return rows
    usual = float(np.median(steps, overwrite_input=True))
    blocks = (steps[first : first + BLOCK] for first in range(0, count, BLOCK))
    off = sum(int((np.abs(block - usual) > 0.01 * usual).sum()) for block in blocks)
    del steps
    steady = 1 - off / count >= STEADY
    if schema.gap is not None:
        limit = float(span(schema.gap) or 0.0) * (MICRO if rows.dated else 1)
    else:
        limit = usual * (PAUSE if steady else LONG)
    pause = np.r_[passed > limit, False] & ~rows.last
    notes.append(f"time: the usual step is {_length(usual, rows.dated)}")
    if off:
        notes.append(f"time: {off} of {count} steps have another length")
    if pause.any():
        where = f"than {schema.gap}" if schema.gap else f"than {_length(limit, rows.dated)}, as no 'gap' is given"
        notes.append(f"time: {int(pause.sum())} pauses longer {where}: what follows is another episode")
    return rows._replace(last=rows.last | pause)


def _resampled(rows: Rows, schema: Schema, notes: list[str]) -> Rows:
    """One row per step of the length that the schema gives: the last cell that is not empty, or the mean."""
    assert rows.time is not None
    every = float(span(str(schema.every)) or 1.0) * (MICRO if rows.dated else 1)
    step = np.floor_divide(rows.time, int(every) if rows.dated else every)
    first = np.flatnonzero(np.r_[True, (step[1:] != step[:-1]) | rows.last[:-1]])
    length = np.diff(np.r_[first, rows.count])
    mean = schema.resample == "mean"
    cells = {key: _resampled_cell(cell, first, length, mean) for key, cell in rows.cells.items()}
    holes = np.r_[np.diff(step[first]) != 1, False]
    unit = rows.unit[first]
    last = np.r_[unit[1:] != unit[:-1], True]
    hole = int((holes & ~last).sum())
    how = "mean" if mean else "last value"
    notes.append(f"time: {rows.count} rows resampled to {len(first)}, one every {schema.every}, the {how} of each")
    if hole:
        notes.append(f"time: {hole} holes without any row: what follows is another episode")
    time = (step[first] * every).astype(rows.time.dtype)
    return rows._replace(
        cells=cells, unit=unit, time=time, origin=rows.origin[first], last=np.logical_or(last, holes)
    )


def _resampled_cell(cell: Cells, first: np.ndarray, length: np.ndarray, mean: bool) -> Cells:
    full = ~cell.empty
    if mean and cell.kind == "number" and not cell.boolean:
        total = np.add.reduceat(np.where(full, cell.array, 0.0), first)
        count = np.add.reduceat(full.astype(np.int64), first)
        return cell.holding(np.where(count > 0, total / np.maximum(count, 1), np.nan))
    place = np.where(full, np.arange(len(full)), -1)
    newest = np.maximum.reduceat(place, first)
    none = {"number": np.nan, "word": -1, "time": NEVER}[cell.kind]
    newest_cells = cell.at(np.maximum(newest, 0)).array
    return cell.holding(np.where(newest >= first, newest_cells, none).astype(newest_cells.dtype))


def _length(amount: float, dated: bool) -> str:
    if not dated:
        return f"{amount:g}"
    seconds = amount / MICRO
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {word}"
    return f"{seconds:g} s"
