"""What a world remembers of an episode, where the past says more than the present.

    none      nothing
    episode   how the state came here (the last change, the last action, the last reward), what the steps so far
              had in common that no column shows (the mean of their innovations: a hidden constant), and how many
              there were

Speeds that no column shows are in the last change; which machine, which patient, what kind of day it is are in the
mean innovation, against a least-squares map of the whole log; what is paid at a certain step is in the count. The
same numbers are made of logged episodes and of imagined ones.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..nets import Layer, library
from ..types import Array, Dataset

SOON = 5.0  # steps after which the mean innovation counts half
LATE = 20.0  # steps after which the count is half of what it can be
MOST = 5.0  # an innovation is never larger, in units of their scale
NONE, EPISODE = "none", "episode"


class Memory(NamedTuple):
    """An episode so far."""

    obs: Array  # [..., S]  one step ago
    action: Array  # [..., A]
    reward: Array  # [...]
    innovation: Array  # [..., S + 1]  sum of the steps so far
    count: Array  # [...]


class Innovate(NamedTuple):
    """The map that innovations are measured against, and their scale."""

    linear: Layer  # (obs, action) -> change of state and reward, all in units of their scale
    centre: Array  # [S + A]
    width: Array  # [S + A]
    out_centre: Array  # [S + 1]
    out_width: Array  # [S + 1]

    def __call__(self, obs: Array, action: Array, after: Array, reward: Array) -> Array:
        xp = library(obs)
        x = (xp.concatenate([obs, action], -1) - self.centre) / self.width
        y = xp.concatenate([after - obs, reward[..., None]], -1)
        return (y - self.out_centre) / self.out_width - (x @ self.linear.weight.T + self.linear.bias)


def empty(width: int, actions: int) -> Memory:
    """The memory of one episode before its first step."""
    return Memory(jnp.zeros(width), jnp.zeros(actions), jnp.zeros(()), jnp.zeros(width + 1), jnp.zeros(()))


def innovate(data: Dataset) -> Innovate:
    """The least-squares map of the log's rows."""
    rows, steps = data.rows, data.steps
    x = np.concatenate([np.asarray(steps.obs)[:rows], np.asarray(steps.action)[:rows]], 1).astype(np.float64)
    change = np.asarray(steps.next_obs)[:rows] - np.asarray(steps.obs)[:rows]
    y = np.concatenate([change, np.asarray(steps.reward)[:rows, None]], 1).astype(np.float64)
    widths = lambda a: np.where(a.std(0) > 1e-6 * (1 + np.abs(a.mean(0))), a.std(0), 1.0)
    scaled, target = (x - x.mean(0)) / widths(x), (y - y.mean(0)) / widths(y)
    gram = scaled.T @ scaled / rows + 1e-3 * np.eye(x.shape[1])
    weight = np.linalg.solve(gram, scaled.T @ target / rows).T
    left = np.sqrt(np.mean((target - scaled @ weight.T) ** 2, 0)).clip(1e-3)
    single = lambda a: np.asarray(a, np.float32)
    return Innovate(
        Layer(single(weight / left[:, None]), single(np.zeros(len(left)))),
        single(x.mean(0)),
        single(widths(x)),
        single(y.mean(0)),
        single(widths(y) * left),
    )


def features(memory: Memory, obs: Array) -> Array:
    """What a world reads of its memory [..., 2S + A + 3]; zeros before the second step."""
    begun = (memory.count > 0).astype(np.float32)
    parts = [
        (obs - memory.obs) * begun[..., None],
        memory.action * begun[..., None],
        (memory.reward * begun)[..., None],
        memory.innovation / (memory.count + SOON)[..., None],
        (memory.count / (memory.count + LATE))[..., None],
    ]
    return library(obs).concatenate(parts, -1)


def remember(memory: Memory, step: Innovate, obs: Array, action: Array, after: Array, reward: Array) -> Memory:
    """The memory one step on."""
    new = jnp.clip(step(obs, action, after, reward), -MOST, MOST)
    return Memory(obs, action, reward, memory.innovation + new, memory.count + 1)


def recall(data: Dataset, step: Innovate) -> Memory:
    """The memory at every row of a log, as an imagined episode would have had it there [N, ...]."""
    steps, episode = data.steps, np.asarray(data.episode)
    obs, action = np.asarray(steps.obs, np.float32), np.asarray(steps.action, np.float32)
    reward = np.asarray(steps.reward, np.float32)
    new = np.asarray(step(obs, action, np.asarray(steps.next_obs, np.float32), reward))
    new = np.clip(np.nan_to_num(new), -MOST, MOST)
    first = np.r_[True, (episode[1:] != episode[:-1]) | (episode[1:] < 0)]
    begins = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    count = (np.arange(len(first)) - begins).astype(np.float32)
    total = np.cumsum(new, 0, dtype=np.float64) - new  # of all rows before this one
    back = np.maximum(np.arange(len(first)) - 1, 0)
    innovation = (total - total[begins]).astype(np.float32)
    return Memory(obs[back], action[back], reward[back], innovation, count)
