"""Counterpart of fig:placeholder: TOReL's estimate of every policy against its true return."""

from .figure import Figure
from .scatter import scatter

TITLE = "TOReL's estimates against true returns"
draw = scatter("torel_scatter", TITLE, lambda one: True, ("predictive",))
figure = Figure("torel_scatter", TITLE, ("torel/",), draw)
