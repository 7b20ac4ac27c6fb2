"""Can the numbers be trusted? A figure for each way in which an evaluation goes wrong, its limit, and a sentence.

What is caught: rows that do not follow each other or that nothing predicts (next states shuffled), rewards that
change their rule between episodes (a sign flipped in some of them), a log that tried nothing but what it did (one
behaviour only), worlds that misjudge themselves or the log's own behaviour, a policy that leaves the log, and one
that is worth less than what wrote the log. That last is no fault by itself. But a log whose every reward has the
wrong sign is a sound log of another task, and that a policy known to be good is worth less than the log is all
that tells it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ..data import Behaviour
from ..data.facts import Facts
from ..data.inspect import FOLLOWS, SLIVER, TAKEN
from ..data.rules import LEAST, Rules
from ..pil import PIL, THRESHOLD
from ..types import BadInput
from ..wording import number, percent
from .backtest import Backtest
from .estimate import Estimate
from .left_out import LeftOut, attempt
from .support import CLIPPED, GUARDED, OUTSIDE

BROKEN = 0.01  # share of steps inside episodes that may start elsewhere than the step before ended
PREDICTED = 0.1  # share of how next observations vary that worlds must predict to be worlds at all
WORSE = 0.05  # a policy that earns more than the log with less than this probability is worth a word

Part = TypeVar("Part")


class Evidence(NamedTuple):
    """What the checks read: of the log, of its worlds, and what the worlds say of each policy."""

    estimates: dict[str, Estimate]  # by the posterior, for each policy
    behaviour: Behaviour
    pil: PIL
    terminates: bool  # whether episodes of the worlds can end before the horizon
    inspected: Facts | LeftOut  # what `data.inspect` says of the log
    rules: Rules | LeftOut | None
    predicted: float | LeftOut  # share of the variance of next observations that worlds predict on held-out rows
    backtest: Backtest | LeftOut


class Check(NamedTuple):
    """One figure: what it is of, whether it is within its limit, and what that means in a sentence."""

    name: str
    about: str  # "log", "worlds" or a policy's name
    value: float
    limit: float
    passed: bool
    question: str
    sentence: str


def checks(evidence: Evidence) -> tuple[list[Check], dict[str, LeftOut]]:
    """Every figure, those of the log first, then those of its worlds, then each policy's; and those left out."""
    questions: dict[str, Callable[[], list[Check | None]]] = {
        "consistent": lambda: [_joined(evidence)],
        "predicted": lambda: [_predicted(evidence)],
        "one_rule": lambda: [_one_rule(evidence)],
        "tried": lambda: [_tried(evidence)],
        "calibrated": lambda: [_calibrated(evidence)],
        "own_behaviour": lambda: [_own(evidence)],
    }
    for name, ours in evidence.estimates.items():
        questions[f"support of {name}"] = lambda n=name, o=ours: [*_support(n, o, evidence.terminates)]
        questions[f"worse: {name}"] = lambda n=name, o=ours: [_worse(n, o, evidence)]
    plain = lambda check: check._replace(value=float(check.value), passed=bool(check.passed))
    answered, missing = [], {}
    for what, ask in questions.items():
        answers = attempt(lambda a=ask: [plain(check) for check in a() if check is not None])
        if isinstance(answers, LeftOut):
            missing[what] = answers
        else:
            answered += answers
    return answered, missing


def _there(part: Part | LeftOut) -> Part:
    """A part that a check rests on; what it was left out for, if it was."""
    if isinstance(part, LeftOut):
        raise BadInput(f"what it rests on was left out: {part.reason}")
    return part


def _joined(evidence: Evidence) -> Check:
    share = _there(evidence.inspected).broken
    answer = f"{percent(share, BROKEN)} of the steps inside its episodes do not start where the step before ended"
    if share > BROKEN:
        answer += ", so next observations are mixed up, or rows are missing: no method can be trusted on this log"
    return Check(
        "consistent",
        "log",
        share,
        BROKEN,
        share <= BROKEN,
        "Is the log consistent from step to step?",
        f"{answer}.",
    )


def _predicted(evidence: Evidence) -> Check:
    share = _there(evidence.predicted)
    answer = f"the worlds predict {percent(share, PREDICTED)} of how next observations vary, in rows held out"
    if share < PREDICTED:
        answer += (
            "; a constant predicts none, so there is no world in this log, or its next observations are shuffled"
        )
    question = "Does one step predict the next?"
    return Check("predicted", "log", share, PREDICTED, share >= PREDICTED, question, f"{answer}.")


def _one_rule(evidence: Evidence) -> Check | None:
    rules = _there(evidence.rules)
    if rules is None:
        return None
    one, two = percent(rules.one), percent(rules.two)
    answer = f"one rule explains {one} of how rewards vary"
    if rules.several:
        answer += (
            f", and two that take turns by episode {two}: in some episodes the sign, the unit or the goal of the "
            "reward is another one"
        )
    question = "Do all episodes pay by one rule?"
    return Check("one_rule", "log", rules.two - rules.one, LEAST, not rules.several, question, f"{answer}.")


def _tried(evidence: Evidence) -> Check:
    acts = _there(evidence.inspected).actions
    discrete = _there(evidence.inspected).action_kind == "discrete"
    share, limit = acts.predicted, TAKEN if discrete else FOLLOWS
    what = "the choices" if discrete else "how actions vary"
    answer = f"the state settles {percent(share, limit)} of {what}"
    narrow = not discrete and acts.left_over < SLIVER
    passed = not (acts.still or share > limit or narrow)
    if not discrete:
        answer += f", and in alike states actions differ by {percent(acts.left_over, SLIVER)} of their range"
    if not passed:
        answer += (
            "; this is one way of acting, and the log cannot tell what others lead to: no estimate for a policy "
            "that acts otherwise rests on anything that was seen"
        )
    question = "Were alike states met with different actions?"
    return Check("tried", "log", 1.0 if acts.still else share, limit, passed, question, f"{answer}.")


def _calibrated(evidence: Evidence) -> Check:
    loss = evidence.pil
    e, v = number(loss.e), number(loss.v)
    answer = f"{loss.word}: on held-out rows their error is {e} nats per step, their spread {v}"
    question = "Do the worlds know how wrong they are?"
    return Check("calibrated", "worlds", abs(loss.imbalance), THRESHOLD, loss.calibrated, question, f"{answer}.")


def _own(evidence: Evidence) -> Check | None:
    past = evidence.backtest
    if isinstance(past, LeftOut):
        return None
    count, share = len(past.blocks), past.inside / len(past.blocks)
    answer = f"of {count} blocks of episodes that the worlds never saw, {past.inside} earned what was predicted"
    if not past.held:
        answer += (
            f", where {past.level:.0%} should have: intervals are too narrow, or the behaviour could not be cloned"
        )
    question = "Do the worlds predict what the log's own behaviour earned?"
    return Check("own_behaviour", "worlds", share, past.level, past.held, question, f"{answer}.")


def _support(name: str, estimate: Estimate, stopped: bool) -> list[Check]:
    """How far its imagined episodes leave the log; `stopped`: where they leave all that is known, they end."""
    left = "episodes" if stopped else "steps"
    limits = (
        ("outside", OUTSIDE, "Does it stay where the log has been?", "steps lie outside the log"),
        ("guarded", GUARDED, "Does the log know where it ends up?", f"{left} leave all that is known"),
        ("clipped", CLIPPED, "Are its rewards such as were seen?", "rewards are held to what was seen"),
    )
    answers = []
    for figure, limit, question, what in limits:
        share = estimate.health[figure]
        answer = f"{percent(share, limit)} of its imagined {what}"
        if share > limit:
            answer += (
                f" (at most {percent(limit)} may): what it is worth is a guess about ground that nobody has seen"
            )
        answers.append(Check(figure, name, share, limit, share <= limit, question, f"{answer}."))
    return answers


def _worse(name: str, estimate: Estimate, evidence: Evidence) -> Check | None:
    if estimate.returns is None:
        return None
    mark = evidence.behaviour
    chance = estimate.returns.above(mark.mean, mark.stderr)
    answer = (
        f"with probability {percent(chance, WORSE)} it earns more than the logged behaviour, which earned "
        f"{number(mark.mean)}"
    )
    if chance < WORSE:
        answer += "; if it is meant to be good, look at the sign and the unit of the rewards first"
    question = "Could it be better than what wrote the log?"
    return Check("worse", name, chance, WORSE, chance >= WORSE, question, f"{answer}.")
