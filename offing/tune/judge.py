"""Policies judged by every method that can judge them, side by side; a method that cannot says why."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..data import Log
from ..pil import PIL
from ..types import BadPolicy, Key, Policy, Posterior
from ..value import estimators
from ..value.estimate import Estimate, ValueEstimate
from ..value.estimators import PREDICTIVE
from ..value.left_out import LeftOut, attempt
from ..value.many import predictive_all
from ..value.pool import alone, memoryless, on_log, remembers
from ..value.predictive import Predictive
from .engine import side_by_side
from .run import ALONE, Run

OTHERS = ("returns", "bounds", "errors", "folds")  # no plain numbers; errors are added after what is kept
FIELDS = tuple(name for name in ValueEstimate._fields if name not in OTHERS)
PIECES = 7  # arrays that hold an Estimate
REMEMBERS = (
    "it judges what acts on the observation alone, and this policy remembers (with --forget its memory is emptied "
    "before every step; that is another policy)"
)
FORGOTTEN = "its memory is emptied before every step: that is another policy"


class Jury(NamedTuple):
    """What each method says of each policy, and why those that say nothing do not; both by policy, then method."""

    estimates: dict[str, dict[str, Estimate]]
    left_out: dict[str, dict[str, LeftOut]]


def in_worlds(
    key: Key,
    log: Log,
    policies: Mapping[str, Policy],
    worlds: Posterior,
    loss: PIL | None = None,
    copies: int = 256,
    sampled: bool = False,
    run: Run = ALONE,
) -> dict[str, Estimate]:
    """Every policy by the posterior predictive: all policies see the same starts and the same chance."""

    def judge() -> list[Estimate]:
        predictions = predictive_all(key, list(policies.values()), worlds, log.data, copies, sampled, loss)
        return [as_estimate(one, worlds) for one in predictions]

    return dict(zip(policies, kept(run, f"judged-{PREDICTIVE}", judge), strict=True))


def judge_all(
    key: Key,
    log: Log,
    policies: Mapping[str, Policy],
    methods: Sequence[str],
    scale: str = "quick",
    sampled: bool = False,
    forget: bool = False,
    run: Run = ALONE,
) -> Jury:
    """Every policy by every estimator; with `forget`, those that judge no memory empty it before every step.

    An estimator that fails is left out with its reason. Where it fails for what one policy does, the others are
    judged without that one. Functions that only the host can call are called once for all estimators, which on a
    CPU work side by side.
    """
    jury = Jury({name: {} for name in policies}, {name: {} for name in policies})
    lasting = {name for name, policy in policies.items() if remembers(policy)}
    whole = tables(policies, log) if methods else dict(policies)
    emptied = tables({name: memoryless(policies[name]) for name in lasting}, log) if forget else {}
    brief = {name: policy for name, policy in whole.items() if name not in lasting} | emptied

    def ask(method: str) -> dict[str, Estimate | LeftOut]:
        able = brief if estimators.get(method).memoryless else whole
        able = {name: able[name] for name in policies if name in able}
        missing = dict.fromkeys(set(policies) - set(able), LeftOut(REMEMBERS))
        return missing | _by(key, log, able, method, scale, sampled, run)

    with ThreadPoolExecutor(side_by_side(heavy=True)) as pool:
        for number, (method, each) in enumerate(zip(methods, pool.map(ask, methods), strict=True)):
            for name, estimate in each.items():
                if isinstance(estimate, LeftOut):
                    jury.left_out[name][method] = estimate
                    continue
                other = name in lasting and estimators.get(method).memoryless
                notes = (FORGOTTEN, *estimate.notes) if other else estimate.notes
                jury.estimates[name][method] = estimate._replace(notes=notes)
            run.tell("judge", number + 1, len(methods))
    return jury


def tables(policies: Mapping[str, Policy], log: Log) -> dict[str, Policy]:
    """Foreign policies as tables of what they do in the log; one that fails at it stays as it is."""
    made = {name: attempt(lambda p=policy: on_log(p, log.data, log.task)) for name, policy in policies.items()}
    return {name: policies[name] if isinstance(each, LeftOut) else each for name, each in made.items()}


def _by(
    key: Key, log: Log, policies: Mapping[str, Policy], method: str, scale: str, sampled: bool, run: Run
) -> dict[str, Estimate | LeftOut]:
    """What one estimator says of each policy."""
    if not policies:
        return {}
    blame: list[BadPolicy] = []

    def judge(chosen: Mapping[str, Policy]) -> list[Estimate]:
        try:
            estimator = estimators.get(method)
            more = {"logp": log.logp} if estimator.weighs and log.logp is not None else {}
            hypers = estimator.hypers(scale, sampled)
            return list(estimator.estimate(key, list(chosen.values()), log.data, log.task, hypers, **more))
        except BadPolicy as error:
            blame.append(error)
            raise

    estimates = attempt(lambda: kept(run, f"judged-{method}", lambda: judge(policies)))
    if not isinstance(estimates, LeftOut):
        return dict(zip(policies, estimates, strict=True))
    if not blame or len(policies) == 1:
        return dict.fromkeys(policies, estimates)
    each = {name: attempt(lambda n=name, p=policy: judge({n: p})[0]) for name, policy in policies.items()}
    return dict(each)


def logged(method: str, log: Log) -> dict[str, np.ndarray]:
    """What the log itself says of how likely its actions were, for the estimators that weigh by it."""
    return {"logp": np.asarray(log.logp)} if estimators.get(method).weighs and log.logp is not None else {}


def as_estimate(predicted: Predictive, worlds: Posterior) -> Estimate:
    """The posterior predictive in the words of the other methods."""
    health = {**predicted.support._asdict(), "length": predicted.length, "worlds": float(worlds.members)}
    note = f"judged in all {worlds.members} worlds of {worlds.folds} folds: it was trained in none of them"
    return Estimate(predicted.value, health, (note,), predicted.returns)


def acts_like(policy: Policy, log: Log) -> str:
    """Sixteen hexadecimal digits that tell a policy from others by what it does in states of the log."""
    rows = np.linspace(0, log.data.rows - 1, min(log.data.rows, 256)).astype(int)
    seen = alone(jnp.asarray(log.data.steps.obs)[rows], log.task.actions)
    action = policy.act(policy.params, policy.begin(len(rows)), seen, None)[0]
    return hashlib.sha256(np.asarray(action, np.float32).tobytes()).hexdigest()[:16]


# ---- in the cache


def kept(run: Run, name: str, work: Callable[[], list[Estimate]]) -> list[Estimate]:
    """What is in the cache, or else the work's result, which is then put there."""
    there = run.get(name)
    numbers = len(FIELDS) + 2  # and what an earlier version put there had others
    if there is not None and all(len(there[i + 1]) == numbers for i in range(0, len(there), PIECES)):
        return [unpacked(there[i : i + PIECES]) for i in range(0, len(there), PIECES)]
    estimates = work()
    run.put(name, [array for one in estimates for array in packed(one)])
    return estimates


def packed(estimate: Estimate) -> list[np.ndarray]:
    """An Estimate as arrays, PIECES of them."""
    values = [estimate.estimate, estimate.returns or ValueEstimate(np.zeros((0, 0)))]
    arrays = [[np.asarray(e.returns), np.array([*(getattr(e, n) for n in FIELDS), *e.bounds])] for e in values]
    health = [np.array(list(estimate.health), "U"), np.array([*estimate.health.values()], float)]
    return [*arrays[0], *arrays[1], *health, np.array(estimate.notes, "U")]


def unpacked(arrays: Sequence[np.ndarray]) -> Estimate:
    """`packed` backwards."""

    def value(returns: np.ndarray, rest: np.ndarray) -> ValueEstimate:
        plain = ValueEstimate(returns, bounds=(float(rest[-2]), float(rest[-1])))
        return plain._replace(**dict(zip(FIELDS, map(float, rest), strict=False)))

    returns = value(*arrays[2:4]) if arrays[2].size else None
    health = {str(name): float(number) for name, number in zip(arrays[4], arrays[5], strict=True)}
    return Estimate(value(*arrays[:2]), health, tuple(map(str, arrays[6])), returns)
