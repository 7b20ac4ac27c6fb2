"""A policy in the true environment: returns by hand, what it sees and remembers, and what does not fit."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing.online import envs
from offing.online.play import Played, play, play_pool, rollouts, summary
from offing.types import BadInput, Box, Discrete, Policy, Task

pytest.importorskip("gymnax")
gymnasium = pytest.importorskip("gymnasium")

PENDULUM = Task(200, 0.9, Box((-2.0,), (2.0,)))
CARTPOLE = Task(500, 0.9, Discrete(2))
COUNTER = Task(7, 0.5, Box((-1e4,), (1e4,)))
EPISODES, SEED = 3, 11


def steady(params, memory, seen, key):
    """Always the same action."""
    return params, memory


def damping(params, memory, seen, key):
    """Against the pendulum's speed; needs its three numbers."""
    return jnp.clip((seen.obs * params).sum(-1, keepdims=True), -2, 2), memory


def noisy(params, memory, seen, key):
    return params + (0 if key is None else jax.random.uniform(key, (1,))), memory


def counting(params, memory, seen, key):
    """Says all that it sees and remembers in one number."""
    steps = memory * (1 - seen.start) + 1
    return jnp.stack([steps + 10 * seen.start + 100 * seen.reward + seen.action[0] / 2]), steps


def said(t, reward, action):
    return t + 1 + 10 * (t == 0) + 100 * reward + action / 2


def at_start(seed, e):
    return jax.random.split(jax.random.fold_in(jax.random.key(seed), e), 3)[0]


PUSH = Policy(np.array([1.5], np.float32), (), steady)
LEFT = Policy(np.array([1.0, 0.0], np.float32), (), steady)
DAMPED = Policy(np.array([0.0, 0.0, -1.0], np.float32), (), damping)
COUNTING = Policy((), np.float32(77), counting)  # memory is void at the start, whatever it holds


class Counter(gymnasium.Env):
    """Ends after 3 steps, or never; earns 1 at the first step, 2 at the second; only counted actions are right."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Box(-1e4, 1e4, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.reward, self.action = 0, 0, 0.0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        expected = said(self.t, self.reward, self.action)
        self.action, self.t = float(action[0]), self.t + 1
        self.reward = self.t if abs(self.action - expected) < 0.1 else -1
        return np.zeros(2, np.float32), self.reward, self.t == 3, False, {}


def toy(ends):
    """The counter in JAX; it ends after `ends` steps."""

    def step(key, state, action):
        t, reward, before = state
        right = jnp.abs(action[0] - said(t, reward, before)) < 0.1
        reward = jnp.where(right, t + 1.0, -1.0)
        return (t + 1, reward, action[0]), jnp.zeros(2), reward, t + 1 == ends

    return envs.Env(lambda key: ((0, 0.0, 0.0), jnp.zeros(2)), step, COUNTER)


@pytest.fixture(scope="module")
def pushed():
    return play(PUSH, PENDULUM, "pendulum", EPISODES, SEED)


def test_a_steady_push_equals_a_loop_by_hand(pushed):
    env = envs.make("pendulum")
    step = jax.jit(env.step)
    for e in range(EPISODES):
        state, _ = env.reset(at_start(SEED, e))
        rewards = []
        for _ in range(200):
            state, _, reward, ended = step(jax.random.key(0), state, PUSH.params)
            rewards.append(float(reward))
            assert not ended
        np.testing.assert_allclose(pushed.returns[e], np.sum(rewards), rtol=1e-4)
        np.testing.assert_allclose(pushed.values[e], np.dot(0.9 ** np.arange(200), rewards), rtol=1e-4)
    assert pushed.lengths.tolist() == [200] * EPISODES
    assert (pushed.env, pushed.seed) == ("pendulum", SEED)


def test_more_episodes_begin_with_the_same(pushed, monkeypatch):
    monkeypatch.setattr("offing.online.play.TOGETHER", {"gymnax": 2})  # chunks of 2, the last one half empty
    told = []
    more = play(PUSH, PENDULUM, "gymnax:Pendulum-v1", 5, SEED, progress=lambda *what: told.append(what))
    np.testing.assert_allclose(more.returns[:EPISODES], pushed.returns, rtol=1e-4)
    assert len({*more.returns.tolist()}) == 5
    assert told == [("play", 2, 5), ("play", 4, 5), ("play", 5, 5)]


def test_always_left_falls_early():
    """Every step upright earns 1, so that return and value are the length's own."""
    played = play(LEFT, CARTPOLE, "CartPole-v1", 7)
    assert played.returns.tolist() == played.lengths.tolist()
    assert played.lengths.min() > 7
    assert played.lengths.max() < 12
    np.testing.assert_allclose(played.values, (1 - 0.9**played.lengths) / (1 - 0.9), rtol=1e-5)
    again = play(LEFT, CARTPOLE, "gymnasium:CartPole-v1", 7)
    assert again.returns.tolist() == again.lengths.tolist()
    assert again.lengths.min() > 7
    assert again.lengths.max() < 12


def test_a_pool_plays_as_each_alone(pushed):
    other = Policy(np.array([-0.5], np.float32), (), steady)
    both = play_pool([other, PUSH], PENDULUM, "pendulum", EPISODES, SEED)
    for mine, alone in zip(both, [play(other, PENDULUM, "pendulum", EPISODES, SEED), pushed], strict=True):
        np.testing.assert_allclose(mine.returns, alone.returns, rtol=1e-4)
        np.testing.assert_allclose(mine.values, alone.values, rtol=1e-4)
        assert mine.lengths.tolist() == alone.lengths.tolist()


@pytest.mark.parametrize(("ends", "steps"), [(3, 3), (100, 7)])
def test_it_sees_what_it_did_and_earned(ends, steps):
    """Any other action than the right count, of what was sent and earned, would earn -1."""
    returns, values, lengths = rollouts(jax.random.split(jax.random.key(0), 5), COUNTING, 0.5, toy(ends), False)
    earned = np.arange(1, steps + 1)
    np.testing.assert_allclose(returns, [earned.sum()] * 5)
    np.testing.assert_allclose(values, [np.dot(0.5 ** np.arange(steps), earned)] * 5)
    assert lengths.tolist() == [steps] * 5


def test_it_sees_the_same_in_gymnasium(monkeypatch):
    if "Counter-v0" not in gymnasium.registry:
        gymnasium.register("Counter-v0", Counter)
    monkeypatch.setattr("offing.online.play.TOGETHER", {"gymnasium": 2})  # copies are used again
    played = play(COUNTING, COUNTER, "Counter-v0", 3)
    assert played.returns.tolist() == [6] * 3
    assert played.values.tolist() == [1 + 2 / 2 + 3 / 4] * 3
    assert played.lengths.tolist() == [3] * 3


def test_gymnax_and_gymnasium_pendulums_agree(pushed):
    """One state, one step, both: the same reward; and a damped pendulum earns about the same in both."""
    ours = play(DAMPED, PENDULUM, "Pendulum-v1", 64)
    theirs = play(DAMPED, PENDULUM, "gymnasium:Pendulum-v1", 8)
    assert theirs.lengths.tolist() == [200] * 8
    gap = ours.returns.mean() - theirs.returns.mean()
    assert abs(gap) < 4 * ours.returns.std() * (1 / 64 + 1 / 8) ** 0.5
    true = gymnasium.make("Pendulum-v1")
    env = envs.make("pendulum")
    _, obs = env.reset(at_start(SEED, 0))
    true.reset(seed=0)
    true.unwrapped.state = np.array([np.arctan2(obs[1], obs[0]), obs[2]], float)
    total = sum(float(true.step(PUSH.params)[1]) for _ in range(200))
    np.testing.assert_allclose(pushed.returns[0], total, rtol=1e-2)


def test_it_samples_only_if_asked():
    policy = Policy(np.zeros(1, np.float32), (), noisy)
    best, same = (play(policy, PENDULUM, "pendulum", 2, SEED) for _ in range(2))
    drawn = play(policy, PENDULUM, "pendulum", 2, SEED, sampled=True)
    np.testing.assert_array_equal(best.returns, same.returns)
    assert (drawn.returns != best.returns).all()


@pytest.mark.parametrize(
    ("policy", "task", "name", "why"),
    [
        (PUSH, PENDULUM, "cartpole", "takes 2 choices, the policy's log has 1 amounts in [-2, 2]"),
        (PUSH, PENDULUM, "gymnasium:CartPole-v1", "takes 2 choices, the policy's log has 1 amounts in [-2, 2]"),
        (LEFT, CARTPOLE, "Acrobot-v1", "takes 3 choices, the policy's log has 2 choices"),
        (
            PUSH,
            PENDULUM._replace(actions=Box((-1.0,), (1.0,))),
            "pendulum",
            "[-2, 2], the policy's log has 1 amounts",
        ),
        (
            Policy(np.ones(4, np.float32), (), damping),
            PENDULUM,
            "pendulum",
            "its observations, 3 numbers, do not fit",
        ),
        (LEFT, PENDULUM, "Pendulum-v1", "the policy's actions have shape (2,)"),
        (LEFT, CARTPOLE, "Breakout-MinAtar", "observations have shape (10, 10, 4)"),
        (
            LEFT,
            CARTPOLE,
            "nonesuch",
            "no such environment; there are offing:coldstore, cartpole, pendulum, brax-halfcheetah, ",
        ),
        (LEFT, CARTPOLE, "gymnax:nonesuch", "gymnax has no such environment"),
        (LEFT, CARTPOLE, "gymnasium:nonesuch-v0", "gymnasium cannot make it"),
        (LEFT, CARTPOLE, "gymnasium:Taxi-v4", "observations are Discrete(500)"),
        (LEFT, CARTPOLE, "brax-nonesuch", "there are brax-halfcheetah, brax-hopper, brax-walker2d"),
    ],
)
def test_what_does_not_fit_is_refused(policy, task, name, why):
    if name.startswith("brax"):
        pytest.importorskip("brax")
    with pytest.raises(BadInput) as caught:
        play(policy, task, name, 2)
    line = str(caught.value)
    assert line.startswith(f"{name}: ")
    assert why in line
    assert "\n" not in line


def test_no_episodes_and_missing_packages_are_refused(monkeypatch):
    with pytest.raises(BadInput, match=r"^0 episodes: "):
        play(LEFT, CARTPOLE, "cartpole", 0)
    with pytest.raises(BadInput, match="gymnasium's environments are no pure functions"):
        envs.make("gymnasium:CartPole-v1")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in ("cartpole", "brax-hopper", "brax:hopper", "gymnasium:CartPole-v1", "CartPole-v1"):
        with pytest.raises(BadInput, match=r"^(gymnax|brax|gymnasium) is not installed; .*offing\[envs\]"):
            play(LEFT, CARTPOLE, name, 2)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pendulum", ("gymnax", "Pendulum-v1")),
        ("gymnax:pendulum", ("gymnax", "Pendulum-v1")),
        ("CartPole-v1", ("gymnax", "CartPole-v1")),
        ("gymnasium:CartPole-v1", ("gymnasium", "CartPole-v1")),
        ("HalfCheetah-v5", ("gymnasium", "HalfCheetah-v5")),
        ("brax-hopper", ("brax", "hopper")),
        ("brax:hopper", ("brax", "hopper")),
        ("nonesuch", None),
        ("gymnax:", None),
    ],
)
def test_names_mean_a_package(name, found):
    assert envs.source(name) == found


@pytest.mark.parametrize("name", ["MountainCarContinuous-v0", "FourRooms-misc", "PointRobot-misc"])
def test_other_gymnax_environments_have_the_same_form(name):
    env = envs.make(name)
    state, obs = jax.eval_shape(env.reset, jax.random.key(0))
    action = jax.ShapeDtypeStruct((env.task.actions.width,), jnp.float32)
    _, after, reward, ended = jax.eval_shape(env.step, jax.random.key(0), state, action)
    assert (after.shape, after.dtype) == (obs.shape, jnp.float32)
    assert (reward.shape, reward.dtype, ended.shape, ended.dtype) == ((), jnp.float32, (), bool)


@pytest.mark.parametrize(
    ("name", "width", "actions"), [("hopper", 11, 3), ("walker2d", 17, 6), ("halfcheetah", 17, 6)]
)
def test_brax_by_its_shapes(name, width, actions):
    """Vmapped over 5; not compiled, which takes from 12 seconds to a minute."""
    pytest.importorskip("brax")
    env = envs.make(f"brax-{name}")
    assert env is envs.make(f"brax:{name}")  # so that its program is compiled once
    assert env.task == Task(1000, 0.998, Box((-1.0,) * actions, (1.0,) * actions))
    keys = jax.random.split(jax.random.key(0), 5)
    state, obs = jax.eval_shape(jax.vmap(env.reset), keys)
    action = jax.ShapeDtypeStruct((5, actions), jnp.float32)
    again, after, reward, ended = jax.eval_shape(jax.vmap(env.step), keys, state, action)
    assert obs.shape == after.shape == (5, width)
    assert (reward.shape, ended.shape, ended.dtype) == ((5,), (5,), bool)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), again) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), state
    )


def test_the_hopper_falls():
    """A steady push topples it; every step on its foot earns about 1, and speed."""
    pytest.importorskip("brax")
    task = Task(1000, 0.5, Box((-1.0,) * 3, (1.0,) * 3))
    played = play(Policy(np.full(3, 0.6, np.float32), (), steady), task, "brax-hopper", 2)
    assert ((played.lengths > 10) & (played.lengths < 60)).all()
    assert (np.abs(played.returns / played.lengths - 1) < 1).all()
    assert (np.abs(played.values - 2) < 1).all()  # the first steps, half of each before
    assert played.returns[0] != played.returns[1]


def test_the_summary_says_where_the_return_fell():
    played = Played(np.array([1.0, 3.0]), np.array([0.5, 1.5]), np.array([4, 6]), "cartpole", 5)
    found = summary(played, {"interval": (0.0, 2.5), "level": 0.9, "median": 0.4, "more": 1})
    assert found.pop("versions").keys() == {"gymnax"}
    assert found == {
        "env": "cartpole",
        "episodes": 2,
        "return": {"mean": 2.0, "stderr": pytest.approx(1.0), "min": 1.0, "max": 3.0},
        "value": {"mean": 1.0, "stderr": pytest.approx(0.5)},
        "length": {"mean": 5.0},
        "predicted": {"interval": [0.0, 2.5], "level": 0.9, "median": 0.4},
        "inside": True,
        "seed": 5,
    }
    assert summary(played, {"interval": (0.5, 1.5), "level": 0.9, "median": 1.0})["inside"] is False
    alone = summary(Played(played.returns[:1], played.values[:1], played.lengths[:1], "cartpole"))
    assert alone["value"] == {"mean": 0.5, "stderr": None}
    assert "predicted" not in alone
    assert "inside" not in alone
