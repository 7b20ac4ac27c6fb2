"""Fitted Q-evaluation (Le et al., 2019; settings of Fu et al., 2021): a policy's value from single transitions.

    value = mean over starts of qbar(s, pi(s)) / (1 - discount)

with qbar trained as `_critic` says. Members of the ensemble give the spread, the starts the rest of it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Dataset, Key, Policy, Task
from ._critic import Critics, Hypers, bellman, fit, read
from ._pool import only_memoryless, pooled
from ._view import below_one, units, view
from .estimate import Judged, ValueEstimate

__all__ = ["PRESETS", "Hypers", "fqe"]

STARTS = 1_024  # that the value is read at, at most
CHECK = 2_048  # rows that the Bellman error is read at
SETTLED = 0.01  # least tolerance that a value is called converged by

PRESETS = {
    "quick": Hypers(width=64, updates=10_000, lr=1e-3, members=3),
    "standard": Hypers(),
    "paper": Hypers(updates=1_000_000, members=1, bootstrap=0.0, tolerance=0.0, sampled=True),
}


@pooled(Hypers())
def fqe(key: Key, pool: Policy, data: Dataset, task: Task, hypers: Hypers) -> list[Judged]:
    """A policy's discounted value by fitted Q-evaluation; needs transitions alone, and policies without memory."""
    only_memoryless(pool, "FQE")
    said = below_one(task, "FQE")
    (rows, scale), (k1, k2, k3) = view(data, task), jax.random.split(key, 3)
    starts = spread_out(np.asarray(data.starts), STARTS)
    discount, size = jnp.asarray(task.discount, jnp.float32), jnp.asarray(data.size)
    critics = fit(k1, hypers, pool, rows, scale, starts, units(data), size, discount, task.actions)
    at_starts = read(k2, critics.params, pool, scale, starts, task.actions, hypers.sampled)
    index = jax.random.randint(k3, (CHECK,), 0, size)
    some = jax.tree.map(lambda leaf: leaf[index], rows)
    errors = bellman(k3, critics.params, pool, scale, some, discount, task.actions, hypers.sampled)
    if hypers.members == 1:
        said.append("one member: the interval is that of a single start, not of the value")
    span = 1 / (1 - task.discount)
    values = scale.earns(np.asarray(at_starts, np.float64)) * span  # [P, M, K]
    bounds = (float(scale.earns(scale.low)) * span, float(scale.earns(scale.high)) * span)
    judged = []
    for i, found in enumerate(values):
        health, notes = _health(hypers, critics, i, float(errors[i]), scale.reward_std * span)
        variance = float(found.mean(0).var() / len(data.starts))
        judged.append(Judged(ValueEstimate(found, starts=variance, bounds=bounds), health, (*said, *notes)))
    return judged


def _health(
    hypers: Hypers, critics: Critics, i: int, error: float, size: float
) -> tuple[dict[str, float], list[str]]:
    left = float(critics.left[i])
    settled = left <= max(float(hypers.tolerance), SETTLED)
    health = {
        "converged": float(settled),
        "rounds": float(critics.rounds[i]),
        "left": left * size,
        "bellman": error,
        "clipped": float(critics.clipped[i]),
    }
    late = "the value had not settled when training ended: give it more updates"
    return health, [] if settled else [late]


def spread_out(starts: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the starts, evenly taken."""
    return starts if len(starts) <= most else starts[np.linspace(0, len(starts) - 1, most).astype(int)]
