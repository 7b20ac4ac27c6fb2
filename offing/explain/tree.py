"""A policy in words: a small tree of yes-no questions about columns, grown by CART (Breiman et al., 1984)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CUTS = 32  # places that a column may be cut at
SMALLEST = 0.02  # share of rows that a leaf must hold


@dataclass(frozen=True)
class Tree:
    """A question `column <= at`, with a tree for yes and one for no; or a leaf with what is done there."""

    action: np.ndarray  # [A]  the mean of the rows here; of choices, their shares
    share: float  # of all rows
    column: int = -1
    at: float = 0.0
    yes: Tree | None = None
    no: Tree | None = None

    def leaf_of(self, obs: np.ndarray) -> np.ndarray:
        """The number of the leaf that each row [N, S] falls into, leaves numbered from left to right."""
        if self.yes is None or self.no is None:
            return np.zeros(len(obs), int)
        return np.where(
            obs[:, self.column] <= self.at, self.yes.leaf_of(obs), self.yes.count + self.no.leaf_of(obs)
        )

    @property
    def count(self) -> int:
        return 1 if self.yes is None or self.no is None else self.yes.count + self.no.count

    @property
    def leaves(self) -> list[Tree]:
        return [self] if self.yes is None or self.no is None else [*self.yes.leaves, *self.no.leaves]

    def predict(self, obs: np.ndarray) -> np.ndarray:
        """What the tree has done at rows [N, S]: [N, A]."""
        return np.stack([leaf.action for leaf in self.leaves])[self.leaf_of(obs)]

    def regions(self, names: tuple[str, ...], so_far: tuple[str, ...] = ()) -> list[str]:
        """Every leaf in words, from left to right."""
        if self.yes is None or self.no is None:
            return [" and ".join(so_far) or "everywhere"]
        name, at = names[self.column], f"{self.at:.3g}"
        return [
            *self.yes.regions(names, (*so_far, f"{name} ≤ {at}")),
            *self.no.regions(names, (*so_far, f"{name} > {at}")),
        ]


def grow(obs: np.ndarray, action: np.ndarray, depth: int = 3, rows: int | None = None) -> Tree:
    """The tree that leaves the least squared error of actions [N, A], each in units of its own spread.

    For one-hot rows that is Gini's impurity.
    """
    total = len(obs) if rows is None else rows
    here = Tree(action.mean(0), len(obs) / total)
    if depth == 0 or len(obs) < 2 * SMALLEST * total:
        return here
    question = _best(obs, action, max(1, round(SMALLEST * total)))
    if question is None:
        return here
    column, at = question
    left = obs[:, column] <= at
    yes, no = (grow(obs[side], action[side], depth - 1, total) for side in (left, ~left))
    return Tree(here.action, here.share, column, at, yes, no)


def _best(obs: np.ndarray, action: np.ndarray, least: int) -> tuple[int, float] | None:
    """The column and place that lower the squared error most, if any does."""
    best, question = 1e-9 * max(float(np.var(action, 0).sum()), 1e-12) * len(obs), None
    centred = action - action.mean(0)
    for column in range(obs.shape[1]):
        x = obs[:, column]
        for at in np.unique(np.quantile(x, np.linspace(0, 1, CUTS + 2)[1:-1])):
            left = x <= at
            n = int(left.sum())
            if min(n, len(x) - n) < least:
                continue
            total = centred[left].sum(0)
            gain = float(np.sum(np.square(total)) * (1 / n + 1 / (len(x) - n)))
            if gain > best * (1 + 1e-9):
                best, question = gain, (column, float(at))
    return question


def fidelity(tree: Tree, obs: np.ndarray, action: np.ndarray, discrete: bool) -> float:
    """Share of rows where the tree chooses as the policy does; of amounts, share of their variance it explains."""
    predicted = tree.predict(obs)
    if discrete:
        return float(np.mean(predicted.argmax(1) == action.argmax(1)))
    left, whole = np.sum(np.square(action - predicted)), np.sum(np.square(action - action.mean(0)))
    return float(1 - left / whole) if whole > 0 else 1.0
