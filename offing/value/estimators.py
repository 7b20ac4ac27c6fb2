"""Every way to value a policy from the log alone, by name: (key, policies, data, task) -> what each is worth.

`predictive` is the other, which asks a posterior as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import dice, fqe, importance

ESTIMATORS: dict[str, Callable[..., Any]] = {
    "fqe": fqe.fqe,
    "is": importance.importance,
    "dr": importance.doubly_robust,
    "dualdice": dice.dualdice,
}
WEIGHTED = ("is", "dr")  # they weigh by how likely the logged actions were, and take that as `logp`
