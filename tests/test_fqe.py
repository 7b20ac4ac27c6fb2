"""Fitted Q-evaluation against solved values; when it stops; pools and single policies; what it refuses."""

from dataclasses import dataclass, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import two_states as two

from offing import nets
from offing.types import BadInput, Box, Dataset, Policy, Task, Transition
from offing.value import _critic
from offing.value._view import alone, view
from offing.value.estimators.fqe import Hypers, estimator, fqe
from offing.value.pool import memoryless

KEY = jax.random.key(0)
SMALL = Hypers(
    width=16, depth=1, batch_size=128, updates=4_000, lr=1e-3, track=0.02, members=3, bootstrap=0.0, sampled=True
)


@dataclass(frozen=True)
class Steady:
    """Always the same continuous action."""

    def __call__(self, params, memory, seen, key):
        return jnp.broadcast_to(params, (*seen.obs.shape[:-1], 1)), memory


@dataclass(frozen=True)
class Counts:
    """Remembers how many steps there were."""

    def __call__(self, params, memory, seen, key):
        return jnp.broadcast_to(params, (*seen.obs.shape[:-1], 2)), memory + 1


@cache
def pool():
    policies = [two.policy(two.SHY), two.policy(two.BOLD), two.policy(0.98 * two.EYE[[0, 0]] + 0.01)]
    before = _critic.fit._cache_size()
    judged = fqe(KEY, policies, two.every_transition(), two.TASK, SMALL)
    return policies, judged, _critic.fit._cache_size() - before


def test_values_are_those_of_the_solved_problem_and_a_pool_is_one_program():
    policies, judged, programs = pool()
    assert programs == 1
    truths = [two.solved(np.asarray(p.params))[2] for p in policies]
    room = 0.02 * np.ptp(two.REWARDS) / (1 - two.DISCOUNT)  # of what values can differ by
    np.testing.assert_allclose([j.estimate.median for j in judged], truths, atol=room)
    assert all(j.health["converged"] == 1.0 and j.health["bellman"] < 1 for j in judged)
    assert "without end" in judged[0].notes[0]
    assert judged[0].returns is None


def test_values_are_the_same_where_critics_learn_in_bfloat16(monkeypatch):
    policies, exact, _ = pool()
    monkeypatch.setattr(nets, "HALF", {jax.default_backend(): True})
    _critic.fit.clear_cache()  # what is faster is asked when a program is made
    try:
        near = fqe(KEY, policies[:2], two.every_transition(), two.TASK, SMALL)
    finally:
        _critic.fit.clear_cache()
    room = 0.02 * np.ptp(two.REWARDS) / (1 - two.DISCOUNT)
    for a, b in zip(near, exact[:2], strict=True):
        assert 0 < abs(a.estimate.median - b.estimate.median) < room


def test_one_alone_is_judged_as_in_a_pool():
    policies, judged, _ = pool()
    alone = fqe(KEY, policies[1], two.every_transition(), two.TASK, SMALL)
    assert alone.health["rounds"] == judged[1].health["rounds"]
    np.testing.assert_allclose(alone.estimate.returns, judged[1].estimate.returns, rtol=0.01)


def test_a_value_that_has_not_settled_is_said():
    slow = replace(SMALL, track=1e-4)  # a float: the same program
    before = _critic.fit._cache_size()
    judged = fqe(KEY, two.policy(two.BOLD), two.every_transition(), two.TASK, slow)
    assert _critic.fit._cache_size() <= before + 1
    assert (judged.health["converged"], judged.health["rounds"]) == (0.0, 40.0)
    assert "not settled" in judged.notes[-1]


def test_a_short_episode_is_not_paid_as_an_endless_one():
    """Every step earns 1 and a quarter end: 1 / (1 - 0.8 * 0.75) = 2.5, where the least reward for ever is 5."""
    judged = fqe(KEY, two.policy(two.BOLD), two.ending(), two.TASK, SMALL)
    assert judged.estimate.median == pytest.approx(2.5, rel=0.05)
    assert judged.estimate.bounds == (0.0, pytest.approx(5.0))


def test_continuous_actions_in_the_logs_own_units():
    """One state, reward -(a - 3)^2 over actions from 0 to 10: a policy's value is its reward over 1 - discount."""
    rng = np.random.default_rng(0)
    action = rng.uniform(0, 10, (2_000, 1)).astype(np.float32)
    one = np.ones((2_000, 1), np.float32)
    steps = Transition(one, action, -np.square(action[:, 0] - 3), one, action, np.zeros(2_000, np.float32))
    data = Dataset(steps, one[:2], np.arange(2_000) // 10, np.asarray(2_000, np.int32))
    task = Task(100, 0.5, Box((0.0,), (10.0,)))
    policies = [Policy(jnp.asarray([a]), (), Steady()) for a in (3.0, 6.0, 9.0)]
    hypers = replace(SMALL, lr=3e-3, updates=2_000, track=0.05, bootstrap=1.0, sampled=False)
    judged = fqe(KEY, policies, data, task, hypers)
    np.testing.assert_allclose([j.estimate.median for j in judged], [0.0, -18.0, -72.0], atol=5.0)  # of 98
    assert all(np.ptp(j.estimate.worlds) > 0 for j in judged)


def test_what_is_left_to_go_is_that_of_the_slowest_error():
    """A curve 1 - exp(-k n) has exp(-k n) left, read off its drift alone."""
    hypers = replace(SMALL, updates=4_000)
    rate = SMALL.track * (1 - two.DISCOUNT) * hypers.per_round
    curve = 1 - np.exp(-rate * np.arange(1.0, 41))
    left = _critic.remaining(jnp.asarray(curve)[:, None, None], jnp.asarray(19), hypers, jnp.asarray(two.DISCOUNT))
    assert float(left[0]) == pytest.approx(1 - curve[16:20].mean(), rel=0.02)


def test_terminal_rewards_are_not_shifted():
    rows, scale = view(two.ending(), two.TASK)
    assert (scale.reward_mean, scale.low, float(rows.mask.min())) == (0.0, 0.0, 0.0)
    rows, scale = view(two.every_transition(), two.TASK)
    assert scale.reward_mean == pytest.approx(0.5)
    np.testing.assert_allclose(
        scale.earns(np.asarray(rows.reward)), two.every_transition().steps.reward, atol=1e-6
    )


def test_policies_that_remember_are_refused_until_they_forget():
    counts = Policy(jnp.asarray([0.0, 1.0]), jnp.zeros(()), Counts())
    with pytest.raises(BadInput, match="remembers"):
        fqe(KEY, counts, two.every_transition(), two.TASK, SMALL)
    forgets = memoryless(counts)
    assert forgets.memory == ()
    action, memory = forgets.act(forgets.params, (), alone(jnp.zeros((3, 2)), two.TASK.actions), None)
    assert (action.shape, memory) == ((3, 2), ())
    assert memoryless(forgets) is forgets


def test_what_cannot_be_judged_is_said():
    with pytest.raises(BadInput, match="pool is empty"):
        fqe(KEY, [], two.every_transition(), two.TASK, SMALL)
    with pytest.raises(BadInput, match="below 1"):
        fqe(KEY, two.policy(two.SHY), two.every_transition(), two.TASK._replace(discount=1.0), SMALL)


def test_the_papers_preset_is_fu_et_al():
    paper = estimator.presets["paper"]
    assert (paper.updates, paper.batch_size, paper.width, paper.depth) == (1_000_000, 256, 256, 2)
    assert (paper.lr, paper.decay, paper.track, paper.tolerance) == (3e-4, 1e-5, 0.005, 0.0)
