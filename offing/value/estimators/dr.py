"""The doubly robust estimate: FQE's value, corrected by importance sampling of what its critics leave.

How it is computed is in `value/importance.py`, which it shares with importance sampling.
"""

from __future__ import annotations

from ...wording import percent
from ..estimate import Estimate
from ..estimator import Estimator, by_scale
from ..importance import FEW, HEALTH, Doubly, doubly_robust

CLIPPED = 0.2  # share of ratios that may be clipped without a word
SETTLED = 0.01  # in standard deviations of the reward: what critics may have left to go


def faults(estimate: Estimate) -> list[str]:
    """What its weights and its critics say against it."""
    health, lines = estimate.health, []
    if health["effective"] < FEW:
        lines.append(f"its weights are those of {health['effective']:.1f} of {health['episodes']:.0f} episodes")
    if health["clipped"] > CLIPPED:
        lines.append(f"{percent(health['clipped'])} of its ratios were clipped, so its correction is held back")
    if health["critics_left"] > SETTLED:
        lines.append("its critics had not settled when training ended")
    return lines


estimator = Estimator(
    name="dr",
    words="the doubly robust estimate",
    estimate=doubly_robust,
    presets=by_scale(
        smoke=Doubly(width=8, depth=1, batch_size=16, updates=40, members=2, replicates=20),
        quick=Doubly(width=64, updates=10_000, lr=1e-3, members=3),
        large=Doubly(),
        paper=Doubly(
            updates=1_000_000,
            members=1,
            bootstrap=0.0,
            tolerance=0.0,
            alive_only=True,
            sampled=True,
            unmasked=True,
        ),
    ),
    health={
        **HEALTH,
        "critics_left": "what its critics still had to go, in standard deviations of the reward per step",
    },
    faults=faults,
    weighs=True,
    endless=True,
)
