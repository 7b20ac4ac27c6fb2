"""A log and a posterior in, a policy out. The folder is the registry: x.py is the planner named x."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ..types import BadInput, Planner
from ._plan import Planned, plan, turns

__all__ = ["Planned", "get", "names", "plan", "turns"]


def names() -> list[str]:
    """Every planner there is."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def get(name: str) -> Planner:
    """The planner of that name."""
    if name not in names():
        raise BadInput(f"{name}: no such planner; there are {', '.join(names())}")
    return import_module(f"{__name__}.{name}").planner
