"""Parts by name: the files of a folder, and what other packages add by an entry point.

A folder is a registry: its file x.py holds the part named x, as the value that the registry is named after.
Another package adds a part in its pyproject.toml, and nothing here has to know of it:

    [project.entry-points."offing.planners"]
    mine = "my_package.mine:planner"
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pkgutil import iter_modules
from typing import Generic, TypeVar

from .types import BadInput

Part = TypeVar("Part")


@cache
def _files(home: str) -> tuple[str, ...]:
    folder = import_module(home).__path__
    return tuple(sorted(module.name for module in iter_modules(folder) if not module.name.startswith("_")))


@cache
def _points(group: str, path: tuple[str, ...]) -> EntryPoints:
    """Every installed package is read for it, which takes longer than a small log does; once for each sys.path."""
    return entry_points(group=group)


class Registry(Generic[Part]):
    """The parts of one kind: files of the package `home` that hold a value called `value`, and entry points."""

    def __init__(self, home: str, kind: type[Part], value: str) -> None:
        self.home, self.kind, self.value, self.group = home, kind, value, f"offing.{value}s"

    def own(self) -> list[str]:
        """Names of the parts in the folder; files that begin with an underscore hold none."""
        return list(_files(self.home))

    def added(self) -> dict[str, EntryPoint]:
        """What other packages add, by name; nobody can take the name of a part that is in the folder."""
        own = self.own()
        return {point.name: point for point in _points(self.group, tuple(sys.path)) if point.name not in own}

    def names(self) -> list[str]:
        """Every part there is. Nothing is imported for it."""
        return sorted([*self.own(), *self.added()])

    def get(self, name: str) -> Part:
        """The part of that name; BadInput if there is none, or if the package that adds it cannot be used."""
        if name in self.own():
            return getattr(import_module(f"{self.home}.{name}"), self.value)
        added = self.added()
        if name not in added:
            raise BadInput(f"{name}: no such {self.value}; there are {', '.join(self.names())}")
        try:
            part = added[name].load()
        except Exception as error:  # whatever somebody else's module raises while it is imported
            raise BadInput(
                f"{name}: the {self.value} at {added[name].value} cannot be imported ({error})"
            ) from None
        if not isinstance(part, self.kind):
            raise BadInput(f"{name}: {added[name].value} is no {self.kind.__name__}, which {self.group} asks for")
        return part
