"""What will these policies earn? A log and policies from anywhere in; every method's answer, and what it rests on.

The posterior is chosen and fitted as TOReL's is. A policy that comes from elsewhere was trained in none of its
worlds, so all folds judge it. The log's own behaviour is foretold as well, since what that earned is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..data import Behaviour, Log, behaviour, take
from ..data.inspect import inspect
from ..data.rules import Rules, rules
from ..pil import PIL
from ..posterior.replay import Replay, replay
from ..types import BadInput, Key, Policy, Posterior
from ..value import backtest as past
from ..value._clone import Hypers as CloneHypers
from ..value.estimate import Judged, ValueEstimate
from ..value.horizon import Horizon, horizon
from .candidates import pad_starts
from .choose import PosteriorChoice, choose_posterior, refit
from .judge import METHODS, judge_all
from .more_data import MoreData, more_data
from .run import ALONE, Run

FARTHEST = 256  # steps that logged actions are replayed for, at most


class Evaluation(NamedTuple):
    """What policies will earn by every method, and what that rests on."""

    estimates: dict[str, dict[str, Judged]]  # by policy, then method
    left_out: dict[str, dict[str, str]]  # why a method says nothing, by policy, then method
    posterior: PosteriorChoice
    worlds: Posterior
    backtest: past.Backtest | str  # or why there is none
    horizon: Horizon | None  # None if the log has no runs of steps
    more_data: MoreData
    behaviour: Behaviour
    inspected: dict[str, Any]  # what `inspect` says of the log
    rules: Rules | None
    foretold: float  # share of the variance of next observations that the worlds foretell on held-out rows
    level: float
    notes: tuple[str, ...]

    @property
    def pil(self) -> PIL:
        return self.posterior.pil


def evaluate(
    key: Key,
    log: Log,
    models: Sequence[Any],
    policies: Mapping[str, Policy],
    methods: Sequence[str] = METHODS,
    seed: int = 0,
    scale: str = "quick",
    copies: int = 256,
    level: float = 0.9,
    within: float | None = None,
    sampled: bool = False,
    forget: bool = False,
    run: Run = ALONE,
) -> Evaluation:
    """Each policy's value by each method, from the log alone; `models` are the settings of worlds to choose from.

    `scale` says how long the other estimators train, `within` what half-width an interval should have, `sampled`
    that policies draw their actions. Nothing here touches an environment.
    """
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise BadInput(f"{unknown[0]}: no such method; there are {', '.join(METHODS)}")
    if not policies:
        raise BadInput("no policy to evaluate")
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    choice = choose_posterior(k1, log, models, seed, run)
    worlds = refit(k1, log, choice, run)
    tables = pad_starts(worlds)
    asked = dict.fromkeys(("predictive", *methods))
    jury = judge_all(k2, log, policies, tables, list(asked), scale, choice.pil, copies, sampled, forget, run)
    now = {name: _return(judged["predictive"]) for name, judged in jury.judged.items()}
    tested = _backtest(k3, log, choice, worlds, level, scale)
    curve = _replay(k4, log, choice)
    more = more_data(k5, log, choice, policies, now, level, within, sampled, seed, run)
    return Evaluation(
        estimates=jury.judged,
        left_out=jury.left_out,
        posterior=choice,
        worlds=worlds,
        backtest=tested,
        horizon=horizon(curve, log.task.horizon),
        more_data=more,
        behaviour=behaviour(log.data, log.task),
        inspected=inspect(log, seed),
        rules=rules(log, seed),
        foretold=foretold(log, choice),
        level=level,
        notes=(*log.notes, *choice.notes),
    )


def _return(judged: Judged) -> ValueEstimate:
    assert judged.returns is not None  # the posterior predictive always has one
    return judged.returns


def _backtest(
    key: Key,
    log: Log,
    choice: PosteriorChoice,
    worlds: Posterior,
    level: float,
    scale: str,
) -> past.Backtest | str:
    parts = choice.whole
    seen = np.zeros((worlds.folds, log.data.rows), bool)
    seen[:, parts.valid[: int(parts.valid_size)]] = True
    for fold, size in enumerate(parts.sizes):
        seen[fold, parts.train[fold, :size]] = True
    hypers = CloneHypers(width=8, updates=40) if scale == "smoke" else CloneHypers()
    try:
        return past.backtest(key, worlds, log.data, seen, choice.pil, level, hypers)
    except BadInput as error:
        return str(error)


def _replay(key: Key, log: Log, choice: PosteriorChoice) -> Replay | None:
    """Held-out action sequences replayed for as long as the task lasts, in worlds that did not see them."""
    longest = min(FARTHEST, log.task.horizon)
    return replay(key, choice.picked, take(log.data, choice.split.held), longest)


def foretold(log: Log, choice: PosteriorChoice) -> float:
    """Share of the variance of next observations that the worlds foretell on held-out rows; 0 for a constant."""
    steps = take(log.data, choice.split.held).steps
    after, change = np.asarray(steps.next_obs, np.float64), np.asarray(steps.next_obs - steps.obs, np.float64)
    moves = after.var(0) > 1e-12 * (1 + np.square(after).mean(0))
    if not moves.any():
        return 1.0
    left = np.asarray(choice.pil.plain)[:-1] * change.var(0)
    return float(np.mean(1 - np.minimum(left[moves] / after.var(0)[moves], 1.0)))
