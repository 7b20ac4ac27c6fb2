"""Sizes that planners' spaces share: how large nets and minibatches are at a scale, and how long they train."""

from __future__ import annotations

from typing import Any

# of planners that learn from rows
TINY: dict[str, Any] = {"updates": 4, "batch_size": 16, "width": 8, "depth": 1}
BRIEF: dict[str, Any] = {"updates": 3_000, "batch_size": 256, "width": 64, "depth": 2, "lr": 1e-3}
SMALL: dict[str, Any] = {"updates": 8_000, "batch_size": 256, "width": 64, "depth": 2, "lr": 1e-3}
LARGE: dict[str, Any] = {"updates": 200_000}  # all else is the classes' own
WHOLE: dict[str, Any] = {"updates": 1_000_000}

# of planners that imagine: `steps` are their gradient steps
TINY_DREAM: dict[str, Any] = {
    "steps": 8,
    "every": 4,
    "envs": 10,
    "segment": 2,
    "retain": 2,
    "batch_size": 16,
    "width": 8,
    "depth": 1,
    "critics": 2,
}
SMALL_DREAM: dict[str, Any] = {
    "steps": 8_000,
    "every": 250,
    "envs": 400,
    "batch_size": 128,
    "width": 64,
    "depth": 2,
    "critics": 4,
    "lr": 1e-3,
    "polyak": 0.01,
}
LARGE_DREAM: dict[str, Any] = {"steps": 200_000}
LONG_DREAM: dict[str, Any] = {"steps": 3_000_000}  # released for MOPO and MOReL; all else is the classes' own
