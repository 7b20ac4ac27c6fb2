"""SOReL and TOReL, as the paper's Algorithms 1 and 2 print them: a log in; a policy and what it rests on out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import numpy as np

from .. import planner as planners
from ..data import Behaviour, Log, behaviour
from ..pil import PIL
from ..planner import rppo
from ..posterior.models import ensemble
from ..types import BadInput, H, Key, Policy, Posterior, WorldModel
from ..value import estimators
from ..value.predictive import Predictive, predictive
from .backtested import checked
from .candidates import PolicyChoice, choose_policy, pad_starts
from .choose import PosteriorChoice, choose_posterior, refit
from .judge import logged
from .plans import TRIALS, TrialPlan
from .portfolio import Portfolio, choose_candidate
from .run import ALONE, Run
from .trials import Contender, Trial, held_out_worlds, seek_all, try_all

WORLDS = 16  # of a fold, as far as twice a setting's members reach: one fold plans, and one judges alone


class Result(NamedTuple):
    """What a system found, and all that it rests on."""

    system: str
    promise: str  # "value": the number is meant; "ranking": only its order is
    posterior: PosteriorChoice
    worlds: Posterior  # the chosen setting, fitted to all rows: the first fold plans, the second judges
    policy: PolicyChoice
    predicted: Predictive
    behaviour: Behaviour
    notes: tuple[str, ...]

    @property
    def pil(self) -> PIL:
        return self.posterior.pil

    @property
    def picked(self) -> Policy:
        return self.policy.picked


def sorel(
    key: Key,
    log: Log,
    models: Sequence[H],
    plans: Sequence[rppo.Hypers] | Portfolio,
    seed: int = 0,
    copies: int = 256,
    run: Run = ALONE,
    model: WorldModel[H] = ensemble.model,
) -> Result:
    """Algorithm 1: phi_I, phi_II by PIL; a Bayes-adaptive policy planned in the posterior, phi_III by predictive
    median; and that median as its value. Nothing here touches an environment.

    `plans` are settings of rppo, which is the paper's own system, or a portfolio of candidates.
    """
    k1, k2 = jax.random.split(key)
    posterior = choose_posterior(k1, log, models, seed, run, model)
    worlds = refit(k1, log, posterior, run, WORLDS if isinstance(plans, Portfolio) else 0)
    return planned(k2, log, posterior, worlds, plans, copies, run)


def planned(
    key: Key,
    log: Log,
    posterior: PosteriorChoice,
    worlds: Posterior,
    plans: Sequence[rppo.Hypers] | Portfolio,
    copies: int = 256,
    run: Run = ALONE,
) -> Result:
    """Algorithm 1 from its second line on: what is planned in, and promised by, a posterior that is there."""
    k1, k2 = jax.random.split(key)
    own, held = worlds.fold(0), worlds.fold(1)
    several = isinstance(plans, Portfolio)  # the paper's own system promises the bare median
    with ThreadPoolExecutor(1) as beside:  # promises are checked while planners train
        check = beside.submit(checked, jax.random.fold_in(key, 3), log, posterior, worlds, correct=several)
        if isinstance(plans, Portfolio):
            past_of = lambda: check.result()[0]
            policy = choose_candidate(k1, log, worlds, plans, posterior.pil, run, past_of)
        else:
            policy = choose_policy(k1, rppo.planner, plans, log.data, own, held, "rppo", run)
        past, unchecked = check.result()
    run.tell("check", 1, 1)
    imagined = planners.get(policy.planner).imagines
    predicted = predictive(
        k2,
        policy.picked,
        pad_starts(held),
        log.data,
        own=pad_starts(own) if imagined else None,
        copies=copies,
        loss=posterior.pil,
        past=past,
    )
    settled = () if policy.field is None else (policy.field.reason,)
    doubts = (f"promises could not be checked: {unchecked}",) if unchecked else ()
    notes = (*log.notes, *posterior.notes, *doubts, *settled)
    return Result("sorel", "value", posterior, worlds, policy, predicted, behaviour(log.data, log.task), notes)


class Ranking(NamedTuple):
    """What TOReL found: policies in the order of what they are worth in held-out worlds, and all that rests on."""

    system: str
    promise: str
    select: str  # the estimator that the ranking is by
    posterior: PosteriorChoice
    worlds: Posterior
    trials: tuple[Trial, ...]
    index: int  # of the chosen trial
    indistinguishable: tuple[int, ...]  # trials whose intervals overlap the chosen one's
    saved: float  # share of updates that halving spared
    predicted: Predictive  # of the chosen policy
    behaviour: Behaviour
    notes: tuple[str, ...]

    @property
    def pil(self) -> PIL:
        return self.posterior.pil

    @property
    def picked(self) -> Policy:
        return self.trials[self.index].policy


def torel(
    key: Key,
    log: Log,
    models: Sequence[H],
    contenders: Sequence[Contender],
    seed: int = 0,
    plan: TrialPlan = TRIALS,
    run: Run = ALONE,
    model: WorldModel[H] = ensemble.model,
) -> Ranking:
    """Algorithm 2: phi_I, phi_II by PIL; any planner's phi_III by predictive median; a ranking, never a GO.

    `plan.select` names another estimator to rank by, for comparison.
    """
    select, copies = plan.select, plan.copies
    if select not in estimators.methods():
        raise BadInput(f"{select}: no such estimator; there are {', '.join(estimators.methods())}")
    k1, k2, k3, k4 = jax.random.split(key, 4)
    posterior = choose_posterior(k1, log, models, seed, run, model)
    worlds = refit(k1, log, posterior, run)

    def attempt(contenders: Sequence[Contender], run: Run) -> list[Trial]:
        tried = try_all(k2, log, contenders, worlds, posterior.pil, plan, run)
        return tried if select == "predictive" else _by(k3, select, tried, log)

    trials = seek_all(contenders, attempt, run)
    index = chosen(trials)
    picked = trials[index].policy
    imagines = next(c.planner.imagines for c in contenders if c.name == trials[index].planner)
    judge, own = pad_starts(held_out_worlds(imagines, worlds)), pad_starts(worlds.fold(0)) if imagines else None
    predicted = predictive(k4, picked, judge, log.data, own=own, copies=4 * copies, loss=posterior.pil)
    return Ranking(
        system="torel",
        promise="ranking",
        select=select,
        posterior=posterior,
        worlds=worlds,
        trials=tuple(trials),
        index=index,
        indistinguishable=overlapping(trials, index, plan.level),
        saved=1 - float(np.mean([trial.share for trial in trials])),
        predicted=predicted,
        behaviour=behaviour(log.data, log.task),
        notes=(*log.notes, *posterior.notes),
    )


def _by(key: Key, select: str, trials: Sequence[Trial], log: Log) -> list[Trial]:
    """The trials with another estimator's word on what they are worth."""
    known = logged(select, log)
    judged = estimators.get(select).estimate(key, [trial.policy for trial in trials], log.data, log.task, **known)
    return [trial._replace(rival=one.estimate) for trial, one in zip(trials, judged, strict=True)]


def chosen(trials: Sequence[Trial]) -> int:
    """The setting whose score, averaged over its seeds, is highest; and of its seeds the best."""
    full = [i for i, trial in enumerate(trials) if trial.share == 1.0]
    by_setting: dict[Hashable, list[int]] = {}
    for i in full:
        by_setting.setdefault((trials[i].planner, trials[i].setting), []).append(i)
    best = max(by_setting.values(), key=lambda group: float(np.mean([trials[i].score for i in group])))
    return max(best, key=lambda i: trials[i].score)


def overlapping(trials: Sequence[Trial], index: int, level: float = 0.9) -> tuple[int, ...]:
    """Trials of other settings whose interval reaches that of the chosen one."""
    best = trials[index]
    low = best.estimate.interval(level)[0]
    return tuple(
        i
        for i, trial in enumerate(trials)
        if (trial.planner, trial.setting) != (best.planner, best.setting)
        and trial.estimate.interval(level)[1] >= low
    )
