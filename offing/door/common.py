"""What the functions of the door share: how a run goes, where it resumes, and what is checked before it begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypedDict, TypeVar

import jax

from ..data import Log, Schema, fewer, load
from ..data.large import sampled
from ..posterior import models
from ..progress import Bar
from ..report.reports import Facts
from ..report.store import Folder
from ..tune import engine as engines
from ..tune.run import Run
from ..types import BadInput, Progress, WorldModel
from ..version import __version__
from .results import PathLike

VISITS = 2**20  # rows of a log too large to be fitted whole, where a model has no updates to count
LEAST = 50_000  # rows that any model gets of it
Scale = Literal["smoke", "quick", "standard", "large", "paper"]
Source = Log | PathLike | Mapping[str, object] | Sequence[object] | object  # object: what speaks Arrow's protocol
Given = TypeVar("Given", bound=Mapping[str, object])


class Result(Protocol):
    """What can be resumed: it knows its run, and how to save itself."""

    @property
    def run(self) -> str: ...

    def save(self, folder: PathLike) -> None: ...

    def complete(self, folder: Path) -> None: ...


Done = TypeVar("Done", bound=Result)


class Options(TypedDict, total=False):
    """How a run goes, beside what it is: every function takes these by name."""

    rows: int | None  # use this many rows of the log
    schema: Schema | PathLike | None  # which column is what
    out: PathLike | None  # folder to write to, and to resume from
    fresh: bool  # start anew, even if `out` holds a finished or an interrupted run
    engine: str | engines.Engine  # where settings train: here, devices or ray
    progress: bool | Progress  # whether to show it, or what it is reported to


@dataclass(frozen=True)
class How:
    """`Options` with their defaults."""

    rows: int | None = None
    schema: Schema | PathLike | None = None
    out: PathLike | None = None
    fresh: bool = False
    engine: str | engines.Engine = "here"
    progress: bool | Progress = True

    def log(self, source: Source, seed: int) -> Log:
        """The log, read if it is not yet."""
        if isinstance(source, Log):
            return fewer(source, self.rows, seed)
        return load(source, self.rows, seed, schema=self.schema)

    @property
    def where(self) -> engines.Engine:
        return engines.get(self.engine) if isinstance(self.engine, str) else self.engine


def model_of(model: str | WorldModel) -> WorldModel:
    """The world model of that name, or the one given."""
    return models.get(model) if isinstance(model, str) else model


def worked_on(log: Log, settings: Sequence[object], seed: int) -> Log:
    """The log, or of one too large to be fitted whole a sample: of as many rows as the worlds can visit in their
    updates.
    """
    visits = [getattr(s, "folds", 1) * getattr(s, "updates", 0) * getattr(s, "batch_size", 0) for s in settings]
    return sampled(log, max(max(visits, default=0) or VISITS, LEAST), seed)


def known(options: Given, kind: type[How]) -> Given:
    """The options, if each of them is one."""
    unknown = set(options) - set(kind.__dataclass_fields__)
    if unknown:
        raise BadInput(f"{sorted(unknown)[0]}: no such option; there are {', '.join(kind.__dataclass_fields__)}")
    return options


def probability(level: float) -> None:
    if not 0 < level < 1:
        raise BadInput(f"--level {level}: a probability between 0 and 1")


def facts(log: Log, run: str, seed: int, scale: str, model: WorldModel, bar: Bar) -> Facts:
    """What was run, on what."""
    return Facts(
        data=log.name,
        fingerprint=log.fingerprint,
        run=run,
        rows=log.data.rows,
        seed=seed,
        scale=scale,
        version=__version__,
        device=jax.devices()[0].device_kind,
        jax=jax.__version__,
        seconds=bar.seconds,
        model=model.name,
        notes=log.notes,
    )


def resumed(
    request: str,
    how: How,
    read: Callable[[Path], Done | None],
    work: Callable[[Run, Bar], Done],
) -> Done:
    """The result that `out` holds of this very run, or else what the work comes to, saved there."""
    bar = how.progress if isinstance(how.progress, Bar) else Bar(how.progress is True)
    progress = how.progress if callable(how.progress) and not isinstance(how.progress, bool) else bar
    where = how.where
    if how.out is None:
        with bar, where.session():
            return work(Run(None, progress, where), bar)
    folder = Path(how.out)
    writable(folder)
    cache = Folder(folder, request)
    if how.fresh:
        cache.clear()
    elif (done := read(folder)) is not None:
        if done.run != request:
            raise BadInput(f"{folder}: holds the result of another run; choose another folder, or pass --fresh")
        done.complete(folder)
        return done
    with bar, where.session():
        result = work(Run(cache, progress, where), bar)
    result.save(folder)
    cache.clear()
    return result


def writable(folder: Path) -> None:
    """Raises BadInput unless files could be written there; makes nothing."""
    near = folder
    while not near.exists() and near != near.parent:
        near = near.parent
    if not near.is_dir():
        raise BadInput(f"{near}: is a file, where the folder for results was expected; give another --out")
    if not os.access(near, os.W_OK):
        raise BadInput(f"{folder}: cannot be written to")
