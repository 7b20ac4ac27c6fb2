"""Named sets of settings for the ensemble: phi_I and phi_II as `choose_posterior` searches them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..hypers import grid
from ..types import BadInput

SCALES = ("smoke", "quick", "standard", "large", "paper")
LONG = 20_000  # rows of which small nets can learn more than the usual number of updates teaches them

# Two shapes for logs of a few thousand rows: a small smooth net, and a deeper one that can bend sharply.
SMALL: dict[str, Any] = {
    "width": 64,
    "depth": 2,
    "activation": "silu",
    "beta": 0.5,
    "members": 8,
    "elites": 8,
    "batch_size": 128,
    "lr": 1e-2,
    "rates": (0.3, 1.0, 3.0),
    "lens": 1.0,
    "final_lr": 0.01,
    "decay": 1e-4,
}
DEEP = SMALL | {"width": 96, "depth": 3, "activation": "relu", "beta": 1.0, "members": 5, "elites": 5}
# The paper's table for Brax and D4RL (3x200, ten members, eight kept, batch 256), and one layer more.
PAPER: dict[str, Any] = {"width": 200, "depth": 3, "activation": "relu", "members": 10, "elites": 8}
# For logs of 10^4 rows and more on a GPU. Worlds learned at one rate err alike, in both folds, and a plan finds
# where: members have rates of their own, and there are twice as many.
LARGE = PAPER | {"updates": 80_000, "lr": 2e-3, "span": 3.0, "members": 20, "elites": 16}
VISITS = 400  # of each row that a fold learns from: at `large` no fit trains for longer
LEAST = 10_000  # updates of a fit at `large`, however few rows there are


def sparing(updates: int, minibatches: float) -> int:
    """So many updates, or as many as see each of a fold's rows VISITS times; these are so many `minibatches`."""
    return min(updates, max(LEAST, 1_000 * round(VISITS * minibatches / 1_000)))


def space(kind: type) -> Callable[[str, int], list[Any]]:
    """The settings of a scale, as values of that class."""

    def of(scale: str, rows: int = 0) -> list[Any]:
        """`quick` 4 and `standard` 8 for a CPU, `large` 2 and `paper` 16 for a GPU.

        `smoke` is 2 that train for a moment: they show that a log goes through, and their numbers mean nothing.
        From LONG `rows` on, `quick` and `standard` train twice as long: there updates, not rows, limit a fit.
        """
        times = 2 if rows >= LONG else 1
        if scale == "smoke":
            tiny = kind(**SMALL | {"width": 8, "depth": 1, "members": 2, "elites": 2, "rates": (1.0,)}, updates=40)
            return grid(tiny, prior_scale=(0.0, 3.0))  # of one shape: most of its time is compiling
        if scale == "quick":
            shapes = [kind(**shape, updates=2_000 * times) for shape in (SMALL, DEEP)]
            return [s for shape in shapes for s in grid(shape, prior_scale=(0.0, 2.0))]
        if scale == "standard":
            shapes = [kind(**shape, updates=3_000 * times) for shape in (SMALL, DEEP)]
            return [s for shape in shapes for s in grid(shape, prior_scale=(0.0, 1.0, 2.0, 4.0))]
        if scale == "large":
            # With stronger priors worlds are wrong enough to let fall what truly stands.
            long = kind(**LARGE)
            if rows:
                long = replace(long, updates=sparing(long.updates, rows / long.folds / long.batch_size))
            return grid(long, prior_scale=(0.0, 1.0))
        if scale == "paper":
            plain = kind(**PAPER, updates=40_000)
            shapes = [plain, replace(plain, depth=4, activation="silu")]
            return [
                s
                for shape in shapes
                for s in grid(shape, bootstrap=(0.0, 1.0), decay=(1e-4, 1e-2), prior_scale=(0.0, 3.0))
            ]
        raise BadInput(f"{scale}: no such scale; there are {', '.join(SCALES)}")

    return of
