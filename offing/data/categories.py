"""Columns that are one category: of several columns of 0 and 1 that stand side by side exactly one is 1.

A table's words become such columns. What comes next in them is one word again, never none of them and never two.
"""

from __future__ import annotations

import numpy as np

Groups = tuple[tuple[int, ...], ...]
GLANCE = 8_192  # rows that show most columns to be none


def categories(obs: np.ndarray, after: np.ndarray, still: bool = False) -> Groups:
    """The columns of each category, in rows before and after a step [N, S]. One that never changes is none, unless
    `still` ones are asked for, too.
    """
    some = slice(None, None, max(1, len(obs) // GLANCE))
    glance = np.concatenate([obs[some], after[some]])
    binary = np.all((glance == 0) | (glance == 1), 0).tolist()
    groups, c = [], 0
    while c < len(binary):
        last = _end(glance, binary, c)
        if last > c and _holds(obs[:, c:last], after[:, c:last], still):
            groups.append(tuple(range(c, last)))
        c = max(last, c + 1)
    return tuple(groups)


def _end(rows: np.ndarray, binary: list[bool], first: int) -> int:
    """The column behind the category that begins at `first`; `first` itself where none does."""
    ones = np.zeros(len(rows), np.int16)
    for c in range(first, len(binary)):
        if not binary[c]:
            return first
        ones += rows[:, c].astype(np.int16)
        if ones.max() > 1:
            return first
        if ones.min() == 1:
            return c + 1 if c > first else first
    return first


def _holds(obs: np.ndarray, after: np.ndarray, still: bool) -> bool:
    """Whether what a glance showed is true of all rows."""
    one = all(np.all((part == 0) | (part == 1)) and np.all(part.sum(1) == 1) for part in (obs, after))
    return one and (still or not np.array_equal(obs, after))


def parted(groups: Groups, columns: np.ndarray) -> Groups:
    """Those categories of which some columns are marked [S] and some are not."""
    return tuple(group for group in groups if 0 < np.sum(columns[list(group)]) < len(group))
