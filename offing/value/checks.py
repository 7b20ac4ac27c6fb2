"""How far off have predictions been where they could be checked? The factor that intervals are multiplied by.

What the log's own behaviour earned is known, block by block, and worlds that did not see a block predict it, once
they are corrected by what they are off on the other blocks (`backtest`). A prediction that knows its doubt is off
by about one deviation,

    z_b = (logged_b - predicted_b) / deviation_b
    factor^2 = (STEPS * g + sum_b z_b^2 + FOLDS * z^2) / (STEPS + blocks + FOLDS)

g is what single steps say, error over spread of the worlds (PIL), held to LEAST ... MOST: it counts as STEPS
blocks do, so that a few lucky blocks do not say that all is well, and many overrule it. z is how far apart the
worlds of two folds are on the very policy that is asked about, in deviations; it counts as FOLDS blocks, and is
there where one fold planned and the other judges. The factor is applied to what the disagreement adds to an
interval. It is below 1 where they disagree more than they are wrong; where no block could be checked, it is not.
What it corrects does not also refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from ..pil import PIL

STEPS = 8.0  # blocks that single steps count as
FOLDS = 4.0  # blocks that the difference between two folds counts as
LEAST, MOST = 0.25, 9.0  # error over spread of single steps: beyond, they say that worlds are off, not by how much
LIMIT = 5.0  # a factor beyond which predictions do not hold, and no widening makes them


class Checks(NamedTuple):
    """What checks of predictions of returns come to."""

    blocks: int  # predictions that could be checked
    factor: float  # by which the worlds' disagreement must be multiplied
    inside: int  # of the checked ones inside their 90% interval, as it is
    high: float  # the factor may be as large as this, with 90% probability
    widened: int  # of the checked ones inside their 90% interval once the factor is applied
    squares: float = 0.0  # sum of the checked ones' squared scores
    steps: float = 1.0  # error over spread of single steps

    @property
    def held(self) -> bool:
        """Whether predictions hold once they are widened."""
        return self.factor <= LIMIT

    def including(self, score: float) -> float:
        """The factor for a policy on which the worlds of two folds differ by so many deviations."""
        if not np.isfinite(score):
            return self.factor
        total = STEPS * self.steps + self.squares + FOLDS * score**2
        return _factor(total / (STEPS + self.blocks + FOLDS), self.blocks)


def check(scores: Sequence[float], loss: PIL | None) -> Checks:
    """From z-scores of blocks, and from what single steps say of the worlds."""
    z = np.asarray([score for score in scores if np.isfinite(score)], np.float64)
    steps = 1.0 if loss is None else float(np.clip(loss.e / max(loss.v, 1e-30), LEAST, MOST))
    freedom, squares = STEPS + len(z), float(np.sum(z**2))
    factor = _factor((STEPS * steps + squares) / freedom, len(z))
    high = factor * float(np.sqrt(freedom / stats.chi2.ppf(0.1, freedom)))
    inside = lambda times: int(np.sum(np.abs(z) <= times * stats.norm.ppf(0.95)))
    return Checks(len(z), factor, inside(1.0), high, inside(factor), squares, steps)


def _factor(squared: float, blocks: int) -> float:
    return float(np.sqrt(squared if blocks else max(1.0, squared)))
