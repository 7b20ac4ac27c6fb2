"""Columns of the state that take few values: switches, flags, small counts. No state lies between two of them.

A Gaussian's mean does: half in contact, a third of a gear. A world that goes on from there is soon where no log
has been, and the policy with it.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..types import Array, Dataset

FEW = 8  # values of a column that takes no others
TIMES = 25  # rows to a value, at least: in a short log every column takes few
GLANCE = 1_000  # rows that show most columns to be continuous


def levels(data: Dataset) -> np.ndarray:
    """The values of every column that takes few [S, K], the last repeated; nan for all others, K = 0 if there are
    only such.
    """
    rows, steps = data.rows, data.steps
    few = min(FEW, rows // TIMES)
    glance = np.unique(np.linspace(0, rows - 1, min(rows, GLANCE)).astype(int))
    found: list[np.ndarray] = []
    for obs, after in zip(steps.obs.T, steps.next_obs.T, strict=True):
        values = np.unique(np.asarray(after)[glance])
        if len(values) <= few:
            values = np.union1d(np.asarray(obs)[:rows], np.asarray(after)[:rows])
        found.append(values if len(values) <= few else np.zeros(0, np.float32))
    most = max(len(values) for values in found)
    pad = lambda values: np.pad(values, (0, most - len(values)), "edge") if len(values) else np.full(most, np.nan)
    return np.stack([pad(values) for values in found]).astype(np.float32)


def snapped(levels: Array | tuple[()], state: Array) -> Array:
    """The state [..., S] with columns of few values at the nearest of them; levels [..., S, K], or () for none."""
    if isinstance(levels, tuple):
        return state
    away = jnp.abs(state[..., None] - levels)
    near = jnp.min(away, -1, keepdims=True)
    value = jnp.min(jnp.where(away <= near, levels, jnp.inf), -1)  # of two as near, the lower
    return jnp.where(jnp.isnan(levels[..., 0]), state, value)
