"""Columns that no action changes: found in the log or named, and then moved by what no action reaches."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing import load
from offing.data import split
from offing.posterior._exogenous import before, untouched
from offing.posterior._kinds import Kinds
from offing.posterior._masks import masks, readable
from offing.posterior.models import ensemble
from offing.posterior.models.ensemble import Hypers
from offing.posterior.walk import Place, fixed, memories

TINY = Hypers(width=24, depth=2, activation="silu", batch_size=64, updates=200, lr=1e-2, members=2, elites=2)


def shop(rows: int = 3_000, seed: int = 0, effect: float = 0.0):
    """A stock that is bought into at a price; the price wanders by itself unless `effect` lets buying move it."""
    rng = np.random.default_rng(seed)
    obs, after, action = [], [], []
    for _ in range(rows // 20):
        x = np.array([rng.uniform(0, 5), rng.normal(), 0.0])
        for t in range(20):
            a = np.clip(0.5 * np.tanh(x[1]) + rng.normal() * 0.4, -1, 1)  # what is done depends on the price
            price = 0.9 * x[1] + 0.3 * np.sin(2 * x[1]) + 0.3 * rng.normal() + effect * a
            new = np.array([0.8 * x[0] + a + 0.1 * x[1], price, (t + 1) / 20])
            obs.append(x), after.append(new), action.append([a])
            x = new
    obs, after = np.array(obs, np.float32), np.array(after, np.float32)
    reward = obs[:, 0] - np.array(action)[:, 0] * obs[:, 1]
    return load(
        {"obs": obs, "next_obs": after, "action": np.array(action), "reward": reward}
        | {"truncated": np.arange(len(obs)) % 20 == 19, "action_low": -1.0, "action_high": 1.0}
    )


def test_a_price_and_a_clock_are_found_and_a_stock_is_not():
    assert untouched(shop().data) == (1, 2)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_price_that_buying_moves_is_not_taken_for_one_that_nothing_moves(seed):
    assert 1 not in untouched(shop(seed=seed, effect=0.1).data)


def test_what_works_late_is_seen_too():
    """A dose that is felt three steps later, through something that no column shows."""
    rng = np.random.default_rng(0)
    obs, after, action = [], [], []
    for _ in range(150):
        x, waiting = rng.normal(), [0.0] * 3
        for _ in range(20):
            a = rng.uniform(-1, 1)
            new = 0.8 * x + 0.5 * waiting.pop(0) + 0.2 * rng.normal()
            waiting.append(a)
            obs.append([x, 0.0]), after.append([new, 0.0]), action.append([a])
            x = new
    obs, after = (np.array(each, np.float32) for each in (obs, after))
    obs[:, 1] = rng.normal(size=len(obs))
    after[:-1, 1] = obs[1:, 1]
    cut = np.arange(len(obs)) % 20 == 19
    after[cut, 1] = rng.normal(size=cut.sum())
    log = load(
        {"obs": obs, "next_obs": after, "action": np.array(action), "reward": np.zeros(len(obs)), "truncated": cut}
        | {"action_low": -1.0, "action_high": 1.0}
    )
    assert untouched(log.data) == (1,)
    past = before(np.asarray(log.data.steps.action), np.asarray(log.data.episode))
    np.testing.assert_allclose(past[0], 0.0)  # nothing was done yet
    np.testing.assert_allclose(past[3], [action[2][0], np.mean(action[:3]), np.mean(action[:3])], rtol=1e-5)
    np.testing.assert_allclose(past[20], 0.0)  # another episode


def test_what_is_named_is_taken_as_named_whatever_the_log_says():
    assert set(untouched(shop(effect=0.3).data, (1,))) >= {1}
    assert untouched(shop(rows=100).data, (2,)) == (2,)  # too few episodes to ask


def test_noise_is_not_mistaken_for_an_effect_too_often():
    seen = [c for seed in range(4) for c in untouched(shop(rows=1_200, seed=seed).data)]
    assert seen.count(1) >= 2
    assert seen.count(0) == 0


def test_masks_let_such_columns_read_each_other_and_nothing_else():
    kinds = Kinds(3, history="episode", logs=(1,), exogenous=(1, 2))
    inputs = 3 + 2 + (2 * 3 + 2 + 3) + 1  # state, two actions, the past, one column as it is
    seen = readable(kinds, inputs)
    assert seen.tolist() == [0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1]
    mask = masks(kinds, inputs, 16, 2)
    reach = np.abs(mask.net[2]) @ np.abs(mask.net[1]) @ np.abs(mask.net[0]) > 0  # [2D, X]
    for column, free in enumerate([False, True, True]):
        for row in (column, column + 3):  # its mean and its variance
            assert (reach[row] == (seen if free else np.ones(inputs, bool))).all()


@pytest.fixture(scope="module")
def worlds():
    log = shop(rows=1_200)
    prepared = ensemble.model.prepare(log.data, log.task._replace(exogenous=(1,)))
    parts, _ = split(log.data, 0, 2)
    hypers = replace(TINY, prior_scale=1.0)
    train = jax.jit(ensemble.model.fit, static_argnums=5)
    fitted = train(jax.random.key(0), hypers, log.data, parts, prepared.arrays, prepared.shape)
    return ensemble.model.posterior(fitted, hypers, prepared, log.data, log.task)


def test_no_action_moves_such_a_column_in_any_world(worlds):
    """Not by nets, nor by their priors, nor by the least-squares map; and the stock it does move."""
    rng = np.random.default_rng(0)
    obs = np.tile(rng.normal(size=(1, 50, 3)).astype(np.float32), (worlds.members, 1, 1))

    def step(action: float, stock: float) -> np.ndarray:
        place = Place(jnp.asarray(obs) + np.array([stock, 0, 0]), memories(worlds, 50))
        drawn = fixed(worlds)(jax.random.key(1), place, np.full((worlds.members, 50, 1), action, np.float32))[1]
        return np.asarray(drawn.next_obs)

    plain, pushed, stocked = step(0.0, 0.0), step(1.0, 0.0), step(0.0, 0.5)
    np.testing.assert_allclose(plain[..., 1], pushed[..., 1], atol=1e-6)
    np.testing.assert_allclose(plain[..., 1], stocked[..., 1], atol=1e-6)
    assert np.abs(plain[..., 0] - pushed[..., 0]).mean() > 0.5


def test_a_level_that_chance_carries_over_the_edge_has_not_left_the_log(worlds):
    """It is held there; what a world itself expects beyond the edge has."""
    theta = worlds.theta
    wild = replace(
        worlds,
        theta=theta._replace(
            chance=theta.chance._replace(z=jnp.full_like(theta.chance.z, 100.0)), support=theta.support
        ),
    )
    obs = jnp.zeros((worlds.members, 8, 3)) + np.array([2.0, 0.0, 0.5])
    step = lambda w, o: fixed(w)(jax.random.key(2), Place(o, memories(w, 8)), jnp.zeros((w.members, 8, 1)))[1]
    drawn = step(wild, obs)
    assert not np.asarray(drawn.out_of_support).any()
    assert (np.asarray(drawn.next_obs)[..., 0] <= float(worlds.high[0] * 1.2)).all()
    far = step(worlds, obs.at[..., 0].set(60.0))
    assert np.asarray(far.out_of_support).all()
