"""Planners that imagine: the worlds they walk through, the rows that they keep, and what doubt is good for."""

from dataclasses import replace
from functools import partial

import imagined as by_hand
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing.hypers import stack
from offing.nets import Layer
from offing.planner import _dream, combo, mopo, morel, space
from offing.planner._parts import Scale
from offing.posterior.walk import Place, disagreement, expected, fixed, halting, penalised
from offing.types import Box, Dataset, Discrete, Moments, Posterior, Seen, Task, Transition

BOX = Box((-0.3,), (0.3,))
M, COPIES, T, LOGGED = 3, 5, 7, 41
HYPERS = _dream.Hypers(
    steps=44,
    every=11,
    envs=M * COPIES,
    segment=T,
    retain=3,
    batch_size=13,
    width=4,
    depth=1,
    critics=2,
    length=3.0,
)


def log_of(actions, low=-1.0, high=0.0) -> Dataset:
    """Steps from states between low and high, each state unlike all others."""
    rng = np.random.default_rng(0)
    obs = rng.permutation(np.linspace(low, high, LOGGED)).astype(np.float32)[:, None]
    action = np.eye(actions.n)[rng.integers(0, actions.n, LOGGED)] if isinstance(actions, Discrete) else None
    if action is None:
        action = rng.uniform(actions.low, actions.high, (LOGGED, actions.width))
    action = action.astype(np.float32)
    move = action[:, -1:] if isinstance(actions, Box) else 0.3 * (action[:, 1:] - action[:, :1])
    steps = Transition(obs, action, move[:, 0], obs + move, action, np.zeros(LOGGED, np.float32))
    return Dataset(steps, obs[:5], np.zeros(LOGGED, np.int32), np.asarray(LOGGED, np.int32))


def worlds_of(say, actions=BOX, theta=(-1.0, 0.0, 2.0), edges=(1.0, 0.3), **rest) -> Posterior:
    high = np.array(edges)
    return by_hand.worlds(say, jnp.asarray(theta), np.zeros((1, 1)), -high, high, Task(20, 0.9, actions), **rest)


def taken(step, obs=None, push=None):
    """Next states, rewards and ends of one step of the worlds [M, C, ...]."""
    obs, push = OBS if obs is None else obs, PUSH if push is None else push
    place, drawn = step(jax.random.key(0), Place(obs, ()), push)
    np.testing.assert_array_equal(place.obs, drawn.next_obs)
    return drawn.next_obs, drawn.reward, drawn.terminated


# ---- worlds in which doubt has a price


def ramp(theta, obs, action):
    """The state moves by the action, which is also the reward; worlds differ the more the further right."""
    push = action.sum(-1, keepdims=True)
    mean = jnp.concatenate([push, push + theta * obs], -1)
    std = jnp.concatenate([jnp.abs(theta) * obs, 0 * obs + 0.4], -1)
    return Moments(mean, jnp.abs(std), jnp.zeros(mean.shape[:-1]))


OBS = jnp.array([[[0.1], [0.6]], [[0.1], [0.6]], [[0.1], [0.6]]])  # [M, C, S]
PUSH = jnp.array([[[0.05], [-0.05]], [[0.05], [-0.05]], [[0.05], [-0.05]]])


def test_a_penalty_is_the_largest_norm_over_worlds_in_the_logs_units():
    worlds = worlds_of(ramp)
    _, plain, _ = taken(fixed(worlds))
    after, reward, ended = taken(penalised(worlds, 2.0, raw=True))
    doubt = np.hypot([2 * 0.1, 2 * 0.6], 0.4)  # of the world with theta 2, whichever world it is that steps
    np.testing.assert_allclose(reward, plain - 2.0 * doubt, rtol=1e-5)
    np.testing.assert_allclose(after, OBS + PUSH, rtol=1e-6)
    assert not ended.any()


def test_without_units_a_penalty_does_not_hang_on_what_columns_are_measured_in():
    worlds = worlds_of(ramp)
    _, plain, _ = taken(fixed(worlds))
    _, reward, _ = taken(penalised(worlds, 2.0))
    doubt = np.hypot(np.array([0.2, 1.2]) / 2.0, 0.4 / 0.6)  # the ranges are 2 and 0.6 wide
    np.testing.assert_allclose(reward, plain - 2.0 * 0.6 * doubt, rtol=1e-5)

    def metric(theta, obs, action):  # the same worlds, their state in thousandths
        said = ramp(theta, obs / 1000, action)
        unit = jnp.array([1000.0, 1.0])
        return Moments(said.mean * unit, said.std * unit, said.terminated)

    edge = np.array([1000.0, 0.3])
    same = by_hand.changed(worlds, say=metric, low=-edge, high=edge)
    np.testing.assert_allclose(taken(penalised(same, 2.0), OBS * 1000)[1], reward, rtol=1e-5)


def test_worlds_halt_where_two_are_too_far_apart_at_one_input():
    worlds = worlds_of(ramp)
    # theta from -1 to 2 spreads rewards by 3 * obs; their range is 0.6 wide: 0.5 at obs 0.1 and 3 at obs 0.6
    every = expected(worlds, Place(OBS, ()), PUSH)
    assert every.mean.shape == (M, M, 2, 2)  # every world is asked of every step, whichever world takes it
    apart = disagreement(worlds, every.mean)
    np.testing.assert_allclose(apart, np.broadcast_to([0.5, 3.0], (M, 2)), rtol=1e-5)
    _, plain, _ = taken(fixed(worlds))
    after, reward, ended = taken(halting(worlds, 2.9, -7.0))
    np.testing.assert_array_equal(ended, np.broadcast_to([False, True], (M, 2)))
    np.testing.assert_allclose(reward[:, 0], plain[:, 0])
    np.testing.assert_allclose(reward[:, 1], np.full(M, -0.3 - 7.0), rtol=1e-6)
    np.testing.assert_allclose(after, OBS + PUSH, rtol=1e-6)
    assert not taken(halting(worlds, 3.1, -7.0))[2].any()


def test_where_the_log_ends_these_worlds_end_as_well():
    bounded = worlds_of(ramp, margin=0.0, terminates=True)
    out = OBS.at[:, 1].set(0.97)  # 0.97 + 0.05 is beyond 1, where the log ends
    for step in (partial(penalised, coefficient=0.0), partial(halting, threshold=jnp.inf, offset=-7.0)):
        after, reward, ended = taken(step(bounded), out, jnp.abs(PUSH))
        np.testing.assert_array_equal(ended, np.broadcast_to([False, True], (M, 2)))
        np.testing.assert_allclose(after[:, 1], np.ones((M, 1)))
        np.testing.assert_allclose(reward[:, 1], np.full(M, -0.3), rtol=1e-6)


def test_a_survey_measures_the_log_and_zero_pessimism_halts_nowhere():
    data, worlds = log_of(BOX, low=0.0, high=0.5), worlds_of(ramp)
    most = float(jax.jit(morel.survey)(jax.random.key(0), data, worlds))
    assert 0.4 * 5 < most <= 0.5 * 5 + 1e-5  # 3 * obs / 0.6, at a state near the right end
    assert morel.survey(jax.random.key(0), data, replace(worlds, theta=jnp.zeros(1))) == 0
    step = halting(worlds, jnp.asarray(most) / jnp.asarray(0.0), -7.0)
    assert not taken(step, OBS * 100)[2].any()


# ---- rollouts


def brink(theta, obs, action):
    """Steps to the right of a width of their own in every world; beyond 0.5 the episode ends."""
    mean = jnp.concatenate([jnp.full_like(obs, 0.1) * theta, obs], -1)
    return Moments(mean, 0 * mean, (obs[..., 0] + 0.1 * theta > 0.5).astype(jnp.float32))


@pytest.fixture(scope="module")
def imagined():
    """Two refreshes of rollouts of at most 3 and at most 100 steps, under one program: rows [2, 2T, M, C, F]."""
    data = log_of(BOX, low=-0.2, high=0.5)
    worlds = worlds_of(brink, theta=(1.0, 2.0, 3.0), edges=(9.0, 9.0))
    planner = _dream.dreaming(_dream.Hypers, lambda h, w, _: fixed(w))

    def run(hypers, key):
        state = planner.init(key, hypers, data, worlds)
        unit = Scale(jnp.zeros(1), jnp.ones(1), jnp.ones(()))  # rows as the world has them
        state = state._replace(sac=state.sac._replace(scale=unit))
        found = []
        for k in jax.random.split(key, 2):
            where, rows = _dream.imagine(k, hypers, state, data, fixed(worlds), BOX)
            state = state._replace(where=where)
            found.append(rows.reshape(T, M, COPIES, -1))
        return jnp.concatenate(found)

    many = stack([HYPERS, replace(HYPERS, length=100.0)])
    return data, np.asarray(jax.jit(jax.vmap(run, (0, None)))(many, jax.random.key(0)))


def test_rollouts_start_at_logged_states_and_end_where_episodes_end(imagined):
    data, both = imagined
    for longest, rows in zip((3, 100), both, strict=True):
        obs, after, done = rows[..., 0], rows[..., 2], rows[..., -1]
        starts = np.isclose(obs[..., None], data.steps.obs[:, 0], atol=1e-6).any(-1)
        age = np.zeros((M, COPIES), int)
        seen = set()
        for t in range(2 * T):
            assert starts[t][age == 0].all()
            np.testing.assert_allclose(after[t], obs[t] + 0.1 * np.array([[1], [2], [3]]), atol=1e-5)
            np.testing.assert_array_equal(done[t] > 0, after[t] > 0.5)
            age = age + 1
            over = (done[t] > 0) | (age >= longest)
            if t + 1 < 2 * T:  # nothing follows an end; everything else goes on, over refreshes too
                np.testing.assert_allclose(obs[t + 1][~over], after[t][~over], atol=1e-6)
            seen |= set(age[over].tolist())
            age = np.where(over, 0, age)
        assert 0 < done.mean() < 1
        assert max(seen) == 3 if longest == 3 else max(seen) > 3


def test_no_state_beyond_an_end_is_ever_stepped_from(imagined):
    assert (imagined[1][..., 0] <= 0.5).all()


# ---- the ring


def test_a_ring_holds_the_last_refreshes_and_draws_from_no_others():
    data = log_of(BOX)
    ring = _dream.empty(HYPERS, data, M)
    each = ring.rows.shape[1]
    assert each == T * M * COPIES
    write, pick = jax.jit(_dream.write), jax.jit(lambda key, ring: _dream.pick(key, ring, (400,)))
    for turn in range(1, 8):
        ring = write(ring, jnp.full(ring.rows.shape[1:], float(turn)))
        held = set(range(max(1, turn - HYPERS.retain + 1), turn + 1))
        if turn >= HYPERS.retain:
            assert set(np.unique(ring.rows)) == held
        drawn = np.asarray(pick(jax.random.key(turn), ring))
        assert set(np.unique(drawn)) == held  # 400 draws of at most 3: each is among them


def test_rows_come_back_as_they_were_packed():
    key = jax.random.split(jax.random.key(0), 5)
    steps = Transition(
        *(jax.random.normal(key[i], (4, *shape)) for i, shape in enumerate(((3,), (2,), (), (3,)))),
        jnp.zeros((4, 2)),
        jnp.ones(4),
    )
    back = _dream.unpack(_dream.pack(steps), 3)
    for name in ("obs", "action", "reward", "next_obs", "done"):
        np.testing.assert_array_equal(getattr(back, name), getattr(steps, name))


def test_minibatches_are_logged_by_their_share_and_imagined_otherwise():
    data = log_of(BOX)
    ring = _dream.write(_dream.empty(HYPERS, data, M), jnp.full((T * M * COPIES, 5), 77.0))
    scale = Scale(jnp.zeros(1), jnp.ones(1), jnp.ones(()))
    mixed = jax.jit(jax.vmap(lambda h: _dream.mixed(jax.random.key(0), h, ring, data, scale, BOX)))
    many = mixed(stack([replace(HYPERS, share=share) for share in (0.0, 0.3, 1.0)]))
    assert many.shape == (3, HYPERS.every, HYPERS.batch_size, 5)
    imagined = (np.asarray(many) == 77.0).all(-1).mean((1, 2))
    np.testing.assert_allclose(imagined, [1.0, 9 / 13, 0.0])  # 0.3 of 13 are 4 rows
    real = np.asarray(many)[2].reshape(-1, 5)
    assert np.isclose(real[:, None, 0], data.steps.obs[:, 0]).any(1).all()
    np.testing.assert_allclose(real[:, 2], real[:, 0] + 0.3 * real[:, 1], atol=1e-5)  # actions in units of the box


# ---- the learner


@pytest.mark.parametrize("actions", [BOX, Discrete(2)], ids=["box", "choices"])
def test_an_update_is_a_refresh_and_so_many_gradient_steps(actions):
    data = log_of(actions)
    worlds = worlds_of(ramp, actions)
    planner, hypers = morel.planner, morel.Hypers(**{f: getattr(HYPERS, f) for f in ("every", "envs", "segment")})
    hypers = replace(hypers, steps=44, retain=3, batch_size=13, width=4, depth=1, critics=2)
    assert hypers.updates == 4
    state = jax.jit(planner.init)(jax.random.key(0), hypers, data, worlds)
    after, metrics = jax.jit(planner.update)(jax.random.key(1), hypers, state, data, worlds)
    assert (int(after.sac.count), int(after.ring.turn)) == (11, 1)
    assert all(jnp.shape(value) == () and jnp.isfinite(value) for value in metrics.values())
    assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)
    policy = planner.policy(hypers, after, worlds.task)
    seen = Seen(jnp.zeros((5, 1)), jnp.zeros((5, actions.width)), jnp.zeros(5), jnp.ones(5))
    action = policy.act(policy.params, (), seen, jax.random.key(2))[0]
    assert action.shape == (5, actions.width)
    blank = planner.blank(hypers, 1, worlds.task)
    assert jax.tree.map(jnp.shape, blank.params) == jax.tree.map(jnp.shape, policy.params)


def test_combo_makes_less_of_imagined_rows_and_more_of_logged_ones():
    critic = (Layer(jnp.array([[[1.0, 0.0]], [[2.0, 0.0]]]), jnp.zeros((2, 1))),)  # they say obs and 2 obs
    hypers = combo.Hypers(batch_size=4, share=0.5, conservative=0.7)
    obs = jnp.array([[1.0], [2.0], [5.0], [7.0]])  # the first two are logged
    b = Transition(obs, obs, obs[:, 0], obs, obs, obs[:, 0])
    target = jnp.array([1.0, 2.0, 5.0, 7.0])  # the first critic is right, the second misses by as much
    loss, q = combo.critic_loss(critic, hypers, b, target, BOX)
    np.testing.assert_allclose(loss, (1 + 4 + 25 + 49) / 4 + 0.7 * (3 * 6.0 - 3 * 1.5), rtol=1e-6)
    slope = jax.grad(lambda params: combo.critic_loss(params, hypers, b, target, BOX)[0])(critic)[0]
    np.testing.assert_allclose(slope.bias[0], [0.0], atol=1e-6)  # the first errs nowhere; all its values alike: no
    np.testing.assert_allclose(slope.weight[0, 0, 0], 0.7 * (6.0 - 1.5), rtol=1e-5)  # but imagined ones less: yes
    one = lambda h: combo.critic_loss(critic, h, b, target, BOX)[0]
    np.testing.assert_allclose(one(replace(hypers, conservative=0.0)), (1 + 4 + 25 + 49) / 4)
    assert jnp.isfinite(one(replace(hypers, share=0.0)))
    assert q.shape == (2, 4)


@pytest.mark.parametrize(("name", "count"), [("mopo", 6), ("morel", 24)])
def test_the_papers_grids_are_one_program(name, count):
    settings = space(name, "paper")
    assert len(settings) == count
    assert len({jax.tree.structure(setting) for setting in settings}) == 1
    assert {(s.critics, s.width, s.depth, s.batch_size, s.every, s.retain) for s in settings} == {
        (10, 256, 3, 256, 1000, 5)
    }


def test_so_many_updates_are_so_many_gradient_steps():
    for setting in space("mopo", "default", updates=100):
        assert (setting.steps, setting.every, setting.updates) == (100, 100, 1)
    for setting in space("combo", "default", updates=1000, width=8):
        assert (setting.steps, setting.updates * setting.every, setting.width) == (1000, 1000, 8)


# ---- a cliff that the log never visits


def beyond(theta, obs, action):
    """Going right pays, and the log ends at 0: beyond it, worlds know less and less and disagree more and more."""
    push, far = action.sum(-1, keepdims=True), jax.nn.relu(obs)
    mean = jnp.concatenate([push, push + 0.1 * theta * far], -1)
    return Moments(mean, jnp.concatenate([0.01 + far, 0.01 + 0 * far], -1), jnp.zeros(mean.shape[:-1]))


CLIFF = {
    "steps": 1500,
    "every": 50,
    "envs": 30,
    "segment": 4,
    "retain": 5,
    "batch_size": 48,
    "width": 24,
    "depth": 2,
    "critics": 2,
    "length": 6.0,
    "lr": 3e-3,
    "discount": 0.9,
    "polyak": 0.05,
}


@pytest.mark.parametrize(
    ("planner", "axes"),
    [
        (mopo.planner, [{"penalty": 0.0}, {"penalty": 10.0}]),
        (morel.planner, [{"pessimism": 0.0, "offset": -5.0}, {"pessimism": 1.0, "offset": -5.0}]),
    ],
    ids=["mopo", "morel"],
)
def test_pessimists_stay_where_the_log_is_and_optimists_fall(planner, axes):
    data, worlds = log_of(BOX), worlds_of(beyond)

    def run(hypers, key):
        k1, k2 = jax.random.split(key)
        state = planner.init(k1, hypers, data, worlds)
        one = lambda state, key: (planner.update(key, hypers, state, data, worlds)[0], None)
        state, _ = jax.lax.scan(one, state, jax.random.split(k2, hypers.updates))
        policy = planner.policy(hypers, state, worlds.task)

        def walk(obs, _):
            seen = Seen(obs, jnp.zeros((9, 1)), jnp.zeros(9), jnp.zeros(9))
            obs = obs + policy.act(policy.params, (), seen, None)[0]
            return obs, obs

        return jax.lax.scan(walk, jnp.linspace(-1.0, 0.0, 9)[:, None], None, 15)[1]  # [T, 9, 1]

    many = stack([planner.Hypers(**CLIFF, **axis) for axis in axes])
    optimist, pessimist = jax.jit(jax.vmap(run, (0, None)))(many, jax.random.key(0))
    assert optimist[-1].min() > 2.0
    assert pessimist.max() < 0.3
    assert pessimist[-1].min() > -0.6  # and it did go right, as far as the log shows
