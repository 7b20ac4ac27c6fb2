"""A field of candidates, and what settles which of them is handed over.

Every candidate plays the same episodes (the same starts and the same chances) in the same held-out worlds. What
is maximised is what a policy earns in the worst quarter of them: with eight or sixteen worlds a quantile is the
word of one world, and the mean of a tail is not. Candidates whose differences could be chance, on average over
worlds and in the tail, are indistinguishable from the best, and of those the one nearest to the logged actions is
taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from ..compiling import compiled
from ..data.dataset import laid_out
from ..hypers import asdict
from ..planner import Planned
from ..types import Array, Box, Dataset, Policy, Seen, Task
from ..value.estimate import ValueEstimate

TAIL = 0.25  # of the worlds, the worst, whose mean is maximised
CERTAIN = 0.9  # that a difference is none of chance
EPISODES = 32  # of the log, along which a policy is held against what was done
ROWS = 2_048  # where episodes are unknown


@dataclass(frozen=True)
class Candidate:
    """A policy that could be handed over, and what would have been promised for it."""

    name: str  # what it is, in words
    planner: str
    setting: Any
    policy: Policy
    promise: ValueEstimate  # its return in held-out worlds, undiscounted
    distance: float  # from the logged actions: mean square in half-widths of their box, or share of other choices
    planned: Planned | None = None  # its rounds, where it planned in worlds

    @property
    def worlds(self) -> np.ndarray:
        """What it earns by each world [M], and at the least in steps beyond the log.

        To leave the log early is no way to save what staying costs.
        """
        return self.promise.worlds + self.promise.less

    @property
    def lower(self) -> float:
        """What it earns in the worst quarter of worlds, on average; whoever diverged comes last."""
        value = tail(self.worlds)
        return value if np.isfinite(value) else -np.inf


@dataclass(frozen=True)
class Row:
    """A candidate in numbers alone, as reports have it."""

    name: str
    planner: str
    setting: Mapping[str, Any]
    median: float
    lower: float
    interval: tuple[float, float]
    distance: float
    indistinguishable: bool  # from the one with the highest lower return
    chosen: bool


@dataclass(frozen=True)
class Field:
    """All candidates, which of them was chosen, and which are indistinguishable from the best."""

    candidates: tuple[Candidate, ...]
    index: int
    best: int  # with the highest return in the worst worlds
    indistinguishable: tuple[int, ...]

    @property
    def chosen(self) -> Candidate:
        return self.candidates[self.index]

    @property
    def reason(self) -> str:
        """What settled it, in a sentence."""
        count, best, chosen = len(self.candidates), self.candidates[self.best], self.chosen
        if self.index == self.best and len(self.indistinguishable) == 1:
            return f"of {count} candidates, {chosen.name} earns most in the worst quarter of held-out worlds"
        others = len(self.indistinguishable)
        if self.index == self.best:
            return (
                f"of {count} candidates, {chosen.name} earns most in the worst quarter of held-out worlds, and is "
                f"the nearest to the log of the {others} that are indistinguishable"
            )
        return (
            f"of {count} candidates, {best.name} earns most in the worst quarter of held-out worlds; of the "
            f"{others} indistinguishable from it, {chosen.name} is the nearest to the log"
        )

    def rows(self, level: float = 0.9) -> tuple[Row, ...]:
        """The field as numbers."""
        return tuple(
            Row(
                one.name,
                one.planner,
                asdict(one.setting),
                one.promise.median,
                one.lower,
                one.promise.interval(level),
                one.distance,
                i in self.indistinguishable,
                i == self.index,
            )
            for i, one in enumerate(self.candidates)
        )


def tail(worlds: np.ndarray) -> float:
    """The mean of the worst quarter of worlds [M]."""
    return float(np.sort(worlds)[: -(-len(worlds) // 4)].mean())


def tail_error(promise: ValueEstimate) -> float:
    """Standard error of `tail`, from the number of episodes alone."""
    returns = np.asarray(promise.returns, np.float64)
    worst = np.argsort(promise.worlds)[: -(-len(returns) // 4)]
    if returns.shape[1] < 2:
        return 0.0
    return float(np.sqrt(np.mean(np.var(returns[worst], axis=1, ddof=1)) / returns[worst].size))


def tail_of(worlds: Array) -> Array:
    """The same inside a compiled program."""
    return jnp.sort(worlds)[: -(-worlds.shape[0] // 4)].mean()


def decide(candidates: Sequence[Candidate]) -> Field:
    """The field, with its choice made."""
    best = int(np.argmax([one.lower for one in candidates]))
    rivals = tuple(i for i, one in enumerate(candidates) if indistinguishable(candidates[best], one))
    index = min(rivals, key=lambda i: candidates[i].distance)
    return Field(tuple(candidates), index, best, rivals)


def indistinguishable(best: Candidate, other: Candidate) -> bool:
    """Whether what `best` earns more than `other` could be chance, on average and in the tail.

    On average: of which worlds there are, by their paired differences. In the tail worlds are too few for that,
    and a fall in one of many is to count: there, of which episodes were played.
    """
    if best is other:
        return True
    if not np.isfinite(other.lower):
        return False
    more = best.worlds - other.worlds
    error = np.std(more, ddof=1) / np.sqrt(len(more)) if len(more) > 1 else 0.0
    times = float(stats.t.ppf(CERTAIN, max(len(more) - 1, 1)))
    drawn = np.hypot(tail_error(best.promise), tail_error(other.promise))
    return bool(more.mean() <= times * error and best.lower - other.lower <= times * drawn)


def distance(policy: Policy, data: Dataset, task: Task) -> float:
    """How far a policy's actions are from those logged, along logged episodes."""
    episode = np.asarray(data.episode)[: data.rows]
    if episode[0] < 0:
        rows = np.linspace(0, data.rows - 1, min(ROWS, data.rows)).astype(int)[None]
        alive = np.ones(rows.shape, bool)
    else:
        rows, alive = laid_out(episode, task.horizon)
        some = np.linspace(0, rows.shape[1] - 1, EPISODES).astype(int)  # as many for every log, some twice
        length = min(task.horizon, max(len(rows), 1))
        rows, alive = rows[:length, some], alive[:length, some]
    steps = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], data.steps)
    return float(_distance(policy, steps.obs, steps.action, steps.reward, alive, task.actions))


def _apart(policy: Policy, obs: Array, action: Array, reward: Array, alive: Array, actions: Any) -> Array:
    def one(carry: Any, at: tuple[Array, Array, Array]) -> tuple[Any, Array]:
        memory, seen = carry
        obs, logged, reward = at
        done, memory = policy.act(policy.params, memory, seen._replace(obs=obs), None)
        if isinstance(actions, Box):
            half = jnp.maximum((jnp.array(actions.high) - jnp.array(actions.low)) / 2, 1e-6)
            off = jnp.mean(jnp.square((done - logged) / half), -1)
        else:
            off = 1 - jnp.sum(done * logged, -1)
        return (memory, Seen(obs, logged, reward, jnp.zeros(reward.shape))), off

    count = obs.shape[1]
    first = Seen(obs[0], jnp.zeros_like(action[0]), jnp.zeros(count), jnp.ones(count))
    off = jax.lax.scan(one, (policy.begin(count), first), (obs, action, reward))[1]
    return jnp.sum(off * alive) / jnp.maximum(jnp.sum(alive), 1)


_distance = compiled(_apart, static_argnames="actions")
