"""Who wrote the log? The behaviour, cloned by maximum likelihood where the log does not say how likely it was.

Continuous: a Gaussian through tanh, log-std in [-5, 2], actions held 1e-4 inside their box (Fu et al., 2021).
Choices: a softmax. The net is kept as it was when it did best on held-out episodes.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from ..compiling import compiled
from ..nets import Net, mlp, mlp_init
from ..optim import Learner, adam, descend, start
from ..types import Array, Box, Dataset, Discrete, Key, Task
from ._view import half, unit, units
from .pool import ROUNDS, Training

INSIDE = 1e-4
LOG_STD = (-5.0, 2.0)
HELD = 0.1  # share of the episodes that say when to stop
CAP = 4_096  # held-out rows that are read at every round
BLOCK = 8_192  # rows read at once


Tables = tuple[np.ndarray, int, np.ndarray, int]  # rows to learn from and their number; and to stop by
Carry = tuple[Learner[Net], Net, Array, Array]  # of a training: learner, best net, its loss, its round


class Cloned(NamedTuple):
    """Log-density of every logged action under the cloned behaviour, and how well that fits."""

    logp: Array  # [N]  in the log's own units
    nll: float  # held out, in nats a row
    best: int  # the round it was best in, of ROUNDS


def log_likelihood(net: Net, obs: Array, action: Array, actions: Box | Discrete) -> Array:
    """Log-density [...] of actions in the log's own units; `obs` in units of order one."""
    head = mlp(net, obs)
    if isinstance(actions, Discrete):
        return jnp.sum(jax.nn.log_softmax(head) * action, -1)
    mean, log_std = jnp.split(head, 2, -1)
    log_std = jnp.clip(log_std, *LOG_STD)
    inside = jnp.clip(unit(action, actions), INSIDE - 1, 1 - INSIDE)
    each = norm.logpdf(jnp.arctanh(inside), mean, jnp.exp(log_std))
    return jnp.sum(each - jnp.log1p(-jnp.square(inside)) - jnp.log(half(actions)), -1)


def clone(key: Key, hypers: Training, data: Dataset, task: Task) -> Cloned:
    """The behaviour of the log, and how likely it was to do what it did."""
    rows = data.rows
    steps = data.steps
    seen = np.asarray(steps.obs)[:rows]
    std = seen.std(0)
    obs = (jnp.asarray(steps.obs) - seen.mean(0)) / np.where(std > 1e-5, std, 1.0)
    train, valid = _parts(units(data)[:rows])
    pad = lambda index, width: np.resize(index, width).astype(np.int32)
    tables = (pad(train, len(steps.reward)), len(train), pad(valid, CAP), min(len(valid), CAP))
    net, nll, best = _fit(key, hypers, obs, jnp.asarray(steps.action), tables, task.actions)
    return Cloned(_read(net, obs, jnp.asarray(steps.action), task.actions), float(nll), int(best))


def _parts(unit_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows that say when to stop, by whole episodes; all for both if there is one."""
    rng = np.random.default_rng(0)
    names = np.unique(unit_of)
    if len(names) == 1:
        return np.arange(len(unit_of)), np.arange(len(unit_of))
    held = rng.permutation(names)[: max(1, round(HELD * len(names)))]
    out = np.isin(unit_of, held)
    return np.flatnonzero(~out), rng.permutation(np.flatnonzero(out))


@partial(compiled, static_argnames="actions")
def _fit(
    key: Key, hypers: Training, obs: Array, action: Array, tables: Tables, actions: Box | Discrete
) -> tuple[Net, Array, Array]:
    train, size, valid, valid_size = tables
    k1, k2 = jax.random.split(key)
    outputs = actions.n if isinstance(actions, Discrete) else 2 * actions.width
    net = mlp_init(k1, hypers.sizes(obs.shape[-1], outputs), last=0.01)
    counted = (jnp.arange(CAP) < valid_size) / valid_size

    def loss(net: Net, index: Array) -> tuple[Array, None]:
        return -jnp.mean(log_likelihood(net, obs[index], action[index], actions)), None

    def update(learner: Learner, at: tuple[Key, Array]) -> tuple[Learner, None]:
        index = train[jax.random.randint(at[0], (hypers.batch_size,), 0, size)]
        return descend(learner, adam(at[1], hypers.lr, hypers.decay), loss, index)[0], None

    def round_(carry: Carry, at: tuple[Key, Array]) -> tuple[Carry, None]:
        learner, kept, lowest, best = carry
        counts = at[1] * hypers.per_round + jnp.arange(hypers.per_round)
        learner, _ = jax.lax.scan(update, learner, (jax.random.split(at[0], hypers.per_round), counts))
        nll = -jnp.sum(counted * log_likelihood(learner.params, obs[valid], action[valid], actions))
        better = nll < lowest
        kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), learner.params, kept)
        return (learner, kept, jnp.minimum(nll, lowest), jnp.where(better, at[1], best)), None

    first = (start(net), net, jnp.asarray(jnp.inf), jnp.asarray(0))
    (_, kept, lowest, best), _ = jax.lax.scan(round_, first, (jax.random.split(k2, ROUNDS), jnp.arange(ROUNDS)))
    return kept, lowest, best


@partial(compiled, static_argnames="actions")
def _read(net: Net, obs: Array, action: Array, actions: Box | Discrete) -> Array:
    one = lambda row: log_likelihood(net, row[0], row[1], actions)
    return jax.lax.map(one, (obs, action), batch_size=BLOCK)
