"""DualDICE: its ratio against the true one, its value against the solved one, and its health."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import two_states as two

from offing.nets import mlp
from offing.types import BadInput, Policy
from offing.value._view import sample_of
from offing.value.estimators import dualdice as dice

KEY = jax.random.key(0)
SMALL = dice.Hypers(
    width=16,
    depth=1,
    batch_size=256,
    updates=6_000,
    lr=1e-3,
    zeta_lr=3e-3,
    steady=0.002,
    members=1,
    bootstrap=0.0,
    sampled=True,
)


def test_the_ratio_is_the_true_one_within_two_percent():
    data, tables = two.every_transition(), [two.SHY, two.BOLD]
    sample = sample_of(data, two.TASK)
    rows, scale = sample.rows, sample.scale
    pool = Policy(jnp.stack([jnp.asarray(t, jnp.float32) for t in tables]), (), two.Act())
    zetas, found, _ = dice.fit(KEY, SMALL, pool, sample, two.TASK.actions)
    at = jax.vmap(jax.vmap(lambda net: mlp(net, rows.x[::10])[..., 0]))(zetas).mean(1)  # [P, 4]
    true = np.stack([two.occupancy(t).ravel() * 4 for t in tables])  # the log holds each state-action alike
    np.testing.assert_allclose(at, true, rtol=0.02)
    np.testing.assert_allclose(found[1], 1.0, atol=0.02)  # mean of zeta
    assert float(found[2].max()) < 0.01  # hardly anything negative
    values = scale.earns(np.asarray(found[0])).mean(1) / (1 - two.DISCOUNT)
    room = 0.02 * np.ptp(two.REWARDS) / (1 - two.DISCOUNT)
    np.testing.assert_allclose(values, [two.solved(t)[2] for t in tables], atol=room)


def test_where_episodes_end_the_mean_of_zeta_is_the_time_still_going():
    """A quarter of steps end: the discounted time is 2.5 of 5 steps, so the mean is 0.5 and the value 2.5."""
    before = dice.fit._cache_size()
    found = dice.dualdice(KEY, [two.policy(two.SHY), two.policy(two.BOLD)], two.ending(), two.TASK, SMALL)
    assert dice.fit._cache_size() <= before + 1
    for judged in found:
        assert judged.health["mean_zeta"] == pytest.approx(0.5, abs=0.02)
        assert judged.estimate.median == pytest.approx(2.5, abs=0.1)
        assert judged.health["converged"] == 1.0
        assert not any("zeta" in note for note in judged.notes)


@pytest.mark.parametrize(("mean", "ends", "sick"), [(0.5, False, True), (0.5, True, False), (1.4, True, True)])
def test_a_mean_of_zeta_that_is_not_due_is_said(mean, ends, sick):
    health, notes = dice._health(SMALL, np.array([0.0, mean, 0.0, 2 * mean**2]), 0.1, 10.0, ends)
    assert (health["mean_zeta"], health["effective"], health["converged"]) == (mean, pytest.approx(0.5), 0.0)
    assert any("mean of zeta" in note for note in notes) == sick
    assert any("not settled" in note for note in notes)


def test_policies_that_remember_are_refused():
    remembers = Policy(jnp.zeros((2, 2)), jnp.zeros(3), two.Act())
    with pytest.raises(BadInput, match="DualDICE judges policies that act on the observation alone"):
        dice.dualdice(KEY, remembers, two.every_transition(), two.TASK, SMALL)


def test_the_papers_preset_is_fu_et_al():
    paper = dice.estimator.presets["paper"]
    assert (paper.updates, paper.lr, paper.zeta_lr, paper.decay, paper.steady) == (
        1_000_000,
        1e-4,
        1e-3,
        1e-5,
        1.0,
    )
