"""Rows read piece by piece: checked on the way, put into float32 columns, and drawn by episode where too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...types import BadInput
from ..dataset import Log
from ..schema import QUESTION, Schema
from . import Request, row_bytes, size_of
from ._checked import checked
from .arrays import actions_by_schema, from_arrays

BATCH = 2**16  # rows in a piece
MOST = 2**31 - 1  # rows are counted in 32 bits
WHOLE = ("episode", "step")
MARKS = ("episode", "terminated", "truncated")


class Batch(NamedTuple):
    """Some rows in a row: columns by role, the file they come from, and the number of the first."""

    columns: dict[str, np.ndarray]
    name: str
    first: int


class Rows(NamedTuple):
    """A log as it lies outside memory; `read` may be called more than once, for some of the roles."""

    name: str
    roles: tuple[str, ...]
    read: Callable[[tuple[str, ...]], Iterator[Batch]]
    most: int  # rows that there may be
    settings: Mapping[str, Any]
    notes: list[str]


class Counted(NamedTuple):
    """Episodes in the order of the file: how they are called, and how many rows each has."""

    names: np.ndarray  # [E]  one name for all rows of a bag
    lengths: np.ndarray  # [E]
    bag: bool

    @property
    def total(self) -> int:
        return int(self.lengths.sum())

    @property
    def in_order(self) -> bool:
        """Whether no episode goes on after another began."""
        return len(np.unique(self.names)) == len(self.names)


class Chosen(NamedTuple):
    """What fits the budget: of `total` rows those `kept`, by episode number, or by row in a bag."""

    keys: np.ndarray  # sorted
    by_row: bool
    kept: int
    total: int
    episodes: int  # of how many


def collect(rows: Rows, schema: Schema, request: Request) -> Log:
    """The log in the rows: all of it, in memory or on disk, or as many whole episodes, drawn by the seed, as the
    budget holds.
    """
    from ._large import on_disk

    first = next(iter(rows.read(rows.roles)), None)
    if first is None:
        raise BadInput(f"{rows.name}: the log is empty")
    kind_known = schema.discrete is not None or "n_actions" in rows.settings or "action_low" in rows.settings
    if first.columns["action"].dtype.kind in "iub" and not kind_known:
        raise BadInput(f"{rows.name}, column 'action': {QUESTION}")
    each, budget = row_bytes(*(first.columns[role][:1].size for role in ("obs", "action"))), request.budget
    chosen, room = None, rows.most
    if rows.most * each > budget:
        counted = count(rows)
        keep = request.on_disk and counted.in_order and "final_obs" not in rows.settings
        if keep and counted.total * each > budget:
            return on_disk(rows, schema, counted, each, budget)
        chosen = _choose(counted, rows.name, budget // each, request.seed)
        room = chosen.kept
        if chosen.kept == chosen.total:
            chosen = None
    columns = _fill(rows, first, room, chosen)
    notes = list(rows.notes)
    if chosen is not None:
        parts = "rows" if chosen.by_row else "whole episodes"
        share = "" if chosen.by_row else f"{len(chosen.keys)} of {chosen.episodes} episodes, "
        notes.append(
            f"larger than the budget of {size_of(budget)}: {parts} were drawn with seed {request.seed}, {share}"
            f"{chosen.kept} of {chosen.total} rows"
        )
    settings = {**rows.settings, **schema.settings()}
    if schema.discrete is not None:
        columns["action"], more = actions_by_schema(columns["action"], schema, settings, notes)
        settings = {**more, **settings}
    log = from_arrays({**columns, **settings}, rows.name, successors=True, acts=schema.names("action"))
    return log._replace(notes=(*notes, *log.notes))


def _keys(batch: Batch, counted: int, ended: bool) -> tuple[np.ndarray, int, bool]:
    """The episode number of each row: logged, or counted on from the rows before by their ends."""
    columns = batch.columns
    if "episode" in columns:
        return _whole(batch, "episode"), counted, ended
    size = len(next(iter(columns.values())))
    ends = np.zeros(size, bool)
    for role in ("terminated", "truncated"):
        if role in columns:
            ends |= columns[role].reshape(size, -1)[:, 0] != 0
    before = np.r_[ended, ends[:-1]] if size else ends
    keys = counted + np.cumsum(before)
    return keys, int(keys[-1]) if size else counted, bool(ends[-1]) if size else ended


def _whole(batch: Batch, role: str) -> np.ndarray:
    """Episode or step numbers; floats will do where they are whole."""
    part = batch.columns[role]
    if part.dtype.kind == "f":
        bad = ~(np.abs(part) < 2**53) | (part != np.round(part))
        if bad.any():
            row = int(np.argmax(bad.reshape(len(part), -1).any(1)))
            text = f"{part[row]} where a whole number was expected"
            raise BadInput(f"{batch.name}, column '{role}', row {batch.first + row}: {text}")
        part = part.astype(np.int64)
    if part.dtype.kind not in "iu":
        raise BadInput(f"{batch.name}, column '{role}': holds {part.dtype}, not whole numbers; number the {role}s")
    if part.ndim == 2 and part.shape[1] == 1:
        return part[:, 0]
    if part.ndim != 1:
        raise BadInput(f"{batch.name}, column '{role}': shape {part.shape} where one number per row was expected")
    return part


def count(rows: Rows) -> Counted:
    """The episodes of the rows, by reading no more than what marks them."""
    roles = tuple(role for role in MARKS if role in rows.roles)
    total, counted, ended = 0, 0, False
    values, lengths = [], []
    for batch in rows.read(roles or ("reward",)):
        keys, counted, ended = _keys(batch, counted, ended)
        if len(keys) == 0:
            continue
        total += len(keys)
        if total > MOST:
            raise BadInput(f"{rows.name}: more than {MOST} rows; give a part of it")
        begins = np.r_[0, np.flatnonzero(keys[1:] != keys[:-1]) + 1]
        values.append(keys[begins])
        lengths.append(np.diff(np.r_[begins, len(keys)]))
    if total == 0:
        raise BadInput(f"{rows.name}: the log is empty")
    if not roles:
        return Counted(np.zeros(1, np.int64), np.array([total]), True)
    names = np.concatenate(values)
    begins = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])  # one may go on from piece to piece
    return Counted(names[begins], np.add.reduceat(np.concatenate(lengths), begins), False)


def _choose(counted: Counted, name: str, fits: int, seed: int) -> Chosen:
    """Whole episodes in random order until no more fit; rows, where the log has no episodes."""
    rng, total = np.random.default_rng([seed, 3]), counted.total
    if counted.bag:
        few = total > 4 * fits  # then drawing twice is rare, and a permutation of all would be dear
        kept = np.unique(rng.integers(0, total, fits)) if few else np.sort(rng.permutation(total)[:fits])
        return Chosen(kept, True, len(kept), total, 0)
    names, where = np.unique(counted.names, return_inverse=True)
    sizes = np.bincount(where, counted.lengths).astype(np.int64)
    order = rng.permutation(len(names))
    taken = order[np.cumsum(sizes[order]) <= fits]
    if len(taken) == 0:
        raise BadInput(f"{name}: not even one episode fits the budget, which holds {fits} rows; raise it")
    return Chosen(np.sort(names[taken]), False, int(sizes[taken].sum()), total, len(names))


def _fill(rows: Rows, first: Batch, room: int, chosen: Chosen | None) -> dict[str, np.ndarray]:
    """The columns of the rows that are kept, made once at their full length and filled piece by piece."""
    columns = empty(first, room)
    filled, seen, counted, ended = 0, 0, 0, False
    for batch in rows.read(rows.roles):
        size = len(batch.columns["reward"])
        keep = slice(None)
        if chosen is not None and chosen.by_row:
            low, high = np.searchsorted(chosen.keys, [seen, seen + size])
            keep = chosen.keys[low:high] - seen
        elif chosen is not None:
            keys, counted, ended = _keys(batch, counted, ended)
            at = np.searchsorted(chosen.keys, keys).clip(max=len(chosen.keys) - 1)
            keep = np.flatnonzero(chosen.keys[at] == keys)
        seen += size
        taken = size if isinstance(keep, slice) else len(keep)
        if filled + taken > room:
            raise BadInput(f"{rows.name}: damaged; it holds more rows than it claims")
        for role, target in columns.items():
            target[filled : filled + taken] = part_of(batch, role, target.shape[1:])[keep]
        filled += taken
    for target in columns.values():
        target.resize((filled, *target.shape[1:]), refcheck=False)  # gives back what was not needed
    return columns


def empty(first: Batch, room: int) -> dict[str, np.ndarray]:
    """Columns for so many rows like those of the first batch; untouched pages cost nothing."""
    columns: dict[str, np.ndarray] = {}
    for role, part in first.columns.items():
        if part.dtype.kind not in "fiub":
            raise BadInput(f"{first.name}, column '{role}': holds {part.dtype}, not numbers")
        whole = role in WHOLE
        columns[role] = np.empty((room, *(() if whole else part.shape[1:])), np.int64 if whole else np.float32)
    return columns


def part_of(batch: Batch, role: str, shape: tuple[int, ...]) -> np.ndarray:
    """A batch's column, checked: numbers of that shape a row."""
    part, size = _whole(batch, role) if role in WHOLE else batch.columns[role], len(batch.columns["reward"])
    if part.shape[1:] != shape or len(part) != size:
        raise BadInput(
            f"{batch.name}, column '{role}', row {batch.first}: shape {part.shape} where "
            f"{(size, *shape)} was expected"
        )
    if role not in WHOLE:
        checked(part, role, batch.name, batch.first)
    return part
