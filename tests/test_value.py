"""What a policy will earn: the estimate and its interval, rollouts, closed forms, and what the log knows."""

import itertools
from dataclasses import replace
from functools import cache

import imagined as by_hand
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from offing.data import behaviour, broken
from offing.pil import PIL
from offing.posterior.models import linear
from offing.types import Box, Dataset, Moments, Policy, Posterior, Task, Transition
from offing.value.checks import FOLDS, LEAST, MOST, check
from offing.value.checks import STEPS as BLOCKS
from offing.value.estimate import FEWEST, Error, ValueEstimate, corrected, start_variance
from offing.value.predictive import Known, Paid, Past, Rollouts, estimates, known_of, paid, predictive, rollouts
from offing.value.support import ROWS, nearest, outside

run = jax.jit(rollouts, static_argnames=("copies", "sampled", "path"))


def log_of(obs, action, next_obs, reward, done=None, episode=None, starts=None) -> Dataset:
    obs, action, next_obs, reward = (np.asarray(a, np.float32) for a in (obs, action, next_obs, reward))
    done = np.zeros(len(obs), np.float32) if done is None else np.asarray(done, np.float32)
    steps = Transition(obs, action, reward, next_obs, action, done)
    episode = np.full(len(obs), -1) if episode is None else np.asarray(episode)
    return Dataset(steps, obs[:5] if starts is None else starts, episode, np.asarray(len(obs), np.int32))


# ---- the estimate

FIVE = ValueEstimate(np.array([[1.0, 3.0], [4.0, 4.0], [3.0, 5.0], [10.0, 2.0], [19.0, 21.0]]))  # 2, 4, 4, 6, 20


def test_centre_and_range_are_those_of_worlds_and_quantiles_those_of_episodes():
    np.testing.assert_array_equal(FIVE.worlds, [2, 4, 4, 6, 20])
    assert (FIVE.median, FIVE.mean, FIVE.range, FIVE.members) == (4.0, 7.2, (2.0, 20.0), 5)
    assert (FIVE.quantile(0.0), FIVE.quantile(0.5), FIVE.quantile(1.0)) == (1.0, 4.0, 21.0)


def test_spread_is_told_apart_into_worlds_and_chance():
    rng = np.random.default_rng(0)
    worlds = rng.normal(7.0, 2.0, (400, 1))
    found = ValueEstimate(worlds + rng.normal(0.0, 3.0, (400, 16)))
    assert found.epistemic == pytest.approx(2.0, rel=0.15)
    assert found.aleatoric == pytest.approx(3.0, rel=0.05)
    assert found.stderr == pytest.approx(3.0 / np.sqrt(400 * 16), rel=0.05)
    alike = ValueEstimate(rng.normal(0.0, 3.0, (400, 16)))
    assert np.std(alike.worlds) > 0.7
    assert alike.epistemic < 0.3  # all that is seen between them is chance
    assert ValueEstimate(np.ones((3, 1))).aleatoric == 0.0


def test_the_interval_is_students_about_the_median():
    half = stats.t.ppf(0.95, 4) * np.sqrt((1 + 1 / 5) * np.var([2, 4, 4, 6, 20], ddof=1))
    np.testing.assert_allclose(FIVE.interval(0.9), (4 - half, 4 + half))
    widths = [np.ptp(FIVE.interval(level)) for level in (0.0, 0.5, 0.8, 0.9, 0.99)]
    assert widths[0] == 0.0
    assert (np.diff(widths) > 0).all()


DOUBTS = {"starts": 9.0, "rare": 3.0, "widen": 2.0}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_every_doubt_widens_the_interval(doubt):
    worse = FIVE._replace(**{doubt: DOUBTS[doubt]})
    between = 1.2 * np.var([2, 4, 4, 6, 20], ddof=1)
    expected = 4 * between if doubt == "widen" else between + 9.0
    assert worse.deviation**2 == pytest.approx(expected)
    (low, high), (lower, higher) = FIVE.interval(), worse.interval()
    assert lower < low < high < higher
    assert worse.median == FIVE.median


def test_errors_that_all_worlds_share_count_with_the_gap_alone():
    """And with what of it is more than two folds differ by that know alike."""
    assert FIVE._replace(common=3.0).deviation == FIVE.deviation
    assert FIVE._replace(gap=30.0).deviation == FIVE.deviation  # what held-out worlds see through is not counted
    by_chance = np.sqrt(2 * FIVE.spread)
    assert FIVE._replace(common=3.0, gap=by_chance).deviation == pytest.approx(FIVE.deviation)
    shared = FIVE._replace(common=3.0, gap=np.sqrt(by_chance**2 + 1.0)).deviation ** 2 - FIVE.deviation**2
    assert shared == pytest.approx(9.0)


def test_a_plan_that_is_worth_less_in_its_own_worlds_has_not_used_their_errors():
    assert FIVE._replace(gap=-300.0, common=9.0).deviation == FIVE.deviation


def corrected_by_hand(errors: np.ndarray, values: np.ndarray, noise: float) -> ValueEstimate:
    return corrected(ValueEstimate(values[:, None] * np.ones(2)), Error(tuple(errors), noise), 1)


def test_worlds_are_corrected_by_what_they_say_too_much_of_known_behaviour():
    rng = np.random.default_rng(0)
    errors = rng.normal(3.0, 2.0, 12)
    found = corrected_by_hand(errors, 7.0 + 1.5 * errors, 0.0)
    assert found.slope == pytest.approx(1.5)
    np.testing.assert_allclose(found.worlds, 7.0)  # all they differ by is what they are known to be off
    assert found.median == pytest.approx(7.0)
    assert found.deviation == pytest.approx(0.0, abs=1e-5)
    assert found.quantile(0.5) == pytest.approx(7.0)
    half = corrected_by_hand(errors, 7.0 + 1.5 * errors, float(errors.var(ddof=1)))
    assert half.slope == pytest.approx(0.75)  # noise as large as what worlds differ by: half of it is believed
    unlike = corrected_by_hand(errors - errors.mean(), 7.0 + np.cos(np.arange(12)), 1e9)
    assert unlike.slope == pytest.approx(0.0, abs=1e-6)
    assert unlike.deviation == pytest.approx(unlike._replace(errors=()).deviation)


def test_what_the_log_earned_by_luck_is_not_doubted_twice():
    """A policy against the behaviour: chance in the logged return moves both, as far as the policy is like it."""
    rng, off = np.random.default_rng(3), []
    for _ in range(4_000):
        b = rng.normal(size=17)
        values = 2.0 * b + rng.normal(size=17)
        luck = rng.normal(size=2)  # of what each half of the log's episodes earned
        found = corrected(
            ValueEstimate(values[1:, None] * np.ones(2)), Error(tuple(b[1:] - b[0] - luck[0]), 1.0, 0.5), 1
        )
        logged = b[0] + luck.mean()
        off.append((found.median - logged - (values[0] - b[0])) / found.apart(np.sqrt(0.5)))
    assert np.std(off) == pytest.approx(1.0, abs=0.12)
    assert found.apart(0.7) < np.hypot(found.deviation, 0.7)
    assert found.apart(0.0) == found.deviation


@pytest.mark.parametrize("errors", [(), (1.0,) * 12, tuple(range(11)), (np.nan,) * 12])
def test_what_cannot_correct_corrects_nothing(errors):
    plain = ValueEstimate(np.random.default_rng(1).normal(size=(12, 4)))
    found = corrected(plain, Error(errors, 1.0), 1)
    np.testing.assert_array_equal(found.worlds, plain.worlds)
    assert found.interval() == plain.interval()
    few = ValueEstimate(plain.returns[: FEWEST - 1])
    assert corrected(few, Error(tuple(range(FEWEST - 1)), 0.0), 1).interval() == few.interval()


@pytest.mark.parametrize("folds", [1, 2])
@pytest.mark.parametrize("noise", [0.1, 1.0, 4.0])
def test_corrected_intervals_hold_and_are_narrower(folds, noise):
    """Truth and worlds are drawn alike, and what the behaviour earned is seen with noise, by every fold anew."""
    rng, inside, widths = np.random.default_rng(2), [], []
    for _ in range(1_500):
        b = rng.normal(size=16 * folds + 1)  # what the behaviour earns in each world; the first is the truth
        values = 5.0 + 2.0 * b + rng.normal(size=len(b))
        seen = b[0] + np.sqrt(noise) * rng.normal(size=folds)
        errors = b[1:] - np.repeat(seen, 16)
        plain = ValueEstimate(values[1:, None] * np.ones(2))
        found = corrected(plain, Error(tuple(errors), noise), folds)
        low, high = found.interval(0.9)
        inside.append(low <= values[0] <= high)
        widths.append(np.ptp((low, high)) / np.ptp(plain.interval(0.9)))
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)
    left = (1 + 4 * noise / folds / (1 + noise / folds)) / 5  # of the variance, once the behaviour is known
    assert np.median(widths) == pytest.approx(np.sqrt(left), rel=0.15)


def test_a_correction_stops_at_what_rewards_add_up_to():
    """Worlds say 190 of at most 200, and 15 too little of the log's own behaviour."""
    rng = np.random.default_rng(0)
    values = np.minimum(190 + 5 * rng.normal(size=8), 198.0)
    errors = tuple(-15 + 0.9 * (values - 190))
    one = ValueEstimate(np.repeat(values[:, None], 4, 1), bounds=(0.0, 200.0), errors=errors)
    assert one.slope > 0.5
    assert one.median <= 200
    assert max(*one.interval(0.9), one.least()) <= 200
    assert one.above(201.0) == 0.0
    assert one.above(150.0) > 0.9


def test_what_is_no_disagreement_of_worlds_no_check_makes_less():
    rng = np.random.default_rng(1)
    returns = 10 + rng.normal(size=(16, 1)) + 8 * rng.normal(size=(16, 64))
    one = ValueEstimate(returns, errors=tuple(rng.normal(size=16)), noise=0.5)
    narrow = one._replace(widen=1e-3)
    assert narrow.deviation < one.deviation
    assert narrow.deviation >= one.stderr
    np.testing.assert_allclose(narrow.deviation**2, one.settled, rtol=1e-3)


def test_the_interval_stays_within_what_can_be_earned():
    assert FIVE._replace(bounds=(0.0, 10.0)).interval() == (0.0, 10.0)
    low, high = FIVE._replace(bounds=(5.0, 6.0)).interval()
    assert (low, high) == (4.0, 6.0)  # and the estimate itself within the interval


def test_above_is_the_chance_of_earning_more():
    assert FIVE.above(4.0) == 0.5
    chances = [FIVE.above(mark) for mark in (-20.0, 0.0, 4.0, 8.0, 30.0)]
    assert (np.diff(chances) < 0).all()
    low, high = FIVE.interval(0.9)
    assert FIVE.above(low) == pytest.approx(0.95)
    assert FIVE.above(high) == pytest.approx(0.05)
    assert 0.5 < FIVE.above(0.0, stderr=20.0) < FIVE.above(0.0)  # a baseline that is not known for certain
    sure = ValueEstimate(np.full((3, 2), 7.0))
    assert (sure.above(6.9), sure.above(7.0), sure.above(7.1)) == (1.0, 0.0, 0.0)


def test_a_single_world_is_as_doubtful_as_one_episode():
    alone = ValueEstimate(np.array([[1.0, 3.0, 5.0]]))
    assert (alone.median, alone.epistemic) == (3.0, 0.0)
    assert alone.deviation == pytest.approx(np.sqrt(2) * 2.0)


def test_start_variance_is_that_of_the_starts():
    """Value of a start ~ N(0, 2^2), chance N(0, 1): over 7 logged starts the value is off by a variance of 4/7."""
    rng = np.random.default_rng(1)
    found, missed = [], []
    for _ in range(400):
        each = rng.normal(0.0, 2.0, 7)
        first = rng.integers(0, 7, (5, 16))
        found.append(start_variance(each[first] + rng.normal(size=first.shape), first, 7))
        missed.append(each.mean() ** 2)
    assert np.mean(found) == pytest.approx(4 / 7, rel=0.08)
    assert np.mean(found) == pytest.approx(np.mean(missed), rel=0.2)


def test_start_variance_where_starts_do_not_matter_or_were_not_used_twice():
    rng = np.random.default_rng(2)
    first = rng.integers(0, 7, (5, 160))
    assert start_variance(rng.normal(size=first.shape), first, 7) < 0.02 / 7
    returns = rng.normal(size=(5, 16))
    assert start_variance(returns, np.arange(80).reshape(5, 16), 1000) == pytest.approx(returns.var() / 1000)
    assert start_variance(returns, np.zeros((5, 16), int), 1) == pytest.approx(returns.var())  # only one start


# ---- rollouts in a world without chance: the state counts up, and pays its own number


def counting(theta, obs, action):
    mean = jnp.concatenate([jnp.ones_like(obs), theta * obs], -1)
    return Moments(mean, jnp.zeros_like(mean), jnp.zeros(mean.shape[:-1]))


def act_zero(params, memory, seen, key):
    return jnp.zeros((*seen.obs.shape[:-1], 1)), memory


IDLE = Policy((), (), act_zero)
COUNTING = by_hand.worlds(
    counting,
    jnp.array([1.0, 2.0]),
    [[0.0], [3.0]],
    [0.0, 0.0],
    [5.0, 8.0],
    Task(7, 0.5, Box((-1.0,), (1.0,)), done=lambda obs, action, after: after[..., 0] >= 5),
    terminates=True,
)


def test_returns_values_and_lengths_of_episodes_that_end():
    found = jax.tree.map(np.asarray, run(jax.random.key(0), IDLE, COUNTING, copies=13)[0])
    far = found.first == 1  # 3, 4, and over; the others 0, 1, 2, 3, 4
    assert 0 < far.mean() < 1
    theta = np.array([[1.0], [2.0]])
    np.testing.assert_array_equal(found.lengths, np.where(far, 2, 5))
    np.testing.assert_array_equal(found.returns, theta * np.where(far, 7, 10))
    np.testing.assert_allclose(found.values, theta * np.where(far, 3 + 4 / 2, 0 + 1 / 2 + 2 / 4 + 3 / 8 + 4 / 16))
    assert not found.clipped.any()
    assert not found.guarded.any()


def test_an_episode_ends_at_the_horizon():
    endless = by_hand.changed(COUNTING, task=COUNTING.task._replace(done=None, horizon=3))
    found = jax.tree.map(np.asarray, run(jax.random.key(0), IDLE, endless, copies=5)[0])
    np.testing.assert_array_equal(found.lengths, 3)
    np.testing.assert_array_equal(found.returns[0], np.where(found.first[0] == 1, 3 + 4 + 5, 0 + 1 + 2))


def test_rewards_are_held_to_the_log_and_that_is_counted():
    capped = by_hand.changed(COUNTING, high=[5.0, 3.0])
    found = jax.tree.map(np.asarray, run(jax.random.key(0), IDLE, capped, copies=13)[0])
    far = found.first[0] == 1
    np.testing.assert_allclose(found.clipped[0], np.where(far, 1 / 2, 1 / 5))  # only 4 is too much
    np.testing.assert_array_equal(found.returns[0], np.where(far, 3 + 3, 0 + 1 + 2 + 3 + 3))
    far = found.first[1] == 1
    np.testing.assert_allclose(found.clipped[1], np.where(far, 2 / 2, 3 / 5))  # 4, 6 and 8


# The log ends at 2 and leaves room for one more: from 0, three steps are free, and the rest are not.
WALLED = by_hand.worlds(
    counting,
    jnp.array([1.0]),
    [[0.0]],
    [0.0, -4.0],
    [2.0, 8.0],
    COUNTING.task._replace(done=None),
    margin=0.5,
    terminates=True,
)
PAYS = Paid(-4.0, 8.0, -4.0, 8.0)
BARE = Known(starts=1, logged=0.0, paid=PAYS, loss=None, past=Past(check((), None)))


@pytest.mark.parametrize("terminates", [True, False])
def test_what_leaves_the_log_is_held_back_and_that_is_counted(terminates):
    walled = by_hand.changed(WALLED, terminates=terminates)
    found, (obs, _, alive) = run(jax.random.key(0), IDLE, walled, copies=3, path=True)
    steps = 4 if terminates else 7
    np.testing.assert_array_equal(found.lengths, steps)
    np.testing.assert_allclose(found.guarded, 1.0 if terminates else 4 / 7)  # of episodes, or of steps
    np.testing.assert_array_equal(found.returns, 0 + 1 + 2 - 4 * (steps - 3))  # the least that was ever logged
    np.testing.assert_array_equal(obs[:, 0, 0, 0], [0, 1, 2, 3, 3, 3, 3])
    np.testing.assert_array_equal(alive[:, 0, 0], [1] * steps + [0] * (7 - steps))
    np.testing.assert_array_equal(found.steps_left, 3 if terminates else 4)  # cut off, or taken beyond the log
    np.testing.assert_allclose(found.worth_left, 1 / 16 + 1 / 32 + 1 / 64 + (0 if terminates else 1 / 8))
    np.testing.assert_array_equal(found.paid_left, 0 if terminates else -4 * 4)
    np.testing.assert_allclose(found.valued_left, 0 if terminates else -4 * (1 / 8 + 1 / 16 + 1 / 32 + 1 / 64))


def test_a_step_beyond_the_log_may_have_earned_anything_that_was_ever_logged():
    """Where episodes do not end it is imagined at the least; the interval says that it may be the most."""
    endless = by_hand.changed(WALLED, terminates=False)
    found = jax.tree.map(np.asarray, run(jax.random.key(0), IDLE, endless, copies=3)[0])
    _, returns = estimates(found, None, endless, BARE)
    assert returns.median == 0 + 1 + 2 - 4 * 4
    assert (returns.less, returns.more) == (0.0, 4 * (8.0 + 4.0))
    assert returns.interval(0.9)[1] >= 0 + 1 + 2 + 4 * 8
    inside = by_hand.changed(endless, high=[20.0, 8.0])
    found = jax.tree.map(np.asarray, run(jax.random.key(0), IDLE, inside, copies=3)[0])
    _, returns = estimates(found, None, inside, BARE)
    assert (returns.less, returns.more) == (0.0, 0.0)


def test_no_promise_is_above_what_rewards_can_add_up_to():
    """Worlds that pay a goal again and again promise more than any episode can earn; the median must not."""
    found = jax.tree.map(np.asarray, run(jax.random.key(0), IDLE, WALLED, copies=3)[0])
    most = BARE.paid.bounds(WALLED.task.horizon, WALLED.terminates)[1]
    value, returns = estimates(found._replace(returns=found.returns + 10 * most), None, WALLED, BARE)
    assert returns.median == most
    assert returns.interval(0.9)[1] == most
    assert value.median == estimates(found, None, WALLED, BARE)[0].median


def test_what_a_stopped_episode_might_have_gone_on_to_earn_is_inside_the_interval():
    found = jax.tree.map(np.asarray, run(jax.random.key(0), IDLE, WALLED, copies=3)[0])
    value, returns = estimates(found, None, WALLED, BARE)
    assert (returns.less, returns.more) == (-4.0 * 3, 8.0 * 3)
    assert value.more == pytest.approx(8 * (1 / 16 + 1 / 32 + 1 / 64))
    low, high = returns.interval(0.9)
    for each in (-4.0, 0.0, 8.0):  # whatever the log ever paid, at each of the three steps it had left
        assert low <= returns.median + 3 * each <= high
    bare = returns._replace(less=0.0, more=0.0)
    assert not bare.interval(0.9)[0] <= returns.median - 3 * 4 <= bare.interval(0.9)[1]
    np.testing.assert_allclose(np.subtract(returns.interval(0.9), bare.interval(0.9)), (-12.0, 24.0))
    assert returns.above(returns.median - 1) < 0.5 < bare.above(returns.median - 1)


def test_a_policy_is_shown_what_it_did_earned_and_when_it_started():
    def act(params, memory, seen, key):
        told = [memory[..., 0], seen.reward, seen.start, seen.action[..., 0]]
        noise = 0.0 if key is None else jax.random.normal(key, seen.reward.shape)
        return jnp.stack([*told, noise * jnp.ones_like(seen.reward)], -1), memory + 1

    teller = Policy((), jnp.array([10.0]), act)
    task = Task(4, 0.5, Box((-99.0,) * 5, (99.0,) * 5))
    posterior = by_hand.worlds(counting, COUNTING.theta, [[2.0]], np.full(2, -99.0), np.full(2, 99.0), task)
    _, (obs, action, alive) = run(jax.random.key(0), teller, posterior, copies=3, path=True)
    assert action.shape == (4, 2, 3, 5)
    assert alive.all()
    for world in range(2):
        pays = np.array([2.0, 3.0, 4.0, 5.0]) * (world + 1)
        np.testing.assert_array_equal(obs[:, world, 0, 0], [2, 3, 4, 5])
        expected = np.stack([[10, 11, 12, 13], [0, *pays[:3]], [1, 0, 0, 0], [0, 10, 11, 12], np.zeros(4)], -1)
        np.testing.assert_array_equal(action[:, world, 1], expected)
    _, (_, action, _) = run(jax.random.key(0), teller, posterior, copies=3, path=True, sampled=True)
    assert len(np.unique(action[..., -1])) == 4 * 2 * 3  # every step of every copy is drawn for itself


# ---- a linear-Gaussian world, in which all is known
#
# s' = w0 + a s + b u + N(0, sigma^2), u = -k s, reward -(q s^2 + r u^2); a = A + w1, b = B + w2, w ~ N(0, PRIOR^2)
#
# With c = a - b k the moments of s follow m' = w0 + c m and P' = w0^2 + 2 w0 c m + c^2 P + sigma^2, and the value
# is J = -(q + r k^2) sum_t discount^t P_t. Without w0, from m = 0 and P = 1, and for ever, that is the reference's
# -(q + r k^2) (1 + discount sigma^2 / (1 - discount)) / (1 - discount c^2).

A, B, K, Q, R, SIGMA, DISCOUNT, STEPS, PRIOR = 0.9, 0.5, 0.6, 1.0, 0.1, 0.3, 0.95, 20, 0.07
WIDE = 1e4


def closed(w: np.ndarray, first: float = 0.0, second: float = 1.0, steps: int = STEPS) -> np.ndarray:
    """The value in worlds w [..., 3] from starts of these moments."""
    w0, c = w[..., 0], A + w[..., 1] - (B + w[..., 2]) * K
    m, p, total = first + 0 * c, second + 0 * c, 0 * c
    for t in range(steps):
        total = total - DISCOUNT**t * (Q + R * K**2) * p
        m, p = w0 + c * m, w0**2 + 2 * w0 * c * m + c**2 * p + SIGMA**2
    return total


def simulated(rng: np.random.Generator, w: np.ndarray, copies: int) -> np.ndarray:
    """Values of single episodes [..., copies] from starts ~ N(0, 1)."""
    w = w.astype(np.float32)
    w0, c = w[..., :1], (A + w[..., 1] - (B + w[..., 2]) * K)[..., None]
    normal = lambda: rng.standard_normal((*w.shape[:-1], copies), np.float32)
    s, total = normal(), np.float32(0)
    for t in range(STEPS):
        total = total - DISCOUNT**t * (Q + R * K**2) * s**2
        s = w0 + c * s + np.float32(SIGMA) * normal()
    return total


def regulated(theta, obs, action):
    """The same for rollouts; theta is (w0, w1, w2)."""
    after = theta[0] + (A + theta[1]) * obs + (B + theta[2]) * action
    mean = jnp.concatenate([after - obs, -(Q * obs**2 + R * action**2)], -1)
    return Moments(mean, jnp.array([SIGMA, 0.0]) * jnp.ones_like(mean), jnp.zeros(mean.shape[:-1]))


REGULATOR = Policy((), (), lambda params, memory, seen, key: (-K * seen.obs, memory))
TASK = Task(STEPS, DISCOUNT, Box((-WIDE,), (WIDE,)))


def regulated_worlds(w, starts) -> Posterior:
    wide = np.full(2, WIDE)
    return by_hand.worlds(regulated, jnp.asarray(w, jnp.float32), starts, -wide, wide, TASK, noise=1.0)


@cache
def problems(count: int, rows: int, seed: int):
    """True worlds from the prior [count, 3], and mean and root of the exact posterior that a log of each gives.

    What is known of the world beforehand, A and B, is taken off the next state, so that the rest is `linear`'s.
    """
    rng = np.random.default_rng(seed)
    true = PRIOR * rng.standard_normal((count, 3))
    obs, action = rng.standard_normal((2, count, rows, 1))
    rest = true[:, None, :1] + true[:, None, 1:2] * obs + true[:, None, 2:] * action
    after = obs + rest + SIGMA * rng.standard_normal(obs.shape)
    steps = Transition(obs, action, obs[..., 0], after, action, 0 * obs[..., 0])
    data = Dataset(steps, obs, np.zeros((count, rows), int), np.full(count, rows))
    hypers, every = linear.Hypers(noise=SIGMA, prior_scale=PRIOR), jnp.arange(rows)
    exact = jax.jit(jax.vmap(lambda data: linear.exact(hypers, data, every, rows)))(data)
    covariance = np.asarray(exact.covariance, np.float64)[:, 0]
    return true, np.asarray(exact.mean)[..., 0], np.linalg.cholesky(covariance)


def drawn(rng, mean, root, members) -> np.ndarray:
    """Worlds of the posterior [count, members, 3]."""
    return mean[:, None] + np.einsum("rij,rmj->rmi", root, rng.standard_normal((len(mean), members, 3)))


def covered(estimates, truth, level=0.9) -> float:
    low, high = np.array([estimate.interval(level) for estimate in estimates]).T
    return float(np.mean((low <= truth) & (truth <= high)))


def test_the_closed_form_is_the_references_and_the_simulations():
    w = np.array([0.0, 0.05, -0.1])
    c = A + 0.05 - (B - 0.1) * K
    ever = -(Q + R * K**2) * (1 + DISCOUNT * SIGMA**2 / (1 - DISCOUNT)) / (1 - DISCOUNT * c**2)
    assert closed(w, steps=600) == pytest.approx(ever, rel=1e-9)
    w = np.array([0.2, 0.05, -0.1])
    episodes = simulated(np.random.default_rng(0), w, 40_000).astype(np.float64)
    assert closed(w) == pytest.approx(episodes.mean(), abs=4 * episodes.std() / 200)


def test_the_predictive_value_of_a_known_world_is_its_closed_form():
    w = np.array([[0.0, 0.0, 0.0], [0.2, 0.05, -0.1], [-0.1, -0.2, 0.1]])
    starts = np.random.default_rng(1).normal(0.3, 1.0, (37, 1))
    found = run(jax.random.key(1), REGULATOR, regulated_worlds(w, jnp.asarray(starts, jnp.float32)), copies=4001)[
        0
    ]
    values = np.asarray(found.values, np.float64)
    expected = closed(w, starts.mean(), np.mean(starts**2))  # in the log's own starts
    off = (values.mean(1) - expected) / (values.std(1) / np.sqrt(4001))
    assert np.abs(off).max() < 3, off
    assert np.ptp(expected) > 1  # worlds that are told apart


@pytest.mark.parametrize("members", [8, 20])
def test_nine_in_ten_intervals_hold_the_true_value(members):
    """Truth from the prior, a log of it, worlds from the exact posterior: 1,500 times over, an error of 0.008."""
    true, mean, root = problems(1500, 17, 2)
    rng = np.random.default_rng(members)
    worlds, truth = drawn(rng, mean, root, members), closed(true)
    estimates = [ValueEstimate(returns) for returns in simulated(rng, worlds, 256)]
    assert 0.87 <= covered(estimates, truth) <= 0.93
    bare = [ValueEstimate(values[:, None]) for values in closed(worlds)]
    low, high = np.array([estimate.range for estimate in bare]).T
    assert np.mean((low <= truth) & (truth <= high)) == pytest.approx((members - 1) / (members + 1), abs=0.03)


def test_intervals_from_rollouts_hold_if_the_few_starts_of_the_log_are_counted():
    """The same through the product, from 13 logged starts each: what those leave unknown is much of the doubt."""
    count, members, copies, starts = 600, 8, 64, 13
    true, mean, root = problems(count, 17, 3)
    rng = np.random.default_rng(4)
    worlds = drawn(rng, mean, root, members)
    begun = rng.standard_normal((count, starts, 1))
    each = lambda key, w, begun: rollouts(key, REGULATOR, regulated_worlds(w, begun), copies)[0]
    keys = jax.random.split(jax.random.key(5), count)
    found = jax.jit(jax.vmap(each))(keys, jnp.asarray(worlds, jnp.float32), jnp.asarray(begun, jnp.float32))
    found = jax.tree.map(np.asarray, found)
    unsure = [
        ValueEstimate(values, starts=start_variance(values, first, starts))
        for values, first in zip(found.values, found.first, strict=True)
    ]
    assert 0.87 <= covered(unsure, closed(true)) <= 0.93  # an error of 0.012
    assert covered([estimate._replace(starts=0.0) for estimate in unsure], closed(true)) < 0.85


def regulated_log(episodes: int = 12, seed: int = 6) -> Dataset:
    """Episodes of a random policy in the known world."""
    rng = np.random.default_rng(seed)
    obs, action, after = [], rng.standard_normal((episodes * STEPS, 1)), []
    for row in range(episodes * STEPS):
        at = rng.standard_normal(1) if row % STEPS == 0 else after[-1]
        obs.append(at)
        after.append(A * at + B * action[row] + SIGMA * rng.standard_normal(1))
    obs = np.array(obs, np.float32)
    reward = -(Q * obs[:, 0] ** 2 + R * action[:, 0] ** 2)
    episode = np.repeat(np.arange(episodes), STEPS)
    return log_of(obs, action, after, reward, episode=episode, starts=obs[::STEPS])


def test_predictive_counts_every_doubt():
    data, key = regulated_log(), jax.random.key(7)
    w = np.random.default_rng(8).normal(0, 0.05, (5, 3))
    held = regulated_worlds(w, jnp.asarray(np.tile(data.starts, (9, 1))))  # a table that repeats the log's twelve
    own = replace(held, theta=jnp.asarray(0.5 * w - np.array([0.0, 0.2, 0.0]), jnp.float32))
    plain = predictive(key, REGULATOR, held, data, copies=64)
    assert plain.length == STEPS
    assert plain.value.returns.shape == plain.returns.returns.shape == (5, 64)
    expected = closed(w, float(data.starts.mean()), float(np.mean(data.starts**2)))
    off = plain.value.worlds - expected
    assert np.abs(off).max() < 4 * plain.value.aleatoric / 8
    assert plain.returns.median < plain.value.median < 0  # undiscounted costs are larger
    begun = data.starts[:, 0].astype(np.float64)
    apart = np.var(closed(w[:, None] * np.ones((5, 12, 3)), begun, begun**2).mean(0), ddof=1) / 12
    assert plain.value.starts == pytest.approx(apart, rel=0.3)
    assert (plain.value.gap, plain.value.widen) == (0.0, 1.0)
    mean = behaviour(data, TASK).mean
    assert plain.returns.rare == pytest.approx(abs(plain.returns.median - mean) / 65)
    span = (1 - DISCOUNT**STEPS) / (1 - DISCOUNT)
    inside = paid(data, TASK)
    pays = np.add(inside[:2], inside.beyond[:2])
    last = np.add(inside[2:4], inside.beyond[2:])
    np.testing.assert_allclose(plain.value.bounds, pays * (span - 1) + last, rtol=1e-6)
    assert inside[2:4] == (data.steps.reward.min(), data.steps.reward.max())
    np.testing.assert_allclose(plain.returns.bounds, pays * STEPS, rtol=1e-6)

    one = np.ones(2)
    loss = PIL(8 * one, 2 * one, one, one, one, one, members=5)  # E = 8, V = 2: a spread too small by 2
    wider = predictive(key, REGULATOR, held, data, own=own, copies=64, loss=loss)
    np.testing.assert_array_equal(wider.returns.returns, plain.returns.returns)
    better = closed(np.asarray(own.theta, np.float64), float(data.starts.mean()), float(np.mean(data.starts**2)))
    assert wider.value.gap == pytest.approx(np.median(better) - np.median(expected), abs=0.4)
    assert wider.value.gap > 0.3
    score = wider.value.gap / np.sqrt(wider.value.spread + ValueEstimate(better[:, None]).spread)
    assert wider.value.widen == pytest.approx(np.sqrt((BLOCKS * 4 + FOLDS * score**2) / (BLOCKS + FOLDS)), rel=0.1)
    assert np.ptp(wider.value.interval()) > np.ptp(plain.value.interval())


# ---- checks of predictions, and what an episode can earn


def test_exact_checks_widen_nothing_and_doubled_ones_by_two():
    z = stats.norm.ppf((np.arange(2_000) + 0.5) / 2_000)  # as a prediction that knows its doubt is off
    right, double = check(z, None), check(2 * z, None)
    assert right.factor == pytest.approx(1.0, abs=1e-3)
    assert (right.blocks, right.inside) == (2_000, 1_800)
    assert double.factor == pytest.approx(2.0, rel=0.01)
    assert double.inside == pytest.approx(2_000 * (2 * stats.norm.cdf(stats.norm.ppf(0.95) / 2) - 1), abs=1)
    assert double.factor < double.high < 2.1  # many blocks leave little doubt of it
    assert check(0.5 * z, None).factor == pytest.approx(0.5, rel=0.01)  # they differ by more than they are off
    assert check((), None).factor == 1.0  # what nobody checked is not narrowed


def test_single_steps_count_as_a_few_blocks_and_many_overrule_them():
    one = np.ones(2)
    says = lambda e, v: PIL(e * one, v * one, one, one, one, one, members=5)
    alone = check((), says(8.0, 2.0))
    assert (alone.blocks, alone.inside, alone.factor) == (0, 0, 2.0)  # the root of error over spread
    assert check((), None).factor == 1.0
    assert check((), says(1.0, 5.0)).factor == 1.0
    assert check((), says(1.0, 0.0)).factor == pytest.approx(np.sqrt(MOST))
    assert check((), says(1.0, 0.0)).held
    few, many = check(np.ones(4), says(8.0, 2.0)), check(np.ones(996), says(8.0, 2.0))
    assert few.factor == pytest.approx(np.sqrt((BLOCKS * 4 + 4) / (BLOCKS + 4)))
    assert many.factor == pytest.approx(np.sqrt((BLOCKS * 4 + 996) / (BLOCKS + 996)))
    assert few.factor > many.factor
    small = check(np.ones(4), says(1.0, 100.0))
    assert small.factor == pytest.approx(np.sqrt((BLOCKS * LEAST + 4) / (BLOCKS + 4)))
    assert check([1.0, np.nan, np.inf], None).blocks == 1
    assert not check(np.full(50, 9.0), None).held
    rng = np.random.default_rng(0)  # where steps and blocks agree, `high` is as high as it says nine times in ten
    tried = [check(2 * rng.standard_normal(12), says(8.0, 2.0)) for _ in range(300)]
    assert 0.88 < np.mean([found.high >= 2.0 for found in tried]) < 0.99


def test_what_two_folds_differ_by_on_a_policy_counts_for_that_policy():
    found = check(np.ones(8), None)
    assert found.including(1.0) == pytest.approx(1.0)
    assert found.including(0.0) < 1.0 < found.including(2.0) < found.including(5.0)
    assert found.including(3.0) == pytest.approx(np.sqrt((BLOCKS + 8 + FOLDS * 9) / (BLOCKS + 8 + FOLDS)))
    assert found.including(np.nan) == found.factor
    assert check((), None).including(0.0) == 1.0


def goals(reached: int = 6, missed: int = 6, length: int = 5) -> Dataset:
    """Steps cost a tenth; reaching the goal pays ten and ends the episode, and some episodes never do."""
    lengths = [3] * reached + [length] * missed
    episode = np.repeat(np.arange(len(lengths)), lengths)
    last = np.cumsum(lengths) - 1
    reward, done = np.full(len(episode), -0.1), np.zeros(len(episode))
    reward[last[:reached]], done[last[:reached]] = 10.0, 1.0
    obs = np.arange(len(episode))[:, None] % 7
    return log_of(obs, obs, obs + 1, reward, done, episode)


def test_no_promise_is_above_what_an_episode_can_earn():
    """A goal that pays once and ends the episode is not paid at every step of it."""
    task = Task(5, 1.0, Box((-1.0,), (1.0,)))
    found = paid(goals(), task)
    np.testing.assert_allclose(found[:4], (-0.1, -0.1, -0.1, 10.0), rtol=1e-6)
    np.testing.assert_allclose(found.bounds(5, terminates=True), (-0.5, 10.0), rtol=1e-6)
    np.testing.assert_allclose(found.bounds(5, terminates=False), (-0.5, 9.6), rtol=1e-6)
    wild = jnp.full((2, 3), 47.0)  # as five steps that each reach the goal would come to
    rolled = Rollouts(wild, wild, wild * 0 + 5, jnp.zeros((2, 3), int), *(wild * 0,) * 6)
    worlds = by_hand.worlds(counting, jnp.ones(2), [[0.0]], [0, -0.1], [7, 10.0], task, terminates=True)
    _, returns = estimates(rolled, None, worlds, known_of(goals(), task))
    assert returns.bounds[1] == pytest.approx(10.0)
    assert returns.interval(0.9)[0] <= 10.0
    modest = returns._replace(returns=np.array([[9.0], [11.0]]))
    assert modest.interval(0.9)[1] == pytest.approx(10.0)


def test_what_the_last_step_of_an_episode_pays_is_told_from_the_rest():
    """At the horizon too: what is paid only as time runs out is paid once."""
    lengths = [4] * 6
    data = episodes_of(lengths, [0] * 6)
    reward = np.where(np.arange(24) % 4 == 3, 50.0, 1.0).astype(np.float32)
    data = data._replace(steps=data.steps._replace(reward=reward))
    found = paid(data, Task(4, 1.0, Box((-1.0,), (1.0,))))
    assert found == Paid(1.0, 1.0, 1.0, 50.0)
    assert found.bounds(4, terminates=False) == (4.0, 53.0)
    bag = paid(data._replace(episode=np.full(24, -1)), Task(4, 1.0, Box((-1.0,), (1.0,))))
    assert bag.bounds(4, terminates=False) == (4.0, 200.0)  # nobody knows where an episode ended


def test_where_rewards_end_that_are_paid_by_degrees_is_not_where_the_log_ends():
    """Of 200 even numbers up to some end the largest lies below it; the bound does not, and ties are the end."""
    task, rng = Task(4, 1.0, Box((-1.0,), (1.0,))), np.random.default_rng(0)
    held, far = [], []
    for _ in range(300):
        reward = rng.uniform(0.0, 1.0, 200).astype(np.float32)
        data = episodes_of([4] * 50, [0] * 50)
        low, high = paid(data._replace(steps=data.steps._replace(reward=reward)), task).bounds(4, False)
        held += [low <= 0.0, high >= 4.0]
        far += [-low, high - 4.0]
    assert np.mean(held) == pytest.approx(0.95, abs=0.04)
    assert np.median(far) < 0.5  # an eighth of what four steps can differ by
    capped = np.minimum(reward, 0.5)
    top = paid(data._replace(steps=data.steps._replace(reward=capped)), task).bounds(4, False)[1]
    assert top == pytest.approx(2.0)
    once = np.r_[np.full(199, -1.0), 100.0].astype(np.float32)  # a goal that was reached once is the end as well
    assert paid(data._replace(steps=data.steps._replace(reward=once)), task).bounds(4, True) == (-4.0, 100.0)
    bandit = paid(data._replace(steps=data.steps._replace(reward=reward)), task._replace(horizon=1))
    assert bandit.bounds(1, False)[1] > reward.max()  # where every step is a last one too


def test_every_doubt_is_a_term_and_their_squares_add_up():
    doubts = {"starts": 4.0, "gap": 30.0, "common": 0.5, "widen": 2.0, "rare": 1.5, "less": -1.0, "more": 3.0}
    found = FIVE._replace(**doubts)
    between = (1 + 1 / 5) * np.var([2, 4, 4, 6, 20], ddof=1)
    used = 30.0**2 - 2 * between
    expected = {"worlds": between, "checks": 3 * between, "starts": 4.0, "gap": 0.25 * used, "rare": 1.5**2}
    assert {name: found.terms[name] ** 2 for name in expected} == pytest.approx(expected)
    assert found.terms["unknown"] == 2.0
    assert found.deviation**2 == pytest.approx(sum(expected.values()))
    assert FIVE._replace(gap=-30.0, common=2.0).terms["gap"] == 0.0
    narrowed = FIVE._replace(widen=0.5)
    chance = FIVE.stderr**2  # which finitely many episodes leave, however right the worlds are
    assert (narrowed.terms["worlds"] ** 2, narrowed.terms["checks"]) == (
        pytest.approx(chance + 0.25 * (between - chance)),
        0.0,
    )
    assert narrowed.deviation == pytest.approx(narrowed.terms["worlds"])


def test_least_is_where_above_is_what_is_asked():
    for level in (0.6, 0.9, 0.99):
        for stderr in (0.0, 3.0):
            assert FIVE.above(FIVE.least(level, stderr), stderr) == pytest.approx(level)
    assert FIVE._replace(less=-2.0).least(0.9) == pytest.approx(FIVE.least(0.9) - 2.0)
    assert FIVE._replace(bounds=(1.0, 30.0)).least(0.99) == 1.0


# ---- optimism: the best of many policies, by the worlds that chose it and by others


@pytest.mark.parametrize("members", [1, 3])
def test_worlds_that_chose_a_policy_flatter_it_and_others_do_not(members):
    """4 states, 3 actions, 81 policies; 400 logs of 5 tries a state and action; worlds of the exact posterior."""
    states, actions, tries, discount = 4, 3, 5, 0.9
    rng = np.random.default_rng(9)
    policies = np.array(list(itertools.product(range(actions), repeat=states)))

    def draw(weight, count):
        """Transitions and rewards of `count` worlds: Dirichlet and Gaussian."""
        p = rng.standard_gamma(np.broadcast_to(weight, (count, *weight.shape)))
        return p / p.sum(-1, keepdims=True), rewards + 0.3 * rng.standard_normal((count, states, actions))

    def values(p, reward):
        """Of every policy in every world [81, M], a step."""
        here = np.arange(states)
        solved = np.linalg.solve(np.eye(states) - discount * p[:, here, policies], reward[:, here, policies, None])
        return (1 - discount) * solved[..., 0].mean(-1).T

    own, held = [], []
    for _ in range(400):
        true = rng.dirichlet(np.ones(states), (states, actions))
        rewards = 0.3 * rng.standard_normal((states, actions))
        posterior = 1 + rng.multinomial(tries, true)
        chosen_by, others, truth = (values(*draw(posterior, count)) for count in (members, members, 1))
        scores = [ValueEstimate(value[:, None]).median for value in chosen_by]
        best = int(np.argmax(scores))
        own.append(ValueEstimate(chosen_by[best][:, None]).mean - truth[best, 0])
        held.append(ValueEstimate(others[best][:, None]).mean - truth[best, 0])
    error = lambda off: np.std(off, ddof=1) / np.sqrt(len(off))
    assert np.mean(own) > 2 * error(own)
    assert abs(np.mean(held)) < 2 * error(held)
    assert np.mean(own) - np.mean(held) > 0.05


# ---- what the log knows


def walks(episodes: int, length: int, seed: int, shift: float = 0.0) -> Dataset:
    """Episodes that wander about."""
    rng = np.random.default_rng(seed)
    obs = np.zeros((episodes, length + 1, 2))
    for t in range(length):
        obs[:, t + 1] = 0.8 * obs[:, t] + rng.standard_normal((episodes, 2))
    obs = (obs + shift).astype(np.float32)
    flat = lambda a: a.reshape(-1, a.shape[-1])
    action = rng.uniform(-3, 5, (episodes * length, 1))
    return log_of(
        flat(obs[:, :-1]),
        action,
        flat(obs[:, 1:]),
        obs[:, :-1, 0].ravel(),
        episode=np.repeat(np.arange(episodes), length),
        starts=obs[:, 0],
    )


def test_outside_is_a_hundredth_of_what_is_like_the_log_and_all_of_what_is_far():
    data, like, far = walks(60, 30, 0), walks(60, 30, 1), walks(60, 30, 1, shift=15.0)
    went = lambda other: (other.steps.obs, other.steps.action, np.ones(len(other.episode), bool))
    shares = [outside(data, *went(walks(60, 30, seed))) for seed in (1, 2, 3)]
    assert 0.002 < np.mean(shares) < 0.03
    assert outside(data, *went(far)) > 0.99
    obs, action, _ = went(like)
    assert outside(data, obs, action + 50.0, np.ones(1800, bool)) > 0.99  # of actions as well
    both = np.concatenate([obs, far.steps.obs]), np.concatenate([action, far.steps.action])
    alive = np.arange(3600) < 1800
    assert outside(data, *both, alive) < 0.05  # after an episode's end nothing counts
    assert outside(data, *(a.reshape(2, 1800, -1) for a in both), alive.reshape(2, 1800)) < 0.05
    bag = data._replace(episode=np.full(1800, -1))
    assert outside(bag, *went(like)) < 0.05
    unused = data._replace(steps=jax.tree.map(lambda a: np.concatenate([a, 99 + 0 * a]), data.steps))
    assert outside(unused, *went(like)) == outside(data, *went(like))


def test_nearest_is_the_least_distance():
    rng = np.random.default_rng(0)
    points, rows = rng.normal(size=(11, 3)), rng.normal(size=(17, 3))
    expected = np.sqrt(((points[:, None] - rows) ** 2).sum(-1)).min(1)
    np.testing.assert_allclose(nearest(points, rows), expected, rtol=1e-3, atol=1e-3)
    assert nearest(rng.normal(size=(ROWS, 3)), rows).shape == (ROWS,)


# ---- what the log says of itself


def episodes_of(lengths, done, reward=1.0) -> Dataset:
    """Episodes of these lengths, whose steps pay `reward` times the episode's number from one on."""
    episode = np.repeat(np.arange(len(lengths)), lengths)
    ends = np.zeros(len(episode))
    ends[np.cumsum(lengths) - 1] = done
    obs = np.arange(len(episode))[:, None]
    return log_of(obs, obs, obs + 1, reward * (1 + episode), ends, episode)


def test_behaviour_is_the_mean_of_whole_episodes():
    task = TASK._replace(horizon=4)
    lengths, done = [4, 2, 4, 1, 4, 3, 3], [0, 1, 0, 1, 0, 1, 0]  # the last was cut short
    found = behaviour(episodes_of(lengths, done), task)
    totals = np.array([4 * 1, 2 * 2, 4 * 3, 1 * 4, 4 * 5, 3 * 6])
    assert (found.episodes, found.estimated) == (6, False)
    assert found.mean == pytest.approx(totals.mean())
    assert found.stderr == pytest.approx(totals.std(ddof=1) / np.sqrt(6))
    assert (found.best, found.worst) == (20.0, 4.0)
    many = behaviour(episodes_of([4] * 20, [0] * 20), task)
    assert (many.best, many.worst) == (4 * 19.5, 4 * 1.5)  # tenths: of twenty, two


def test_behaviour_of_episodes_cut_short_is_what_a_step_earns_times_the_horizon():
    task = TASK._replace(horizon=10)
    data = episodes_of([4, 3, 5, 2, 6, 3], [0] * 6)
    found = behaviour(data, task)
    assert (found.episodes, found.estimated) == (0, True)
    assert found.mean == pytest.approx(10 * data.steps.reward.mean())
    assert found.best == found.worst == found.mean
    assert found.stderr == pytest.approx(10 * np.std([1, 2, 3, 4, 5, 6], ddof=1) / np.sqrt(6))
    bag = behaviour(data._replace(episode=np.full(23, -1)), task)
    assert (bag.mean, bag.episodes, bag.estimated) == (found.mean, 0, True)


def test_behaviour_that_ends_by_itself_is_no_longer_than_that():
    """One step in ten ends an episode: of at most 20, (1 - 0.9^20) / 0.1 = 8.78 are expected."""
    task = TASK._replace(horizon=20)
    found = behaviour(episodes_of([5, 5, 10, 10, 10], [1, 1, 1, 1, 0])._replace(episode=np.full(40, -1)), task)
    data = episodes_of([5, 5, 10, 10, 10], [1, 1, 1, 1, 0])
    assert (found.estimated, behaviour(data, task).episodes) == (True, 4)
    assert behaviour(data, task).mean == pytest.approx(found.mean)  # four whole ones are too few
    assert found.mean == pytest.approx(data.steps.reward.mean() * (1 - 0.9**20) / 0.1)


def test_rows_out_of_use_are_not_behaviour():
    data = episodes_of([4] * 8, [0] * 8)
    few = behaviour(data._replace(size=np.asarray(24, np.int32)), TASK._replace(horizon=4))
    assert (few.episodes, few.best) == (6, 24.0)


def test_a_log_hangs_together_or_is_broken():
    data, rng = walks(10, 20, 4), np.random.default_rng(5)
    assert broken(data) == 0.0
    shuffled = data.steps._replace(next_obs=rng.permutation(data.steps.next_obs))
    assert broken(data._replace(steps=shuffled)) > 0.95
    one = data.steps.next_obs.copy()
    one[25] += 1.0  # inside an episode
    one[19] += 1.0  # at the end of one: nothing follows
    assert broken(data._replace(steps=data.steps._replace(next_obs=one))) == pytest.approx(1 / 190)
    bag = data._replace(steps=shuffled, episode=np.full(200, -1))
    assert broken(bag) == 0.0  # where nothing follows anything, nothing can be told
