"""Gradient steps in which every float may be traced, so that a sweep over them is one program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import optax

from .types import Array

P = TypeVar("P")  # parameters
Aux = TypeVar("Aux")  # what a loss says beside its value
Args = ParamSpec("Args")


class Learner(NamedTuple, Generic[P]):
    """Parameters, and Adam's first and second moments of their gradients."""

    params: P
    first: P
    second: P


def start(params: P) -> Learner[P]:
    """A learner that has taken no step."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    return Learner(params, zeros, zeros)


class Adam(NamedTuple):
    """AdamW's numbers for one step (Loshchilov & Hutter, 2019); `rate` already holds the bias correction.

    The count lives outside, in whatever loop takes the steps: kept in the state, as optax does, it is one
    counter per member and setting under `vmap`, and small kernels at every step of a sweep.
    """

    rate: Array
    epsilon: Array
    decay: Array
    norm: float | Array | None = None  # a gradient longer than this is shortened to it


def adam(
    count: Array,
    lr: float | Array,
    decay: float | Array = 0.0,
    eps: float = 1e-8,
    norm: float | Array | None = None,
) -> Adam:
    """The numbers of step `count` (from 0): learning rate `lr`, decoupled weight decay `decay`."""
    steps = jnp.asarray(count, jnp.float32) + 1
    first, second = 1 - B1**steps, jnp.sqrt(1 - B2**steps)
    return Adam(lr * second / first, eps * second, jnp.asarray(lr * decay), norm)


B1, B2 = 0.9, 0.999


def cosine(count: Array, lr: float | Array, updates: int, final: float | Array = 0.1) -> Array:
    """From `lr` at count 0 to `final * lr` at `updates`, along half a cosine."""
    return optax.cosine_decay_schedule(lr, updates, alpha=final)(count)  # type: ignore[arg-type, return-value]


def descend(
    learner: Learner[P],
    step: Adam,
    loss: Callable[Concatenate[P, Args], tuple[Array, Aux]],
    *args: Args.args,
    **more: Args.kwargs,
) -> tuple[Learner[P], Array, Aux]:
    """One step down `loss(params, *args) -> (value, aux)`: the moved learner, the value, and aux."""
    (value, aux), grads = jax.value_and_grad(loss, has_aux=True)(learner.params, *args, **more)
    norm = step.norm
    if norm is not None:
        length = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, norm / (length + 1e-12)), grads)
    first = jax.tree.map(lambda m, g: B1 * m + (1 - B1) * g, learner.first, grads)
    second = jax.tree.map(lambda v, g: B2 * v + (1 - B2) * jnp.square(g), learner.second, grads)
    move = lambda p, m, v: p - step.rate * m / (jnp.sqrt(v) + step.epsilon) - step.decay * p
    return Learner(jax.tree.map(move, learner.params, first, second), first, second), value, aux
