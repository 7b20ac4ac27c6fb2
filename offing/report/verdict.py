"""GO, NO-GO or NOT-ENOUGH-EVIDENCE, by questions asked in order: the first that fails decides.

Every question is answered, passed or failed, by a sentence with its number, so that a GO is explained too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data import Behaviour
from ..pil import PIL, THRESHOLD
from ..value.estimate import ValueEstimate
from ..value.predictive import Predictive
from ..value.support import Support

GO, NO_GO, UNKNOWN = "GO", "NO-GO", "NOT-ENOUGH-EVIDENCE"
EXIT = {GO: 0, NO_GO: 3, UNKNOWN: 4}
BROKEN = 0.01  # share of steps inside episodes that may start elsewhere than the step before ended
OUTSIDE = 0.35  # share of imagined steps that may lie outside the log
GUARDED = 0.05  # share of imagined episodes that may run away from everything the log knows
CLIPPED = 0.5  # share of imagined steps whose reward may be held to the log's range
WIDEST = 0.5  # width of an interval that still means something, relative to the span of returns


class Verdict(NamedTuple):
    """The word, and the answer to every question that was asked."""

    word: str
    reasons: tuple[str, ...]


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
    if wrong:
        answers.append(_answer(UNKNOWN, "Are the numbers sound?", f"{', '.join(wrong)}: nothing can be concluded"))
    else:
        narrow = _narrow(predicted.returns, behaviour, baseline, level)
        answers += [
            _calibrated(pil),
            _supported(predicted.support),
            _better(predicted.returns, behaviour, baseline, level, narrow.word == GO),
            narrow,
        ]
    word = next((answer.word for answer in answers if answer.word != GO), GO)
    return Verdict(word, tuple(answer.reason for answer in answers))


def _answer(word: str, question: str, because: str) -> Answer:
    return Answer(word, f"{question} {'Yes' if word == GO else 'No'}: {because}.")


def _consistent(broken: float) -> Answer:
    word = GO if broken <= BROKEN else UNKNOWN
    share = percent(broken, BROKEN)
    because = f"{share} of the steps inside its episodes do not start where the step before ended"
    if word != GO:
        because += f" (at most {_plain(BROKEN)} may), so rows are missing, mixed up or mislabelled"
    return _answer(word, "Does the log hang together?", because)


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
        "the policy's support in the log": predicted.support,
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


def _calibrated(pil: PIL) -> Answer:
    question = "Do the learned worlds know how wrong they are?"
    e, v = number(pil.e), number(pil.v)
    if pil.calibrated:
        return _answer(
            GO, question, f"on held-out rows their error (E = {e}) agrees with the spread between them (V = {v})"
        )
    if pil.balanced:
        few = f"error (E = {e}) and spread (V = {v}) agree, but on {pil.units} episodes, which may be luck"
        return _answer(UNKNOWN, question, few)
    compared = "exceeds" if pil.imbalance > 0 else "falls short of"
    apart = _apart(abs(pil.imbalance), THRESHOLD)
    because = f"they are {pil.word}; on held-out rows their error (E = {e}) {compared} the spread between them "
    return _answer(
        UNKNOWN, question, because + f"(V = {v}) by {apart} of their sum, and {_plain(THRESHOLD)} is allowed"
    )


def _supported(support: Support) -> Answer:
    limits = (
        (support.outside, OUTSIDE, "of its imagined steps lie outside the log"),
        (support.guarded, GUARDED, "of its imagined episodes run away from all that the log knows"),
        (support.clipped, CLIPPED, "of its imagined rewards had to be held to the log's range"),
    )
    parts = [
        f"{percent(share, limit)} {what}" + ("" if share <= limit else f" (at most {_plain(limit)} may)")
        for share, limit, what in limits
    ]
    word = GO if all(share <= limit for share, limit, _ in limits) else UNKNOWN
    return _answer(word, "Does the policy stay where the log has been?", f"{parts[0]}, {parts[1]}, and {parts[2]}")


def _better(
    earned: ValueEstimate, behaviour: Behaviour, baseline: float | None, level: float, narrow: bool
) -> Answer:
    if baseline is None:
        mark, stderr, what = behaviour.mean, behaviour.stderr, "the logged behaviour"
    else:
        mark, stderr, what = baseline, 0.0, "the baseline"
    chance = earned.above(mark, stderr)
    word = GO if chance >= level else NO_GO if narrow or chance < 0.5 else UNKNOWN
    asked = "is enough" if word == GO else "is asked"
    because = f"the probability that it does is {percent(chance, level)}, and {_plain(level)} {asked}"
    return _answer(word, f"Will it earn more than {what} ({number(mark)})?", because)


def _narrow(earned: ValueEstimate, behaviour: Behaviour, baseline: float | None, level: float) -> Answer:
    seen = [behaviour.worst, behaviour.best, behaviour.mean, earned.median]
    seen += [] if baseline is None else [baseline]
    span = max(seen) - min(seen) or abs(earned.median) or 1.0
    low, high = earned.interval(level)
    share = (high - low) / span
    word = GO if share <= WIDEST else UNKNOWN
    because = (
        f"with {_plain(level)} probability the average return is between {number(low)} and {number(high)}, "
        f"{_apart(share, WIDEST)} of the span of returns seen and predicted"
    )
    if word != GO:
        because += f" (at most {_plain(WIDEST)} is allowed)"
    return _answer(word, "Is the interval narrow enough to mean anything?", because)


def number(x: Any) -> str:
    """Three significant digits or all of the whole ones, with thousands separated: -1,239, 12.3, 0.00457."""
    if isinstance(x, bool) or not isinstance(x, (int, float, np.number)):
        return "–" if x is None else str(x)
    x = float(x) + 0.0  # no negative zero
    if not np.isfinite(x):
        return "not a number" if np.isnan(x) else "infinite" if x > 0 else "minus infinite"
    if x != 0 and not 1e-4 <= abs(x) < 1e9:
        return f"{x:.3g}"
    return f"{x:,.0f}" if abs(x) >= 99.95 else f"{x:.3g}"


def percent(share: Any, limit: float = 0.0) -> str:
    """A share with as few digits as tell it from 0, from 1 and from its limit."""
    if share is None or not _finite(share):
        return number(share)
    if 0.999 < share < 1:
        return "over 99.9%"
    if 0 < share < 0.001:
        return "under 0.1%"
    return _apart(share, 0.0, 1.0, limit)


def _apart(share: float, *marks: float) -> str:
    """A share with as few digits as tell it from each of the marks that it is not equal to."""
    others = [mark for mark in marks if mark != share]
    texts = (f"{share:,.{digits}%}" for digits in range(9))
    return next((t for d, t in enumerate(texts) if all(t != f"{o:.{d}%}" for o in others)), f"{share:.9%}")


def _plain(level: float) -> str:
    return f"{100 * level:g}%"
