"""Hyperparameters as pytrees: floats are traced, everything else is shape.

Two settings share a compiled program exactly when `jax.tree.structure` says they are equal, so `vmap`
over a stack of settings is the sweep. This is the one file that tells traced from static.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar, dataclass_transform, get_type_hints

import jax
import numpy as np

from .types import Array

H = TypeVar("H")
Value = bool | int | float | str | tuple[float, ...] | None  # of a hyperparameter
Settings = dict[str, Value]


@dataclass_transform(frozen_default=True)
def hypers(cls: type[H]) -> type[H]:
    """The class as a frozen dataclass whose `float` fields are leaves and whose others are structure."""

    def check(setting: H) -> None:
        for name in traced:
            if isinstance(getattr(setting, name), (int, np.integer)):
                object.__setattr__(setting, name, float(getattr(setting, name)))
        for name in static:
            try:
                hash(getattr(setting, name))
            except TypeError:
                raise TypeError(f"{cls.__qualname__}.{name} is structure, so it must be hashable") from None

    cls.__post_init__ = check  # type: ignore[attr-defined]  # before dataclass(), which looks for it once
    cls = dataclasses.dataclass(frozen=True)(cls)
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    traced = tuple(name for name in names if hints[name] is float)
    static = tuple(name for name in names if hints[name] is not float)

    def flatten(setting: H) -> tuple[tuple[object, ...], tuple[Hashable, ...]]:
        return tuple(getattr(setting, n) for n in traced), tuple(getattr(setting, n) for n in static)

    def unflatten(aux: tuple[Hashable, ...], leaves: Iterable[object]) -> H:
        setting = object.__new__(cls)  # leaves may be tracers or placeholders: nothing to check
        for name, value in (*zip(traced, leaves, strict=True), *zip(static, aux, strict=True)):
            object.__setattr__(setting, name, value)
        return setting

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)
    return cls


def asdict(setting: object) -> Settings:
    """The setting as plain Python values, ready for JSON."""
    plain = {}
    for field in dataclasses.fields(setting):  # type: ignore[arg-type]
        value = getattr(setting, field.name)
        plain[field.name] = np.asarray(value).tolist() if hasattr(value, "dtype") else value
    return plain


def names(kind: type) -> list[str]:
    """The fields of a class of hyperparameters."""
    return [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]


def grid(base: H, **axes: Sequence[Value]) -> list[H]:
    """Every combination of the axes' values, the last axis fastest, as settings around `base`."""
    return [
        dataclasses.replace(base, **dict(zip(axes, values, strict=True)))  # type: ignore[type-var]
        for values in itertools.product(*axes.values())
    ]


class Uniform(NamedTuple):
    """A range to draw from, for `draw`; `log` draws the exponent evenly."""

    low: float
    high: float
    log: bool = False


def draw(seed: int, base: H, count: int, **axes: Sequence[Value] | Uniform) -> list[H]:
    """`count` settings around `base`, each axis drawn from its choices or its `Uniform` range."""
    rng = np.random.default_rng(seed)

    def one(axis: Sequence[Value] | Uniform) -> Value:
        if not isinstance(axis, Uniform):
            return axis[int(rng.integers(len(axis)))]
        if axis.log:
            return float(np.exp(rng.uniform(np.log(axis.low), np.log(axis.high))))
        return float(rng.uniform(axis.low, axis.high))

    return [
        dataclasses.replace(base, **{name: one(axis) for name, axis in axes.items()})  # type: ignore[type-var]
        for _ in range(count)
    ]


def stack(settings: Sequence[H]) -> H:
    """Settings of one structure as a single one whose float fields are arrays [K]; so with any trees of arrays."""
    kinds = {jax.tree.structure(setting) for setting in settings}
    if len(kinds) != 1:
        raise ValueError(f"settings of {len(kinds)} structures cannot be stacked; see groups()")
    return jax.tree.map(lambda *leaves: np.stack([_narrow(leaf) for leaf in leaves]), *settings)


def _narrow(leaf: Array | float) -> np.ndarray | np.float32:
    return np.float32(leaf) if isinstance(leaf, float) else np.asarray(leaf)


class Group(NamedTuple, Generic[H]):
    """The settings that one compiled program serves: where they stood in the list, and themselves."""

    index: tuple[int, ...]
    settings: tuple[H, ...]


def groups(settings: Sequence[H]) -> list[Group[H]]:
    """The settings by static structure, in order of first appearance: one compiled program each."""
    places: dict[Hashable, list[int]] = {}
    for i, setting in enumerate(settings):
        places.setdefault(jax.tree.structure(setting), []).append(i)
    return [Group(tuple(index), tuple(settings[i] for i in index)) for index in places.values()]
