"""Worlds without a net: what happened next at the logged steps nearest to this one, drawn again.

World m has the fold's steps with weights of its own, a Bayesian bootstrap over episodes. A step of it finds the
`nearest` logged steps by state and action, draws one by weight and distance, and moves as far as that one moved;
what it earned and whether it ended come along, so that a transition is drawn whole. Nothing is smoothed and
nothing extrapolated: a judge of what nets promise that shares none of their errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...data import Split, ranges
from ...hypers import grid, hypers
from ...types import (
    Array,
    Dataset,
    Discrete,
    Drawn,
    Fitted,
    Key,
    Moments,
    Posterior,
    Prepared,
    Saved,
    Task,
    WorldModel,
)
from .. import _table

APART = 3.0  # standard deviations between two choices, so that neighbours did the same


@hypers
class Hypers:
    """How many steps stand for a fold, and how many of them are near."""

    steps: int = 2_048
    nearest: int = 8
    members: int = 8  # worlds per fold
    folds: int = 2
    bandwidth: float = 1.0  # in units of the distance to the last of the nearest


class Theta(NamedTuple):
    """One world: logged steps and what each counts."""

    x: Array  # [R, S + A]  in units of `width`
    width: Array  # [S + A]
    change: Array  # [R, S]
    reward: Array  # [R]
    done: Array  # [R]
    weight: Array  # [R]  logarithm of what it counts
    bandwidth: Array  # []
    low: Array  # [S]  what the log supports
    high: Array


@dataclass(frozen=True)
class World:
    """How a Theta is read."""

    nearest: int
    terminates: bool
    done: Callable[[Array, Array, Array], Array] | None = None  # the task's, if known

    def near(self, theta: Theta, obs: Array, action: Array) -> tuple[Array, Array]:
        """The nearest steps [C, K], and the logarithms of their chances."""
        x = jnp.concatenate([obs, action], -1) / theta.width
        apart = jnp.sum(jnp.square(x), -1, keepdims=True) - 2 * x @ theta.x.T + jnp.sum(jnp.square(theta.x), -1)
        far, index = jax.lax.top_k(-apart, self.nearest)
        far = jnp.maximum(-far, 0.0)
        scale = jnp.square(theta.bandwidth) * far[..., -1:] + 1e-12
        return index, jax.nn.log_softmax(-2 * far / scale + theta.weight[index])

    def sample(
        self, key: Key, theta: Theta, memory: tuple[()], obs: Array, action: Array
    ) -> tuple[Drawn, tuple[()]]:
        index, chance = self.near(theta, obs, action)
        pick = jax.random.categorical(key, chance)
        row = jnp.take_along_axis(index, pick[..., None], -1)[..., 0]
        after = obs + theta.change[row]
        held = jnp.clip(after, theta.low, theta.high)
        out = jnp.any(held != after, -1)
        ended = theta.done[row] > 0 if self.done is None else self.done(obs, action, held)
        no = jnp.zeros(out.shape, bool)
        return Drawn(held, theta.reward[row], ended, out & no, no), memory

    def moments(
        self,
        theta: Theta,
        memory: tuple[()],
        obs: Array,
        action: Array,
        after: Array | None = None,
        ended: Array | None = None,
    ) -> Moments:
        del memory, ended
        index, chance = self.near(theta, obs, action)
        p = jnp.exp(chance)[..., None]
        y = jnp.concatenate([theta.change[index], theta.reward[index][..., None]], -1)  # [C, K, S + 1]
        mean = jnp.sum(p * y, -2)
        std = jnp.sqrt(jnp.sum(p * jnp.square(y - mean[..., None, :]), -2))
        ends = jnp.sum(p[..., 0] * theta.done[index], -1)
        if self.done is not None:
            led = obs + mean[..., :-1] if after is None else after
            ends = self.done(obs, action, led).astype(jnp.float32)
        return Moments(mean, std, ends)


def prepare(data: Dataset, task: Task) -> Prepared:
    """Units in which steps are near or far, and whether anything ended."""
    rows, steps = data.rows, data.steps
    x = np.concatenate([np.asarray(steps.obs)[:rows], np.asarray(steps.action)[:rows]], 1)
    width = np.where(x.std(0) > 1e-9, x.std(0), 1.0)
    if isinstance(task.actions, Discrete):
        width[steps.obs.shape[1] :] = 1 / APART
    ends = task.done is not None or bool((np.asarray(steps.done)[:rows] > 0).any())
    return Prepared(ends, jnp.asarray(width, jnp.float32))


def fit(key: Key, hypers: Hypers, data: Dataset, split: Split, arrays: Array, shape: bool) -> Fitted:
    """The steps of every fold, evenly taken, with weights of each member; and how well it predicts."""
    del shape
    steps, width = data.steps, jnp.asarray(arrays)
    x = jnp.concatenate([steps.obs, steps.action], -1) / width
    unit = jnp.where(data.episode >= 0, data.episode, jnp.arange(x.shape[0]))
    used = (jnp.arange(len(data.episode)) < data.size)[:, None]
    low = jnp.min(jnp.where(used, steps.next_obs, jnp.inf), 0)
    high = jnp.max(jnp.where(used, steps.next_obs, -jnp.inf), 0)

    def fold(key: Key, rows: Array, size: Array) -> tuple[Theta, Array]:
        index = rows[(jnp.arange(hypers.steps) * size / hypers.steps).astype(jnp.int32)]
        kept = (x[index], width, (steps.next_obs - steps.obs)[index], steps.reward[index], steps.done[index])

        def member(key: Key) -> tuple[Theta, Array]:
            weight = jnp.log(jax.random.exponential(key, unit.shape)[unit][index] + 1e-6)
            theta = Theta(*kept, weight, jnp.asarray(hypers.bandwidth), low, high)
            return theta, _score(World(hypers.nearest, False), theta, data, split)

        return jax.lax.map(member, jax.random.split(key, hypers.members))

    keys = jax.random.split(key, hypers.folds)
    theta, nll = jax.vmap(fold)(keys, jnp.asarray(split.train), jnp.asarray(split.sizes))
    return Fitted(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), theta), nll)


def _score(world: World, theta: Theta, data: Dataset, split: Split) -> Array:
    """Mean squared error on the rows that validate, as a Gaussian's negative log-likelihood."""
    steps = jax.tree.map(lambda leaf: jnp.asarray(leaf)[split.valid], data.steps)
    y = jnp.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1)
    used = (jnp.arange(split.valid.shape[0]) < split.valid_size)[:, None]
    off = jnp.square(y - world.moments(theta, (), steps.obs, steps.action).mean)
    return 0.5 * jnp.sum(jnp.log(jnp.sum(off * used, 0) / split.valid_size + 1e-12))


def posterior(fitted: Fitted, hypers: Hypers, prepared: Prepared, data: Dataset, task: Task) -> Posterior:
    """The fitted worlds as a Posterior."""
    low, high = ranges(data)
    return assemble(
        fitted.theta,
        World(hypers.nearest, bool(prepared.shape), task.done),
        (data.starts, low, high),
        task,
        hypers.folds,
    )


def assemble(theta: Theta, world: World, edges: tuple[Array, ...], task: Task, folds: int) -> Posterior:
    """A posterior of this kind; `edges` are starts and the range of the log."""
    starts, low, high = (jnp.asarray(edge) for edge in edges)
    return Posterior(
        theta, starts, low, high, world.sample, task, world.moments, folds=folds, terminates=world.terminates
    )


def save(posterior: Posterior) -> Saved:
    """The worlds as arrays, and how many neighbours they ask."""
    kept = _table.save(posterior)
    world = posterior.sample.value  # type: ignore[attr-defined]
    return kept._replace(rest={**kept.rest, "nearest": world.nearest})


def load(saved: Saved, task: Task) -> Posterior:
    """What `save` kept, as a posterior again."""
    edges = tuple(saved.arrays[name] for name in ("starts", "low", "high"))
    world = World(saved.rest["nearest"], saved.rest["terminates"], task.done)
    return assemble(_table.load(saved, Theta), world, edges, task, saved.rest["folds"])


def space(scale: str, rows: int = 0) -> list[Hypers]:
    """Two bandwidths, and more steps where there are more."""
    steps = 256 if scale == "smoke" else 2_048 if rows < 10_000 else 4_096
    return grid(Hypers(steps=steps, members=2 if scale == "smoke" else 8), bandwidth=(0.5, 1.0))


model = WorldModel("neighbours", Hypers, space, prepare, fit, posterior, save, load)
