"""The verdict: every question, their order, and that no failed one ever lets a GO through."""

import numpy as np
import pytest

from offing.data import Behaviour
from offing.pil import PIL
from offing.report import verdict as room
from offing.report.verdict import EXIT, verdict
from offing.value.checks import LIMIT, Checks, check
from offing.value.estimate import ValueEstimate
from offing.value.predictive import Predictive
from offing.value.support import Support

GO, NO_GO, UNKNOWN = "GO", "NO-GO", "NOT-ENOUGH-EVIDENCE"
QUESTIONS = ("log sound", "held where it could be checked", "where the log has been", "earn more than")
LOGGED = Behaviour(mean=0.0, stderr=0.5, best=20.0, worst=-20.0, episodes=50, estimated=False)


def loss(e: float = 1.0, v: float = 1.0) -> PIL:
    half = np.full(2, 0.5)
    return PIL(half * e, half * v, half, half, half, half, members=4)


def earning(middle: float = 10.0, apart: float = 0.5, **doubts: float) -> ValueEstimate:
    """Four worlds about `middle`, `apart` from each other, and no chance within them."""
    worlds = middle + apart * np.array([-1.5, -0.5, 0.5, 1.5])
    return ValueEstimate(np.repeat(worlds[:, None], 3, 1), **doubts)


def predicted(
    returns: ValueEstimate | None = None,
    outside: float = 0.1,
    clipped: float = 0.1,
    guarded: float = 0.0,
    checks: Checks | None = None,
) -> Predictive:
    return Predictive(earning(1.0), returns or earning(), 7.0, Support(outside, clipped, guarded), checks)


def checked(factor: float = 1.0, blocks: int = 20) -> Checks:
    """Checks that came to this factor."""
    return Checks(blocks, factor, blocks - 2, 1.5 * factor, blocks - 1)


def failed(found: room.Verdict) -> list[int]:
    """Which of the questions were answered No; all four are answered, in order."""
    assert len(found.reasons) == len(QUESTIONS)
    for question, reason in zip(QUESTIONS, found.reasons, strict=True):
        assert question in reason
        assert ("? Yes: " in reason) != ("? No: " in reason)
        assert any(letter.isdigit() for letter in reason)
        assert reason.endswith(".")
    return [i for i, reason in enumerate(found.reasons) if "? No: " in reason]


CASES = [
    # what is asked; the word; which questions fail
    ({}, GO, []),
    ({"broken": 0.01}, GO, []),
    ({"broken": 0.011}, UNKNOWN, [0]),
    # has it held? Where nothing could be checked, single steps say it
    ({"pil": loss(1.6, 1.0)}, GO, []),
    ({"pil": loss(1.7, 1.0)}, UNKNOWN, [1]),
    ({"pil": loss(1.0, 1.7)}, UNKNOWN, [1]),
    ({"pil": loss(0.0, 0.0)}, GO, []),
    # and where something could, what widening corrects does not also refuse
    ({"pil": loss(30.0, 1.0), "predicted": predicted(checks=checked())}, GO, []),
    ({"predicted": predicted(checks=checked(LIMIT))}, GO, []),
    ({"predicted": predicted(checks=checked(LIMIT + 0.01))}, UNKNOWN, [1]),
    # does it stay where the log has been?
    ({"predicted": predicted(outside=room.OUTSIDE)}, GO, []),
    ({"predicted": predicted(outside=room.OUTSIDE + 0.001)}, UNKNOWN, [2]),
    ({"predicted": predicted(guarded=0.05)}, GO, []),
    ({"predicted": predicted(guarded=0.06)}, UNKNOWN, [2]),
    ({"predicted": predicted(clipped=0.5)}, GO, []),
    ({"predicted": predicted(clipped=0.51)}, UNKNOWN, [2]),
    # better than the baseline? NO-GO only where it is worse with the asked probability
    ({"baseline": 9.0}, UNKNOWN, [3]),
    ({"baseline": 11.0}, UNKNOWN, [3]),
    ({"baseline": 12.0}, NO_GO, [3]),
    ({"predicted": predicted(earning(-10.0))}, NO_GO, [3]),
    # what nobody knows speaks neither for a policy nor against it
    ({"predicted": predicted(earning(10.0, less=-30.0))}, UNKNOWN, [3]),
    ({"predicted": predicted(earning(-10.0, more=30.0))}, UNKNOWN, [3]),
    ({"predicted": predicted(earning(-10.0, less=-30.0, more=3.0))}, NO_GO, [3]),
    ({"predicted": predicted(earning(40.0, less=-30.0))}, GO, []),
    ({"predicted": predicted(earning(2.0, 8.0))}, UNKNOWN, [3]),
    ({"predicted": predicted(earning(-2.0, 8.0))}, UNKNOWN, [3]),
    ({"predicted": predicted(earning(2.0)), "level": 0.99}, UNKNOWN, [3]),
    ({"predicted": predicted(earning(2.0)), "level": 0.9}, GO, []),
    # a wide interval that lies above the baseline is one that lies above it
    ({"predicted": predicted(earning(100.0, 10.0))}, GO, []),
    ({"predicted": predicted(earning(gap=6.0, common=1.0)), "baseline": -30.0}, GO, []),
    # the first that fails decides
    ({"predicted": predicted(earning(-10.0)), "pil": loss(3.0)}, UNKNOWN, [1, 3]),
    ({"predicted": predicted(earning(-10.0), outside=0.9)}, UNKNOWN, [2, 3]),
    (
        {"predicted": predicted(earning(-10.0, 20.0), outside=0.9), "pil": loss(3.0), "broken": 0.5},
        UNKNOWN,
        [0, 1, 2, 3],
    ),
]


@pytest.mark.parametrize(("given", "word", "wrong"), CASES)
def test_each_question_and_their_order(given, word, wrong):
    found = verdict(**{"pil": loss(), "predicted": predicted(), "behaviour": LOGGED, **given})
    assert (found.word, failed(found)) == (word, wrong)


def test_the_numbers_are_said():
    found = verdict(loss(3.0, 1.0), predicted(outside=0.4), LOGGED, baseline=1234.0, broken=0.2)
    for reason, said in zip(
        found.reasons,
        (("20%", "1%"), ("no episode was left", "E = 3", "V = 1"), ("40%", "35%"), ("baseline (1,234)", "90%")),
        strict=True,
    ):
        assert all(part in reason for part in said), reason
    plain = verdict(loss(), predicted(), LOGGED)
    assert "the logged behaviour (0)" in plain.reasons[3]
    low, high = earning().interval(0.9)
    assert f"between {room.number(low)} and {room.number(high)}" in plain.reasons[3]
    wide = verdict(loss(), predicted(checks=checked(1.7, 20)), LOGGED).reasons[1]
    assert all(part in wide for part in ("20 stretches", "18 lie inside", "factor of 1.7"))
    assert "taken as it is" in verdict(loss(), predicted(checks=checked()), LOGGED).reasons[1]
    for widen, words in (
        (1.7, "by 1.7, since they were surer"),
        (0.7, "by 0.7, since they differ by more than they were off"),
    ):
        off = predicted(earning(widen=widen), checks=checked())
        assert words in verdict(loss(), off, LOGGED).reasons[1]


def test_the_least_gain_is_what_is_passed_with_the_asked_probability():
    """`gain` is where the baseline would have to lie for P(better) to be just what is asked."""
    for level in (0.8, 0.9, 0.99):
        found = verdict(loss(), predicted(), LOGGED, baseline=3.0, level=level)
        assert found.gain == pytest.approx(earning().least(level) - 3.0)
        assert earning().above(3.0 + found.gain) == pytest.approx(level)
    assert verdict(loss(), predicted(), LOGGED).gain > 0
    assert verdict(loss(), predicted(), LOGGED, baseline=12.0).gain < 0
    unsure = verdict(loss(), predicted(), LOGGED._replace(stderr=2.0))  # which counts the log's own doubt
    assert unsure.gain == pytest.approx(earning().least(0.9, 2.0))
    assert unsure.gain < verdict(loss(), predicted(), LOGGED).gain
    assert verdict(loss(np.nan), predicted(), LOGGED).gain is None


def test_what_would_change_a_verdict_is_said_unless_it_is_go():
    assert verdict(loss(), predicted(), LOGGED).advice == ()
    far = verdict(loss(), predicted(outside=0.9), LOGGED)
    assert any("stays nearer to the log" in line for line in far.advice)
    off = verdict(loss(), predicted(checks=checked(LIMIT + 1)), LOGGED)
    assert any("more episodes like these" in line for line in off.advice)
    for doubt, words in (
        ({"apart": 8.0}, "worlds disagree"),
        ({"gap": 9.0, "common": 1.0}, "worlds it was planned in"),
        ({"starts": 99.0}, "few starts"),
        ({"apart": 4.0, "widen": 4.0}, "off where they could be checked"),
        ({"rare": 9.0}, "few imagined episodes"),
        ({"less": -5.0}, "leave what the log knows"),
    ):
        found = verdict(loss(), predicted(earning(**{"middle": 5.0, **doubt})), LOGGED)
        assert found.word == UNKNOWN
        assert words in found.advice[-1]


def test_doubt_about_the_logged_behaviour_counts():
    unsure = LOGGED._replace(stderr=30.0)
    assert verdict(loss(), predicted(), unsure).word == UNKNOWN
    assert verdict(loss(), predicted(), unsure, baseline=0.0).word == GO  # a number the user gives is exact


def test_no_span_at_all():
    same = LOGGED._replace(mean=10.0, best=10.0, worst=10.0, stderr=0.0)
    sure = verdict(loss(), predicted(earning(10.0, 0.0)), same)
    assert (sure.word, failed(sure), sure.gain) == (NO_GO, [3], 0.0)  # certainly no better
    zero = verdict(loss(), predicted(earning(0.0, 0.0)), same._replace(mean=0.0, best=0.0, worst=0.0))
    assert (zero.word, failed(zero)) == (NO_GO, [3])
    even = verdict(loss(), predicted(earning(10.0, 3.0)), same)
    assert (even.word, failed(even)) == (UNKNOWN, [3])


BAD = [np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda x: {"pil": loss(x)},
        lambda x: {"pil": loss(1.0, x)},
        lambda x: {"predicted": predicted(earning(x))},
        lambda x: {"predicted": predicted(earning(gap=x))},
        lambda x: {"predicted": predicted(earning(starts=x))},
        lambda x: {"predicted": predicted(earning(widen=x))},
        lambda x: {"predicted": predicted(earning(rare=x))},
        lambda x: {"predicted": predicted()._replace(value=earning(x))},
        lambda x: {"predicted": predicted()._replace(length=x)},
        lambda x: {"predicted": predicted(outside=x)},
        lambda x: {"predicted": predicted(clipped=x)},
        lambda x: {"predicted": predicted(guarded=x)},
        lambda x: {"behaviour": LOGGED._replace(mean=x)},
        lambda x: {"behaviour": LOGGED._replace(stderr=x), "baseline": 0.0},
        lambda x: {"behaviour": LOGGED._replace(best=x), "baseline": 0.0},
        lambda x: {"baseline": x},
        lambda x: {"broken": x},
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_finite_is_never_go(spoil, bad):
    found = verdict(**{"pil": loss(), "predicted": predicted(), "behaviour": LOGGED, **spoil(bad)})
    assert found.word == UNKNOWN
    assert "is not finite" in found.reasons[-1]


def test_one_spoilt_episode_huge_numbers_and_no_episodes():
    returns = np.array(earning().returns)
    returns[2, 1] = np.nan
    assert verdict(loss(), predicted(ValueEstimate(returns)), LOGGED).word == UNKNOWN
    huge = ValueEstimate(np.array([[1e300, 1e300], [1e308, 1e308]]), bounds=(-1.0, 1.0))
    assert verdict(loss(), predicted(huge), LOGGED).word == UNKNOWN
    for few in (np.zeros((0, 3)), np.zeros((3, 0)), np.full((1, 1), 10.0)):
        found = verdict(loss(), predicted(ValueEstimate(few)), LOGGED)
        assert found.word == UNKNOWN
        assert "fewer than two" in found.reasons[-1]


def test_go_exactly_when_nothing_failed():
    rng = np.random.default_rng(0)
    words = {GO: 0, NO_GO: 0, UNKNOWN: 0}
    for _ in range(400):
        e, v = np.exp(rng.normal(size=2) * 0.3)
        returns = ValueEstimate(
            rng.normal(rng.normal(15, 15), np.exp(rng.normal()), (4, 1)) + rng.normal(size=(4, 5)),
            gap=rng.normal(),
            widen=1 + rng.exponential(0.2),
        )
        support = Support(*(float(x) for x in rng.beta(1, 8, 3) * [1.0, 1.5, 0.2]))
        given = Predictive(returns, returns, 5.0, support)
        logged = Behaviour(*(float(x) for x in rng.normal(0, 3, 1)), 0.5, 20.0, -20.0, 9, False)
        baseline = None if rng.random() < 0.5 else float(rng.normal(0, 10))
        found = verdict(loss(e, v), given, logged, baseline, broken=float(rng.random() ** 8 / 10))
        assert (found.word == GO) == (failed(found) == [])
        if failed(found) and failed(found)[0] != 3:
            assert found.word == UNKNOWN
        words[found.word] += 1
    assert min(words.values()) > 10  # all three are tried


def test_a_single_failed_question_is_enough():
    """From a GO, spoiling any one thing by any amount never leaves it a GO."""
    rng = np.random.default_rng(1)
    spoils = (
        lambda x: {"broken": 0.0101 + x},
        lambda x: {"pil": loss(1.7 + x, 1.0)},
        lambda x: {"pil": loss(1.0, 1.7 + x)},
        lambda x: {"predicted": predicted(outside=room.OUTSIDE + 1e-6 + x)},
        lambda x: {"predicted": predicted(guarded=0.0501 + x)},
        lambda x: {"predicted": predicted(clipped=0.501 + x)},
        lambda x: {"baseline": 9.5 + 10 * x},
        lambda x: {"predicted": predicted(earning(10.0, 6.0 + x))},
        lambda x: {"predicted": predicted(checks=checked(LIMIT + 0.01 + x))},
    )
    for spoil in spoils:
        for x in (0.0, *rng.exponential(1.0, 5)):
            found = verdict(**{"pil": loss(), "predicted": predicted(), "behaviour": LOGGED, **spoil(float(x))})
            assert found.word != GO


def test_every_word_has_its_exit_code():
    assert EXIT == {GO: 0, NO_GO: 3, UNKNOWN: 4}


def test_what_a_bound_counts_does_not_also_refuse():
    """Episodes that run away may go on to earn the worst there is; where that is counted, a few may."""
    from offing.report.verdict import BOUNDED, GUARDED, _most

    class Some:
        def __init__(self, less, ends=True):
            self.returns, self.ends = type("R", (), {"less": less, "more": 0.0})(), ends

    assert _most(Some(-1.0)) == BOUNDED > GUARDED == _most(Some(0.0))
    assert _most(Some(-1.0, ends=False)) == GUARDED  # a step beyond the log is counted, and not what follows it


def test_checks_count_what_lies_inside_before_and_after_widening():
    sure = check([0.3] * 10 + [3.0] * 10, None)  # half of the predictions are three deviations off
    assert (sure.blocks, sure.inside, sure.widened) == (20, 10, 20)
    assert 1.8 < sure.factor < 2.2
    assert sure.held
    lost = check([30.0] * 20, None)
    assert (lost.inside, lost.held) == (0, False)


def test_what_nobody_knows_is_no_probability_but_a_range_of_them():
    sure, open_ = (verdict(loss(), predicted(earning(10.0, less=less)), LOGGED) for less in (0.0, -30.0))
    assert "the probability that it does is over 99.9%, and 90% is enough" in sure.reasons[3]
    said = (
        "may be anything from under 0.1% to over 99.9%, as nobody knows what steps beyond the log earn, and 90% is"
    )
    assert said in open_.reasons[3]
    assert any("less doubt" in advice for advice in open_.advice)
