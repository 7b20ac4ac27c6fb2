"""Model-based offline policy optimisation (Yu et al., 2020): soft actor-critic in worlds where doubt costs.

r(s, a) - penalty * max_m |std_m(s, a)|
"""

from __future__ import annotations

from ..hypers import hypers
from ..posterior.walk import penalised
from . import _dream


@hypers
class Hypers(_dream.Hypers):
    """phi_III: `penalty` for a doubt as wide as the log, in widths of its rewards, or both in its own units."""

    penalty: float = 1.0
    raw: bool = False  # as in the paper; see `walk.penalised`


planner = _dream.dreaming(Hypers, lambda hypers, worlds, _: penalised(worlds, hypers.penalty, hypers.raw))
