"""What the three pages of scatter plots share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..drawing import BLUE, against, panels
from .figure import Drawn, Records
from .sweeps import NAMES, Sweep, sweeps


def scatter(
    name: str, title: str, keep: Callable[[Sweep], bool], selectors: Sequence[str]
) -> Callable[[Records], Drawn]:
    """A panel for every sweep and selector."""

    def draw(records: Records) -> Drawn:
        each, said = [], []
        for one in (one for one in sweeps(records) if keep(one)):
            for selector in (s for s in selectors if s in one.said):
                estimate, true = one.kept(selector)
                figure = one.correlation(selector)
                r = "too few, or alike" if figure is None else f"r {figure.value:.2f}"
                group = ("", true.tolist(), estimate.tolist(), BLUE)
                unit = f"true {one.truth(selector).words}", f"{NAMES[selector]}'s estimate"
                each.append(
                    (f"{one.name}, {NAMES[selector]}: {r}", against([group], *unit, same=selector == "predictive"))
                )
                gone = f", {len(one.true) - len(true)} left out (not finite)" * (len(true) < len(one.true))
                words = one.truth(selector).words
                said.append(f"{one.name}, {NAMES[selector]}, {words}: {r}, {len(true)} policies{gone}")
        if not each:
            return Drawn("")
        across = len(selectors) if len(selectors) > 1 else 4
        return Drawn("\n".join(f"- {line}" for line in said), {name: panels(name, title, each, across=across)})

    return draw
