"""A log and a posterior in, a policy out. The folder is the registry: x.py holds the planner named x.

A planner says all about itself, and no other file repeats its name. Other packages add planners
by the entry points `offing.planners`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..hypers import names as fields
from ..registry import Registry
from ..types import BadInput, Planner
from ._plan import Planned, plan, train, turns

__all__ = ["Planned", "get", "names", "plan", "space", "train", "turns"]

REGISTRY = Registry(__name__, Planner, "planner")
names = REGISTRY.names
get = REGISTRY.get
OTHER_NAMES = {"default": "standard"}  # of scales


def space(planner: str | Planner, scale: str = "standard", **fixed: Any) -> list[Any]:
    """The settings of that planner and scale; what is `fixed`, and not None, is the same in all of them.

    Scales are `smoke`, two settings that train for a moment, for tests; `quick` and `standard`, for logs of some
    10,000 rows on a CPU; `large`, for a GPU; `paper`, the grids of the papers' experiments.
    """
    planner = get(planner) if isinstance(planner, str) else planner
    scale = OTHER_NAMES.get(scale, scale)
    fixed = {name: value for name, value in fixed.items() if value is not None}
    if scale not in planner.spaces:
        raise BadInput(f"{scale}: no such scale of {planner.name}; there are {', '.join(planner.spaces)}")
    found: Sequence[Any] = planner.spaces[scale]()
    if "updates" in fixed and "updates" not in fields(planner.Hypers):  # of planners that imagine: gradient steps
        steps = fixed.pop("updates")
        found = [replace(setting, steps=steps, every=min(setting.every, steps)) for setting in found]
    try:
        found = [replace(setting, **fixed) for setting in found]
    except TypeError:
        raise BadInput(f"{planner.name}: has no setting among {', '.join(fixed)} that is not its own") from None
    return list(dict.fromkeys(found))
