"""How a policy remembers: not at all, by a GRU, or by a linear recurrence that is parallel in time.

All three are read alike. `step` takes one step; `sweep` takes a whole segment [T, N, ...] at once and gives what
`step` after `step` would. Memory is emptied wherever an episode starts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

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


def core_init(key: Key, core: str, width: int) -> Any:
    """Weights of the core; () for none."""
    if core == "none":
        return ()
    k1, k2 = jax.random.split(key)
    scale = width**-0.5
    if core == "gru":
        into = Layer(scale * jax.random.normal(k1, (3 * width, width)), jnp.zeros(3 * width))
        square = lambda k: jax.nn.initializers.orthogonal()(k, (width, width), jnp.float32)
        back = Layer(jnp.concatenate([square(k) for k in jax.random.split(k2, 3)]), jnp.zeros(3 * width))
        return Gru(into, back)
    # gates open at rates from half a step to fifty: what must be remembered for how long is not known beforehand
    rates = jnp.linspace(-4.0, 0.0, width)
    return Linear(
        Layer(scale * jax.random.normal(k1, (2 * width, width)), jnp.concatenate([rates, jnp.zeros(width)]))
    )


def empty(core: str, width: int) -> Any:
    """Memory of one episode before its first step."""
    return () if core == "none" else jnp.zeros(width)


def step(params: Any, memory: Any, x: Array, start: Array) -> tuple[Array, Any]:
    """What the core says at one step [..., W], and what it remembers of it."""
    if isinstance(params, Gru):
        memory = _gru(params.back, dense(params.into, x), memory, start)
        return memory, memory
    if isinstance(params, Linear):
        keep, add = _gates(params, x, start)
        memory = keep * memory + add
        return x + memory, memory
    return x, ()


def sweep(params: Any, memory: Any, x: Array, start: Array) -> Array:
    """What the core says at every step of a segment: x [T, N, W], start [T, N], memory [N, W] before it."""
    if isinstance(params, Gru):
        inputs = dense(params.into, x)  # one product for all steps: the loop keeps only what must wait

        def one(memory: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
            memory = _gru(params.back, at[0], memory, at[1])
            return memory, memory

        return jax.lax.scan(one, memory, (inputs, start), unroll=UNROLL.get(jax.default_backend(), 1))[1]
    if isinstance(params, Linear):
        keep, add = _gates(params, x, start)
        add = add.at[0].add(keep[0] * memory)
        return x + recur(keep, add)
    return x


def _gru(back: Layer, inputs: Array, memory: Array, start: Array) -> Array:
    memory = memory * (1 - start[..., None])
    r, z, n = jnp.split(inputs, 3, -1)
    hr, hz, hn = jnp.split(dense(back, memory), 3, -1)
    r, z = jax.nn.sigmoid(r + hr), jax.nn.sigmoid(z + hz)
    return (1 - z) * jnp.tanh(n + r * hn) + z * memory


def _gates(params: Linear, x: Array, start: Array) -> tuple[Array, Array]:
    gate, content = jnp.split(dense(params.into, x), 2, -1)
    gate = jax.nn.sigmoid(gate)
    return (1 - gate) * (1 - start[..., None]), gate * content


@jax.custom_vjp
def recur(keep: Array, add: Array) -> Array:
    """h_t = keep_t h_{t-1} + add_t along the first axis, h_{-1} = 0, in log T steps instead of T."""
    join = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
    return jax.lax.associative_scan(join, (keep, add))[1]


def _recur_forward(keep: Array, add: Array) -> tuple[Array, Any]:
    out = recur(keep, add)
    return out, (keep, out)


def _recur_backward(saved: Any, grad: Array) -> tuple[Array, Array]:
    """The adjoint is the same recurrence, backwards: one pass where automatic differentiation makes several."""
    keep, out = saved
    after = jnp.concatenate([keep[1:], jnp.zeros_like(keep[:1])])
    back = recur(after[::-1], grad[::-1])[::-1]
    before = jnp.concatenate([jnp.zeros_like(out[:1]), out[:-1]])
    return back * before, back


recur.defvjp(_recur_forward, _recur_backward)
