"""Columns that no action changes: a clock, a price, the weather. They move by a part of the net that actions do
not reach.

A net that reads everything lets an action move a price a little, by chance, and a plan then lives on moving it. So
hidden units are parted: the first ones read such columns alone, of inputs and of units before them, and what comes
next in those columns is read off these units alone. The others read everything. The same holds for the
least-squares map and for priors.

Which columns these are the schema says, or the log: neither the action, nor what was done before it, nor squares,
nor products with the state tell anything of what comes next in them that the state does not tell; and columns that
actions do change tell nothing of it either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from ..data.categories import Groups, categories, parted
from ..types import Dataset
from ._halves import Halves, halves, scaled

PRODUCTS = 64  # of actions and columns that are looked at, at most
LEVEL = 0.05  # probability that chance is taken for an effect on a column
MATERIAL = 0.01  # share of a column's variance that trees must win by it
LATELY = (5, 20)  # steps over which what was done before is averaged
NARROW = 64  # columns; of more of them only those named count: what boosted trees would say takes too long
PLAIN = 2.0  # times as sure as is asked, and by as much as trees must win: a line that sees so much needs no trees
SLIGHT = 2e-4  # share of a column's variance: what moves less of it is nothing, however sure it is
RARELY = 0.02  # share of rows in which a column must change, or in none


def untouched(data: Dataset, named: Sequence[int] = ()) -> tuple[int, ...]:
    """The columns of the observation that no action changes: those named, and those of which the log says so.

    What comes next and what was done are both cleared of what the state tells of them, in episodes that were not
    learned from; what is then left of the two must be unrelated, over episodes (Chernozhukov et al., 2018).
    """
    steps = data.steps
    if steps.obs.shape[1] > NARROW or (rows := halves(data)) is None:
        return tuple(sorted(named))
    x, y = scaled(rows.taken(steps.obs)), scaled(rows.taken(steps.next_obs) - rows.taken(steps.obs))
    marked, done = np.isin(np.arange(x.shape[1]), named), told_apart(np.asarray(steps.action)[: data.rows])
    earlier = before(done, np.asarray(data.episode)[: data.rows])
    action, past = scaled(rows.taken(done)), scaled(rows.taken(earlier))
    amounts = [a for a in range(action.shape[1]) if len(np.unique(action[:, a])) > 2]  # a choice is its own square
    acts = np.concatenate([action, np.square(action[:, amounts]), past], 1)
    test = Test(rows)
    undecided = ~test.plainly_moved(x, acts, y) | marked
    other = rows.taken(steps.next_obs) != rows.taken(steps.obs)
    alike = np.ones(x.shape[1])
    groups = categories(np.asarray(steps.obs)[: data.rows], np.asarray(steps.next_obs)[: data.rows])
    for group in map(list, groups):
        other[:, group] = other[:, group].any(1, keepdims=True)  # a category changes if any of its columns does
        alike[group] = len(group)
    moved = np.mean(other, 0)
    known = (moved >= RARELY) | (moved == 0)  # of what hardly ever changes nobody knows what changes it
    free = np.zeros(len(known), bool)
    if undecided.any():
        free[undecided] = test.unrelated(x, acts, y[:, undecided], alike[undecided], products=action.shape[1])
    free = _wholly(free & known, groups) | marked
    while not free.all() and free.any():
        kept = test.unrelated(x[:, free], x[:, ~free], y[:, free], alike[free]) | marked[free]
        if kept.all():
            break
        free[free] = kept
        free = _wholly(free, groups) | marked
    return tuple(np.flatnonzero(free).tolist())


def _wholly(free: np.ndarray, groups: Groups) -> np.ndarray:
    """Those columns [S] without categories that are not among them in full."""
    lost = [c for group in parted(groups, free) for c in group]
    return free & ~np.isin(np.arange(len(free)), lost)


def told_apart(action: np.ndarray) -> np.ndarray:
    """Actions [N, A] without the last of several choices, which follows from the others."""
    chooses = action.shape[1] > 1 and np.all((action == 0) | (action == 1)) and np.all(action.sum(1) == 1)
    return action[:, :-1] if chooses else action


def before(action: np.ndarray, episode: np.ndarray) -> np.ndarray:
    """What was done before each row in its episode [N, A * 3]: one step ago, and on average over the LATELY steps.

    What is done may work late: medicine, heat, an order that is under way.
    """
    action = action.astype(np.float64)
    first = np.r_[True, (episode[1:] != episode[:-1]) | (episode[1:] < 0)]
    begins = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    total = np.concatenate([np.zeros((1, action.shape[1])), np.cumsum(action, 0)])  # of all rows before each
    place = np.arange(len(first))
    means = []
    for steps in (1, *LATELY):
        since = np.maximum(place - steps, begins)
        means.append((total[place] - total[since]) / np.maximum(place - since, 1)[:, None])
    return np.concatenate(means, 1)


class Test(NamedTuple):
    """Whether one thing tells of another what a third does not, in episodes of two halves."""

    rows: Halves

    def unrelated(
        self, x: np.ndarray, by: np.ndarray, y: np.ndarray, alike: np.ndarray, products: int = 0
    ) -> np.ndarray:
        """Of which columns of y [D] nothing in `by` tells more than x, nor the first `products` of it times x.

        `alike` [D] is of how many columns each is one that must all be unrelated: a category's are.
        """
        mine, rest = self._cleared(x, by, y)
        if products * x.shape[1] <= PRODUCTS:
            mine = np.concatenate([mine, *(mine[:, [a]] * x for a in range(products))], 1)
        if not _tells(mine).any():
            return np.zeros(y.shape[1], bool)  # actions that follow from the state: nobody knows
        plain = ~self._moved(mine, rest, alike)
        return plain & ~self.helps(np.concatenate([x, by], 1), y, rest, plain, alike)

    def plainly_moved(self, x: np.ndarray, by: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Which columns of y [D] a line through `by` moves so surely and so far that no tree need be grown."""
        return self._moved(*self._cleared(x, by, y, boosted=False), np.ones(y.shape[1]), PLAIN, MATERIAL)

    def helps(
        self, both: np.ndarray, y: np.ndarray, rest: np.ndarray, which: np.ndarray, alike: np.ndarray
    ) -> np.ndarray:
        """Of `which` columns of y [D] trees leave less in other episodes than `rest`, once they know `both`.

        What works through a product of two columns has no line: the change of a cosine is a sine times a speed.
        Where trees had left more than there was, they had learned chance: to learn less of it is no help.
        """
        seen = np.zeros(y.shape[1], bool)
        if which.any():
            before = np.square(rest[:, which])
            before = np.where(before.mean(0) > np.square(y[:, which]).mean(0), np.square(y[:, which]), before)
            gain = before - np.square(self.rows.left(both, y[:, which]))
            sure = stats.norm.ppf(1 - LEVEL / alike[which])
            seen[which] = (self._strength(gain) > sure) & (gain.mean(0) > MATERIAL)
        return seen

    def _cleared(
        self, x: np.ndarray, by: np.ndarray, y: np.ndarray, boosted: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is left of `by` and of y once x is known."""
        both = self.rows.left(x, np.concatenate([by, y], 1), boosted)
        return both[:, : by.shape[1]], both[:, by.shape[1] :]

    def _moved(
        self, by: np.ndarray, rest: np.ndarray, alike: np.ndarray, times: float = 1.0, trifle: float = SLIGHT
    ) -> np.ndarray:
        """Which columns of `rest` [D] go with any of `by`, `times` as surely as is asked."""
        by = by[:, _tells(by)]
        sure = times * stats.norm.ppf(1 - LEVEL / (2 * max(by.shape[1], 1) * alike))
        both = zip(rest.T, sure.tolist(), strict=True)
        return np.array([np.any(self._moves(by, column, each, trifle)) for column, each in both], bool)

    def _moves(self, by: np.ndarray, rest: np.ndarray, sure: float, trifle: float) -> np.ndarray:
        """Which of `by` [N, K] go with what is left of a column, surely and by more than a trifle."""
        with_it = by * rest[:, None]
        share = np.square(with_it.mean(0)) / np.square(by).mean(0)  # of the column's variance, which is 1
        return (np.abs(self._strength(with_it)) > sure) & (share > trifle)

    def _strength(self, score: np.ndarray) -> np.ndarray:
        """Means of `score` [N, K], in standard errors over episodes."""
        sums = np.zeros((self.rows.whose.max() + 1, score.shape[1]))
        np.add.at(sums, self.rows.whose, score)
        error = np.sqrt(np.sum(np.square(sums), 0))
        return sums.sum(0) / np.maximum(error, 1e-9 * len(score))


def _tells(by: np.ndarray) -> np.ndarray:
    """Which columns of `by` [N, K] hold anything: what follows from the state tells nothing beside it."""
    return np.square(by).mean(0) > 1e-6
