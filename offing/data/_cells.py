"""Rows of a table that somebody gives, as numbers: read by column name, and refused by it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..types import BadInput
from .clock import PARTS, moments

if TYPE_CHECKING:
    from .columns import Column

MISSING = (
    "",
    "nan",
    "NaN",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "null",
    "NULL",
    "None",
    "-",
    "?",
)  # words for an empty cell


class Frame(Protocol):
    """A table of any library: an Arrow table, a DataFrame of pandas or polars."""

    def __getitem__(self, name: Any, /) -> Any: ...


Rows = Mapping[str, object] | Sequence[Mapping[str, object]] | Frame | np.ndarray


def is_plain(rows: Rows) -> bool:
    """Whether rows are numbers without names."""
    return not (isinstance(rows, Mapping) or _several(rows) or _is_frame(rows))


def names_of(rows: Rows) -> list[str]:
    """Names of the columns that rows have."""
    if isinstance(rows, Mapping):
        return list(map(str, rows))
    if several := _several(rows):
        for number, row in enumerate(several):
            if row.keys() != several[0].keys():
                raise BadInput(f"row {number}: has other columns than row 0")
        return list(map(str, several[0]))
    frame: Any = rows
    return list(map(str, frame.column_names if hasattr(frame, "column_names") else frame.columns))


def cells_of(rows: Rows, name: str, width: int) -> np.ndarray:
    """The cells of a column [N], or [N, width] where each is a vector."""
    if isinstance(rows, Mapping):
        array = np.asarray(rows[name])
        return array[None] if array.ndim == (0 if width == 1 else 1) else array
    if several := _several(rows):
        return np.asarray([row[name] for row in several])
    array = np.asarray(rows[name].to_numpy())  # type: ignore[union-attr, call-overload]
    return np.stack(array.tolist()) if width > 1 and array.ndim == 1 and len(array) else array


def _several(rows: Rows) -> Sequence[Mapping[str, object]] | None:
    listed = isinstance(rows, Sequence) and not isinstance(rows, str)
    return rows if listed and rows and isinstance(rows[0], Mapping) else None  # type: ignore[return-value]


def _is_frame(rows: Rows) -> bool:
    return hasattr(rows, "column_names") or (hasattr(rows, "columns") and hasattr(rows, "__getitem__"))


def encoded(column: Column, cells: Mapping[str, np.ndarray]) -> np.ndarray:
    """One column's numbers [N, as many as it becomes]."""
    if column.encoding == "category":
        return _one_hot(column, words_of(cells[column.name], column.name))
    if column.encoding == "yes-no":
        return _yes(column, cells[column.name])
    if column.encoding == "cyclic":
        turn = 2 * np.pi * _turning(column, cells) / float(column.period or 1.0)
        return np.concatenate([np.sin(turn), np.cos(turn)], -1).astype(np.float32)
    if column.encoding == "lag":
        return numbers_of(cells[column.before], column.before, column.fill).astype(np.float32)
    if column.encoding == "difference":
        now, then = (numbers_of(cells[name], name, column.fill) for name in (column.name, column.before))
        return (now - then).astype(np.float32)
    if column.encoding == "indicator":
        return np.isnan(numbers_of(cells[column.name], column.name, math.nan)).astype(np.float32)
    return numbers_of(cells[column.name], column.name, column.fill, column.width).astype(np.float32)


def numbers_of(cells: np.ndarray, name: str, fill: float | None = None, width: int = 1) -> np.ndarray:
    """Cells as float64 [N, width], empty ones as `fill` says; BadInput names the column."""
    if cells.dtype.kind in "OUST":
        given = [math.nan if cell is None or cell in MISSING else cell for cell in cells.reshape(-1).tolist()]
        try:
            cells = np.array([float(cell) for cell in given]).reshape(cells.shape)
        except (TypeError, ValueError):
            bad = next(cell for cell in given if not _is_number(cell))
            raise BadInput(f"column {name!r}: {_short(bad)} where a number was expected") from None
    if cells.dtype.kind not in "fiub" or cells.size != len(cells) * width:
        what = f"{cells.dtype} of shape {cells.shape[1:]}"
        raise BadInput(f"column {name!r}: {what} where {width} number{'s' * (width > 1)} a row were expected")
    numbers = cells.reshape(len(cells), width).astype(np.float64)
    empty = np.isnan(numbers)
    if empty.any():
        if fill is None:
            raise BadInput(f"column {name!r}, row {int(empty.any(1).argmax())}: empty; give its value")
        numbers[empty] = fill
    if np.isinf(numbers).any():
        raise BadInput(f"column {name!r}, row {int(np.isinf(numbers).any(1).argmax())}: not a finite number")
    return numbers


def words_of(cells: np.ndarray, name: str, empty: bool = False) -> np.ndarray:
    """Cells as words [N], whole numbers without a point; an empty cell is refused by name, or left as ''."""
    words = np.array([word_of(cell) for cell in cells.reshape(-1).tolist()], object)
    if not empty and (words == "").any():
        raise BadInput(f"column {name!r}, row {int((words == '').argmax())}: empty; give its value")
    return words


def word_of(cell: object) -> str:
    """A cell as its column's levels write it."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def _one_hot(column: Column, words: np.ndarray) -> np.ndarray:
    place = {level: i for i, level in enumerate(column.levels)}
    places = np.array([place.get(word, len(place)) for word in words.tolist()], int)
    unseen = places == len(place)
    if unseen.any() and not column.other:
        word = words[int(unseen.argmax())]
        raise BadInput(f"column {column.name!r}: {word!r} is none of its levels {listed(column.levels)}")
    return np.eye(len(column.names), dtype=np.float32)[places]


def _yes(column: Column, cells: np.ndarray) -> np.ndarray:
    """Cells of yes and no as 1 and 0 [N, 1]."""
    words = words_of(cells, column.name, column.fill is not None)
    table = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0}
    table |= {word.lower(): float(i) for i, word in enumerate(column.levels)}
    table |= {} if column.fill is None else {"": column.fill}
    numbers = np.array([table.get(word.lower(), math.nan) for word in words.tolist()], np.float32)
    bad = np.isnan(numbers)
    if bad.any():
        word = words[int(bad.argmax())]
        raise BadInput(
            f"column {column.name!r}: {word!r} where {listed(column.levels or ('0', '1'))} was expected"
        )
    return numbers[:, None]


def _turning(column: Column, cells: Mapping[str, np.ndarray]) -> np.ndarray:
    """Where in its period a cyclic column is [N, 1], read off a column of times where there is no such column."""
    if column.name in cells or column.source is None:
        return numbers_of(cells[column.name], column.name, column.fill)
    try:
        return PARTS[column.name][1](moments(cells[column.source]))[:, None]
    except (ValueError, TypeError) as error:
        raise BadInput(f"column {column.source!r}: not a date in ISO's form ({error})") from None


def _is_number(cell: object) -> bool:
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _short(cell: object) -> str:
    text = repr(cell)
    return text if len(text) <= 60 else text[:57] + "..."


def listed(names: Sequence[object]) -> str:
    """Names for a sentence, the first dozen of them."""
    shown = ", ".join(map(_short, names[:12]))
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")
