"""What is in a log, what is wrong with it, and what it covers: plain numbers, and an answer with its reasons.

Nothing here grows with the log but a few numbers a row: columns are read in chunks; quantiles, neighbours and
controllers come from rows drawn by a seed; per-episode sums are vectorised.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..types import Discrete, Task
from ._advice import FOLLOWS as FOLLOWS
from ._advice import SLIVER as SLIVER
from ._advice import TAKEN as TAKEN
from ._advice import decide
from ._alignment import Neighbours, alignment, effects, leak
from ._drivers import Choosing, choosing
from ._glance import BINS, TIES, Column, Rows, blocks, first_rows, glance, rows_of, scaled, spread, summed
from ._guess import VALUES, distances, halves, parts
from ._met import acted_in
from ._timeline import clock, drift, jumps, units
from .dataset import Log, broken
from .facts import ActionFacts, AmountFacts, Copies, Coverage, EpisodeFacts, Facts, InTime, ObservationFacts
from .large import sampled
from .sources import BUDGET

SAMPLE = 100_000  # rows that quantiles and counts of values are taken from
WHOLE = BUDGET  # bytes of a log above which a sample stands for it,
LOOK = 2**21  # of so many rows
NEAR = 1e-3  # standard deviations: rows closer than that are near-duplicates


def inspect(log: Log, seed: int = 0) -> Facts:
    """Everything that can be said of a log without learning a world from it, ready for JSON.

    Of a log above WHOLE bytes: of a sample of its episodes, as a note says.
    """
    log = sampled(log, LOOK, seed, WHOLE)
    data, task, rows = rows_of(log.data), log.task, log.data.rows
    rng = np.random.default_rng([seed, 3])
    drawn = np.sort(rng.choice(rows, min(rows, SAMPLE), replace=False, shuffle=False))
    obs, action = glance(data.obs, rows), glance(data.action, rows)
    reward = glance(data.reward[:, None], rows)
    marks, names, where = first_rows(data), log.columns.names, log.provenance
    chosen = choosing(data, task, obs, marks, rng)
    covered = coverage(data, obs, action, marks, rng)
    later = np.random.default_rng([seed, 4])  # what was measured first keeps its numbers
    near = None if marks is None or rows < 3 else Neighbours(data, obs, later)
    near = near if near is not None and near.enough else None
    facts = Facts(
        data=log.name,
        fingerprint=log.fingerprint,
        seed=seed,
        notes=tuple(log.notes),
        rows=rows,
        obs_width=len(obs.mean),
        names=names,
        action_names=log.columns.action_names,
        exogenous=tuple(name for name, out in zip(names, log.columns.exogenous, strict=True) if out),
        inferred=any(note.startswith("next_obs not given") for note in log.notes),
        action_kind="discrete" if isinstance(task.actions, Discrete) else "continuous",
        action_width=task.actions.width,
        horizon=task.horizon,
        discount=task.discount,
        bytes=int(sum(leaf.nbytes for leaf in data[:5])),
        ends=int(np.count_nonzero(data.done)),
        episodes=None if marks is None else episodes(data, task, marks),
        units=units(data, where),
        unit_count=0 if where is None else len(where.units),
        clock=clock(data, where),
        jumps=jumps(log, data, obs, later),
        rewards=spread(data.reward[drawn], reward, 0),
        reward_parts=() if where is None else where.parts,
        leak=None if near is None else leak(near, names),
        observations=observations(data, obs, drawn),
        actions=actions(data, task, action, drawn, chosen, marks),
        acted_in=acted_in(data, task, obs, names, drawn),
        alignment=None if near is None else alignment(near, names),
        effects=() if near is None else effects(near, log.columns),
        coverage=covered,
        copies=copies(data, (obs, action, reward), marks, 0 if where is None else where.copies),
        drift=drift(log, data, (obs, action, reward)),
        broken=broken(log.data),
    )
    return replace(facts, answer=decide(facts))


def episodes(data: Rows, task: Task, first: np.ndarray) -> EpisodeFacts:
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
    return EpisodeFacts(
        count=len(first),
        terminated=int(ended.sum()),
        cut=int(np.sum(~ended & (lengths < task.horizon))),
        at_horizon=int(np.sum(~ended & (lengths >= task.horizon))),
        lengths=summed(lengths),
        returns=summed(returns),
        whole_returns=summed(returns[whole]) if whole.any() else None,
        discounted=summed(np.add.reduceat(reward, first)),
        in_time=InTime(tuple(groups.tolist()), tuple((np.add.reduceat(returns, groups) / counts).tolist())),
    )


def observations(data: Rows, obs: Column, drawn: np.ndarray) -> tuple[ObservationFacts, ...]:
    """Every column of the observations: its spread, whether it is constant, and where it stops at a wall."""
    rows, after = data.count, data.next_obs
    then = glance(after, rows)
    ties = np.zeros((2, len(obs.mean)), np.int64)
    for block in blocks(rows, len(obs.mean)):
        ties += [np.count_nonzero(after[block] == edge.astype(after.dtype), 0) for edge in (then.low, then.high)]
    seen = []
    for i in range(len(obs.mean)):
        column = vars(spread(data.obs[drawn, i], obs, i))
        low, high = float(min(obs.low[i], then.low[i])), float(max(obs.high[i], then.high[i]))
        real = low < high and column["values"] > VALUES
        usual = len(drawn) / column["values"]  # rows that share a value: many, where numbers were rounded
        now, led = data.obs[drawn, i], after[drawn, i]
        stops = [
            float(e) if real and n >= max(TIES, usual) and _stands(now, led, e) else None
            for e, n in zip((then.low[i], then.high[i]), ties[:, i], strict=True)
        ]
        both = (stops[0], stops[1])
        seen.append(ObservationFacts(**{**column, "min": low, "max": high}, constant=low == high, walls=both))
    return tuple(seen)


def _stands(now: np.ndarray, then: np.ndarray, edge: float) -> bool:
    """Whether a column that often is at its edge stops there: not if it never changes in an episode, and not if
    one other value always follows, as on a clock.
    """
    follows = then[now == edge]
    turns = len(follows) > 1 and follows[0] != edge and bool((follows == follows[0]).all())
    return not turns and not np.array_equal(now, then)


def actions(
    data: Rows, task: Task, whole: Column, drawn: np.ndarray, chosen: Choosing, first: np.ndarray | None
) -> ActionFacts:
    """How actions spread over their range, or over the choices, and how they depend on the state."""
    action, still = data.action[drawn], bool(np.all(whole.low == whole.high))
    how = (unchanging(data, first), chosen.explained, chosen.predicted, chosen.left_over, chosen.controllers)
    if isinstance(task.actions, Discrete):
        return ActionFacts(still, float(np.mean(whole.mean > 0)), *how, shares=tuple(whole.mean.tolist()))
    amounts = []
    low, high = np.array(task.actions.low), np.array(task.actions.high)
    for i, column in enumerate(action.T):
        ends = (low[i], high[i] if high[i] > low[i] else low[i] + 1.0)
        counts = tuple(np.histogram(np.clip(column, *ends), BINS, ends)[0].tolist())
        left = chosen.columns[i] if i < len(chosen.columns) else 0.0
        amounts.append(
            AmountFacts(**vars(spread(column, whole, i)), low=float(low[i]), high=float(high[i]),
                        histogram=counts, left_over=left)
        )  # fmt: skip
    margin = 1e-6 * (high - low)
    at_edge = np.mean((action <= low + margin) | (action >= high - margin))
    tenths = np.array([amount.histogram for amount in amounts]).reshape(len(amounts), 10, -1).sum(-1) / len(drawn)
    used = float(np.mean(tenths >= 0.01))
    return ActionFacts(still, used, *how, amounts=tuple(amounts), at_the_edge=float(at_edge))


def unchanging(data: Rows, first: np.ndarray | None) -> float | None:
    """Share of the episodes of several steps in which the action never changes."""
    if first is None:
        return None
    changes = np.r_[False, (data.action[1:] != data.action[:-1]).any(1)]
    changes[first] = False
    several = np.diff(np.r_[first, data.count]) > 1
    return float(np.mean(np.add.reduceat(changes, first)[several] == 0)) if several.any() else None


def coverage(
    data: Rows, obs: Column, action: Column, first: np.ndarray | None, rng: np.random.Generator
) -> Coverage:
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
    directions = float(np.trace(cross) ** 2 / max(np.sum(cross**2), 1e-12))
    return Coverage(float(np.median(apart)), float(np.quantile(apart, 0.99)), directions, here.shape[1])


def copies(data: Rows, whole: tuple[Column, Column, Column], first: np.ndarray | None, dropped: int) -> Copies:
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
    again = None if first is None else len(first) - _distinct(np.add.reduceat(exact, first))
    return Copies(1 - _distinct(exact) / rows, 1 - _distinct(near) / rows, again, dropped)


def _distinct(hashes: np.ndarray) -> int:
    """How many different ones there are; sorts them in place."""
    hashes.sort()
    return 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))


def _hash(words: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """One number a row, alike for rows that are alike [N, W] -> [N]."""
    words = words * odd
    words ^= words >> np.uint64(29)
    return (words * odd[::-1]).sum(1, dtype=np.uint64)
