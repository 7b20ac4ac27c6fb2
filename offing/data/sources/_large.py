"""A log that is larger than memory should hold: read and checked as any other, but by pieces of whole episodes.

It is kept in files that are mapped into memory. They have no name: when nothing refers to the log any more, or the
process ends in whatever way, the disk is free again.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ...types import BadInput, Box, Dataset, Task, Transition
from ..columns import Columns
from ..dataset import Log, fingerprint
from ..schema import Schema
from . import size_of
from ._rows import Batch, Counted, Rows, empty, part_of
from .arrays import actions_by_schema, constant, read_arrays

PIECE = 2**20  # rows that are shaped together


def on_disk(rows: Rows, schema: Schema, counted: Counted, each: int, budget: int) -> Log:
    """The log in the rows, whole, as it would be in memory, to the fingerprint; `each` are the bytes of a row.

    Only where last steps led that were not logged (`successors`) is taken from rows of the same piece.
    """
    _refuse_no_room(rows.name, counted, each, budget)
    notes, settings = list(rows.notes), {**rows.settings, **schema.settings()}
    if schema.discrete and "n_actions" not in settings:
        top = max((batch.columns["action"].max() for batch in rows.read(("action",))), default=0)
        _, more = actions_by_schema(np.asarray([top]), schema, settings, notes)
        settings |= more
    whole = Whole()
    ends = _borders(counted)
    for first, columns in zip([0, *ends[:-1]], _pieces(rows, ends), strict=True):
        if schema.discrete is not None:
            columns["action"], _ = actions_by_schema(columns["action"], schema, settings, [])
        try:
            whole.add(read_arrays({**columns, **settings}, rows.name, None, successors=True))
        except BadInput as error:  # rows are counted from the first of all
            raise BadInput(re.sub(r"\brow (\d+)", partial(_from, first), str(error))) from None
    log = whole.log(rows.name, settings, counted)
    return log._replace(notes=(*notes, *log.notes))


def _from(first: int, row: re.Match[str]) -> str:
    return f"row {int(row[1]) + first}"


def _refuse_no_room(name: str, counted: Counted, each: int, budget: int) -> None:
    """BadInput where the disk cannot hold the log, or memory one of its episodes."""
    needed, where = counted.total * each, tempfile.gettempdir()
    if needed > (free := shutil.disk_usage(where).free):
        raise BadInput(
            f"{name}: takes {size_of(needed)}, too much for memory, and on disk {where} has {size_of(free)} left; "
            "set TMPDIR to a folder on a disk with room, or give budget=BYTES to read a sample of whole episodes"
        )
    if not counted.bag and (longest := int(counted.lengths.max()) * each) > budget:
        raise BadInput(
            f"{name}: its longest episode takes {size_of(longest)} of memory, and {size_of(budget)} is the most; "
            "cut it into shorter ones, or raise budget=BYTES"
        )


def _borders(counted: Counted) -> list[int]:
    """The rows at which pieces end: after whole episodes, or after any row of a bag."""
    if counted.bag:
        ends = np.arange(PIECE, counted.total + PIECE, PIECE).clip(max=counted.total)
    else:
        ends = np.cumsum(counted.lengths)
        ends = ends[np.r_[ends[1:] // PIECE != ends[:-1] // PIECE, True]]
    if len(ends) > 1 and ends[-1] - ends[-2] < PIECE // 2:  # too few to be read for themselves
        ends = np.delete(ends, -2)
    return ends.tolist()


def _pieces(rows: Rows, ends: Sequence[int]) -> Iterator[dict[str, np.ndarray]]:
    """The columns between one border and the next."""
    columns: dict[str, np.ndarray] = {}
    place, piece = 0, 0
    for batch in rows.read(rows.roles):
        size, taken = len(batch.columns["reward"]), 0
        while taken < size:
            if piece == len(ends):
                raise BadInput(f"{rows.name}: changed while it was read")
            begin = ends[piece - 1] if piece else 0
            columns = columns or empty(batch, ends[piece] - begin)
            many = min(size - taken, ends[piece] - place)
            _put(columns, batch, slice(place - begin, place - begin + many), slice(taken, taken + many))
            place, taken = place + many, taken + many
            if place == ends[piece]:
                yield columns
                columns, piece = {}, piece + 1
    if piece < len(ends):
        raise BadInput(f"{rows.name}: changed while it was read")


def _put(columns: dict[str, np.ndarray], batch: Batch, to: slice, of: slice) -> None:
    for role, target in columns.items():
        target[to] = part_of(batch, role, target.shape[1:])[of]


class Kept:
    """One column in a file without a name, written once and then mapped."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 (closed once it is mapped)
        self.kind, self.shape, self.rows = np.dtype(np.float32), (), 0

    def add(self, part: np.ndarray) -> None:
        part = np.ascontiguousarray(part)
        try:
            self.file.write(memoryview(part.reshape(-1).view(np.uint8)))  # type: ignore[arg-type]
            self.file.flush()
        except OSError as error:
            raise BadInput(f"{tempfile.gettempdir()}: the log cannot be kept there ({error.strerror})") from None
        self.kind, self.shape, self.rows = part.dtype, part.shape[1:], self.rows + len(part)

    @property
    def mapped(self) -> np.ndarray:
        with self.file:
            return np.asarray(np.memmap(self.file, self.kind, "r", shape=(self.rows, *self.shape)))


class Whole:
    """Logs of whole episodes, one after the other, as they become one."""

    def __init__(self) -> None:
        self.steps = {name: Kept() for name in Transition._fields}
        self.episode, self.logp = Kept(), Kept()
        self.starts: list[np.ndarray] = []
        self.notes: list[Sequence[str]] = []
        self.tasks: list[Task] = []
        self.edges: list[list[np.ndarray]] = []  # least and greatest of observation, action and reward
        self.episodes, self.longest = 0, 1
        self.columns = Columns()

    def add(self, log: Log) -> None:
        steps = log.data.steps
        for name, column in self.steps.items():
            column.add(np.asarray(getattr(steps, name)))
        number = np.asarray(log.data.episode)
        if number[0] >= 0:
            self.longest = max(self.longest, int(np.bincount(number).max()))
            number = number + np.int32(self.episodes)
            self.episodes = int(number[-1]) + 1
        self.episode.add(number)
        if log.logp is not None:
            self.logp.add(log.logp)
        self.starts.append(np.asarray(log.data.starts))
        self.notes.append(log.notes)
        self.tasks.append(log.task)
        seen = [np.asarray(part) for part in (steps.obs, steps.action, steps.reward)]
        self.edges.append([np.stack([part.min(0), part.max(0)]) for part in seen])
        self.columns = log.columns

    def log(self, name: str, settings: dict[str, object], counted: Counted) -> Log:
        """All of them as one log, mapped."""
        steps = Transition(**{name: column.mapped for name, column in self.steps.items()})
        logp = self.logp.mapped if self.logp.rows else None
        if "starts" in settings:
            starts = self.starts[0]
        else:
            starts = np.asarray(steps.obs) if counted.bag else np.concatenate(self.starts)
        data = Dataset(steps, starts, self.episode.mapped, np.asarray(len(steps.obs), np.int32))
        task, horizon = self._task(settings, counted)
        edges = (np.concatenate(part) for part in zip(*self.edges, strict=True))
        notes = (*together(self.notes), *horizon, *constant(*edges))
        return Log(data, task, name, notes, fingerprint(data, task, logp), logp, self.columns)

    def _task(self, settings: dict[str, object], counted: Counted) -> tuple[Task, list[str]]:
        """The task of all pieces, and what is noted of its horizon: the longest episode, if nothing else says."""
        task, notes = self.tasks[0], []
        before, after = (1, 1) if counted.bag else (int(counted.lengths.max()), self.longest)
        stated = int(np.asarray(settings["horizon"]).reshape(())) if "horizon" in settings else before
        horizon = stated if stated > before or after >= stated else after
        if "horizon" not in settings:
            notes.append(f"horizon not given: {horizon}, the longest logged episode")
        elif horizon != stated:
            text = "since the last row of each episode has nothing that follows"
            notes.append(f"horizon: {horizon}, not {stated}, {text}")
        boxes = [task.actions for task in self.tasks if isinstance(task.actions, Box)]
        if boxes:
            low, high = (box for box in zip(*boxes, strict=True))
            widest = Box(tuple(map(min, zip(*low, strict=True))), tuple(map(max, zip(*high, strict=True))))
            task = task._replace(actions=widest)
        return task._replace(horizon=horizon), notes


def together(pieces: Sequence[Sequence[str]]) -> list[str]:
    """The notes of all pieces as those of one log: what they count is added up.

    What they say of the horizon and of constant columns holds for a piece alone.
    """
    notes: dict[str, dict[str, int]] = {}
    for note in (note for piece in pieces for note in piece):
        if note.startswith("horizon") or note.endswith(": constant"):
            continue
        head, *rest = note.split("; ")
        counts = notes.setdefault(re.sub(r"\d+", "#", head), {})
        for part in (head, *rest):
            form, number = re.sub(r"\d+", "#", part), re.search(r"\d+", part)
            counts[form] = counts.get(form, 0) + (int(number[0]) if number else 0)
    return ["; ".join(form.replace("#", str(number)) for form, number in each.items()) for each in notes.values()]
