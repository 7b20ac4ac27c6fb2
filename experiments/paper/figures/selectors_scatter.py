"""Counterpart of fig:ope_all_vertical_1: every selector's estimates on counterparts of D4RL's locomotion logs."""

from .figure import Figure
from .scatter import scatter
from .sweeps import D4RL, NAMES

TITLE = "Every selector's estimates against true returns, MuJoCo"
KEPT = ("iql", "rebrac")
draw = scatter("selectors_scatter", TITLE, lambda one: one.task in D4RL and one.planner in KEPT, tuple(NAMES))
PARTS = tuple(f"{study}{name}" for study in ("torel/plan-", "torel/play-", "judges/") for name in D4RL)
figure = Figure("selectors_scatter", TITLE, PARTS, draw)
