"""Where episodes begin and end: by columns, by a rule over time, by a formula, or in windows."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from ...types import BadInput
from ..clock import DAY, HOUR
from ..expression import parse
from ..schema import Schema
from .cells import Rows


class Episodes(NamedTuple):
    """Of every row: its episode, whether it truly ends, and whether it is the last that something follows on."""

    number: np.ndarray  # [N]
    terminated: np.ndarray  # [N]
    rows: Rows  # with runs broken where one episode has nothing to do with the next


def episodes_of(rows: Rows, schema: Schema, notes: list[str]) -> Episodes:
    """Episodes of the rows, and runs that end where an episode does.

    At a true end, at a pause and where a column or rule says that another begins, nothing follows. Where `per` or
    `window` merely cuts, the next row of the unit is still what came next.
    """
    ended = _flags(rows, schema.terminated, "terminated")
    cut = _flags(rows, schema.truncated, "truncated")
    begins = np.zeros(rows.count, bool)
    for name in schema.names("episode"):
        cell = rows.column(name, "episode")
        if (empty := cell.empty).any():
            where = rows.origin[int(empty.argmax())]
            raise BadInput(f"column {name!r}, row {where}: empty, and the schema says it is the 'episode'")
        begins[1:] |= cell.array[1:] != cell.array[:-1]
    if schema.starts_when is not None:
        begins |= _starts(rows, schema.starts_when)
    begins[:1] = True
    last = rows.last | ended | cut
    last[:-1] |= begins[1:]
    rows = rows._replace(last=last)
    soft = np.zeros(rows.count, bool)
    if schema.per is not None:
        period = _period(rows, schema.per)
        soft[1:] = period[1:] != period[:-1]
    new = np.r_[True, last[:-1]] | soft
    if schema.window is not None:
        first = np.flatnonzero(new)
        place = np.arange(rows.count) - np.repeat(first, np.diff(np.r_[first, rows.count]))
        new |= place % schema.window == 0
    number = np.cumsum(new, dtype=np.int32) - 1
    rules = [key for key in ("episode", "per", "gap", "starts_when", "window") if getattr(schema, key) is not None]
    count = int(number[-1]) + 1 if rows.count else 0
    if rules:
        notes.append(f"episodes: {count}, by {' and '.join(rules)}")
    else:
        notes.append(
            f"episodes: {count}; no rule was given, so each goes on until its unit's rows end or pause "
            '(per = "day" or window = 100 cuts them)'
        )
    return Episodes(number, ended, rows)


def _flags(rows: Rows, given: str | None, key: str) -> np.ndarray:
    """Which rows a column of 0 and 1, or a formula, marks [N]."""
    if given is None:
        return np.zeros(rows.count, bool)
    marks = rows.numbers(given) if given in rows.cells else rows.computed(parse(given, key), key)
    seen = np.where(np.isnan(marks) & rows.last, 0.0, marks)  # what looks ahead cannot say where nothing follows
    bad = np.isnan(seen) | ((seen != 0) & (seen != 1))
    if bad.any():
        where = rows.origin[int(bad.argmax())]
        what = "empty" if np.isnan(seen[bad.argmax()]) else f"{seen[bad.argmax()]:g}"
        raise BadInput(f"schema, '{key}', row {where}: {what} where 0 or 1, or true or false, was expected")
    return seen == 1


def _starts(rows: Rows, text: str) -> np.ndarray:
    """Which rows begin an episode by `NAME changes` or by a formula [N]."""
    match = re.fullmatch(r"\s*`?(.+?)`?\s+changes\s*", text)
    if match is None:
        return _flags(rows, text, "starts_when")
    cell = rows.column(match[1], "starts_when")
    return np.r_[True, cell.array[1:] != cell.array[:-1]]


def _period(rows: Rows, per: str) -> np.ndarray:
    if rows.time is None or not rows.dated:
        raise BadInput(f"schema, 'per': {per!r} needs a 'time' of dates; with numbers, use 'window'")
    if per == "month":
        return rows.time.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    if per == "week":
        return (rows.time // DAY + 3) // 7
    return rows.time // (HOUR if per == "hour" else DAY)
