"""A deployed policy, watched: rows go in as they come, and what can be said comes out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from ..data import Log
from ..data.dataset import runs
from ..report import results
from ..report.store import load_posterior, unpack
from ..types import BadInput, Box, Dataset, Discrete, Policy, Posterior
from ..value.episodes import acted
from ..value.support import outside
from .columns import Alarm, ColumnWatch
from .earning import Earning, Promise, Standing, promise_of

SAME = 1e-3  # of an amount's range: actions that differ by less are the same
RECENT = 32  # episodes that the share of steps outside the log is taken over


@dataclass(frozen=True)
class Watched:
    """What can be said of a deployment: does it earn what was promised, and is all else as it was?"""

    word: str  # KEEP, STOP or NOT-YET
    standing: Standing
    promise: Promise
    alarms: tuple[Alarm, ...]  # columns no longer as learned, the one that most likely changed first
    outside: float  # share of recent steps where the log never was
    promised_outside: float  # the same share of the steps that were imagined
    other_actions: float  # share of steps whose action is not what the policy does
    unfinished: int  # episodes without an end, which do not count as returns
    returns: tuple[float, ...]
    evidence: tuple[tuple[float, float], ...]  # per episode: that it earns too little, that it beats the baseline
    columns: dict[str, list[float]]  # per episode: logarithm of the evidence that a column has changed

    def sentences(self) -> list[str]:
        """What was found, in sentences, the word last."""
        standing, promise = self.standing, self.promise
        lines = [
            f"{standing.episodes} episodes earned {standing.mean:,.4g} on average; promised were "
            f"{promise.low:,.4g} to {promise.high:,.4g} (median {promise.median:,.4g}), "
            f"the baseline is {promise.baseline:,.4g}"
        ]
        if self.unfinished:
            lines.append(f"{self.unfinished} episodes have no end yet, and do not count as returns")
        lines += [
            f"column {alarm.column!r} {alarm.what} since about episode {alarm.since + 1} (noticed at {alarm.seen})"
            for alarm in self.alarms
        ] or ["no column has changed, as far as can be told"]
        if len({alarm.column for alarm in self.alarms}) > 1:
            lines.append(
                f"{self.alarms[0].column!r} is the column that most likely changed; others may follow from it"
            )
        if self.outside > max(2 * self.promised_outside, 0.05):
            lines.append(f"{self.outside:.0%} of recent steps are where the log never was; imagined were fewer")
        if self.other_actions > 0.01:
            lines.append(f"{self.other_actions:.0%} of the actions are not those of the policy that was shipped")
        if self.word == "NOT-YET":
            more = "more episodes like these would not settle it" if standing.more is None else None
            lines.append(more or f"about {standing.more} more episodes like these would settle it")
        return [*lines, f"verdict: {self.word}"]


class Watch:
    """Rows of a deployment against what a run promised.

    watch = Watch.of("out", log)           # the run's folder, and the log that it learned from
    watched = watch.update(rows)           # rows as `offing.load` gives them, whole episodes; as often as you like
    watched.word, watched.alarms
    """

    def __init__(
        self,
        policy: Policy,
        worlds: Posterior,
        promise: Promise,
        log: Log,
        promised_outside: float = 0.0,
        seed: int = 0,
    ):
        self.policy, self.worlds, self.task = policy, worlds, worlds.task
        self.log, self.promised_outside = log, promised_outside
        self.earning = Earning(promise)
        names = (
            log.columns.names if log.columns.names else tuple(f"obs[{i}]" for i in range(log.data.starts.shape[1]))
        )
        self.columns = ColumnWatch(jax.random.key(seed), policy, worlds, log.data, names)
        self.recent: list[tuple[np.ndarray, np.ndarray]] = []
        self.steps, self.others, self.unfinished = 0, 0, 0

    @classmethod
    def of(cls, folder: str | Path, log: Log, seed: int = 0) -> Watch:
        """The run that `offing sorel` or `torel` left in a folder, and the log that it learned from."""
        folder = Path(folder)
        policy, _ = results.load_policy(folder)
        report, worlds = results.read_result(folder), load_posterior(folder)
        if report is None or report.fingerprint not in ("", log.fingerprint):
            raise BadInput(f"{folder}: did not learn from {log.name}; give the log that it learned from")
        returns = unpack(folder / report.episodes)["return"]
        horizon, (least, most) = worlds.task.horizon, (float(worlds.low[-1]), float(worlds.high[-1]))
        bounds = (min(least * horizon, least), max(most * horizon, most))
        baseline = getattr(report, "baseline", None)
        beaten = report.behaviour.mean if baseline is None else baseline
        promise = promise_of(returns, report.returns.median, report.returns.interval, beaten, bounds)
        return cls(policy, worlds, promise, log, report.support.outside, seed)

    def update(self, new: Log | Dataset) -> Watched:
        """Rows that the deployed policy made, whole episodes in order; what can be said after all rows so far."""
        data = new.data if isinstance(new, Log) else new
        if isinstance(new, Log):
            self.log.columns.matches(new.columns, new.name)
        rows, episode = data.rows, np.asarray(data.episode)[: data.rows]
        if not rows:
            return self.watched
        if episode[0] < 0:
            raise BadInput("the new rows have no episodes: name the column that tells them apart")
        obs, action, reward = (np.asarray(leaf)[:rows] for leaf in data.steps[:3])
        self.columns.update(data)
        self.steps += rows
        self.others += int(differs(acted(self.policy, data, self.task), action, self.task.actions).sum())
        for unit in runs(episode):
            self.recent = [*self.recent, (obs[unit], action[unit])][-RECENT:]
            if bool(np.asarray(data.steps.done)[unit[-1]]) or len(unit) >= self.task.horizon:
                self.earning.update(float(reward[unit].astype(float).sum()))
            else:
                self.unfinished += 1
        return self.watched

    @property
    def watched(self) -> Watched:
        """What can be said now."""
        names, history = self.columns.names, np.array(self.columns.history).reshape(-1, len(self.columns.names))
        away = 0.0
        if self.recent:
            obs, action = (np.concatenate(part) for part in zip(*self.recent, strict=True))
            away = outside(self.log.data, obs, action, np.ones(len(obs), bool))
        return Watched(
            word=self.earning.word,
            standing=self.earning.standing,
            promise=self.earning.promise,
            alarms=tuple(self.columns.ranked),
            outside=away,
            promised_outside=self.promised_outside,
            other_actions=self.others / max(self.steps, 1),
            unfinished=self.unfinished,
            returns=tuple(self.earning.returns),
            evidence=tuple(self.earning.history),
            columns={name: history[:, i].tolist() for i, name in enumerate(names)},
        )


def differs(one: np.ndarray, other: np.ndarray, actions: Box | Discrete) -> np.ndarray:
    """Which of two rows of actions [T, A] are not the same."""
    if isinstance(actions, Discrete):
        return one.argmax(-1) != other.argmax(-1)
    wide = np.maximum(np.subtract(actions.high, actions.low), 1e-6)
    return np.any(np.abs(one - other) > SAME * wide, axis=-1, keepdims=True)[..., 0]
