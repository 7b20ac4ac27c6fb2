"""Why do the methods not agree? Each one's faults, read off its health, beside what the worlds say."""

from __future__ import annotations

from ..tune.evaluate import Evaluation
from ..types import Task
from ..value.estimate import Judged
from ..value.importance import FEW
from .verdict import number, percent

WORDS = {
    "predictive": "the posterior",
    "fqe": "FQE",
    "is": "importance sampling",
    "dr": "the doubly robust estimate",
    "dualdice": "DualDICE",
}
CLIPPED = 0.2  # share of ratios or targets that may be clipped without a word
BELLMAN = 0.2  # of its targets' deviation that a critic may leave
NEGATIVE = 0.1  # mean negative part of zeta, which is a ratio and has none


def faults(method: str, judged: Judged) -> list[str]:
    """What its health says against a method, in clauses."""
    asked = {"fqe": _fqe, "is": _is, "dr": _dr, "dualdice": _dice}
    said = asked[method](judged.health) if method in asked else []
    if any("the mean of zeta" in note for note in judged.notes):  # it knows what is due where episodes end
        said.insert(0, f"the mean of its ratios is {number(judged.health['mean_zeta'])}, where 1 is due")
    return said


def _fqe(health: dict[str, float]) -> list[str]:
    said = []
    if not health["converged"]:
        said.append(f"its value had not settled when training ended ({number(health['left'])} were left to go)")
    if health["bellman"] > BELLMAN:
        said.append(f"the error of its critics is {percent(health['bellman'])} of how their own targets vary")
    if health["clipped"] > CLIPPED:
        said.append(f"{percent(health['clipped'])} of its targets had to be held to what rewards can add up to")
    return said


def _is(health: dict[str, float]) -> list[str]:
    said = []
    if health["effective"] < FEW:
        said.append(f"its weights are those of {health['effective']:.1f} of {health['episodes']:.0f} episodes")
    if health["clipped"] > CLIPPED:
        share = percent(health["clipped"])
        said.append(f"{share} of its ratios were clipped, so it values somebody between policy and behaviour")
    return said


def _dr(health: dict[str, float]) -> list[str]:
    said = _is(health)
    if health["critics_left"] > 0.01:  # in standard deviations of the reward, as FQE's tolerance
        said.append("its critics had not settled when training ended")
    return said


def _dice(health: dict[str, float]) -> list[str]:
    said = []
    if health["negative"] > NEGATIVE:
        said.append(f"its ratios, which cannot be negative, are so by {number(health['negative'])} on average")
    if not health["converged"]:
        said.append("its value had not settled when training ended")
    return said


def apart(one: Judged, other: Judged, level: float) -> bool:
    """Whether two intervals do not meet."""
    (low, high), (left, right) = one.estimate.interval(level), other.estimate.interval(level)
    return high < left or right < low


def explained(name: str, found: Evaluation) -> dict[str, str]:
    """For every other method: whether it agrees with the worlds on a policy, and if not, why."""
    judged, task = found.estimates[name], found.worlds.task
    return {m: _sentence(m, judged, task, found.level) for m in judged if m != "predictive"}


def _sentence(method: str, judged: dict[str, Judged], task: Task, level: float) -> str:
    ours, theirs = judged["predictive"], judged[method]
    who, value, own = WORDS[method], theirs.estimate.median, ours.estimate.median
    wrong = faults(method, theirs)
    if not apart(theirs, ours, level):
        agrees = f"{who} says {number(value)}, and its interval meets that of the worlds ({number(own)})"
        return _capital(f"{agrees}; but {_listed(wrong)}." if wrong else f"{agrees}.")
    differs = f"{who} says {number(value)}, the worlds {number(own)}, and their intervals do not meet"
    if wrong:
        return _capital(f"{differs}: {_listed(wrong)}.")
    return _capital(f"{differs}. {_otherwise(method, judged, task)}")


def _otherwise(method: str, judged: dict[str, Judged], task: Task) -> str:
    """What may set a method apart that nothing in its health speaks against."""
    ours, theirs = judged["predictive"], judged[method]
    beyond, value = task.discount**task.horizon, theirs.estimate.median
    if method != "is" and abs(value - ours.estimate.median) <= 2 * beyond * abs(value):
        return f"It knows no horizon, and up to {percent(beyond)} of its value lies beyond {task.horizon} steps."
    said = "Nothing in its health explains that; but its interval knows of chance alone, and of no bias"
    few = judged["is"].health["effective"] if "is" in judged else None
    if method != "is" and few is not None and few < FEW:
        said += (
            f", and the log holds little of what the policy does (of {judged['is'].health['episodes']:.0f} "
            f"episodes {few:.1f} count for importance sampling), so it extrapolates"
        )
    return f"{said}."


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f", and {parts[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
