"""Who drove which part of the log? One net clones them all, and a short code that is learned tells parts apart.

    max over net, code:  E_i log pi(a_i | s_i, code[part of i])  -  keep * mean |code|^2

A plain clone of a log whose driver kept learning is a blend of all that he was: nobody, and what it earns nobody
earned. With its code set to that of one part, this one does as was done there. Where all parts were driven alike,
codes say nothing, and every row teaches all. The net is kept as it was when it did best on rows that it did not
see.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..hypers import hypers
from ..nets import Net, mlp, mlp_init
from ..optim import Learner, adam, cosine, descend, start
from ..types import Array, Box, Dataset, Discrete, Key, Task
from ._behaviour import INSIDE, LOG_STD, log_likelihood
from ._view import half, unit
from .pool import ROUNDS, Training

HELD = 0.1  # share of the rows that say when to stop
CAP = 4_096  # of them that are read at every round


@hypers
class Hypers(Training):
    """Sizes and rates of the clone."""

    width: int = 64
    updates: int = 4_000
    lr: float = 3e-3
    code: int = 6  # numbers that tell a part from others
    keep: float = 1e-3  # how dear they are


Coded = tuple[Net, Array]  # the net, and the code of every part [B, C]
Shown = tuple[Array, Array, Array]  # observations, actions, and whose they are
Carry = tuple[Learner[Coded], Coded, Array]  # of a training: learner, what did best, and its loss


class Clone(NamedTuple):
    """A clone of every part that it was shown."""

    net: Net
    code: Array  # [B, C]
    mean: np.ndarray  # [S]  of observations, and their width
    std: np.ndarray


def clone(key: Key, hypers: Hypers, data: Dataset, task: Task, parts: list[np.ndarray]) -> Clone:
    """The clone of the parts of the log that have these rows, in their order."""
    rows = np.concatenate(parts)
    whose = np.repeat(np.arange(len(parts)), [len(part) for part in parts]).astype(np.int32)
    obs, action = np.asarray(data.steps.obs)[rows], np.asarray(data.steps.action)[rows]
    mean, std = obs.mean(0), obs.std(0)
    std = np.where(std > 1e-5, std, 1.0)
    order = np.random.default_rng(0).permutation(len(rows))
    held = order[: min(CAP, max(1, round(HELD * len(rows))))]
    seen = order if len(rows) < 2 else order[len(held) :]
    pick = lambda index: ((obs[index] - mean) / std, action[index], whose[index])
    net, code = _fit(key, hypers, pick(seen), pick(held), len(parts), task.actions)
    return Clone(net, code, mean, std)


@partial(compiled, static_argnames=("count", "actions"))
def _fit(key: Key, hypers: Hypers, seen: Shown, held: Shown, count: int, actions: Box | Discrete) -> Coded:
    k1, k2 = jax.random.split(key)
    outputs = actions.n if isinstance(actions, Discrete) else 2 * actions.width
    sizes = hypers.sizes(seen[0].shape[-1] + hypers.code, outputs)
    first = (mlp_init(k1, sizes, last=0.01), 0.1 * jax.random.normal(k2, (count, hypers.code)))

    def fit(params: Coded, rows: Shown) -> Array:
        net, code = params
        return -jnp.mean(log_likelihood(net, jnp.concatenate([rows[0], code[rows[2]]], -1), rows[1], actions))

    def loss(params: Coded, rows: Shown) -> tuple[Array, None]:
        return fit(params, rows) + hypers.keep * jnp.mean(jnp.sum(jnp.square(params[1]), -1)), None

    def update(learner: Learner[Coded], at: tuple[Key, Array]) -> tuple[Learner[Coded], None]:
        index = jax.random.randint(at[0], (hypers.batch_size,), 0, seen[0].shape[0])
        rate = adam(at[1], cosine(at[1], hypers.lr, hypers.updates, 0.1), hypers.decay)
        return descend(learner, rate, loss, jax.tree.map(lambda leaf: jnp.asarray(leaf)[index], seen))[0], None

    def round_(carry: Carry, at: tuple[Key, Array]) -> tuple[Carry, None]:
        learner, kept, lowest = carry
        counts = at[1] * hypers.per_round + jnp.arange(hypers.per_round)
        learner, _ = jax.lax.scan(update, learner, (jax.random.split(at[0], hypers.per_round), counts))
        nll = fit(learner.params, held)
        kept = jax.tree.map(lambda new, old: jnp.where(nll < lowest, new, old), learner.params, kept)
        return (learner, kept, jnp.minimum(nll, lowest)), None

    keys = jax.random.split(jax.random.fold_in(key, 1), ROUNDS)
    (_, kept, _), _ = jax.lax.scan(round_, (start(first), first, jnp.asarray(jnp.inf)), (keys, jnp.arange(ROUNDS)))
    return kept


class Row(NamedTuple):
    """Where something was done, and what."""

    obs: Array  # [..., S]
    action: Array  # [..., A]


def act(key: Key, cloned: Clone, whose: Array, obs: Array, logged: Row, actions: Box | Discrete) -> Array:
    """What would be done in part `whose` [...] where `obs` [..., S] is seen, had the chance been that of `logged`.

    The logged action lies somewhere in what the clone thought possible there; the same place is taken here. So
    chance has the log's own shape: what a controller does that now and then tries something else is no Gaussian.
    """
    there, here = _head(cloned, whose, logged.obs), _head(cloned, whose, obs)
    if isinstance(actions, Discrete):
        total = jnp.cumsum(jax.nn.softmax(there), -1)
        high = jnp.sum(total * logged.action, -1)
        low = high - jnp.sum(jax.nn.softmax(there) * logged.action, -1)
        u = low + (high - low) * jax.random.uniform(key, high.shape)
        below = jnp.cumsum(jax.nn.softmax(here), -1)[..., :-1] < u[..., None]
        return jax.nn.one_hot(below.sum(-1), actions.n)
    mean, std = _gaussian(there)
    inside = jnp.clip(unit(logged.action, actions), INSIDE - 1, 1 - INSIDE)
    z = (jnp.arctanh(inside) - mean) / std
    mean, std = _gaussian(here)
    return (jnp.array(actions.low) + jnp.array(actions.high)) / 2 + half(actions) * jnp.tanh(mean + std * z)


def _head(cloned: Clone, whose: Array, obs: Array) -> Array:
    x = jnp.concatenate([(obs - cloned.mean) / cloned.std, jnp.asarray(cloned.code)[whose]], -1)
    return mlp(cloned.net, x)


def _gaussian(head: Array) -> tuple[Array, Array]:
    mean, log_std = jnp.split(head, 2, -1)
    return mean, jnp.exp(jnp.clip(log_std, *LOG_STD))
