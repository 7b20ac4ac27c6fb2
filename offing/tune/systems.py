"""SOReL, as the paper's Algorithm 1 prints it: a log in; a policy, its value and what they rest on out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from .. import planner as planners
from ..data import Behaviour, Log, behaviour
from ..pil import PIL
from ..posterior import ensemble
from ..types import Key, Policy, Posterior, Progress
from ..value.predictive import Predictive, predictive
from .choose import PolicyChoice, PosteriorChoice, choose_policy, choose_posterior, refit, tabled
from .sweep import Shelf


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
    models: Sequence[ensemble.Hypers],
    plans: Sequence[Any],
    seed: int = 0,
    copies: int = 256,
    shelf: Shelf | None = None,
    progress: Progress | None = None,
) -> Result:
    """Algorithm 1: phi_I, phi_II by PIL; a Bayes-adaptive policy planned in the posterior, phi_III by predictive
    median; and that median as its value. Nothing here touches an environment.
    """
    k1, k2 = jax.random.split(key)
    posterior = choose_posterior(k1, log, models, seed, shelf, progress)
    worlds = refit(k1, log, posterior, seed, shelf, progress)
    return planned(k2, log, posterior, worlds, plans, copies, shelf, progress)


def planned(
    key: Key,
    log: Log,
    posterior: PosteriorChoice,
    worlds: Posterior,
    plans: Sequence[Any],
    copies: int = 256,
    shelf: Shelf | None = None,
    progress: Progress | None = None,
) -> Result:
    """Algorithm 1 from its second line on: what is planned in, and promised by, a posterior that is there."""
    k1, k2 = jax.random.split(key)
    own, held = worlds.fold(0), worlds.fold(1)
    policy = choose_policy(k1, planners.get("rppo"), plans, log.data, own, held, "rppo", shelf, progress)
    predicted = predictive(
        k2,
        policy.picked,
        tabled(held),
        log.data,
        own=tabled(own),
        copies=copies,
        loss=posterior.pil,
    )
    notes = (*log.notes, *posterior.notes)
    return Result("sorel", "value", posterior, worlds, policy, predicted, behaviour(log.data, log.task), notes)
