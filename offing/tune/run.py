"""What every step of a run takes along: where results are kept, who hears of progress, where chunks run."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import NamedTuple, Protocol

import numpy as np

from ..types import Progress
from .engine import Engine, here

_TELLING = RLock()  # whoever hears of progress need not know that work runs side by side


class Cache(Protocol):
    """Where finished results are kept: arrays by name. `offing.report.store.Folder` is one."""

    def get(self, name: str) -> list[np.ndarray] | None: ...

    def put(self, name: str, arrays: Sequence[np.ndarray]) -> None: ...


class Part(NamedTuple):
    """A part of a cache: for sweeps of the same name over other settings, such as the batches of a search."""

    cache: Cache
    name: str

    def get(self, name: str) -> list[np.ndarray] | None:
        return self.cache.get(f"{self.name}-{name}")

    def put(self, name: str, arrays: Sequence[np.ndarray]) -> None:
        self.cache.put(f"{self.name}-{name}", arrays)


class Run(NamedTuple):
    """A run's cache, its progress callback and its engine; by default nothing is kept or told."""

    cache: Cache | None = None
    progress: Progress | None = None
    engine: Engine = here

    def tell(self, what: str, done: int, total: int) -> None:
        """Reports that `done` of `total` parts of `what` are finished; one thread at a time."""
        if self.progress is not None:
            with _TELLING:
                self.progress(what, done, total)

    def get(self, name: str) -> list[np.ndarray] | None:
        """The arrays kept under a name, or None."""
        return None if self.cache is None else self.cache.get(name)

    def put(self, name: str, arrays: Sequence[np.ndarray]) -> None:
        """Keeps the arrays, if this run keeps any."""
        if self.cache is not None:
            self.cache.put(name, arrays)

    def part(self, name: str) -> Run:
        """The same run with a part of the cache that no other name reads."""
        return self if self.cache is None else self._replace(cache=Part(self.cache, name))


ALONE = Run()
