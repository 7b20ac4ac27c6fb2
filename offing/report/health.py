"""Can the numbers be trusted? A figure for each way in which an evaluation goes wrong, its limit, and a sentence.

What is caught: rows that do not hang together or that nothing foretells (next states shuffled), rewards that
change their rule between episodes (a sign flipped in some of them), a log that tried nothing but what it did (one
behaviour only), worlds that misjudge themselves or the log's own behaviour, a policy that leaves the log, and one
that is worth less than what wrote the log. That last is no fault by itself. But a log whose every reward has the
wrong sign is a sound log of another task, and that a policy known to be good is worth less than the log is all
that tells it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..data._advice import FOLLOWS, SLIVER, TAKEN
from ..data.rules import LEAST
from ..pil import THRESHOLD
from ..tune.evaluate import Evaluation
from ..value.backtest import Backtest
from ..value.estimate import Judged
from .verdict import BROKEN, CLIPPED, GUARDED, OUTSIDE, number, percent

FORETOLD = 0.1  # share of how next observations vary that worlds must foretell to be worlds at all
WORSE = 0.05  # a policy that earns more than the log with less than this probability is worth a word


class Check(NamedTuple):
    """One figure: what it is of, whether it is within its limit, and what that means in a sentence."""

    name: str
    about: str  # "log", "worlds" or a policy's name
    value: float
    limit: float
    passed: bool
    question: str
    sentence: str


def checks(found: Evaluation) -> list[Check]:
    """Every figure, those of the log first, then those of its worlds, then each policy's."""
    told = [_joined(found), _foretold(found), _one_rule(found), _tried(found), _calibrated(found), _own(found)]
    for name, judged in found.estimates.items():
        ours, stopped = judged["predictive"], found.worlds.terminates
        told += [*_support(name, ours, stopped), _worse(name, ours, found)]
    plain = lambda check: check._replace(value=float(check.value), passed=bool(check.passed))
    return [plain(check) for check in told if check is not None]


def _joined(found: Evaluation) -> Check:
    share = found.inspected["broken"]
    said = f"{percent(share, BROKEN)} of the steps inside its episodes do not start where the step before ended"
    if share > BROKEN:
        said += ", so next observations are mixed up, or rows are missing: no method can be trusted on this log"
    return Check("joined", "log", share, BROKEN, share <= BROKEN, "Does the log hang together?", f"{said}.")


def _foretold(found: Evaluation) -> Check:
    share = found.foretold
    said = f"the worlds foretell {percent(share, FORETOLD)} of how next observations vary, in rows held out"
    if share < FORETOLD:
        said += (
            "; a constant foretells none, so there is no world in this log, or its next observations are shuffled"
        )
    question = "Does one step foretell the next?"
    return Check("foretold", "log", share, FORETOLD, share >= FORETOLD, question, f"{said}.")


def _one_rule(found: Evaluation) -> Check | None:
    told = found.rules
    if told is None:
        return None
    one, two = percent(told.one), percent(told.two)
    said = f"one rule explains {one} of how rewards vary"
    if told.several:
        said += (
            f", and two that take turns by episode {two}: in some episodes the sign, the unit or the goal of the "
            "reward is another one"
        )
    question = "Do all episodes pay by one rule?"
    return Check("one_rule", "log", told.two - told.one, LEAST, not told.several, question, f"{said}.")


def _tried(found: Evaluation) -> Check:
    acts, discrete = found.inspected["actions"], found.inspected["action_kind"] == "discrete"
    share, limit = acts["foretold"], TAKEN if discrete else FOLLOWS
    what = "the choices" if discrete else "how actions vary"
    said = f"the state settles {percent(share, limit)} of {what}"
    narrow = not discrete and acts["left_over"] < SLIVER
    passed = not (acts["still"] or share > limit or narrow)
    if not discrete:
        said += f", and in alike states actions differ by {percent(acts['left_over'], SLIVER)} of their range"
    if not passed:
        said += (
            "; this is one way of acting, and the log cannot tell what others lead to: no estimate for a policy "
            "that acts otherwise rests on anything that was seen"
        )
    question = "Were alike states met with different actions?"
    return Check("tried", "log", 1.0 if acts["still"] else share, limit, passed, question, f"{said}.")


def _calibrated(found: Evaluation) -> Check:
    loss = found.pil
    said = (
        f"{loss.word}: on held-out rows their error is {number(loss.e)} nats a step, their spread {number(loss.v)}"
    )
    question = "Do the worlds know how wrong they are?"
    return Check("calibrated", "worlds", abs(loss.imbalance), THRESHOLD, loss.calibrated, question, f"{said}.")


def _own(found: Evaluation) -> Check | None:
    past = found.backtest
    if not isinstance(past, Backtest):
        return None
    count, share = len(past.blocks), past.inside / len(past.blocks)
    said = (
        f"of {count} blocks of episodes that the worlds did not learn from, {past.inside} earned what was foretold"
    )
    if not past.held:
        said += (
            f", where {past.level:.0%} should have: intervals are too narrow, or the behaviour could not be cloned"
        )
    question = "Is what the log's own behaviour earned foretold?"
    return Check("own_behaviour", "worlds", share, past.level, past.held, question, f"{said}.")


def _support(name: str, judged: Judged, stopped: bool) -> list[Check]:
    """How far its imagined episodes leave the log; `stopped`: where they leave all that is known, they end."""
    left = "episodes" if stopped else "steps"
    limits = (
        ("outside", OUTSIDE, "Does it stay where the log has been?", "steps lie outside the log"),
        ("guarded", GUARDED, "Does the log know where it ends up?", f"{left} leave all that is known"),
        ("clipped", CLIPPED, "Are its rewards such as were seen?", "rewards are held to what was seen"),
    )
    told = []
    for figure, limit, question, what in limits:
        share = judged.health[figure]
        said = f"{percent(share, limit)} of its imagined {what}"
        if share > limit:
            said += (
                f" (at most {percent(limit)} may): what it is worth is a guess about ground that nobody has seen"
            )
        told.append(Check(figure, name, share, limit, share <= limit, question, f"{said}."))
    return told


def _worse(name: str, judged: Judged, found: Evaluation) -> Check | None:
    if judged.returns is None:
        return None
    mark = found.behaviour
    chance = judged.returns.above(mark.mean, mark.stderr)
    said = (
        f"with probability {percent(chance, WORSE)} it earns more than the logged behaviour, which earned "
        f"{number(mark.mean)}"
    )
    if chance < WORSE:
        said += "; if it is meant to be good, look at the sign and the unit of the rewards first"
    question = "Could it be better than what wrote the log?"
    return Check("worse", name, chance, WORSE, chance >= WORSE, question, f"{said}.")
