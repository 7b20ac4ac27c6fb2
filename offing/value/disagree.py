"""Why do the methods not agree? Each one's faults, read off its health, beside what the worlds say."""

from __future__ import annotations

from collections.abc import Mapping

from ..types import Task
from ..wording import capital, listed, number, percent
from .estimate import Estimate
from .estimators import PREDICTIVE, get, names, words
from .importance import FEW
from .left_out import LeftOut, attempt


def faults(method: str, estimate: Estimate) -> list[str]:
    """What its health says against a method, in clauses; its estimator knows."""
    return get(method).faults(estimate) if method in names() else []


def apart(one: Estimate, other: Estimate, level: float) -> bool:
    """Whether two intervals do not meet."""
    (low, high), (left, right) = one.estimate.interval(level), other.estimate.interval(level)
    return high < left or right < low


def explained(estimates: Mapping[str, Estimate], task: Task, level: float) -> dict[str, str | LeftOut]:
    """For every other method: whether it agrees with the worlds on a policy, and if not, why."""
    others = [method for method in estimates if method != PREDICTIVE]
    return {m: attempt(lambda m=m: _sentence(m, estimates, task, level)) for m in others}


def _sentence(method: str, estimates: Mapping[str, Estimate], task: Task, level: float) -> str:
    ours, theirs = estimates[PREDICTIVE], estimates[method]
    who, value, own = words(method), theirs.estimate.median, ours.estimate.median
    says, wrong = "says" if method in names() else "say", faults(method, theirs)
    if not apart(theirs, ours, level):
        agrees = f"{who} {says} {number(value)}, and its interval meets that of the worlds ({number(own)})"
        return capital(f"{agrees}; but {listed(wrong)}." if wrong else f"{agrees}.")
    differs = f"{who} {says} {number(value)}, the worlds {number(own)}, and their intervals do not meet"
    if wrong:
        return capital(f"{differs}: {listed(wrong)}.")
    return capital(f"{differs}. {_otherwise(method, estimates, task)}")


def _otherwise(method: str, estimates: Mapping[str, Estimate], task: Task) -> str:
    """What may set a method apart that nothing in its health speaks against."""
    if method not in names():  # other worlds: they share neither members nor kind
        return "They are worlds of another kind, learned from the same log: one of the two kinds errs here."
    ours, theirs, endless = estimates[PREDICTIVE], estimates[method], get(method).endless
    beyond, value = task.discount**task.horizon, theirs.estimate.median
    if endless and abs(value - ours.estimate.median) <= 2 * beyond * abs(value):
        return f"It knows no horizon, and up to {percent(beyond)} of its value lies beyond {task.horizon} steps."
    sentence = "Nothing in its health explains that; but its interval knows of chance alone, and of no bias"
    weighed = next((e.health for m, e in estimates.items() if m != method and "episodes" in e.health), None)
    if endless and weighed is not None and weighed["effective"] < FEW:
        sentence += (
            f", and the log holds little of what the policy does (of {weighed['episodes']:.0f} episodes "
            f"{weighed['effective']:.1f} count by their importance weights), so it extrapolates"
        )
    return f"{sentence}."
