"""Model-based offline reinforcement learning (Kidambi et al., 2020): soft actor-critic in worlds that halt.

An episode halts, at the least logged reward plus `offset`, where two worlds are further apart than

    max over the log of max_ij |mean_i(s, a) - mean_j(s, a)|  /  pessimism
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..hypers import hypers
from ..posterior.walk import apart, halting
from ..types import Array, Dataset, Key, Posterior
from . import _dream
from ._parts import drawn

LOOK = 10_000  # logged steps of which the worlds are asked


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
    said = jax.vmap(posterior.predict, (0, None, None))(posterior.theta, obs, action)
    return apart(posterior, said.mean).max()


planner = _dream.dreaming(
    Hypers, lambda hypers, worlds, most: halting(worlds, most / hypers.pessimism, hypers.offset), survey
)
