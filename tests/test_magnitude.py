"""Columns over orders of magnitude: found by a proper score, learned by their logarithm, drawn as they were."""

import jax
import numpy as np
import pytest

from offing import load
from offing.data import split
from offing.pil import evidence
from offing.posterior import _magnitude
from offing.posterior._magnitude import by_magnitude
from offing.posterior.models import ensemble
from offing.posterior.models.ensemble import Hypers
from offing.posterior.walk import Place, fixed, memories

ROWS, STEPS = 1_200, 12
TINY = Hypers(
    width=24, depth=1, activation="silu", batch_size=64, updates=400, lr=1e-2, members=2, elites=2, final_lr=0.01
)


def grown(noise: float = 0.1, rows: int = ROWS, additive: bool = False, seed: int = 0):
    """A population that is multiplied by what is done, from one to many thousands; or, a level that grows."""
    rng = np.random.default_rng(seed)
    obs, after, action, reward = [], [], [], []
    for _ in range(rows // STEPS):
        x = np.exp(rng.uniform(0, 8)) if not additive else rng.uniform(0, 100)
        for _ in range(STEPS):
            a = rng.uniform(-1, 1)
            if additive:
                new = max(x + 20 * a + 5 * rng.normal(), 0.0)
            else:
                new = x * np.exp(0.5 * a + noise * rng.normal())
            obs.append([x, rng.normal()]), after.append([new, 0.0]), action.append([a]), reward.append(new - x)
            x = new
    obs, after = np.array(obs), np.array(after)
    after[:-1, 1] = obs[1:, 1]
    cut = np.arange(rows) % STEPS == STEPS - 1
    return load(
        {"obs": obs, "next_obs": after, "action": np.array(action), "reward": np.array(reward), "truncated": cut}
        | {"action_low": -1.0, "action_high": 1.0}
    )


@pytest.fixture(scope="module")
def worlds():
    log = grown()
    prepared = ensemble.model.prepare(log.data, log.task)
    parts, _ = split(log.data, 0, 2)
    train = jax.jit(ensemble.model.fit, static_argnums=5)
    fitted = train(jax.random.key(0), TINY, log.data, parts, prepared.arrays, prepared.shape)
    posterior = ensemble.model.posterior(fitted, TINY, prepared, log.data, log.task)
    share = np.ones(3)
    return log, ensemble.model.calibrate(posterior, *[[log.data, log.data]] * 2, share)


def test_a_population_is_taken_by_its_logarithm_and_a_level_is_not():
    columns, unit = by_magnitude(grown().data)
    assert columns == (0,)
    assert 0.5 < unit[0] < 5
    assert unit[1] == 1
    assert by_magnitude(grown(additive=True).data)[0] == ()


def test_into_and_back_are_inverse_and_leave_other_columns_alone():
    unit = np.array([3.0, 1.0], np.float32)
    obs = np.array([[0.0, -2.0], [5.0, 7.0], [1e5, 0.0]], np.float32)
    q = _magnitude.into((0,), unit, obs)
    np.testing.assert_allclose(q[:, 0], np.log1p(obs[:, 0] / 3), rtol=1e-6)
    np.testing.assert_allclose(_magnitude.back((0,), unit, q), obs, rtol=1e-5)
    np.testing.assert_allclose(_magnitude.raw((0,), unit, q)[:, 0], obs[:, 0], rtol=1e-5)


def test_moments_are_those_of_a_log_normal():
    draws = 3.0 * np.expm1(2.0 + 0.4 * np.random.default_rng(0).normal(size=200_000))
    mean, std = _magnitude.moments((0,), np.array([3.0]), np.array([2.0]), np.array([0.4]))
    np.testing.assert_allclose(mean[0], draws.mean(), rtol=0.01)
    np.testing.assert_allclose(std[0], draws.std(), rtol=0.02)


def test_worlds_predict_small_and_large_values_alike(worlds):
    """Ten and ten thousand grow by the same share, with the same relative chance."""
    _, posterior = worlds
    for size in (30.0, 1_000.0):
        obs = np.tile(np.array([size, 0.0], np.float32), (posterior.members, 400, 1))
        place = Place(obs, memories(posterior, 400))
        drawn = fixed(posterior)(jax.random.key(1), place, np.full((posterior.members, 400, 1), 0.6))[1]
        growth = np.log(np.asarray(drawn.next_obs)[..., 0] / size)
        assert abs(growth.mean() - 0.3) < 0.1, size
        assert 0.05 < growth.std() < 0.25, size
    assert np.isfinite(np.asarray(drawn.reward)).all()


def test_information_is_measured_where_chance_is_alike_everywhere(worlds):
    """Chance is a share of what there is: in the log's own units the largest rows would be all of it."""
    log, posterior = worlds
    assert posterior.natural is not None
    inside, data = posterior.natural(posterior, log.data)
    np.testing.assert_allclose(np.asarray(data.steps.obs)[:, 1], np.asarray(log.data.steps.obs)[:, 1])
    left = evidence(posterior, log.data).plain[0]
    assert left == pytest.approx(evidence(inside, data).plain[0], rel=1e-6)
    change = np.diff(np.asarray(data.steps.obs)[:, 0])[np.arange(len(data.episode) - 1) % STEPS != STEPS - 1]
    assert left < 2 * 0.1**2 / change.var()


def test_worlds_that_read_logarithms_are_saved_and_loaded(worlds):
    log, posterior = worlds
    again = ensemble.model.load(ensemble.model.save(posterior), log.task)
    obs = np.tile(np.array([300.0, 0.0], np.float32), (posterior.members, 5, 1))
    step = lambda p: fixed(p)(jax.random.key(3), Place(obs, memories(p, 5)), np.zeros((p.members, 5, 1)))[1]
    np.testing.assert_allclose(step(again).next_obs, step(posterior).next_obs)
    assert again.natural is not None
