"""Named sets of settings for the planners: phi_III as `choose_policy` searches them, and the paper's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..hypers import draw, grid
from ..types import BadInput
from .rppo import Hypers

SCALES = ("smoke", "quick", "standard", "large", "paper")

# The paper's final settings, task by task (its table of BAMDP solvers); the core is its GRU.
PAPER = {
    "cartpole": Hypers(
        envs=4, segment=128, steps=500_000, epochs=4, minibatches=4, width=64, core="gru", entropy=0.01
    ),
    "pendulum": Hypers(core="gru"),
    "halfcheetah": Hypers(envs=512, steps=50_000_000, width=256, core="gru"),
    "hopper": Hypers(
        envs=512,
        segment=32,
        steps=50_000_000,
        epochs=2,
        minibatches=8,
        width=256,
        core="gru",
        discount=0.998,
        trace=0.8,
        clip=0.3,
        entropy=0.001,
        norm=1.0,
    ),
    "walker2d": Hypers(
        envs=512,
        steps=50_000_000,
        epochs=4,
        minibatches=8,
        width=256,
        core="gru",
        discount=0.995,
        entropy=0.001,
    ),
}

# The ranges that its sweep draws from; those of shapes are left to the base setting, one program for all.
SWEEP: dict[str, Any] = {
    "lr": (1e-4, 3e-4),
    "discount": (0.99, 0.995, 0.998),
    "trace": (0.8, 0.9, 0.95),
    "clip": (0.2, 0.3),
    "entropy": (0.0, 0.001, 0.01),
    "norm": (0.5, 1.0),
}

# For tasks of a few dimensions on a CPU: small nets, many short segments, a bold rate that is annealed.
SMALL = Hypers(
    envs=64, segment=64, steps=300_000, epochs=4, minibatches=4, width=64, lr=1e-3, entropy=0.003, first_std=0.6
)
# For tasks of the size of Brax's on a GPU.
LARGE = Hypers(envs=512, segment=64, steps=20_000_000, epochs=4, minibatches=8, width=256, first_std=0.6)


def rppo_space(scale: str, core: str | None = None) -> list[Hypers]:
    """The settings of that scale: `quick` 4 for a CPU, `standard` 8, half of them without memory, `large` 12
    for a GPU, `paper` 16 drawn from the paper's ranges; `smoke` is 2 that train for a moment. `core` keeps one.
    """
    if scale == "smoke":
        tiny = replace(SMALL, envs=8, segment=8, steps=512, epochs=1, minibatches=2, width=8)
        found = grid(tiny, lr=(1e-3, 3e-3))
    elif scale == "quick":
        found = grid(SMALL, lr=(1e-3, 3e-3), discount=(0.97, 0.99))
    elif scale == "standard":
        found = grid(
            replace(SMALL, steps=600_000), core=("linear", "none"), lr=(1e-3, 3e-3), discount=(0.97, 0.99)
        )
    elif scale == "large":
        base = replace(LARGE, steps=12_000_000, width=128)  # at half the steps plans still improve
        # Discounts up to the paper's for Hopper: at 0.99 a fall after 300 steps costs next to nothing.
        found = grid(base, core=("linear", "none"), lr=(3e-4, 1e-3), discount=(0.99, 0.995, 0.998))
    elif scale == "paper":
        found = list(dict.fromkeys(draw(0, LARGE, 24, **SWEEP)))[:16]
    else:
        raise BadInput(f"{scale}: no such scale; there are {', '.join(SCALES)}")
    if core is None:
        return found
    alike = [replace(setting, core=core) for setting in found]
    return list(dict.fromkeys(alike))
