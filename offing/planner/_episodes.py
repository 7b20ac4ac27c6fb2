"""What planners read of a log's episodes: what each earned, runs of its steps, and states along its way."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..types import Array, Dataset, Key
from ._parts import drawn

MOST = 3.0  # standard deviations that an episode's return counts for at most


def worth(data: Dataset) -> Array:
    """What the episode of every row earned, in standard deviations of episodes [N]; 0 where none is known."""
    rows = data.steps.reward.shape[0]
    used = jnp.arange(rows) < data.size
    episode = jnp.asarray(data.episode)
    new = (episode != jnp.roll(episode, 1)).at[0].set(True)
    place = jnp.cumsum(new) - 1  # [N]  numbers of episodes, none left out
    sums = jax.ops.segment_sum(jnp.where(used, data.steps.reward, 0.0), place, rows)
    here = jax.ops.segment_max(used.astype(jnp.float32), place, rows) > 0  # numbers that no row has say -inf
    count = jnp.maximum(jnp.sum(here), 1)
    mean = jnp.sum(jnp.where(here, sums, 0.0)) / count
    std = jnp.sqrt(jnp.sum(jnp.where(here, jnp.square(sums - mean), 0.0)) / count)
    known = used & (episode >= 0) & (std > 1e-6 * (1 + jnp.abs(mean)))
    return jnp.where(known, jnp.clip((sums[place] - mean) / jnp.maximum(std, 1e-12), -MOST, MOST), 0.0)


def states_along(key: Key, data: Dataset, count: int, sharp: float) -> Array:
    """Logged states [count, S], those of episodes that earned more the more often: e^sharp for a deviation."""
    used = jnp.arange(data.steps.reward.shape[0]) < data.size
    odds = jnp.where(used, sharp * worth(data), -jnp.inf)
    return jnp.asarray(data.steps.obs)[jax.random.categorical(key, odds, shape=(count,))]


def windows(key: Key, data: Dataset, count: int, length: int) -> tuple[Array, Array]:
    """Rows of runs of steps [length, count], and whether each still belongs to the episode that its run is of."""
    first = drawn(key, data, (count,))
    rows = first + jnp.arange(length)[:, None]
    inside = rows < data.size
    rows = jnp.minimum(rows, data.size - 1)
    episode = jnp.asarray(data.episode)
    same = (episode[rows] == episode[first]) & (episode[first] >= 0)
    return rows, inside & (same | (jnp.arange(length)[:, None] == 0))


def begins(data: Dataset, rows: Array) -> Array:
    """1 where a row is the first of its episode, or no episode is known."""
    episode = jnp.asarray(data.episode)
    return ((rows == 0) | (episode[rows] != episode[rows - 1]) | (episode[rows] < 0)).astype(jnp.float32)
