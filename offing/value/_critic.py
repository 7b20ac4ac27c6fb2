"""Critics of many policies, trained in one program: the iteration that FQE and the doubly robust estimate share.

    q(s, a) <- (1 - discount) r + discount * (1 - done) * qbar(s', pi(s'))

q is the value a step, in standard deviations of the reward; qbar trails q. Targets are held to what the log's
rewards can add up to (where episodes end, that includes nothing: else a short episode is paid as an endless one).
Members differ by their first weights and by a Bayesian bootstrap over episodes.

Training stops where the value has settled. The slowest error of the backup shrinks by track * (1 - discount) an
update; from the drift d between two windows of n updates, d / (exp(n track (1 - discount)) - 1) is left to go.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..compiling import compiled
from ..hypers import hypers
from ..nets import Net, mlp, mlp_init, tower
from ..optim import Learner, adam, descend, start
from ..types import Array, Box, Discrete, Key, Policy
from ._view import Rows, Sample, Scale, choose, enter, smooth
from .pool import ROUNDS, Training, policies_in

WINDOW = 4  # rounds that drift is measured between
UNROLL = {"gpu": 5}  # updates to a turn of the loop: fewer launches on a GPU, only longer compilation elsewhere
KEEP = 32 * 2**20  # numbers that the actions of a pool at all rows may take
BLOCK = 1_024  # rows that policies act at together for that
DRAWS = 32  # actions of a policy that samples, wherever its value is read


@hypers
class Hypers(Training):
    """Defaults: Fu et al.'s, with an ensemble and an end; the preset `paper` is theirs alone."""

    track: float = 0.005  # share of the critic that its trailing copy takes over at every update
    members: int = 4
    bootstrap: float = 1.0  # 0: all episodes count alike; 1: Bayesian bootstrap over episodes
    tolerance: float = 0.01  # what may be left to go, in standard deviations of the reward a step; 0 never stops
    sampled: bool = False  # judge the policy that samples, not the one that does what it thinks best


class Critics(NamedTuple):
    """One trailing critic for each policy and member, and how they came about."""

    params: Net  # [P, M, ...]
    curve: Array  # [ROUNDS, P, M]  value a step after each round, in the reward's units
    rounds: Array  # [P]  rounds until the policy's value had settled; ROUNDS if it never did
    left: Array  # [P]  what was left to go then, in those units
    clipped: Array  # [P]  share of the last round's targets that were held to the range


def value_of(critic: Net, x: Array) -> Array:
    """q [...] of one critic at what it reads [..., S + A]."""
    return mlp(critic, x)[..., 0]


def in_training(critic: Net, x: Array) -> Array:
    """As `value_of`, in bfloat16 inside where that is faster; not for values that are reported."""
    return tower(critic, x)[..., 0]


def loss(critic: Net, x: Array, target: Array, weight: Array) -> tuple[Array, None]:
    """Weighted squared error of one critic."""
    return jnp.mean(weight * jnp.square(in_training(critic, x) - target)), None


def weights(key: Key, members: int, bootstrap: Array | float, unit: Array) -> Array:
    """How much each row counts for each member [N, M]: alike within an episode, exponential between them."""
    drawn = jax.random.exponential(key, (unit.shape[0], members))[unit]
    return 1 - bootstrap + bootstrap * drawn


class Frame(NamedTuple):
    """What a training reads and does not change."""

    hypers: Hypers
    pool: Policy
    sample: Sample
    weight: Array  # [N, M]
    actions: Box | Discrete
    smoothing: Array | None
    after: Array | None  # [P, N, A]  what policies do next, where that is computed once; None: at every update

    @property
    def count(self) -> int:
        return policies_in(self.pool)


Carry = tuple[Learner[Net], Net]  # critics and their trailing copies [P, M, ...]


class Now(NamedTuple):
    """A training between two rounds."""

    number: Array  # []
    learner: Learner[Net]  # [P, M, ...]
    bar: Net  # [P, M, ...]
    curve: Array  # [ROUNDS, P, M]
    rounds: Array  # [P]
    left: Array  # [P]
    clipped: Array  # [P]


@partial(compiled, static_argnames="actions")
def fit(
    key: Key,
    hypers: Hypers,
    pool: Policy,
    sample: Sample,
    actions: Box | Discrete,
    smoothing: Array | None = None,
) -> Critics:
    """Critics of all policies in one program: minibatches are gathered once, next actions are each policy's."""
    k1, k2, k3, k4 = jax.random.split(key, 4)
    weight = weights(k1, hypers.members, hypers.bootstrap, sample.unit)
    after = None if hypers.sampled else once(pool, sample.rows.next_obs, actions)
    frame = Frame(hypers, pool, sample, weight, actions, smoothing, after)
    sizes = hypers.sizes(sample.rows.x.shape[-1])
    nets = jax.vmap(lambda k: mlp_init(k, sizes, last=0.01))(jax.random.split(k2, hypers.members))
    nets = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (frame.count, *leaf.shape)), nets)
    blank = jnp.zeros(frame.count)
    curve = jnp.zeros((ROUNDS, frame.count, hypers.members))
    now = Now(jnp.asarray(0), start(nets), nets, curve, jnp.full(frame.count, ROUNDS), blank + jnp.inf, blank)
    more = lambda now: (now.number < ROUNDS) & jnp.any(now.rounds == ROUNDS)
    now = jax.lax.while_loop(more, partial(_round, k3, frame, acts(k4, frame, sample.starts)), now)
    return Critics(now.bar, now.curve, now.rounds, now.left, now.clipped)


def once(pool: Policy, obs: Array, actions: Box | Discrete) -> Array | None:
    """What policies that do not sample do at all observations [N, S]: [P, N, A]; None if that is too much to keep.

    A training asks for the same rows over and over: computed once, they are gathered like the rest of a minibatch.
    """
    count, rows = policies_in(pool), obs.shape[0]
    if count * rows * actions.width > KEEP:
        return None
    blocks = -(-rows // BLOCK)
    padded = obs[jnp.minimum(jnp.arange(blocks * BLOCK), rows - 1)].reshape(blocks, BLOCK, -1)
    one = lambda part: jax.vmap(lambda policy: choose(None, policy, part, actions))(pool)
    return jnp.moveaxis(jax.lax.map(one, padded), 1, 0).reshape(count, blocks * BLOCK, -1)[:, :rows]


def acts(key: Key, frame: Frame, obs: Array, chosen: Array | None = None) -> Array:
    """Observations [B, S] with what each policy does there, as critics read them [P, B, S + A]."""
    k1, k2 = jax.random.split(key)
    hypers, actions, smoothing = frame.hypers, frame.actions, frame.smoothing
    if chosen is None:
        ask = k1 if hypers.sampled else None
        chosen = jax.vmap(lambda policy: choose(ask, policy, obs, actions))(frame.pool)
    if smoothing is not None and not hypers.sampled:
        chosen = jax.vmap(lambda action: smooth(k2, action, actions, smoothing))(chosen)
    return enter(frame.sample.scale, actions, jnp.broadcast_to(obs, (frame.count, *obs.shape)), chosen)


def _update(frame: Frame, carry: Carry, at: tuple[Key, Rows, Array, Array, Array]) -> tuple[Carry, Array]:
    key, batch, weight, number, index = at
    hypers, discount, scale = frame.hypers, frame.sample.discount, frame.sample.scale
    chosen = None if frame.after is None else frame.after[:, index]
    rate, after = adam(number, hypers.lr, hypers.decay), acts(key, frame, batch.next_obs, chosen)

    def one(learner: Learner[Net], bar: Net, after: Array, weight: Array) -> tuple[Learner[Net], Net, Array]:
        aim = (1 - discount) * batch.reward + discount * batch.mask * in_training(bar, after)
        target = jnp.clip(aim, scale.low, scale.high)
        learner, _, _ = descend(learner, rate, loss, batch.x, target, weight)
        bar = jax.tree.map(lambda old, new: old + hypers.track * (new - old), bar, learner.params)
        return learner, bar, jnp.mean(aim != target)

    each = jax.vmap(jax.vmap(one, (0, 0, None, 1)), (0, 0, 0, None))  # policies, members
    learner, bar, clipped = each(carry[0], carry[1], after, weight)
    return (learner, bar), clipped.mean(1)


def minibatches(key: Key, hypers: Training, sample: Sample) -> tuple[Array, Rows]:
    """The rows of as many updates as are made in one go: which they are [C, B], and what they hold."""
    index = jax.random.randint(key, (hypers.chunk, hypers.batch_size), 0, sample.size)
    return index, jax.tree.map(lambda leaf: leaf[index], sample.rows)


def _many(frame: Frame, carry: Carry, at: tuple[Key, Array]) -> tuple[Carry, Array]:
    hypers = frame.hypers
    k1, k2 = jax.random.split(at[0])
    index, batch = minibatches(k1, hypers, frame.sample)
    numbers = at[1] + jnp.arange(hypers.chunk)
    xs = (jax.random.split(k2, hypers.chunk), batch, frame.weight[index], numbers, index)
    turns = min(UNROLL.get(jax.default_backend(), 1), hypers.chunk)
    carry, clipped = jax.lax.scan(partial(_update, frame), carry, xs, unroll=turns)
    return carry, clipped.mean(0)


def _round(key: Key, frame: Frame, first: Array, now: Now) -> Now:
    """One round of updates. A policy whose value has settled keeps its critics; the others go on."""
    hypers, number = frame.hypers, now.number
    going = now.rounds == ROUNDS  # [P]
    counts = number * hypers.per_round + jnp.arange(0, hypers.per_round, hypers.chunk)
    keys = jax.random.split(jax.random.fold_in(key, number), len(counts))
    new, held = jax.lax.scan(partial(_many, frame), (now.learner, now.bar), (keys, counts))
    keep = lambda new, old: jnp.where(going.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    learner, bar = jax.tree.map(keep, new, (now.learner, now.bar))
    value = jax.vmap(jax.vmap(lambda bar, x: value_of(bar, x).mean(), (0, None)))(bar, first)
    curve = jnp.asarray(now.curve).at[number].set(value)
    left = remaining(curve, number, hypers, frame.sample.discount)
    settled = (left <= hypers.tolerance) & (number + 1 >= 2 * WINDOW)
    rounds = jnp.where(going & settled, number + 1, now.rounds)
    left, clipped = keep(left, now.left), keep(held.mean(0), now.clipped)
    return Now(number + 1, learner, bar, curve, rounds, left, clipped)


def remaining(curve: Array, number: Array, hypers: Hypers, discount: Array) -> Array:
    """What each policy's value still has to go after round `number` [P], by its drift over the last windows."""
    middle = curve.mean(-1)
    at = lambda back: jax.lax.dynamic_slice_in_dim(middle, jnp.maximum(number + 1 - back, 0), WINDOW).mean(0)
    shrink = jnp.expm1(WINDOW * hypers.per_round * hypers.track * (1 - discount))
    return jnp.abs(at(WINDOW) - at(2 * WINDOW)) / jnp.maximum(shrink, 1e-12)


@partial(compiled, static_argnames=("actions", "sampled"))
def read(
    key: Key, critics: Net, pool: Policy, scale: Scale, obs: Array, actions: Box | Discrete, sampled: bool
) -> Array:
    """qbar(s, pi(s)) of every policy and member at observations [K, S]: [P, M, K]."""

    def one(critic: Net, policy: Policy, key: Key | None) -> Array:
        x = enter(scale, actions, obs, choose(key, policy, obs, actions))
        return jax.vmap(value_of, (0, None))(critic, x)

    if not sampled:
        return jax.vmap(partial(one, key=None))(critics, pool)
    each = lambda key: jax.vmap(partial(one, key=key))(critics, pool)
    return jax.lax.map(each, jax.random.split(key, DRAWS)).mean(0)


@partial(compiled, static_argnames=("actions", "sampled"))
def bellman(
    key: Key,
    critics: Net,
    pool: Policy,
    scale: Scale,
    rows: Rows,
    discount: Array,
    actions: Box | Discrete,
    sampled: bool,
) -> Array:
    """Root of the mean squared Bellman error over that of the targets about their mean [P]."""
    after = read(key, critics, pool, scale, rows.next_obs, actions, sampled)
    values = jax.vmap(jax.vmap(value_of, (0, None)), (0, None))(critics, rows.x)
    aim = (1 - discount) * rows.reward + discount * rows.mask * after
    return jnp.sqrt(jnp.mean(jnp.square(values - aim), (1, 2)) / jnp.maximum(jnp.var(aim, (1, 2)), 1e-12))
