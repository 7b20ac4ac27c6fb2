"""Columns that are one category: of several columns of 0 and 1 that stand side by side exactly one is 1.

A table's words become such columns. Drawn each by itself, none of them or two would be 1, which no row of the log
ever was. So a category is one choice among as many values as it has columns; the choice is written down with its
first column, and its values are the places of the columns.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array

Groups = tuple[tuple[int, ...], ...]


def categories(obs: np.ndarray, after: np.ndarray) -> Groups:
    """The columns of each category, in rows before and after a step [N, S]. One that never changes is none."""
    binary = [_binary(obs[:, c]) and _binary(after[:, c]) for c in range(obs.shape[1])]
    found, c = [], 0
    while c < len(binary):
        last = _end(obs, after, binary, c)
        columns = tuple(range(c, last))
        if columns and np.any(obs[:, c:last] != after[:, c:last]):
            found.append(columns)
        c = max(last, c + 1)
    return tuple(found)


def _binary(values: np.ndarray) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


def _end(obs: np.ndarray, after: np.ndarray, binary: list[bool], first: int) -> int:
    """The column behind the category that begins at `first`; `first` itself where none does."""
    ones = np.zeros(2 * len(obs))
    for c in range(first, len(binary)):
        if not binary[c]:
            return first
        ones += np.concatenate([obs[:, c], after[:, c]])
        if ones.max() > 1:
            return first
        if ones.min() == 1:
            return c + 1 if c > first else first
    return first


def whole(columns: tuple[int, ...], groups: Groups) -> tuple[int, ...]:
    """These columns without those of a category that is not among them in full."""
    parted = {c for group in groups if not set(group) <= set(columns) for c in group}
    return tuple(c for c in columns if c not in parted)


def places(group: tuple[int, ...], after: np.ndarray) -> np.ndarray:
    """Which column of the category is 1 [N]."""
    return after[:, list(group)].argmax(1)


def written(outputs: Array, group: tuple[int, ...], place: Array) -> Array:
    """The outputs [..., D] with the category at the column of that place."""
    return jnp.asarray(outputs).at[..., np.array(group)].set(jax.nn.one_hot(place, len(group)))
