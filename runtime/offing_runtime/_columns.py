"""One row of the table as the numbers that a policy was trained on, and its action as the table calls it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np

MISSING = ("", "nan", "NaN", "NA", "N/A", "null", "None")


class BadInput(ValueError):
    """A row that cannot be used; the message is one line that says what and where."""


class Columns:
    """What an exported policy says of its columns (`Columns.to_json` of offing)."""

    def __init__(self, saved: dict[str, Any]):
        self.table, self.obs, self.action = saved["table"], list(map(Column, saved["obs"])), saved["action"]
        self.names = [name for column in self.obs for name in column.names]
        self.inputs = list(dict.fromkeys(name for column in self.obs for name in column.inputs))
        self.sources = {column.name: column.source for column in self.obs if column.source}
        self.known = {*self.inputs, *saved["others"], *self.sources.values(), *(c["name"] for c in self.action)}
        self.discrete = bool(self.action) and not self.action[0].get("low")

    def encode(self, row: Any) -> np.ndarray:
        """The row's numbers [S]: a dict of cells, or numbers in the log's order."""
        if not isinstance(row, Mapping):
            return self._plain(np.asarray(row))
        for name in (name for name in row if name not in self.known):
            raise BadInput(f"column {name!r}: unknown to the log; its columns are {_listed(self.inputs)}")
        for name in self.inputs:
            if name not in row and self.sources.get(name) not in row:
                raise BadInput(f"column {name!r}: missing; a row needs {_listed(self.inputs)}")
        return np.array([number for column in self.obs for number in column.encode(row)], np.float32)

    def _plain(self, row: np.ndarray) -> np.ndarray:
        if row.dtype.kind not in "fiub" or row.shape != (len(self.names),):
            due = f"{len(self.names)} numbers a row were expected, {_listed(self.names)}"
            raise BadInput(f"observations of shape {row.shape}: {due}")
        if row.dtype.kind == "f" and not np.isfinite(row).all():
            name = self.names[int(np.argmin(np.isfinite(row)))]
            raise BadInput(f"column {name!r}, row 0: not a finite number")
        return row.astype(np.float32)

    def decode(self, action: Any, named: bool = True) -> Any:
        """Of a table, a dict of its action's columns; of plain arrays, amounts [A] or the number of a choice."""
        if not (self.table and named):
            return int(action) if self.discrete else action
        if self.discrete:
            places = np.unravel_index(int(action), [len(column["levels"]) for column in self.action])
            return {c["name"]: c["levels"][int(i)] for c, i in zip(self.action, places, strict=True)}
        amounts, first = {}, 0
        for column in self.action:
            part = action[first : first + len(column["low"])]
            first += len(column["low"])
            amounts[column["name"]] = float(part[0]) if len(part) == 1 else part
        return amounts


class Column:
    """One column of the table, as offing described it, and the numbers that it becomes."""

    def __init__(self, saved: dict[str, Any]):
        self.name, self.kind, self.fill = saved["name"], saved.get("encoding", "number"), saved.get("fill")
        self.levels, self.other = saved.get("levels", []), bool(saved.get("other"))
        self.period, self.source = float(saved.get("period") or 1.0), saved.get("source")
        self.width, self.before = saved.get("width", 1), f"{self.name}[t-{saved.get('lag', 0)}]"
        self.inputs = {"lag": [self.before], "difference": [self.name, self.before]}.get(self.kind, [self.name])
        wide = [self.name] if self.width == 1 else [f"{self.name}[{i}]" for i in range(self.width)]
        self.names = {
            "category": [f"{self.name}={level}" for level in [*self.levels, *["other"] * self.other]],
            "cyclic": [f"sin({self.name})", f"cos({self.name})"],
            "lag": [self.before],
            "difference": [f"{self.name}-{self.before}"],
            "indicator": [f"{self.name} missing"],
        }.get(self.kind, wide)

    def encode(self, row: Mapping[str, Any]) -> list[float]:
        """The column's numbers for one row."""
        if self.kind in ("category", "yes-no"):
            word = _word(row[self.name])
            if word == "" and (self.kind == "category" or self.fill is None):
                raise BadInput(f"column {self.name!r}, row 0: empty; give its value")
            return self._category(word) if self.kind == "category" else [self._yes(word)]
        if self.kind == "cyclic":
            turn = 2 * math.pi * self._turning(row) / self.period
            return [math.sin(turn), math.cos(turn)]
        if self.kind in ("lag", "difference"):
            read = [_numbers(row[each], each, self.fill)[0] for each in self.inputs]
            return [read[0] if self.kind == "lag" else read[0] - read[1]]
        if self.kind == "indicator":
            return [float(math.isnan(_numbers(row[self.name], self.name, math.nan)[0]))]
        return _numbers(row[self.name], self.name, self.fill, self.width)

    def _category(self, word: str) -> list[float]:
        if word not in self.levels and not self.other:
            raise BadInput(f"column {self.name!r}: {word!r} is none of its levels {_listed(self.levels)}")
        place = self.levels.index(word) if word in self.levels else len(self.levels)
        return [float(i == place) for i in range(len(self.names))]

    def _yes(self, word: str) -> float:
        table = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0}
        table |= {level.lower(): float(i) for i, level in enumerate(self.levels)}
        table |= {} if self.fill is None else {"": self.fill}
        if word.lower() not in table:
            raise BadInput(f"column {self.name!r}: {word!r} where {_listed(self.levels or '01')} was expected")
        return table[word.lower()]

    def _turning(self, row: Mapping[str, Any]) -> float:
        if self.name in row or self.source is None:
            return _numbers(row[self.name], self.name, self.fill)[0]
        try:
            return _part(self.name, row[self.source])
        except (ValueError, TypeError) as error:
            raise BadInput(f"column {self.source!r}: not a date in ISO's form ({error})") from None


def _numbers(cell: Any, name: str, fill: float | None, width: int = 1) -> list[float]:
    cells, numbers = np.asarray(cell), []
    if cells.size != width or cells.dtype.kind not in "fiubOUST":
        what = f"{cells.dtype} of shape {cells.shape}"
        raise BadInput(f"column {name!r}: {what} where {width} number{'s' * (width > 1)} a row were expected")
    for each in cells.reshape(-1).tolist():
        try:
            number = math.nan if each is None or each in MISSING else float(each)
        except (TypeError, ValueError):
            raise BadInput(f"column {name!r}: {_short(each)} where a number was expected") from None
        if math.isnan(number) and fill is None:
            raise BadInput(f"column {name!r}, row 0: empty; give its value")
        numbers.append(float(fill) if math.isnan(number) and fill is not None else number)
        if math.isinf(number):
            raise BadInput(f"column {name!r}, row 0: not a finite number")
    return numbers


def _word(cell: Any) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, (bool, np.bool_)):
        return "true" if cell else "false"
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _part(name: str, cell: Any) -> float:
    """Where in its hour, day, week or year a moment lies."""
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    at = datetime.fromisoformat(cell.strip()) if isinstance(cell, str) else cell
    if not isinstance(at, date):
        raise ValueError(f"{at!r} is no date")
    at = at if isinstance(at, datetime) else datetime.combine(at, time())
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    minutes = at.minute + (at.second + at.microsecond / 1e6) / 60
    day = (at.hour + minutes / 60) / 24
    if name == "month":
        first = datetime(at.year, at.month, 1, tzinfo=UTC)
        after = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
        return at.month - 1 + (at - first) / (after - first)
    parts = {"minute": minutes, "hour": 24 * day, "weekday": at.weekday() + day}
    return parts.get(name, at.timetuple().tm_yday - 1 + day)


def _listed(names: Any) -> str:
    return ", ".join(map(_short, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _short(cell: Any) -> str:
    return repr(cell) if len(repr(cell)) <= 60 else repr(cell)[:57] + "..."
