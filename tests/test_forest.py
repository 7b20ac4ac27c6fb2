"""What ends of episodes earn, by trees: grown on few ends, drawn from, and used where they tell more than nets."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing import load
from offing.data import split, take
from offing.posterior import _keep
from offing.posterior._forest import DEPTH, NODES, ROWS, TREES, Ends, crps, draw, grown
from offing.posterior.models import ensemble
from offing.posterior.models.ensemble import Hypers
from offing.posterior.walk import Place, fixed, memories
from offing.tune.choose import unseen

STEPS, EPISODES = 6, 90
TINY = Hypers(width=16, depth=1, activation="silu", batch_size=64, updates=300, lr=1e-2, members=2, elites=2)


def landing(pays, seed=0):
    """Nothing is earned until the last step, and then what `pays` says of where it led."""
    rng = np.random.default_rng(seed)
    rows = EPISODES * STEPS
    count = np.arange(rows) % STEPS
    obs = np.c_[rng.uniform(-2, 2, (rows, 2)), count]
    after = np.c_[0.5 * obs[:, :2] + rng.uniform(-1, 1, (rows, 2)), count + 1.0]
    done = count == STEPS - 1
    reward = np.where(done, pays(after), 0.0)
    columns = {"obs": obs, "next_obs": after, "reward": reward, "action": rng.uniform(-1, 1, (rows, 1))}
    more = {"terminated": done, "action_low": -1.0, "action_high": 1.0, "horizon": STEPS + 2}
    return load({name: np.asarray(part, np.float32) for name, part in columns.items()} | more)


softly = lambda after: np.where((np.abs(after[:, 0]) < 0.7) & (np.abs(after[:, 1]) < 1.2), 50.0, -25.0)
evenly = lambda after: 3 * after[:, 0] - 2 * after[:, 1]


def learned(log):
    data = log.data
    parts, _ = split(data, 0, TINY.folds, held=0.0)
    prepared = ensemble.prepare(data, log.task, history="none")
    fitted = jax.jit(ensemble.fit, static_argnums=5)(
        jax.random.key(0), TINY, data, parts, prepared.arrays, prepared.shape
    )
    worlds = ensemble.posterior(fitted, TINY, prepared, data, log.task)
    seen = [take(data, train[:size]) for train, size in zip(parts.train, parts.sizes, strict=True)]
    return ensemble.calibrate(worlds, seen, unseen(data, parts), np.ones(4))


@pytest.fixture(scope="module")
def soft():
    log = landing(softly)
    return log, learned(log)


def test_a_tree_draws_what_like_ends_earned():
    log = landing(softly)
    ends = Ends.of(log.data)
    assert len(ends.earned) == EPISODES
    forest = grown(ends, np.random.default_rng(0))
    assert [np.shape(leaf) for leaf in forest] == [(TREES, NODES, 4), (TREES, NODES, 2), (TREES, ROWS)]
    fresh = Ends.of(landing(softly, 1).data)
    drawn = np.asarray(
        jax.vmap(lambda key: draw(key, forest, jnp.asarray(fresh.x)))(jax.random.split(jax.random.key(0), 64))
    )
    assert set(np.unique(drawn)) == {-25.0, 50.0}
    assert np.mean(drawn == fresh.earned) > 0.8


def test_every_row_of_a_tree_is_in_one_leaf_and_no_way_down_is_longer_than_it_may_be():
    forest = grown(Ends.of(landing(evenly).data), np.random.default_rng(1))
    assert np.all(forest.leaves[:, :, 1].sum(1) >= EPISODES)  # inner nodes hold none
    for t in range(TREES):
        reached = {0}
        for _ in range(DEPTH):
            reached = {int(forest.nodes[t, node, side]) for node in reached for side in (2, 3)}
        assert all(forest.nodes[t, node, 2] == forest.nodes[t, node, 3] == node for node in reached)  # leaves
        assert sum(forest.leaves[t, node, 1] for node in reached) == EPISODES


def test_the_score_is_as_it_is_defined():
    truth = np.array([1.0, 4.0])
    assert crps(np.array([[2.0, 4.0]]), truth) == pytest.approx(0.5)  # of a single draw its distance
    drawn = np.random.default_rng(0).normal(size=(7, 2))
    apart = np.abs(drawn[:, None] - drawn[None]).mean((0, 1)) / 2
    assert crps(drawn, truth) == pytest.approx(np.mean(np.abs(drawn - truth).mean(0) - apart))


def imagined(worlds, log):
    """Every logged step, drawn once by each world: where it led, whether it ended, what it earned."""
    steps = log.data.steps
    shape = (worlds.members, log.data.rows)
    obs, action = (jnp.broadcast_to(part, (*shape, part.shape[-1])) for part in (steps.obs, steps.action))
    made = fixed(worlds)(jax.random.key(2), Place(obs, memories(worlds, shape[1])), action)[1]
    return jax.tree.map(np.asarray, made)


def test_worlds_with_trees_pay_ends_as_the_log_does(soft):
    log, worlds = soft
    assert worlds.theta.forest
    made = imagined(worlds, log)
    ended = made.terminated.astype(bool) & ~made.out_of_support.astype(bool)
    assert ended.any(1).all()
    assert set(np.unique(made.reward[ended])) <= {-25.0, 50.0}
    assert np.all(np.abs(made.reward[~ended & ~made.terminated.astype(bool)]) < 1.0)
    right = softly(made.next_obs[ended].astype(float)) == made.reward[ended]
    plain = replace(worlds, theta=worlds.theta._replace(forest=()))
    nets = imagined(plain, log)
    over = nets.terminated.astype(bool) & ~nets.out_of_support.astype(bool)
    assert right.mean() > 0.65
    assert right.mean() > np.mean(softly(nets.next_obs[over].astype(float)) == nets.reward[over]) + 0.05


def test_trees_are_left_out_where_nets_tell_it_better():
    assert not learned(landing(evenly)).theta.forest


def test_trees_are_left_out_where_ends_are_all_alike():
    assert not learned(landing(lambda after: np.full(len(after), -5.0))).theta.forest


def test_a_saved_one_has_its_trees(soft):
    log, worlds = soft
    theta, world, rest = _keep.load(_keep.save(worlds))
    again = ensemble.assemble(theta, world, rest, log.task)
    assert np.array_equal(imagined(again, log).reward, imagined(worlds, log).reward)
