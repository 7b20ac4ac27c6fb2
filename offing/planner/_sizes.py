"""Sizes that planners' spaces share: how large nets and minibatches are at a scale, and how long they train."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict, TypeVar

from ..hypers import hypers

VISITS = 200  # of each row of the log, that training sees at most
LEAST = 10_000  # updates that are made however few rows there are


@hypers
class Sizes:
    """Hyperparameters that every planner has which learns from rows: how long, and how large."""

    updates: int = 50_000
    batch_size: int = 256
    width: int = 256
    depth: int = 2


Sized = TypeVar("Sized", bound=Sizes)


def worth(rows: int, each: int, least: int = LEAST) -> int:
    """Updates, of so many rows `each`, until all rows of a log were seen VISITS times; `least`, for any log.

    What a short log teaches is learned by then; the rest of a long training would only be waited for.
    """
    return max(least, VISITS * rows // each)


def paced(hypers: Sized, rows: int) -> Sized:
    """The setting for a log of so many rows: no longer than they are worth."""
    return replace(hypers, updates=min(hypers.updates, worth(rows, hypers.batch_size)))


class RowSizes(TypedDict, total=False):
    """What a scale sets of a planner that learns from rows."""

    updates: int
    batch_size: int
    width: int
    depth: int
    lr: float


class DreamSizes(TypedDict, total=False):
    """What a scale sets of a planner that imagines: `steps` are its gradient steps."""

    steps: int
    every: int
    envs: int
    segment: int
    retain: int
    batch_size: int
    width: int
    depth: int
    critics: int
    lr: float
    polyak: float


TINY: RowSizes = {"updates": 4, "batch_size": 16, "width": 8, "depth": 1}
BRIEF: RowSizes = {"updates": 3_000, "batch_size": 256, "width": 64, "depth": 2, "lr": 1e-3}
SMALL: RowSizes = {"updates": 8_000, "batch_size": 256, "width": 64, "depth": 2, "lr": 1e-3}
LARGE: RowSizes = {"updates": 200_000}  # all else is the classes' own
WHOLE: RowSizes = {"updates": 1_000_000}

TINY_DREAM: DreamSizes = {
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
SMALL_DREAM: DreamSizes = {
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
LARGE_DREAM: DreamSizes = {"steps": 200_000}
LONG_DREAM: DreamSizes = {"steps": 3_000_000}  # released for MOPO and MOReL; all else is the classes' own
