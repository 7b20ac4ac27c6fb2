"""Spaces of settings to search: a base and axes, in Python or from a TOML file.

    planner = "rebrac"

    [base]
    updates = 20000

    [axes]
    actor_bc = [0.001, 0.01, 0.1]
    critic_bc = {low = 1e-4, high = 0.1, log = true}

Each axis is a list of choices, or a range to draw from.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, get_origin, get_type_hints

from .. import planner as planners
from ..data import text_in
from ..hypers import Uniform, Value, names
from ..types import BadInput, H

Axis = tuple[Value, ...] | Uniform
KEYS = ("planner", "base", "axes")
KINDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a text", tuple: "a list"}


class Space(NamedTuple, Generic[H]):
    """Settings to choose among: those that differ from the base along its axes. `space` makes one."""

    base: H
    axes: dict[str, Axis]
    planner: str = ""  # that the settings are for, where a file said so

    @property
    def count(self) -> float:
        """How many settings there are; endless with a range."""
        return math.prod(math.inf if isinstance(axis, Uniform) else len(axis) for axis in self.axes.values())


def read_space(path: str | os.PathLike[str]) -> Space:
    """The space in a TOML file; BadInput says what in it is wrong."""
    text = text_in(Path(path), "space")
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else "too deep"
        raise BadInput(f"{path}: not a space in TOML ({reason})") from None
    return space_of(content, str(path))


def space_of(content: Mapping[str, Any], where: str = "space") -> Space:
    """The space that a file's content describes: a planner's name, its base setting and axes."""
    for key in content:
        if key not in KEYS:
            raise BadInput(f"{where}, {key}: no such key; there are {', '.join(KEYS)}")
    name, base, axes = content.get("planner"), content.get("base", {}), content.get("axes", {})
    if not isinstance(name, str):
        raise BadInput(f"{where}, planner: a planner's name is missing; there are {', '.join(planners.names())}")
    for key, table in (("base", base), ("axes", axes)):
        if not isinstance(table, dict):
            raise BadInput(f"{where}, {key}: {_short(table)} where a table of fields was expected")
    try:
        kind = planners.get(name).Hypers
    except BadInput as error:
        raise BadInput(f"{where}, planner: {error}") from None
    fixed = {field: _value(kind, field, value, f"{where}, base.{field}") for field, value in base.items()}
    return space(kind(**fixed), axes, name, where)


def space(base: H, axes: Mapping[str, object], planner: str = "", where: str = "space") -> Space[H]:
    """The settings around `base`, each axis a list of choices, a `Uniform`, or a table of low, high and log."""
    return Space(base, {name: _axis(type(base), name, axis, where) for name, axis in axes.items()}, planner)


def _axis(kind: type, name: str, axis: object, where: str) -> Axis:
    place = f"{where}, axes.{name}"
    hint = _hint(kind, name, place)
    if isinstance(axis, (Mapping, Uniform)):
        if hint is not float:
            raise BadInput(f"{place}: a range is for numbers that are not counts; list the choices")
        return _range(dict(axis) if isinstance(axis, Mapping) else axis._asdict(), place)
    if not isinstance(axis, (list, tuple)) or not axis:
        raise BadInput(f"{place}: {_short(axis)} where a list of choices or low and high were expected")
    return tuple(dict.fromkeys(_value(kind, name, value, place) for value in axis))


def _range(given: Mapping[str, Any], place: str) -> Uniform:
    for key in given:
        if key not in Uniform._fields:
            raise BadInput(f"{place}.{key}: no such key of a range; there are {', '.join(Uniform._fields)}")
    low, high, log = given.get("low", math.nan), given.get("high", math.nan), given.get("log", False)
    if not (_is(low, float) and _is(high, float) and low < high):
        raise BadInput(f"{place}: {_short(given)} where low and high were expected, low the smaller")
    if not isinstance(log, bool) or (log and low <= 0):
        raise BadInput(f"{place}: {_short(given)} where log = true or false was expected, true from low > 0 on")
    return Uniform(float(low), float(high), log)


def _value(kind: type, name: str, value: object, place: str) -> Any:
    """A value for a field, lists as tuples; BadInput if it is of another kind."""
    hint = _hint(kind, name, place)
    plain = _plain(value)
    if hint in KINDS and not _is(plain, hint):
        raise BadInput(f"{place}: {_short(plain)} where {KINDS[hint]} was expected")
    return float(plain) if hint is float else plain


def _hint(kind: type, name: str, place: str) -> type:
    if name not in names(kind):
        raise BadInput(f"{place}: no such field; there are {', '.join(names(kind))}")
    hint = get_type_hints(kind)[name]
    return get_origin(hint) if get_origin(hint) in KINDS else hint


def _is(value: object, kind: type) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _plain(value: object) -> Any:
    return tuple(_plain(item) for item in value) if isinstance(value, (list, tuple)) else value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
