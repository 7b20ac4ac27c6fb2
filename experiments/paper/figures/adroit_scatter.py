"""Counterpart of fig:ope_all_vertical_2: pen and hammer, where a reader has D4RL's files and their simulator."""

from .figure import Figure
from .scatter import scatter
from .sweeps import ADROIT, NAMES

TITLE = "Every selector's estimates against true returns, Adroit"
draw = scatter("adroit_scatter", TITLE, lambda one: one.task in ADROIT, tuple(NAMES))
PARTS = tuple(f"{study}{name}" for study in ("torel/plan-", "torel/play-", "judges/") for name in ADROIT)
figure = Figure("adroit_scatter", TITLE, PARTS, draw)
