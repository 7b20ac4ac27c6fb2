"""Which policy: candidates planned in some worlds, and compared in worlds that they were not trained in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..planner import Planned, plan
from ..types import Dataset, Key, Planner, Policy, Posterior
from ..value.predictive import rollouts
from .field import Field
from .run import ALONE, Run
from .sweep import sweep

ROUNDS = 8  # how often a plan is held against worlds it was not trained in
GLANCES = 16  # episodes a world, each time
TABLE = 1_024  # starts, repeated if there are fewer, so that logs of all sizes share a program


class PolicyChoice(NamedTuple):
    """A policy chosen by its value in worlds that it was not trained in, with all that the choice was based on."""

    index: int
    planner: str
    points: tuple[Any, ...]
    scores: tuple[float, ...]  # median over held-out worlds of the return, at each setting's best round
    planned: tuple[Planned, ...]
    picked: Policy
    policies: tuple[Policy, ...]  # every setting's, at its best round
    field: Field | None = None  # all candidates of all planners; None where one planner's settings were compared


def choose_policy(
    key: Key,
    planner: Planner,
    settings: Sequence[Any],
    data: Dataset,
    own: Posterior,
    held: Posterior,
    name: str = "",
    run: Run = ALONE,
) -> PolicyChoice:
    """phi_III = argmax of the predictive median (Algorithms 1 and 2, second line).

    Each setting plans in the worlds of `own`; rounds and settings are compared in those of `held`, which were
    fitted on other episodes.
    """
    worlds = [pad_starts(worlds) for worlds in (own, held)]
    on_device = jax.device_put((key, data._replace(starts=np.zeros((0, 1))), *worlds))
    planned = sweep("plan", _planner(planner), settings, *on_device, run=run)
    scores = [float(np.max(np.nan_to_num(p.held, nan=-np.inf))) for p in planned]
    index = int(np.argmax(scores))
    width = data.steps.obs.shape[1]
    policies = tuple(
        replace(planner.blank(s, width, own.task), params=jax.tree.map(np.asarray, p.params))
        for s, p in zip(settings, planned, strict=True)
    )
    return PolicyChoice(index, name, tuple(settings), tuple(scores), tuple(planned), policies[index], policies)


def pad_starts(posterior: Posterior) -> Posterior:
    """The same worlds with their starts in a table of a standard length."""
    starts = np.asarray(posterior.starts)
    length = TABLE * -(-len(starts) // TABLE)
    return replace(posterior, starts=starts[np.arange(length) % len(starts)])


@cache
def _planner(planner: Planner) -> Callable[..., Planned]:
    """One function per planner, so that compiled programs are found again."""

    def run(hypers: Any, key: Key, data: Dataset, own: Posterior, held: Posterior) -> Planned:
        def ask(key: Key, policy: Policy) -> tuple[jax.Array, jax.Array]:
            inside, outside = (rollouts(key, policy, worlds, GLANCES)[0].returns for worlds in (own, held))
            return jnp.median(inside.mean(1)), jnp.median(outside.mean(1))

        return plan(key, hypers, planner, data, own, ask, ROUNDS)

    return run
