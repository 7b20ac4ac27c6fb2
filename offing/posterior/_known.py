"""What the rows of a log say before any net is trained: scales, the least-squares map, and where states stop."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Split
from ..nets import Layer
from ..types import Array, Dataset

LEAST = 1e-6  # share of the variance of a target that the linear map may seem to leave, at least
TIES = 3  # rows that share the very largest or smallest value of a column: it stops there, and is a wall


class Scale(NamedTuple):
    """Centre and width of what goes in and what comes out, so that every number is of order one inside."""

    in_mean: Array  # [S + A]
    in_std: Array
    out_mean: Array  # [S + 1]
    out_std: Array


class Known(NamedTuple):
    """What a fold's rows say before any net is trained."""

    scale: Scale
    linear: Layer  # the least-squares map
    left: Array  # [S + 1]  variance that it leaves
    walls: Array  # [2, S]  where a state's columns stop, low and high


def gain_of(known: Known) -> Array:
    """What the linear map leaves to say [S + 1], as a standard deviation in units of the target's."""
    return jnp.sqrt(jnp.clip(known.left, LEAST, 1.0))


def measure(x: Array, y: Array, rows: Array, size: Array) -> Scale:
    """Mean and standard deviation over the first `size` of `rows`; a constant column keeps width 1."""
    used = (jnp.arange(rows.shape[0]) < size)[:, None]

    def moments(a: Array) -> tuple[Array, Array]:
        picked = a[rows]
        mean = jnp.sum(picked * used, 0) / size
        std = jnp.sqrt(jnp.sum(jnp.square(picked - mean) * used, 0) / size)
        return mean, jnp.where(std > 1e-6 * (1 + jnp.abs(mean)), std, 1.0)

    return Scale(*moments(x), *moments(y))


def least_squares(x: Array, y: Array, scale: Scale, rows: Array, size: Array, share: Array) -> tuple[Layer, Array]:
    """`share` of the linear map that fits the first `size` of `rows` best, and the variance it leaves [D]."""
    used = (jnp.arange(rows.shape[0]) < size)[:, None]
    x = (x[rows] - scale.in_mean) / scale.in_std * used
    y = (y[rows] - scale.out_mean) / scale.out_std * used
    gram = jnp.matmul(x.T, x, precision="highest") / size + 1e-4 * jnp.eye(x.shape[1])
    weight = solve(gram, jnp.matmul(x.T, y, precision="highest") / size)
    weight = share * weight
    left = jnp.sum(jnp.square(y - x @ weight), 0) / size
    return Layer(weight.T, jnp.zeros(y.shape[1])), left


def solve(a: Array, b: Array) -> Array:
    """x of a x = b for a positive definite matrix, by elimination, which then needs no pivots.

    Written out, since on a CPU the library's solver starts threads of its own, and from some sixty columns on two
    fits side by side wait for each other for ever.
    """
    width = a.shape[0]

    def one(i: Array, whole: Array) -> Array:
        row = whole[i] / whole[i, i]
        return jnp.where(jnp.arange(width)[:, None] == i, row, whole - jnp.outer(whole[:, i], row))

    return jax.lax.fori_loop(0, width, one, jnp.concatenate([a, b], 1))[:, width:]


def stops(next_obs: Array, used: Array) -> Array:
    """Where each column of the state stops [2, S], as the rows that are `used` [N] show it, or infinity.

    A continuous quantity takes its very largest value once, unless something holds it there: a limit of
    speed, the end of a rail. Nets round such a corner off, and can be far out where the log says exactly
    where the state will be.
    """
    used = used[:, None]
    low = jnp.min(jnp.where(used, next_obs, jnp.inf), 0)
    high = jnp.max(jnp.where(used, next_obs, -jnp.inf), 0)
    many = lambda edge: jnp.sum((next_obs == edge) & used, 0) >= TIES
    return jnp.stack([jnp.where(many(low), low, -jnp.inf), jnp.where(many(high), high, jnp.inf)])


def walled(data: Dataset) -> bool:
    """Whether any column of the log's states stops at a wall."""
    used = jnp.arange(len(data.steps.next_obs)) < data.rows
    return bool(np.any(np.isfinite(stops(jnp.asarray(data.steps.next_obs), used))))


def learned_from(split: Split, rows: int) -> Array:
    """Which of the rows [N] some fold learns from, or is stopped by: all that is not held out."""
    parts = [*zip(split.train, split.sizes, strict=True), (split.valid, split.valid_size)]
    used = jnp.zeros(rows, bool)
    for index, size in parts:
        used = used.at[jnp.asarray(index)].max(jnp.arange(index.shape[0]) < size)
    return used
