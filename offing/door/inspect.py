"""What `offing.inspect` returns: what is in a log, and which system suits it."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Unpack

from rich.table import Table as Printed

from ..data.facts import Facts
from ..data.inspect import inspect as inspect_log
from ..report import inspection, jsonable
from ..report.jsonable import Json
from ..report.store import Table, frame, write
from .common import How, Options, Source, known, writable
from .results import PathLike


@dataclass(frozen=True, kw_only=True, repr=False)
class Inspection:
    """What can be said of a log without learning a world from it."""

    data: str
    rows: int
    system: str  # SOReL, TOReL or neither yet
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    facts: Facts = field(compare=False)  # everything, as `inspect.json` has it

    @classmethod
    def of(cls, facts: Facts) -> Inspection:
        """From what `offing.data.inspect.inspect` says."""
        return cls(
            data=facts.data,
            rows=facts.rows,
            system=facts.answer.system,
            reasons=facts.answer.reasons,
            notes=facts.notes,
            facts=facts,
        )

    def lines(self) -> list[str]:
        """The result in sentences."""
        return inspection.summary(self.facts)

    def tables(self) -> Iterable[Printed]:
        """The same as tables for a terminal."""
        return inspection.printed(self.facts)

    def __repr__(self) -> str:
        return "\n".join([f"{self.data}: {self.rows:,} rows; {self.system}", *self.reasons[:6]])

    def _repr_html_(self) -> str:
        reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in self.reasons)
        return f"<div><b>{html.escape(f'{self.data}: {self.system}')}</b><ul>{reasons}</ul></div>"

    def to_json(self) -> Json:
        """What `inspect.json` holds."""
        return jsonable.to_json(self.facts)

    def to_frame(self) -> Table:
        """A row for every number of an observation."""
        columns = self.facts.observations
        names = [each.name for each in fields(columns[0]) if each.name != "walls"]
        table: dict[str, list[object]] = {"name": list(self.facts.names)}
        return frame(table | {name: [getattr(column, name) for column in columns] for name in names})

    def save(self, folder: PathLike) -> None:
        """Writes `inspect.html` and `inspect.json` into a folder."""
        inspection.save_inspection(Path(folder), self.facts)

    def report(self, path: PathLike) -> Path:
        """Writes the page to a file, and says where."""
        write(Path(path), inspection.page(self.facts).encode())
        return Path(path)


def inspect(log: Source, seed: int = 0, **options: Unpack[Options]) -> Inspection:
    """A log in; what is in it, what is wrong with it, and whether it suits SOReL or TOReL, out."""
    how = How(**known(options, How))
    if how.out is not None:
        writable(Path(how.out))
    made = Inspection.of(inspect_log(how.log(log, seed), seed))
    if how.out is not None:
        made.save(how.out)
    return made
