"""PIL against closed forms: exact conjugate posteriors, tabular worlds, and the paper's Theorem 1."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import imagined as by_hand
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma

from offing.pil import FEWEST, FLOOR, PIL, Evidence, evenly, evidence, explained, judge, pil, regret_bound
from offing.posterior.models import linear
from offing.types import Box, Dataset, Moments, Posterior, Task, Transition

S, A = 2, 2  # 1 + S + A = 5 features and S + 1 = 3 outputs: 15 weights
FEATURES, OUTPUTS = 1 + S + A, S + 1
NOISE = 0.5
TASK = Task(horizon=10, discount=0.9, actions=Box((-1.0,) * A, (1.0,) * A))
HYPERS = linear.Hypers(noise=NOISE, prior_scale=1.0, members=400)


def rows_of(obs, action, change, reward) -> Dataset:
    """A bag of transitions."""
    obs, action, change, reward = (np.asarray(a, np.float32) for a in (obs, action, change, reward))
    steps = Transition(obs, action, reward, obs + change, action, np.zeros(len(obs), np.float32))
    return Dataset(steps, obs[:1], np.full(len(obs), -1), np.asarray(len(obs), np.int32))


def drawn(rng, rows, weight, noise) -> Dataset:
    """Rows with standard normal inputs and y = weight' (1, obs, action) + noise."""
    x = rng.normal(size=(rows, S + A))
    y = np.c_[np.ones(rows), x] @ weight + noise * rng.normal(size=(rows, OUTPUTS))
    return rows_of(x[:, :S], x[:, S:], y[:, :-1], y[:, -1])


def said(posterior: Posterior, held: Dataset) -> Moments:
    ask = lambda theta: posterior.moments(theta, (), held.steps.obs, held.steps.action)
    return jax.vmap(ask)(posterior.theta)


def fit(key, hypers, data: Dataset) -> Posterior:
    """Exact draws of one fold, of all rows in use."""
    return by_hand.fitted(linear.model, key, hypers, data, TASK)


def exact(hypers, data: Dataset) -> linear.Weights:
    return linear.exact(hypers, data, jnp.arange(len(data.episode)), data.size)


def targets(held: Dataset) -> np.ndarray:
    steps = held.steps
    return np.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1).astype(np.float64)


def simple(error=1.0, spread=1.0, noise=1.0, outputs=1) -> PIL:
    column = lambda value: np.full(outputs, value)
    return PIL(*map(column, (error, spread, noise, error, 0.0, 1.0)), members=5)


def shown(posterior: Posterior, held: Dataset, chance: np.ndarray) -> PIL:
    """PIL on rows that show true means: all of the residual is error, in units of the chance that there is."""
    return judge(evidence(posterior, held), np.zeros(OUTPUTS))._replace(noise=chance)


# ---- the discounted occupancy, and Proposition 1


def test_the_arithmetico_geometric_mixture_is_the_discounted_occupancy():
    rng, discount, far = np.random.default_rng(0), 0.9, 600
    chain, first = rng.dirichlet(np.ones(3), size=3), np.array([0.7, 0.3, 0.0])
    at = [first]  # P_j
    for _ in range(far - 1):
        at.append(at[-1] @ chain)
    at, i = np.array(at), np.arange(far)
    uniform = np.cumsum(at, 0) / (i + 1)[:, None]  # mean of P_0 .. P_i
    mixture = ((1 - discount) ** 2 * discount**i * (i + 1)) @ uniform
    occupancy = (1 - discount) * np.linalg.solve(np.eye(3) - discount * chain.T, first)
    assert np.abs(mixture - occupancy).max() < 1e-12
    assert np.abs(at[-1] - occupancy).max() > 1e-3  # and not simply where the chain settles


@pytest.fixture(scope="module")
def known():
    """A small log, its exact posterior in 400 draws, and held-out rows that show the true means."""
    rng = np.random.default_rng(1)
    weight = rng.normal(size=(FEATURES, OUTPUTS))
    posterior = fit(jax.random.key(1), HYPERS, drawn(rng, 12, weight, NOISE))
    return weight, posterior, drawn(rng, 1500, weight, 0.0)


def test_error_and_spread_sum_to_the_divergence(known):
    """Proposition 1: E + V = E_theta KL(N(mu*, s^2) | N(mu_theta, s^2))."""
    _, posterior, held = known
    y = targets(held)
    found = shown(posterior, held, NOISE**2 / y.var(0))
    off = np.asarray(said(posterior, held).mean, np.float64) - y  # [M, N, D]
    exactly = np.mean(np.sum(off**2, -1)) / (2 * NOISE**2)
    members = posterior.members
    assert found.e + (members - 1) / members * found.v == pytest.approx(exactly, rel=1e-3)
    assert found.total == pytest.approx(exactly, rel=0.01)
    # the same by sampling outcomes from the truth and taking the log-ratio; standard error sqrt(2 KL / draws)
    e = np.random.default_rng(2).normal(size=off.shape)
    ratio = np.sum((NOISE * e - off) ** 2 - (NOISE * e) ** 2, -1) / (2 * NOISE**2)
    assert 3 * np.sqrt(2 * exactly / ratio.size) < 0.01 * exactly
    assert found.total == pytest.approx(ratio.mean(), rel=0.015)


def test_error_and_spread_are_the_exact_moments():
    """E = tr (M - W)' C (M - W) / 2 s^2 and V = outputs tr C S / 2 s^2, with C the inputs' second moment."""
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(FEATURES, OUTPUTS))
    data, held = drawn(rng, 800, weight, NOISE), drawn(rng, 2000, weight, 0.0)
    hypers = replace(HYPERS, members=1000)
    weights = exact(hypers, data)
    phi = np.asarray(linear.features(held.steps.obs, held.steps.action), np.float64)
    c = phi.T @ phi / len(phi)
    off = np.asarray(weights.mean, np.float64) - weight
    e = np.trace(off.T @ c @ off) / (2 * NOISE**2)
    v = sum(np.trace(c @ np.asarray(each)) for each in weights.covariance) / (2 * NOISE**2)
    posterior = fit(jax.random.key(3), hypers, data)
    found = shown(posterior, held, NOISE**2 / targets(held).var(0))
    # the worlds' spread is chi-square: relative standard error sqrt(2 / (weights * members)) = 1.2 %
    assert found.v == pytest.approx(v, rel=0.04)
    # their mean is off the exact one by V / members more, and by a cross term
    assert found.e == pytest.approx(e, abs=v / 1000 + 4 * np.sqrt(e * v / 1000 / 15))


@pytest.fixture(scope="module")
def rates():
    """E and V from exact moments, over 300 draws of truth and log at each of six sizes: {rows: (E, V) [R]}."""
    hypers, most = linear.Hypers(noise=NOISE, prior_scale=1.0), 3200

    @jax.jit
    def all_of(key, sizes):
        def one(key):
            k1, k2, k3 = jax.random.split(key, 3)
            weight = jax.random.normal(k1, (FEATURES, OUTPUTS))
            x = jax.random.normal(k2, (most, S + A))
            y = linear.features(x[:, :S], x[:, S:]) @ weight
            y = y + NOISE * jax.random.normal(k3, y.shape)
            obs, act = x[:, :S], x[:, S:]
            steps = Transition(obs, act, y[:, -1], obs + y[:, :-1], act, jnp.zeros(most))

            def at(size):
                weights = exact(hypers, Dataset(steps, obs[:1], jnp.full(most, -1), size))
                e = jnp.sum(jnp.square(weights.mean - weight))
                v = jnp.sum(jnp.trace(weights.covariance, axis1=1, axis2=2))
                return e / (2 * NOISE**2), v / (2 * NOISE**2)

            return jax.vmap(at)(sizes)

        return jax.lax.map(one, jax.random.split(key, 300), batch_size=20)

    sizes = np.array([100, 200, 400, 800, 1600, 3200])
    e, v = (np.asarray(a, np.float64) for a in all_of(jax.random.key(4), sizes))  # [R, 6]
    return sizes, e, v


def test_rows_times_pil_is_the_number_of_weights(rates):
    sizes, e, v = rates
    scaled = sizes * (e + v).mean(0)
    assert scaled[sizes >= 800] == pytest.approx(FEATURES * OUTPUTS, rel=0.05)


def test_pil_falls_as_one_over_rows(rates):
    sizes, e, v = rates
    slope = np.polyfit(np.log(sizes), np.log((e + v).mean(0)), 1)[0]
    assert -1.05 <= slope <= -0.95


def test_error_equals_spread_over_the_prior(rates):
    # N E is chi-square with 15 degrees: at 300 draws the ratio's standard error is 2 %
    _, e, v = rates
    ratio = e.mean(0) / v.mean(0)
    assert ((ratio > 0.9) & (ratio < 1.1)).all(), ratio


# ---- clearing error of noise


@pytest.mark.parametrize(("bend", "noise", "least"), [(0.42, 0.5, 0.75), (0.14, 0.5, 0.0), (0.42, 1.5, 0.0)])
def test_corrected_error_is_most_of_the_true_bias_and_never_more(bend, noise, least):
    """A linear posterior, a quadratic truth: what `explained` finds is 75 to 100 % of the true squared bias.

    Where the bias is a seventh of the noise variance, trees fitted to 1,300 rows find next to nothing of it: it is
    a lower bound there too, and no more than that. It holds in expectation only, so the upper end has twice the
    standard error of the repeats.
    """
    repeats, ratio, plain = 4, [], []
    hypers = linear.Hypers(noise=noise, prior_scale=10.0, members=50)
    for seed in range(repeats):
        rng = np.random.default_rng(
            [seed, round(100 * bend), round(10 * noise)]
        )  # 0.14 and 0.5 scaled are 0.42 and 1.5
        x = rng.normal(size=(4000, S + 1))
        truth = x @ np.ones((S + 1, OUTPUTS)) + bend * np.square(x[:, [0, 1, 2]])
        y = truth + noise * rng.normal(size=truth.shape)
        data, held = (rows_of(x[i, :S], x[i, S:], y[i, :-1], y[i, -1]) for i in np.split(np.arange(4000), 2))
        posterior = fit(jax.random.key(seed), hypers, data)
        found = evidence(posterior, held)
        true = np.mean((np.asarray(said(posterior, held).mean).mean(0) - truth[2000:]) ** 2, 0)
        ratio.append(np.sum(found.bias * y[2000:].var(0)) / true.sum())
        plain.append(np.sum(found.plain * y[2000:].var(0)) / true.sum())
    error = np.std(ratio, ddof=1) / np.sqrt(repeats)
    assert least <= np.mean(ratio) <= 1.0 + 2 * error, (np.mean(ratio), error)
    assert np.mean(plain) > 1.5  # which the plain squared error is far from


@pytest.mark.parametrize("noise", [0.5, 1.5])
def test_nothing_is_explained_where_the_model_is_right(noise):
    rng = np.random.default_rng(5)
    values = []
    for _ in range(5):
        x = rng.normal(size=(2000, 3))
        values.append(explained(x, noise * rng.normal(size=(2000, 2))))
    assert np.mean(values) < 0.01
    assert np.min(values) >= 0


def test_explained_sees_structure_and_does_not_see_noise():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(2000, 3))
    seen = explained(x, np.stack([x[:, 0], np.square(x[:, 1]) - 1, np.sin(x[:, 2])], 1))
    np.testing.assert_allclose(seen, [1.0, 2.0, 0.432], rtol=0.1)  # E x^2, Var x^2, (1 - exp(-2)) / 2


# ---- Theorem 1, on tabular worlds


STATES, ACTS, DISCOUNT = 3, 2, 0.9
POLICIES = np.array(list(product(range(ACTS), repeat=STATES)))  # [8, 3]


def values(chance_of, reward):
    """Value [..., 8] from state 0 of every deterministic policy, in worlds [..., S, A, S]."""
    at = np.arange(STATES)
    chain = chance_of[..., at, POLICIES, :]  # [..., 8, S, S]
    gain = reward[at, POLICIES]  # [8, S]
    solved = np.linalg.solve(np.eye(STATES) - DISCOUNT * chain, np.broadcast_to(gain, chain.shape[:-1])[..., None])
    return solved[..., 0, 0]


def occupancies(chance_of):
    """Normalised discounted occupancy [8, S] from state 0, of every deterministic policy."""
    chain = chance_of[np.arange(STATES), POLICIES]  # [8, S, S]
    first = np.broadcast_to(np.eye(STATES)[0], (len(POLICIES), STATES))[..., None]
    return (1 - DISCOUNT) * np.linalg.solve(np.eye(STATES) - DISCOUNT * np.swapaxes(chain, 1, 2), first)[..., 0]


def tabular(seed, each, draws=200):
    """A world from the prior and `each` rows per state and action: regret, sup PIL, and how near one policy comes.

    Regret and values are in shares of R_max. The last is the largest |J - J_believed| over half the bound at that
    policy's own PIL: the step of the proof that the theorem doubles, and the one with the least room.
    """
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(STATES), size=(STATES, ACTS))
    reward = rng.uniform(size=(STATES, ACTS))
    alpha = 1 + rng.multinomial(each, truth)
    gamma = rng.standard_gamma(np.broadcast_to(alpha, (draws, *alpha.shape)))
    believed = values(gamma / gamma.sum(-1, keepdims=True), reward).mean(0)
    true = values(truth, reward)
    regret = (true.max() - true[believed.argmax()]) * (1 - DISCOUNT) / (reward.max() - reward.min())
    # E log p_theta under a Dirichlet is digamma(a) - digamma(a0)
    loss = np.sum(truth * (np.log(truth) - digamma(alpha) + digamma(alpha.sum(-1, keepdims=True))), -1)
    at = loss[np.arange(STATES), POLICIES]  # [8, S]
    information = np.sum(occupancies(truth) * at, -1)  # [8]
    gap = np.abs(true - believed) * (1 - DISCOUNT) / (reward.max() - reward.min())
    near = max(2 * g / regret_bound(i, DISCOUNT).value for g, i in zip(gap, information, strict=True))
    return regret, information.max(), near


@pytest.fixture(scope="module")
def regrets():
    sizes = (5, 20, 100, 500, 2500)
    found = np.array([[tabular((n, seed), n) for seed in range(120)] for n in sizes])  # [5, 120, 3]
    return sizes, *np.moveaxis(found, -1, 0)


def test_the_information_loss_of_a_dirichlet_posterior_is_a_mean_divergence():
    rng = np.random.default_rng(7)
    truth, alpha = rng.dirichlet(np.ones(3)), np.array([3.0, 7.0, 2.0])
    draws = rng.dirichlet(alpha, size=200_000)
    closed = np.sum(truth * (np.log(truth) - digamma(alpha) + digamma(alpha.sum())))
    assert closed == pytest.approx(np.mean(np.sum(truth * np.log(truth / draws), -1)), rel=0.01)


def test_regret_never_exceeds_the_bound(regrets):
    _, regret, information, near = regrets
    assert regret.size >= 500
    assert (regret > 0).mean() > 0.02  # there is regret to bound
    bounds = [regret_bound(i, DISCOUNT) for i in information.ravel()]
    for form in ("theorem", "pinsker", "value"):
        assert np.sum(regret.ravel() > [getattr(b, form) for b in bounds]) == 0, form
    assert 0.2 < near.max() <= 1  # the value of every policy too, and not by an idle margin


def test_the_bound_falls_as_the_root_of_rows_and_comes_to_say_something(regrets):
    sizes, regret, information, _ = regrets
    bound = np.array([[regret_bound(i, DISCOUNT).pinsker for i in row] for row in information]).mean(1)
    assert (np.diff(bound) < 0).all()
    slope = np.polyfit(np.log(sizes[2:]), np.log(bound[2:]), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)
    assert regret[-1].mean() < regret[0].mean() * (sizes[0] / sizes[-1]) ** 0.5
    vacuous = np.array([[regret_bound(i, DISCOUNT).vacuous for i in row] for row in information]).mean(1)
    assert vacuous[0] == 1
    assert (vacuous[3:] == 0).all()


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.99, 0.998])
def test_where_the_bound_says_nothing(discount):
    rate = 1 - discount
    information = rate * np.concatenate([[0.0], np.geomspace(1e-6, 1e3, 400)])
    found = [regret_bound(i, discount) for i in information]
    for form in ("theorem", "pinsker", "value"):
        assert (np.diff([getattr(b, form) for b in found]) >= 0).all(), form
    assert found[0].value == 0
    assert all(b.value == min(b.theorem, b.pinsker) for b in found)
    assert all(b.vacuous == (b.value >= 1) for b in found)
    assert all(b.theorem <= 2 for b in found)
    # the theorem says something below log(4/3) (1 - discount), which is the reference's 0.288; Pinsker below 1/2
    assert np.log(4 / 3) == pytest.approx(0.288, abs=5e-4)
    for limit, form in ((np.log(4 / 3), "theorem"), (0.5, "pinsker")):
        assert getattr(regret_bound(limit * rate * 0.999, discount), form) < 1
        assert getattr(regret_bound(limit * rate * 1.001, discount), form) > 1
    assert not regret_bound(0.499 * rate, discount).vacuous
    assert regret_bound(0.501 * rate, discount).vacuous


def test_pinsker_is_tighter_by_the_root_of_two_when_little_is_lost():
    few = regret_bound(1e-7, 0.9)
    assert few.theorem / few.pinsker == pytest.approx(np.sqrt(2), rel=1e-4)
    assert few.value == few.pinsker
    many = regret_bound(0.3, 0.9)  # over 1 - discount: 3, beyond 1.59 where the two cross
    assert many.value == many.theorem < many.pinsker


def test_a_pil_carries_its_bound_and_survives_no_discounting():
    found = simple(error=2e-3, spread=2e-3)
    assert found.bound(0.9) == regret_bound(found.total, 0.9)
    assert regret_bound(1.0, 1.0).value == pytest.approx(2.0)


# ---- what a PIL says


def test_sums_over_outputs_in_units_of_twice_the_noise():
    found = simple()._replace(error=np.array([1.0, 2.0]), spread=np.array([3.0, 1.0]), noise=np.array([0.5, 2.0]))
    assert found.e == pytest.approx(1 / 1 + 2 / 4)
    assert found.v == pytest.approx(3 / 1 + 1 / 4)
    assert found.total == found.e + found.v
    assert found.imbalance == pytest.approx((1.5 - 3.25) / 4.75)


@pytest.mark.parametrize(
    ("error", "spread", "word"),
    [
        (1.0, 1.0, "calibrated"),
        (5.0, 3.0, "calibrated"),  # (5 - 3) / 8 is the threshold itself
        (5.01, 3.0, "over-confident"),
        (1.0, 0.0, "over-confident"),
        (3.0, 5.0, "calibrated"),
        (3.0, 5.01, "over-dispersed"),
        (0.0, 1.0, "over-dispersed"),
    ],
)
def test_calibration_has_two_sides(error, spread, word):
    found = simple(error, spread)
    assert found.word == word
    assert found.calibrated == (word == "calibrated")
    assert np.sign(found.imbalance) == np.sign(error - spread)


def test_a_perfect_posterior_divides_nothing_by_zero():
    found = simple(error=0.0, spread=0.0)
    assert (found.total, found.imbalance, found.word) == (0.0, 0.0, "calibrated")


@dataclass(frozen=True)
class Waves:
    """Worlds y = height * sin(rate * obs) in every output."""

    std: float = 0.1

    def __call__(self, theta, obs, action):
        mean = theta["height"] * jnp.sin(theta["rate"] * obs[..., :1]) * jnp.ones(OUTPUTS)
        return Moments(mean, jnp.full_like(mean, self.std), jnp.zeros(obs.shape[:-1]))


def waves(height, rate, folds=1) -> Posterior:
    height = jnp.asarray(height, jnp.float32)
    theta = {"height": height, "rate": jnp.full_like(height, rate)}
    edge = np.ones(OUTPUTS)
    return by_hand.worlds(Waves(), theta, np.zeros((1, S)), -edge, edge, TASK, folds=folds)


def wavy(rate=40.0, rows=800, noise=0.0, height=1.0) -> Dataset:
    rng = np.random.default_rng(8)
    obs = rng.uniform(-1, 1, size=(rows, S))
    y = height * np.sin(rate * obs[:, :1]) * np.ones(OUTPUTS) + noise * rng.normal(size=(rows, OUTPUTS))
    return rows_of(obs, np.zeros((rows, A)), y[:, :-1], y[:, -1])


def test_the_released_convention_is_its_definition(known):
    weight, posterior, _ = known
    held = drawn(np.random.default_rng(9), 600, weight, NOISE)
    predicted, y = said(posterior, held), targets(held)
    width = y.var(0)
    error = np.sum(np.mean((np.asarray(predicted.mean) - y) ** 2, (0, 1)) / (2 * width))
    spread = np.asarray(predicted.mean).var(0, ddof=1).mean(0) + np.square(predicted.std).mean((0, 1))
    spread = np.sum(spread / (2 * width))
    found = pil(posterior, held).released
    assert found["error"] == pytest.approx(error, rel=1e-3)
    assert found["spread"] == pytest.approx(spread, rel=1e-3)
    assert found["total"] == pytest.approx(error + spread, rel=1e-3)


def test_folds_are_judged_apart_and_averaged():
    heights, held = np.array([0.9, 1.0, 1.3, 0.2, 0.5, 0.3]), wavy(rate=3.0, noise=0.1)
    both = waves(heights, 3.0, folds=2)
    together, apart = evidence(both, held), [evidence(both.fold(i), held) for i in range(2)]
    assert together.members == 3
    for name in ("plain", "spread", "learned"):
        mean = np.mean([getattr(one, name) for one in apart], 0)
        np.testing.assert_allclose(getattr(together, name), mean, rtol=1e-6)
    assert together.spread[0] < evidence(waves(heights, 3.0), held).spread[0] / 2  # between folds is not spread
    means = heights.reshape(2, 3).mean(1)
    sine = np.sin(3.0 * held.steps.obs[:, :1].astype(np.float64))
    expected = np.mean((means[0] - means[1]) ** 2 * sine**2) / 2 / targets(held).var(0)  # A, by hand
    np.testing.assert_allclose(together.between, expected, rtol=1e-3)


def test_units_do_not_matter(known):
    weight, _, _ = known
    rng = np.random.default_rng(10)
    data, held = drawn(rng, 100, weight, NOISE), drawn(rng, 600, weight, NOISE)
    grown = lambda d: d._replace(steps=jax.tree.map(lambda a: 100 * a, d.steps))
    small = pil(fit(jax.random.key(0), HYPERS, data), held)
    # features 100 times as large need weights as large as before, and an intercept with a wider prior
    hypers = replace(HYPERS, noise=100 * NOISE, prior_scale=100.0)
    large = pil(fit(jax.random.key(0), hypers, grown(data)), grown(held))
    assert large.total == pytest.approx(small.total, rel=0.1)


def test_a_constant_target_or_input_divides_nothing_by_zero(known):
    _, posterior, _ = known
    rng = np.random.default_rng(11)
    obs = rng.normal(size=(300, S))
    held = rows_of(obs, np.zeros((300, A)), rng.normal(size=(300, S)), np.full(300, 7.0))
    found = pil(posterior, held)
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in found)
    assert np.isfinite([found.total, found.imbalance, *found.released.values()]).all()
    off = np.asarray(said(posterior, held).mean).mean(0)[:, -1] - 7.0
    assert found.plain[-1] == pytest.approx(np.mean(off**2), rel=1e-3)  # in its own units, having no others


def test_one_world_has_no_spread():
    found = pil(waves([0.5], 3.0), wavy(rate=3.0))
    assert found.v == 0
    assert found.word == "over-confident"


def test_evidence_takes_rows_evenly_and_only_those_in_use():
    held = wavy(rate=3.0, noise=0.1)
    some = held._replace(size=np.asarray(400, np.int32))
    spoilt = jax.tree.map(np.copy, some.steps)
    spoilt.reward[400:] = 1e6
    posterior = waves([0.8, 1.1], 3.0)
    np.testing.assert_array_equal(
        evidence(posterior, some).plain, evidence(posterior, some._replace(steps=spoilt)).plain
    )
    rows = evenly(some, 50)
    assert (rows[0], rows[-1], len(rows)) == (0, 399, 50)
    assert set(np.diff(rows)) == {8, 9}
    np.testing.assert_array_equal(evenly(some), np.arange(400))


# ---- E, V and chance of two folds, where all is known


def two_folds(first, second, std=0.1) -> Posterior:
    """Two worlds a fold: each fold's mean function, and 0.1 beside it on both sides."""
    says = Fold(first, second, std)
    theta = {"fold": jnp.array([0, 0, 1, 1]), "off": jnp.array([-0.1, 0.1, -0.1, 0.1])}
    edge = np.full(OUTPUTS, 9.0)
    return by_hand.worlds(says, theta, np.zeros((1, S)), -edge, edge, TASK, folds=2)


@dataclass(frozen=True)
class Fold:
    """Worlds whose mean is that of their fold and a constant of their own, in every output alike."""

    first: Callable
    second: Callable
    std: float

    def __call__(self, theta, obs, action):
        x = obs[..., 0]
        mean = jnp.where(theta["fold"] == 0, self.first(x), self.second(x)) + theta["off"]
        mean = mean[..., None] * jnp.ones(OUTPUTS)
        return Moments(mean, jnp.full_like(mean, self.std), jnp.zeros(obs.shape[:-1]))


def outcomes(truth, noise, rows=4_000, seed=0, low=-1.0, high=1.0) -> tuple[Dataset, list[Dataset], np.ndarray]:
    """Held-out rows, rows for each fold's regressor, and the held-out targets' variance."""
    rng = np.random.default_rng(seed)

    def some() -> Dataset:
        x = rng.uniform(low, high, rows)
        y = truth(x)[:, None] + noise(rng, x)
        obs = np.stack([x, rng.normal(size=rows)], 1)
        return rows_of(obs, np.zeros((rows, A)), y[:, :-1], y[:, -1])

    held = some()
    return held, [some(), some()], targets(held).var(0)


def gauss(size):
    return lambda rng, x: size * rng.normal(size=(len(x), OUTPUTS))


def test_two_folds_that_err_apart_show_their_error_and_the_chance_that_there_is():
    """Linear truth, Gaussian noise; one fold's slope is off and the other bends: no error of theirs is shared.

    With errors a = 0.2 x and b = 0.4 (x^2 - 1/3), E[a b] = 0: A is E[(a - b)^2] / 2, whatever the noise is.
    """
    worlds = two_folds(lambda x: 1.2 * x, lambda x: x + 0.4 * (x**2 - 1 / 3))
    for size in (0.1, 0.5):
        held, others, width = outcomes(lambda x: x, gauss(size))
        found = evidence(worlds, held, others)
        x = held.steps.obs[:, 0].astype(np.float64)
        apart = np.mean((0.2 * x - 0.4 * (x**2 - 1 / 3)) ** 2) / 2
        np.testing.assert_allclose(found.between * width, apart, rtol=1e-3)
        assert (found.bias * width < 0.3 * apart).all()
        np.testing.assert_allclose(found.spread * width, 0.02, rtol=1e-3)  # of -0.1 and 0.1
        np.testing.assert_allclose(found.chance * width, size**2, rtol=0.1, atol=0.3 * apart)


def test_what_both_folds_get_wrong_alike_is_error_and_not_chance():
    """A truth that bends, folds that do not: no difference between them, and yet all of it is found."""
    worlds = two_folds(lambda x: x, lambda x: x)
    for size in (0.1, 0.5):
        held, others, width = outcomes(lambda x: x + 0.6 * np.sin(4 * x), gauss(size))
        found = evidence(worlds, held, others)
        x = held.steps.obs[:, 0].astype(np.float64)
        bias = np.mean((0.6 * np.sin(4 * x)) ** 2)
        assert not found.between.any()
        np.testing.assert_allclose(found.bias * width, bias, rtol=0.1)
        np.testing.assert_allclose(found.chance * width, size**2, rtol=0.1, atol=0.01)
        loss = judge(found)
        np.testing.assert_allclose(loss.error, found.between + found.bias, rtol=1e-6)
        assert loss.word == "over-confident"


def test_noise_that_differs_from_place_to_place_is_chance():
    held, others, width = outcomes(
        lambda x: x, lambda rng, x: (0.1 + np.abs(x))[:, None] * rng.normal(size=(len(x), 3))
    )
    found = evidence(two_folds(lambda x: x, lambda x: x), held, others)
    x = held.steps.obs[:, 0].astype(np.float64)
    np.testing.assert_allclose(found.chance * width, np.mean((0.1 + np.abs(x)) ** 2), rtol=0.1)
    assert (found.bias < 0.02 * found.plain).all()


def test_a_column_that_jumps_at_random_is_chance():
    """It stays, and in one row of twenty it is anywhere: nobody can foretell it, and nobody is to blame."""
    jumps = lambda rng, x: (rng.random(len(x)) < 0.05)[:, None] * rng.uniform(-9, 9, (len(x), OUTPUTS))
    held, others, width = outcomes(lambda x: 0 * x, jumps)
    found = evidence(two_folds(lambda x: 0 * x, lambda x: 0 * x), held, others)
    np.testing.assert_allclose(found.chance * width, np.mean(targets(held) ** 2, 0), rtol=0.1)
    assert (found.bias < 0.1 * found.plain).all()
    assert judge(found).e < 0.06


def test_a_rough_function_without_noise_is_error_and_not_chance():
    """Steps that no straight line follows: the second regressor does, and next to nothing is left to chance."""
    rough = lambda x: np.sign(np.sin(9 * x)) * (1 + x)
    held, others, _ = outcomes(rough, gauss(0.0))
    found = evidence(two_folds(lambda x: 0.9 * x, lambda x: 1.1 * x), held, others)
    assert (found.chance < 0.1 * found.plain).all()
    blind = evidence(two_folds(lambda x: 0.9 * x, lambda x: 1.1 * x), held)
    assert (blind.chance > 0.9 * blind.plain).all()  # two folds alone cannot know


def test_few_held_out_episodes_prove_nothing():
    assert judge(found_of(0.5, 0.2, 0.2)._replace(units=FEWEST)).word == "calibrated"
    few = judge(found_of(0.5, 0.2, 0.2)._replace(units=FEWEST - 1))
    assert (few.word, few.balanced, few.calibrated) == ("unproven", True, False)
    held = wavy(rate=3.0)
    assert evidence(waves([0.8, 1.1], 3.0), held).units == held.rows
    episodes = held._replace(episode=np.repeat(np.arange(8), 100))
    assert evidence(waves([0.8, 1.1], 3.0), episodes).units == 8


# ---- how noise is shared out


def found_of(plain, bias=0.0, spread=0.0, between=0.0) -> Evidence:
    column = lambda value: np.full(1, float(value))
    return Evidence(column(plain), column(between), column(bias), column(spread), column(plain), 5)


def test_what_is_neither_between_folds_nor_shared_is_chance():
    found = found_of(plain=0.5, bias=0.15, between=0.05)
    assert found.chance[0] == pytest.approx(0.3)
    assert judge(found).error[0] == pytest.approx(0.2)
    assert judge(found).noise[0] == pytest.approx(0.3)
    assert judge(found).common == pytest.approx(3.0)
    told = judge(found, np.array([0.1]))
    assert (told.error[0], told.noise[0]) == pytest.approx((0.4, 0.1))
    assert judge(found, np.array([1e-9])).noise[0] == FLOOR**2
    assert judge(found, np.array([9.0])).error[0] == 0
    assert found_of(plain=0.1, bias=0.2).chance[0] == 0


def test_a_model_that_calls_its_errors_noise_does_not_win_when_chance_is_shared():
    """Deterministic truth, too fine for the second regressor: the worse posterior calls all of it chance."""
    held = wavy(rate=400.0)
    good = evidence(waves([0.97, 0.99, 1.01, 1.03], 400.0), held)
    poor = evidence(waves([0.00, 0.01, 0.02, 0.03], 400.0), held)
    assert poor.plain.sum() > 100 * good.plain.sum()
    assert (judge(poor).error < 0.2 * poor.plain)[:-1].all()  # the trap: by its own chance it hardly errs
    shared = [judge(found, good.chance).total for found in (good, poor)]
    assert shared[0] < shared[1] / 100
