"""What a log remembers of the table that it came from: units, times, and what its reward adds up."""

from __future__ import annotations

import numpy as np

from ..expression import Node, parse, terms, text_of
from ..facts import RewardPart
from ..provenance import Provenance
from ..schema import Schema
from .cells import Rows

NAMED = 1_000  # units that are called by their names; more are numbered


def provenance_of(rows: Rows, kept: np.ndarray, schema: Schema) -> Provenance:
    """Unit and time of the rows that were kept, and what ordering and cleaning met."""
    names = () if schema.unit in (None, "none") else schema.names("unit")
    return Provenance(
        rows.unit[kept].astype(np.int32) if names else np.zeros(len(kept), np.int32),
        _unit_names(rows, names) if names else (),
        None if rows.time is None or schema.time is None else rows.time[kept],
        rows.dated,
        rows.backwards,
        rows.copies,
        tuple(_parts(rows, kept, schema)),
    )


def _unit_names(rows: Rows, names: tuple[str, ...]) -> tuple[str, ...]:
    """What the table calls each unit."""
    first = np.flatnonzero(np.r_[True, rows.unit[1:] != rows.unit[:-1]])
    if len(first) > NAMED:
        return tuple(map(str, range(len(first))))
    cells = [rows.cells[name] for name in names]
    texts = [
        [cell.levels[code] if cell.kind == "word" else f"{code:g}" for code in cell.at(first).array]
        for cell in cells
    ]
    return tuple(map(" ".join, zip(*texts, strict=True)))


def _parts(rows: Rows, kept: np.ndarray, schema: Schema) -> list[RewardPart]:
    """The terms of the reward's formula; none where it is a column."""
    text = str(schema.reward)
    if text in rows.cells:
        return []
    parts = []
    for sign, node in terms(parse(text, "reward")):
        mean, std = _spread(rows, node, kept)
        label = text_of(node)
        label = label[1:-1] if node.kind in ("sum", "compare", "and", "or") else label
        parts.append(RewardPart(f"-{label}" if sign < 0 else label, sign * mean, std))
    return parts


def _spread(rows: Rows, node: Node, kept: np.ndarray) -> tuple[float, float]:
    """Mean and deviation of what a formula gives in the rows that are kept, which are in order."""
    first, total, squares = None, 0.0, 0.0
    for begin, numbers in rows.blocks(node, "reward"):
        some = numbers[kept[slice(*np.searchsorted(kept, [begin, begin + len(numbers)]))] - begin]
        if len(some):
            first = float(some[0]) if first is None else first  # what lies near it loses no digits
            total, squares = total + float((some - first).sum()), squares + float(np.square(some - first).sum())
    mean = total / len(kept)
    return (first or 0.0) + mean, max(0.0, squares / len(kept) - mean**2) ** 0.5
