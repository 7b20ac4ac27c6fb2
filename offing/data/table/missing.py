"""Empty cells: filled as the schema says, counted, and refused where it says nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...types import BadInput
from .._wanted import FILLING
from ..schema import Schema
from .cells import Rows

SHOWN = 3  # rows of a column that a refusal names


def filled(rows: Rows, schema: Schema, notes: list[str]) -> tuple[Rows, dict[str, float]]:
    """The rows with empty cells filled, and the number that stands for an empty cell from now on, by column.

    `forward` repeats the last cell of the same run, over so many rows at most; `mean` and `indicator` put the mean
    in (and `indicator` marks it, in a column of its own); `drop rows` leaves the rows out, which breaks runs.
    """
    stands: dict[str, float] = {}
    dropped = np.zeros(rows.count, bool)
    cells = dict(rows.cells)
    for name, how in (schema.fill or {}).items():
        cell = rows.column(name, "fill")
        empty = cell.empty
        count = int(empty.sum())
        if how == "drop rows":
            dropped |= empty
            notes.append(f"column {name!r}: {count} rows with an empty cell were left out")
        elif how.startswith("forward"):
            most = FILLING.fullmatch(how)
            limit = int(most[2]) if most and most[2] else rows.count
            source, done = _before(empty, rows.last, limit)
            cells[name] = cell.at(source)
            left = f"; {count - done} too far from the last one were not" if done < count else ""
            notes.append(f"column {name!r}: {done} empty cells repeat the last one before them{left}")
        else:
            stands[name] = _mean(rows.numbers(name), name)
            if cell.kind != "number":
                raise BadInput(
                    f"schema, 'fill': {name!r} holds words, which have no mean; use forward or drop rows"
                )
            cells[name] = cell.holding(np.where(empty, stands[name], cell.array))
            notes.append(f"column {name!r}: {count} empty cells are the mean, {stands[name]:g}")
    rows = rows._replace(cells=cells)
    return (rows.at(np.flatnonzero(~dropped)) if dropped.any() else rows), stands


def refuse_empty(rows: Rows, names: Sequence[str], name: str) -> None:
    """BadInput with the count of empty cells in each of the columns that are needed, and their first rows."""
    columns = []
    for column in dict.fromkeys(names):
        empty = rows.cells[column].empty
        if empty.any():
            first = ", ".join(str(row) for row in rows.origin[np.flatnonzero(empty)[:SHOWN]])
            columns.append(
                (column, f"{column!r} {int(empty.sum())} (rows {first}{', ...' if empty.sum() > SHOWN else ''})")
            )
    if columns:
        example = columns[0][0] if columns[0][0].isidentifier() else f'"{columns[0][0]}"'
        raise BadInput(
            f"{name}: empty cells in {'; '.join(text for _, text in columns[:8])}; say in the schema what to do: "
            f'fill = {{{example} = "forward 4"}}, or "mean", "indicator", "drop rows"'
        )


def _before(empty: np.ndarray, last: np.ndarray, limit: int) -> tuple[np.ndarray, int]:
    """Which row each cell comes from, its own or the last full one of its run, and how many were filled."""
    place = np.arange(len(empty))
    first = np.maximum.accumulate(np.where(np.r_[True, last[:-1]], place, 0))
    full = np.maximum.accumulate(np.where(empty, -1, place))
    use = empty & (full >= first) & (place - full <= limit)
    return np.where(use, full, place), int(use.sum())


def _mean(numbers: np.ndarray, name: str) -> float:
    full = numbers[~np.isnan(numbers)]
    if not len(full):
        raise BadInput(f"column {name!r}: all cells are empty, so it has no mean; leave it out")
    return float(full.mean())
