"""DualDICE (Nachum et al., 2019; settings of Fu et al., 2021): how much more often a policy is where the log is.

    min_nu max_zeta  E_log[ u(s, a) zeta(s, a) - zeta(s, a)^2 / 2 ] - (1 - discount) E_starts[ nu(s, pi(s)) ]
    u(s, a) = nu(s, a) - discount * (1 - done) * nu(s', pi(s'))

At the saddle zeta is the ratio of the policy's discounted occupancy to the log's, and the value is the mean of
zeta * reward / (1 - discount). Nothing forces zeta to be positive or to have mean 1, so its mean tells of its
health: it is due to be 1, or where episodes end the share of the discounted time that the policy is still going.
Adam has no momentum here, since the two nets chase each other. Members differ as FQE's do, and are the spread.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compiling import compiled
from ...hypers import hypers
from ...nets import Net, mlp, mlp_init
from ...types import Array, Box, Dataset, Discrete, Key, Policy, Task
from ...wording import number
from .._critic import minibatches, once, weights
from .._view import Rows, Sample, below_one, choose, enter, sample_of
from ..estimate import Estimate, ValueEstimate
from ..estimator import Estimator, by_scale
from ..pool import ROUNDS, Training, only_memoryless, policies_in, pooled

SECOND = 0.99  # Adam's memory of squared gradients; it has none of gradients
WINDOW = 4  # rounds that drift is measured between
BLOCK = 4_096  # rows read at once
NEGATIVE = 0.1  # mean negative part of zeta, which is a ratio and has none, that goes without a word
OFF = 0.2  # a mean of zeta further than this from 1 is noted


@hypers
class Hypers(Training):
    """`lr` is nu's; zeta must be quicker, as it answers nu."""

    lr: float = 1e-4
    zeta_lr: float = 1e-3
    steady: float = 0.001  # share of zeta that the averaged one takes over at every update; 1: no averaging
    members: int = 4
    bootstrap: float = 1.0
    tolerance: float = 0.02  # drift that is called settled, in standard deviations of the reward a step
    sampled: bool = False


class Nets(NamedTuple):
    nu: Net
    zeta: Net


class State(NamedTuple):
    """Nets of each policy and member, their squared gradients, and the average of zeta; leaves [P, M, ...]."""

    nets: Nets
    second: Nets
    steady: Net


class Frame(NamedTuple):
    """What a training of ratios reads and does not change; what is done at starts too."""

    hypers: Hypers
    pool: Policy
    sample: Sample
    weight: Array  # [N, M]
    start_weight: Array  # [E, M]
    actions: Box | Discrete
    after: Array | None  # [P, N, A]  what policies do next, where that is computed once; None: at every update
    begun: Array | None  # [P, E, A]  and at starts


def saddle(
    nets: Nets, batch: Rows, weight: Array, after: Array, first: Array, first_weight: Array, discount: Array
) -> Array:
    """What nu lowers and zeta raises, on one minibatch."""
    x, mask = batch.x, batch.mask
    nu, zeta = (mlp(net, x)[..., 0] for net in nets)
    change = nu - discount * mask * mlp(nets.nu, after)[..., 0]
    inside = jnp.mean(weight * (change * zeta - 0.5 * jnp.square(zeta)))
    return inside - (1 - discount) * jnp.mean(first_weight * mlp(nets.nu, first)[..., 0])


@partial(compiled, static_argnames="actions")
def fit(
    key: Key, hypers: Hypers, pool: Policy, sample: Sample, actions: Box | Discrete
) -> tuple[Net, Array, Array]:
    """Averaged zetas of all policies [P, M, ...], what they say of the log, and the curve of values by round.

    Of the log: the mean of zeta * reward, of zeta, of its negative part and of its square, all [P, M].
    """
    k1, k2, k3 = jax.random.split(key, 3)
    w1, w2 = jax.random.split(k1)
    weight = weights(w1, hypers.members, hypers.bootstrap, sample.unit)
    start_weight = weights(w2, hypers.members, hypers.bootstrap, jnp.arange(sample.starts.shape[0]))
    places = (sample.rows.next_obs, sample.starts)
    chosen = (None, None) if hypers.sampled else (once(pool, obs, actions) for obs in places)
    frame = Frame(hypers, pool, sample, weight, start_weight, actions, *chosen)
    sizes = hypers.sizes(sample.rows.x.shape[-1])

    def begin(key: Key) -> State:
        one, two = jax.random.split(key)
        nets = Nets(mlp_init(one, sizes, last=0.01), mlp_init(two, sizes, last=0.01))
        return State(nets, jax.tree.map(jnp.zeros_like, nets), nets.zeta)

    count = policies_in(pool)
    state = jax.vmap(begin)(jax.random.split(k2, hypers.members))
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), state)
    numbers = jnp.arange(ROUNDS)
    state, curve = jax.lax.scan(partial(_round, frame), state, (jax.random.split(k3, ROUNDS), numbers))
    return state.steady, measure(frame, state.steady), curve


def _round(frame: Frame, state: State, at: tuple[Key, Array]) -> tuple[State, Array]:
    hypers = frame.hypers
    counts = at[1] * hypers.per_round + jnp.arange(0, hypers.per_round, hypers.chunk)
    state, _ = jax.lax.scan(partial(_many, frame), state, (jax.random.split(at[0], len(counts)), counts))
    some, rows = jnp.arange(BLOCK) % frame.sample.size, frame.sample.rows
    x, reward, weight = rows.x[some], rows.reward[some], frame.weight[some]
    one = lambda net, weight: jnp.mean(weight * mlp(net, x)[..., 0] * reward)
    return state, jax.vmap(jax.vmap(one, (0, 1)), (0, None))(state.steady, weight)


def _many(frame: Frame, state: State, at: tuple[Key, Array]) -> tuple[State, None]:
    hypers = frame.hypers
    k1, k2, k3 = jax.random.split(at[0], 3)
    index, batch = minibatches(k1, hypers, frame.sample)
    starts = frame.sample.starts
    begun = jax.random.randint(k2, index.shape, 0, starts.shape[0])
    first = (starts[begun], frame.start_weight[begun])
    numbers = at[1] + jnp.arange(hypers.chunk)
    xs = (jax.random.split(k3, hypers.chunk), batch, frame.weight[index], first, numbers, (index, begun))
    return jax.lax.scan(partial(_update, frame), state, xs)


def _update(
    frame: Frame,
    state: State,
    at: tuple[Key, Rows, Array, tuple[Array, Array], Array, tuple[Array, Array]],
) -> tuple[State, None]:
    key, batch, weight, (first, first_weight), number, (row, place) = at
    hypers, actions = frame.hypers, frame.actions
    obs = jnp.concatenate([batch.next_obs, first])
    if frame.after is not None and frame.begun is not None:
        chosen = jnp.concatenate([frame.after[:, row], frame.begun[:, place]], 1)
    else:
        chosen = jax.vmap(lambda policy: choose(key if hypers.sampled else None, policy, obs, actions))(frame.pool)
    went = enter(frame.sample.scale, actions, jnp.broadcast_to(obs, (*chosen.shape[:-1], obs.shape[-1])), chosen)
    after, begun = jnp.split(went, 2, 1)  # [P, B, S + A] each
    rates = (hypers.lr, -hypers.zeta_lr)  # nu goes down, zeta up

    def one(state: State, after: Array, begun: Array, weight: Array, first_weight: Array) -> State:
        grads = jax.grad(saddle)(state.nets, batch, weight, after, begun, first_weight, frame.sample.discount)
        second = jax.tree.map(lambda v, g: SECOND * v + (1 - SECOND) * g * g, state.second, grads)
        enough = 1 - SECOND ** (number + 1.0)

        def move(rate: float, net: Net, grad: Net, second: Net) -> Net:
            step = lambda p, g, v: p - rate * g / (jnp.sqrt(v / enough) + 1e-8) - jnp.abs(rate) * hypers.decay * p
            return jax.tree.map(step, net, grad, second)

        nets = Nets(*(move(*parts) for parts in zip(rates, state.nets, grads, second, strict=True)))
        steady = jax.tree.map(lambda old, new: old + hypers.steady * (new - old), state.steady, nets.zeta)
        return State(nets, second, steady)

    each = jax.vmap(jax.vmap(one, (0, None, None, 1, 1)), (0, 0, 0, None, None))  # policies, members
    return each(state, after, begun, weight, first_weight), None


def measure(frame: Frame, zetas: Net) -> Array:
    """Weighted means over the log of zeta * reward, zeta, its negative part and its square: [4, P, M]."""
    log, size = frame.sample.rows, frame.sample.size
    rows = log.reward.shape[0]
    blocks = -(-rows // BLOCK)

    def one(total: Array, begin: Array) -> tuple[Array, None]:
        index = jnp.minimum(begin + jnp.arange(BLOCK), rows - 1)
        used = (begin + jnp.arange(BLOCK) < size)[:, None] * frame.weight[index]  # [B, M]
        z = jax.vmap(jax.vmap(lambda net: mlp(net, log.x[index])[..., 0]))(zetas)  # [P, M, B]
        parts = jnp.stack([z * log.reward[index], z, jnp.maximum(-z, 0.0), z * z])
        return total + jnp.einsum("qpmb,bm->qpm", parts, used), None

    first = jnp.zeros((4, *jax.tree.leaves(zetas)[0].shape[:2]))
    total, _ = jax.lax.scan(one, first, BLOCK * jnp.arange(blocks))
    counted = (jnp.arange(rows) < size)[:, None] * frame.weight
    return total / counted.sum(0)


@pooled(Hypers())
def dualdice(key: Key, pool: Policy, data: Dataset, task: Task, hypers: Hypers) -> list[Estimate]:
    """A policy's discounted value by DualDICE; needs transitions alone, and policies without memory."""
    only_memoryless(pool, "DualDICE")
    shared = below_one(task, "DualDICE")
    sample = sample_of(data, task)
    scale = sample.scale
    _, ratios, curve = fit(key, hypers, pool, sample, task.actions)
    ratios, curve = np.asarray(ratios, np.float64), np.asarray(curve, np.float64).mean(-1)
    drift = np.abs(curve[-WINDOW:].mean(0) - curve[-2 * WINDOW : -WINDOW].mean(0))
    span = 1 / (1 - task.discount)
    values = scale.earns(ratios[0]) * span  # [P, M]
    bounds = (float(scale.earns(scale.low)) * span, float(scale.earns(scale.high)) * span)
    ends = bool(np.any(np.asarray(data.steps.done)[: data.rows]))
    estimates = []
    for i, each in enumerate(values):
        health, notes = _health(hypers, ratios[:, i].mean(1), float(drift[i]), scale.reward_std * span, ends)
        estimates.append(Estimate(ValueEstimate(each[:, None], bounds=bounds), health, (*shared, *notes)))
    return estimates


def _health(
    hypers: Hypers, ratios: np.ndarray, drift: float, size: float, ends: bool
) -> tuple[dict[str, float], list[str]]:
    _, mean, negative, square = ratios
    settled = drift <= float(hypers.tolerance)
    health = {
        "mean_zeta": float(mean),
        "negative": float(negative),
        "effective": float(mean**2 / max(square, 1e-30)),
        "drift": drift * size,
        "converged": float(settled),
    }
    notes = []
    if mean > 1 + OFF or mean < (0.0 if ends else 1 - OFF):
        due = "at most 1" if ends else "1"
        notes.append(f"the mean of zeta is {mean:.2f}, where {due} was due: do not trust the figure")
    if not settled:
        notes.append("the value had not settled when training ended: give it more updates")
    return health, notes


def faults(estimate: Estimate) -> list[str]:
    """What its ratios say against it."""
    health, lines = estimate.health, []
    if any("the mean of zeta" in note for note in estimate.notes):  # it knows what is due where episodes end
        lines.append(f"the mean of its ratios is {number(health['mean_zeta'])}, where 1 is due")
    if health["negative"] > NEGATIVE:
        lines.append(f"its ratios, which cannot be negative, are so by {number(health['negative'])} on average")
    if not health["converged"]:
        lines.append("its value had not settled when training ended")
    return lines


estimator = Estimator(
    name="dualdice",
    words="DualDICE",
    estimate=dualdice,
    presets=by_scale(
        smoke=Hypers(width=8, depth=1, batch_size=16, updates=40, members=2),
        quick=Hypers(width=64, updates=10_000, lr=3e-4, zeta_lr=3e-3, members=3),
        large=Hypers(),
        paper=Hypers(updates=1_000_000, steady=1.0, members=1, bootstrap=0.0, sampled=True),
    ),
    health={
        "mean_zeta": "mean of the ratios: 1, or where episodes end at most 1, is due",
        "negative": "mean negative part of the ratios, of which there should be none",
        "effective": "share of the rows that count, by their ratios",
        "drift": "how much the value still moved at the end",
        "converged": "1 if the value had settled when training ended",
    },
    faults=faults,
    memoryless=True,
    endless=True,
)
