"""Is the world still the one that was learned? Every column's next value against what the worlds foresee.

A step's surprise in a column is how far its next value is from the mean over worlds (which remember of the episode
what such worlds remember), less twice what worlds differ by, in units of the predictive standard deviation. An
episode has three scores a column: the mean surprise (is it off to one side?), the mean squared surprise (is it off
either way?), both with surprises of at most `FAR`, and where its start lies among the log's starts. The claim that
is bet against (`evidence`): the mean score lies where it lies in the worlds' own episodes of this policy, world by
world, or in the log's. Alarms are raised at ERROR over all columns and scores together (Bonferroni), however often
one looks.

Which of the columns with an alarm has changed is another question than whether any has. Bets do not answer it:
each is scaled to its own column, and once the change exceeds that scale, wealth grows at a pace that only the
width of the claim sets, so that a column that is hardly off may raise its alarm before one that is far off. The
columns are therefore ranked by how much further off than usual they are, on one scale for all: nats per step, the
mean of log(1 + squared surprise). A column that merely follows from another is seldom further off than that one,
since chance takes the same way (Orchard et al., 2025: outliers are ranked so to find their root). A start that
is off comes before all: of a sensor that is off it is the column's only trace, as its changes are right.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..data import take
from ..data.dataset import runs
from ..pil import expect
from ..types import Array, Dataset, Key, Memory, Policy, Posterior, Transition
from ..value.episodes import imagine
from .evidence import Both

ERROR = 0.05
FAR = 4.0  # standard deviations: what is further off says no more than this
REACH = 6.0  # usual standard deviations of a score that the whole of a bet's scale stands for
COPIES = 8  # imagined episodes of each world that scores are compared with
EPISODES = 64  # of the log that scores are compared with
LEVEL = 0.15  # how far from the middle, in [-1, 1], the mean rank of starts may lie
BLOCK = 4096  # rows that worlds are asked about together
WHAT = ("is off to one side", "is off either way", "starts elsewhere")  # kinds of alarms
START = 2


class Alarm(NamedTuple):
    """A column that no longer does what was learned."""

    column: str
    what: str  # of WHAT
    since: int  # episodes before which all was as usual
    seen: int  # episodes after which it was noticed
    evidence: float  # logarithm
    nats: float  # per step: how much further off than usual the column's next values are since then


class Scores(NamedTuple):
    """Of episodes: means over steps, for every column of state and the reward."""

    side: np.ndarray  # [..., S + 1]  surprise, at most FAR
    size: np.ndarray  # [..., S + 1]  its square
    nats: np.ndarray  # [..., S + 1]  log(1 + squared surprise), whatever it is: tells far from very far


@jax.jit
def _surprise(posterior: Posterior, memory: Memory, rows: Transition) -> Array:
    means, stds = expect(posterior, memory, rows)  # [M, N, S + 1]
    chance, doubt = jnp.mean(jnp.square(stds), 0), jnp.var(means, 0)
    target = jnp.concatenate([rows.next_obs - rows.obs, rows.reward[:, None]], -1)
    off = target - means.mean(0)
    beyond = jnp.sign(off) * jnp.maximum(jnp.abs(off) - 2 * jnp.sqrt(doubt), 0.0)
    return beyond / jnp.sqrt(chance + doubt + 1e-12)


def surprise(posterior: Posterior, data: Dataset) -> np.ndarray:
    """Of every step and column [N, S + 1], the worlds knowing of its episode what came before."""
    size = data.rows
    padded = take(data, np.arange(-(-size // BLOCK) * BLOCK).clip(max=size - 1))
    memory, parts = posterior.along(padded), []
    for first in range(0, size, BLOCK):
        some = lambda tree, first=first: jax.tree.map(lambda leaf: np.asarray(leaf)[first : first + BLOCK], tree)
        parts.append(np.asarray(_surprise(posterior, some(memory), some(padded.steps))))
    return np.concatenate(parts)[:size]


def scores(surprises: np.ndarray, episode: np.ndarray) -> Scores:
    """Means over the steps of each episode, in the order that they come in."""
    at = np.cumsum(np.r_[False, episode[1:] != episode[:-1]])
    count = np.bincount(at)[:, None]
    mean = lambda x: np.stack([np.bincount(at, column) for column in x.T], -1) / count
    held = np.clip(surprises, -FAR, FAR)
    return Scores(mean(held), mean(np.square(held)), mean(np.log1p(np.square(surprises))))


class Usual(NamedTuple):
    """Where the mean of a score lies as long as nothing changes, and how much episodes differ [S + 1]."""

    low: np.ndarray
    high: np.ndarray
    spread: np.ndarray


def usual(logged: np.ndarray, worlds: np.ndarray) -> Usual:
    """From scores of the log's episodes [E, S + 1] and of the worlds' own [M, K, S + 1]."""
    mean, spread = logged.mean(0), logged.std(0)
    each = worlds.mean(1)  # [M, S + 1]
    middle, wide = each.mean(0), 2 * each.std(0)
    low, high = np.minimum(mean - spread, middle - wide), np.maximum(mean + spread, middle + wide)
    return Usual(low, high, np.maximum(np.maximum(spread, worlds.std(1).mean(0)), 1e-3))


class ColumnWatch:
    """Scores of every column, bet by bet, and the alarms they raised."""

    def __init__(self, key: Key, policy: Policy, posterior: Posterior, log: Dataset, names: tuple[str, ...]):
        self.posterior, self.names = posterior, (*names, "reward")
        self.starts = np.sort(np.asarray(log.starts, float), 0)
        logged = self.log_scores(log)
        imagined = world_scores(key, policy, posterior)
        self.usual = [usual(mine, theirs) for mine, theirs in zip(logged, imagined, strict=True)]
        self.reset()

    def reset(self) -> None:
        """As if no episode had been seen."""
        self.bets = [[self._bet(kind, i) for i in range(len(self.names))] for kind in range(2)]
        self.begins = [Both(-LEVEL, LEVEL) for _ in self.names[:-1]]
        self.history: list[list[float]] = []
        self.beyond: list[np.ndarray] = []  # of every episode: nats per step beyond the usual [S + 1]
        self.alarms: dict[tuple[int, int], Alarm] = {}
        self.count = 0

    def log_scores(self, log: Dataset) -> Scores:
        """Scores of up to EPISODES of the log's episodes."""
        rows, episode = log.rows, np.asarray(log.episode)[: log.rows]
        if episode[0] < 0:
            episode = np.arange(rows) // max(1, rows // EPISODES)
        units = np.unique(episode)
        taken = np.isin(episode, units[np.linspace(0, len(units) - 1, min(EPISODES, len(units))).astype(int)])
        at = np.flatnonzero(taken)
        return scores(surprise(self.posterior, take(log, at)), episode[at])

    def _bet(self, kind: int, column: int) -> Both:
        low, high, spread = (each[column] for each in self.usual[kind])
        half = (high - low) / 2
        return Both(-half / self._unit(half, spread), half / self._unit(half, spread))

    @staticmethod
    def _unit(half: float, spread: float) -> float:
        return float(half + REACH * spread)

    def update(self, rows: Dataset) -> list[Alarm]:
        """All episodes of some rows, one after another; the alarms that they raised."""
        episode = np.asarray(rows.episode)[: rows.rows]
        each, alarms = scores(surprise(self.posterior, rows), episode), []
        for i, unit in enumerate(runs(episode)):
            alarms += self.take(Scores(*(score[i] for score in each)), np.asarray(rows.steps.obs)[unit[0]])
        return alarms

    def take(self, episode: Scores, start: np.ndarray) -> list[Alarm]:
        """The scores of one episode more [S + 1], and where it began [S]; the alarms that it raised."""
        self.count += 1
        before = set(self.alarms)
        now = np.zeros((3, len(self.names)))
        self.beyond.append(episode.nats - self.usual[2].high)
        for kind, score in enumerate((episode.side, episode.size)):
            for i, x in enumerate(score):
                low, high, spread = (each[i] for each in self.usual[kind])
                unit = self._unit((high - low) / 2, spread)
                now[kind, i] = self.bets[kind][i].update((x - (low + high) / 2) / unit)
                self._raise(kind, i, self.bets[kind][i])
        for i, bet in enumerate(self.begins):
            now[START, i] = bet.update(2 * self.rank(i, float(start[i])) - 1)
            self._raise(START, i, bet)
        self.history.append(now.max(0).tolist())
        return [self.alarms[key] for key in self.alarms if key not in before]

    def rank(self, column: int, x: float) -> float:
        """Where a start lies among the log's [0, 1], half-way among equals."""
        known = self.starts[:, column]
        left, right = np.searchsorted(known, x, "left"), np.searchsorted(known, x, "right")
        return float(left + right) / (2 * len(known))

    def _raise(self, kind: int, column: int, bet: Both) -> None:
        due = np.log(3 * len(self.names) / ERROR)
        if bet.peak >= due and (kind, column) not in self.alarms:
            nats = self._nats(column, bet.since)
            self.alarms[kind, column] = Alarm(
                self.names[column], WHAT[kind], bet.since, self.count, bet.peak, nats
            )

    def _nats(self, column: int, since: int) -> float:
        return float(np.mean([each[column] for each in self.beyond[since:]]))

    @property
    def ranked(self) -> list[Alarm]:
        """All alarms as they stand now, those of the column that most likely changed first."""

        def order(item: tuple[tuple[int, int], Alarm]) -> tuple[bool, float]:
            (kind, column), alarm = item
            return (kind != START, -self.begins[column].peak if kind == START else -alarm.nats)

        now = {at: alarm._replace(nats=self._nats(at[1], alarm.since)) for at, alarm in self.alarms.items()}
        return [alarm for _, alarm in sorted(now.items(), key=order)]

    @property
    def named(self) -> Alarm | None:
        """The alarm of the column that most likely changed."""
        return next(iter(self.ranked), None)


def world_scores(key: Key, policy: Policy, posterior: Posterior) -> Scores:
    """Scores of the policy's episodes in the worlds themselves, world by world [M, K, S + 1] each."""
    rows = imagine(key, policy, posterior, COPIES).as_log()
    each = scores(surprise(posterior, rows), np.asarray(rows.episode))
    return Scores(*(score.reshape(posterior.members, COPIES, -1) for score in each))
