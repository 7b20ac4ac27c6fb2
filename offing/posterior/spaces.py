"""Named sets of settings for the ensemble: phi_I and phi_II as `choose_posterior` searches them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..hypers import grid
from ..types import BadInput
from .ensemble import Hypers

# Two shapes for logs of a few thousand rows: a small smooth net, and a deeper one that can bend sharply.
SMALL = Hypers(
    width=64,
    depth=2,
    activation="silu",
    beta=0.5,
    members=8,
    elites=8,
    batch_size=128,
    lr=1e-2,
    rates=(0.3, 1.0, 3.0),
    final_lr=0.01,
)
DEEP = replace(SMALL, width=96, depth=3, activation="relu", beta=1.0, members=5, elites=5)
# The paper's table for Brax and D4RL (3x200, ten members, eight kept, batch 256), and one layer more.
PAPER = Hypers(width=200, depth=3, activation="relu", members=10, elites=8, updates=40_000)

# For logs of 10^4 rows and more on a GPU. Worlds learned at one rate err alike, in both folds, and a plan finds
# where: members have rates of their own, and there are twice as many.
LARGE = replace(PAPER, updates=80_000, lr=2e-3, span=3.0, members=20, elites=16)

SCALES = ("smoke", "quick", "standard", "large", "paper")


LONG = 20_000  # rows of which small nets can learn more than the usual number of updates teaches them


def space(scale: str, rows: int = 0) -> list[Hypers]:
    """The settings of that scale: `quick` 12 and `standard` 24 for a CPU, `large` 2 and `paper` 48 for a GPU.

    `smoke` is 4 that train for a moment: they show that a log goes through, and their numbers mean nothing.
    From LONG `rows` on, `quick` and `standard` train twice as long: there updates, not rows, limit a fit.
    """
    times = 2 if rows >= LONG else 1
    if scale == "smoke":
        tiny = replace(SMALL, width=8, depth=1, members=2, elites=2, updates=40, rates=(1.0,))
        return grid(tiny, own=(0.3, 1.0), prior_scale=(0.0, 3.0))  # of one shape: most of its time is compiling
    if scale == "quick":
        return _around(SMALL, DEEP, pairs=PLAIN, updates=2_000 * times)
    if scale == "standard":
        return _around(SMALL, DEEP, pairs=(*PLAIN, (1.0, 1e-2)), updates=3_000 * times)
    if scale == "large":
        # With stronger priors worlds are wrong enough to let fall what truly stands; a bootstrap was never chosen.
        return grid(LARGE, prior_scale=(0.0, 1.0))
    if scale == "paper":
        pairs = (*PLAIN, (1.0, 1e-4), (0.0, 1e-2), (1.0, 1e-2))
        return _around(PAPER, replace(PAPER, depth=4, activation="silu"), pairs=pairs, updates=40_000)
    raise BadInput(f"{scale}: no such scale; there are {', '.join(SCALES)}")


PLAIN = ((0.0, 1e-4),)  # bootstrap, weight decay
# own, shared, prior_scale: from members that hardly differ to members that differ more than any log asks for
SPREADS = ((0.03, 1.0, 0.0), (0.1, 1.0, 0.0), (1.0, 0.0, 0.0), (1.0, 0.0, 1.5), (1.0, 0.0, 3.0), (1.0, 0.0, 6.0))


def _around(*shapes: Hypers, pairs: Sequence[tuple[float, float]], updates: int) -> list[Hypers]:
    return [
        replace(shape, updates=updates, bootstrap=b, decay=decay, own=own, shared=shared, prior_scale=prior)
        for shape in shapes
        for b, decay in pairs
        for own, shared, prior in SPREADS
    ]
