"""What `offing.inspect` returns: what is in a log, and which system suits it."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack, cast

from rich.table import Table as Printed

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
    numbers: dict[str, Json] = field(compare=False)  # everything, as `inspect.json` has it

    @classmethod
    def of(cls, found: dict[str, object]) -> Inspection:
        """From what `offing.data.inspect.inspect` says."""
        numbers = cast(dict[str, Json], jsonable.to_json(found))
        answer = cast(dict[str, object], found["answer"])
        return cls(
            data=str(found["data"]),
            rows=cast(int, found["rows"]),
            system=str(answer["system"]),
            reasons=tuple(cast(Iterable[str], answer["reasons"])),
            notes=tuple(cast(Iterable[str], found["notes"])),
            numbers=numbers,
        )

    def lines(self) -> list[str]:
        """What was found, in sentences."""
        return inspection.summary(self.numbers)

    def tables(self) -> Iterable[Printed]:
        """The same as tables for a terminal."""
        return inspection.printed(self.numbers)

    def __repr__(self) -> str:
        return "\n".join([f"{self.data}: {self.rows:,} rows; {self.system}", *self.reasons[:6]])

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{html.escape(reason)}</li>" for reason in self.reasons)
        return f"<div><b>{html.escape(f'{self.data}: {self.system}')}</b><ul>{said}</ul></div>"

    def to_json(self) -> Json:
        """What `inspect.json` holds."""
        return self.numbers

    def to_frame(self) -> Table:
        """A row for every number of an observation."""
        columns = cast(list[dict[str, object]], cast(dict[str, object], self.numbers["observations"])["columns"])
        names = [name for name, value in columns[0].items() if not isinstance(value, (list, dict))]
        return frame({name: [column.get(name) for column in columns] for name in names})

    def save(self, folder: PathLike) -> None:
        """Writes `inspect.html` and `inspect.json` into a folder."""
        inspection.save_inspection(Path(folder), self.numbers)

    def report(self, path: PathLike) -> Path:
        """Writes the page to a file, and says where."""
        write(Path(path), inspection.page(self.numbers).encode())
        return Path(path)


def inspect(log: Source, seed: int = 0, **options: Unpack[Options]) -> Inspection:
    """A log in; what is in it, what is wrong with it, and whether it suits SOReL or TOReL, out."""
    how = How(**known(options, How))
    if how.out is not None:
        writable(Path(how.out))
    found = Inspection.of(inspect_log(how.log(log, seed), seed))
    if how.out is not None:
        found.save(how.out)
    return found
