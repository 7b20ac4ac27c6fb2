"""Model-based offline reinforcement learning (Kidambi et al., 2020): soft actor-critic in worlds that halt.

An episode halts, at the least logged reward plus `offset`, where two worlds are further apart than

    max over the log of max_ij |mean_i(s, a) - mean_j(s, a)|  /  pessimism
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..hypers import grid, hypers
from ..posterior.walk import WorldStep, disagreement, halting, moments_of
from ..types import Array, Dataset, Key, Planner, Posterior
from . import _dream
from ._parts import drawn
from ._sizes import LARGE_DREAM, LONG_DREAM, SMALL_DREAM, TINY_DREAM

LOOK = 10_000  # logged steps at which the worlds are compared


@hypers
class Hypers(_dream.Hypers):
    """phi_III. 0 is no pessimism; beyond 1, worlds halt on some of the log itself."""

    pessimism: float = 5.0
    offset: float = -50.0  # in the log's own units, once
    share: float = 0.01


def survey(key: Key, data: Dataset, posterior: Posterior) -> Array:
    """How far apart the worlds are on the log, at most []."""
    rows = drawn(key, data, (min(LOOK, len(data.steps.reward)),))
    obs, action = (jnp.asarray(leaf)[rows] for leaf in (data.steps.obs, data.steps.action))
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:]), jax.vmap(posterior.begin)(posterior.theta))
    memory = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(rows), *leaf.shape)), blank)
    ask = lambda theta: moments_of(posterior)(theta, memory, obs, action).mean
    return disagreement(posterior, jax.vmap(ask)(posterior.theta)).max()


def world(hypers: Hypers, worlds: Posterior, most: Array) -> WorldStep:
    """Steps that halt where worlds are further apart than a share of what they are on the log at most."""
    return halting(worlds, most / hypers.pessimism, hypers.offset)


functions = _dream.dreaming(world, survey)
planner = Planner(
    name="morel",
    words="soft actor-critic in worlds that halt where they differ",
    Hypers=Hypers,
    **functions._asdict(),
    spaces={
        "smoke": lambda: grid(Hypers(**TINY_DREAM), pessimism=(0.0, 5.0)),
        "quick": lambda: grid(Hypers(**SMALL_DREAM), offset=(-50.0, -500.0)),
        "standard": lambda: grid(Hypers(**SMALL_DREAM), pessimism=(0.5, 2.0), offset=(-50.0, -500.0)),
        "large": lambda: grid(Hypers(**LARGE_DREAM), pessimism=(0.5, 5.0)),
        # the paper's table of grids
        "paper": lambda: grid(
            Hypers(**LONG_DREAM),
            pessimism=(0.0, 5.0, 10.0, 15.0, 20.0, 25.0),
            offset=(-30.0, -50.0, -100.0, -200.0),
        ),
    },
    reports=_dream.REPORTS,
)
