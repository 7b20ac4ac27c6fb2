"""What kind of number each column is; that worlds draw it as the log has it; and what they remember."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from imagined import fitted

from offing import load
from offing.data import Log, Split
from offing.posterior import _calibrate, _history, _kinds, _world
from offing.posterior._kinds import ending_edges
from offing.posterior._world import Support, supported
from offing.posterior.models import ensemble
from offing.posterior.walk import Place, fixed
from offing.types import Box, Dataset, Posterior, Task, Transition

TASK = Task(horizon=20, discount=0.9, actions=Box((-1.0,), (1.0,)))
HASTE = {"xla_backend_optimization_level": 0}
ROWS, LENGTH = 1_600, 20


def log_of(obs, after, reward, done=None, action=None) -> Dataset:
    rows = len(obs)
    single = lambda a: np.asarray(a, np.float32)
    action = single(np.random.default_rng(1).uniform(-1, 1, (rows, 1)) if action is None else action)
    done = np.zeros(rows) if done is None else done
    steps = Transition(single(obs), action, single(reward), single(after), action, single(done))
    return Dataset(steps, single(obs)[::LENGTH], np.arange(rows) // LENGTH, np.asarray(rows, np.int32))


@pytest.fixture(scope="module")
def mixed() -> Dataset:
    """Columns of every kind: switch, constant, set-point, force, speed with a limit, count, amount."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=ROWS + 1)) / 20
    stays = np.repeat(rng.uniform(-5, 5, ROWS // 8 + 2), 8)[3 : ROWS + 4]  # jumps every eighth row
    force = np.where(rng.random(ROWS + 1) < 0.7, 0.0, rng.uniform(2, 9, ROWS + 1))
    columns = (
        (rng.random(ROWS + 1) < 0.3).astype(float),
        np.full(ROWS + 1, 4.0),
        stays,
        force,
        np.minimum(rng.normal(size=ROWS + 1), 2.0),
        rng.poisson(200, ROWS + 1),
        walk,
    )
    whole = np.stack(columns, 1)
    return log_of(whole[:-1], whole[1:], rng.normal(size=ROWS) + whole[1:, 0])


def test_every_kind_of_column_is_found(mixed):
    kinds, values, _ = _kinds.kinds_of(mixed)
    assert kinds.width == 7
    assert kinds.choices == ((0, 2),)
    assert kinds.still == (1,)
    assert kinds.clocks == ()
    assert kinds.gates == ((2, "stays"), (3, "usual"))
    assert kinds.whole == (5,)
    assert kinds.walls
    assert not kinds.terminates
    np.testing.assert_array_equal(values.levels, [[0, 1]])
    assert values.usual[1] == 0.0
    assert values.walls[1, 4] == np.float32(2.0)
    assert np.isinf(values.walls[:, 6]).all()
    assert np.isinf(values.walls[0, 4])


def test_rows_are_told_in_terms_of_their_kinds(mixed):
    _, _, rows = _kinds.kinds_of(mixed)
    steps = mixed.steps
    np.testing.assert_array_equal(rows.chosen[:, 0], steps.next_obs[:, 0])
    np.testing.assert_array_equal(rows.moved[:, 0], steps.next_obs[:, 2] != steps.obs[:, 2])
    np.testing.assert_array_equal(rows.moved[:, 1], steps.next_obs[:, 3] != 0)
    assert not rows.amount[:, :2].any()
    np.testing.assert_array_equal(rows.amount[:, 2:4], rows.moved)
    assert rows.amount[:, 4:].all()
    np.testing.assert_array_equal(rows.held[:, 4], steps.next_obs[:, 4] == np.float32(2.0))
    assert not rows.held[:, -1].any()


def test_what_follows_for_certain_is_found_and_only_that():
    rng = np.random.default_rng(0)
    rest = lambda rows, tries=True: _kinds.Others(
        np.arange(rows) // 50, rng.normal(size=(rows, 1)) if tries else np.zeros((rows, 1))
    )
    hour = np.arange(600) % 24 / 24
    table = _kinds.successor(hour, np.roll(hour, -1), rest(600))
    np.testing.assert_allclose(table, np.stack([np.arange(24) / 24, (np.arange(24) + 1) % 24 / 24], 1), atol=1e-12)
    assert _kinds.successor(hour, hour, rest(600)).shape == (0, 2)  # it never changes
    assert (
        _kinds.successor(hour, np.roll(hour, -1), rest(600, tries=False)) is None
    )  # what if something were done?
    assert _kinds.successor(hour * 1e-8, np.roll(hour, -1) * 1e-8, rest(600)) is not None  # whatever the unit
    switch = 1e-8 * rng.integers(0, 2, 601)
    assert _kinds.successor(switch[:-1], switch[1:], rest(600)) is None
    late = np.roll(hour, -1)
    late[300] = hour[300]  # it stood still once
    assert _kinds.successor(hour, late, rest(600)) is None
    assert (
        _kinds.successor(np.arange(600.0), np.arange(600.0) + 1, rest(600)) is None
    )  # a date: nothing follows twice
    long = np.arange(9_000) % (_kinds.CLOCK + 1)
    assert _kinds.successor(long, np.roll(long, -1), rest(9_000)) is None
    assert _kinds.successor(rng.integers(0, 3, 600), rng.integers(0, 3, 600), rest(600)) is None


def test_what_comes_to_rest_is_no_clock():
    """Before it does, anything follows once on anything; at rest the same follows on the same, for a long time."""
    rng, obs, after = np.random.default_rng(1), [], []
    for _ in range(50):
        x = rng.normal()
        for step in range(40):
            new = 0.8 * x + rng.normal() if step < 7 else 0.0
            obs.append(x)
            after.append(new)
            x = new
    others = _kinds.Others(np.repeat(np.arange(50), 40), rng.normal(size=(2_000, 1)))
    assert _kinds.successor(np.array(obs), np.array(after), others) is None


def test_a_count_goes_on_beyond_what_was_counted():
    table = np.array([[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]])
    block = _kinds.Block(1, (), (), clocks=((0, 3),))
    values = _kinds.Values(*(np.zeros((2, 1)), np.zeros(0), np.zeros((0, 0)), np.ones(1), np.zeros((2, 1)), table))
    before = jnp.array([[1.0], [3.0], [7.0]])
    np.testing.assert_allclose(_world.certain(block, values, before, before)[:, 0], [2.0, 4.0, 8.0])


def test_a_clock_of_large_numbers_reads_small_where_the_reward_is_learned():
    """Seconds of the day: unscaled they would be all that a net sees, and its prior too."""
    rows = 400
    seconds = np.arange(rows + 1) % 24 * 3_600.0
    level = np.random.default_rng(0).normal(size=rows + 1)
    both = np.stack([seconds, level], 1)
    data = log_of(both[:-1], both[1:], level[1:])
    prepared = ensemble.prepare(data, TASK)
    assert prepared.shape.clocks == ((0, 24),)
    scale = learned(data).theta.scale
    change = ((both[1:] - both[:-1]) - np.asarray(scale.out_mean[0, :2])) / np.asarray(scale.out_std[0, :2])
    assert np.abs(change).max() < 10


def test_worlds_know_what_follows_for_certain():
    """An hour that jumps back, a machine's number, a count of steps, and a level that the hour moves."""
    rng, obs, after = np.random.default_rng(3), [], []
    for episode in range(40):
        machine, hour, level = episode % 5 * 1e-3, rng.integers(24), rng.normal()
        for step in range(LENGTH):
            new = 0.9 * level + np.sin(hour / 4) + 0.1 * rng.normal()
            obs.append([hour, machine, step, level])
            hour, level = (hour + 1) % 24, new
            after.append([hour, machine, step + 1, level])
    obs, after = np.array(obs), np.array(after)
    data = log_of(obs, after, after[:, 3])
    kinds, _, rows = _kinds.kinds_of(data)
    assert (kinds.still, kinds.clocks, kinds.choices) == ((1,), ((0, 24), (2, LENGTH)), ())
    assert not rows.amount[:, :3].any()
    worlds = learned(data)
    made, steps = imagined(worlds, data)
    np.testing.assert_allclose(made.next_obs[..., :3] - steps.next_obs[:, :3], 0.0, atol=1e-6)
    expected = jax.vmap(worlds.moments, (0, None, None, None))(worlds.theta, (), steps.obs, steps.action).mean
    np.testing.assert_allclose(expected[..., :3] - (steps.next_obs - steps.obs)[:, :3], 0.0, atol=1e-5)


def test_few_rows_tell_no_kinds_and_rewards_have_kinds_too():
    rng = np.random.default_rng(2)
    obs = rng.normal(size=(60, 2))
    switch = np.c_[rng.integers(0, 4, 60), obs[:, 0]]
    assert (
        _kinds.kinds_of(log_of(switch, switch, obs[:, 0]))[0].choices == ()
    )  # four values in 60 rows may be chance
    paid = (rng.random(400) < 0.1).astype(float)
    wide = rng.normal(size=(400, 2))
    kinds, _, _ = _kinds.kinds_of(log_of(wide, wide + rng.normal(size=wide.shape), paid, done=paid))
    assert kinds.choices == ((2, 2),)
    assert kinds.terminates
    assert kinds.of_reward() == _kinds.Block(1, (), ((0, 2),))
    assert kinds.of_state() == _kinds.Block(2, (), ())


# ---- worlds draw columns as the log has them

HYPERS = ensemble.Hypers(
    width=24, depth=1, activation="silu", batch_size=64, updates=400, lr=1e-2, members=6, elites=6, folds=2
)


def halves(data: Dataset) -> Split:
    """Every other episode to either fold; the last ones validate and are held out."""
    episode = data.episode
    last = episode.max() + 1
    train = [np.flatnonzero((episode % 2 == f) & (episode < last - 16)) for f in (0, 1)]
    valid = np.flatnonzero((episode >= last - 16) & (episode < last - 8))
    held = np.flatnonzero(episode >= last - 8)
    size = np.array([len(t) for t in train], np.int32)
    return Split(np.stack(train).astype(np.int32), size, valid.astype(np.int32), np.int32(len(valid)), held)


def learned(data: Dataset, share=None, hypers=HYPERS):
    """Worlds of the ensemble, with chance as rows show it that each fold has not seen."""
    parts, prepared = halves(data), ensemble.prepare(data, TASK, history="none")
    run = jax.jit(lambda *args: ensemble.fit(*args, prepared.shape), compiler_options=HASTE)
    fitted = run(jax.random.key(0), hypers, data, parts, prepared.arrays)
    worlds = ensemble.posterior(fitted, hypers, prepared, data, TASK)
    other = [_rows(data, np.r_[parts.train[1 - f], parts.held]) for f in (0, 1)]
    share = np.ones(prepared.shape.width + 1) if share is None else share
    return ensemble.model.calibrate(worlds, other[::-1], other, np.asarray(share))


def _rows(data: Dataset, rows) -> Dataset:
    rows = np.sort(rows)
    steps = jax.tree.map(lambda leaf: leaf[rows], data.steps)
    return Dataset(steps, data.starts, data.episode[rows], np.asarray(len(rows), np.int32))


def imagined(worlds, data: Dataset, rows: int = 600):
    """One step of every world from logged rows, and those rows."""
    members, at = worlds.members, np.linspace(0, data.rows - 1, rows).astype(int)
    every = lambda leaf: jnp.broadcast_to(jnp.asarray(leaf)[at], (members, rows, *leaf.shape[1:]))
    place = Place(every(data.steps.obs), ())
    drawn = jax.jit(fixed(worlds))(jax.random.key(1), place, every(data.steps.action))[1]
    return jax.tree.map(np.asarray, drawn), jax.tree.map(lambda leaf: leaf[at], data.steps)


@pytest.fixture(scope="module")
def drawn(mixed):
    return imagined(learned(mixed), mixed)


def test_a_random_switch_keeps_its_frequency(drawn, mixed):
    made, _ = drawn
    assert set(np.unique(made.next_obs[..., 0])) == {0.0, 1.0}
    assert made.next_obs[..., 0].mean() == pytest.approx(mixed.steps.next_obs[:, 0].mean(), rel=0.1)
    assert set(np.unique(made.next_obs[..., 1])) == {4.0}


def test_a_column_that_jumps_jumps_as_often_and_as_far(drawn, mixed):
    made, rows = drawn
    steps = mixed.steps
    for c, stays in ((2, 1.0), (3, 0.0)):
        away = made.next_obs[..., c] - stays * rows.obs[:, c]
        logged = steps.next_obs[:, c] - stays * steps.obs[:, c]
        assert (away != 0).mean() == pytest.approx((logged != 0).mean(), rel=0.15)
        mine, theirs = np.abs(away[away != 0]), np.abs(logged[logged != 0])
        assert mine.mean() == pytest.approx(theirs.mean(), rel=0.2)
        assert mine.std() == pytest.approx(theirs.std(), rel=0.35)


def test_counts_are_whole_and_walls_hold(drawn, mixed):
    made, _ = drawn
    counts = made.next_obs[..., 5]
    np.testing.assert_array_equal(counts, np.round(counts))
    assert counts.std() == pytest.approx(mixed.steps.next_obs[:, 5].std(), rel=0.15)
    speed = made.next_obs[..., 4]
    assert speed.max() == np.float32(2.0)
    assert (speed == np.float32(2.0)).mean() == pytest.approx(
        (mixed.steps.next_obs[:, 4] == np.float32(2.0)).mean(), abs=0.04
    )


def test_columns_move_together_as_they_did(drawn, mixed):
    """The reward is the switch plus noise: drawn after the state, it knows which way that fell."""
    made, _ = drawn
    on, off = (made.reward[made.next_obs[..., 0] == value] for value in (1.0, 0.0))
    assert on.mean() - off.mean() == pytest.approx(1.0, abs=0.2)


def test_the_reward_sees_where_the_step_led():
    """What is earned is a function of the next state, and that is mostly chance: little of it is left open."""
    rng = np.random.default_rng(3)
    obs = rng.normal(size=(ROWS, 2))
    after = 0.5 * obs + rng.normal(size=obs.shape)
    data = log_of(obs, after, np.tanh(after[:, 0]))
    worlds = learned(data)
    steps = data.steps
    ask = jax.jit(
        jax.vmap(lambda theta: worlds.moments(theta, (), steps.obs, steps.action, steps.next_obs, steps.done))
    )
    left = steps.reward - np.asarray(ask(worlds.theta).mean)[..., -1].mean(0)
    assert np.mean(left**2) < 0.12 * steps.reward.var()  # the state before it explains a fifth
    made, _ = imagined(worlds, data)
    off = made.reward - np.tanh(made.next_obs[..., 0])
    assert np.mean(off**2) < 0.15 * steps.reward.var()
    assert made.next_obs.std((0, 1)) == pytest.approx(steps.next_obs.std(0), rel=0.1)


def test_the_share_of_chance_scales_what_is_drawn():
    rng = np.random.default_rng(4)
    obs = rng.normal(size=(ROWS, 2))
    data = log_of(obs, 0.5 * obs + rng.normal(size=obs.shape), obs[:, 0])
    worlds = learned(data, share=[0.25, 0.0, 1.0])
    made, rows = imagined(worlds, data)
    off = made.next_obs - 0.5 * rows.obs
    assert off[..., 0].std() == pytest.approx(0.5, abs=0.12)
    assert off[..., 1].std() < 0.25


def test_what_leaves_the_log_is_held_and_said(drawn, mixed):
    worlds = learned(mixed)
    support = jax.tree.map(lambda leaf: leaf[0], worlds.theta.support)
    width = np.asarray(support.high - support.low)[:-1]
    inside = jnp.asarray(mixed.steps.obs[:3])
    edges = jax.tree.map(lambda leaf: leaf[0], worlds.theta.values.edges)
    held, out = supported(support, edges, inside)
    np.testing.assert_array_equal(held, inside)
    assert not out.any()
    beyond = inside.at[1, 6].set(support.high[6] + 0.2 * width[6])
    held, out = supported(support, edges, beyond)
    assert out.tolist() == [False, True, False]
    assert held[1, 6] == pytest.approx(float(support.high[6] + 0.1 * width[6]), rel=1e-5)
    free, out = supported(support._replace(margin=jnp.asarray(jnp.inf)), edges, beyond)
    np.testing.assert_array_equal(free, beyond)
    assert not out.any()


def test_beyond_an_edge_where_episodes_end_a_state_has_not_left_the_log():
    support = Support(jnp.zeros(3), jnp.ones(3), jnp.asarray(0.1), jnp.array([[0.0, 1.0], [0.0, 1.0]]))
    edges = jnp.asarray([[-jnp.inf, -jnp.inf], [0.97, jnp.inf]])  # the first column ends at its top
    states = jnp.asarray([[0.5, 0.5], [1.5, 0.5], [-0.5, 0.5], [1.5, 1.5], [0.5, 1.5]])
    held, out = supported(support, edges, states)
    assert out.tolist() == [False, False, True, True, True]
    np.testing.assert_allclose(held[1], [1.1, 0.5])
    assert supported(support, edges, states, exogenous=(1,)).out.tolist() == [False, False, True, False, False]


def walk_to_a_goal(goal: float, step: Callable[[float], float]) -> Log:
    """A walk that ends at 1, where it earns `goal`; before that, what a push costs or earns."""
    rng = np.random.default_rng(0)
    rows = {name: [] for name in ("obs", "next_obs", "action", "reward", "terminated", "episode")}
    for episode in range(60):
        x = 0.0
        for _ in range(40):
            push = rng.uniform(-0.05, 0.1)
            after = x + push
            there = after > 1
            reward = goal if there else step(push)
            for name, value in zip(rows, ([x], [after], [push], reward, there, episode), strict=True):
                rows[name].append(value)
            x = after
            if there:
                break
    return load({name: np.asarray(column, np.float32) for name, column in rows.items()} | {"horizon": 40})


def test_ends_lie_at_their_edge_and_not_about_it():
    """A walk that ends at 1: worlds end it there, and never a little before, where a smooth net would."""
    log = walk_to_a_goal(1.0, lambda push: 0.0)
    worlds = fitted(ensemble.model, jax.random.key(0), HYPERS, log.data, log.task)
    low, high = np.asarray(worlds.theta.values.edges)[0][:, 0]
    assert low == -np.inf
    assert abs(high - 1) < 0.02
    near = jnp.asarray([[0.9], [0.97], [high - 0.01], [high + 0.01], [1.05]])
    theta = jax.tree.map(lambda leaf: leaf[0], worlds.theta)
    world = worlds.moments.world
    x = world.enter(theta, (), near - 0.05, jnp.full((5, 1), 0.05))
    chance = jax.nn.sigmoid(world.ending(theta, x, near))
    assert (chance[:3] < 0.02).all()
    assert (chance[3:] > 0.99).all()


def test_edges_at_which_episodes_end_are_seen_and_others_are_not():
    """A goal on the right; a wall on the left; nothing of the second column ends anything."""
    rng = np.random.default_rng(0)
    obs = rng.uniform(0, 1, (400, 2)).astype(np.float32)
    after = np.stack([np.maximum(obs[:, 0] + rng.normal(0, 0.05, 400), 0), obs[:, 1]], 1).astype(np.float32)
    goal = after[:, 0] > 0.95
    log = load(
        {"obs": obs, "next_obs": after, "action": rng.normal(size=(400, 1)), "reward": np.zeros(400)}
        | {"terminated": goal, "truncated": np.arange(400) % 10 == 9, "action_low": -3.0, "action_high": 3.0}
    )
    edges = ending_edges(log.data)
    assert np.isinf(edges).tolist() == [[True, True], [False, True]]
    assert edges[1, 0] == pytest.approx(0.95, abs=0.02)
    none = log.data._replace(steps=log.data.steps._replace(done=np.zeros(400, np.float32)))
    assert np.isinf(ending_edges(none)).all()
    every = log.data._replace(steps=log.data.steps._replace(done=np.ones(400, np.float32)))
    assert np.isinf(ending_edges(every)).all()  # episodes of one step end anywhere


# ---- ends


@pytest.mark.parametrize(
    ("rate", "says", "scale"),
    [(0.1, 0.1, 1.0), (0.5, 0.5, 1.0), (1.0, 0.9, 0.1), (1.0, 0.6, 0.01), (0.0, 0.1, 1.0)],  # none: nothing known
)
def test_ends_are_as_certain_as_held_out_rows_say(rate, says, scale, monkeypatch):
    rows = 2_000
    done = np.random.default_rng(0).random(rows) < rate
    data = log_of(np.zeros((rows, 1)), np.zeros((rows, 1)), np.zeros(rows), done=done)
    monkeypatch.setattr(_calibrate, "_logits", lambda *args: np.full((2, rows), np.log(says / (1 - says))))
    world, edge = _world.World("silu", _kinds.Kinds(1, terminates=True)), jnp.ones(2)
    draw, expect = _world.Sample(world, TASK, True), _world.Expect(world, TASK)
    fold = Posterior(jnp.zeros(2), jnp.zeros((1, 1)), -edge, edge, draw, TASK, expect)
    assert _calibrate._sure(fold, data, ()) == scale


# ---- memory


def test_recall_along_a_log_is_the_memory_carried_step_by_step(mixed):
    step = _history.innovate(mixed)
    rows = _rows(mixed, np.arange(3 * LENGTH))
    along = _history.recall(rows, step)
    memory = None
    for t in range(3 * LENGTH):
        if t % LENGTH == 0:
            memory = _history.empty(7, 1)
        here = jax.tree.map(lambda leaf, t=t: leaf[t], along)
        np.testing.assert_allclose(here.innovation, memory.innovation, rtol=1e-3, atol=1e-3)
        assert here.count == memory.count
        obs = jnp.asarray(rows.steps.obs[t])
        np.testing.assert_allclose(
            _history.features(here, obs), _history.features(memory, obs), rtol=1e-3, atol=1e-3
        )
        now = rows.steps
        args = (jnp.asarray(leaf[t]) for leaf in (now.obs, now.action, now.next_obs, now.reward))
        memory = _history.remember(memory, step, *args)


def test_a_row_without_episode_remembers_nothing(mixed):
    bag = mixed._replace(episode=np.full(ROWS, -1))
    along = _history.recall(bag, _history.innovate(mixed))
    assert not np.asarray(along.count).any()
    assert not np.asarray(_history.features(along, jnp.asarray(bag.steps.obs))).any()


def hidden_constant(episodes=60) -> Dataset:
    """Every episode pays at a rate of its own, which no column shows."""
    rng = np.random.default_rng(5)
    pays = np.repeat(rng.choice([-1.0, 1.0], episodes), LENGTH)
    obs = rng.normal(size=(episodes * LENGTH + 1, 1))
    return log_of(obs[:-1], obs[1:], pays + 0.1 * rng.normal(size=len(pays)))


def test_worlds_remember_where_the_past_tells_more_and_only_there(mixed):
    assert ensemble.prepare(hidden_constant(), TASK).shape.history == "episode"
    rng = np.random.default_rng(6)
    obs = rng.normal(size=(60 * LENGTH, 1))
    plain = log_of(obs, 0.5 * obs + 0.3 * rng.normal(size=obs.shape), obs[:, 0])
    assert ensemble.prepare(plain, TASK).shape.history == "none"


def test_what_only_ends_earned_is_earned_by_no_step_that_goes_on():
    """A walk whose goal pays once and ends: however sure worlds are that it pays beside the goal, it does not."""
    log = walk_to_a_goal(50.0, lambda push: -0.1 - 0.1 * abs(push))
    worlds = fitted(ensemble.model, jax.random.key(0), HYPERS, log.data, log.task)
    least, most = np.asarray(worlds.theta.support.earned)[0].T  # of steps that go on, and of ends
    assert least == pytest.approx([-0.11, -0.11], abs=0.01)
    assert most == pytest.approx([-0.1, 50.0], abs=0.01)
    scale = worlds.theta.scale
    greedy = worlds.theta._replace(scale=scale._replace(out_mean=jnp.asarray(scale.out_mean).at[:, -1].add(60.0)))
    for theta in (worlds.theta, greedy):
        made, _ = imagined(replace(worlds, theta=theta), log.data)
        ended = made.terminated.astype(bool)
        assert ended.any()
        assert made.reward[~ended].max() <= most[0] + 1e-6
        assert made.reward[ended].max() <= most[1] + 1e-6
    assert made.clipped.mean() > 0.9


def test_what_ends_earn_is_as_uncertain_as_unseen_ends_show():
    """An end pays 1 or costs 1, by a sign that lies in a quarter of them. Worlds that are all sure of one sign are
    wrong as often, and rows that went on, of which they are sure with reason, must not say otherwise.
    """
    rng = np.random.default_rng(7)
    rows, count = 2 * ROWS, np.arange(2 * ROWS) % LENGTH
    obs, action = np.stack([rng.normal(size=rows), count], 1), rng.uniform(-1, 1, (rows, 1))
    after, done = np.stack([rng.normal(size=rows), count + 1.0], 1), count == LENGTH - 1
    sign = np.where((obs[:, 0] > 0) ^ (rng.random(rows) < 0.25), 1.0, -1.0)
    reward = np.where(done, sign, np.where(action[:, 0] > 0, -0.1, -0.2))
    data = log_of(obs, after, reward, done, action)
    plain, parts = learned(data), halves(data)
    assert plain.theta.reward.extra.weight.shape[1] == 4  # rewards choose among four values
    alike = jax.tree.map(lambda leaf: np.repeat(leaf[:: HYPERS.elites], HYPERS.elites, 0), plain.theta.reward)
    alike = alike._replace(extra=jax.tree.map(lambda leaf: 30 * leaf, alike.extra))
    sure = replace(plain, theta=plain.theta._replace(reward=alike))
    unseen = [_rows(data, np.r_[parts.train[1 - f], parts.held]) for f in (0, 1)]
    worlds = ensemble.model.calibrate(sure, unseen[::-1], unseen, np.ones(3))
    worlds = replace(worlds, theta=worlds.theta._replace(forest=()))  # which is not asked about here
    chance = worlds.theta.chance
    bare = chance.last._replace(low=0 * chance.last.low, high=0 * chance.last.high + 1)
    alone = replace(worlds, theta=worlds.theta._replace(chance=chance._replace(last=bare)))
    made, says = (imagined(each, data, rows)[0] for each in (worlds, alone))  # by the same chance otherwise
    ended = made.terminated.astype(bool) & (np.abs(made.reward) == 1)
    assert ended.any(0).sum() > 100
    assert 0.06 < (made.reward != says.reward)[ended].mean() < 0.25  # half of them: the rest errs the other way
    assert ((made.reward > -0.15) == (action[:, 0] > 0))[~made.terminated.astype(bool)].mean() > 0.97


def test_what_comes_only_as_episodes_end_is_drawn_as_often():
    """A part fails in 4% of steps, whatever was done, and that ends the episode; who goes on has never seen it."""
    rng = np.random.default_rng(9)
    rows = 2 * ROWS
    failed = rng.random(rows) < 0.04
    obs, after = np.c_[rng.normal(size=rows), np.zeros(rows)], np.c_[rng.normal(size=rows), failed]
    data = log_of(obs, after, np.where(failed, -9.0, 0.1 * obs[:, 0]), failed)
    worlds = learned(data)
    made = imagined(worlds, data, rows)[0]
    assert made.next_obs[..., 1].mean() == pytest.approx(failed.mean(), rel=0.35)
    went_on = ~made.terminated.astype(bool)
    assert made.reward[went_on].min() > -1.0  # and what ends earned is earned by ends alone


def test_where_every_row_ends_chance_is_that_of_all_rows():
    """A bandit whose arms drift: the first rows of the log are not what the others are."""
    rng = np.random.default_rng(10)
    obs, noise = rng.normal(size=(ROWS, 1)), np.repeat([0.05, 1.0], ROWS // 2) * rng.normal(size=ROWS)
    data = log_of(obs, obs, obs[:, 0] + noise, np.ones(ROWS))
    last = np.asarray(learned(data).theta.chance.last.z)[0, :, 0]
    assert np.abs(last[len(last) // 2 :]).mean() > 4 * np.abs(last[: len(last) // 2]).mean()


def test_members_with_lenses_of_their_own_do_not_all_take_one_explanation():
    """Two columns that are always alike explain what comes equally well; where they part, nobody knows."""
    rng = np.random.default_rng(8)
    obs = np.repeat(rng.normal(size=(ROWS, 1)), 2, 1)
    data = log_of(obs, np.tanh(obs), obs[:, 0])
    apart = jnp.array([[1.0, -1.0], [-1.0, 1.0]])
    spread = []
    for lens in (0.0, 1.5):
        worlds = learned(data, hypers=replace(HYPERS, linear=0.0, lens=lens))
        expected = jax.vmap(worlds.moments, (0, None, None, None))(worlds.theta, (), apart, jnp.zeros((2, 1)))
        spread.append(float(np.asarray(expected.mean)[..., -1].std(0).mean()))
        along = jax.vmap(worlds.moments, (0, None, None, None))(
            worlds.theta, (), jnp.ones((1, 2)), jnp.zeros((1, 1))
        )
        np.testing.assert_allclose(
            np.asarray(along.mean)[:, 0, -1], 1.0, atol=0.2
        )  # where they are alike, all agree
    assert spread[1] > 2 * spread[0]
