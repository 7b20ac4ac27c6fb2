"""The log's own behaviour is the one policy whose return is known: is that what the worlds say of it?

For each fold of worlds, the episodes that none of them was fitted on are cut into blocks in the log's order. What
drove each block is cloned (`_clone`: one net, a code for each block), and the clone is rolled out in those worlds
from the block's own starts, for as long as its episodes could last. A block's prediction then stands beside what
its episodes truly earned, start by start, so that lucky starts do not count as errors.

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
from ._clone import Clone, Hypers, act, clone
from .conformal import Conformal, calibrate
from .estimate import ValueEstimate

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


class Backtest(NamedTuple):
    """Predictions of the log's own behaviour, by worlds that did not see it."""

    blocks: tuple[Block, ...]
    level: float

    @property
    def inside(self) -> int:
        """Blocks whose logged return lies in the interval."""
        ends = [(block.logged, *block.predicted.interval(self.level)) for block in self.blocks]
        return sum(low <= logged <= high for logged, low, high in ends)

    @property
    def held(self) -> bool:
        """Whether as many lie inside as the level promises, luck allowed for."""
        return float(stats.binom.cdf(self.inside, len(self.blocks), self.level)) >= DOUBT

    @property
    def scores(self) -> list[float]:
        """How many deviations each logged return is from what was predicted, as it is before any widening."""
        plain = [(block.logged, block.predicted._replace(widen=1.0)) for block in self.blocks]
        return [(logged - each.median) / max(each.deviation, 1e-12) for logged, each in plain]

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
        """By how much deviations must be multiplied for intervals to hold on blocks like these."""
        return calibrate([b.predicted for b in self.blocks], [b.logged for b in self.blocks], self.level)


class Episodes(NamedTuple):
    """The log's episodes: where each begins, what it earned, and how far that is known."""

    rows: list[np.ndarray]
    starts: np.ndarray  # [E, S]
    logged: np.ndarray  # [E]  return
    limit: np.ndarray  # [E]  steps that count: where an episode was cut off, nothing after that is known


class Case(NamedTuple):
    """Episodes that one fold's worlds did not see."""

    starts: Array  # [E, S]
    limit: Array  # [E]
    whose: Array  # [E]  the block it belongs to


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
    for fold, blocks in enumerate(cases):
        if not blocks:
            continue
        index = np.concatenate(blocks)
        whose = len(finished) + np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
        case = Case(*(jnp.asarray(each) for each in (known.starts[index], known.limit[index], whose)))
        predicted = along(jax.random.fold_in(k2, fold), worlds.fold(fold), cloned, case, COPIES)
        begins = np.cumsum([len(block) for block in blocks])[:-1]
        for block, part in zip(blocks, np.split(np.asarray(predicted, np.float64), begins, 1), strict=True):
            finished.append(_block(fold, block, part, known, worlds, widen))
    return Backtest(tuple(finished), level)


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
        np.where(ended, task.horizon, np.minimum(lengths, task.horizon)),
    )


def cut(index: Sequence[int]) -> list[np.ndarray]:
    """At most EPISODES of the episodes, evenly taken and cut into blocks; one block if they are few."""
    if len(index) < 2:
        return []
    some = np.asarray(index)[np.unique(np.linspace(0, len(index) - 1, min(len(index), EPISODES)).astype(int))]
    return np.array_split(some, int(np.clip(len(some) // FEWEST, 1, BLOCKS)))


def _block(
    fold: int, block: np.ndarray, predicted: np.ndarray, known: Episodes, worlds: Posterior, widen: float
) -> Block:
    """One block, of which returns [M, E, copies] were predicted."""
    logged, steps = known.logged[block], known.limit[block].mean()
    off = predicted.mean((0, 2)) - logged  # [E]
    low, high = float(worlds.low[-1]), float(worlds.high[-1])
    estimate = ValueEstimate(
        predicted.mean(1),
        starts=float(off.var(ddof=1) / len(block)),
        widen=widen,
        bounds=(min(low * steps, low), max(high * steps, high)),
    )
    return Block(fold, int(block[0]), int(block[-1]), len(block), float(logged.mean()), estimate)


Carry = tuple[Place, Array, Array]  # where episodes are, which still go on, and what they earned


@partial(compiled, static_argnames="copies")
def along(key: Key, worlds: Posterior, cloned: Clone, case: Case, copies: int) -> Array:
    """Returns [M, E, copies] of the clone in every world, from each episode's start and with its block's code."""
    shape = (worlds.members, case.starts.shape[0] * copies)
    spread = lambda a: jnp.broadcast_to(jnp.repeat(a, copies, 0), (shape[0], shape[1], *a.shape[1:]))
    step, whose, limit = fixed(worlds), spread(case.whose), spread(case.limit)

    def one(carry: Carry, at: tuple[Key, Array]) -> tuple[Carry, None]:
        (place, alive, total), (key, t) = carry, at
        k1, k2 = jax.random.split(key)
        place, drawn = step(k2, place, act(k1, cloned, whose, place.obs, worlds.task.actions))
        total = total + jnp.where(alive & (t < limit), drawn.reward, 0.0)
        return (place, alive & ~drawn.terminated, total), None

    horizon = worlds.task.horizon
    first = (Place(spread(case.starts), memories(worlds, shape[1])), jnp.ones(shape, bool), jnp.zeros(shape))
    (_, _, total), _ = jax.lax.scan(one, first, (jax.random.split(key, horizon), jnp.arange(horizon)))
    return total.reshape(shape[0], -1, copies)
