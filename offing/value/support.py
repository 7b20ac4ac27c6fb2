"""Does the log know the way that a policy takes? Its imagined steps against the log's own rows."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..types import Array, Dataset

ROWS = 4_096  # of the log, and as many steps of the policy, that are compared
OUTSIDE = 0.35  # share of imagined steps that may lie outside the log
GUARDED = 0.05  # share of imagined episodes that may run away from everything the log knows
BOUNDED = 0.5  # share of episodes that may end by running away, where the worst that may follow is counted
CLIPPED = 0.5  # share of imagined steps whose reward may be held to the log's range
USUAL = 0.99  # of the log's rows lie no further than this from rows of other episodes


class Support(NamedTuple):
    """How far a policy's imagined episodes leave what the log knows."""

    outside: float  # share of steps further from the log than all but 1% of the log is from itself
    clipped: float  # share of steps whose reward was held to the log's range
    guarded: float  # share of episodes stopped for leaving what the log knows; of steps, where nothing stops them


class Known(NamedTuple):
    """The log's own rows, in standard deviations of every observation and action, and how far apart they lie."""

    mean: np.ndarray  # [S + A]
    width: np.ndarray  # [S + A]
    rows: np.ndarray  # [R, S + A]  of half of its episodes
    usual: float  # distance from these that all but 1% of the other half's rows keep

    def scaled(self, x: np.ndarray) -> np.ndarray:
        return (x - self.mean) / np.where(self.width > 0, self.width, 1.0)


def known(data: Dataset, seed: int = 0) -> Known:
    """What is usual in the log: the rows of half of its episodes against those of the other half."""
    rng, rows = np.random.default_rng(seed), data.rows
    x = np.concatenate([np.asarray(data.steps.obs[:rows]), np.asarray(data.steps.action[:rows])], -1)
    ground = Known(x.mean(0), x.std(0), x[:0], 0.0)
    x = ground.scaled(x)
    episode = np.asarray(data.episode)[:rows]
    unit = np.unique(episode, return_inverse=True)[1] if episode[0] >= 0 else np.arange(rows)
    side = (rng.permutation(unit.max() + 1) % 2)[unit]
    some = lambda which: x[rng.permutation(np.flatnonzero(which))[:ROWS]]
    ours, others = some(side == 0), some(side == 1)
    usual = float(np.quantile(nearest(others, ours), USUAL)) if len(ours) and len(others) else float("inf")
    return ground._replace(rows=ours, usual=usual)


def outside(ground: Known | Dataset, obs: Array, action: Array, alive: Array, seed: int = 0) -> float:
    """Share of the visited steps [T, ...] that are further from the log than its own episodes are from each other.

    Distance is to the nearest row, in standard deviations of every observation and action.
    """
    ground = known(ground, seed) if isinstance(ground, Dataset) else ground
    rng = np.random.default_rng([seed, 1])
    went = np.concatenate([np.asarray(obs), np.asarray(action)], -1)[np.asarray(alive, bool)]
    went = ground.scaled(went[rng.permutation(len(went))[:ROWS]])
    return float(np.mean(nearest(went, ground.rows) > ground.usual))


@compiled
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
