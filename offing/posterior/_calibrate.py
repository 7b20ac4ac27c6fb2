"""Chance as the log has it: rows that a fold has not seen, in terms of what its worlds thought of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..types import Array, Dataset, Posterior
from ._forest import with_trees
from ._kinds import Block, Kinds, targets
from ._world import SURE, Chance, Expect, Paid, Sample, Theta, natural

TABLE = 2_048  # rows that chance is drawn from
CERTAINTIES = (1.0, 0.3, 0.1, 0.03, 0.01)  # how sure ends may be, from as likely as worlds say to certain
MANY = 32_768  # rows that are asked about ends, which may be few
ENDS = 3  # ends among them, fewer than which say nothing of it
LAST = 256  # rows that the chance of an end's reward is drawn from


class Thoughts(NamedTuple):
    """What the worlds of a fold think of logged rows, together."""

    z: Array  # [N, S + 1]  residuals of amounts, in units of their standard deviation
    moved: Array  # [N, G]  probability that a gate is left
    chosen: tuple[Array, ...]  # of each choice, the probabilities of its values [N, K]


@partial(compiled, static_argnames="expect")
def _thoughts(theta: Theta, expect: Expect, memory: Any, rows: tuple[Array, ...]) -> Thoughts:
    world, (obs, action, after, reward, done) = expect.world, rows

    def one(theta: Theta) -> tuple[Array, Array, Array, tuple[Array, ...]]:
        x = world.enter(theta, memory, obs, action)
        says, pays = world.says(theta, x, after - obs), world.pays(theta, x, obs, after, done)
        state = jnp.clip(obs + says.mean, *theta.values.walls) - obs
        mean, std = (jnp.concatenate(each, -1) for each in ((state, pays.mean), (says.std, pays.std)))
        moved = jnp.concatenate([says.chances.moved, pays.chances.moved], -1)
        chosen = [c[..., i, :] for c in (says.chances.chosen, pays.chances.chosen) for i in range(c.shape[-2])]
        return mean, jnp.square(std), moved, tuple(chosen)

    mean, variance, moved, chosen = jax.tree.map(lambda leaf: leaf.mean(0), jax.vmap(one)(theta))
    y = jnp.concatenate([after - obs, reward[:, None]], -1)
    return Thoughts((y - mean) / jnp.sqrt(variance), moved, chosen)


def calibrate(
    posterior: Posterior, seen: Sequence[Dataset], unseen: Sequence[Dataset], share: np.ndarray
) -> Posterior:
    """The worlds with chance as the log has it, and with trees for what ends earn where these tell it better.

    `seen` and `unseen` are rows that each fold has learned from and has not, `share` is how much of the squared
    residual is chance [S + 1].
    """
    folds = [posterior.fold(f) for f in range(posterior.folds)]
    chances = [_chance(*natural(fold, rows), share) for fold, rows in zip(folds, unseen, strict=True)]
    every = lambda *leaves: np.concatenate(
        [np.broadcast_to(leaf, (fold.members, *np.shape(leaf))) for fold, leaf in zip(folds, leaves, strict=True)]
    )
    drawn = replace(posterior, theta=posterior.theta._replace(chance=jax.tree.map(every, *chances)))
    assert isinstance(posterior.sample, Sample)
    return with_trees(drawn, seen, unseen, posterior.sample.earns)


def _chance(fold: Posterior, data: Dataset, share: np.ndarray) -> Chance:
    expect = fold.moments
    assert isinstance(expect, Expect)
    kinds, over = expect.world.kinds, np.asarray(data.steps.done)[: data.rows] > 0
    which = lambda index, most: np.resize(index[_evenly(len(index), most)], most)
    # the same numbers for every log, so that programs are shared
    every, few = np.arange(data.rows), over.sum() < ENDS
    rows = np.concatenate([which(every, TABLE), which(every if few else np.flatnonzero(over), LAST)])
    steps, memory = data.steps, fold.along(data)
    at = lambda leaf: np.asarray(leaf)[rows]
    columns = tuple(at(leaf) for leaf in (steps.obs, steps.action, steps.next_obs, steps.reward, steps.done))
    thoughts = _thoughts(fold.theta, expect, jax.tree.map(at, memory), columns)
    values = jax.tree.map(lambda leaf: np.asarray(leaf[0]), fold.theta.values)
    after = np.concatenate([np.asarray(columns[2]), np.asarray(columns[3])[:, None]], 1)
    truth = targets(kinds, values, np.asarray(columns[0]), after)
    residuals, amount = np.array(thoughts.z, np.float64), np.array(truth.amount)
    low, high = _places(kinds, thoughts, np.asarray(truth.moved), np.asarray(truth.chosen))
    paid = slice(kinds.of_state().ways, None)
    ended = over[rows[:TABLE]] & (not few)
    if ended.any() and not ended.all():  # in the table of steps that go on these earn what another of them does
        other = np.random.default_rng(1).choice(np.flatnonzero(~ended), ended.sum())
        gone = np.flatnonzero(ended)
        residuals[gone, -1], amount[gone, -1] = residuals[other, -1], amount[other, -1]
        low[gone, paid], high[gone, paid] = low[other, paid], high[other, paid]
    z, last = (_amounts(residuals[part], amount[part]) for part in (slice(TABLE), slice(TABLE, None)))
    single = lambda *parts: (np.asarray(a, np.float32) for a in parts)
    return Chance(
        *single(z, low[:TABLE], high[:TABLE], share),
        ends=np.asarray(_sure(fold, data, memory), np.float32),
        last=Paid(*single(last[:, -1:], low[TABLE:, paid], high[TABLE:, paid])),
    )


def _amounts(z: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Residuals about nought; where a row holds no amount, that of another row."""
    rng, z = np.random.default_rng(0), np.nan_to_num(z)
    for d in range(z.shape[1]):
        there = np.flatnonzero(amount[:, d] > 0)
        if len(there):
            away = np.flatnonzero(amount[:, d] == 0)
            z[away, d] = z[rng.choice(there, len(away)), d]
    return z - z.mean(0)


def _places(
    kinds: Kinds, thoughts: Thoughts, moved: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where what happened lies in what was thought possible, from and to [N, Q]: of the state's gates and choices,
    then of the reward's.
    """
    rows = len(moved)

    def part(block: Block, gates: slice, choices: slice) -> list[tuple[np.ndarray, np.ndarray]]:
        places = []
        p = np.asarray(thoughts.moved, np.float64)[:, gates]
        for g in range(len(block.gates)):
            left = moved[:, gates][:, g] > 0
            places.append((np.where(left, 1 - p[:, g], 0.0), np.where(left, 1.0, 1 - p[:, g])))
        for i, probability in enumerate(thoughts.chosen[choices]):
            total = np.cumsum(np.pad(np.asarray(probability, np.float64), ((0, 0), (1, 0))), 1)
            index = chosen[:, choices][:, i]
            places.append((total[np.arange(rows), index], total[np.arange(rows), index + 1]))
        return places

    state = kinds.of_state()
    gates, choices = len(state.gates), len(state.choices)
    both = part(state, slice(0, gates), slice(0, choices))
    both += part(kinds.of_reward(), slice(gates, None), slice(choices, None))
    if not both:
        return np.zeros((rows, 0)), np.ones((rows, 0))
    low, high = (np.stack(side, 1) for side in zip(*both, strict=True))
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _sure(fold: Posterior, data: Dataset, memory: Any) -> float:
    """How certain ends are, as the rows say: of CERTAINTIES, the likeliest.

    Worlds are asked as they will be, of where they themselves think that a step leads. Where ends lie on a
    sharp edge, certainty fits; where what ends an episode is not seen (how long something stood still, what the
    ground is like), chances do.
    """
    rows = _evenly(data.rows, MANY)
    done = np.asarray(data.steps.done, np.float64)[rows]
    if fold.task.done is not None or done.sum() < ENDS or not isinstance(fold.moments, Expect):
        return 1.0
    same = np.resize(rows, 1 << (len(rows) - 1).bit_length())  # of few sizes, so that programs are shared
    at = lambda leaf: np.asarray(leaf)[same]
    logit = _logits(fold.theta, fold.moments, jax.tree.map(at, memory), at(data.steps.obs), at(data.steps.action))
    logit = logit[:, : len(rows)]
    loss = []
    for scale in CERTAINTIES:
        sure = np.clip(1 / (1 + np.exp(-np.clip(logit / max(scale, SURE), -50, 50))), 1e-6, 1 - 1e-6)
        loss.append(-np.mean(np.log(np.where(done > 0.5, sure, 1 - sure))))
    return CERTAINTIES[int(np.argmin(loss))]


@partial(compiled, static_argnames="expect")
def _logits_of(theta: Theta, expect: Expect, memory: Any, obs: Array, action: Array) -> Array:
    p = jax.vmap(expect, (0, None, None, None))(theta, memory, obs, action).terminated
    return jnp.log(p + 1e-12) - jnp.log1p(-p + 1e-12)


def _logits(theta: Theta, expect: Expect, memory: Any, obs: Array, action: Array) -> np.ndarray:
    return np.asarray(_logits_of(theta, expect, memory, obs, action), np.float64)  # [M, N]


def _evenly(rows: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, rows - 1, min(most, rows)).astype(int))
