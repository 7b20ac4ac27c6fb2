"""What an estimator says of itself: one value, in a file of `estimators/` or in another package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic

from ..types import BadInput, H
from .estimate import Estimate

SCALES = ("smoke", "quick", "standard", "large", "paper")  # a moment; two for a CPU; two for a GPU
Faults = Callable[[Estimate], list[str]]


def none(estimate: Estimate) -> list[str]:
    """The faults of an estimator that cannot tell when it fails."""
    del estimate
    return []


@dataclass(frozen=True)
class Estimator(Generic[H]):
    """A way to value policies from the log alone, all that others need to know of it included."""

    name: str
    words: str  # what it is called inside a sentence
    estimate: Callable[..., list[Estimate]]  # (key, policies, data, task, hypers) -> one Estimate each, in order
    presets: Mapping[str, H]  # hyperparameters by scale
    health: Mapping[str, str]  # the numbers that it reports beside a value, and what each is
    faults: Faults = none  # what an estimate's health says against it, in clauses
    memoryless: bool = False  # it can only judge policies that act on the observation alone
    weighs: bool = False  # `estimate` also takes `logp` [N], how likely the logged actions were
    endless: bool = False  # its value is discounted without end: it knows no horizon

    def hypers(self, scale: str, sampled: bool = False) -> H:
        """Its hyperparameters at a scale; with `sampled`, for policies that draw their actions."""
        if scale not in self.presets:
            raise BadInput(f"{scale}: {self.name} has no such scale; there are {', '.join(self.presets)}")
        chosen = self.presets[scale]
        if not hasattr(chosen, "sampled"):
            return chosen
        return replace(chosen, sampled=sampled)  # type: ignore[type-var]


def by_scale(smoke: H, quick: H, large: H, paper: H) -> dict[str, H]:
    """Presets for all scales from those of an estimator: `quick` and `standard` share one, for a CPU."""
    return dict(zip(SCALES, (smoke, quick, quick, large, paper), strict=True))
