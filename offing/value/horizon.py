"""How far can the worlds be trusted? As far as they know how wrong they are.

From held-out logged states the worlds replay the logged actions (`posterior.replay`). h steps on they are off by
some error and apart by some spread. Where the two agree, doubt grows as error does and an interval means what it
says; from where error outgrows spread, worlds are surer than they should be. The tolerance is PIL's, of
|E - V| / (E + V) where E and V are their squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..pil import THRESHOLD
from ..posterior.replay import Replay


class Horizon(NamedTuple):
    """Error and spread by steps ahead, in standard deviations of the observations, and how far to trust them."""

    steps: np.ndarray  # [H]
    error: np.ndarray  # [H]
    spread: np.ndarray  # [H]
    episode: int  # the task's horizon

    @property
    def imbalance(self) -> np.ndarray:
        """(E - V) / (E + V) by steps ahead: above 0 over-confident, below 0 over-dispersed [H]."""
        e, v = np.square(self.error), np.square(self.spread)
        return (e - v) / np.maximum(e + v, 1e-30)

    @property
    def agree(self) -> np.ndarray:
        """Where error and spread agree [H]."""
        return np.abs(self.imbalance) <= THRESHOLD

    @property
    def trusted(self) -> int:
        """Steps ahead before the worlds are first surer than they should be; 0 if they are from the first on."""
        sure = np.flatnonzero(self.imbalance > THRESHOLD)
        safe = self.steps if not len(sure) else self.steps[: sure[0]]
        return int(safe[-1]) if len(safe) else 0

    @property
    def last(self) -> int:
        """The largest number of steps ahead at which error and spread agree; 0 if there is none."""
        return int(self.steps[self.agree][-1]) if self.agree.any() else 0

    @property
    def share(self) -> float:
        """`trusted`, as a share of the task's horizon."""
        return self.trusted / self.episode


def horizon(curve: Replay | None, episode: int) -> Horizon | None:
    """Of a replay at the noise scale that fits it; None where the log has no runs of steps."""
    if curve is None:
        return None
    at = int(np.argmin(np.abs(curve.scales - curve.scale)))
    return Horizon(np.asarray(curve.horizons), curve.error[at], curve.spread[at], episode)
