"""Conjugate linear-Gaussian worlds, exact: the yardstick that the ensemble and PIL are held to.

    y = W' (1, obs, action) + N(0, noise^2),   W ~ N(0, prior_scale^2)  per output
    covariance = (Phi' Phi / noise^2 + I / prior_scale^2)^-1,   mean = covariance Phi' Y / noise^2

for y the change of state and the reward. With `noise` 0 it is what least squares leaves, output by output, and the
prior's scale is in units of the outputs' own. Ends come as often as the log's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...data import Split, ranges
from ...hypers import grid, hypers
from ...types import Array, Dataset, Drawn, Fitted, Key, Moments, Posterior, Prepared, Saved, Task, WorldModel
from .. import _table
from .._known import solve

LEAST = 1e-5  # of the inputs' scale: a direction that rows show less of is taken to be known from nothing


@hypers
class Hypers:
    """Prior and noise, in the log's own units; a noise of 0 is asked of the log."""

    noise: float = 0.0
    prior_scale: float = 1.0
    members: int = 8  # worlds per fold
    folds: int = 2


class Theta(NamedTuple):
    """One world: y = weight' (1, obs, action)."""

    weight: Array  # [1 + S + A, S + 1]
    noise: Array  # [S + 1]
    ends: Array  # []  probability that a step is the last
    low: Array  # [S + 1]  what the log supports
    high: Array


class Weights(NamedTuple):
    """The exact posterior of the weights; outputs share the covariance, up to their noise."""

    mean: Array  # [1 + S + A, S + 1]
    covariance: Array  # [S + 1, 1 + S + A, 1 + S + A]
    noise: Array  # [S + 1]


@dataclass(frozen=True)
class World:
    """How a Theta is read."""

    terminates: bool
    done: Callable[[Array, Array, Array], Array] | None = None  # the task's, if known

    def sample(
        self, key: Key, theta: Theta, memory: tuple[()], obs: Array, action: Array
    ) -> tuple[Drawn, tuple[()]]:
        k1, k2 = jax.random.split(key)
        moments = self.moments(theta, memory, obs, action)
        y = moments.mean + moments.std * jax.random.normal(k1, moments.mean.shape)
        width = theta.high - theta.low
        after = jnp.clip(obs + y[..., :-1], (theta.low - width)[:-1], (theta.high + width)[:-1])
        out = jnp.any(after != obs + y[..., :-1], -1)
        ended = jax.random.bernoulli(k2, moments.terminated)
        if self.done is not None:
            ended = self.done(obs, action, after)
        ended |= out & self.terminates
        reward = jnp.clip(y[..., -1], theta.low[-1], theta.high[-1])
        return Drawn(after, reward, ended, out, reward != y[..., -1]), ()

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
        mean = features(obs, action) @ theta.weight
        ends = jnp.full(mean.shape[:-1], theta.ends)
        if self.done is not None:
            led = obs + mean[..., :-1] if after is None else after
            ends = self.done(obs, action, led).astype(jnp.float32)
        return Moments(mean, jnp.broadcast_to(theta.noise, mean.shape), ends)


def features(obs: Array, action: Array) -> Array:
    """(1, obs, action)."""
    return jnp.concatenate([jnp.ones((*obs.shape[:-1], 1)), obs, action], -1)


def prepare(data: Dataset, task: Task) -> Prepared:
    """Nothing but whether episodes can end."""
    return Prepared(task.done is not None or bool((data.steps.done[: data.rows] > 0).any()), ())


def exact(hypers: Hypers, data: Dataset, rows: Array, size: Array) -> Weights:
    """Mean and covariance of the weights given the first `size` of `rows`."""
    steps = data.steps
    used = (jnp.arange(rows.shape[0]) < size)[:, None]
    phi = features(steps.obs, steps.action)[rows] * used
    y = jnp.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1)[rows] * used
    gram, moment = phi.T @ phi, phi.T @ y
    small = LEAST * (1.0 + jnp.mean(jnp.diag(gram))) * jnp.eye(gram.shape[0])
    left = jnp.sqrt(jnp.sum(jnp.square(y - phi @ solve(gram + small, moment)), 0) / size)
    noise = jnp.where(hypers.noise > 0, hypers.noise, jnp.maximum(left, 1e-3 * (1e-3 + jnp.abs(y).max(0))))
    wide = hypers.prior_scale * jnp.where(hypers.noise > 0, 1.0, jnp.abs(y).max(0) + 1e-6)

    def one(noise: Array, wide: Array, moment: Array) -> tuple[Array, Array]:
        # In units of the noise, and never closer to singular than single precision can tell: columns that add up
        # to one, as those of a choice among actions do, leave a direction that no row speaks of.
        ridge = jnp.maximum(jnp.square(noise / wide), LEAST * jnp.mean(jnp.diag(gram)))
        inverse = solve(gram + ridge * jnp.eye(gram.shape[0]), jnp.eye(gram.shape[0]))
        inverse = (inverse + inverse.T) / 2
        return inverse @ moment, jnp.square(noise) * inverse

    mean, covariance = jax.vmap(one, (0, 0, 1))(noise, wide, moment)
    return Weights(mean.T, covariance, noise)


def fit(key: Key, hypers: Hypers, data: Dataset, split: Split, arrays: tuple[()], shape: bool) -> Fitted:
    """`members` exact draws for every fold, and how well each predicts the rows that validate."""
    del arrays, shape
    low, high = _ranges(data)
    ends = jnp.sum(data.steps.done * (jnp.arange(len(data.episode)) < data.size)) / data.size

    def fold(key: Key, rows: Array, size: Array) -> tuple[Theta, Array]:
        weights = exact(hypers, data, rows, size)
        variance = jnp.diagonal(weights.covariance, axis1=1, axis2=2)  # [S + 1, X]
        small = LEAST * jax.vmap(jnp.diag)(variance)
        root = jnp.linalg.cholesky(weights.covariance + small)
        draws = jax.random.normal(key, (hypers.members, *weights.mean.T.shape))
        weight = weights.mean + jnp.einsum("dij,mdj->mid", root, draws)
        every = lambda leaf: jnp.broadcast_to(leaf, (hypers.members, *leaf.shape))
        theta = Theta(weight, *map(every, (weights.noise, ends, low, high)))
        return theta, jax.vmap(lambda one: _score(one, data, split))(theta)

    theta, nll = jax.vmap(fold)(
        jax.random.split(key, hypers.folds), jnp.asarray(split.train), jnp.asarray(split.sizes)
    )
    return Fitted(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), theta), nll)


def _ranges(data: Dataset) -> tuple[Array, Array]:
    steps, used = data.steps, (jnp.arange(len(data.episode)) < data.size)[:, None]
    seen = [jnp.concatenate([o, steps.reward[:, None]], -1) for o in (steps.obs, steps.next_obs)]
    edge = lambda pick, fill, join: join(*(pick(jnp.where(used, part, fill), 0) for part in seen))
    return edge(jnp.min, jnp.inf, jnp.minimum), edge(jnp.max, -jnp.inf, jnp.maximum)


def _score(theta: Theta, data: Dataset, split: Split) -> Array:
    steps = jax.tree.map(lambda leaf: jnp.asarray(leaf)[split.valid], data.steps)
    y = jnp.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1)
    off = (y - features(steps.obs, steps.action) @ theta.weight) / theta.noise
    each = 0.5 * jnp.square(off) + jnp.log(theta.noise) + 0.5 * jnp.log(2 * jnp.pi)
    used = jnp.arange(split.valid.shape[0]) < split.valid_size
    return jnp.sum(each.sum(-1) * used) / split.valid_size


def posterior(fitted: Fitted, hypers: Hypers, prepared: Prepared, data: Dataset, task: Task) -> Posterior:
    """The draws as a stack of worlds."""
    low, high = ranges(data)
    return assemble(fitted.theta, data.starts, low, high, task, hypers.folds, bool(prepared.shape))


def assemble(
    theta: Theta, starts: Array, low: Array, high: Array, task: Task, folds: int, terminates: bool
) -> Posterior:
    """A posterior of this kind."""
    world = World(terminates, task.done)
    starts, low, high = (jnp.asarray(leaf) for leaf in (starts, low, high))
    return Posterior(
        theta, starts, low, high, world.sample, task, world.moments, folds=folds, terminates=terminates
    )


def load(saved: Saved, task: Task) -> Posterior:
    """What was saved, as a posterior again."""
    starts, low, high = (saved.arrays[name] for name in ("starts", "low", "high"))
    theta, rest = _table.load(saved, Theta), saved.rest
    return assemble(theta, starts, low, high, task, rest["folds"], rest["terminates"])


def space(scale: str, rows: int = 0) -> list[Hypers]:
    """Two priors, whatever the scale: a fit takes a moment."""
    del scale, rows
    return grid(Hypers(), prior_scale=(1.0, 10.0))


model = WorldModel("linear", Hypers, space, prepare, fit, posterior, _table.save, load)
