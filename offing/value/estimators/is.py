"""Importance sampling: logged episodes, weighted by how much likelier the policy was to act as was done.

How it is computed is in `value/importance.py`, which it shares with the doubly robust estimate.
"""

from __future__ import annotations

from ...wording import percent
from ..estimate import Estimate
from ..estimator import Estimator, by_scale
from ..importance import FEW, HEALTH, Hypers, importance

CLIPPED = 0.2  # share of ratios that may be clipped without a word


def faults(estimate: Estimate) -> list[str]:
    """What its weights say against it."""
    health, lines = estimate.health, []
    if health["effective"] < FEW:
        lines.append(f"its weights are those of {health['effective']:.1f} of {health['episodes']:.0f} episodes")
    if health["clipped"] > CLIPPED:
        share = percent(health["clipped"])
        lines.append(f"{share} of its ratios were clipped, so it values somebody between policy and behaviour")
    return lines


estimator = Estimator(
    name="is",
    words="importance sampling",
    estimate=importance,
    presets=by_scale(
        smoke=Hypers(width=8, depth=1, batch_size=16, updates=40, replicates=20),
        quick=Hypers(width=64, updates=5_000, lr=1e-3),
        large=Hypers(updates=20_000),
        paper=Hypers(updates=1_000_000, alive_only=True, sampled=True),
    ),
    health=HEALTH,
    faults=faults,
    weighs=True,
)
