"""A log in memory: fewer rows of it, its split into folds, and what identifies it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import jax
import numpy as np

from ..types import BadInput, Dataset, Task
from .columns import Columns
from .provenance import Provenance

HELD = 20_000  # rows held out, at most
VALID = 4_096  # rows that validate, at most
MANY = 100_000  # episodes, or rows of a bag: so many need no care to be dealt out fairly
STRATUM = 10  # episodes that go about as far, of which every part gets its share
PIECES = 10  # a smaller log still comes from at least this many episodes, and is split into as many parts


class Behaviour(NamedTuple):
    """What the logged behaviour earned an episode, undiscounted."""

    mean: float
    stderr: float
    best: float  # the best tenth of its episodes, on average
    worst: float  # the worst tenth
    episodes: int  # whole ones, that ended or ran to the horizon
    estimated: bool  # too few whole ones: the mean is reward a step times the length that ends allow


class Part(NamedTuple):
    """One of the logs that a log was joined of, as it was read."""

    name: str
    rows: int
    fingerprint: str
    behaviour: Behaviour


class Log(NamedTuple):
    """What a source gives: the data, the task, where they came from, and what was assumed on the way."""

    data: Dataset
    task: Task
    name: str
    notes: tuple[str, ...]
    fingerprint: str
    logp: np.ndarray | None = None  # [N]  log-probability of every logged action, where the log says it
    columns: Columns = Columns()  # what the numbers are: names, encodings, and the way back
    parts: tuple[Part, ...] = ()  # the logs that it was joined of, the earliest first
    provenance: Provenance | None = None  # unit and time of every row, where a table had them


class Split(NamedTuple):
    """Which rows do what. No episode does two things, so nothing that is scored was seen by its scorer."""

    train: np.ndarray  # [F, N]  rows each fold's worlds learn from, in the first `sizes` places
    sizes: np.ndarray  # [F]
    valid: np.ndarray  # [C]  rows that say when a world is at its best, in the first `valid_size` places
    valid_size: np.ndarray  # []
    held: np.ndarray  # [H]  rows for PIL and for the noise scale, in time order


def fingerprint(data: Dataset, task: Task, logp: np.ndarray | None = None) -> str:
    """Sixteen hexadecimal digits that two logs share exactly when their numbers and task agree."""
    digest = hashlib.sha256(repr((task.horizon, task.discount, task.actions)).encode())
    for leaf in jax.tree.leaves((data, logp)):
        array = np.ascontiguousarray(leaf)
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(memoryview(array.reshape(-1).view(np.uint8)))  # type: ignore[arg-type]
    return digest.hexdigest()[:16]


def runs(episode: np.ndarray) -> list[np.ndarray]:
    """Row numbers of each episode, in order."""
    return np.split(np.arange(len(episode)), np.flatnonzero(np.diff(episode)) + 1)


def laid_out(episode: np.ndarray, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers side by side [T, E], none beyond the horizon, and which are the episode's own.

    What is beyond an episode's end repeats its last row.
    """
    parts = [part[:horizon] for part in runs(episode)]
    lengths = np.array([len(part) for part in parts])
    times = np.arange(lengths.max())[:, None]
    return np.array([part[0] for part in parts]) + np.minimum(times, lengths - 1), times < lengths


def subsample(log: Log, rows: int | None, seed: int) -> Log:
    """The log with `rows` rows in use: whole episodes in random order where there are enough of them.

    Where whole episodes would leave fewer than ten, the first steps of ten episodes are used, and what is
    cut off counts as a time-out. Without episodes, rows are drawn at random. Columns keep their shapes, so
    programs compiled for one size serve all; only `starts` shrinks to those of the episodes in use.
    """
    data, total = log.data, log.data.rows
    if rows is None or rows == total:
        return log
    if not 2 <= rows <= total:
        raise BadInput(f"{log.name}: {rows} rows asked for; it has {total}, and at least 2 are needed")
    rng = np.random.default_rng([seed, 1])
    episode, starts = np.asarray(data.episode), np.asarray(data.starts)
    if episode[0] < 0:
        order = np.concatenate([rng.permutation(total), np.arange(total, len(episode))])
        units, used = total, order[:rows]
    else:
        episodes = runs(episode[:total])
        order_of = rng.permutation(len(episodes))
        pieces, rest = _first(episodes, order_of, rows)
        rest += [part + total for part in runs(episode[total:])]  # what an earlier call left over
        order = np.concatenate([*pieces, *rest])
        episode = np.concatenate([np.full(len(p), i, np.int32) for i, p in enumerate([*pieces, *rest])])
        units, used = len(episodes), order_of[: len(pieces)]
    if len(starts) == units:  # otherwise the log named its starts apart from its episodes
        starts = starts[used]
    steps = jax.tree.map(lambda leaf: np.asarray(leaf)[order], data.steps)
    cut = _cut_ends(episode[:rows], steps.done[:rows])
    steps.next_action[:rows][cut] = steps.action[:rows][cut]  # what was logged next is no longer in use
    data = Dataset(steps, starts, episode, np.asarray(rows, np.int32))
    logp = None if log.logp is None else log.logp[order]
    where = None if log.provenance is None else log.provenance.at(order)
    return log._replace(data=data, fingerprint=fingerprint(data, log.task, logp), logp=logp, provenance=where)


def _first(episodes: list[np.ndarray], order: np.ndarray, rows: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Pieces of episodes that hold `rows` rows together, and what is left over."""
    lengths = np.array([len(episodes[i]) for i in order])
    needed = int(np.searchsorted(np.cumsum(lengths), rows)) + 1
    count = max(needed, min(PIECES, len(order), rows))
    take = np.zeros(len(order), int)
    if count == needed:
        take[:count] = lengths[:count]
        take[count - 1] -= lengths[:count].sum() - rows
    else:  # even shares of the first `count` episodes; what a short one lacks, longer ones give
        while (short := rows - take.sum()) > 0:
            room = np.flatnonzero(take[:count] < lengths[:count])
            share = max(1, short // len(room))
            for i in room[: max(1, short // share)]:
                take[i] += min(share, lengths[i] - take[i])
    pieces = [episodes[i][: take[j]] for j, i in enumerate(order) if take[j]]
    rest = [episodes[i][take[j] :] for j, i in enumerate(order) if take[j] < lengths[j]]
    return pieces, rest


def _cut_ends(episode: np.ndarray, done: np.ndarray) -> np.ndarray:
    last = np.r_[episode[1:] != episode[:-1], True]
    return last & (done == 0)


def split(
    data: Dataset, seed: int, folds: int = 2, held: float | None = None, valid: float | None = None
) -> tuple[Split, list[str]]:
    """Rows for folds, validation and holding out: whole episodes each, where the log has enough of them.

    A fifth is held out and a tenth validates, but no more than HELD and VALID rows: a long log has better uses.

    Episodes are dealt out by how far from the log's middle they go (`_dealt`), so that every part has its share of
    the few that go far: where those fall decides what is found on held-out rows, and it should not be luck.
    """
    rows = data.rows
    held = min(0.2, HELD / rows) if held is None else held
    valid = min(0.1, VALID / rows) if valid is None else valid
    episode = np.asarray(data.episode)[:rows]
    rng = np.random.default_rng([seed, 2])
    notes: list[str] = []
    if episode[0] < 0:
        units = [np.array([row]) for row in range(rows)]
        notes.append("split by rows, since the log has no episodes: neighbours may stand on both sides")
    else:
        units = runs(episode)
        if len(units) == 1:
            raise BadInput(
                f"the log has one episode of {rows} rows, so no episode can be held out; log more, "
                "or leave out the episode's marks to have it read as a bag of transitions"
            )
        if len(units) < PIECES:
            notes.append(f"{len(units)} episodes: split by pieces of them, so neighbours may stand on both sides")
            pieces = -(-PIECES // len(units))
            units = [part for unit in units for part in np.array_split(unit, pieces) if len(part)]
    if len(units) < folds + 2:
        raise BadInput(f"{rows} rows are too few to split into {folds} folds, validation and held-out rows")
    far = reach(data, units)
    order = _dealt(rng, far)
    held_rows = _deal(units, order, max(1, round(held * rows)), spare=folds + 1)
    valid_rows = _deal(units, order, max(1, round(valid * rows)), spare=folds)
    parts: list[list[np.ndarray]] = [[] for _ in range(folds)]
    sizes = np.zeros(folds, np.int32)
    order.sort(key=far.__getitem__)
    for first in range(0, len(order), folds):  # of units that go as far, one to each fold
        batch = sorted(order[first : first + folds], key=lambda i: -len(units[i]))  # longest to smallest
        for i, f in zip(batch, np.argsort(sizes, kind="stable"), strict=False):
            parts[f].append(units[i])
            sizes[f] += len(units[i])
    train = np.zeros((folds, len(data.episode)), np.int32)
    for f, part in enumerate(parts):
        train[f, : sizes[f]] = np.sort(np.concatenate(part))
    cap = min(2048, len(data.episode))
    chosen = rng.permutation(valid_rows)[:cap]
    valid_table = np.zeros(cap, np.int32)
    valid_table[: len(chosen)] = chosen
    return Split(train, sizes, valid_table, np.asarray(len(chosen), np.int32), np.sort(held_rows)), notes


def crossed(data: Dataset, seed: int, folds: int) -> Split:
    """Folds that each learn from all rows but a part of their own: of every episode one of them saw nothing."""
    parts, _ = split(data, seed, folds, held=0.0)
    own = [rows[:size] for rows, size in zip(parts.train, parts.sizes, strict=True)]
    train = np.zeros_like(parts.train)
    sizes = parts.sizes.sum() - parts.sizes
    for f, size in enumerate(sizes):
        train[f, :size] = np.sort(np.concatenate([rows for g, rows in enumerate(own) if g != f]))
    return parts._replace(train=train, sizes=sizes)


def reach(data: Dataset, units: list[np.ndarray]) -> np.ndarray:
    """How far from the log's middle each unit's farthest observation is, in standard deviations squared."""
    obs = np.asarray(data.steps.obs[: data.rows], np.float64)
    std = obs.std(0)
    far = np.mean(np.square((obs - obs.mean(0)) / np.where(std > 0, std, 1.0)), -1)
    return np.array([far[unit].max() for unit in units])


def _dealt(rng: np.random.Generator, reach: np.ndarray) -> list[int]:
    """Units in random order, but such that any stretch of it has near and far ones in fair shares.

    By reach, neighbours form strata of STRATUM; of each, the order takes one at a time, drawn at random. Among
    very many units shares are fair of themselves.
    """
    if len(reach) > MANY:
        return rng.permutation(len(reach)).tolist()
    ranked = rng.permutation(len(reach))
    ranked = ranked[np.argsort(reach[ranked], kind="stable")]
    strata = [rng.permutation(ranked[i : i + STRATUM]) for i in range(0, len(ranked), STRATUM)]
    turns = [[stratum[turn] for stratum in strata if turn < len(stratum)] for turn in range(STRATUM)]
    return [int(unit) for turn in turns for unit in rng.permutation(np.array(turn, int))]


def _deal(units: list[np.ndarray], order: list[int], rows: int, spare: int) -> np.ndarray:
    """Units off the end of `order` until they hold `rows` rows, leaving at least `spare` of them."""
    taken = [units[order.pop()]]
    count = len(taken[0])
    while count < rows and len(order) > spare:
        taken.append(units[order.pop()])
        count += len(taken[-1])
    return np.concatenate(taken)


def ranges(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest of every observation and of the reward [S + 1], over the rows in use."""
    steps, rows = data.steps, data.rows
    reward = np.asarray(steps.reward[:rows])[:, None]
    seen = [np.concatenate([np.asarray(obs[:rows]), reward], -1) for obs in (steps.obs, steps.next_obs)]
    return np.minimum(*(part.min(0) for part in seen)), np.maximum(*(part.max(0) for part in seen))


def take(data: Dataset, rows: np.ndarray) -> Dataset:
    """The named rows as a log of their own."""
    steps = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], data.steps)
    return Dataset(steps, data.starts, np.asarray(data.episode)[rows], np.asarray(len(rows), np.int32))


FEW = 5  # whole episodes that a mean is taken over


def behaviour(data: Dataset, task: Task) -> Behaviour:
    """The logged behaviour's return. Episodes cut short say what a step earns, not what an episode does."""
    rows = data.rows
    reward, done = np.asarray(data.steps.reward[:rows], np.float64), np.asarray(data.steps.done[:rows])
    episode = np.asarray(data.episode)[:rows]
    units = runs(episode) if episode[0] >= 0 else []
    whole = [unit for unit in units if done[unit[-1]] or len(unit) >= task.horizon]
    if len(whole) >= FEW:
        totals = np.sort([reward[unit].sum() for unit in whole])
        tenth = max(1, len(totals) // 10)
        spread = float(totals.std(ddof=1) / np.sqrt(len(totals)))
        return Behaviour(
            float(totals.mean()),
            spread,
            float(totals[-tenth:].mean()),
            float(totals[:tenth].mean()),
            len(whole),
            False,
        )
    ends = done.sum() / rows
    length = task.horizon if ends == 0 else (1 - (1 - ends) ** task.horizon) / ends
    pieces = [reward[unit].mean() for unit in units] if len(units) > 1 else list(reward)
    stderr = float(np.std(pieces, ddof=1) / np.sqrt(len(pieces)) * length)
    mean = float(reward.mean() * length)
    return Behaviour(mean, stderr, mean, mean, len(whole), True)


BLOCK = 2**18  # rows looked at together, so that a long log is never copied whole


def broken(data: Dataset) -> float:
    """Share of the steps inside episodes whose next observation is not what the next row starts from."""
    rows = data.rows
    episode = np.asarray(data.episode)[:rows]
    if rows < 2 or episode[0] < 0:
        return 0.0
    obs, next_obs = np.asarray(data.steps.obs)[:rows], np.asarray(data.steps.next_obs)[:rows]
    room = 1e-3 * np.maximum(obs[:: max(1, rows // 100_000)].std(0), 1e-12)
    off = inside = 0
    for begin in range(0, rows - 1, BLOCK):
        end = min(begin + BLOCK, rows - 1)
        same = episode[begin:end] == episode[begin + 1 : end + 1]
        far = np.abs(next_obs[begin:end] - obs[begin + 1 : end + 1]) > room
        off += np.count_nonzero(far.any(1) & same)
        inside += np.count_nonzero(same)
    return off / inside if inside else 0.0
