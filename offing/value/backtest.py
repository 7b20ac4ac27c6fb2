"""The log's own behaviour is the one policy whose return is known: is that what the worlds say of it?

For each fold of worlds, the episodes that none of them was fitted on are cut into blocks in the log's order. What
drove each block is cloned (`_clone`: one net, a code for each block), and the clone is rolled out in those worlds
from the block's own starts, for as long as its episodes could last, with the logged episode's own chance: where a
logged action was unlikely, so is the imagined one at that step. A block's prediction then stands beside what its
episodes truly earned, episode by episode, so that lucky starts and lucky actions do not count as errors.

What it can show: that worlds which never saw these episodes predict what policies like the logged ones earn, and
how far they are off. What it cannot: anything about ground the log does not cover; and a clone that is off looks
like worlds that are off. The logged mean is one of a few episodes, and its doubt is counted in the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from ..compiling import compiled
from ..data.dataset import runs
from ..pil import PIL
from ..posterior.walk import Place, fixed, memories
from ..types import Array, BadInput, Dataset, Key, Posterior, Task
from ._clone import Clone, Hypers, Row, act, clone
from .conformal import Conformal, calibrate
from .estimate import Error, Errors, ValueEstimate, corrected

EPISODES = 128  # that are rolled out for each fold, at most
BLOCKS = 10  # for each fold
FEWEST = 4  # episodes in a block
COPIES = 4  # imagined episodes for each logged one, in every world
DOUBT = 0.05  # a coverage that chance would fall short to less often than this did not hold


class Block(NamedTuple):
    """A stretch of the log: what its episodes earned, and what was predicted of them."""

    fold: int
    first: int  # episode, by its place in the log
    last: int
    episodes: int
    logged: float  # mean return of its episodes; what a cut one had earned by then
    predicted: ValueEstimate  # `starts` is the variance of the logged mean about what was predicted
    logged_value: float  # the same two, discounted
    predicted_value: ValueEstimate


class Backtest(NamedTuple):
    """Predictions of the log's own behaviour, by worlds that did not see it."""

    blocks: tuple[Block, ...]
    level: float
    folds: int = 1  # of the worlds
    episodes: int = 0  # of the log

    @property
    def inside(self) -> int:
        """Blocks whose logged return lies in the interval."""
        ends = [(block.logged, *block.predicted.interval(self.level)) for block in self.blocks]
        return sum(low <= logged <= high for logged, low, high in ends)

    @property
    def held(self) -> bool:
        """Whether as many lie inside as the level promises, luck allowed for."""
        return float(stats.binom.cdf(self.inside, len(self.blocks), self.level)) >= DOUBT

    def scores(self, correct: bool = True) -> list[float]:
        """How many deviations each logged return is from what was predicted, as it is before any widening.

        To `correct` worlds is to do as where they judge a policy, by what they were off on the other blocks.
        """
        every = [self._predicted(block, correct) for block in self.blocks]
        return [(b.logged - p.median) / max(p.deviation, 1e-12) for b, p in zip(self.blocks, every, strict=True)]

    def _predicted(self, block: Block, correct: bool) -> ValueEstimate:
        """What was predicted of a block, corrected if that is asked for, and not widened."""
        predicted = block.predicted._replace(widen=1.0)
        others = [other for other in self.blocks if other.fold == block.fold and other is not block]
        if not others or not correct:
            return predicted
        return corrected(predicted, _error([(b.episodes, b.logged, b.predicted) for b in others]), 1)

    def errors(self, folds: Sequence[int]) -> Errors | None:
        """What the worlds of these folds said too much of the log's own behaviour; None if one saw all of it."""
        each = [[block for block in self.blocks if block.fold == fold] for fold in folds]
        if not all(each):
            return None
        values = [_error([(b.episodes, b.logged_value, b.predicted_value) for b in blocks]) for blocks in each]
        returns = [_error([(b.episodes, b.logged, b.predicted) for b in blocks]) for blocks in each]
        seen = float(np.mean([sum(b.episodes for b in blocks) for blocks in each]) / max(self.episodes, 1))
        return Errors(_joined(values)._replace(seen=seen), _joined(returns)._replace(seen=seen), len(folds))

    @property
    def bias(self) -> float:
        """Mean of prediction less logged return."""
        return float(np.mean([block.predicted.median - block.logged for block in self.blocks]))

    @property
    def error(self) -> float:
        """Mean absolute difference between prediction and logged return."""
        return float(np.mean([abs(block.predicted.median - block.logged) for block in self.blocks]))

    @property
    def conformal(self) -> Conformal:
        """By how much deviations must be multiplied for intervals to hold on blocks like these.

        For estimates that are corrected where worlds of every fold can be, and not widened.
        """
        correct = self.errors(range(self.folds)) is not None
        every = [self._predicted(block, correct) for block in self.blocks]
        return calibrate(every, [b.logged for b in self.blocks], self.level)


def _error(blocks: Sequence[tuple[int, float, ValueEstimate]]) -> Error:
    """The error over several blocks, of which each has so many episodes, a logged mean, and what was predicted."""
    share = np.array([episodes for episodes, *_ in blocks], np.float64)
    share /= share.sum()
    error = sum(w * (one.returns.mean(1) - logged) for w, (_, logged, one) in zip(share, blocks, strict=True))
    noise = sum(w**2 * one.starts for w, (*_, one) in zip(share, blocks, strict=True))
    return Error(tuple(np.asarray(error, np.float64).tolist()), float(noise))


def _joined(folds: Sequence[Error]) -> Error:
    return Error(tuple(e for one in folds for e in one.worlds), float(np.mean([one.noise for one in folds])))


class Episodes(NamedTuple):
    """The log's episodes: where each begins, what it earned, and how far that is known."""

    rows: list[np.ndarray]
    starts: np.ndarray  # [E, S]
    logged: np.ndarray  # [E]  return
    logged_value: np.ndarray  # [E]  discounted
    limit: np.ndarray  # [E]  steps that count: where an episode was cut off, nothing after that is known


class Case(NamedTuple):
    """Episodes that one fold's worlds did not see."""

    starts: Array  # [E, S]
    limit: Array  # [E]
    whose: Array  # [E]  the block it belongs to
    logged: Row  # [T, E, ...]  what was done step by step; beyond an episode's end, at some step of its block

    def padded(self, count: int) -> Case:
        """So many episodes: the first ones come again."""
        at = np.arange(count) % len(self.limit)
        own = (np.asarray(leaf)[at] for leaf in self[:3])
        return Case(*own, logged=Row(*(np.asarray(leaf)[:, at] for leaf in self.logged)))


def backtest(
    key: Key,
    worlds: Posterior,
    data: Dataset,
    seen: np.ndarray,
    loss: PIL | None = None,
    level: float = 0.9,
    hypers: Hypers | None = None,
) -> Backtest:
    """The log's behaviour predicted, block by block; `seen` [F, N] marks rows that each fold's fit read.

    BadInput, in a sentence, where the log has no episode that a fold did not see.
    """
    known = _episodes(data, worlds.task)
    unseen = [[i for i, rows in enumerate(known.rows) if not marks[rows].any()] for marks in seen]
    cases = [cut(index) for index in unseen]
    if not any(cases):
        raise BadInput(f"{len(known.rows)} episodes are too few: none is left that a world did not learn from")
    parts = [np.concatenate([known.rows[i] for i in block]) for blocks in cases for block in blocks]
    k1, k2 = jax.random.split(key)
    cloned = clone(k1, hypers or Hypers(), data, worlds.task, parts)
    widen = 1.0 if loss is None else float(np.sqrt(max(1.0, loss.e / max(loss.v, 1e-30))))
    finished: list[Block] = []
    most = max(sum(map(len, blocks)) for blocks in cases)  # as many in every fold, so that folds share a program
    for fold, blocks in enumerate(cases):
        if not blocks:
            continue
        index = np.concatenate(blocks)
        whose = len(finished) + np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
        steps = _steps(known, blocks, data, worlds.task.horizon)
        case = Case(known.starts[index], known.limit[index], whose, steps).padded(most)
        earned = along(jax.random.fold_in(k2, fold), worlds.fold(fold), cloned, case, COPIES)
        begins = np.cumsum([len(block) for block in blocks])[:-1]
        parts = [np.split(np.asarray(each, np.float64)[:, : len(index)], begins, 1) for each in earned]
        for block, *part in zip(blocks, *parts, strict=True):
            finished.append(_block(fold, block, part, known, worlds, widen))
    return Backtest(tuple(finished), level, worlds.folds, len(known.rows))


def _episodes(data: Dataset, task: Task) -> Episodes:
    episode = np.asarray(data.episode)[: data.rows]
    if episode[0] < 0:
        raise BadInput("a bag of transitions has no episodes, so nobody knows what its behaviour earned")
    rows = runs(episode)
    reward, done = np.asarray(data.steps.reward, np.float64), np.asarray(data.steps.done)
    lengths, ended = np.array([len(part) for part in rows]), np.array([done[part[-1]] > 0 for part in rows])
    return Episodes(
        rows,
        np.asarray(data.steps.obs)[[part[0] for part in rows]],
        np.array([reward[part[: task.horizon]].sum() for part in rows]),
        np.array([discounted(reward[part[: task.horizon]], task.discount) for part in rows]),
        np.where(ended, task.horizon, np.minimum(lengths, task.horizon)),
    )


def discounted(reward: np.ndarray, discount: float) -> float:
    """What an episode's rewards are worth at its start."""
    return float(reward @ discount ** np.arange(len(reward)))


def _steps(known: Episodes, blocks: Sequence[np.ndarray], data: Dataset, horizon: int) -> Row:
    """What was done at every step [T, E, ...] of the blocks' episodes."""
    rng, rows = np.random.default_rng(0), []
    for block in blocks:
        every = np.concatenate([known.rows[i] for i in block])
        for i in block:
            own = known.rows[i][:horizon]
            rows.append(np.concatenate([own, rng.choice(every, horizon - len(own))]))
    at = np.stack(rows, 1)
    return Row(np.asarray(data.steps.obs)[at], np.asarray(data.steps.action)[at])


def cut(index: Sequence[int]) -> list[np.ndarray]:
    """At most EPISODES of the episodes, evenly taken and cut into blocks; one block if they are few."""
    if len(index) < 2:
        return []
    some = np.asarray(index)[np.unique(np.linspace(0, len(index) - 1, min(len(index), EPISODES)).astype(int))]
    return np.array_split(some, int(np.clip(len(some) // FEWEST, 1, BLOCKS)))


def _block(
    fold: int,
    block: np.ndarray,
    predicted: Sequence[np.ndarray],
    known: Episodes,
    worlds: Posterior,
    widen: float,
) -> Block:
    """One block, of which returns and values [M, E, copies] were predicted."""
    steps = known.limit[block].mean()
    low, high = (float(np.asarray(edge)[-1]) for edge in (worlds.low, worlds.high))

    def one(predicted: np.ndarray, logged: np.ndarray) -> ValueEstimate:
        off = predicted.mean((0, 2)) - logged  # [E]
        bounds = (min(low * steps, low), max(high * steps, high))
        return ValueEstimate(predicted.mean(1), float(off.var(ddof=1) / len(block)), widen=widen, bounds=bounds)

    logged, values = known.logged[block], known.logged_value[block]
    return Block(
        fold, int(block[0]), int(block[-1]), len(block),
        float(logged.mean()), one(predicted[0], logged), float(values.mean()), one(predicted[1], values),
    )  # fmt: skip


Carry = tuple[
    Place, Array, Array, Array
]  # where episodes are, which still go on, what they earned, and discounted


@partial(compiled, static_argnames="copies")
def along(key: Key, worlds: Posterior, cloned: Clone, case: Case, copies: int) -> tuple[Array, Array]:
    """Returns and values [M, E, copies] of the clone, from each episode's start and as its block was driven."""
    shape = (worlds.members, case.starts.shape[0] * copies)
    spread = lambda a: jnp.broadcast_to(jnp.repeat(a, copies, 0), (shape[0], shape[1], *a.shape[1:]))
    step, whose, limit = fixed(worlds), spread(case.whose), spread(case.limit)

    def one(carry: Carry, at: tuple[Key, Array, Row]) -> tuple[Carry, None]:
        (place, alive, total, value), (key, t, logged) = carry, at
        k1, k2 = jax.random.split(key)
        action = act(k1, cloned, whose, place.obs, jax.tree.map(spread, logged), worlds.task.actions)
        place, drawn = step(k2, place, action)
        earned = jnp.where(alive & (t < limit), drawn.reward, 0.0)
        total, value = total + earned, value + worlds.task.discount**t * earned
        return (place, alive & ~drawn.terminated, total, value), None

    horizon = worlds.task.horizon
    zeros = jnp.zeros(shape)
    first = (Place(spread(case.starts), memories(worlds, shape[1])), jnp.ones(shape, bool), zeros, zeros)
    steps = (jax.random.split(key, horizon), jnp.arange(horizon), case.logged)
    _, _, *earned = jax.lax.scan(one, first, steps)[0]
    total, value = (each.reshape(shape[0], -1, copies) for each in earned)
    return total, value
