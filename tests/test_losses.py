"""The losses of the planners that learn from rows, against numbers worked by hand on two transitions.

Nets are one linear layer, and observations and actions one number each, so that what they say can be read off.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from offing import nets
from offing.nets import Layer, mlp_init
from offing.planner import _parts, _td3, bc, cql, iql, rebrac, td3bc
from offing.planner._parts import Actor
from offing.types import Box, Dataset, Discrete, Seen, Transition

BOX, CHOICES = Box((-1.0,), (1.0,)), Discrete(3)
STILL = {"noise": 0.0, "noise_clip": 0.5}


def run(what):
    """What the function gives, compiled as a whole: op by op it would take longer."""
    return jax.tree.map(np.asarray, jax.jit(what)())


def layer(weight, bias) -> Layer:
    return Layer(np.asarray(weight, np.float32), np.asarray(bias, np.float32))


def rows(**rest) -> Transition:
    """Two transitions: observations 1 and 2, actions 0.5 and -0.5, rewards 1 and 3; the second one ends."""
    base = Transition(
        obs=np.array([[1.0], [2.0]], np.float32),
        action=np.array([[0.5], [-0.5]], np.float32),
        reward=np.array([1.0, 3.0], np.float32),
        next_obs=np.array([[2.0], [5.0]], np.float32),
        next_action=np.array([[-0.5], [-0.5]], np.float32),
        done=np.array([0.0, 1.0], np.float32),
    )
    return base._replace(**rest)


# Q_1(s, a) = 2 s + a and Q_2(s, a) = s - 2 a + 1
TWINS = (layer([[[2.0, 1.0]], [[1.0, -2.0]]], [[0.0], [1.0]]),)
# of three choices: Q_1 = s (1, 2, 3) and Q_2 = (4, 4, 0)
TRIPLES = (layer([[[1.0], [2.0], [3.0]], [[0.0]] * 3], [[0.0] * 3, [4.0, 4.0, 0.0]]),)
CHOSEN = np.eye(3, dtype=np.float32)[[1, 2]]  # the second choice, then the third
HALF = Actor((layer([[0.0]], [np.arctanh(0.5)]),), np.log([2.0]))  # says 0.5 always, give or take 2
THIRDS = Actor((layer([[0.0]] * 3, np.log([0.5, 0.25, 0.25])),), np.zeros(0))


def test_critics_say_what_they_should_of_actions_choices_and_probabilities():
    b = rows()
    share = np.array([[0.5, 0.25, 0.25]] * 2, np.float32)
    critics = lambda: (
        _parts.critics(TWINS, b.obs, b.action, BOX),
        _parts.critics(TRIPLES, b.obs, CHOSEN, CHOICES),
        _parts.choices(TRIPLES, b.obs)[0],
        _parts.critics(TRIPLES, b.obs, share, CHOICES),
    )
    of_actions, of_choices, all_of_them, of_shares = run(critics)
    np.testing.assert_allclose(of_actions, [[2.5, 3.5], [1, 4]])
    np.testing.assert_allclose(of_choices, [[2, 6], [4, 0]])
    np.testing.assert_allclose(all_of_them, [[1, 2, 3], [2, 4, 6]])
    np.testing.assert_allclose(of_shares, [[1.75, 3.5], [3, 3]])


def test_bc():
    loss, _ = run(lambda: bc.actor_loss(HALF, rows(), jnp.ones(2), BOX))
    np.testing.assert_allclose(loss, -stats.norm(0.5, 2).logpdf([0.5, -0.5]).mean(), rtol=1e-5)
    loss, _ = run(lambda: bc.actor_loss(THIRDS, rows(action=CHOSEN), jnp.ones(2), CHOICES))
    np.testing.assert_allclose(loss, np.log(4), rtol=1e-5)


def test_a_log_that_always_does_the_same_has_a_likelihood():
    sure = HALF._replace(log_std=np.array([-50.0]))
    loss, _ = run(lambda: bc.actor_loss(sure, rows(action=np.full((2, 1), 0.5)), jnp.ones(2), BOX))
    np.testing.assert_allclose(loss, -stats.norm(0.5, np.exp(-5)).logpdf(0.5), rtol=1e-5)


def test_iql():
    hypers, b = iql.Hypers(expectile=0.9, beta=2.0, discount=0.5, most=5.0), rows()
    value = (layer([[1.0]], [1.0]),)  # V(s) = s + 1: 2 and 3, and 3 of the next
    q = np.array([2.5, 1.0])
    loss, u = run(lambda: iql.value_loss(value, hypers, b, q))
    np.testing.assert_allclose(u, [0.5, -2.0])
    np.testing.assert_allclose(loss, (0.9 * 0.25 + 0.1 * 4) / 2, rtol=1e-6)
    # targets 1 + 0.5 * 3 = 2.5 and 3; critics 2.5, 3.5 and 1, 4
    loss, _ = run(lambda: iql.critic_loss(TWINS, hypers, b, value, BOX))
    np.testing.assert_allclose(loss, (0 + 1.5**2 + 0.5**2 + 1) / 2, rtol=1e-6)
    # weights e^1 and e^-4; then 5 at most instead of e^6
    each = -stats.norm(0.5, 2).logpdf([0.5, -0.5])
    loss, _ = run(lambda: iql.actor_loss(HALF, hypers, b, u, BOX))
    np.testing.assert_allclose(loss, (np.exp([1, -4]) * each).mean(), rtol=1e-5)
    loss, _ = run(lambda: iql.actor_loss(HALF, hypers, b, np.array([3.0, 0.0]), BOX))
    np.testing.assert_allclose(loss, (np.array([5, 1]) * each).mean(), rtol=1e-5)


def test_td3_targets():
    # the slow actor says 0.5: of s' = 2 the critics say 4.5 and 2, so 1 + 0.5 * 2 = 2; the second row ends
    hypers, b = rebrac.Hypers(discount=0.5, **STILL), rows()
    key, slow = jax.random.key(0), (HALF, TWINS)
    np.testing.assert_allclose(run(lambda: _td3.targets(key, hypers, slow, b, None, BOX)), [2, 3], rtol=1e-6)
    # logged next was -0.5, one away: 1 + 0.5 * (2 - 0.1 * 1)
    aims = run(lambda: _td3.targets(key, hypers, slow, b, np.full(2, 0.1), BOX))
    np.testing.assert_allclose(aims, [1.95, 3], rtol=1e-6)
    loss, _ = run(lambda: _td3.critic_loss(TWINS, b, aims, BOX))  # critics 2.5, 3.5 and 1, 4
    np.testing.assert_allclose(loss, (0.55**2 + 0.95**2 + 0.5**2 + 1) / 2, rtol=1e-5)
    # of choices: of s' = 2 half (2, 4, 6) gives 3.5 and (4, 4, 0) gives 3; their distance from the second
    b = rows(action=CHOSEN, next_action=CHOSEN)
    away = 0.5**2 + 0.75**2 + 0.25**2
    aims = run(lambda: _td3.targets(key, hypers, (THIRDS, TRIPLES), b, np.ones(2), CHOICES))
    np.testing.assert_allclose(aims, [1 + 0.5 * (3 - away), 3], rtol=1e-6)


def test_target_actions_are_smoothed_within_bounds():
    b = rows(reward=np.zeros(2), done=np.zeros(2), next_obs=np.zeros((2, 1)))
    many = jax.tree.map(lambda leaf: np.repeat(leaf, 1001, 0), b)
    says_a = (layer([[[0.0, 1.0]]], [[0.0]]),)  # Q(s, a) = a

    @jax.jit
    def aims(where, hypers):
        actor = Actor((Layer(jnp.zeros((1, 1)), jnp.arctanh(where)[None]),), jnp.zeros(0))
        return _td3.targets(jax.random.key(0), hypers, (actor, says_a), many, None, BOX)

    at = lambda where, **rest: np.asarray(aims(where, rebrac.Hypers(discount=1.0, **rest)))
    drawn = at(0.5, noise=0.2, noise_clip=0.3)
    np.testing.assert_allclose([drawn.min(), drawn.max()], [0.2, 0.8], atol=1e-5)
    np.testing.assert_allclose(drawn.mean(), 0.5, atol=0.02)
    np.testing.assert_allclose(at(0.5, noise=0.05, noise_clip=9.0).std(), 0.05, rtol=0.1)
    np.testing.assert_allclose(at(0.9, noise=0.2, noise_clip=0.3).max(), 1.0)


def test_next_actions_are_known_inside_episodes_only():
    episode = np.array([0, 0, 1, 1, 1, 2])
    data = Dataset(rows(), np.zeros((1, 1)), episode, np.asarray(5))  # the last row is out of use
    alone = data._replace(episode=np.full(6, -1))
    told, untold = run(lambda: [_td3.known(log, jnp.arange(5)) for log in (data, alone)])
    np.testing.assert_array_equal(told, [1, 0, 1, 1, 0])
    np.testing.assert_array_equal(untold, np.zeros(5))


def test_rebrac_actor():
    # 0.5 is 0 and 1 away from what was logged; the critics say 2.5, 4.5 and 1, 2, so least 1 and 2: 1.5 on average
    loss, _ = run(lambda: rebrac.actor_loss(HALF, rebrac.Hypers(actor_bc=0.2), rows(), flat(TWINS), BOX))
    np.testing.assert_allclose(loss, 0.2 * 0.5 - 1.5 / 1.5, atol=1e-6)
    loss, _ = run(
        lambda: rebrac.actor_loss(THIRDS, rebrac.Hypers(actor_bc=0.2), rows(action=CHOSEN), TRIPLES, CHOICES)
    )
    np.testing.assert_allclose(loss, 0.2 * np.log(4) - 1, rtol=1e-5)


def flat(params):
    """One layer has nothing hidden to normalise, so that normed critics say what the others do."""
    assert len(params) == 1
    return params


def test_td3bc_actor_and_its_slope():
    # |0.5 - a|^2 is 0 and 1; the first critic says 2.5 and 4.5 of 0.5, 3.5 on average
    hypers, b = td3bc.Hypers(alpha=2.5), rows()
    graded = jax.value_and_grad(lambda actor: td3bc.actor_loss(actor, hypers, b, TWINS, BOX)[0])
    loss, slope = run(lambda: graded(HALF))
    np.testing.assert_allclose(loss, 0.5 - 2.5, rtol=1e-6)
    # d/da: mean 2 (0.5 - a) = 1, less 2.5 / 3.5 * 1; times tanh's slope 0.75: lambda itself is not differentiated
    np.testing.assert_allclose(slope.layers[0].bias, [(1 - 2.5 / 3.5) * 0.75], rtol=1e-5)


def test_cql_over_choices():
    hypers = cql.Hypers(conservative=0.5)
    b, aim = rows(action=CHOSEN), np.array([2.0, 3.0])
    loss, gap = run(lambda: cql.critic_loss(TRIPLES, hypers, b, aim, None, CHOICES))
    soft = [np.log(np.exp([1, 2, 3]).sum()), np.log(np.exp([2, 4, 6]).sum())]
    flat = np.log(2 * np.exp(4) + 1)
    above = (soft[0] - 2) + (soft[1] - 6) + (flat - 4) + (flat - 0)
    np.testing.assert_allclose(gap, above / 2, rtol=1e-5)
    np.testing.assert_allclose(loss, (0 + 9 + 4 + 9) / 2 + 0.5 * above / 2, rtol=1e-5)


def test_cql_over_a_box_estimates_the_integral():
    """log of the integral of exp Q over [-1, 1] is known, whatever the rivals' densities."""
    actor = Actor((layer([[0.3], [0.2]], [0.1, -0.5]),), np.zeros(0))
    b = rows()

    def estimate():
        against = cql.rivals(jax.random.key(0), 5003, actor, b, BOX)
        assert against.action.shape == (3 * 5003, 2, 1)
        return cql.critic_loss(TWINS, cql.Hypers(), b, jnp.zeros(2), against, BOX)[1]

    gap = run(estimate)
    soft = lambda f: np.log(integrate.quad(lambda a: np.exp(f(a)), -1, 1)[0])
    above = [soft(lambda a, s=s: 2 * s + a) + soft(lambda a, s=s: s - 2 * a + 1) for s in (1, 2)]
    logged = [2.5 + 1, 3.5 + 4]
    np.testing.assert_allclose(gap, np.mean(np.subtract(above, logged)), atol=0.02)


def test_cql_targets_actor_and_temperature():
    b, hypers = rows(action=CHOSEN), cql.Hypers(discount=0.5)
    state = SimpleNamespace(actor=SimpleNamespace(params=THIRDS), slow=TRIPLES)
    np.testing.assert_allclose(cql.targets(jax.random.key(0), hypers, state, b, CHOICES), [1 + 0.5 * 3, 3])
    loss, logp = run(lambda: cql.actor_loss(THIRDS, jax.random.key(0), b, TRIPLES, jnp.asarray(2.0), CHOICES))
    expected = 0.5 * np.log(0.5) + 0.5 * np.log(0.25)
    np.testing.assert_allclose(logp, expected, rtol=1e-5)
    np.testing.assert_allclose(loss, 2 * expected - (1.75 + 3) / 2, rtol=1e-5)
    loss, _ = run(lambda: cql.temperature_loss(jnp.asarray(2.0), logp, CHOICES))
    np.testing.assert_allclose(loss, -2 * (expected + 0.3 * np.log(3)), rtol=1e-5)
    assert cql.calm(BOX) == -1


@pytest.mark.parametrize("draws", [(), (7,)])
def test_squashed_draws_have_the_density_they_say(draws):
    actor = Actor((layer([[0.3], [0.2]], [0.1, -0.5]),), np.zeros(0))
    action, logp = run(lambda: _parts.squashed(jax.random.key(1), actor, np.array([[1.0], [2.0]]), BOX, draws))
    assert action.shape == (*draws, 2, 1)
    raw = np.arctanh(np.asarray(action, np.float64))[..., 0]
    mean, std = np.array([0.4, 0.7]), np.exp([-0.3, -0.1])
    expected = stats.norm(mean, std).logpdf(raw) - np.log(1 - np.tanh(raw) ** 2)
    np.testing.assert_allclose(logp, expected, rtol=1e-3, atol=1e-4)


def test_hidden_layers_in_bfloat16_say_the_same_to_two_digits_and_policies_never_use_them(monkeypatch):
    layers = mlp_init(jax.random.key(0), (5, 31, 29, 3))
    x = jax.random.normal(jax.random.key(1), (997, 5))
    aim = jax.random.normal(jax.random.key(2), (997, 3))
    loss = lambda layers, half: jnp.mean(jnp.square(nets.tower(layers, x, True, half) - aim))
    full, half = run(lambda: [jax.value_and_grad(loss)(layers, half) for half in (False, True)])
    for exact, near in zip(jax.tree.leaves(full), jax.tree.leaves(half), strict=True):
        assert near.dtype == np.float32
        assert 0 < np.abs(near - exact).max() < 0.03 * np.abs(exact).max()
    scale = _parts.Scale(jnp.zeros(5), jnp.ones(5), jnp.ones(()))
    policy = _parts.policy_of(Actor(layers, np.zeros(0)), scale, "plain", Box((-1.0,) * 3, (1.0,) * 3))
    seen = Seen(x, aim, jnp.zeros(997), jnp.zeros(997))
    acts = lambda: policy.act(policy.params, (), seen, None)[0]
    before = run(acts)
    monkeypatch.setattr(nets, "HALF", {jax.default_backend(): True})
    np.testing.assert_array_equal(run(acts), before)


def test_what_is_centred_has_mean_zero_and_size_one():
    x = 3 + 2 * jax.random.normal(jax.random.key(0), (7, 101))
    found = run(lambda: nets.centred(x))
    np.testing.assert_allclose(found.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose(np.square(found).mean(-1), 1, rtol=1e-5)
