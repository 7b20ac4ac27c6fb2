"""What an explanation holds, and what it says in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..value.episodes import Imagined
from ..wording import number, percent
from .gather import Logged
from .regions import Region
from .tree import Tree

LISTED = 6  # actions that sentences speak of


class Promised(NamedTuple):
    """What is promised for a policy, beside what the logged behaviour earned."""

    low: float
    median: float
    high: float
    behaviour: float
    terms: dict[str, float]  # half-widths of the interval, by what they come of

    @property
    def gain(self) -> tuple[float, float, float]:
        """The same beyond the behaviour: low, median, high."""
        return self.low - self.behaviour, self.median - self.behaviour, self.high - self.behaviour


@dataclass(frozen=True)
class World:
    """One world: what the policy earns in it, and the column whose course differs most from the other worlds'."""

    value: float
    column: str
    off: float  # mean over steps, in widths of the log's range


@dataclass(frozen=True)
class Explanation:
    """What a policy does, where it departs from the behaviour, and what its promise hangs on."""

    names: tuple[str, ...]
    action_names: tuple[str, ...]
    discrete: bool
    importance: tuple[float, ...]  # of every column for what is done; the largest is 1
    shares: dict[str, tuple[float, float]]  # by action: share or mean amount, the policy's and the log's
    tree: Tree
    fidelity: float  # on episodes that the tree was not grown on
    regions: tuple[Region, ...]
    difference: float  # promised return less the behaviour's, which regions add up to
    promised: Promised
    hangs_on: dict[str, float]  # rank correlation of an episode's return with a column's mean in it
    worlds: tuple[World, ...]  # from the worst to the best
    logged: Logged
    imagined: Imagined

    def sentences(self) -> list[str]:
        """The explanation in words."""
        return [*self._does(), *self._brings(), *self._goes_wrong()]

    def _does(self) -> list[str]:
        order = np.argsort(self.importance)[::-1]
        most = [f"{self.names[i]} ({self.importance[i]:.2f})" for i in order[:3] if self.importance[i] > 0.02]
        lines = [f"What it does hangs most on {', '.join(most)}." if most else "It does the same everywhere."]
        for name, (policy, behaviour) in list(self.shares.items())[:LISTED]:
            if self.discrete:
                what = f"It chooses {name} in {percent(policy)} of the log's states"
                lines.append(f"{what}; the log has {percent(behaviour)}.")
            else:
                what = f"{name} is {number(policy)} on average over the log's states"
                lines.append(f"{what}; the log has {number(behaviour)}.")
        kind = "of the choices" if self.discrete else "of the variance of what it does"
        tree = f"The tree below says {percent(self.fidelity)} {kind}, on episodes that it was not grown on."
        return [*lines, tree]

    def _brings(self) -> list[str]:
        low, median, high = self.promised.gain
        best = max(self.regions, key=lambda region: region.brings)
        return [
            f"Beyond the behaviour's return it is promised {number(median)} ({number(low)} to {number(high)}); "
            f"the regions below add up to {number(self.difference)}.",
            f"Most of it, {number(best.brings)} an episode, comes from where {best.words}.",
        ]

    def _goes_wrong(self) -> list[str]:
        worst, middle = self.worlds[0], self.worlds[len(self.worlds) // 2]
        way = "higher" if worst.off > 0 else "lower"
        name, sign = next(iter(self.hangs_on.items()))
        lines = [
            f"In the worst world it earns {number(worst.value)}, in the middle one {number(middle.value)}; "
            f"{worst.column} runs {way} there, by {percent(abs(worst.off))} of its range in the log.",
            f"Imagined returns hang most on {name} (rank correlation {sign:+.2f}).",
        ]
        terms = self.promised.terms
        if not terms:
            return lines
        most = max(terms, key=lambda term: terms[term])
        return [*lines, f"What widens the interval most: {most} (alone ±{number(terms[most])})."]
