"""Fitted Q-evaluation (Le et al., 2019; settings of Fu et al., 2021): a policy's value from single transitions.

    value = mean over starts of qbar(s, pi(s)) / (1 - discount)

with qbar trained as `_critic` says. Members of the ensemble give the spread, the starts the rest of it.
"""

from __future__ import annotations

import jax
import numpy as np

from ...types import Dataset, Key, Policy, Task
from ...wording import number, percent
from .._critic import Critics, Hypers, bellman, fit, read
from .._view import below_one, sample_of
from ..estimate import Estimate, ValueEstimate
from ..estimator import Estimator, by_scale
from ..pool import only_memoryless, pooled

STARTS = 1_024  # that the value is read at, at most
CHECK = 2_048  # rows that the Bellman error is read at
SETTLED = 0.01  # least tolerance that a value is called converged by
CLIPPED = 0.2  # share of targets that may be held to a range without a word
BELLMAN = 0.2  # of its targets' deviation that a critic may leave


@pooled(Hypers())
def fqe(key: Key, pool: Policy, data: Dataset, task: Task, hypers: Hypers) -> list[Estimate]:
    """A policy's discounted value by fitted Q-evaluation; needs transitions alone, and policies without memory."""
    only_memoryless(pool, "FQE")
    shared = below_one(task, "FQE")
    k1, k2, k3 = jax.random.split(key, 3)
    sample = sample_of(data, task, spread_out(np.asarray(data.starts), STARTS))
    scale = sample.scale
    critics = fit(k1, hypers, pool, sample, task.actions)
    at_starts = read(k2, critics.params, pool, scale, sample.starts, task.actions, hypers.sampled)
    index = jax.random.randint(k3, (CHECK,), 0, sample.size)
    some = jax.tree.map(lambda leaf: leaf[index], sample.rows)
    errors = bellman(k3, critics.params, pool, scale, some, sample.discount, task.actions, hypers.sampled)
    if hypers.members == 1:
        shared.append("one member: the interval is that of a single start, not of the value")
    span = 1 / (1 - task.discount)
    values = scale.earns(np.asarray(at_starts, np.float64)) * span  # [P, M, K]
    bounds = (float(scale.earns(scale.low)) * span, float(scale.earns(scale.high)) * span)
    estimates = []
    for i, value in enumerate(values):
        health, notes = _health(hypers, critics, i, float(errors[i]), scale.reward_std * span)
        variance = float(value.mean(0).var() / len(data.starts))
        estimates.append(Estimate(ValueEstimate(value, starts=variance, bounds=bounds), health, (*shared, *notes)))
    return estimates


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


def faults(estimate: Estimate) -> list[str]:
    """What its critics say against it."""
    health, lines = estimate.health, []
    if not health["converged"]:
        lines.append(f"its value had not settled when training ended ({number(health['left'])} were left to go)")
    if health["bellman"] > BELLMAN:
        lines.append(f"the error of its critics is {percent(health['bellman'])} of how their own targets vary")
    if health["clipped"] > CLIPPED:
        lines.append(f"{percent(health['clipped'])} of its targets had to be held to what rewards can add up to")
    return lines


estimator = Estimator(
    name="fqe",
    words="FQE",
    estimate=fqe,
    presets=by_scale(
        smoke=Hypers(width=8, depth=1, batch_size=16, updates=40, members=2),
        quick=Hypers(width=64, updates=10_000, lr=1e-3, members=3),
        large=Hypers(),
        paper=Hypers(updates=1_000_000, members=1, bootstrap=0.0, tolerance=0.0, sampled=True),
    ),
    health={
        "converged": "1 if the value had settled when training ended",
        "rounds": "rounds of training until then",
        "left": "what the value still had to go, by its drift",
        "bellman": "error of the critics, as a share of how their targets vary",
        "clipped": "share of targets held to what the log's rewards can add up to",
    },
    faults=faults,
    memoryless=True,
    endless=True,
)
