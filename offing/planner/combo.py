"""Conservative offline model-based policy optimisation (Yu et al., 2021): no doubt is measured.

Q:  as `sacn`, + conservative * (E_imagined[ sum_n Q_n(s, a) ] - E_logged[ sum_n Q_n(s, a) ])

What is imagined is worth less, what was logged is worth more; the worlds are as they are.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..hypers import hypers
from ..posterior.walk import fixed
from ..types import Array, Box, Discrete, Transition
from . import _dream, sacn


@hypers
class Hypers(_dream.Hypers):
    """phi_III. Two critics and half of the rows logged, as in the paper (Yu et al., 2021)."""

    critics: int = 2
    conservative: float = 1.0
    share: float = 0.5


def critic_loss(
    params: Any, hypers: Hypers, b: Transition, target: Array, actions: Box | Discrete
) -> tuple[Array, Array]:
    """Squared errors of all critics, and how much more they make of imagined rows; also what they say [N, B]."""
    loss, q = sacn.critic_loss(params, hypers, b, target, actions)
    logged = _dream.logged(hypers)
    mean = lambda rows: jnp.sum(q * rows) / jnp.maximum(jnp.sum(rows), 1)
    return loss + hypers.conservative * (mean(~logged) - mean(logged)), q


planner = _dream.dreaming(Hypers, lambda hypers, worlds, _: fixed(worlds), critic_loss=critic_loss)
