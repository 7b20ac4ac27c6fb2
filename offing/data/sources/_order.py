"""Rows put in order: episode after episode, step after step, each with the observation that came next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...types import BadInput
from ..schema import Schema
from ..successors import FEWEST, stood_in


def in_order(
    ids: np.ndarray | None, step: np.ndarray | None, parts: tuple[Any, ...], name: str, notes: list[str]
) -> np.ndarray | None:
    """The rows episode after episode and in time order; None where they already are."""
    if ids is None:
        if step is not None:
            notes.append("column 'step': not used, since no column says which episode a row belongs to")
        return None
    new = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    together = len(np.unique(ids[np.r_[0, new]])) == len(new) + 1
    if step is None:
        return None if together else _put_together(ids, parts, name, notes)
    rising = step[1:] > step[:-1]
    rising[new - 1] = True
    moved = not (together and rising.all())
    order = np.lexsort((step, ids)) if moved else np.arange(len(ids))
    if moved:
        notes.append("rows sorted by 'episode' and 'step'")
    same = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    twice = same[step[order[same + 1]] == step[order[same]]]
    if len(twice):
        _alike(order[twice], order[twice + 1], ids, step, parts, name)
        notes.append(f"{len(twice)} rows logged twice: exact copies, dropped")
        order = np.delete(order, twice + 1)
        same = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    gaps = step[order[same + 1]] - step[order[same]]
    if len(gaps) and (gaps != gaps.min()).any():
        at = int(np.argmax(gaps != gaps.min()))
        row, after = order[same[at]], order[same[at] + 1]
        raise BadInput(
            f"{name}, column 'step', row {after}: episode {ids[row]} goes from step {step[row]} to {step[after]}, "
            "and steps between are missing; log them, or number what follows as another episode"
        )
    return order if moved or len(twice) else None


def _put_together(ids: np.ndarray, parts: tuple[Any, ...], name: str, notes: list[str]) -> np.ndarray:
    """Rows of interleaved episodes, episode after episode, where their next observations prove that they join."""
    obs, next_obs = parts[0], parts[-1]
    order = np.argsort(ids, kind="stable")
    before, after = order[:-1], order[1:]
    joins = (ids[before] == ids[after]) & (after != before + 1)
    before, after = before[joins], after[joins]
    if next_obs is not None and (next_obs[before] == obs[after]).all():
        notes.append("episodes that interleave were put together: each next observation is the next row's")
        return order
    row = int(after.min())
    raise BadInput(
        f"{name}, column 'episode', row {row}: episode {ids[row]} goes on after another "
        "began; sort the rows by episode and step, or name the 'step' column"
    )


def _alike(
    one: np.ndarray, other: np.ndarray, ids: np.ndarray, step: np.ndarray, parts: tuple[Any, ...], name: str
) -> None:
    """Refuses two rows of one step unless they are copies."""
    same = np.ones(len(one), bool)
    for part in parts:
        if part is not None:
            same &= (part[one] == part[other]).reshape(len(one), -1).all(1)
    if not same.all():
        at = int(np.argmin(same))
        raise BadInput(
            f"{name}, column 'step', row {other[at]}: episode {ids[one[at]]} has step {step[one[at]]} twice, "
            f"also in row {one[at]}, and they differ; drop one"
        )


def episodes_of(
    ids: np.ndarray | None,
    terminated: np.ndarray,
    truncated: np.ndarray,
    marked: bool,
    order: np.ndarray | None,
    name: str,
    notes: list[str],
) -> np.ndarray:
    """Episode of each row, counted from 0; -1 throughout where the log does not tell."""
    ends = terminated | truncated
    if ids is not None:
        new = np.r_[True, ids[1:] != ids[:-1]]
        inside = ends[:-1] & ~new[1:]
        if inside.any():
            at = int(np.argmax(inside))
            row = at if order is None else int(order[at])
            raise BadInput(f"{name}, column 'episode', row {row}: episode {ids[at]} goes on after its end")
    elif marked:
        new = np.r_[True, ends[:-1]]
    else:
        notes.append(
            "no episodes in the log: rows are a bag of transitions, and every state stands in for a start"
        )
        return np.full(len(ends), -1, np.int32)
    return np.cumsum(new, dtype=np.int32) - np.int32(1)


def successors_of(
    obs: np.ndarray, terminated: np.ndarray, episode: np.ndarray, name: str, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Which rows to keep, and the next row's observation; at the end of an episode its own, to be completed.

    Where rows are too few to say where a last one led, those at time-outs go.
    """
    last = np.r_[episode[1:] != episode[:-1], True]
    next_obs = np.roll(obs, -1, axis=0)
    next_obs[last] = obs[last]
    keep = ~last | terminated | ((~last).sum() >= FEWEST)
    if keep.sum() < 2:
        raise BadInput(f"{name}, column 'next_obs': missing, and too few rows have their next row in the log")
    dropped, alone = int((~keep).sum()), int((last & keep).sum())
    text = "next_obs not given: the next row's obs"
    text += f"; {dropped} rows at time-outs, which have none, dropped" if dropped else ""
    notes.append(text + stood_in(alone, (~last).sum()))
    return keep, next_obs


EXAMINED, BACK = 20_000, 8  # rows that are examined, and rows back that a unit's last one may lie
JUMPS, JOINS = 0.5, 0.25  # of what shuffled rows show: steps at least so large, and nearest earlier rows so near


def interleaved(obs: np.ndarray, episode: np.ndarray) -> bool:
    """Whether rows of several units alternate: each jumps from the row before, and goes on from an earlier one."""
    inside = np.flatnonzero(episode[BACK:] == episode[:-BACK]) if len(obs) > BACK else np.zeros(0, int)
    if len(inside) < 30:
        return False
    rows = inside[:EXAMINED] + BACK
    std = obs.std(0, dtype=np.float64)
    moves, order = np.flatnonzero(std > 0), np.random.default_rng(0).permutation(len(obs))
    if not len(moves):
        return False
    moving = lambda rows: obs[rows][:, moves] / std[moves]
    apart, chance = _apart(moving, rows), _apart(lambda rows: moving(order[rows]), rows)  # [BACK, rows]
    step, steps = np.median(apart[0]), np.median(apart, 1)
    if step <= JUMPS * np.median(chance[0]):
        return False
    nearest = np.median(apart.min(0)) < JOINS * np.median(chance.min(0))
    return bool(nearest or steps[1:].min() < JOINS * step)  # in any order, or each in its turn


def _apart(obs: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """How far rows are from each of those before them [BACK, rows]."""
    here = obs(rows)
    return np.stack([np.sqrt(np.square(here - obs(rows - back)).sum(1)) for back in range(1, BACK + 1)])


def refuse_interleaved(obs: np.ndarray, episode: np.ndarray, schema: Schema | None, name: str) -> None:
    """BadInput where next observations would be another unit's; `unit = "none"` says that they are not."""
    if (schema is None or schema.unit is None) and interleaved(obs, episode):
        raise BadInput(
            f"{name}: rows of several units seem to be interleaved (each jumps from the row before, and goes on "
            'from one further back); name the column that tells them apart (unit = "COLUMN" in a schema), give '
            'next_obs, or write unit = "none" if there is one unit'
        )
