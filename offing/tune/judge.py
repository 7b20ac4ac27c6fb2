"""Policies judged by every method that can judge them, side by side; a method that cannot says why."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..data import Log
from ..pil import PIL
from ..types import BadInput, BadPolicy, Key, Policy, Posterior
from ..value import dice, fqe, importance
from ..value._pool import memoryless, remembers
from ..value._view import alone
from ..value.estimate import Judged, ValueEstimate
from ..value.estimators import ESTIMATORS, WEIGHTED
from ..value.predictive import Predictive, predictive
from .run import ALONE, Run

METHODS = ("predictive", *ESTIMATORS)
FORGETFUL = ("fqe", "dualdice")  # they judge what acts on the observation alone
_TINY: Any = {"width": 8, "depth": 1, "batch_size": 16, "updates": 40}
SMOKE: dict[str, Any] = {
    "fqe": fqe.Hypers(**_TINY, members=2),
    "is": importance.Hypers(**_TINY, replicates=20),
    "dr": importance.Doubly(**_TINY, members=2, replicates=20),
    "dualdice": dice.Hypers(**_TINY, members=2),
}
FIELDS = tuple(name for name in ValueEstimate._fields if name not in ("returns", "bounds"))  # plain numbers
PIECES = 7  # arrays that hold a Judged
REMEMBERS = (
    "it judges what acts on the observation alone, and this policy remembers (with --forget its memory is emptied "
    "before every step; that is another policy)"
)
FORGOTTEN = "its memory is emptied before every step: that is another policy"


class Jury(NamedTuple):
    """What each method says of each policy, and why those that say nothing do not; both by policy, then method."""

    judged: dict[str, dict[str, Judged]]
    left_out: dict[str, dict[str, str]]


def settings(scale: str, sampled: bool = False) -> dict[str, Any]:
    """How long each estimator trains at that scale; `quick` and `standard` suit a CPU, the larger ones a GPU."""
    name = {"quick": "quick", "standard": "quick", "large": "standard", "paper": "paper"}.get(scale)
    tables = {"fqe": fqe.PRESETS, "is": importance.PRESETS, "dr": importance.DOUBLY, "dualdice": dice.PRESETS}
    if scale != "smoke" and name is None:
        raise BadInput(f"{scale}: no such scale; there are smoke, quick, standard, large, paper")
    chosen = SMOKE if name is None else {method: table[name] for method, table in tables.items()}
    return {method: replace(each, sampled=sampled) for method, each in chosen.items()}


def judge_all(
    key: Key,
    log: Log,
    policies: Mapping[str, Policy],
    worlds: Posterior,
    methods: Sequence[str],
    scale: str = "quick",
    loss: PIL | None = None,
    copies: int = 256,
    sampled: bool = False,
    forget: bool = False,
    run: Run = ALONE,
) -> Jury:
    """Every policy by every method; with `forget`, FQE and DualDICE empty the memory of one that remembers."""
    jury = Jury({name: {} for name in policies}, {name: {} for name in policies})
    hypers = settings(scale, sampled)

    def ask(method: str, able: Mapping[str, Policy]) -> list[Judged]:
        if method == "predictive":
            one = lambda policy: predictive(key, policy, worlds, log.data, None, copies, sampled, loss)
            return [in_worlds(one(policy), worlds) for policy in able.values()]
        pool, more = list(able.values()), logged(method, log)
        return ESTIMATORS[method](key, pool, log.data, log.task, hypers[method], **more)

    for number, method in enumerate(methods):
        able = {
            name: policy for name, policy in policies.items() if method not in FORGETFUL or not remembers(policy)
        }
        others = {name: policy for name, policy in policies.items() if name not in able}
        able |= {name: memoryless(policy) for name, policy in others.items() if forget}
        for name in others:
            if not forget:
                jury.left_out[name][method] = REMEMBERS
        try:
            found = kept(run, f"judged-{method}", lambda m=method, a=able: ask(m, a) if a else [])
        except BadPolicy:  # not the method's fault, nor the log's
            raise
        except BadInput as error:  # the log is not one that this method can read
            jury.left_out.update({name: {**jury.left_out[name], method: str(error)} for name in able})
            continue
        for name, told in zip(able, found, strict=True):
            notes = (FORGOTTEN, *told.notes) if name in others else told.notes
            jury.judged[name][method] = told._replace(notes=notes)
        run.tell("judge", number + 1, len(methods))
    return jury


def logged(method: str, log: Log) -> dict[str, Any]:
    """What the log itself says of how likely its actions were, for the estimators that weigh by it."""
    return {"logp": log.logp} if method in WEIGHTED and log.logp is not None else {}


def in_worlds(found: Predictive, worlds: Posterior) -> Judged:
    """The posterior predictive in the words of the other methods."""
    health = {**found.support._asdict(), "length": found.length, "worlds": float(worlds.members)}
    said = f"judged in all {worlds.members} worlds of {worlds.folds} folds: it was trained in none of them"
    return Judged(found.value, health, (said,), found.returns)


def acts_like(policy: Policy, log: Log) -> str:
    """Sixteen hexadecimal digits that tell a policy from others by what it does in states of the log."""
    rows = np.linspace(0, log.data.rows - 1, min(log.data.rows, 256)).astype(int)
    seen = alone(jnp.asarray(log.data.steps.obs)[rows], log.task.actions)
    action = policy.act(policy.params, policy.begin(len(rows)), seen, None)[0]
    return hashlib.sha256(np.asarray(action, np.float32).tobytes()).hexdigest()[:16]


# ---- in the cache


def kept(run: Run, name: str, work: Callable[[], list[Judged]]) -> list[Judged]:
    """What is in the cache, or else the work's result, which is then put there."""
    there = run.get(name)
    if there is not None:
        return [unpacked(there[i : i + PIECES]) for i in range(0, len(there), PIECES)]
    found = work()
    run.put(name, [array for one in found for array in packed(one)])
    return found


def packed(judged: Judged) -> list[np.ndarray]:
    """A Judged as arrays, PIECES of them."""
    estimates = [judged.estimate, judged.returns or ValueEstimate(np.zeros((0, 0)))]
    told = [
        [np.asarray(e.returns), np.array([*(getattr(e, name) for name in FIELDS), *e.bounds])] for e in estimates
    ]
    words = [np.array(list(judged.health), "U"), np.array([*judged.health.values()]), np.array(judged.notes, "U")]
    return [*told[0], *told[1], *words]


def unpacked(arrays: Sequence[np.ndarray]) -> Judged:
    """`packed` backwards."""

    def estimate(returns: np.ndarray, rest: np.ndarray) -> ValueEstimate:
        numbers = dict(zip(FIELDS, map(float, rest), strict=False))
        return ValueEstimate(returns, **numbers, bounds=(float(rest[-2]), float(rest[-1])))

    returns = estimate(*arrays[2:4]) if arrays[2].size else None
    health = {str(name): float(value) for name, value in zip(arrays[4], arrays[5], strict=True)}
    return Judged(estimate(*arrays[:2]), health, tuple(map(str, arrays[6])), returns)
