"""What of a state's net may read what, where not every column may read everything.

Columns that no action changes read such columns alone (`_exogenous`), and only columns that follow from others
read what came next in those (`_derived`). So hidden units are parted in the same way: a unit reads inputs and
units before it that may know no more than itself, and an output is read off such units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..nets import Layer
from ._history import EPISODE
from ._kinds import Block, Kinds

LEAST = 8  # hidden units that are kept for a part of the columns, at least


class Masks(NamedTuple):
    """What of the state's net may be other than nought: 1 or 0 for every weight, [out, in]."""

    net: tuple[np.ndarray, ...]
    extra: np.ndarray
    reads: np.ndarray  # [S, X]  which inputs each column may read

    @property
    def sorts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For columns that may not read every input: which inputs [X] they may read, and which [S] they are."""
        some = {reads.tobytes(): reads for reads in self.reads if not reads.all()}
        return [(reads, np.all(self.reads == reads, 1)) for reads in some.values()]


class Part(NamedTuple):
    """Of inputs, units or columns: which know nothing of actions, and which know what came of those that lead."""

    free: np.ndarray
    follows: np.ndarray

    def reads(self, other: Part) -> np.ndarray:
        """Which of `other` each may read [len(self), len(other)]."""
        return (~self.free[:, None] | other.free) & (self.follows[:, None] | ~other.follows)

    def at(self, index: Sequence[int]) -> Part:
        return Part(self.free[np.asarray(index, int)], self.follows[np.asarray(index, int)])


def masks(kinds: Kinds, inputs: int, width: int, depth: int) -> Masks:
    """The masks of a net of that shape."""
    columns = Part(*(np.isin(np.arange(kinds.width), those) for those in (kinds.exogenous, kinds.derived)))
    read = _inputs(kinds, inputs, columns)
    units = _units(columns, width)
    twice = Part(np.tile(columns.free, 2), np.tile(columns.follows, 2))
    layers = [units.reads(read), *[units.reads(units)] * (depth - 1), twice.reads(units)]
    extra = columns.at(_extras(kinds.of_state())).reads(units)
    single = lambda a: a.astype(np.float32)
    return Masks(tuple(map(single, layers)), single(extra), columns.reads(read))


def _units(columns: Part, width: int) -> Part:
    """The hidden units: first those that know nothing of actions; of either sort last those that know what led."""
    free, follows = columns
    count = width if free.all() else _some(width, free.mean())
    place = np.arange(width)
    late = np.zeros(width, bool)
    for first, units, those in ((0, count, free), (count, width - count, ~free)):
        share = follows[those].mean() if those.any() else 0.0
        last = units if share == 1.0 else _some(units, share)
        late |= (place >= first + units - last) & (place < first + units)
    return Part(place < count, late)


def _some(units: int, share: float) -> int:
    """How many of so many units are for a share of the columns: some, if there are any, and at most half."""
    return int(np.clip(round(units * share), min(LEAST, units // 2), units // 2)) if share > 0 else 0


def _inputs(kinds: Kinds, inputs: int, columns: Part) -> Part:
    leads = columns.free[list(kinds.leads)]
    plain = readable(kinds, inputs - len(leads))
    return Part(np.concatenate([plain, leads]), np.arange(inputs) >= len(plain))


def readable(kinds: Kinds, inputs: int) -> np.ndarray:
    """Which of the inputs [X] before those of columns that lead say nothing of actions."""
    free = np.isin(np.arange(kinds.width), kinds.exogenous)
    logs = np.isin(kinds.logs, kinds.exogenous) if kinds.logs else np.zeros(0, bool)
    past = kinds.history == EPISODE
    rest = inputs - kinds.width - len(logs) - (2 * kinds.width + 3 if past else 0)
    actions = rest // 2 if past else rest
    no = lambda count: np.zeros(count, bool)
    history = [free, no(actions), no(1), free, no(1), np.ones(1, bool)] if past else []
    return np.concatenate([free, no(actions), *history, logs])


def _extras(block: Block) -> list[int]:
    """Which column each logit belongs to."""
    return [c for c, _ in block.gates] + [c for c, _ in block.choices for _ in range(block.most)]


def masked(layers: Sequence[Layer], of: Sequence[np.ndarray]) -> tuple[Layer, ...]:
    """Layers with what may not be read put to nought."""
    return tuple(Layer(layer.weight * mask, layer.bias) for layer, mask in zip(layers, of, strict=True))
