"""Networks as arrays: `init` returns them, `apply` reads them; and the Gaussian that world models predict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .types import Array, Key

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}
CUT = 0.87962566103423978  # standard deviation of a normal cut off at two of its own
HALF = {"gpu": True}  # where nets in training have hidden layers in bfloat16: there traffic is the cost


class Layer(NamedTuple):
    """A dense layer: x @ weight.T + bias.

    Outputs come first because that is how the gradient of the weight comes out of its product: the other
    way round every update of the optimiser transposes and copies each weight and both its moments.
    """

    weight: Array  # [out, in]
    bias: Array  # [out]


Net = tuple[Layer, ...]
Saved = tuple[tuple[Layer, ...], list[Array], list[Array]]  # of a pass forward: layers, what they read, slopes


def mlp_init(key: Key, sizes: Sequence[int], last: float | Array = 1.0) -> Net:
    """Layers in -> ... -> out with LeCun-normal weights and zero biases; the last one's scaled by `last`."""
    return scaled_last(mlps_init(key, [sizes])[0], last)


def mlps_init(key: Key, nets: Sequence[Sequence[int]]) -> list[Net]:
    """Several nets, in -> ... -> out each, out of one draw: every draw is a hundred operations to compile."""
    shapes = [[(o, i) for i, o in pairwise(sizes)] for sizes in nets]
    drawn = jax.random.truncated_normal(key, -2.0, 2.0, (sum(o * i for net in shapes for o, i in net),)) / CUT
    made, at = [], 0
    for net in shapes:
        layers = []
        for o, i in net:
            layers.append(Layer(drawn[at : at + o * i].reshape(o, i) * i**-0.5, jnp.zeros(o)))
            at += o * i
        made.append(tuple(layers))
    return made


def scaled_last(layers: Net, last: float | Array) -> Net:
    """The net with the weights of its last layer scaled."""
    return (*layers[:-1], Layer(layers[-1].weight * last, layers[-1].bias))


def library(array: Array) -> Any:
    """What goes on with an array: numpy where it is on the host, so that no program is compiled for it."""
    return np if isinstance(array, np.ndarray) else jnp


def dense(layer: Layer, x: Array) -> Array:
    """x [..., in] -> [..., out]."""
    return jax.lax.dot_general(x, layer.weight, (((x.ndim - 1,), (1,)), ((), ()))) + layer.bias


def hidden(layers: Sequence[Layer], x: Array, activation: str = "relu") -> Array:
    """What the last layer reads: x through all the others, each with its activation."""
    for layer in layers[:-1]:
        x = ACTIVATIONS[activation](dense(layer, x))
    return x


def mlp(layers: Sequence[Layer], x: Array, activation: str = "relu") -> Array:
    """x [..., in] -> [..., out], with the activation between layers and none after the last."""
    return dense(layers[-1], hidden(layers, x, activation))


def tower(layers: Sequence[Layer], x: Array, normed: bool = False, half: bool | None = None) -> Array:
    """A ReLU network; `normed`: what each hidden layer says is centred and scaled before the next reads it.

    That is LayerNorm without a gain and bias of its own: the next layer's weights can stand for them. `half`:
    hidden layers in bfloat16, by default where HALF says so; weights and the last layer stay as they are.
    """
    half = HALF.get(jax.default_backend(), False) if half is None else half
    kind = jnp.bfloat16 if half else jnp.float32
    x = x.astype(kind)
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(dense(Layer(weight.astype(kind), bias.astype(kind)), x))
        x = centred(x).astype(kind) if normed else x
    return dense(layers[-1], x.astype(jnp.float32))


def centred(x: Array) -> Array:
    """x [..., W] with mean 0 and size 1, both computed in one pass, as reading x is what they cost."""
    x = x.astype(jnp.float32)
    mean = x.mean(-1, keepdims=True)
    squared = jnp.mean(jnp.square(x), -1, keepdims=True) - jnp.square(mean)
    return (x - mean) * jax.lax.rsqrt(jnp.maximum(squared, 0.0) + 1e-6)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def hidden_half(layers: tuple[Layer, ...], x: Array, activation: str = "relu") -> Array:
    """As `hidden`, with gradients in bfloat16: on a GPU their traffic, not their arithmetic, is the cost.

    The value is the same to the last bit, and sums over the batch are taken in float32.
    """
    return hidden(layers, x, activation)


def _hidden_half_forward(layers: tuple[Layer, ...], x: Array, activation: str) -> tuple[Array, Saved]:
    half = lambda a: a.astype(jnp.bfloat16)
    inputs, slopes = [half(x)], []
    for layer in layers[:-1]:
        before = dense(layer, x)
        x, slope = jax.jvp(ACTIVATIONS[activation], (before,), (jnp.ones_like(before),))
        inputs.append(half(x))
        slopes.append(slope > 0 if activation == "relu" else half(slope))
    return x, (layers, inputs[:-1], slopes)


def _hidden_half_backward(activation: str, saved: Saved, grad: Array) -> tuple[tuple[Layer, ...], Array]:
    layers, inputs, slopes = saved
    exact = partial(jax.lax.dot_general, preferred_element_type=jnp.float32)
    grads = [jax.tree.map(jnp.zeros_like, layers[-1])]
    for layer, x, slope in zip(layers[-2::-1], inputs[::-1], slopes[::-1], strict=True):
        grad = (grad * slope).astype(jnp.bfloat16)
        grads.append(Layer(exact(grad, x, (((0,), (0,)), ((), ()))), grad.astype(jnp.float32).sum(0)))
        grad = grad @ layer.weight.astype(jnp.bfloat16)
    return tuple(grads[::-1]), grad.astype(jnp.float32)


hidden_half.defvjp(_hidden_half_forward, _hidden_half_backward)


def soft_clamp(x: Array, low: Array, high: Array) -> Array:
    """x held between low and high, smoothly (Chua et al., 2018): first from above, then from below."""
    x = high - jax.nn.softplus(high - x)
    return low + jax.nn.softplus(x - low)


def gaussian_nll(mean: Array, logvar: Array, target: Array) -> Array:
    """Negative log-likelihood of a diagonal Gaussian per output, in nats."""
    return 0.5 * (jnp.square(target - mean) * jnp.exp(-logvar) + logvar + jnp.log(2 * jnp.pi))


TAILS = 4.0  # degrees of freedom
NARROW = 0.69  # share of a Gaussian's variance that fits Student's squared scale to it best, at so many degrees


def student_nll(mean: Array, logvar: Array, target: Array) -> Array:
    """As `gaussian_nll`, with Student's tails; where errors are Gaussian, their true variance scores best."""
    logscale = logvar + math.log(NARROW)
    const = math.lgamma(TAILS / 2) - math.lgamma((TAILS + 1) / 2) + 0.5 * math.log(TAILS * math.pi)
    far = jnp.square(target - mean) * jnp.exp(-logscale) / TAILS
    return const + 0.5 * logscale + 0.5 * (TAILS + 1) * jnp.log1p(far)


def cross_entropy(logit: Array, target: Array) -> Array:
    """Negative log-likelihood of a Bernoulli outcome, in nats."""
    return jax.nn.softplus(logit) - target * logit
