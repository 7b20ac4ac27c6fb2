"""Named sets of settings for the ensemble: phi_I and phi_II as `choose_posterior` searches them."""

from __future__ import annotations

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
    lr=3e-3,
    final_lr=0.01,
)
DEEP = replace(SMALL, width=96, depth=3, activation="relu", beta=1.0, members=5, elites=5)
# The paper's table for Brax and D4RL (3x200, ten members, eight kept, batch 256), and one layer more.
PAPER = Hypers(width=200, depth=3, activation="relu", members=10, elites=8, updates=40_000)

SCALES = ("smoke", "quick", "standard", "paper")


def space(scale: str) -> list[Hypers]:
    """The settings of that scale: `quick` 8 and `standard` 24 for a CPU, `paper` 54 for a GPU.

    `smoke` is 4 that train for a moment: they show that a log goes through, and their numbers mean nothing.
    """
    if scale == "smoke":
        tiny = replace(SMALL, width=8, members=2, elites=2, updates=40)
        return [*grid(replace(tiny, depth=1), own=(0.3, 1.0)), *grid(replace(tiny, depth=2), own=(0.3, 1.0))]
    if scale == "quick":
        axes = {"own": (0.3, 1.0), "prior_scale": (0.0, 1.0), "updates": (2_500,)}
        return [*grid(SMALL, **axes), *grid(DEEP, **axes)]
    if scale == "standard":
        bases = (SMALL, DEEP)
        axes = {"own": (0.3, 1.0), "prior_scale": (0.0, 0.3), "updates": (4_000,)}
    elif scale == "paper":
        bases = (PAPER, replace(PAPER, depth=4, activation="silu"))
        axes = {"own": (0.2, 0.5, 1.0), "prior_scale": (0.0, 0.3, 3.0)}
    else:
        raise BadInput(f"{scale}: no such scale; there are {', '.join(SCALES)}")
    # bootstrap and weight decay each against neither, not against each other
    pairs = ((0.0, 1e-4), (1.0, 1e-4), (0.0, 1e-2))
    return [
        setting
        for base in bases
        for bootstrap, decay in pairs
        for setting in grid(replace(base, bootstrap=bootstrap, decay=decay), **axes)
    ]
