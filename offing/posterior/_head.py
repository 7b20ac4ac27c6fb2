"""The Gaussian head of a world: how its output is read, and the loss that trains it, gradient and all."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..nets import Layer, dense, soft_clamp
from ..types import Array


class Batch(NamedTuple):
    """Rows as one member sees them."""

    x: Array  # [B, S + A]
    y: Array  # [B, S + 1]  what the trained net must say: the target plus jitter less the prior
    weight: Array  # [B]
    next_obs: Array  # [B, S]
    done: Array  # [B]
    held: Array  # [B, S + 1]  1 or -1 where the target stands at a wall, high or low; [B, 0] if none does


def read(out: Array, low: Array, high: Array, floor: Array) -> tuple[Array, Array]:
    """Mean and log-variance in the last layer's output [..., 2D]: softly clamped, and never below the floor."""
    mean, raw = jnp.split(out, 2, -1)
    return mean, jnp.maximum(soft_clamp(raw, low, high), floor)


def residual(b: Batch, mean: Array) -> Array:
    """Target less mean, one-sided at walls: how far beyond one the state would have gone, nobody knows."""
    off = b.y - mean
    return off * (b.held * off >= 0) if b.held.shape[-1] else off


@jax.custom_vjp
def head_loss(last: Layer, low: Array, high: Array, features: Array, b: Batch, beta: Array, floor: Array) -> Array:
    """The Gaussian part of the loss, from the last hidden features on.

    Its gradient is written out below: the mean's half of the output alone trains the features, and the bias
    and both bounds share one sum over the batch, where automatic differentiation makes five passes of it.
    """
    mean, logvar = read(dense(last, features), low, high, floor)
    squared = jnp.square(residual(b, mean))
    each = squared * jnp.exp((beta - 1) * logvar) + logvar + squared * jnp.exp(-logvar)
    return jnp.mean(b.weight * each.sum(-1))


def _head_loss_forward(*args: Any) -> tuple[Array, Any]:
    return head_loss(*args), args


def _head_loss_backward(saved: Any, scale: Array) -> tuple[Any, ...]:
    last, low, high, features, b, beta, floor = saved
    mean, raw = jnp.split(dense(last, features), 2, -1)
    under = high - jax.nn.softplus(high - raw)
    clamped = low + jax.nn.softplus(under - low)
    logvar = jnp.maximum(clamped, floor)
    below_high, above_low = jax.nn.sigmoid(high - raw), jax.nn.sigmoid(under - low)
    off = residual(b, mean)
    weight = (scale * b.weight / b.weight.shape[0])[:, None]
    to_mean = -2 * weight * off * jnp.exp((beta - 1) * logvar)
    to_logvar = weight * (1 - jnp.square(off) * jnp.exp(-logvar)) * (clamped > floor)
    to_raw = to_logvar * above_low * below_high
    to_high, to_low = to_logvar * above_low * (1 - below_high), to_logvar * (1 - above_low)
    sums = jnp.concatenate([to_mean, to_raw, to_low, to_high], -1).sum(0)  # [4D]
    bias, (to_low, to_high) = sums[: raw.shape[-1] * 2], jnp.split(sums[raw.shape[-1] * 2 :], 2)
    weights = jnp.concatenate([to_mean, to_raw], -1).T @ features
    to_features = to_mean @ last.weight[: raw.shape[-1]]
    return Layer(weights, bias), to_low, to_high, to_features, None, None, None


head_loss.defvjp(_head_loss_forward, _head_loss_backward)
