"""Logs in which the same always led to the same: a board, a network of switches, a schedule.

Worlds doubt where steps lead that the log shows seldom or never. Such doubt is no chance: what happens there
happens every time. Were it drawn anew at every step, a plan that runs into a wall would try again until a draw let
it pass, in every world. So in worlds of such a log chance is drawn once for each state and action: a world is then
one answer to all that the log leaves open, and keeps to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, Dataset, Key

if TYPE_CHECKING:
    from ._world import Theta

GLANCE = 16_384  # rows that are looked at
AGAIN = 0.5  # share of them whose state and action must have been met elsewhere too
PRIME = 16_777_619  # of the FNV hash


def settled(data: Dataset) -> bool:
    """Whether the same action in the same state always led to the same, wherever that can be seen.

    Where the last row of an episode led may not be known, so that it does not count.
    """
    rows = min(data.rows, GLANCE)
    steps, episode = data.steps, np.asarray(data.episode)[:rows]
    leaf = lambda array: np.asarray(array)[:rows].reshape(rows, -1)
    first = np.concatenate([leaf(steps.obs), leaf(steps.action)], 1)
    then = np.concatenate([leaf(steps.next_obs), leaf(steps.reward), leaf(steps.done)], 1)
    inner = np.r_[episode[1:] == episode[:-1], False] | (episode < 0)
    met, index, count = np.unique(first[inner], axis=0, return_inverse=True, return_counts=True)
    if not inner.any() or np.mean(count[np.ravel(index)] > 1) < AGAIN:
        return False
    least, most = (np.full((len(met), then.shape[1]), edge) for edge in (np.inf, -np.inf))
    np.minimum.at(least, np.ravel(index), then[inner])
    np.maximum.at(most, np.ravel(index), then[inner])
    return bool(np.array_equal(least, most))


def once(theta: Theta, obs: Array, action: Array) -> Key:
    """A key for each state and action [C], alike for like ones, and another one in every world."""
    bits = lambda array: jax.lax.bitcast_convert_type(array.astype(jnp.float32) + 0.0, jnp.uint32)  # -0 is 0
    world = jnp.sum(bits(theta.state.net[0].weight), dtype=jnp.uint32)
    number = jnp.full(obs.shape[:-1], 2_166_136_261, jnp.uint32)
    for column in jnp.moveaxis(bits(jnp.concatenate([obs, action], -1)), -1, 0):
        number = (number ^ column) * jnp.uint32(PRIME)
        number = number ^ (number >> 15)  # floats of small whole numbers differ in their upper bits alone
    mine = jax.random.fold_in(jax.random.key(0), world)
    return jax.vmap(lambda each: jax.random.fold_in(mine, each))(number)
