"""What is in a log, what is wrong with it, and what it covers: plain numbers, and an answer with its reasons.

Nothing here grows with the log but a few numbers a row: columns are read in chunks; quantiles, neighbours and
controllers come from rows drawn by a seed; per-episode sums are vectorised.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..types import Discrete, Task
from ._advice import DRIFT, SURE, decide
from ._advice import FOLLOWS as FOLLOWS
from ._advice import SLIVER as SLIVER
from ._advice import TAKEN as TAKEN
from ._drivers import choices
from ._glance import BINS, TIES, Column, Rows, blocks, first_rows, glance, rows_of, scaled, spread, summed
from ._guess import VALUES, distances, halves, parts
from .dataset import Log, broken

SAMPLE = 100_000  # rows that quantiles and counts of values are taken from
NEAR = 1e-3  # standard deviations: rows closer than that are near-duplicates
BLOCKS = 20  # pieces of the log, in time order, that drift is read off


def inspect(log: Log, seed: int = 0) -> dict[str, Any]:
    """Everything that can be said of a log without learning a world from it, ready for JSON."""
    data, task, rows = rows_of(log.data), log.task, log.data.rows
    rng = np.random.default_rng([seed, 3])
    drawn = np.sort(rng.choice(rows, min(rows, SAMPLE), replace=False, shuffle=False))
    obs, action = glance(data.obs, rows), glance(data.action, rows)
    reward = glance(data.reward[:, None], rows)
    marks = first_rows(data)
    found = {
        "data": log.name,
        "fingerprint": log.fingerprint,
        "seed": seed,
        "notes": list(log.notes),
        "rows": rows,
        "obs_width": len(obs.mean),
        "names": list(log.columns.names),
        "action_names": list(log.columns.action_names),
        "exogenous": [name for name, out in zip(log.columns.names, log.columns.exogenous, strict=True) if out],
        "inferred": any(note.startswith("next_obs not given") for note in log.notes),
        "action_kind": "discrete" if isinstance(task.actions, Discrete) else "continuous",
        "action_width": task.actions.width,
        "horizon": task.horizon,
        "discount": task.discount,
        "bytes": int(sum(leaf.nbytes for leaf in data[:5])),
        "ends": int(np.count_nonzero(data.done)),
        "episodes": None if marks is None else episodes(data, task, marks),
        "rewards": spread(data.reward[drawn], reward, 0),
        "observations": observations(data, obs, drawn),
        "actions": actions(data, task, action, drawn) | choices(data, task, obs, marks, rng),
        "coverage": coverage(data, obs, action, marks, rng),
        "copies": copies(data, (obs, action, reward), marks),
        "drift": drift(data, (obs, action, reward)),
        "broken": broken(log.data),
    }
    return {**found, "answer": decide(found)._asdict()}


def episodes(data: Rows, task: Task, first: np.ndarray) -> dict[str, Any]:
    """Lengths, ends, and returns with and without discount."""
    rows = data.count
    lengths = np.diff(np.r_[first, rows])
    ended = data.done[first + lengths - 1] > 0
    reward = data.reward.astype(np.float64)
    returns = np.add.reduceat(reward, first)
    reward *= task.discount ** (np.arange(rows) - np.repeat(first, lengths))
    whole = ended | (lengths >= task.horizon)
    groups = np.linspace(0, len(first), min(len(first), 100) + 1).astype(int)[:-1]  # for a line over time
    counts = np.diff(np.r_[groups, len(first)])
    return {
        "count": len(first),
        "terminated": int(ended.sum()),
        "cut": int(np.sum(~ended & (lengths < task.horizon))),
        "at_horizon": int(np.sum(~ended & (lengths >= task.horizon))),
        "lengths": summed(lengths),
        "returns": summed(returns),
        "whole_returns": summed(returns[whole]) if whole.any() else None,
        "discounted": summed(np.add.reduceat(reward, first)),
        "in_time": {"episode": groups.tolist(), "returns": (np.add.reduceat(returns, groups) / counts).tolist()},
    }


def observations(data: Rows, obs: Column, drawn: np.ndarray) -> list[dict[str, Any]]:
    """Every column of the observations: its spread, whether it is constant, and where it stops at a wall."""
    rows, after = data.count, data.next_obs
    then = glance(after, rows)
    ties = np.zeros((2, len(obs.mean)), np.int64)
    for block in blocks(rows, len(obs.mean)):
        ties += [np.count_nonzero(after[block] == edge.astype(after.dtype), 0) for edge in (then.low, then.high)]
    told = []
    for i in range(len(obs.mean)):
        column = spread(data.obs[drawn, i], obs, i)
        low, high = min(obs.low[i], then.low[i]), max(obs.high[i], then.high[i])
        real = low < high and column["values"] > VALUES
        walls = [
            float(e) if real and n >= TIES else None
            for e, n in zip((then.low[i], then.high[i]), ties[:, i], strict=True)
        ]
        told.append(
            {**column, "min": float(low), "max": float(high), "constant": bool(low == high), "walls": walls}
        )
    return told


def actions(data: Rows, task: Task, whole: Column, drawn: np.ndarray) -> dict[str, Any]:
    """How actions spread over their range, or over the choices."""
    action, still = data.action[drawn], bool(np.all(whole.low == whole.high))
    if isinstance(task.actions, Discrete):
        return {"still": still, "shares": whole.mean.tolist(), "used": float(np.mean(whole.mean > 0))}
    told = []
    low, high = np.array(task.actions.low), np.array(task.actions.high)
    for i, column in enumerate(action.T):
        ends = (low[i], high[i] if high[i] > low[i] else low[i] + 1.0)
        counts = np.histogram(np.clip(column, *ends), BINS, ends)[0]
        told.append(
            {
                **spread(column, whole, i),
                "low": float(low[i]),
                "high": float(high[i]),
                "histogram": counts.tolist(),
            }
        )
    room = 1e-6 * (high - low)
    at_edge = np.mean((action <= low + room) | (action >= high - room))
    tenths = np.array([column["histogram"] for column in told]).reshape(len(told), 10, -1).sum(-1) / len(drawn)
    return {"still": still, "columns": told, "at_the_edge": float(at_edge), "used": float(np.mean(tenths >= 0.01))}


def coverage(
    data: Rows, obs: Column, action: Column, first: np.ndarray | None, rng: np.random.Generator
) -> dict[str, float]:
    """How near rows are to those of other episodes, in standard deviations a column; in how many directions."""
    here, there = (
        np.concatenate(
            [
                scaled(data.obs[p], obs.mean, obs.std),
                scaled(data.action[p], action.mean, action.std),
            ],
            1,
        )
        for p in halves(data, first, rng)
    )
    apart = np.concatenate([distances(part, here).min(1) for part in parts(there)]) / np.sqrt(here.shape[1])
    cross = there - there.mean(0)
    cross = cross @ cross.T if len(cross) < cross.shape[1] else cross.T @ cross  # the same directions either way
    return {
        "median_distance": float(np.median(apart)),
        "far_distance": float(np.quantile(apart, 0.99)),
        "directions": float(np.trace(cross) ** 2 / max(np.sum(cross**2), 1e-12)),
        "width": here.shape[1],
    }


def copies(data: Rows, whole: tuple[Column, Column, Column], first: np.ndarray | None) -> dict[str, Any]:
    """Share of the rows (state, action, reward) that repeat another, exactly or nearly; and of whole episodes."""
    rows = data.count
    mean, unit = np.concatenate([w.mean for w in whole]), np.concatenate([w.std for w in whole]) * NEAR
    unit = np.where(unit > 0, unit, 1.0)
    odd = np.random.default_rng(0).integers(1 << 62, size=len(mean), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    exact, near = np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)
    for block in blocks(rows, len(mean)):
        part = np.concatenate([data.obs[block], data.action[block], data.reward[block, None]], 1)
        exact[block] = _hash((part + np.float32(0)).view(np.uint32).astype(np.uint64), odd)  # no negative zero
        near[block] = _hash(np.rint((part - mean) / unit).astype(np.int64).view(np.uint64), odd)
    again = {} if first is None else {"episodes": len(first) - _distinct(np.add.reduceat(exact, first))}
    return {"exact": 1 - _distinct(exact) / rows, "near": 1 - _distinct(near) / rows, **again}


def _distinct(hashes: np.ndarray) -> int:
    """How many different ones there are; sorts them in place."""
    hashes.sort()
    return 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))


def _hash(words: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """One number a row, alike for rows that are alike [N, W] -> [N]."""
    words = words * odd
    words ^= words >> np.uint64(29)
    return (words * odd[::-1]).sum(1, dtype=np.uint64)


def drift(data: Rows, whole: tuple[Column, Column, Column]) -> dict[str, Any] | None:
    """How far columns move from the first quarter of the log to the last, in standard deviations.

    None where rows are few, or no longer in the order that they were logged in.
    """
    rows = data.count
    if rows < 2 * BLOCKS or not data.in_order:
        return None
    told: dict[str, Any] = {}
    quarter = BLOCKS // 4
    edges = np.linspace(0, rows, BLOCKS + 1).astype(int)
    arrays = (data.obs, data.action, data.reward[:, None])
    for name, array, column in zip(("observations", "actions", "rewards"), arrays, whole, strict=True):
        means = np.array([array[a:b].mean(0, dtype=np.float64) for a, b in pairwise(edges)])
        unit = np.where(column.std > 0, column.std, 1.0)
        start, end = means[:quarter], means[-quarter:]
        moved = np.abs(end.mean(0) - start.mean(0)) / unit
        doubt = np.sqrt((start.var(0, ddof=1) + end.var(0, ddof=1)) / quarter) / unit
        sure = moved > SURE * doubt
        told[name] = {
            "moved": float(moved.max()),
            "column": int(moved.argmax()),
            "sure": [int(i) for i in np.flatnonzero(sure & (moved > DRIFT))],
        }
    return told
