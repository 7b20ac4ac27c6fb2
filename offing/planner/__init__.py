"""A log and a posterior in, a policy out. The folder is the registry: x.py holds the planner named x.

A planner says all about itself, and no other file repeats its name. Other packages add planners
by the entry points `offing.planners`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from ..hypers import Value
from ..hypers import names as fields
from ..registry import Registry
from ..types import BadInput, H, Planner, S
from ._plan import Planned, plan, train

__all__ = ["Planned", "get", "names", "plan", "space", "train"]

REGISTRY = Registry(__name__, Planner, "planner")
names = REGISTRY.names
get = REGISTRY.get
OTHER_NAMES = {"default": "standard"}  # of scales


def space(
    planner: str | Planner[H, S], scale: str = "standard", *, rows: int | None = None, **fixed: Value
) -> list[H]:
    """The settings of that planner and scale; what is `fixed`, and not None, is the same in all of them.

    With `rows` none of them trains for longer than a log of so many is worth.

    Scales are `smoke`, two settings that train for a moment, for tests; `quick` and `standard`, for logs of some
    10,000 rows on a CPU; `large`, for a GPU; `paper`, the grids of the papers' experiments.
    """
    planner = get(planner) if isinstance(planner, str) else planner
    scale = OTHER_NAMES.get(scale, scale)
    fixed = {name: value for name, value in fixed.items() if value is not None}
    if scale not in planner.spaces:
        raise BadInput(f"{scale}: no such scale of {planner.name}; there are {', '.join(planner.spaces)}")
    settings: Sequence[H] = planner.spaces[scale]()
    if rows is not None and planner.paced is not None:
        settings = [planner.paced(setting, rows) for setting in settings]
    if "updates" in fixed and "updates" not in fields(planner.Hypers):  # of planners that imagine: gradient steps
        steps = cast(int, fixed.pop("updates"))
        settings = [_brief(setting, steps) for setting in settings]
    try:
        settings = [replace(setting, **fixed) for setting in settings]  # type: ignore[type-var]
    except TypeError:
        raise BadInput(f"{planner.name}: has no setting among {', '.join(fixed)} that is not its own") from None
    return list(dict.fromkeys(settings))


def _brief(setting: H, steps: int) -> H:
    """The setting of a planner that imagines, with so many gradient steps in all."""
    every = min(vars(setting)["every"], steps)
    return replace(setting, steps=steps, every=every)  # type: ignore[type-var]
