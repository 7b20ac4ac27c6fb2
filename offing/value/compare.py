"""Which of several policies earns more? Differences world by world, since all met the same starts and chance.

What one world says too much of one policy it mostly says of another too, so a difference is far better known than
the two values are. A difference is beyond doubt if its interval does not hold 0, at a level that makes the
statements about all pairs hold together (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..wording import listed, number
from .estimate import ValueEstimate


@dataclass(frozen=True)
class Difference:
    """How much more an episode of the first policy earns than one of the second."""

    better: str
    worse: str
    median: float
    interval: tuple[float, float]
    beyond_doubt: bool


@dataclass(frozen=True)
class Comparison:
    """Policies from best to worst by their return, and every pair's difference."""

    level: float  # that all statements hold with, together
    order: tuple[str, ...]
    differences: tuple[Difference, ...]

    def beaten(self, name: str) -> list[str]:
        """The policies that this one surpasses beyond doubt."""
        return [each.worse for each in self.differences if each.better == name and each.beyond_doubt]

    def sentences(self) -> list[str]:
        """For each policy, which others it surpasses beyond doubt, and from which it is indistinguishable."""
        lines = []
        for place, name in enumerate(self.order[:-1]):
            beaten, later = self.beaten(name), self.order[place + 1 :]
            open_ = [other for other in later if other not in beaten]
            parts = [f"earns more than {listed(beaten)} beyond doubt"] if beaten else []
            parts += [f"is indistinguishable from {listed(open_)}"] if open_ else []
            lines.append(f"{name} {', and '.join(parts)}.")
        return lines


def difference(one: ValueEstimate, other: ValueEstimate, starts: int) -> ValueEstimate:
    """The first return less the second, episode by episode; `starts` is how many the log knows."""
    returns = np.asarray(one.returns, np.float64) - np.asarray(other.returns, np.float64)
    return ValueEstimate(
        returns,
        starts=float(np.var(returns)) / max(starts, 1),
        common=max(one.common, other.common),
        widen=max(one.widen, other.widen),
        rare=float(np.hypot(one.rare, other.rare)),
        less=one.less - other.more,
        more=one.more - other.less,
        errors=one.errors if one.errors == other.errors else (),
        noise=one.noise,
        seen=one.seen,
        folds=one.folds,
    )


def compare(returns: Mapping[str, ValueEstimate], starts: int, level: float = 0.9) -> Comparison | None:
    """All pairs of policies, whose returns come from the same worlds, starts and chance; None if there is one."""
    order = sorted(returns, key=lambda name: -np.nan_to_num(returns[name].median, nan=-np.inf))
    pairs = list(combinations(order, 2))
    if not pairs:
        return None
    each = 1 - (1 - level) / len(pairs)
    differences = []
    for better, worse in pairs:
        gap = difference(returns[better], returns[worse], starts)
        low, high = gap.interval(each)
        differences.append(Difference(better, worse, gap.median, (low, high), bool(low > 0)))
    return Comparison(level, tuple(order), tuple(differences))


def described(each: Difference) -> str:
    """A difference in a sentence."""
    low, high = (number(end) for end in each.interval)
    sure = "beyond doubt" if each.beyond_doubt else "but not beyond doubt"
    return f"{each.better} earns {number(each.median)} more than {each.worse} ({low} to {high}), {sure}."
