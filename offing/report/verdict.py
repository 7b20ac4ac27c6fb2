"""GO, NO-GO or NOT-ENOUGH-EVIDENCE, by questions asked in order: the first that fails decides.

Every question is answered, passed or failed, by a sentence with its number, so that a GO is explained too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data import Behaviour
from ..pil import PIL
from ..value.checks import LIMIT, Checks, check
from ..value.estimate import ValueEstimate
from ..value.health import BROKEN
from ..value.predictive import Predictive
from ..value.support import BOUNDED, CLIPPED, GUARDED, OUTSIDE
from ..wording import number, percent

SAME = 0.005  # a factor so near to 1 is not worth a word
GO, NO_GO, UNKNOWN = "GO", "NO-GO", "NOT-ENOUGH-EVIDENCE"
EXIT = {GO: 0, NO_GO: 3, UNKNOWN: 4}


class Verdict(NamedTuple):
    """The word, the answer to every question that was asked, and what would change it."""

    word: str
    reasons: tuple[str, ...]
    gain: float | None = None  # the least that the policy earns more than the baseline, at the asked probability
    advice: tuple[str, ...] = ()  # what would change a verdict that is not GO


class Answer(NamedTuple):
    """What one question came to; `word` is what the verdict is if this is the first that failed."""

    word: str  # GO if passed
    reason: str


def verdict(
    pil: PIL,
    predicted: Predictive,
    behaviour: Behaviour,
    baseline: float | None = None,
    broken: float = 0.0,
    level: float = 0.9,
) -> Verdict:
    """Whether to deploy. The baseline is the logged behaviour's return unless a number is given."""
    answers = [_consistent(broken)]
    with np.errstate(all="ignore"):
        wrong = _not_finite(pil, predicted, behaviour, baseline, broken, level)
    gain, advice = None, ()
    if wrong:
        answers.append(_answer(UNKNOWN, "Are the numbers sound?", f"{', '.join(wrong)}: nothing can be concluded"))
    else:
        against = Against.of(predicted.returns, behaviour, baseline, level)
        gain = against.least
        checks = predicted.checks or check((), pil)
        answers += [_checked(checks, pil, predicted.returns.widen), _supported(predicted), _better(against)]
        advice = _advice(checks, predicted, against)
    word = next((answer.word for answer in answers if answer.word != GO), GO)
    return Verdict(word, tuple(answer.reason for answer in answers), gain, () if word == GO else advice)


def _answer(word: str, question: str, because: str) -> Answer:
    return Answer(word, f"{question} {'Yes' if word == GO else 'No'}: {because}.")


def _consistent(broken: float) -> Answer:
    word = GO if broken <= BROKEN else UNKNOWN
    share = percent(broken, BROKEN)
    because = f"{share} of the steps inside its episodes do not start where the step before ended"
    if word != GO:
        because += f" (at most {_plain(BROKEN)} may), so rows are missing, mixed up or mislabelled"
    return _answer(word, "Is the log sound?", because)


def _not_finite(
    pil: PIL, predicted: Predictive, behaviour: Behaviour, baseline: float | None, broken: float, level: float
) -> list[str]:
    """What is not a finite number, or rests on next to nothing, in words."""
    if min(np.size(predicted.value.returns), np.size(predicted.returns.returns)) < 2:
        return ["there are fewer than two imagined episodes"]
    checked = {
        "the loss of information (E, V)": (pil.e, pil.v, pil.imbalance),
        "the predicted return": (*_numbers(predicted.returns, level), predicted.length),
        "the predicted value": _numbers(predicted.value, level),
        "the policy's support in the log": tuple(predicted.support),
        "the logged behaviour's return": behaviour,
        "the baseline": (0.0 if baseline is None else baseline,),
        "the log's consistency": (broken,),
    }
    return [f"{name} is not finite" for name, numbers in checked.items() if not all(map(_finite, numbers))]


def _numbers(earned: ValueEstimate, level: float) -> tuple[Any, ...]:
    doubts = (earned.starts, earned.gap, earned.widen, earned.rare, earned.deviation)
    return (earned.returns, earned.median, *doubts, *earned.interval(level))


def _finite(number: Any) -> bool:
    return bool(np.all(np.isfinite(number)))


def _checked(checks: Checks, pil: PIL, widen: float) -> Answer:
    """Whether predictions have held where they could be checked; what widening corrects does not also refuse."""
    question = "Has this kind of prediction held where it could be checked?"
    steps = (
        f"on single held-out steps their error (E = {number(pil.e)}) stands beside a spread of V = {number(pil.v)}"
    )
    if not checks.blocks:
        because = (
            f"no episode was left to check a predicted return by, and {steps}; what the worlds differ by on this "
            f"policy {_multiplied(widen)}"
        )
        return _answer(GO if pil.balanced and widen <= LIMIT else UNKNOWN, question, because)
    there = f"{checks.inside} lie inside their 90% interval"
    if checks.factor >= 1 + SAME:
        there += f" as it was, {checks.widened} once it is widened by a factor of {number(checks.factor)}"
    because = (
        f"worlds that had not seen them predicted the returns of {checks.blocks} stretches of the log, "
        f"and {there}; {steps}; what the worlds differ by on this policy {_multiplied(widen)}"
    )
    if checks.held and widen <= LIMIT:
        return _answer(GO, question, because)
    return _answer(UNKNOWN, question, because + f", and beyond {number(LIMIT)} widening says nothing")


def _multiplied(factor: float) -> str:
    if abs(factor - 1) < SAME:
        return "is taken as it is"
    why = "they were surer than right" if factor > 1 else "they differ by more than they were off"
    return f"is multiplied by {number(factor)}, since {why}"


def _most(predicted: Predictive) -> float:
    """How often imagined episodes may run away from the log: more often where what may follow is bounded, since
    the interval and the probability then reach as far as the worst of it.
    """
    bounded = predicted.ends and (predicted.returns.less < 0 or predicted.returns.more > 0)
    return BOUNDED if bounded else GUARDED


def _supported(predicted: Predictive) -> Answer:
    support, most = predicted.support, _most(predicted)
    limits = (
        (support.outside, OUTSIDE, "of its imagined steps lie outside the log"),
        (support.guarded, most, "of its imagined episodes run away from all that the log knows"),
        (support.clipped, CLIPPED, "of its imagined rewards had to be held to the log's range"),
    )
    parts = [
        f"{percent(share, limit)} {what}" + ("" if share <= limit else f" (at most {_plain(limit)} may)")
        for share, limit, what in limits
    ]
    word = GO if all(share <= limit for share, limit, _ in limits) else UNKNOWN
    return _answer(word, "Does the policy stay where the log has been?", f"{parts[0]}, {parts[1]}, and {parts[2]}")


class Against(NamedTuple):
    """A policy's return against the one that it must beat."""

    what: str
    mark: float
    chance: float  # that it earns more, at least
    most: float  # the same at most: nobody knows what steps beyond the log earn
    least: float  # gain that it has at the asked probability, at least
    interval: tuple[float, float]
    level: float

    @classmethod
    def of(cls, earned: ValueEstimate, behaviour: Behaviour, baseline: float | None, level: float) -> Against:
        what, mark, stderr = "the logged behaviour", behaviour.mean, behaviour.stderr
        if baseline is not None:
            what, mark, stderr = "the baseline", baseline, 0.0
        chance, most = earned.above(mark, stderr), earned.above_at_most(mark, stderr)
        return cls(what, mark, chance, most, earned.least(level, stderr) - mark, earned.interval(level), level)


def _better(against: Against) -> Answer:
    """GO where it earns more with the asked probability, NO-GO where it earns less with that probability, whatever
    steps beyond the log may earn.
    """
    level, chance, most = against.level, against.chance, against.most
    word = GO if chance >= level else NO_GO if most <= 1 - level else UNKNOWN
    due = "is enough" if word == GO else "is asked"
    because = f"the probability that it does is {percent(chance, level)}"
    if word != GO and percent(chance, level) != percent(most, level):
        because = (
            f"the probability that it does may be anything from {percent(chance, level)} to "
            f"{percent(most, 1 - level)}, as nobody knows what steps beyond the log earn"
        )
    because += f", and {_plain(level)} {due}"
    if word == GO:
        because += f"; with {_plain(level)} probability it earns at least {number(against.least)} more"
    low, high = against.interval
    because += (
        f"; the average return lies between {number(low)} and {number(high)} with {_plain(level)} probability"
    )
    return _answer(word, f"Will it earn more than {against.what} ({number(against.mark)})?", because)


def _advice(checks: Checks, predicted: Predictive, against: Against) -> tuple[str, ...]:
    """What would change the verdict."""
    advice, terms = [], predicted.returns.terms
    if not checks.held or predicted.returns.widen > LIMIT:
        advice.append("more episodes like these, so that predictions can be made and checked on more of them")
    if predicted.support.outside > OUTSIDE or predicted.support.guarded > _most(predicted):
        advice.append(
            "rows from where the policy goes and the log does not, or a policy that stays nearer to the log"
        )
    if against.chance < against.level and against.most > 1 - against.level and terms:
        worst = max(terms, key=lambda name: terms[name])
        advice.append(f"less doubt: most of it is {WORDS[worst]}")
    return tuple(advice)


WORDS = {
    "worlds": "that the learned worlds disagree, which more rows where the policy goes would lessen",
    "checks": "that predictions were off where they could be checked, which more episodes would lessen",
    "starts": "that the log shows few starts of episodes, which more episodes would lessen",
    "gap": "that it earns more in the worlds it was planned in; a policy nearer to the log would help",
    "rare": "that few imagined episodes were rolled out",
    "unknown": "that imagined episodes leave what the log knows, which rows from there would lessen",
}


def _plain(level: float) -> str:
    return f"{100 * level:g}%"
