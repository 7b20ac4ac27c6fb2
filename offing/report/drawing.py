"""Pictures of a page, each of which may fail on its own: the page stands without it, and says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..value.left_out import LeftOut, attempt

Draw = Callable[[], str | None]  # a picture as SVG; None where there is nothing to show


class Drawn(NamedTuple):
    """The pictures that could be drawn, by name, and why the others could not."""

    pictures: dict[str, str]
    left_out: dict[str, str]

    @property
    def sentences(self) -> list[str]:
        return [f"Left out: {name}; {why}." for name, why in self.left_out.items()]


def draw_all(draws: Mapping[str, Draw], of: str = "") -> Drawn:
    """Every picture drawn; `of` says of what, in the names of those that are left out."""
    made = {name: attempt(draw) for name, draw in draws.items()}
    lost = {f"the picture {name}{of}": svg.reason for name, svg in made.items() if isinstance(svg, LeftOut)}
    return Drawn({name: svg for name, svg in made.items() if svg and not isinstance(svg, LeftOut)}, lost)
