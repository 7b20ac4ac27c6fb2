"""The heads of a net: how its outputs are read, and the loss that trains them, gradient and all.

Amounts have a mean and a variance, gates a chance of being left, choices a chance for each of their values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..nets import Layer, cross_entropy, dense, soft_clamp
from ..types import Array
from ._kinds import Block


class Batch(NamedTuple):
    """Rows as one net of one member sees them."""

    x: Array  # [B, X]
    y: Array  # [B, D]  what the trained net must say: the target plus jitter less linear map and prior
    weight: Array  # [B]
    amount: Array  # [B, D]  1 where the output is an amount
    moved: Array  # [B, G]
    chosen: Array  # [B, C]
    held: Array  # [B, D]  1 or -1 where the target stands at a wall, high or low; [B, 0] if none does


class Chances(NamedTuple):
    """What the logits come to."""

    moved: Array  # [..., G]  that a gate is left
    chosen: Array  # [..., C, K]  of every value


def read(out: Array, low: Array, high: Array, floor: Array) -> tuple[Array, Array]:
    """Mean and log-variance in the last layer's output [..., 2D]: softly clamped, and never below the floor."""
    mean, raw = jnp.split(out, 2, -1)
    return mean, jnp.maximum(soft_clamp(raw, low, high), floor)


def logits(block: Block, out: Array) -> tuple[Array, Array]:
    """Those of the gates [..., G] and, as log-probabilities, those of the choices [..., C, K]."""
    gates, rest = out[..., : len(block.gates)], out[..., len(block.gates) :]
    rest = rest.reshape(*out.shape[:-1], len(block.choices), block.most)
    counts = jnp.asarray([n for _, n in block.choices], jnp.int32).reshape(-1, 1)
    return gates, jax.nn.log_softmax(jnp.where(jnp.arange(block.most) < counts, rest, -1e9))


def chances(block: Block, out: Array) -> Chances:
    gates, choices = logits(block, out)
    return Chances(jax.nn.sigmoid(gates), jnp.exp(choices))


def extra_loss(block: Block, out: Array, b: Batch) -> Array:
    """Negative log-likelihood of gates and choices, row by row [B]."""
    gates, choices = logits(block, out)
    each = cross_entropy(gates, b.moved).sum(-1)
    if block.choices:
        each -= jnp.take_along_axis(choices, b.chosen[..., None], -1)[..., 0].sum(-1)
    return each


def residual(b: Batch, mean: Array) -> Array:
    """Target less mean, one-sided at walls: how far beyond one the state would have gone, nobody knows."""
    off = (b.y - mean) * b.amount
    return off * (b.held * off >= 0) if b.held.shape[-1] else off


@jax.custom_vjp
def head_loss(last: Layer, low: Array, high: Array, features: Array, b: Batch, beta: Array, floor: Array) -> Array:
    """The Gaussian part of the loss, from the last hidden features on.

    Its gradient is written out below: the mean's half of the output alone trains the features, and the bias
    and both bounds share one sum over the batch, where automatic differentiation makes five passes of it.
    """
    mean, logvar = read(dense(last, features), low, high, floor)
    squared = jnp.square(residual(b, mean))
    each = squared * jnp.exp((beta - 1) * logvar) + b.amount * logvar + squared * jnp.exp(-logvar)
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
    to_logvar = weight * (b.amount - jnp.square(off) * jnp.exp(-logvar)) * (clamped > floor)
    to_raw = to_logvar * above_low * below_high
    to_high, to_low = to_logvar * above_low * (1 - below_high), to_logvar * (1 - above_low)
    sums = jnp.concatenate([to_mean, to_raw, to_low, to_high], -1).sum(0)  # [4D]
    bias, (to_low, to_high) = sums[: raw.shape[-1] * 2], jnp.split(sums[raw.shape[-1] * 2 :], 2)
    weights = jnp.concatenate([to_mean, to_raw], -1).T @ features
    to_features = to_mean @ last.weight[: raw.shape[-1]]
    return Layer(weights, bias), to_low, to_high, to_features, None, None, None


head_loss.defvjp(_head_loss_forward, _head_loss_backward)
