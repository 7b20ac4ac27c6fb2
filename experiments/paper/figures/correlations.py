"""Counterpart of tab:fpe_main: Pearson's r between what is said offline and what is true, for every selector."""

from __future__ import annotations

import numpy as np

from offing.value import metrics

from ..drawing import table
from ..published import PEARSON
from .figure import Drawn, Figure, Records
from .sweeps import NAMES, Sweep, strong, sweeps


def draw(records: Records) -> Drawn:
    found = sweeps(records)
    if not found:
        return Drawn("")
    head = ["log", "planner", "n", *NAMES.values(), "paper's TOReL", "paper's FQE"]
    ranks = ["log", "planner", "n", "Spearman", "regret@1", "by chance", "settings' means: r", "p", ""]
    blocks = [
        table(head, [row(one) for one in found]),
        counts(found),
        "TOReL's ranks, and r over means of each setting where it has several policies:",
        table(ranks, [ranked(one) for one in found]),
    ]
    return Drawn("\n\n".join(blocks))


def row(one: Sweep) -> list[object]:
    """r and p by selector, bold where strong and significant."""
    cells: list[object] = [one.task, one.planner, len(one.true)]
    for selector in NAMES:
        figure = one.correlation(selector) if selector in one.said else None
        text = None if figure is None else f"{figure.value:.2f} ({figure.p:.2g})"
        cells.append(f"**{text}**" if strong(figure) else text)
    for selector in ("predictive", "fqe"):
        r = PEARSON.get((one.task, one.planner, selector))
        cells.append(None if r is None else f"{r[0]:.2f} ({r[1]:.2f})")
    return cells


def ranked(one: Sweep) -> list[object]:
    said, true = one.kept("predictive")
    if len(said) < 3 or np.ptp(true) == 0:
        return [one.task, one.planner, len(said), None, None, None, None, None, "no spread"]
    regret, means = metrics.regret(said, true), one.by_setting()
    more = (None, None) if means is None else (means.value, means.p)
    rank = metrics.spearman(said, true).value
    return [
        one.task,
        one.planner,
        len(said),
        rank,
        regret.value,
        regret.chance,
        *more,
        "no spread" if one.flat else "",
    ]


def counts(found: list[Sweep]) -> str:
    """How many sweeps each selector ranks strongly and significantly."""
    said = []
    for selector, name in NAMES.items():
        mine = [one for one in found if selector in one.said]
        if mine:
            said.append(f"{name} {sum(strong(one.correlation(selector)) for one in mine)} of {len(mine)}")
    return f"Strong and significant (r above 0.5, p below 0.05): {', '.join(said)}."


figure = Figure("correlations", "Predicted and true returns correlate", ("torel/", "judges/"), draw)
