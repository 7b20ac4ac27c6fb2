"""Networks against values worked by hand; AdamW against AdamW written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

from offing.nets import (
    ACTIVATIONS,
    NARROW,
    TAILS,
    Layer,
    cross_entropy,
    gaussian_nll,
    hidden,
    hidden_half,
    mlp,
    mlp_init,
    soft_clamp,
    student_nll,
)
from offing.optim import adam, cosine, descend, start

BY_HAND = (
    Layer(jnp.array([[1.0, 2.0], [-1.0, 1.0], [0.5, -1.0]]), jnp.array([0.5, 0.0, 1.0])),
    Layer(jnp.array([[1.0, 10.0, 100.0]]), jnp.array([-3.0])),
)


def test_mlp_against_a_value_worked_by_hand():
    # x = (1, 2): before the activation (1 + 4 + .5, -1 + 2, .5 - 2 + 1) = (5.5, 1, -.5); relu: (5.5, 1, 0)
    assert mlp(BY_HAND, jnp.array([1.0, 2.0])).tolist() == [5.5 + 10.0 - 3.0]
    # x = (0, 1): (2.5, 1, 0): 2.5 + 10 + 0 - 3; a negative output is not cut off
    assert mlp(BY_HAND, jnp.array([0.0, 1.0])).tolist() == [9.5]
    assert mlp(BY_HAND, jnp.array([0.0, -1.0])).tolist() == [200.0 - 3.0]
    assert mlp(BY_HAND, jnp.array([-0.5, 0.0])).tolist() == [5.0 + 75.0 - 3.0]
    tanh = np.tanh([5.5, 1.0, -0.5]) @ [1.0, 10.0, 100.0] - 3.0
    np.testing.assert_allclose(mlp(BY_HAND, jnp.array([1.0, 2.0]), "tanh"), [tanh], rtol=1e-6)


def test_mlp_keeps_leading_axes():
    x = jax.random.normal(jax.random.key(0), (5, 3, 2))
    out = mlp(BY_HAND, x, "silu")
    assert out.shape == (5, 3, 1)
    np.testing.assert_allclose(out[4, 1], mlp(BY_HAND, x[4, 1], "silu"), rtol=1e-5)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_one_layer_is_linear(activation):
    layers = mlp_init(jax.random.key(1), (3, 2))
    assert len(layers) == 1
    x, y = jax.random.normal(jax.random.key(2), (2, 7, 3))
    np.testing.assert_allclose(
        mlp(layers, 2 * x - y, activation),
        2 * mlp(layers, x, activation) - mlp(layers, y, activation),
        atol=1e-5,
    )


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_hidden_half_says_the_same_and_its_gradient_is_near(activation):
    layers = mlp_init(jax.random.key(6), (3, 11, 7, 2))
    x, weight = jax.random.normal(jax.random.key(7), (13, 3)), jax.random.normal(jax.random.key(8), (13, 7))
    np.testing.assert_array_equal(hidden_half(layers, x, activation), hidden(layers, x, activation))
    grads = [
        jax.jit(jax.grad(lambda layers, x, f=f: jnp.sum(weight * f(layers, x, activation)), (0, 1)))(layers, x)
        for f in (hidden_half, hidden)
    ]
    near = lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=0.02 * (1e-6 + np.abs(theirs).max()))
    jax.tree.map(near, *grads)


def test_init_shapes_scale_and_last():
    key = jax.random.key(3)
    layers = mlp_init(key, (400, 300, 5))
    assert [layer.weight.shape for layer in layers] == [(300, 400), (5, 300)]
    assert all(not layer.bias.any() for layer in layers)
    np.testing.assert_allclose(layers[0].weight.std(), 400**-0.5, rtol=0.02)  # LeCun: variance 1 / in
    small = mlp_init(key, (400, 300, 5), last=0.1)
    np.testing.assert_array_equal(small[0].weight, layers[0].weight)
    np.testing.assert_allclose(small[1].weight, 0.1 * layers[1].weight, rtol=1e-6)
    other = mlp_init(jax.random.key(4), (400, 300, 5))
    assert not np.allclose(other[0].weight, layers[0].weight)


def test_last_may_be_traced():
    key, scales = jax.random.key(5), jnp.array([0.0, 0.5, 2.0])
    swept = jax.vmap(lambda last: mlp_init(key, (2, 3), last)[-1].weight)(scales)
    np.testing.assert_allclose(swept, scales[:, None, None] * mlp_init(key, (2, 3))[-1].weight, rtol=1e-6)


def test_soft_clamp_limits_and_order():
    low, high = -10.0, 0.5
    x = jnp.linspace(-30.0, 30.0, 1201)
    y = soft_clamp(x, low, high)
    over = np.log1p(np.exp(low - high))  # the second clamp lifts the first one's ceiling by this much
    assert y.min() >= low
    assert y.max() <= high + over + 1e-6
    np.testing.assert_allclose(soft_clamp(jnp.array([-1e4, 1e4]), low, high), [low, high + over], atol=1e-5)
    assert (jnp.diff(y) >= 0).all()
    middle = (x > -7) & (x < -2.5)
    assert (jnp.diff(y[middle]) > 0).all()
    np.testing.assert_allclose(y[middle], x[middle], atol=0.1)  # far from both ends it does nothing
    slope = jax.vmap(jax.grad(lambda v: soft_clamp(v, low, high)))(jnp.array([-14.0, -5.0, 4.0]))
    assert slope[1] > 0.9
    assert (slope > 0).all()  # beyond the ends a gradient is left to come back by
    assert slope[0] < 0.1
    assert slope[2] < 0.1


def test_student_nll_is_scipys_and_fits_a_gaussian_at_its_own_variance():
    mean, target, logvar = jnp.array([0.0, 1.0, -2.0]), jnp.array([0.5, 30.0, -2.0]), jnp.array([0.0, -3.0, 1.0])
    scale = np.sqrt(NARROW * np.exp(logvar))
    expected = -stats.t.logpdf(target, TAILS, loc=mean, scale=scale)
    np.testing.assert_allclose(student_nll(mean, logvar, target), expected, rtol=1e-5)
    drawn = jnp.asarray(norm.ppf((np.arange(20_000) + 0.5) / 20_000))
    at = lambda logvar: float(student_nll(jnp.zeros(()), logvar, drawn).mean())
    assert abs(float(jax.grad(lambda v: student_nll(jnp.zeros(()), v, drawn).mean())(jnp.zeros(())))) < 2e-3
    assert at(jnp.zeros(())) < min(at(jnp.asarray(-0.2)), at(jnp.asarray(0.2)))


def test_gaussian_nll_is_scipys():
    rng = np.random.default_rng(0)
    mean, target = rng.normal(size=(2, 5, 3)).astype(np.float32)
    logvar = rng.uniform(-4, 3, (5, 3)).astype(np.float32)
    expected = -norm.logpdf(target, mean, np.exp(0.5 * logvar))
    np.testing.assert_allclose(gaussian_nll(mean, logvar, target), expected, rtol=1e-5, atol=1e-5)


def test_cross_entropy_is_bernoullis_and_survives_large_logits():
    logit = np.float32([-2.0, 0.0, 3.0])
    chance = 1 / (1 + np.exp(-logit))
    np.testing.assert_allclose(cross_entropy(logit, np.ones(3)), -np.log(chance), rtol=1e-5)
    np.testing.assert_allclose(cross_entropy(logit, np.zeros(3)), -np.log(1 - chance), rtol=1e-5)
    np.testing.assert_allclose(cross_entropy(np.float32([200.0, -200.0]), np.float32([0.0, 0.0])), [200.0, 0.0])


def adamw(params, grads, rate, decay=0.0, eps=1e-8):
    """AdamW over a list of gradients, in float64: Loshchilov and Hutter (2019), algorithm 2."""
    m = v = np.zeros_like(params)
    for t, g in enumerate(grads, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + eps)
        params = params - rate(t - 1) * (step + decay * params)
    return params


GRADS = np.random.default_rng(1).normal(size=(5, 3)) * [[0.1], [3.0], [1.0], [0.01], [2.0]]
PARAMS = np.array([1.0, -2.0, 0.5])


def linear(params, slope):
    """A loss whose gradient is the slope."""
    return params["a"] @ slope[:1] + params["b"] @ slope[1:], None


@jax.jit
def walk(lr, decay=0.0, eps=1e-8, final=1.0):
    """Where GRADS lead from PARAMS, with the rate falling to `final` of itself over four steps."""

    def move(learner, at):
        count, slope = at
        return descend(learner, adam(count, cosine(count, lr, 4, final), decay, eps), linear, slope)[0], None

    params = {"a": jnp.float32(PARAMS[:1]), "b": jnp.float32(PARAMS[1:])}
    learner, _ = jax.lax.scan(move, start(params), (jnp.arange(5), np.float32(GRADS)))
    return jnp.concatenate([learner.params["a"], learner.params["b"]])


@pytest.mark.parametrize(("decay", "eps"), [(0.0, 1e-8), (0.3, 1e-8), (0.0, 1e-2), (0.3, 0.5)])
def test_adam_is_adamw_written_out(decay, eps):
    expected = adamw(PARAMS, GRADS, lambda t: 0.05, decay, eps)
    np.testing.assert_allclose(walk(0.05, decay, eps), expected, rtol=5e-5)


def test_adam_with_a_falling_rate():
    expected = adamw(PARAMS, GRADS, lambda t: 0.05 * (0.2 + 0.8 * (1 + np.cos(np.pi * t / 4)) / 2), 0.3)
    np.testing.assert_allclose(walk(0.05, 0.3, final=0.2), expected, rtol=5e-5)


def test_decay_is_decoupled_from_the_gradient():
    np.testing.assert_allclose(adam(10**6, 0.1)[:3], (0.1, 1e-8, 0.0), rtol=1e-5)  # the defaults, in the long run
    learner = start(jnp.float32([4.0, 0.0]))
    learner, _, _ = descend(learner, adam(0, 0.1, decay=0.5), lambda p: (0.0 * p.sum(), None))
    np.testing.assert_allclose(learner.params, [4.0 * (1 - 0.1 * 0.5), 0.0], rtol=1e-6)


def test_cosine_ends_where_it_says():
    rates = cosine(jnp.arange(51), 0.4, 10, final=0.25)
    np.testing.assert_allclose(rates[jnp.array([0, 5, 10, 50])], [0.4, 0.25, 0.1, 0.1], rtol=1e-6)
    assert (np.diff(rates[:11]) < 0).all()
    np.testing.assert_allclose(cosine(10, 0.4, 10), 0.04, rtol=1e-6)


def quadratic(params, at):
    return jnp.sum(jnp.square(params - at)), params.shape


def test_descend_lowers_a_quadratic_and_hands_back_value_and_aux():
    at = jnp.array([1.0, -3.0])
    learner, first, aux = descend(start(jnp.array([2.0, 1.0])), adam(0, 0.1), quadratic, at)
    assert first == 17.0  # the value before the step
    assert aux == (2,)
    learner = jax.lax.fori_loop(1, 200, lambda t, x: descend(x, adam(t, 0.1), quadratic, at)[0], learner)
    assert quadratic(learner.params, at)[0] < 1e-2


def test_traced_floats_swept_equal_alone():
    settings = jnp.float32([[0.01, 0.0, 1e-8, 0.0], [0.1, 0.4, 1e-3, 0.2], [0.3, 1.0, 0.1, 1.0]])
    swept = jax.vmap(walk)(*settings.T)
    for row, setting in zip(swept, settings, strict=True):
        np.testing.assert_allclose(row, walk(*map(float, setting)), rtol=1e-5, atol=1e-6)
    assert np.abs(np.diff(swept, axis=0)).min() > 1e-3  # the settings do differ
