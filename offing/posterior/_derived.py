"""Columns whose next value follows from the next values of others: a stock from what was sold, a sum from its
parts, the same thing in other units.

Were all columns drawn side by side, such a column would have chance of its own: goods would be sold and still lie
there, and a reward that counts both would be paid for what cannot be. So what comes next is drawn in two turns:
first the columns that lead, then, told what came of these, the columns that follow from them. That is the chain
rule of probability, true of any columns; where hardly anything follows it would only make worlds read more.
Columns that choose among few values always lead: they have logits for their chance, and an amount has none.

Which columns follow the log says: state and action leave something of what comes next in them open, and most of
that is no longer open once the next values of the columns that lead are known too.
"""

from __future__ import annotations

import numpy as np

from ..types import Dataset
from ._halves import Halves, halves, scaled
from ._kinds import Kinds

OPEN = 0.05  # share of a column's variance that state and action must leave open
LEFT = 0.3  # share of that which may be left once the leading columns are known
ALIKE = 0.05  # share of what is open that other columns must tell by a line, or it is not asked of trees
NARROW = 64  # columns; of more of them boosted trees would take too long


def derived(data: Dataset, kinds: Kinds) -> tuple[int, ...]:
    """The columns of the next observation that follow from others, which then lead; `data` as worlds read it."""
    certain, free = {*kinds.still, *(c for c, _ in kinds.clocks)}, kinds.exogenous
    columns = [c for c in range(kinds.width) if c not in certain]
    if len(columns) < 2 or kinds.width > NARROW or (rows := halves(data)) is None:
        return ()
    steps = data.steps
    x = scaled(np.concatenate([rows.taken(steps.obs), rows.taken(steps.action)], 1))
    y = scaled((rows.taken(steps.next_obs) - rows.taken(steps.obs))[:, columns])
    rest = rows.left(x, y)
    undecided = [int(d) for d in np.flatnonzero(np.square(rest).mean(0) > OPEN)]
    able = [d for d in undecided if columns[d] not in kinds.choosing]
    follow: list[int] = []

    def left(d: int) -> float:
        may = [i for i in undecided if i != d and i not in follow]
        leads = [i for i in may if columns[i] in free or columns[d] not in free]  # as masks have it
        return _left(rows, x, y, rest, d, leads)

    shares = {d: left(d) for d in able}
    for d in sorted(shares, key=lambda d: shares[d]):
        if shares[d] <= LEFT and left(d) <= LEFT:
            follow.append(d)
    return tuple(sorted(columns[d] for d in follow))


def _left(rows: Halves, x: np.ndarray, y: np.ndarray, rest: np.ndarray, column: int, leads: list[int]) -> float:
    """What share of `rest` is still open in a column once `leads` are known."""
    mine, theirs = rest[:, column], rest[:, leads]
    if not leads:
        return 1.0
    line = theirs @ np.linalg.lstsq(theirs, mine, rcond=None)[0]
    if 1 - np.mean(np.square(mine - line)) / np.mean(np.square(mine)) < ALIKE:
        return 1.0
    left = rows.left(np.concatenate([x, y[:, leads]], 1), y[:, [column]])
    return float(np.mean(np.square(left)) / np.mean(np.square(mine)))
