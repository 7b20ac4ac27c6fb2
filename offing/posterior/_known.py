"""What the rows of a log say before any net is trained: scales, and the least-squares map."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..nets import Layer
from ..types import Array

LEAST = 1e-6  # share of the variance of a target that the linear map may seem to leave, at least


class Scale(NamedTuple):
    """Centre and width of what goes in and what comes out, so that every number is of order one inside."""

    in_mean: Array  # [X]
    in_std: Array
    out_mean: Array  # [S + 1]
    out_std: Array


class Fold(NamedTuple):
    """The rows that a fold learns from: the first `size` of `rows`."""

    rows: Array  # [N]
    size: Array  # []

    @property
    def used(self) -> Array:
        return (jnp.arange(self.rows.shape[0]) < self.size)[:, None]


class Known(NamedTuple):
    """What a fold's rows say of one net's outputs before it is trained."""

    linear: Layer  # the least-squares map
    left: Array  # [D]  variance that it leaves


def gain_of(known: Known) -> Array:
    """What the linear map leaves to say [D], as a standard deviation in units of the target's."""
    return jnp.sqrt(jnp.clip(known.left, LEAST, 1.0))


def moments(a: Array, fold: Fold, counted: Array | None = None) -> tuple[Array, Array]:
    """Mean and standard deviation over a fold's rows, where `counted` says so; a constant column keeps width 1.

    Of a column that counts nowhere, a switch or a clock, over all rows: it is read by other nets.
    """
    picked = a[fold.rows]
    used = fold.used * jnp.ones_like(picked)
    if counted is not None:
        some = used * counted[fold.rows]
        used = jnp.where(some.sum(0) > 0, some, used)
    count = jnp.maximum(jnp.sum(used, 0), 1.0)
    mean = jnp.sum(picked * used, 0) / count
    std = jnp.sqrt(jnp.sum(jnp.square(picked - mean) * used, 0) / count)
    return mean, jnp.where(std > 1e-6 * (1 + jnp.abs(mean)), std, 1.0)


def least_squares(x: Array, y: Array, counted: Array, fold: Fold, share: Array, alike: bool) -> Known:
    """`share` of the linear map x -> y, both normalised, that fits a fold's rows best where they are `counted`.

    `alike`: all outputs count the same rows, so that one matrix serves them all.
    """
    x, y, counted = x[fold.rows] * fold.used, y[fold.rows], counted[fold.rows] * fold.used
    y = y * counted
    count = jnp.maximum(counted.sum(0), 1.0)  # [D]
    small = 1e-4 * jnp.eye(x.shape[1])
    if alike:
        gram = jnp.matmul(x.T, x, precision="highest") / fold.size + small
        weight = solve(gram, jnp.matmul(x.T, y, precision="highest") / fold.size)
    else:

        def one(y: Array, counted: Array, count: Array) -> Array:
            gram = jnp.matmul(x.T * counted, x, precision="highest") / count + small
            return solve(gram, jnp.matmul(x.T, y[:, None], precision="highest") / count)[:, 0]

        weight = jax.lax.map(lambda at: one(*at), (y.T, counted.T, count)).T
    weight = share * weight
    left = jnp.sum(jnp.square((y - x @ weight) * counted), 0) / count
    return Known(Layer(weight.T, jnp.zeros(y.shape[1])), left)


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
