"""How far off have predictions been where they could be checked? The factor that intervals are widened by.

What the log's own behaviour earned is known, block by block, and worlds that did not see a block predict it
(`backtest`). A prediction that knows its doubt is off by about one deviation,

    z_b = (logged_b - predicted_b) / deviation_b,        factor^2 = (PRIOR * g + sum z_b^2) / (PRIOR + blocks)

and never below 1. g is what single steps say, error over spread of the worlds (PIL), held to MOST: it counts as
PRIOR blocks do, so that a few lucky blocks do not say that all is well, and many overrule it. The factor is
applied to what the worlds' disagreement adds to an interval; what it corrects does not also refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from ..pil import PIL

PRIOR = 4.0  # blocks that single steps count as
MOST = (
    9.0  # error over spread of single steps, at most: beyond, they say that worlds are wrong, and not by how much
)
LIMIT = 5.0  # a factor beyond which predictions do not hold, and no widening makes them


class Checks(NamedTuple):
    """What checks of predictions of returns come to."""

    blocks: int  # predictions that could be checked
    factor: float  # by which the worlds' disagreement must be widened
    inside: int  # of the checked ones inside their 90% interval, as it is before widening
    high: float  # the factor may be as large as this, with 90% probability
    widened: int  # of the checked ones inside their 90% interval once it is widened

    @property
    def held(self) -> bool:
        """Whether predictions hold once they are widened."""
        return self.factor <= LIMIT


def check(scores: Sequence[float], loss: PIL | None) -> Checks:
    """From z-scores of blocks, and from what single steps say of the worlds."""
    z = np.asarray([score for score in scores if np.isfinite(score)], np.float64)
    steps = 1.0 if loss is None else float(np.clip(loss.e / max(loss.v, 1e-30), 1.0, MOST))
    freedom = PRIOR + len(z)
    squared = (PRIOR * steps + np.sum(z**2)) / freedom
    factor = float(np.sqrt(max(1.0, squared)))
    high = float(np.sqrt(max(1.0, squared) * freedom / stats.chi2.ppf(0.1, freedom)))
    inside = lambda times: int(np.sum(np.abs(z) <= times * stats.norm.ppf(0.95)))
    return Checks(len(z), factor, inside(1.0), high, inside(factor))
