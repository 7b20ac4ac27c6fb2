"""Conjugate linear-Gaussian posterior, exact: the yardstick that the ensemble and PIL are held to.

y = W' (1, obs, action) + N(0, noise^2),   W ~ N(0, prior_scale^2)  per output
covariance = (Phi' Phi / noise^2 + I / prior_scale^2)^-1,   mean = covariance Phi' Y / noise^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..data import ranges
from ..hypers import hypers
from ..types import Array, Dataset, Key, Posterior, Predict, Task


@hypers
class Hypers:
    """Prior and noise, both known, in the log's own units."""

    noise: float = 0.1
    prior_scale: float = 1.0
    members: int = 10


class Theta(NamedTuple):
    """One world: y = weight' (1, obs, action)."""

    weight: Array  # [1 + S + A, S + 1]
    noise: Array  # []


class Moments(NamedTuple):
    """The exact posterior of the weights; outputs share the covariance."""

    mean: Array  # [1 + S + A, S + 1]
    covariance: Array  # [1 + S + A, 1 + S + A]


@dataclass(frozen=True)
class World:
    """How a Theta is read."""

    def __call__(self, theta: Theta, obs: Array, action: Array) -> Predict:
        mean = features(obs, action) @ theta.weight
        return Predict(mean, jnp.broadcast_to(theta.noise, mean.shape), jnp.zeros(mean.shape[:-1]))


def features(obs: Array, action: Array) -> Array:
    """(1, obs, action)."""
    return jnp.concatenate([jnp.ones((*obs.shape[:-1], 1)), obs, action], -1)


def moments(hypers: Hypers, data: Dataset) -> Moments:
    """Mean and covariance of the weights given the rows in use."""
    steps = data.steps
    used = (jnp.arange(steps.obs.shape[0]) < data.size)[:, None]
    phi = features(steps.obs, steps.action) * used
    y = jnp.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1)
    precision = phi.T @ phi / hypers.noise**2 + jnp.eye(phi.shape[1]) / hypers.prior_scale**2
    covariance = jnp.linalg.inv(precision)
    return Moments(covariance @ (phi.T @ y) / hypers.noise**2, covariance)


def fit(key: Key, hypers: Hypers, data: Dataset, task: Task) -> Posterior:
    """`members` exact draws, as a stack of worlds."""
    exact = moments(hypers, data)
    root = jnp.linalg.cholesky(exact.covariance)
    draws = jax.random.normal(key, (hypers.members, *exact.mean.shape))
    theta = Theta(exact.mean + root @ draws, jnp.full(hypers.members, hypers.noise))
    low, high = ranges(data)
    return Posterior(
        theta=theta,
        starts=jnp.asarray(data.starts),
        low=jnp.asarray(low),
        high=jnp.asarray(high),
        noise_scale=jnp.asarray(1.0),
        predict=World(),
        task=task,
    )
