"""How settings are tried and how policies are evaluated: the choices that a run makes once and then keeps to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TrialPlan:
    """How TOReL tries settings: how often each is trained and rolled out, who stops early, and what ranks them."""

    seeds: int = 1
    copies: int = 64  # episodes in every world
    halve: bool = False  # whether the worse half stops early
    select: str = "predictive"  # the estimator that ranks
    level: float = 0.9  # of the intervals by which policies are told apart


@dataclass(frozen=True, kw_only=True)
class EvaluationPlan:
    """How policies are evaluated: by which methods, how thoroughly, and how near the answer should come."""

    methods: Sequence[str] | None = None  # beside the posterior; None: all there are
    scale: str = "quick"  # how long estimators train
    copies: int = 256  # episodes in every world
    level: float = 0.9  # of the intervals
    within: float | None = None  # the half-width that an interval should have; None: half of what it is
    sampled: bool = False  # whether policies draw their actions
    forget: bool = False  # whether methods that judge no memory empty it before every step
    judges: Sequence[str] = ()  # other kinds of worlds to ask beside


TRIALS = TrialPlan()
EVALUATION = EvaluationPlan()
