"""One world: what it is made of, and how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..nets import Layer, dense, mlp
from ..types import Array, Predict
from ._head import read
from ._known import Scale
from ._levels import snapped


class Theta(NamedTuple):
    """One world; in a posterior every leaf has a leading axis [M]."""

    net: tuple[Layer, ...]  # trained: in -> mean and raw log-variance
    low: Array  # [S + 1]  soft bounds of the log-variance
    high: Array
    ends: tuple[Layer, ...]  # (obs, action, next_obs) -> logit of termination; () if nothing in the log ended
    linear: Layer  # frozen: the least-squares map
    prior: tuple[Layer, ...]  # frozen; () if silent
    prior_scale: Array  # [S + 1]
    floor: Array  # []  least log-variance
    scale: Scale
    walls: Array  # [2, S]  no state is predicted beyond these; infinite where the log shows none
    levels: Any = ()  # [S, K + 1]  values of columns that take few (`_levels`); () if none does


@dataclass(frozen=True)
class World:
    """How a Theta is read; static, and equal for equal architectures, so that programs are shared."""

    activation: str

    def __call__(self, theta: Theta, obs: Array, action: Array) -> Predict:
        x = enter(theta.scale, obs, action)
        mean, logvar = gaussian(theta, x, self.activation)
        mean = mean + dense(theta.linear, x)
        if theta.prior:
            mean = mean + theta.prior_scale * mlp(theta.prior, x, self.activation)
        mean = mean * theta.scale.out_std + theta.scale.out_mean
        after = jnp.clip(obs + mean[..., :-1], theta.walls[0], theta.walls[1])
        mean = jnp.concatenate([after - obs, mean[..., -1:]], -1)
        std = jnp.exp(0.5 * logvar) * theta.scale.out_std
        if not theta.ends:
            return Predict(mean, std, jnp.zeros(mean.shape[:-1]))
        logit = ending(theta, x, snapped(theta.levels, after))
        return Predict(mean, std, jax.nn.sigmoid(logit))


def enter(scale: Scale, obs: Array, action: Array) -> Array:
    """The net's input, in normalised units."""
    return (jnp.concatenate([obs, action], -1) - scale.in_mean) / scale.in_std


def gaussian(theta: Theta, x: Array, activation: str) -> tuple[Array, Array]:
    """Mean and log-variance of the trained net alone, in normalised units."""
    return read(mlp(theta.net, x, activation), theta.low, theta.high, theta.floor)


def ending(theta: Theta, x: Array, next_obs: Array) -> Array:
    """Logit that the step ended the episode, from the step and from where it led."""
    width = next_obs.shape[-1]
    after = (next_obs - theta.scale.in_mean[:width]) / theta.scale.in_std[:width]
    return mlp(theta.ends, jnp.concatenate([x, after], -1), "silu")[..., 0]
