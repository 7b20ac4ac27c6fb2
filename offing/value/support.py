"""Does the log know the way that a policy takes? Its imagined steps against the log's own rows."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, Dataset

ROWS = 4_096  # of the log, and as many steps of the policy, that are compared
USUAL = 0.99  # of the log's rows lie no further than this from rows of other episodes


class Support(NamedTuple):
    """How far a policy's imagined episodes leave what the log knows."""

    outside: float  # share of steps further from the log than all but 1% of the log is from itself
    clipped: float  # share of steps whose reward was held to the log's range
    guarded: float  # share of episodes stopped for leaving what the log knows; of steps, where nothing stops them


def outside(data: Dataset, obs: Array, action: Array, alive: Array, seed: int = 0) -> float:
    """Share of the visited steps [T, ...] that are further from the log than its own episodes are from each other.

    Distance is to the nearest row, in standard deviations of every observation and action. What is usual is
    asked of the log: the rows of half of its episodes against those of the other half.
    """
    rng = np.random.default_rng(seed)
    rows = data.rows
    x = np.concatenate([np.asarray(data.steps.obs[:rows]), np.asarray(data.steps.action[:rows])], -1)
    went = np.concatenate([np.asarray(obs), np.asarray(action)], -1)[np.asarray(alive, bool)]
    mean, width = x.mean(0), x.std(0)
    scaled = lambda a: (a - mean) / np.where(width > 0, width, 1.0)
    x, went = scaled(x), scaled(went[rng.permutation(len(went))[:ROWS]])
    episode = np.asarray(data.episode)[:rows]
    unit = np.unique(episode, return_inverse=True)[1] if episode[0] >= 0 else np.arange(rows)
    side = (rng.permutation(unit.max() + 1) % 2)[unit]
    some = lambda which: x[rng.permutation(np.flatnonzero(which))[:ROWS]]
    ours, others = some(side == 0), some(side == 1)
    usual = np.quantile(nearest(others, ours), USUAL)
    return float(np.mean(nearest(went, ours) > usual))


@jax.jit
def _nearest(points: Array, rows: Array) -> Array:
    squared = (
        jnp.sum(jnp.square(points), -1)[:, None]
        + jnp.sum(jnp.square(rows), -1)
        - 2 * jnp.matmul(points, rows.T, precision="highest")
    )
    return jnp.sqrt(jnp.maximum(squared.min(1), 0.0))


def nearest(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Distance of each point to the nearest row; both padded to a fixed size, so that one program serves all."""
    pad = lambda a, fill: np.concatenate([a, np.full((ROWS - len(a), a.shape[1]), fill)]).astype(np.float32)
    return np.asarray(_nearest(pad(points, 0.0), pad(rows, 1e6)))[: len(points)]
