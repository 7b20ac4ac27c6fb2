"""Intervals that hold on a pool: estimates are held against policies whose value is known (split conformal).

    score_i = |truth_i - median_i| / deviation_i,    factor = the ceil((K + 1) level)-th smallest of K scores

For one more policy drawn like those K, median +- factor * deviation covers with probability of at least `level`
(Vovk et al., 2005). That is a promise on average over policies exchangeable with those held against: for one that
was chosen for its high estimate, or that goes where the others did not, it says nothing. Policies to hold against
are ones whose return the log itself shows: behaviour policies, each left out of the log that it is judged by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..types import BadInput
from .estimate import ValueEstimate


class Conformal(NamedTuple):
    """By how much a deviation must be multiplied, from `policies` scores; infinite where they are too few."""

    factor: float
    level: float
    policies: int

    def interval(self, estimate: ValueEstimate) -> tuple[float, float]:
        """Where the value lies, if the policy is like those the factor came from."""
        half = self.factor * _scale(estimate)
        low, high = np.clip((estimate.median - half, estimate.median + half), *estimate.bounds)
        return float(min(low, estimate.median)), float(max(high, estimate.median))

    @property
    def note(self) -> str:
        """What the interval promises, in a sentence."""
        if not np.isfinite(self.factor):
            return (
                f"{self.policies} policies are too few for {self.level:.0%}: it takes {least(self.level)} or more"
            )
        return (
            f"covers {self.level:.0%} on average over policies exchangeable with the {self.policies} it was "
            "calibrated on, and not a policy that was picked from many or that leaves their ground"
        )


def least(level: float) -> int:
    """Policies that it takes for an interval of this level to be finite."""
    return int(np.ceil(level / (1 - level) - 1e-9))


def calibrate(estimates: Sequence[ValueEstimate], truths: Sequence[float], level: float = 0.9) -> Conformal:
    """The factor that makes intervals of `level` hold, from policies whose value is known."""
    known = np.asarray(truths, np.float64)
    if len(estimates) != len(known) or known.ndim != 1 or not len(known):
        raise BadInput(f"{len(estimates)} estimates for {known.shape} truths: give one of each for every policy")
    if not 0 < level < 1:
        raise BadInput(f"a level of {level} is not between 0 and 1")
    scores = np.sort([abs(t - e.median) / _scale(e) for e, t in zip(estimates, known, strict=True)])
    rank = int(np.ceil((len(scores) + 1) * level - 1e-9))
    factor = float(scores[rank - 1]) if rank <= len(scores) else float("inf")
    return Conformal(factor, level, len(scores))


def _scale(estimate: ValueEstimate) -> float:
    """The deviation, never quite nothing: an estimate that is sure of itself must still be able to be wrong."""
    return max(estimate.deviation, 1e-9 * (1 + abs(estimate.median)))
