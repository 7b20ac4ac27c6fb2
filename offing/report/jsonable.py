"""Results as JSON and back: one function each way, for dataclasses and named tuples of plain values.

    to_json(result)            what `json.dumps` writes strictly: numbers that are not finite are null
    from_json(Result, plain)   the same result; null where a float is due is not-a-number

A field whose name in the JSON is another one (`return` is a word of Python's) has `key("return")` as metadata.
A field whose name there is "" is left out of it.
A field of several kinds (`Backtest | LeftOut`) is read as the one whose fields the JSON has.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from ..types import BadInput, Json

T = TypeVar("T")
KEY = "json"  # of a field's metadata: its name in the JSON


def key(name: str) -> dict[str, str]:
    """Metadata of a field that has another name in the JSON."""
    return {KEY: name}


def to_json(value: object) -> Json:
    """A dataclass, or anything plain inside one, as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {named: to_json(getattr(value, name)) for name, named in _names(type(value)).items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: to_json(getattr(value, name)) for name in cast(Any, value)._fields}
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__jax_array__"):
        return to_json(np.asarray(value).tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (Sequence, set, frozenset)):
        return [to_json(item) for item in value]
    if hasattr(value, "__array__"):
        return to_json(np.asarray(value))
    raise TypeError(f"{type(value).__name__}: cannot be written as JSON")


def from_json(kind: type[T], plain: Json, where: str = "") -> T:
    """`to_json` backwards: a value of that kind; BadInput names the field that does not fit."""
    return cast(T, _read(kind, plain, where or getattr(kind, "__name__", str(kind))))


def _names(kind: type) -> dict[str, str]:
    """A dataclass's fields and their names in the JSON."""
    named = {each.name: each.metadata.get(KEY, each.name) for each in dataclasses.fields(kind)}
    return {name: name_in_json for name, name_in_json in named.items() if name_in_json}


def _read(kind: Any, plain: Json, where: str) -> object:
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(inside, plain, where)
    if kind is Any or kind is object:
        return plain
    if origin is Literal:
        return _due(plain in inside, plain, where, plain)
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        return _record(kind, plain, where)
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        table = _due(isinstance(plain, dict), plain, where, cast(dict[str, Json], plain))
        return {name: _read(inside[1], item, f"{where}.{name}") for name, item in table.items()}
    if origin in (tuple, list) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        return _several(origin, inside, plain, where)
    if kind is np.ndarray:
        return np.asarray(plain, float)
    return _scalar(kind, plain, where)


def _one_of(kinds: tuple[Any, ...], plain: Json, where: str) -> object:
    """The first kind that reads it, of records those first whose fields are most of what is there."""
    if plain is None and type(None) in kinds:
        return None
    given = set(plain) if isinstance(plain, dict) else set()
    fits = lambda kind: (
        len(given & set(_names(cast(type, kind)).values())) if dataclasses.is_dataclass(kind) else 0
    )
    for kind in sorted((k for k in kinds if k is not type(None)), key=lambda k: -fits(k)):
        try:
            return _read(kind, plain, where)
        except BadInput:
            continue
    raise BadInput(f"{where}: {_short(plain)} is none of the kinds that may stand there")


def _record(kind: Any, plain: Json, where: str) -> object:
    table = _due(isinstance(plain, dict), plain, where, cast(dict[str, Json], plain))
    hints = get_type_hints(kind)
    if dataclasses.is_dataclass(kind):
        names = _names(cast(type, kind))
        free = dataclasses.MISSING
        given = {
            f.name for f in dataclasses.fields(kind) if f.default is not free or f.default_factory is not free
        }
    else:
        names, given = {name: name for name in kind._fields}, set(kind._field_defaults)
    missing = [named for name, named in names.items() if named not in table and name not in given]
    if missing:
        raise BadInput(f"{where}.{missing[0]}: is missing")
    there = {name: named for name, named in names.items() if named in table}
    return cast(Any, kind)(
        **{name: _read(hints[name], table[named], f"{where}.{named}") for name, named in there.items()}
    )


def _several(origin: Any, inside: tuple[Any, ...], plain: Json, where: str) -> object:
    items = _due(isinstance(plain, list), plain, where, cast(list[Json], plain))
    if origin is tuple and inside[-1] is not Ellipsis:
        _due(len(items) == len(inside), plain, where, None)
        return tuple(
            _read(k, item, f"{where}[{i}]") for i, (k, item) in enumerate(zip(inside, items, strict=True))
        )
    read = [_read(inside[0], item, f"{where}[{i}]") for i, item in enumerate(items)]
    return read if origin is list else tuple(read)


def _scalar(kind: Any, plain: Json, where: str) -> object:
    if kind is float:
        if plain is None:
            return float("nan")
        number = isinstance(plain, (int, float)) and not isinstance(plain, bool)
        return float(cast(float, _due(number, plain, where, plain)))
    if kind is type(None):
        return _due(plain is None, plain, where, None)
    if kind is Path:
        return Path(cast(str, _due(isinstance(plain, str), plain, where, plain)))
    exact = isinstance(plain, kind) and (kind is bool or not isinstance(plain, bool))
    return _due(exact, plain, where, plain)


def _due(fits: bool, plain: Json, where: str, value: T) -> T:
    if not fits:
        raise BadInput(f"{where}: {_short(plain)} is not what may stand there")
    return value


def _short(plain: Json) -> str:
    text = repr(plain)
    return text if len(text) <= 40 else f"{text[:37]}..."
