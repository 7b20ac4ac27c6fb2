"""A part is one job with a name, a phase, hardware and an expected cost; it ends in one record.

A part is known by its settings and by the tree of `offing/`. Constants of the modules under `studies/` (numbers of
episodes and copies, nets of the estimators, gains of controllers) decide numbers too, and neither a record nor a
cache knows them: who changes one deletes the records and the caches of what it decides.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from offing.report.store import Folder, read_json
from offing.types import BadInput

from .library import imported

PHASES = ("collect", "plan", "play", "draw")  # collect and play need true environments; draw needs records alone
SCALES = ("smoke", "full")
Numbers = dict[str, Any]  # as JSON has it, or arrays that `records.plain` makes JSON of
Settings = Mapping[str, Any]  # JSON


@dataclass(frozen=True)
class Place:
    """Where things lie: records that are kept for good, and what parts hand to one another."""

    records: Path
    work: Path

    def record_of(self, part: str) -> Path:
        return self.records / f"{part}.json"

    def read(self, part: str) -> Numbers:
        """The whole record of a part that is there."""
        record = read_json(self.record_of(part))
        if not isinstance(record, dict):
            raise BadInput(f"{part}: has no record in {self.records}")
        return record

    def file(self, name: str) -> Path:
        """A file that one part writes and others read; its folder exists."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def cache(self, name: str, settings: Settings) -> Folder:
        """Finished chunks of these settings in this state of the library: what was killed goes on from them."""
        known = hashlib.sha256(json.dumps([imported(), dict(settings)], sort_keys=True).encode()).hexdigest()
        return Folder(self.work / "cache", f"{name}-{known[:16]}")


Work = Callable[[Place, Settings], Numbers]


@dataclass(frozen=True)
class Part:
    """One job. `settings` are all that decides its numbers; JSON, and without what only says where things lie."""

    study: str
    name: str
    phase: str
    hardware: str  # CPU or GPU
    seconds: float  # expected, where nothing was measured yet
    settings: Settings
    work: Work = field(compare=False)
    needs: tuple[str, ...] = ()  # parts whose records and files it reads
    makes: tuple[str, ...] = ()  # files under the work folder that it leaves and others need
    brought: tuple[str, ...] = ()  # files under the work folder that a reader brings: nobody here can make them

    def gone(self, place: Place) -> list[str]:
        """The files that it makes and that are not there; records are kept for good, the work folder is not."""
        return [name for name in self.makes if not (place.work / name).exists()]

    @property
    def id(self) -> str:
        return f"{self.study}/{self.name}"
