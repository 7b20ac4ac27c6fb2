"""Samples of logs that are too large to be worked on whole: episodes drawn by a seed, in the order of the log."""

from __future__ import annotations

import jax
import numpy as np

from ..types import BadInput, Dataset
from .dataset import PIECES, Log, fingerprint, subsample
from .sources import row_bytes, size_of

LARGE = 5 * 2**26  # bytes: about five million rows of ten columns, which take 20 GB to fit worlds to


def bytes_of(log: Log) -> int:
    """What a log takes as a Dataset."""
    return log.data.rows * row_bytes(log.data.steps.obs.shape[1], log.task.actions.width)


def fewer(log: Log, rows: int | None, seed: int) -> Log:
    """The log with so many rows: `subsample`, or of one above LARGE bytes those rows alone and no others."""
    if rows is None or rows == log.data.rows or bytes_of(log) <= LARGE:
        return subsample(log, rows, seed)
    return draw(log, rows, seed)


def sampled(log: Log, rows: int, seed: int, bound: int | None = None) -> Log:
    """A log above `bound` bytes, or LARGE, as a sample of so many rows, which a note says; any other as it is."""
    bound, total = LARGE if bound is None else bound, log.data.rows
    if bytes_of(log) <= bound or rows >= total:
        return log
    part = draw(log, rows, seed)
    few, many = (len(units(each)) for each in (part.data, log.data))
    share = f"{part.data.rows} of {total} rows" + (f", of {few} of {many} episodes" if few else "")
    note = f"larger than {size_of(bound)}, so that a sample drawn with seed {seed} stands for it: {share}"
    return part._replace(notes=(note, *log.notes))


def units(data: Dataset) -> np.ndarray:
    """The first row of every episode in use [E]; none of a bag."""
    episode = np.asarray(data.episode)[: data.rows]
    return np.zeros(0, int) if episode[0] < 0 else np.flatnonzero(np.r_[True, episode[1:] != episode[:-1]])


def draw(log: Log, rows: int, seed: int) -> Log:
    """So many rows of a log, as a log of their own: whole episodes, drawn at random, but for the last that is cut.

    Where whole episodes would leave fewer than ten, the first steps of ten episodes are taken.
    """
    data, total = log.data, log.data.rows
    if not 2 <= rows <= total:
        raise BadInput(f"{log.name}: {rows} rows asked for; it has {total}, and at least 2 are needed")
    rng = np.random.default_rng([seed, 1])
    first = units(data)
    if len(first):
        steps = shares(np.diff(np.r_[first, total]), rows, rng)
        used = np.flatnonzero(steps)
        begins = np.repeat(first[used] - np.r_[0, np.cumsum(steps[used])[:-1]], steps[used])
        order = begins + np.arange(len(begins))
        episode = np.repeat(np.arange(len(used), dtype=np.int32), steps[used])
    else:
        used = order = np.sort(rng.choice(total, rows, replace=False, shuffle=False))
        episode = np.full(rows, -1, np.int32)
    starts = np.asarray(data.starts)
    starts = starts[used] if len(starts) == (len(first) or total) else starts  # else they were named apart
    part = jax.tree.map(lambda leaf: np.asarray(leaf)[order], data.steps)
    if len(first):  # what was logged next is no longer in use where an episode was cut
        last = np.r_[episode[1:] != episode[:-1], True] & (part.done == 0)
        part.next_action[last] = part.action[last]
    made = Dataset(part, starts, episode, np.asarray(rows, np.int32))
    logp = None if log.logp is None else log.logp[order]
    where = None if log.provenance is None else log.provenance.at(order)
    return log._replace(data=made, fingerprint=fingerprint(made, log.task, logp), logp=logp, provenance=where)


def shares(lengths: np.ndarray, rows: int, rng: np.random.Generator) -> np.ndarray:
    """How many of its first steps each episode gives, so that all give `rows` together [E]."""
    order = rng.permutation(len(lengths))
    taken = np.zeros(len(lengths), np.int64)
    needed = int(np.searchsorted(np.cumsum(lengths[order]), rows)) + 1
    count = max(needed, min(PIECES, len(order), rows))
    few = order[:count]
    if count == needed:
        taken[few] = lengths[few]
        taken[few[-1]] -= taken.sum() - rows
        return taken
    left, room = rows, count  # even shares; what a short episode lacks, longer ones give
    for i in sorted(few, key=lambda i: lengths[i]):
        taken[i] = min(lengths[i], left // room)
        left, room = left - taken[i], room - 1
    return taken
