"""A figure: which parts it is made of, and what it draws from their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..parts import Part

Record = dict[str, Any]  # as JSON has it
Records = Mapping[str, Record]  # by the ids of their parts


class Drawn(NamedTuple):
    """Markdown for a page, and pictures by name."""

    text: str
    pictures: dict[str, str] = {}  # noqa: RUF012  never written to


@dataclass(frozen=True)
class Figure:
    """A counterpart of a figure or table of the paper, or one beyond it."""

    name: str
    title: str
    parts: tuple[str, ...]  # ids of parts that it is drawn from, or what they begin with
    draw: Callable[[Records], Drawn]
    always: bool = field(default=False)  # whether it can be drawn without records

    def made_of(self, parts: Mapping[str, Part]) -> dict[str, Part]:
        """Its parts, and all that those need, in the order in which they run."""
        wanted = [part for part in parts.values() if part.id.startswith(self.parts)]
        ids: set[str] = set()
        while wanted:
            part = wanted.pop()
            if part.id not in ids:
                ids.add(part.id)
                wanted += [parts[need] for need in part.needs if need in parts]
        return {name: part for name, part in parts.items() if name in ids}

    def of(self, records: Records) -> dict[str, Record]:
        """The records that it draws."""
        return (
            {name: record for name, record in records.items() if name.startswith(self.parts)} if self.parts else {}
        )


def pairs(records: Records, study: str) -> list[Record]:
    """Plans that were played, each as one dictionary: its settings, what was said, and under `true` what came."""
    joined = []
    for name, record in records.items():
        if name.startswith(f"{study}/plan-"):
            played = records.get(name.replace("/plan-", "/play-"))
            if played is not None:
                more = {"true": played["numbers"], "seconds": record["seconds"], "device": record["device"]}
                joined.append({**record["settings"], **record["numbers"], **more})
    return joined


def at(row: Record, path: str) -> Any:
    """What lies in a row under names with dots between them; None where something on the way is none."""
    found: Any = row
    for name in path.split("."):
        found = None if found is None else found[name]
    return found


def whole(rows: Sequence[Record], *paths: str) -> list[Record]:
    """The rows in which none of these numbers, or of the numbers of these lists, is missing: all were finite."""
    there = lambda value: None not in value if isinstance(value, list) else value is not None
    return [row for row in rows if all(there(at(row, path)) for path in paths)]


def left_out(what: str, rows: Sequence[Record], kept: Sequence[Record]) -> str:
    """A sentence that says how many rows are left out as a number of theirs is not finite; or nothing."""
    gone = len(rows) - len(kept)
    return f"{what}: {gone} of {len(rows)} left out, whose numbers are not all finite." if gone else ""


def tasks(rows: Sequence[Record]) -> list[str]:
    """Their tasks, each once."""
    return list(dict.fromkeys(str(row["task"]) for row in rows))
