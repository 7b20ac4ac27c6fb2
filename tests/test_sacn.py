"""SAC-N and EDAC: every loss against numbers worked by hand, with critics that are linear."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing.nets import Layer
from offing.optim import start
from offing.planner import edac, sacn
from offing.planner._parts import Actor, Scale, calm, critics_init, least
from offing.types import Box, Discrete, Transition

BOX, TWO = Box((-1.0,), (1.0,)), Discrete(2)
HYPERS = sacn.Hypers(critics=2, width=4, depth=1, discount=0.5)
REWARD, DONE = jnp.array([1.0, 2.0, 4.0]), jnp.array([0.0, 1.0, 0.0])


def rows(obs, action, next_obs) -> Transition:
    f = lambda a: jnp.asarray(a, jnp.float32)
    return Transition(f(obs), f(action), REWARD[: len(obs)], f(next_obs), f(action), DONE[: len(obs)])


def linear(weight, bias):
    """Critics (or with one row less an actor) of a single layer: what they say is worked out at sight."""
    return (Layer(jnp.asarray(weight, jnp.float32), jnp.asarray(bias, jnp.float32)),)


def flat(values):
    """Critics of choices that say the same everywhere: values [N, n]."""
    values = jnp.asarray(values, jnp.float32)
    return linear(jnp.zeros((*values.shape, 1)), values)


def state(actor, critic, temperature=1.0) -> sacn.State:
    scale = Scale(jnp.zeros(1), jnp.ones(1), jnp.ones(()))
    return sacn.State(
        start(actor), start(critic), critic, start(jnp.log(jnp.asarray(temperature))), scale, jnp.asarray(0)
    )


EVEN = Actor(linear(np.zeros((2, 1)), np.zeros(2)), jnp.zeros(0))  # of two choices each is as likely
STEADY = Actor(linear([[1.0], [0.0]], [0.0, -20.0]), jnp.zeros(0))  # acts tanh(obs), almost without spread
ONE = rows([[0.0], [0.0], [0.0]], [[1, 0], [0, 1], [1, 0]], [[1.0], [1.0], [1.0]])


def test_choices_are_backed_up_by_the_least_of_each_and_by_entropy():
    # per choice the least of (1, 4) and (3, 2) is (1, 2): 1.5 on average, where the least average would be 2.5
    found = sacn.backup(jax.random.key(0), HYPERS, state(EVEN, flat([[1, 4], [3, 2]])), ONE, jnp.asarray(0.2), TWO)
    after = 1.5 + 0.2 * np.log(2)
    np.testing.assert_allclose(found, [1 + 0.5 * after, 2.0, 4 + 0.5 * after], rtol=1e-6)


def test_a_box_is_backed_up_by_the_least_critic_at_the_drawn_action():
    critic = linear([[[1.0, 2.0]], [[-1.0, 1.0]]], [[0.0], [1.0]])  # obs + 2 a, and 1 - obs + a
    b = rows([[0.0]], [[0.3]], [[0.8]])
    found = sacn.backup(jax.random.key(0), HYPERS, state(STEADY, critic), b, jnp.asarray(0.0), BOX)
    a = np.tanh(0.8)
    assert 0.8 + 2 * a > 0.2 + a
    np.testing.assert_allclose(found, [1 + 0.5 * (0.2 + a)], atol=0.02)


def test_the_critics_loss_sums_over_critics_and_averages_over_rows():
    critic = linear([[[1.0, 2.0]], [[-1.0, 1.0]]], [[0.0], [1.0]])
    b = rows([[1.0], [2.0]], [[0.5], [-0.5]], [[0.0], [0.0]])
    loss, q = sacn.critic_loss(critic, HYPERS, b, jnp.array([1.0, 3.0]), BOX)
    np.testing.assert_allclose(q, [[2.0, 1.0], [0.5, -1.5]])
    np.testing.assert_allclose(loss, ((1 + 0.25) + (4 + 20.25)) / 2)


def test_the_actors_loss_is_the_least_value_and_what_certainty_costs():
    loss, logp = sacn.actor_loss(EVEN, jax.random.key(0), ONE, flat([[1, 4], [3, 2]]), jnp.asarray(0.2), TWO)
    np.testing.assert_allclose(loss, -0.2 * np.log(2) - 1.5, rtol=1e-6)
    np.testing.assert_allclose(logp, np.full(3, -np.log(2)), rtol=1e-6)


@pytest.mark.parametrize("actions", [BOX, TWO, Discrete(7)])
def test_temperature_rises_while_there_is_too_little_entropy_and_falls_after(actions):
    slope = lambda entropy: jax.grad(lambda x: sacn.temperature_loss(x, jnp.array([-entropy]), actions)[0])(0.0)
    assert slope(calm(actions) - 0.1) < 0 < slope(calm(actions) + 0.1)


def test_the_least_of_one_hot_choices_is_the_least_of_those_choices():
    params = critics_init(jax.random.key(0), 3, (5,), 1, Discrete(4))
    obs = jax.random.normal(jax.random.key(1), (4, 1))
    hidden = jax.nn.relu(jnp.einsum("noi,bi->nbo", params[0].weight, obs) + params[0].bias[:, None])
    values = jnp.einsum("noi,nbi->nbo", params[1].weight, hidden) + params[1].bias[:, None]
    np.testing.assert_allclose(
        least(params, obs, jnp.eye(4), Discrete(4)), jnp.diagonal(values.min(0)), rtol=1e-5, atol=1e-6
    )


def test_one_update_moves_everything_it_should_and_follows_slowly():
    params = critics_init(jax.random.key(0), 2, (4,), 1, BOX)
    before = state(STEADY, params)
    b = rows([[0.1], [0.2], [0.3]], [[0.5], [0.1], [-0.5]], [[0.0], [0.1], [0.2]])
    learn = jax.jit(lambda s: sacn.learn(jax.random.key(1), HYPERS, s, b, BOX, sacn.critic_loss))
    after, metrics = learn(before)
    assert {name: jnp.shape(value) for name, value in metrics.items()} == dict.fromkeys(metrics, ())
    assert int(after.count) == 1
    assert float(after.temperature.params) != float(before.temperature.params)
    for slow, old, new in zip(*map(jax.tree.leaves, (after.slow, before.slow, after.critic.params)), strict=True):
        assert float(jnp.max(jnp.abs(new - old))) > 0
        np.testing.assert_allclose(slow, old + HYPERS.polyak * (new - old), rtol=1e-5, atol=1e-7)


# ---- EDAC


def test_slopes_of_linear_critics_are_their_weights_made_one_long():
    box = Box((-1.0, -1.0), (1.0, 1.0))
    params = linear([[[9.0, 3.0, 4.0]], [[9.0, 0.0, -2.0]]], [[0.0], [0.0]])  # of obs, and of two actions
    found = edac.slopes(params, jnp.ones((5, 1)), jnp.zeros((5, 2)), box)
    np.testing.assert_allclose(found, np.broadcast_to([[[0.6, 0.8]], [[0.0, -1.0]]], (2, 5, 2)), rtol=1e-5)
    np.testing.assert_allclose(
        edac.similarity(found), 2 * -0.8, rtol=1e-5
    )  # both orders of the one pair, over N - 1


def test_alike_is_zero_at_right_angles_and_n_if_all_are_the_same():
    one = jnp.ones((1, 3, 1))
    corner = jnp.stack([one * jnp.array([1.0, 0.0]), one * jnp.array([0.0, 1.0])])[:, 0]
    np.testing.assert_allclose(edac.similarity(corner), 0.0, atol=1e-6)
    np.testing.assert_allclose(edac.similarity(jnp.broadcast_to(corner[:1], (4, 3, 2))), 4.0)


def test_the_penalty_is_added_with_its_weight():
    params = linear([[[1.0, 2.0]], [[-1.0, 1.0]]], [[0.0], [1.0]])
    b = rows([[1.0], [2.0]], [[0.5], [-0.5]], [[0.0], [0.0]])
    target = jnp.array([1.0, 3.0])
    plain = sacn.critic_loss(params, HYPERS, b, target, BOX)[0]
    with_ = edac.critic_loss(params, edac.Hypers(eta=0.3), b, target, BOX)[0]
    np.testing.assert_allclose(with_ - plain, 0.3 * 2, rtol=1e-4)  # one-dimensional slopes that agree: N = 2
    np.testing.assert_allclose(edac.critic_loss(params, edac.Hypers(eta=0.0), b, target, BOX)[0], plain)


def test_critics_of_two_choices_are_pushed_apart_where_they_agree():
    b = rows([[0.0]], [[1, 0]], [[0.0]])
    loss = lambda values: edac.similarity(edac.slopes(flat(values), b.obs, b.action, TWO))
    values = jnp.array([[1.0, 2.0], [5.0, 7.0]])  # both prefer the second, the second critic by more
    assert loss(values) > 0 > loss(values.at[1].set(jnp.array([7.0, 5.0])))
    np.testing.assert_allclose(loss(values + 3.0), loss(values), rtol=1e-5)  # what all choices share is no slope
    push = -jax.grad(loss)(values)
    assert (push[:, 1] < 0).all()
    assert (push[:, 0] > 0).all()
    # slopes -0.5, 0.5 and -1, 1: squares 0.5 and 2, on average 1.25
    np.testing.assert_allclose(loss(values), 2 * (2 * 0.5) / np.sqrt(1.75 * 3.25), rtol=1e-5)


def test_edac_is_one_program_over_its_weight():
    params = critics_init(jax.random.key(0), 3, (4,), 1, BOX)
    b = rows([[0.1], [0.2]], [[0.5], [0.1]], [[0.0], [0.1]])
    one = lambda h: edac.critic_loss(params, h, b, jnp.zeros(2), BOX)[0]
    hypers = edac.Hypers(critics=3, width=4, depth=1)
    many = jax.tree.map(lambda x: jnp.broadcast_to(x, 3), hypers)
    many = replace(many, eta=jnp.array([0.0, 1.0, 5.0]))
    swept = jax.jit(jax.vmap(one))(many)
    np.testing.assert_allclose(swept, [one(replace(hypers, eta=x)) for x in (0.0, 1.0, 5.0)], rtol=1e-5)
    np.testing.assert_allclose(swept[2] - swept[0], 5 * (swept[1] - swept[0]), rtol=1e-4)
