"""Conservative offline model-based policy optimisation (Yu et al., 2021): no doubt is measured.

Q:  as `sacn`, + conservative * (E_imagined[ sum_n Q_n(s, a) ] - E_logged[ sum_n Q_n(s, a) ])

What is imagined is worth less, what was logged is worth more; the worlds are as they are.
"""

from __future__ import annotations

import jax.numpy as jnp

from ..hypers import grid, hypers
from ..nets import Net
from ..posterior.walk import WorldStep, fixed
from ..types import Array, Box, Discrete, Planner, Posterior, Transition
from . import _dream, sacn
from ._sizes import LARGE_DREAM, LONG_DREAM, SMALL_DREAM, TINY_DREAM


@hypers
class Hypers(_dream.Hypers):
    """phi_III. Two critics and half of the rows logged, as in the paper (Yu et al., 2021)."""

    critics: int = 2
    conservative: float = 1.0
    share: float = 0.5


def critic_loss(
    params: Net, hypers: Hypers, b: Transition, target: Array, actions: Box | Discrete
) -> tuple[Array, Array]:
    """Squared errors of all critics, and how much more they make of imagined rows; also what they say [N, B]."""
    loss, q = sacn.critic_loss(params, hypers, b, target, actions)
    logged = _dream.logged(hypers)
    mean = lambda rows: jnp.sum(q * rows) / jnp.maximum(jnp.sum(rows), 1)
    return loss + hypers.conservative * (mean(~logged) - mean(logged)), q


def world(hypers: Hypers, worlds: Posterior, surveyed: tuple[()]) -> WorldStep:
    """Steps of the worlds as they are."""
    return fixed(worlds)


functions = _dream.dreaming(world, critic_loss=critic_loss)
planner = Planner(
    name="combo",
    words="soft actor-critic in worlds whose steps are worth less than logged ones",
    Hypers=Hypers,
    **functions._asdict(),
    spaces={
        "smoke": lambda: grid(Hypers(**TINY_DREAM), conservative=(0.5, 5.0)),
        "quick": lambda: grid(Hypers(**SMALL_DREAM), conservative=(0.5, 5.0)),
        "standard": lambda: grid(Hypers(**SMALL_DREAM), conservative=(0.1, 0.5, 2.0, 5.0)),
        "large": lambda: grid(Hypers(**LARGE_DREAM), conservative=(0.5, 5.0)),
        # the weights that Yu et al. (2021) compare
        "paper": lambda: grid(Hypers(**LONG_DREAM), conservative=(0.5, 1.0, 5.0)),
    },
    reports=_dream.REPORTS,
)
