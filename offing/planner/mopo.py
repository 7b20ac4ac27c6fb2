"""Model-based offline policy optimisation (Yu et al., 2020): soft actor-critic in worlds where doubt costs.

r(s, a) - penalty * max_m |std_m(s, a)|
"""

from __future__ import annotations

from ..hypers import grid, hypers
from ..posterior.walk import WorldStep, penalised
from ..types import Planner, Posterior
from . import _dream
from ._sizes import LARGE_DREAM, LONG_DREAM, SMALL_DREAM, TINY_DREAM


@hypers
class Hypers(_dream.Hypers):
    """phi_III: `penalty` for a doubt as wide as the log, in widths of its rewards, or both in its own units."""

    penalty: float = 1.0
    raw: bool = False  # as in the paper; see `walk.penalised`


def world(hypers: Hypers, worlds: Posterior, surveyed: tuple[()]) -> WorldStep:
    """Steps whose reward is lowered by how much worlds doubt them."""
    return penalised(worlds, hypers.penalty, hypers.raw)


functions = _dream.dreaming(world)
planner = Planner(
    name="mopo",
    words="soft actor-critic in worlds where doubt costs",
    Hypers=Hypers,
    **functions._asdict(),
    spaces={
        "smoke": lambda: grid(Hypers(**TINY_DREAM), penalty=(0.5, 5.0)),
        "quick": lambda: grid(Hypers(**SMALL_DREAM), penalty=(0.5, 5.0)),
        "standard": lambda: grid(Hypers(**SMALL_DREAM), length=(1.0, 5.0), penalty=(0.5, 5.0)),
        "large": lambda: grid(Hypers(**LARGE_DREAM), penalty=(0.5, 5.0)),
        # the paper's table of grids
        "paper": lambda: grid(Hypers(**LONG_DREAM, raw=True), length=(1.0, 3.0, 5.0), penalty=(1.0, 5.0)),
    },
    reports=_dream.REPORTS,
)
