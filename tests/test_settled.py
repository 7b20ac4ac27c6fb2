"""Logs in which the same always led to the same: found, and imagined so that what a world leaves open stays so."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing import load
from offing.data import split
from offing.posterior import _keep
from offing.posterior._settled import once, settled
from offing.posterior._words import described
from offing.posterior.models import ensemble
from offing.posterior.models.ensemble import Hypers

SIDE, STEPS = 5, 12
TINY = Hypers(width=24, depth=2, activation="silu", batch_size=64, updates=300, lr=1e-2, members=2, elites=2)
MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
WALL = 2  # nobody steps from this column of the board to the next, but in the first row


def board(rows: int = 1_500, seed: int = 0, slips: float = 0.0):
    """Steps on a board with a wall and a corner that pays and ends the episode; now and then one slips."""
    rng = np.random.default_rng(seed)
    seen, led, acts, paid, over, late = [], [], [], [], [], []
    while len(seen) < rows:
        at = rng.integers(SIDE, size=2)
        for _ in range(STEPS):
            a = int(rng.integers(4))
            move = MOVES[int(rng.integers(4)) if rng.random() < slips else a]
            new = np.clip(at + move, 0, SIDE - 1)
            if at[0] > 0 and {at[1], new[1]} == {WALL, WALL + 1}:
                new = at
            won = bool((new == SIDE - 1).all() and (at != SIDE - 1).any())
            for column, one in zip(
                (seen, led, acts, paid, over, late), (at, new, a, won - 0.1, won, 0), strict=True
            ):
                column.append(one)
            at = new
            if won:
                break
        late[-1] = not over[-1]
    columns = {"obs": np.array(seen, np.float32), "next_obs": np.array(led, np.float32), "action": np.array(acts)}
    ends = {"terminated": np.array(over, bool), "truncated": np.array(late, bool)}
    return load(columns | ends | {"reward": np.array(paid, np.float32), "n_actions": 4})


@pytest.fixture(scope="module")
def log():
    return board()


def test_a_board_is_settled_and_one_that_slips_is_not(log):
    assert settled(log.data)
    assert not settled(board(slips=0.1).data)


def test_a_single_row_that_went_otherwise_unsettles_it_unless_it_is_an_episodes_last(log):
    episode = np.asarray(log.data.episode)[: log.data.rows]
    last = np.flatnonzero(np.r_[episode[1:] != episode[:-1], True])

    def changed(row):
        reward = np.array(log.data.steps.reward)
        reward[row] += 1
        return settled(log.data._replace(steps=log.data.steps._replace(reward=reward)))

    assert not changed(last[3] - 1)
    assert changed(last[3])  # nobody may know where that led


def test_of_states_that_never_come_again_nothing_is_known(log):
    rng = np.random.default_rng(0)
    away = lambda array: np.asarray(array) + rng.normal(size=np.shape(array))
    steps = log.data.steps._replace(obs=away(log.data.steps.obs))
    assert not settled(log.data._replace(steps=steps))


@pytest.fixture(scope="module")
def fitted(log):
    parts, _ = split(log.data, 0, TINY.folds)
    prepared = ensemble.prepare(log.data, log.task)
    assert prepared.shape.settled
    made = jax.jit(ensemble.fit, static_argnums=5)(
        jax.random.key(0), TINY, log.data, parts, prepared.arrays, prepared.shape
    )
    return ensemble.posterior(made, TINY, prepared, log.data, log.task)


def everywhere():
    """All states and actions of the board [100, 2] and [100, 4]."""
    states = np.stack(np.meshgrid(range(SIDE), range(SIDE)), -1).reshape(-1, 2).astype(np.float32)
    return np.repeat(states, 4, 0), np.tile(np.eye(4, dtype=np.float32), (len(states), 1))


def test_chance_is_drawn_once_for_each_state_and_action(fitted):
    obs, action = everywhere()
    draw = jax.jit(lambda key: jax.vmap(lambda theta: fitted.sample(key, theta, (), obs, action)[0])(fitted.theta))
    one, other = draw(jax.random.key(1)), draw(jax.random.key(2))
    np.testing.assert_array_equal(one.next_obs, other.next_obs)
    np.testing.assert_array_equal(one.reward, other.reward)
    np.testing.assert_array_equal(one.terminated, other.terminated)
    assert set(np.unique(one.next_obs)) <= set(range(SIDE))
    order = np.random.default_rng(0).permutation(len(obs))  # and wherever it stands among others
    apart = jax.jit(lambda: jax.vmap(lambda theta: fitted.sample(jax.random.key(3), theta, (), obs[order],
                                                                 action[order])[0])(fitted.theta))()  # fmt: skip
    np.testing.assert_array_equal(apart.next_obs, one.next_obs[:, order])
    loose = replace(fitted.sample.world, kinds=fitted.sample.world.kinds._replace(settled=False))
    sample = replace(fitted.sample, world=loose)
    drawn = jax.jit(lambda key: jax.vmap(lambda theta: sample(key, theta, (), obs, action)[0])(fitted.theta))
    assert np.any(drawn(jax.random.key(1)).next_obs != drawn(jax.random.key(2)).next_obs)


def test_what_the_log_shows_often_is_known_in_every_world(fitted, log):
    obs, action = (np.asarray(leaf)[: log.data.rows] for leaf in (log.data.steps.obs, log.data.steps.action))
    draw = jax.jit(lambda: jax.vmap(lambda theta: fitted.sample(jax.random.key(1), theta, (), obs, action)[0])(
        fitted.theta))  # fmt: skip
    right = np.all(np.asarray(draw().next_obs) == np.asarray(log.data.steps.next_obs)[: log.data.rows], -1)
    assert right.mean() > 0.9


def test_keys_differ_by_state_action_and_world_and_by_nothing_else(fitted):
    obs, action = everywhere()
    theta = lambda m: jax.tree.map(lambda leaf: jnp.asarray(leaf)[m], fitted.theta)
    keys = [np.asarray(jax.random.key_data(once(theta(m), obs, action))) for m in (0, 1)]
    assert len(np.unique(keys[0], axis=0)) == len(obs)
    assert not np.any(np.all(keys[0] == keys[1], -1))
    again = once(theta(0), -0.0 * obs + obs, action)
    np.testing.assert_array_equal(keys[0], jax.random.key_data(again))
    zero = once(theta(0), np.where(obs == 0, np.float32(-0.0), obs), action)
    np.testing.assert_array_equal(keys[0], jax.random.key_data(zero))


def test_a_saved_one_is_the_same_and_pages_have_a_word_for_it(fitted):
    world = _keep.load(_keep.save(fitted))[1]
    assert world.kinds == fitted.sample.world.kinds
    assert world.kinds.settled
    assert described(world.kinds)["where the same always led to the same"] == (0, 1)
