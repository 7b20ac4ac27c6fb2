"""The online baseline: which arm is pulled, what it costs, and how fast a bandit finds the best."""

import numpy as np
import pytest

from offing.online import bandit
from offing.online.play import Played
from offing.types import BadInput


def fixed(value, length=1):
    return lambda rng: (value, length)


def coin(chance, length=1):
    return lambda rng: (float(rng.random() < chance), length)


def test_deterministic_arms_are_each_pulled_once_and_then_the_best_is_kept():
    arms = [fixed(v) for v in (1.0, 5.0, 3.0, 2.0)]
    course = bandit.ucb(np.random.default_rng(0), arms, 40, width=0.1)
    assert sorted(course.pulled[:4]) == [0, 1, 2, 3]
    assert (course.pulled[4:] == 1).all()
    assert (course.named[3:] == 1).all()
    assert (course.returns == np.array([1.0, 5.0, 3.0, 2.0])[course.pulled]).all()


def test_pulls_of_two_deterministic_arms_follow_the_formula():
    """A gap of 1: the worse arm is pulled when sqrt(2 ln t / n) of it exceeds that of the better by 1."""
    course = bandit.ucb(np.random.default_rng(0), [fixed(0.0), fixed(1.0)], 300, width=1.0)
    n = np.ones(2)
    for t, arm in enumerate(course.pulled[2:], start=3):
        due = np.array([0.0, 1.0]) + np.sqrt(2 * np.log(t) / n)
        assert arm == due.argmax()
        n[arm] += 1
    assert 5 < n[0] < 30  # the worse arm is not forgotten


def test_samples_are_the_lengths_of_the_episodes_and_not_the_horizon():
    arms = [fixed(0.0, 7), fixed(1.0, 11), fixed(-1.0, 2)]
    course = bandit.ucb(np.random.default_rng(1), arms, 25, width=0.5)
    assert (course.samples == np.cumsum(np.array([7, 11, 2])[course.pulled])).all()


def test_regret_grows_as_the_logarithm():
    """Two coins of 0.8 and 0.5: UCB1's regret is at most 8 ln T / gap + (1 + pi^2 / 3) gap (Auer et al., 2002)."""
    chances, pulls = np.array([0.8, 0.5]), 4_000
    arms = [coin(c) for c in chances]
    runs = [bandit.ucb(np.random.default_rng(s), arms, pulls, width=1.0) for s in range(6)]
    cost = np.mean([bandit.regret(run, chances) for run in runs], 0)
    assert cost[-1] <= 8 * np.log(pulls) / 0.3 + (1 + np.pi**2 / 3) * 0.3
    early, late = cost[999], cost[3_999] - cost[999]
    assert late < 0.7 * early  # a constant rate would have it three times as much
    assert cost[-1] > 3  # and it does explore


def test_arms_that_tie_are_named_alike():
    named = [bandit.ucb(np.random.default_rng(s), [fixed(1.0), fixed(1.0)], 2, 0.1).named[-1] for s in range(60)]
    assert 10 < sum(named) < 50


def test_stored_arms_draw_whole_episodes():
    arm = bandit.stored(Played(np.array([1.0, 2.0]), np.zeros(2), np.array([10, 20])))
    drawn = {arm(np.random.default_rng(s)) for s in range(20)}
    assert drawn == {(1.0, 10), (2.0, 20)}


def test_a_bandit_over_some_of_the_arms_can_only_find_the_best_of_those():
    worth = np.arange(10.0)
    arms = [fixed(v, 5) for v in worth]
    every = bandit.tuned(0, arms, worth, pulls=30, trials=200)
    some = bandit.tuned(0, arms, worth, among=3, pulls=30, trials=200)
    assert (every.arms, some.arms) == (10, 3)
    assert every.worth[-1] == 9.0
    assert abs(some.worth[-1] - (3 / 4 * 11 - 1)) < 0.35  # the largest of 3 of 1..10 is 33/4 on average
    assert some.low[-1] < some.worth[-1] < some.high[-1]
    assert every.samples[-1] == 150.0


def test_what_is_needed_to_match_an_offline_choice():
    worth = np.arange(10.0)
    curve = bandit.tuned(0, [fixed(v, 5) for v in worth], worth, pulls=30, trials=50, points=30)
    assert bandit.needed(curve, 9.0) == 50.0  # every arm once, at 5 steps each, and not before
    assert bandit.needed(curve, 9.5) == np.inf
    assert bandit.needed(curve, -1.0) == 5.0


def test_a_curve_that_falls_below_its_target_again_has_not_met_it():
    dip = bandit.Curve(np.arange(1.0, 6.0), np.array([0.0, 5.0, 2.0, 4.0, 5.0]), np.zeros(5), np.zeros(5), 2)
    assert bandit.needed(dip, 3.0) == 4.0


@pytest.mark.parametrize(("arms", "pulls"), [([], 5), ([fixed(1.0)], 0)])
def test_nothing_to_pull_is_refused(arms, pulls):
    with pytest.raises(BadInput, match="at least one of each"):
        bandit.ucb(np.random.default_rng(0), arms, pulls, 1.0)
    with pytest.raises(BadInput, match="a value for every arm"):
        bandit.tuned(0, [fixed(1.0)], [1.0, 2.0])
