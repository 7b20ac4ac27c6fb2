"""How a policy remembers: not at all, by a GRU, or by a linear recurrence that is parallel in time.

All three are read alike. `step` takes one step; `sweep` takes a whole segment [T, N, ...] at once and gives what
`step` after `step` would. Memory is emptied wherever an episode starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..nets import Layer, dense
from ..types import Array, Key

CORES = ("none", "gru", "linear")
UNROLL = {"gpu": 8}  # steps of the GRU to a turn of the loop: fewer launches


class Gru(NamedTuple):
    """Cho et al. (2014), with the reset gate after the product, so that both products are single ones."""

    into: Layer  # [3W, W]
    back: Layer  # [3W, W]


class Linear(NamedTuple):
    """h_t = (1 - g_t) h_{t-1} + g_t c_t with g and c read off the input alone (Feng et al., 2024: minGRU)."""

    into: Layer  # [2W, W]


Core = Gru | Linear | tuple[()]  # its weights: () where nothing is remembered
Memory = Array | tuple[()]  # [..., W]
Inputs = TypeVar("Inputs")  # of a loop, at every step
Outputs = TypeVar("Outputs")
Gates = tuple[Array, ...]
GruPass = tuple[Layer, Array, Array, Array, Gates]  # what the pass forward leaves for the one back


def core_init(key: Key, core: str, width: int) -> Core:
    """Weights of the core; () for none."""
    if core == "none":
        return ()
    k1, k2 = jax.random.split(key)
    scale = width**-0.5
    if core == "gru":
        into = Layer(scale * jax.random.normal(k1, (3 * width, width)), jnp.zeros(3 * width))
        square = lambda k: jax.nn.initializers.orthogonal()(k, (width, width), jnp.float32)
        three = jax.vmap(square)(jax.random.split(k2, 3))
        back = Layer(three.reshape(3 * width, width), jnp.zeros(3 * width))
        return Gru(into, back)
    # gates open at rates from half a step to fifty: what must be remembered for how long is not known beforehand
    rates = jnp.linspace(-4.0, 0.0, width)
    return Linear(
        Layer(scale * jax.random.normal(k1, (2 * width, width)), jnp.concatenate([rates, jnp.zeros(width)]))
    )


def empty(core: str, width: int) -> Memory:
    """Memory of one episode before its first step."""
    return () if core == "none" else np.zeros(width, np.float32)


def step(params: Core, memory: Memory, x: Array, start: Array) -> tuple[Array, Memory]:
    """What the core says at one step [..., W], and what it remembers of it."""
    if isinstance(params, Gru) and not isinstance(memory, tuple):
        memory = _gru(params.back, dense(params.into, x), memory, start)
        return memory, memory
    if isinstance(params, Linear) and not isinstance(memory, tuple):
        keep, add = _gates(params, x, start)
        memory = keep * memory + add
        return x + memory, memory
    return x, ()


def sweep(params: Core, memory: Memory, x: Array, start: Array) -> Array:
    """What the core says at every step of a segment: x [T, N, W], start [T, N], memory [N, W] before it."""
    if isinstance(params, Gru) and not isinstance(memory, tuple):
        # one product for all steps: the loop keeps only what must wait
        return gru(params.back, dense(params.into, x), memory, start)
    if isinstance(params, Linear) and not isinstance(memory, tuple):
        keep, add = _gates(params, x, start)
        first = add[:1] + keep[:1] * memory
        return x + recur(keep, jnp.concatenate([first, add[1:]]))
    return x


def _gru(back: Layer, inputs: Array, memory: Array, start: Array) -> Array:
    return _gru_step(back, inputs, memory * (1 - start[..., None]))[0]


def _gru_step(back: Layer, inputs: Array, memory: Array) -> tuple[Array, Gates]:
    """Memory after the step, and the gates that led there."""
    r, z, n = jnp.split(inputs, 3, -1)
    hr, hz, hn = jnp.split(dense(back, memory), 3, -1)
    r, z = jax.nn.sigmoid(r + hr), jax.nn.sigmoid(z + hz)
    c = jnp.tanh(n + r * hn)
    return (1 - z) * c + z * memory, (r, z, c, hn)


def _loop(
    step: Callable[[Array, Inputs], tuple[Array, Outputs]], carry: Array, xs: Inputs, reverse: bool = False
) -> tuple[Array, Outputs]:
    return jax.lax.scan(step, carry, xs, reverse=reverse, unroll=UNROLL.get(jax.default_backend(), 1))


@jax.custom_vjp
def gru(back: Layer, inputs: Array, memory: Array, start: Array) -> Array:
    """Memory after every step of a segment [T, N, W]."""
    return _gru_forward(back, inputs, memory, start)[0]


def _gru_forward(back: Layer, inputs: Array, memory: Array, start: Array) -> tuple[Array, GruPass]:
    keep = 1 - start[..., None]

    def one(memory: Array, at: tuple[Array, Array]) -> tuple[Array, tuple[Array, Gates]]:
        memory, gates = _gru_step(back, at[0], memory * at[1])
        return memory, (memory, gates)

    out, gates = _loop(one, memory, (inputs, keep))[1]
    return out, (back, memory, keep, out, gates)


def _gru_backward(saved: GruPass, grad: Array) -> tuple[Layer, Array, Array, None]:
    """The loop carries the memory's gradient alone; that of the weights is one product over all steps after it."""
    back, first, keep, out, gates = saved
    before = jnp.concatenate([first[None], out[:-1]]) * keep

    def one(later: Array, at: tuple[Array, Array, Array, Gates]) -> tuple[Array, tuple[Array, Array]]:
        grad, before, keep, (r, z, c, hn) = at
        grad = grad + later
        to_n = grad * (1 - z) * (1 - c * c)
        to_r, to_z = to_n * hn * r * (1 - r), grad * (before - c) * z * (1 - z)
        to_gates = jnp.concatenate([to_r, to_z, to_n * r], -1)
        to_before = (grad * z + to_gates @ back.weight) * keep
        return to_before, (to_gates, to_n)

    to_first, (to_gates, to_n) = _loop(one, jnp.zeros_like(first), (grad, before, keep, gates), reverse=True)
    width = first.shape[-1]
    to_inputs = jnp.concatenate([to_gates[..., : 2 * width], to_n], -1)
    weight = jnp.einsum("tng,tnw->gw", to_gates, before)
    return Layer(weight, to_gates.sum((0, 1))), to_inputs, to_first, None


gru.defvjp(_gru_forward, _gru_backward)


def _gates(params: Linear, x: Array, start: Array) -> tuple[Array, Array]:
    gate, content = jnp.split(dense(params.into, x), 2, -1)
    gate = jax.nn.sigmoid(gate)
    return (1 - gate) * (1 - start[..., None]), gate * content


@jax.custom_vjp
def recur(keep: Array, add: Array) -> Array:
    """h_t = keep_t h_{t-1} + add_t along the first axis, h_{-1} = 0, in log T steps instead of T."""
    join = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
    return jax.lax.associative_scan(join, (keep, add))[1]


def _recur_forward(keep: Array, add: Array) -> tuple[Array, tuple[Array, Array]]:
    out = recur(keep, add)
    return out, (keep, out)


def _recur_backward(saved: tuple[Array, Array], grad: Array) -> tuple[Array, Array]:
    """The adjoint is the same recurrence, backwards: one pass where automatic differentiation makes several."""
    keep, out = saved
    after = jnp.concatenate([keep[1:], jnp.zeros_like(keep[:1])])
    back = recur(after[::-1], grad[::-1])[::-1]
    before = jnp.concatenate([jnp.zeros_like(out[:1]), out[:-1]])
    return back * before, back


recur.defvjp(_recur_forward, _recur_backward)
