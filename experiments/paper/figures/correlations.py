"""Counterpart of tab:fpe_main: Pearson's r between what is said offline and what is true, for every selector."""

from __future__ import annotations

import numpy as np

from offing.value import metrics

from ..drawing import table
from ..published import PEARSON
from .figure import Drawn, Figure, Records
from .sweeps import NAMES, STRONG, SURE, Sweep, left_out, strong, sweeps, truths


def draw(records: Records) -> Drawn:
    found = sweeps(records)
    if not found:
        return Drawn("")
    head = ["log", "planner", "n", *NAMES.values(), "paper's TOReL", "paper's FQE"]
    ranks = ["log", "planner", "n", "Spearman", "regret@1", "by chance", "settings' means: r", "p", ""]
    blocks = [
        truths(found),
        left_out(found),
        table(head, [row(one) for one in found]),
        counts(found),
        "TOReL's ranks, the regret of its choice, and r over means of each setting's policies:",
        table(ranks, [ranked(one) for one in found]),
    ]
    return Drawn("\n\n".join(block for block in blocks if block))


def row(one: Sweep) -> list[object]:
    """r and p by selector over policies, bold where r over settings' means is strong and significant."""
    cells: list[object] = [one.task, one.planner, len(one.true)]
    for selector in NAMES:
        figure = one.correlation(selector) if selector in one.said else None
        text = None if figure is None else f"{figure.value:.2f} ({figure.p:.2g})"
        cells.append(f"**{text}**" if text and strong(one.by_setting(selector)) else text)
    for selector in ("predictive", "fqe"):
        r = PEARSON.get((one.task, one.planner, selector))
        cells.append(None if r is None else f"{r[0]:.2f} ({r[1]:.2f})")
    return cells


def ranked(one: Sweep) -> list[object]:
    """A sweep in, its ranks, the regret of TOReL's choice beside chance, and r over settings' means out."""
    said, true = one.kept("predictive")
    if len(said) < 3 or np.ptp(true) == 0:
        why = "too few" if len(said) < 3 else "no spread"
        return [one.task, one.planner, len(said), None, None, None, None, None, why]
    means = one.by_setting()
    more = (None, None) if means is None else (means.value, means.p)
    rank = metrics.spearman(said, true).value
    regrets = (one.regret("predictive"), one.blind())
    return [one.task, one.planner, len(said), rank, *regrets, *more, "no spread" if one.flat else ""]


def counts(found: list[Sweep]) -> str:
    """How many of the paper's sweeps each selector ranks strongly and significantly, out of all that it has."""
    listed = {s: {(task, planner) for task, planner, each in PEARSON if each == s} for s in NAMES}
    whole, some = listed["predictive"], set.intersection(*listed.values())
    first = [one for one in found if one.seed == 0]

    def of(selector: str, among: set[tuple[str, str]]) -> str:
        mine = [one for one in first if (one.task, one.planner) in among and selector in one.said]
        theirs = [PEARSON[*sweep, selector] for sweep in among]
        here = sum(strong(one.by_setting(selector)) for one in mine)
        paper = sum(r > STRONG and p <= SURE for r, p in theirs)
        return f"{NAMES[selector]} {here} ({len(mine)} are judged here; the paper {paper})"

    return (
        f"Strong and significant (r above {STRONG}, p below {SURE}, over settings' means, so that policies of one "
        f"setting count once): of the paper's {len(whole)} sweeps {of('predictive', whole)}; of the {len(some)} "
        f"that it has for every selector {', '.join(of(selector, some) for selector in NAMES)}."
    )


figure = Figure("correlations", "Predicted and true returns correlate", ("torel/", "judges/"), draw)
