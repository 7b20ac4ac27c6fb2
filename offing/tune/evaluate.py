"""What will these policies earn? A log and policies from anywhere in; every method's answer, and what it rests on.

The posterior is chosen as TOReL's is. A policy that comes from elsewhere was trained in none of its worlds, so all
folds judge it, and each of them learns from all episodes but a part. The log's own behaviour is predicted as well,
since what that earned is known.

The posterior's estimates come first and are kept. All else is added to them, and what fails is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np

from ..data import Behaviour, Log, behaviour, take
from ..data.inspect import inspect
from ..data.rules import rules
from ..pil import PIL
from ..posterior.models import ensemble
from ..posterior.models import get as get_model
from ..posterior.replay import replay
from ..types import BadInput, H, Key, Policy, Posterior, WorldModel
from ..value import backtest as past
from ..value.checks import check
from ..value.estimate import Estimate, ValueEstimate, corrected
from ..value.estimators import PREDICTIVE
from ..value.estimators import methods as every_method
from ..value.health import Evidence
from ..value.horizon import Horizon, horizon
from ..value.left_out import LeftOut, attempt
from .backtested import backtested
from .candidates import pad_starts
from .choose import PosteriorChoice, choose_posterior, cross, refit
from .judge import Jury, in_worlds, judge_all, tables
from .more_data import MoreData, more_data
from .plans import EVALUATION, EvaluationPlan
from .run import ALONE, Run

FARTHEST = 256  # steps that logged actions are replayed for, at most


class Assessment(NamedTuple):
    """What policies will earn by every method, and what that rests on."""

    estimates: dict[str, dict[str, Estimate]]  # by policy, then method; the posterior's first
    left_out: dict[str, dict[str, LeftOut]]  # why a method says nothing, by policy, then method
    evidence: Evidence  # what the checks of health read
    posterior: PosteriorChoice
    worlds: Posterior
    horizon: Horizon | LeftOut | None  # None if the log has no runs of steps
    more_data: MoreData | LeftOut
    level: float
    notes: tuple[str, ...]
    starts: int  # that the log knows

    @property
    def pil(self) -> PIL:
        return self.posterior.pil

    @property
    def behaviour(self) -> Behaviour:
        return self.evidence.behaviour

    @property
    def backtest(self) -> past.Backtest | LeftOut:
        return self.evidence.backtest


def evaluate(
    key: Key,
    log: Log,
    models: Sequence[H],
    policies: Mapping[str, Policy],
    plan: EvaluationPlan = EVALUATION,
    seed: int = 0,
    run: Run = ALONE,
    model: WorldModel[H] = ensemble.model,
) -> Assessment:
    """Each policy's value by each method, from the log alone; `models` are the settings of worlds to choose from.

    Nothing here touches an environment.
    """
    methods, copies, sampled = _methods(policies, plan), plan.copies, plan.sampled
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    choice = cross(choose_posterior(k1, log, models, seed, run, model), log, seed)
    worlds = refit(k1, log, choice, run)
    ours = in_worlds(k2, log, policies, pad_starts(worlds), choice.pil, copies, sampled, run)
    run.tell("judge", 0, len(methods))
    in_log = tables(policies, log) if methods else policies  # functions are called here, and not by two threads
    with ThreadPoolExecutor(1) as beside:  # estimators read the log alone
        judging = beside.submit(judge_all, k2, log, in_log, methods, plan.scale, sampled, plan.forget, run)
        others = {name: Others(log, name, seed, plan.scale, copies, sampled) for name in plan.judges}
        theirs = {
            name: attempt(lambda o=o: by_other_worlds(k1, k2, o, policies, run)) for name, o in others.items()
        }
        tested = attempt(lambda: backtested(k3, log, choice, worlds, plan.level))
        ours = {name: _checked(estimate, tested, choice.pil) for name, estimate in ours.items()}
        now = {name: _return(each) for name, each in ours.items()}
        far = attempt(lambda: _horizon(k4, log, choice))
        more = attempt(lambda: more_data(k5, log, choice, policies, now, plan, seed, run))
        jury = judging.result()
    for name, each in theirs.items():
        _add(jury, name, each)
    return Assessment(
        estimates={name: {PREDICTIVE: ours[name], **jury.estimates[name]} for name in policies},
        left_out=jury.left_out,
        evidence=_evidence(log, choice, worlds, ours, tested, seed),
        posterior=choice,
        worlds=worlds,
        horizon=far,
        more_data=more,
        level=plan.level,
        notes=(*log.notes, *choice.notes),
        starts=len(log.data.starts),
    )


def _methods(policies: Mapping[str, Policy], plan: EvaluationPlan) -> list[str]:
    """The estimators to ask beside the posterior; BadInput, before any work, for what is not there."""
    named = every_method() if plan.methods is None else plan.methods
    methods = [method for method in dict.fromkeys(named) if method != PREDICTIVE]
    unknown = [method for method in methods if method not in every_method()]
    if unknown:
        raise BadInput(f"{unknown[0]}: no such method; there are {', '.join(every_method())}")
    if not policies:
        raise BadInput("no policy to evaluate")
    for name in plan.judges:
        get_model(name)
    return methods


def _evidence(
    log: Log,
    choice: PosteriorChoice,
    worlds: Posterior,
    ours: dict[str, Estimate],
    tested: past.Backtest | LeftOut,
    seed: int,
) -> Evidence:
    """What the checks of health read."""
    return Evidence(
        estimates=ours,
        behaviour=behaviour(log.data, log.task),
        pil=choice.pil,
        terminates=worlds.terminates,
        inspected=attempt(lambda: inspect(log, seed)),
        rules=attempt(lambda: rules(log, seed)),
        predicted=attempt(lambda: predicted(log, choice)),
        backtest=tested,
    )


class Others(NamedTuple):
    """Worlds of another kind, and how policies are judged in them."""

    log: Log
    model: str
    seed: int
    scale: str
    copies: int
    sampled: bool


def by_other_worlds(
    key: Key, other: Key, others: Others, policies: Mapping[str, Policy], run: Run = ALONE
) -> dict[str, Estimate]:
    """Every policy by the worlds of another model, chosen and fitted as the posterior is."""
    log, model, part = others.log, get_model(others.model), run.part(others.model)
    settings = model.space(others.scale, log.data.rows)
    choice = cross(choose_posterior(key, log, settings, others.seed, part, model), log, others.seed)
    worlds = pad_starts(refit(key, log, choice, part))
    return in_worlds(other, log, policies, worlds, choice.pil, others.copies, others.sampled, part)


def _add(jury: Jury, method: str, estimates: dict[str, Estimate] | LeftOut) -> None:
    for name in jury.estimates:
        if isinstance(estimates, LeftOut):
            jury.left_out[name][method] = estimates
        else:
            jury.estimates[name][method] = estimates[name]


def _checked(estimate: Estimate, tested: past.Backtest | LeftOut, loss: PIL) -> Estimate:
    """The estimate, corrected and widened as predictions of the log's own behaviour say."""
    if isinstance(tested, LeftOut) or estimate.returns is None:
        return estimate
    errors = attempt(lambda: tested.errors(range(tested.folds)))
    if isinstance(errors, LeftOut) or (errors and len(errors.returns.worlds) != estimate.returns.members):
        errors = None
    checks = attempt(lambda: check(tested.scores(correct=errors is not None), loss))
    if isinstance(checks, LeftOut):
        return estimate
    value, returns = (one._replace(widen=checks.factor) for one in (estimate.estimate, estimate.returns))
    if errors is not None:
        value, returns = (
            corrected(one, error, errors.folds)
            for one, error in ((value, errors.values), (returns, errors.returns))
        )
    return estimate._replace(estimate=value, returns=returns)


def _return(estimate: Estimate) -> ValueEstimate:
    assert estimate.returns is not None  # the posterior predictive always has one
    return estimate.returns


def _horizon(key: Key, log: Log, choice: PosteriorChoice) -> Horizon | None:
    """Held-out action sequences replayed for as long as the task lasts, in worlds that did not see them."""
    longest = min(FARTHEST, log.task.horizon)
    curve = replay(key, choice.picked, take(log.data, choice.split.held), longest)
    return horizon(curve, log.task.horizon)


def predicted(log: Log, choice: PosteriorChoice) -> float:
    """Share of the variance of next observations that the worlds predict on held-out rows; 0 for a constant.

    Columns that follow from others do not count: they are predicted from where a step led, as well in a log whose
    steps lead anywhere.
    """
    steps = take(log.data, choice.split.held).steps
    after, change = np.asarray(steps.next_obs, np.float64), np.asarray(steps.next_obs - steps.obs, np.float64)
    moves = after.var(0) > 1e-12 * (1 + np.square(after).mean(0))
    moves[list(choice.picked.derived)] = False
    if not moves.any():
        return 1.0
    left = np.asarray(choice.pil.plain)[:-1] * change.var(0)
    return float(np.mean(1 - np.minimum(left[moves] / after.var(0)[moves], 1.0)))
