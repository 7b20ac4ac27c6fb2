"""Explanations: the tree and its fidelity, and regions that add up."""

import numpy as np
import pytest

from offing.explain.gather import Logged
from offing.explain.regions import behaviour_value, brought, to_go
from offing.explain.tree import fidelity, grow
from offing.value.episodes import Imagined

RNG = np.random.default_rng(0)


def test_a_tree_finds_the_questions_that_a_policy_asks():
    obs = RNG.uniform(-1, 1, (2000, 3))
    choice = np.where(obs[:, 1] > 0.25, 2, np.where(obs[:, 2] > 0, 1, 0))
    tree = grow(obs, np.eye(3)[choice], depth=2)
    assert tree.column == 1
    assert tree.at == pytest.approx(0.25, abs=0.05)
    assert fidelity(tree, obs, np.eye(3)[choice], True) > 0.95
    words = tree.regions(("a", "b", "c"))
    assert len(words) == tree.count
    assert words[0].startswith("b ≤ 0.2")
    assert "c" in words[0]
    assert sum(leaf.share for leaf in tree.leaves) == pytest.approx(1)


def test_fidelity_of_amounts_is_the_variance_explained():
    obs = RNG.normal(size=(1000, 2))
    action = np.stack([np.sign(obs[:, 0]), RNG.normal(size=1000)], -1)
    tree = grow(obs, action, depth=1)
    assert tree.column == 0
    assert fidelity(tree, obs, action, False) == pytest.approx(0.5, abs=0.1)
    assert fidelity(grow(obs, action, depth=0), obs, action, False) == pytest.approx(0, abs=1e-9)


def logs(episodes=40, steps=12):
    """Episodes whose reward is their first column, behaviour drifting at random."""
    obs = np.cumsum(RNG.normal(0, 0.3, (episodes, steps, 2)), 1)
    time = np.tile(np.arange(steps), episodes)
    flat = obs.reshape(-1, 2)
    action = np.zeros((len(flat), 1))
    return Logged(flat, action, action, flat[:, 0], np.repeat(np.arange(episodes), steps), time)


def test_returns_to_go_stop_at_their_episodes_end():
    found = logs(3, 4)
    due = [found.reward[i : (i // 4 + 1) * 4].sum() for i in range(12)]
    np.testing.assert_allclose(to_go(found), due)


def test_regions_add_up_to_the_promised_difference():
    found = logs()
    mean = float(to_go(found)[found.time == 0].mean())
    value = behaviour_value(found, 12, mean)
    first = found.obs[found.time == 0]
    assert float(np.mean(value(first, np.full(len(first), 12.0)))) == pytest.approx(mean)
    obs = RNG.normal(0, 1, (12, 4, 5, 2)) + 1
    obs[0] = first[:20].reshape(4, 5, 2)
    alive = np.ones((12, 4, 5), bool)
    alive[7:, :2] = False  # episodes that ended
    ended = np.zeros_like(alive)
    episodes = Imagined(obs, np.zeros((12, 4, 5, 1)), obs[..., 0], np.roll(obs, -1, 0), ended, alive)
    leaf = (obs[..., 1] > 1).astype(int)
    brings, share, begun = brought(episodes, value, leaf, 2)
    assert brings.sum() == pytest.approx(episodes.returns.mean() - begun)
    assert begun == pytest.approx(float(np.mean(value(obs[0].reshape(-1, 2), np.full(20, 12.0)))))
    assert share.sum() == pytest.approx(1)
