"""What the rows of a table hint at, for a draft of its schema: ends, empty cells, what no action changes."""

from __future__ import annotations

import numpy as np

from ..clock import DAY
from .cells import Cells, Rows

MANY = 200  # columns of which it is found out whether an action changes them
LEAST = 100  # steps that show what an action changes

Draft = dict[str, object]  # the schema's keys that are settled so far


def ending_column(rows: Rows, free: list[str], drafted: Draft, notes: list[str]) -> str | None:
    """The column of 0 and 1, or of no and yes, that is 1 in last rows alone, if there is one."""
    for name in free:
        cell = rows.cells[name]
        numbers = cell.array if cell.kind == "number" else rows.numbers(name) if cell.yes_no else None
        if numbers is None or cell.empty.any() or set(np.unique(numbers)) != {0.0, 1.0}:
            continue
        if rows.last[numbers == 1].all():
            drafted["terminated"] = name
            notes.append(f"terminated: {name!r} is 1 in last rows alone, so it seems to mark true ends. Check it")
            return name
    return None


def fill_empty(rows: Rows, names: list[str], drafted: Draft, notes: list[str]) -> None:
    """What may be done about empty cells, and the question whether that is right."""
    fill = {}
    begins = np.r_[True, rows.last[:-1]]
    for name in names:
        cell, empty = rows.cells[name], rows.cells[name].empty
        count = int(empty.sum())
        if not count:
            continue
        place = np.arange(len(empty))
        full = np.maximum.accumulate(np.where(empty, -1, place))
        start = np.maximum.accumulate(np.where(begins, place, 0))
        early = int((empty & (full < start)).sum())  # before the first value of a unit: nothing to repeat
        if not early:
            fill[name] = f"forward {int((place - full)[empty].max())}"
            notes.append(f"fill: {name!r} has {count} empty cells; is the last one before them good enough?")
            continue
        fill[name] = "indicator" if cell.kind == "number" else "drop rows"
        how = (
            "the mean, and a mark that it is missing" if cell.kind == "number" else "rows without it are left out"
        )
        notes.append(
            f"fill: {name!r} has {count} empty cells, {early} of them before any value: {how}; is that right?"
        )
    if fill:
        drafted["fill"] = fill


def mark_exogenous(rows: Rows, seen: list[str], action: str | None, drafted: Draft, notes: list[str]) -> None:
    """Columns whose next value the action says nothing about, once all that is observed is known."""
    if action is None or rows.time is None:
        return
    if len(seen) > MANY:
        notes.append(f"exogenous: not looked for among {len(seen)} columns; which of them does no action change?")
        return
    act = rows.cells[action]
    acts = np.eye(len(act.levels) + 1)[act.array][:, :-1] if act.kind == "word" else act.array[:, None]
    now = [_number(rows.cells[name]) for name in seen]
    clock = [np.sin(2 * np.pi * (rows.time % DAY) / DAY), np.cos(2 * np.pi * (rows.time % DAY) / DAY)]
    inside = np.flatnonzero(~rows.last)[:50_000]
    if len(inside) < LEAST:
        return
    base = np.stack([np.ones(rows.count), *now, *(clock if rows.dated else [])], -1)[inside]
    base = base / np.maximum(np.abs(base).max(0), 1e-9)
    whole = np.concatenate([base, np.nan_to_num(acts)[inside]], -1)
    outside = []
    for name, column in zip(seen, now, strict=True):
        after = column[inside + 1]
        left = [after - x @ np.linalg.lstsq(x, after, rcond=None)[0] for x in (base, whole)]
        plain, known = (float(part @ part) for part in left)
        if (
            plain <= 1e-9 * max(float(after @ after), 1.0)
            or 1 - known / plain < 6 * acts.shape[1] / len(inside) + 5e-4
        ):
            outside.append(name)
    clocks = tuple(cyclic) if isinstance(cyclic := drafted.get("cyclic"), dict) else ()
    if outside or clocks:
        drafted["exogenous"] = (*outside, *clocks)
        notes.append("exogenous: what comes next in them does not depend on the action, as far as a line can tell")


def _number(cell: Cells) -> np.ndarray:
    numbers = np.nan_to_num(cell.array.astype(np.float64), posinf=0.0, neginf=0.0)
    return np.where(np.abs(numbers) < 1e12, numbers, 0.0)  # what is larger is refused when the log is loaded
