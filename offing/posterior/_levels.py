"""Columns of the state that take few values, or one of them most of the time: switches, flags, small counts;
forces that are nought unless something touches. No state lies between two of them, or beside the usual one.

A Gaussian's mean does: half in contact, a third of a gear, a little force from nowhere. A world that goes on from
there is soon where no log has been, and the policy with it.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..types import Array, Dataset

FEW = 8  # values of a column that takes no others
TIMES = 25  # rows to a value, at least: in a short log every column takes few
USUAL = 0.5  # share of rows at one value, from which on it is the usual one
NEXT = 0.05  # share of the other values that lie nearer to it than twice what is taken for it
GLANCE = 1_000  # rows that show most columns to be continuous


def levels(data: Dataset) -> np.ndarray:
    """The values of every column that takes few, or a usual one [S, K], the last repeated, and behind them how
    near to one a state is taken for it; nan for all other columns, K = 0 and nothing behind if all are such.
    """
    rows, steps = data.rows, data.steps
    glance = np.unique(np.linspace(0, rows - 1, min(rows, GLANCE)).astype(int))
    columns = zip(steps.obs.T, steps.next_obs.T, strict=True)
    found = [_of(np.asarray(obs)[:rows], np.asarray(after)[:rows], glance) for obs, after in columns]
    most = max(len(values) for values, _ in found)
    if most == 0:
        return np.zeros((len(found), 0), np.float32)
    pad = lambda values: np.pad(values, (0, most - len(values)), "edge") if len(values) else np.full(most, np.nan)
    return np.stack([np.r_[pad(values), near] for values, near in found]).astype(np.float32)


def _of(obs: np.ndarray, after: np.ndarray, glance: np.ndarray) -> tuple[np.ndarray, float]:
    """The values of one column, and how near to one is at it: anywhere, if there are no others."""
    few, none = min(FEW, len(obs) // TIMES), (np.zeros(0, np.float32), np.nan)
    seen, counts = np.unique(after[glance], return_counts=True)
    if len(seen) <= few and len(values := np.union1d(obs, after)) <= few:
        return values, np.inf
    usual = seen[counts.argmax()]
    others = np.abs(after[after != usual] - usual)
    if len(others) < TIMES or len(others) > (1 - USUAL) * len(after):
        return none
    return np.array([usual], np.float32), float(np.quantile(others, NEXT)) / 2


def snapped(levels: Array | tuple[()], state: Array) -> Array:
    """The state [..., S] with columns of few values at the nearest of them, and what is near to a usual value at
    it; levels [..., S, K + 1], or () for none.
    """
    if isinstance(levels, tuple):
        return state
    values, reach = levels[..., :-1], levels[..., -1]
    away = jnp.abs(state[..., None] - values)
    near = jnp.min(away, -1)
    value = jnp.min(jnp.where(away <= near[..., None], values, jnp.inf), -1)  # of two as near, the lower
    return jnp.where(near <= reach, value, state)  # nothing is near to nan
