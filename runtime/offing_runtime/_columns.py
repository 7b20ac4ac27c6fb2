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

    def __init__(self, found: dict[str, Any]):
        self.table, self.obs, self.action = found["table"], found["obs"], found["action"]
        self.names = [name for column in self.obs for name in _names(column)]
        self.inputs = list(dict.fromkeys(name for column in self.obs for name in _inputs(column)))
        self.sources = {column["name"]: column["source"] for column in self.obs if column.get("source")}
        acted = [column["name"] for column in self.action]
        self.known = {*self.inputs, *found["others"], *self.sources.values(), *acted}
        self.discrete = bool(self.action) and not self.action[0].get("low")

    def encode(self, row: Any) -> np.ndarray:
        """The row's numbers [S]: a dict of cells, or numbers in the log's order."""
        if not isinstance(row, Mapping):
            return self._plain(np.asarray(row))
        for name in row:
            if name not in self.known:
                raise BadInput(f"column {name!r}: unknown to the log; its columns are {_listed(self.inputs)}")
        for name in self.inputs:
            if name not in row and self.sources.get(name) not in row:
                raise BadInput(f"column {name!r}: missing; a row needs {_listed(self.inputs)}")
        return np.array([number for column in self.obs for number in _encoded(column, row)], np.float32)

    def _plain(self, row: np.ndarray) -> np.ndarray:
        width = len(self.names)
        if row.dtype.kind not in "fiub" or row.shape != (width,):
            what = f"observations of shape {row.shape}: {width} numbers a row were expected"
            raise BadInput(f"{what}, {_listed(self.names)}")
        if row.dtype.kind == "f" and not np.isfinite(row).all():
            name = self.names[int(np.argmin(np.isfinite(row)))]
            raise BadInput(f"column {name!r}, row 0: not a finite number")
        return row.astype(np.float32)

    def decode(self, action: Any) -> Any:
        """Of a table, a dict of its action's columns; of plain arrays, amounts [A] or the number of a choice."""
        if not self.table:
            return int(action) if self.discrete else action
        if self.discrete:
            places = np.unravel_index(int(action), [len(column["levels"]) for column in self.action])
            return {c["name"]: c["levels"][int(i)] for c, i in zip(self.action, places, strict=True)}
        found, first = {}, 0
        for column in self.action:
            part = action[first : first + len(column["low"])]
            first += len(column["low"])
            found[column["name"]] = float(part[0]) if len(part) == 1 else part
        return found


def _names(column: dict[str, Any]) -> list[str]:
    name, kind, width = column["name"], column.get("encoding", "number"), column.get("width", 1)
    if kind == "category":
        return [f"{name}={level}" for level in (*column["levels"], *(["other"] if column.get("other") else []))]
    if kind == "cyclic":
        return [f"sin({name})", f"cos({name})"]
    if kind in ("lag", "difference"):
        before = f"{name}[t-{column['lag']}]"
        return [before if kind == "lag" else f"{name}-{before}"]
    if kind == "indicator":
        return [f"{name} missing"]
    return [name] if width == 1 else [f"{name}[{i}]" for i in range(width)]


def _inputs(column: dict[str, Any]) -> list[str]:
    name, before = column["name"], f"{column['name']}[t-{column.get('lag', 0)}]"
    return {"lag": [before], "difference": [name, before]}.get(column.get("encoding", ""), [name])


def _encoded(column: dict[str, Any], row: Mapping[str, Any]) -> list[float]:
    name, kind, fill = column["name"], column.get("encoding", "number"), column.get("fill")
    if kind in ("category", "yes-no"):
        word = _word(row[name])
        if word == "" and (kind == "category" or fill is None):
            raise BadInput(f"column {name!r}, row 0: empty; give its value")
        return _category(column, word) if kind == "category" else [_yes(column, word)]
    if kind == "cyclic":
        turn = 2 * math.pi * _turning(column, row) / float(column.get("period") or 1.0)
        return [math.sin(turn), math.cos(turn)]
    if kind in ("lag", "difference"):
        read = [_numbers(row[each], each, fill)[0] for each in _inputs(column)]
        return [read[0] if kind == "lag" else read[0] - read[1]]
    if kind == "indicator":
        return [float(math.isnan(_numbers(row[name], name, math.nan)[0]))]
    return _numbers(row[name], name, fill, column.get("width", 1))


def _numbers(cell: Any, name: str, fill: float | None, width: int = 1) -> list[float]:
    cells, found = np.asarray(cell), []
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
        found.append(float(fill) if math.isnan(number) and fill is not None else number)
        if math.isinf(number):
            raise BadInput(f"column {name!r}, row 0: not a finite number")
    return found


def _word(cell: Any) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, (bool, np.bool_)):
        return "true" if cell else "false"
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _category(column: dict[str, Any], word: str) -> list[float]:
    levels, other = column["levels"], bool(column.get("other"))
    if word not in levels and not other:
        raise BadInput(f"column {column['name']!r}: {word!r} is none of its levels {_listed(levels)}")
    place = levels.index(word) if word in levels else len(levels)
    return [float(i == place) for i in range(len(levels) + other)]


def _yes(column: dict[str, Any], word: str) -> float:
    levels, fill = column.get("levels", []), column.get("fill")
    table = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0}
    table |= {level.lower(): float(i) for i, level in enumerate(levels)}
    table |= {} if fill is None else {"": fill}
    if word.lower() not in table:
        raise BadInput(f"column {column['name']!r}: {word!r} where {_listed(levels or ('0', '1'))} was expected")
    return table[word.lower()]


def _turning(column: dict[str, Any], row: Mapping[str, Any]) -> float:
    name, source = column["name"], column.get("source")
    if name in row or source is None:
        return _numbers(row[name], name, column.get("fill"))[0]
    try:
        return _part(name, _moment(row[source]))
    except (ValueError, TypeError) as error:
        raise BadInput(f"column {source!r}: not a date in ISO's form ({error})") from None


def _moment(cell: Any) -> datetime:
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, str):
        cell = datetime.fromisoformat(cell.strip())
    elif isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime.combine(cell, time())
    if not isinstance(cell, datetime):
        raise ValueError(f"{cell!r} is no date")
    return cell.replace(tzinfo=UTC) if cell.tzinfo is None else cell.astimezone(UTC)


def _part(name: str, at: datetime) -> float:
    """Where in its hour, day, week or year a moment lies."""
    minutes = at.minute + (at.second + at.microsecond / 1e6) / 60
    day = (at.hour + minutes / 60) / 24
    if name == "month":
        first = datetime(at.year, at.month, 1, tzinfo=UTC)
        after = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
        return at.month - 1 + (at - first) / (after - first)
    parts = {"minute": minutes, "hour": 24 * day, "weekday": at.weekday() + day}
    return parts[name] if name in parts else at.timetuple().tm_yday - 1 + day


def _listed(names: Any) -> str:
    return ", ".join(map(_short, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _short(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= 60 else text[:57] + "..."
