"""Importance sampling and doubly robust estimates: unbiased, exact where due, ragged, clipped, cloned."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import two_states as two
from scipy import stats

from offing.types import BadInput, Box, Dataset, Discrete, Policy, Task, Transition
from offing.value import estimators
from offing.value import importance as imp
from offing.value._behaviour import clone
from offing.value._follow import Way, add_up, episodes, follow, weigh
from offing.value._view import log_density, smooth

KEY = jax.random.key(0)
BARE = imp.Hypers(least=-50.0, most=50.0, normalise=False, sampled=True, replicates=50)
SMALL = {"width": 16, "depth": 1, "batch_size": 64, "updates": 800, "lr": 3e-3}
BASE = np.full((2, 2), 0.5)  # the behaviour
SHORT = two.TASK._replace(horizon=5)


def ragged() -> Dataset:
    """Three episodes in one state: two steps and an end, three steps and cut off, one step and an end."""
    done = np.array([0, 1, 0, 0, 0, 1], np.float32)
    one, action = np.ones((6, 1), np.float32), two.EYE[[0, 1, 0, 1, 0, 1]]
    steps = Transition(one, action, np.array([1.0, 2, 4, 8, 16, 32], np.float32), one, action, done)
    return Dataset(steps, one[:3], np.array([0, 0, 1, 1, 1, 2]), np.asarray(6, np.int32))


# ---- by hand


def test_episodes_that_ended_stay_and_those_cut_off_leave():
    log = episodes(ragged(), two.TASK, "is")
    np.testing.assert_array_equal(log.alive, [[1, 1, 1], [1, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(log.counted, [[1, 1, 1], [1, 1, 1], [1, 1, 1]])
    np.testing.assert_array_equal(log.row, [[0, 2, 5], [1, 3, 5], [1, 4, 5]])
    cut = ragged()
    cut = cut._replace(steps=cut.steps._replace(done=np.zeros(6, np.float32)))
    np.testing.assert_array_equal(episodes(cut, two.TASK, "is").counted, log.alive)
    assert episodes(ragged(), two.TASK._replace(horizon=2), "is").reward.shape == (2, 3)


def test_weights_by_hand():
    log = episodes(ragged(), two.TASK, "is")
    ratio = jnp.log(jnp.array([[2.0, 1.0, 0.5], [2.0, 3.0, 99.0], [99.0, 1.0, 99.0]]))
    logw, clipped = weigh(imp.Hypers(most=float(np.log(2.0))), ratio, log.alive)
    np.testing.assert_allclose(np.exp(logw), [[2, 1, 0.5], [4, 2, 0.5], [4, 2, 0.5]], rtol=1e-5)
    assert float(clipped) == pytest.approx(1 / 6)  # the 3, held to 2; rows beyond an end do not count


WEIGHTS = jnp.log(jnp.array([[2.0, 1.0, 1.0], [4.0, 2.0, 1.0], [4.0, 1.0, 1.0]]))


@pytest.mark.parametrize(
    ("hypers", "expected"),
    [
        (imp.Hypers(), (2 * 1 + 4 + 32) / 4 + 0.5 * (4 * 2 + 2 * 8) / 7 + 0.25 * 16 / 6),
        (imp.Hypers(normalise=False), (2 * 1 + 4 + 32) / 3 + 0.5 * (4 * 2 + 2 * 8) / 3 + 0.25 * 16 / 3),
        (
            imp.Hypers(alive_only=True),
            (2 * 1 + 4 + 32) / 4 + 0.5 * (4 * 2 + 2 * 8) / 6 * 2 / 3 + 0.25 * 16 / 1 / 3,
        ),
    ],
)
def test_sums_by_hand(hypers, expected):
    log = episodes(ragged(), two.TASK, "is")
    found, effective = add_up(hypers, WEIGHTS, log.reward, log, jnp.ones((1, 3)), jnp.asarray(0.5))
    assert float(found[0]) == pytest.approx(expected, rel=1e-5)
    assert float(effective[0]) == pytest.approx(16 / 6)
    twice, _ = add_up(hypers, WEIGHTS, log.reward, log, jnp.full((1, 3), 2.0), jnp.asarray(0.5))
    assert float(twice[0]) == pytest.approx(expected, rel=1e-5)


# ---- against the solved problem


def test_per_decision_weights_are_unbiased_and_the_spread_is_honest():
    data, logp = two.played(BASE, episodes=8_000, length=5, seed=0)
    judged = imp.importance(KEY, [two.policy(two.SHY), two.policy(two.BOLD)], data, SHORT, BARE, logp=logp)
    for table, found in zip((two.SHY, two.BOLD), judged, strict=True):
        for estimate, discount in ((found.estimate, two.DISCOUNT), (found.returns, 1.0)):
            error = np.std(estimate.worlds)
            assert abs(estimate.median - two.finite(table, 5, discount)) < 3 * error
            assert 0.005 < error < 0.1
        assert found.health["clipped"] == 0.0
        assert not any("cloned" in note for note in found.notes)


def test_clipping_and_smoothing_are_biased_and_said():
    data, logp = two.played(BASE, episodes=2_000, length=5, seed=1)
    hypers = replace(BARE, normalise=True, sampled=False, least=-6.0, most=0.0)
    found = imp.importance(KEY, two.policy(two.BOLD), data, SHORT, hypers, logp=logp)
    assert found.health["clipped"] == pytest.approx(0.5, abs=0.02)  # the half that the policy would do as well
    assert "deterministic" in found.notes[0]
    assert "an even draw 0.1 of the time" in found.notes[0]


def exact_log(table, q, v, seed, count=4_000, length=4):
    """A played log with a table's true or given Q and V along it, in units of value a step."""
    data, logp = two.played(BASE, count, length, seed)
    log = episodes(data, two.TASK, "dr")
    share = 1 - two.DISCOUNT
    at = lambda obs, values: jnp.asarray(obs) @ jnp.asarray(values, jnp.float32) * share
    said = jnp.sum(jnp.asarray(log.obs @ jnp.asarray(q, jnp.float32)) * log.action, -1) * share
    ratio = jnp.log(jnp.sum((log.obs @ jnp.asarray(table, jnp.float32)) * log.action, -1))
    way = Way(ratio[None], said[None, None], at(log.next_obs, v)[None, None], at(log.obs[0], v)[None, None])
    return log, way, jnp.asarray(logp)[log.row]


DR = imp.Doubly(least=-50.0, most=50.0, normalise=False, sampled=True, replicates=50, members=1)


def doubled(hypers, log, way, behaviour):
    found = imp._doubly(KEY, hypers, way, behaviour, log, log.reward, jnp.asarray(two.DISCOUNT))[0]
    return np.asarray(found[0, 0]) / (1 - two.DISCOUNT)


def test_dr_is_unbiased_with_exact_ratios_whatever_its_critic():
    """With a critic of nothing it is importance sampling; with a wrong one it still finds what four steps earn."""
    v, q, _ = two.solved(two.SHY)
    rng = np.random.default_rng(0)
    wrong = q + rng.normal(size=q.shape)
    v_wrong = (two.SHY * wrong).sum(1)
    for q_, v_ in ((0 * q, 0 * v), (wrong, v_wrong), (q, v)):
        found = doubled(DR, *exact_log(two.SHY, q_, v_, seed=3))
        chain = np.einsum("sa,sat->st", two.SHY, two.MOVES)
        tail = (
            two.DISCOUNT**4 * two.FIRST @ np.linalg.matrix_power(chain, 4) @ v_
        )  # the critic's word beyond the log
        assert abs(found[0] - two.finite(two.SHY, 4, two.DISCOUNT) - tail) < 3 * np.std(found[1:])


def line():
    """Episodes of three steps that always end, each earning 1: with actions that do not matter, all is certain."""
    done = np.tile([0, 0, 1], 20).astype(np.float32)
    obs = np.tile(np.eye(3, dtype=np.float32), (20, 1))
    after = np.roll(obs, -1, 0)
    action = two.EYE[np.random.default_rng(0).integers(0, 2, 60)]
    steps = Transition(obs, action, np.ones(60, np.float32), after, action, done)
    return Dataset(steps, obs[::3], np.repeat(np.arange(20), 3), np.asarray(60, np.int32))


def test_dr_is_exact_with_an_exact_critic_and_unmasked_it_is_not():
    """Whatever the ratios; the public code forgot the mask, and pays each end with what a new episode is worth."""
    log = episodes(line(), two.TASK, "dr")
    v = np.array([1 + 0.8 + 0.64, 1.8, 1.0]) * (1 - two.DISCOUNT)
    at = lambda obs: jnp.asarray(obs @ v, jnp.float32)
    ratio = jax.random.normal(KEY, log.reward.shape)
    way = Way(ratio[None], at(log.obs)[None, None], at(log.next_obs)[None, None], at(log.obs[0])[None, None])
    masked = doubled(DR, log, way, jnp.zeros(()))
    np.testing.assert_allclose(masked, 2.44, rtol=1e-5)
    unmasked = doubled(replace(DR, unmasked=True, normalise=True), log, way, jnp.zeros(()))
    assert unmasked[0] == pytest.approx(2.44 + 0.8**3 * 2.44, rel=1e-4)


def test_dr_from_end_to_end():
    data, _ = two.played(BASE, episodes=200, length=20, seed=5)
    hypers = imp.Doubly(**{**SMALL, "updates": 1_600}, track=0.05, members=2, sampled=True, replicates=20)
    found = imp.doubly_robust(KEY, two.policy(two.SHY, two.Silent()), data, two.TASK, hypers)
    assert found.estimate.median == pytest.approx(two.solved(two.SHY)[2], abs=0.5)
    assert found.returns is None
    assert any("cloned" in note for note in found.notes)
    assert any("guessed from 10 draws" in note for note in found.notes)
    assert found.health["effective"] > 1


# ---- behaviours and densities


def test_a_cloned_behaviour_knows_its_chances():
    data, logp = two.played(two.SHY, episodes=400, length=5, seed=2)
    cloned = clone(KEY, imp.Hypers(**SMALL), data, two.TASK)
    np.testing.assert_allclose(np.exp(cloned.logp), np.exp(logp), atol=0.08)
    assert cloned.nll == pytest.approx(-logp.mean(), abs=0.05)


def test_a_cloned_gaussian_is_a_density_in_the_logs_own_units():
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(2_000, 1)).astype(np.float32)
    action = (10 * np.tanh(0.5 * obs + 0.3 * rng.normal(size=obs.shape))).astype(np.float32)
    zeros = np.zeros(2_000, np.float32)
    data = Dataset(
        Transition(obs, action, zeros, obs, action, zeros), obs[:3], np.arange(2_000) // 10, np.int32(2_000)
    )
    cloned = clone(KEY, imp.Hypers(**SMALL), data, Task(10, 0.9, Box((-10.0,), (10.0,))))
    raw = np.arctanh(action[:, 0] / 10)
    true = stats.norm.logpdf(raw, 0.5 * obs[:, 0], 0.3) - np.log(10 * (1 - (action[:, 0] / 10) ** 2))
    assert np.mean(np.abs(np.asarray(cloned.logp) - true)) < 0.15


def test_a_smoothed_action_has_a_density_that_draws_follow():
    box = Box((0.0,), (4.0,))
    grid = jnp.linspace(0.0, 4.0, 4_001)[:, None]
    centre = jnp.full((4_001, 1), 3.9)
    density = np.exp(np.asarray(log_density(centre[None], grid, box, 0.1)))
    assert np.trapezoid(density, dx=0.001) == pytest.approx(1.0, abs=1e-3)
    drawn = smooth(KEY, centre, box, 0.1)
    assert float(drawn.max()) <= 4.0 + 1e-5
    assert float(drawn.mean()) == pytest.approx(np.trapezoid(density * np.asarray(grid[:, 0]), dx=0.001), abs=0.03)
    picked = jnp.asarray(two.EYE)[jnp.zeros(4_000, int)]
    assert float(smooth(KEY, picked, Discrete(2), 0.2)[:, 1].mean()) == pytest.approx(0.1, abs=0.02)
    chances = np.exp(log_density(picked[None, :2], jnp.asarray(two.EYE), Discrete(2), 0.2))
    np.testing.assert_allclose(chances, [0.9, 0.1], rtol=1e-5)


@dataclass(frozen=True)
class Repeats:
    """Does again what it saw itself do, once more than it remembers: at first the first action."""

    def __call__(self, params, memory, seen, key):
        memory = memory * (1 - seen.start) + 1
        turn = (memory % 2 == 0) & (seen.action[..., 0] > 0)  # even steps after the first action: the second
        return jax.nn.one_hot(turn.astype(int), 2) + 0 * params, memory


def test_memory_is_rolled_along_logged_episodes():
    """Logged actions 0 1 | 0 1 0 | 1; the policy does 0 1 | 0 1 0 | 0, so only the last is unlike it."""
    log = episodes(ragged(), two.TASK, "is")
    policy = Policy(jnp.zeros(2), jnp.zeros(()), Repeats())
    scale = None
    way = follow(KEY, imp.Hypers(), policy, log, scale, None, two.TASK.actions)  # type: ignore[arg-type]
    chances = np.where(log.alive, np.exp(way.logp), np.nan)
    np.testing.assert_allclose(
        chances, [[0.95, 0.95, 0.05], [0.95, 0.95, np.nan], [np.nan, 0.95, np.nan]], rtol=1e-5
    )


# ---- what is refused


def test_what_cannot_be_judged_is_said():
    policy = two.policy(two.SHY)
    with pytest.raises(BadInput, match="bag of transitions"):
        imp.importance(KEY, policy, two.every_transition(), two.TASK, BARE)
    data, logp = two.played(BASE, 3, 5, 0)
    with pytest.raises(BadInput, match=r"shape \(14,\)"):
        imp.importance(KEY, policy, data, two.TASK, BARE, logp=logp[1:])
    with pytest.raises(BadInput, match="logp, row 2"):
        imp.importance(KEY, policy, data, two.TASK, BARE, logp=np.where(np.arange(15) == 2, np.nan, logp))
    with pytest.raises(BadInput, match="below 1"):
        imp.doubly_robust(KEY, policy, data, two.TASK._replace(discount=1.0), DR, logp=logp)


def test_a_handful_of_episodes_is_said():
    data, logp = two.played(BASE, 6, 5, 0)
    found = imp.importance(KEY, two.policy(two.SHY), data, SHORT, BARE, logp=logp)
    assert any("do not trust" in note for note in found.notes)
    far = imp.importance(KEY, two.policy(two.SHY), data, two.TASK, BARE, logp=logp)
    assert any("longer than 5 steps" in note for note in far.notes)
    assert not any("longer than" in note for note in found.notes)


def test_the_papers_presets_are_fu_et_al():
    paper, double = (estimators.get(name).presets["paper"] for name in ("is", "dr"))
    assert (paper.least, paper.most, paper.normalise, paper.alive_only, paper.updates) == (
        -6,
        2,
        True,
        True,
        1_000_000,
    )
    assert (double.unmasked, double.draws, double.track) == (True, 10, 0.005)
