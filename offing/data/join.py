"""Several logs of one task as one: an earlier log, and rows that came later."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from ..types import BadInput, Box, Dataset, Task
from .columns import Column
from .dataset import Log, Part, behaviour, fingerprint


def join(logs: Sequence[Log]) -> Log:
    """The rows of all logs, one after another, as a log that knows its parts.

    Observations, actions, discount and whether there are episodes must agree: BadInput names what does not. Where
    bounds of amounts or the longest episode differ, the wider and the longer count, and a note says so.
    """
    if not logs:
        raise BadInput("no log was given")
    first, *later = logs
    for other in later:
        _agree(first, other)
    if not later:
        return first
    notes = [note for log in logs for note in log.notes]
    task, widened = _task(logs)
    parts = [_used(log) for log in logs]
    steps = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(part.steps for part in parts))
    starts = np.concatenate([np.asarray(part.starts) for part in parts])
    episode = _numbered([np.asarray(part.episode) for part in parts])
    data = Dataset(steps, starts, episode, np.asarray(len(episode), np.int32))
    logp = _logp(logs)
    if logp is None and any(log.logp is not None for log in logs):
        widened.append("not every log says how probable its actions were, so that is not used of any")
    return first._replace(
        data=data,
        task=task,
        name=" + ".join(log.name for log in logs),
        notes=(*dict.fromkeys(notes), *widened),
        fingerprint=fingerprint(data, task, logp),
        logp=logp,
        provenance=None,
        parts=tuple(Part(log.name, log.data.rows, log.fingerprint, behaviour(log.data, task)) for log in logs),
    )


def _agree(first: Log, other: Log) -> None:
    first.columns.matches(other.columns, other.name)
    wide, theirs = first.data.steps.obs.shape[1], other.data.steps.obs.shape[1]
    if wide != theirs:
        raise BadInput(f"{other.name}: observations of {theirs} numbers where {first.name} has {wide}")
    for mine, its in zip(first.columns.obs, other.columns.obs, strict=True):
        if _kind(mine) != _kind(its):
            raise BadInput(f"{other.name}: column {its.name!r} is not made into numbers as in {first.name}")
    one, two = first.task, other.task
    if type(one.actions) is not type(two.actions) or one.actions.width != two.actions.width:
        raise BadInput(f"{other.name}: its actions are {two.actions}, those of {first.name} are {one.actions}")
    if one.discount != two.discount:
        raise BadInput(f"{other.name}: discount {two.discount:g} where {first.name} has {one.discount:g}")
    if (int(first.data.episode[0]) < 0) != (int(other.data.episode[0]) < 0):
        without, having = (first, other) if int(first.data.episode[0]) < 0 else (other, first)
        raise BadInput(f"{without.name}: has no episodes, where {having.name} has them")


def _kind(column: Column) -> tuple[object, ...]:
    """What makes a column's numbers mean the same."""
    return column.encoding, column.width, column.levels, column.other, column.period, column.lag


def _task(logs: Sequence[Log]) -> tuple[Task, list[str]]:
    """The task of all logs together, and what had to be widened."""
    task, notes = logs[0].task, []
    horizon = max(log.task.horizon for log in logs)
    if any(log.task.horizon != horizon for log in logs):
        notes.append(f"episodes have at most {horizon} steps, as in the log that has the longest")
    boxes = [log.task.actions for log in logs if isinstance(log.task.actions, Box)]
    if len(set(boxes)) > 1:
        low, high = (tuple(map(min, *(b.low for b in boxes))), tuple(map(max, *(b.high for b in boxes))))
        task = task._replace(actions=Box(low, high))
        notes.append("the logs differ in the bounds of their amounts; the widest are used")
    return task._replace(horizon=horizon), notes


def _used(log: Log) -> Dataset:
    """The rows in use alone."""
    rows, data = log.data.rows, log.data
    steps = jax.tree.map(lambda leaf: np.asarray(leaf)[:rows], data.steps)
    return Dataset(steps, data.starts, np.asarray(data.episode)[:rows], data.size)


def _numbered(episodes: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers of episodes, each log's after those of the one before; -1 stays."""
    numbered, before = [], 0
    for episode in episodes:
        numbered.append(np.where(episode < 0, episode, episode + before).astype(np.int32))
        before += max(int(episode.max()), -1) + 1
    return np.concatenate(numbered)


def _logp(logs: Sequence[Log]) -> np.ndarray | None:
    each = [None if log.logp is None else log.logp[: log.data.rows] for log in logs]
    known = [part for part in each if part is not None]
    return np.concatenate(known) if len(known) == len(logs) else None
