"""Candidates: how a field is settled, what guides a plan, and that logged ways lead to rewards that are rare."""

from dataclasses import replace

import imagined as by_hand
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_planner import ACTIONS, HASTE, M, S, log_of, tiny, worlds_of

from offing import planner as planners
from offing.data import Log
from offing.planner import _arena, _episodes, _recurrent, bc, clone, plan, rppo
from offing.progress import meter
from offing.tune.field import Candidate, decide, distance, tail
from offing.tune.portfolio import choose_candidate, portfolio, rises
from offing.tune.run import Run
from offing.types import BadInput, Box, Dataset, Discrete, Moments, Policy, Posterior, Task, Transition
from offing.value.estimate import ValueEstimate
from offing.value.predictive import played, prepare, rollouts

# ---- the choice


def candidate(name: str, worlds, far: float = 1.0, chance: float = 0.0) -> Candidate:
    """One that earns so much in each world, give or take what chance does to each of its episodes."""
    drawn = np.random.default_rng(len(name)).normal(size=(len(worlds), 64))
    returns = np.asarray(worlds, float)[:, None] + chance * (drawn - drawn.mean(1, keepdims=True))
    return Candidate(name, name, bc.Hypers(), None, ValueEstimate(returns), far)  # type: ignore[arg-type]


STANDS = 500.0 + np.arange(16) / 16


def test_the_clone_is_handed_over_where_planning_is_worse():
    field = decide([candidate("rppo", STANDS - 100, 1.0), candidate("clone", STANDS, 0.0)])
    assert field.chosen.name == "clone"
    assert field.indistinguishable == (1,)
    assert "clone earns most" in field.reason


def test_a_plan_that_falls_in_one_world_of_many_loses_to_one_that_stands_even_if_it_is_nearer():
    falls = STANDS + 20
    falls[3] = 10.0  # so much else is chance that on average they cannot be told apart
    assert np.median(falls) > np.median(STANDS)  # by the median it would be chosen
    field = decide([candidate("falls", falls, 0.0, 50.0), candidate("stands", STANDS, 1.0, 50.0)])
    assert field.chosen.name == "stands"


def test_of_those_that_cannot_be_told_apart_the_nearest_to_the_log_is_taken():
    noise = np.random.default_rng(0).normal(size=16)
    near, far = candidate("near", STANDS + noise, 0.1, 20.0), candidate("far", STANDS, 0.9, 20.0)
    worse = candidate("worse", STANDS - 50, 0.0)
    field = decide([far, near, worse])
    assert field.chosen.name == "near"
    assert set(field.indistinguishable) == {0, 1}
    assert [row.chosen for row in field.rows()] == [False, True, False]
    assert [row.indistinguishable for row in field.rows()] == [True, True, False]


def test_small_differences_count_where_they_are_the_same_in_every_world():
    field = decide([candidate("near", STANDS - 1, 0.0), candidate("far", STANDS, 1.0)])
    assert field.chosen.name == "far"


def test_to_leave_the_log_early_saves_nothing():
    """One that earns more only since its episodes are over loses to one whose episodes go on."""
    leaves, stays = candidate("leaves", STANDS + 50, 0.0), candidate("stays", STANDS, 1.0)
    assert decide([leaves, stays]).chosen.name == "leaves"
    leaves = replace(leaves, promise=leaves.promise._replace(less=-200.0))
    field = decide([leaves, stays])
    assert field.chosen.name == "stays"
    assert field.indistinguishable == (1,)
    assert field.rows()[0].lower == pytest.approx(tail(STANDS) - 150)


@pytest.mark.parametrize(
    ("going", "terminates", "lost"), [(-2.0, True, 2.0), (3.0, True, 0.0), (-2.0, False, 0.0)]
)
def test_a_plan_is_charged_for_leaving_the_log(going, terminates, lost):
    """What a whole episode of seven steps might have cost; nothing where steps earn, or where no episode ends."""

    def away(theta, obs, action):
        mean = jnp.concatenate([jnp.ones_like(obs), -jnp.ones((*obs.shape[:-1], 1))], -1)
        return Moments(mean, jnp.zeros_like(mean), jnp.zeros(mean.shape[:-1]))

    task = Task(7, 0.5, Box((-1.0,), (1.0,)))
    walls = {"margin": 0.5, "terminates": terminates}
    worlds = by_hand.worlds(away, jnp.ones(2), [[0.0]], [0.0, -4.0], [2.0, 8.0], task, **walls)
    arena = _arena.dream(tiny("rppo", envs=4), replace(worlds, going=np.asarray(going)))
    state, _ = arena.reset(jax.random.key(0))
    for reward in (-1.0, -1.0, -1.0, -4.0 - lost * (1 - 0.5**6) / 0.5):  # beyond 2 + 0.5 * 2 the log knows nothing
        state, _, earned, ended = arena.step(jax.random.key(1), state, jnp.zeros((4, 1)))
        np.testing.assert_allclose(earned, reward, rtol=1e-6)
    assert ended.all() == terminates


def test_whoever_diverged_is_nobodys_choice():
    field = decide([candidate("lost", np.full(16, np.nan), 0.0), candidate("clone", STANDS - 400, 1.0)])
    assert field.chosen.name == "clone"


def test_the_tail_is_the_worst_quarter():
    assert tail(np.array([4.0, 1.0, 3.0, 2.0])) == 1.0
    assert tail(np.arange(8.0)) == 0.5
    assert tail(np.arange(5.0)) == 0.5  # two of five: rounded up


def test_a_curve_rises_if_its_last_round_is_its_best():
    assert rises(np.array([1.0, 2, 3, 4, 5, 6]))
    assert not rises(np.array([1.0, 2, 6, 5, 5, 5]))
    assert not rises(np.array([1.0, 2, 3, 4, np.nan, np.nan]))


# ---- what is tried


def test_the_clone_always_competes_and_names_are_planners():
    named = lambda found: [planner.name for planner, _ in found.plain]
    assert named(portfolio("quick", Discrete(2), ["iql"])) == ["bc", "iql"]
    quick = portfolio("quick", Box((-1.0,), (1.0,)))
    assert {"bc", "iql", "rebrac"} <= set(named(quick))
    assert {(s.core, s.width) for s in quick.clones} == {(s.core, s.width) for s in quick.plans}
    assert {bool(s.begun) for s in quick.plans} == {bool(s.near) for s in quick.plans} == {True, False}
    assert set(planners.space("rppo", "quick")) <= set(quick.plans)
    with pytest.raises(BadInput, match="no such planner"):
        portfolio("quick", Discrete(2), ["nobody"])


def test_no_candidate_trains_for_longer_than_rows_are_worth_but_for_the_papers():
    box = Box((-1.0,), (1.0,))
    length = lambda tried: sum(getattr(s, "steps", s.updates) for s in tried.settings)
    short, long = (portfolio("large", box, rows=rows) for rows in (4_000, 400_000))
    assert length(short) < length(long) <= length(portfolio("large", box))
    assert len(short.settings) == len(long.settings)
    assert portfolio("paper", box, ["iql"], rows=100) == portfolio("paper", box, ["iql"])


def test_a_planner_that_cannot_take_the_actions_is_left_out_or_refused(monkeypatch):
    boxes = replace(planners.get("iql"), actions=(Box,))
    monkeypatch.setattr("offing.planner.iql.planner", boxes)
    assert "iql" not in [planner.name for planner, _ in portfolio("quick", Discrete(2)).plain]
    with pytest.raises(BadInput, match="iql: does not plan"):
        portfolio("quick", Discrete(2), ["iql"])


def test_what_plays_candidates_is_compiled_ahead_and_only_once():
    actions = ACTIONS["box"]
    worlds, planner = worlds_of(actions), planners.get("bc")
    setting = replace(planner.Hypers(), width=11, depth=1)
    empty = planner.blank(setting, S, worlds.task)
    trained = replace(empty, params=jax.tree.map(lambda leaf: leaf + np.float32(0.1), empty.params))
    heard = meter()
    before = len(heard.programs)
    prepare(jax.random.key(0), empty, worlds, 5)
    assert any("rollouts" in name for name in heard.programs[before:])
    before = len(heard.programs)
    played(jax.random.key(1), trained, worlds, 5)
    assert not any("rollouts" in name for name in heard.programs[before:])


def test_all_candidates_are_judged_in_the_same_held_out_worlds():
    actions = ACTIONS["discrete"]
    data, worlds = log_of(actions), replace(worlds_of(actions, theta=jnp.linspace(-1, 1, 2 * M)), folds=2)
    data = data._replace(episode=np.arange(len(data.episode), dtype=np.int32) // 5)
    log = Log(data, worlds.task, "tiny", "tiny", ())
    tried = portfolio("smoke", actions, ["clone", "rppo", "iql"], core="linear")
    told = []
    choice = choose_candidate(jax.random.key(0), log, worlds, tried, run=Run(progress=lambda *at: told.append(at)))
    names = {one.name for one in choice.field.candidates}
    assert names >= {
        "clone",
        "iql",
        "clone with memory",
        "rppo",
        "rppo begun at the clone",
        "rppo held near the clone",
    }
    assert {one.promise.returns.shape for one in choice.field.candidates} == {(M, 64)}
    assert choice.picked is choice.field.chosen.policy
    assert choice.points[choice.index] == choice.field.chosen.setting
    assert {what for what, _, _ in told} >= {"plan", "clone", "iql"}
    # seen worlds are beside the point: with others in their place, who read rows alone is judged as before
    strange = jnp.linspace(-1, 1, 2 * M).at[:M].set(3.0)
    other = replace(worlds_of(actions, theta=strange), folds=2)
    alone = tried._replace(clones=(), plans=())
    before, after = (choose_candidate(jax.random.key(0), log, w, alone).field.candidates for w in (worlds, other))
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a.promise.returns, b.promise.returns)


# ---- guides


@pytest.fixture(scope="module")
def start():
    """A guide and a plan that has one, before its first update."""
    actions, hypers = ACTIONS["box"], tiny("rppo", core="linear", begun=1.0, along=0.5)
    net = rppo.net_init(jax.random.key(7), hypers, S, actions)
    state = rppo.guided(net).init(jax.random.key(1), hypers, log_of(actions), worlds_of(actions))
    return net, hypers, state


def test_a_plan_begins_at_its_guide_or_at_nets_of_its_own(start):
    net, hypers, state = start
    np.testing.assert_array_equal(state.learner.params.actor.weight, net.actor.weight)
    alone = rppo.guided(net).init(
        jax.random.key(1), replace(hypers, begun=0.0), log_of(ACTIONS["box"]), worlds_of(ACTIONS["box"])
    )
    assert np.abs(np.asarray(alone.learner.params.actor.weight - net.actor.weight)).max() > 0


def test_a_share_of_episodes_begins_along_the_log(start):
    state = start[2]
    logged = np.asarray(log_of(ACTIONS["box"]).steps.obs)
    begun = np.asarray(state.where.seen.obs)
    along = (np.abs(begun[:, None] - logged[None]).max(-1) < 1e-6).any(1)
    assert 0.2 < along.mean() < 0.8


def test_a_plan_that_is_held_near_stays_nearer(start):
    net, hypers, _ = start
    data, worlds, actions = log_of(ACTIONS["box"]), worlds_of(ACTIONS["box"]), ACTIONS["box"]
    planner = rppo.guided(net)

    def far(near):
        setting = replace(hypers, near=near, lr=0.01)
        state = planner.init(jax.random.key(1), setting, data, worlds)
        one = lambda state, key: planner.update(key, setting, state, data, worlds)
        state, _ = jax.lax.scan(one, state, jax.random.split(jax.random.key(2), 6))
        _, rows, _ = _arena.gather(jax.random.key(3), setting, state, rppo.dream(setting, worlds), worlds.task)
        mine = _recurrent.distribution(state.learner.params, rows["raw"])
        return _recurrent.divergence(rows["guide"], mine, actions).mean()

    free, held = jax.jit(jax.vmap(far), compiler_options=HASTE)(jnp.array([0.0, 30.0]))
    assert held < free


def test_worlds_that_earn_less_count_more_and_without_risk_all_count_alike(start):
    _, hypers, state = start
    steps, envs = 3, state.where.clock.shape[0]
    each = envs // M
    rows = {
        "reward": jnp.broadcast_to(jnp.repeat(jnp.arange(M * 1.0), each), (steps, envs)),
        "guide": jnp.zeros(()),
    }
    blank = jnp.zeros((steps, envs))
    segment = rppo.Segment(blank, blank, blank, blank, blank, blank)
    weight = rppo.advised(replace(hypers, risk=1.0), state.guide, segment, rows)[0].weight
    assert (np.diff(np.asarray(weight)[0, ::each]) < 0).all()
    np.testing.assert_allclose(weight.mean(), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(rppo.advised(hypers, state.guide, segment, rows)[0].weight, 1.0)


def test_divergence_is_none_of_a_distribution_from_itself_and_known_otherwise():
    one = jnp.array([0.3, -0.2, 0.1, 0.0])  # two means, two log-deviations
    np.testing.assert_allclose(_recurrent.divergence(one, one, ACTIONS["box"]), 0.0, atol=1e-6)
    shifted = one.at[0].add(2.0)
    np.testing.assert_allclose(_recurrent.divergence(one, shifted, ACTIONS["box"]), 2.0 / np.exp(0.2), rtol=1e-5)
    p, q = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    known = float(np.sum(p * np.log(p / q)))
    np.testing.assert_allclose(_recurrent.divergence(jnp.log(p), jnp.log(q), Discrete(2)), known, rtol=1e-5)


# ---- the loop stops where held-out worlds part from training worlds


class Counter:
    """A planner that learns to count, one update at a time."""

    name, reports = "counter", ("count",)
    init = staticmethod(lambda key, hypers, data, posterior: jnp.asarray(0.0))
    update = staticmethod(lambda key, hypers, state, data, posterior: (state + 1, {"count": state + 1}))
    policy = staticmethod(lambda hypers, state, task: Policy(state, (), rppo.Act(task.actions)))


@pytest.mark.parametrize(("peak", "rounds"), [(3.0, 5), (100.0, 8)])
def test_a_plan_stops_once_held_out_worlds_part_and_not_before(peak, rounds):
    data, posterior = log_of(ACTIONS["box"]), worlds_of(ACTIONS["box"])
    hypers = rppo.Hypers(envs=1, segment=1, steps=8)
    judge = lambda key, policy: (policy.params, -jnp.square(policy.params - peak))
    run = lambda stops: jax.jit(
        lambda key: plan(key, hypers, Counter, data, posterior, judge, 8, stops)  # type: ignore[arg-type]
    )(jax.random.key(0))
    stopped, whole = run(True), run(False)
    assert np.isfinite(stopped.held).sum() == rounds
    assert (stopped.best, stopped.params) == (whole.best, whole.params)
    np.testing.assert_array_equal(stopped.held[:rounds], whole.held[:rounds])


# ---- clones


def episodes_of(choices: np.ndarray, rewards: np.ndarray) -> Dataset:
    """Episodes [E, T] of choices among two, at a state that says nothing."""
    count, length = choices.shape
    obs = np.zeros((count * length, 1), np.float32)
    action = np.eye(2, dtype=np.float32)[choices.ravel()]
    reward = rewards.ravel().astype(np.float32)
    steps = Transition(obs, action, reward, obs, action, np.zeros(count * length, np.float32))
    return Dataset(
        steps, obs[:1], np.repeat(np.arange(count), length).astype(np.int32), np.asarray(count * length)
    )


def learned(planner, hypers, data, task):
    worlds = replace(worlds_of(task.actions), task=task)

    def run(key):
        state = planner.init(key, hypers, data, worlds)
        one = lambda state, key: planner.update(key, hypers, state, data, worlds)
        return planner.policy(hypers, jax.lax.scan(one, state, jax.random.split(key, hypers.updates))[0], task)

    return jax.jit(run, compiler_options=HASTE)(jax.random.key(0))


def test_a_clone_weighted_by_return_does_what_earned_more():
    task = Task(5, 0.9, Discrete(2))
    choices = np.zeros((12, 5), int)
    choices[:4] = 1  # in a third of the episodes, which earn more
    data = episodes_of(choices, choices.astype(float))
    small = bc.Hypers(updates=150, batch_size=32, width=4, depth=1, lr=0.02)
    right = lambda policy: distance(policy, episodes_of(np.ones((2, 5), int), np.zeros((2, 5))), task)
    assert right(learned(bc, small, data, task)) == 1.0
    assert right(learned(bc, replace(small, sharp=3.0), data, task)) == 0.0


def test_a_clone_that_remembers_does_what_depends_on_the_step_before():
    task = Task(6, 0.9, Discrete(2))
    first = np.random.default_rng(0).integers(0, 2, 16)
    choices = (first[:, None] + np.arange(6)) % 2  # each other than the one before
    data = episodes_of(choices, np.zeros((16, 6)))
    hypers = clone.Hypers(updates=200, runs=16, segment=6, width=8, lr=0.02)
    assert distance(learned(clone, hypers, data, task), data, task) < 0.15  # the first choice is anybody's guess


def test_worth_is_of_whole_episodes_and_nothing_where_none_is_known():
    data = episodes_of(np.zeros((3, 2), int), np.array([[1.0, 1], [2, 2], [3, 3]]))
    expected = np.repeat((np.array([2.0, 4, 6]) - 4) / np.std([2, 4, 6]), 2)
    np.testing.assert_allclose(_episodes.worth(data), expected, rtol=1e-5)
    np.testing.assert_array_equal(_episodes.worth(data._replace(episode=np.full(6, -1))), 0.0)
    short = data._replace(size=np.asarray(4))
    np.testing.assert_allclose(_episodes.worth(short), [-1, -1, 1, 1, 0, 0], rtol=1e-5)


# ---- a goal at the end of a long chain

GOAL = 20


def chain(theta, obs, action):
    """One step to the right or to the left; only the goal pays, and ends the episode."""
    del theta
    move = action[..., 1:] - action[..., :1]
    after = jnp.clip(obs + move, 0, GOAL)
    there = (after[..., 0] >= GOAL).astype(jnp.float32)
    mean = jnp.concatenate([after - obs, there[..., None]], -1)
    return Moments(mean, jnp.zeros_like(mean), there)


def chain_worlds() -> Posterior:
    task = Task(30, 0.99, Discrete(2))
    high = np.array([float(GOAL), 1.0])
    return by_hand.worlds(chain, jnp.zeros(2), np.zeros((1, 1)), np.zeros(2), high, task, terminates=True)


def chain_log() -> Dataset:
    """Episodes of a controller that errs: most of them reach the goal."""
    rng, rows = np.random.default_rng(0), []
    for episode in range(20):
        x = 0
        for _ in range(30):
            right = int(rng.random() < 0.85)
            after = int(np.clip(x + 2 * right - 1, 0, GOAL))
            rows.append((x, right, float(after == GOAL), after, float(after == GOAL), episode))
            x = after
            if x == GOAL:
                break
    x, right, reward, after, done, episode = (np.array(column) for column in zip(*rows, strict=True))
    act = np.eye(2, dtype=np.float32)[right]
    obs = lambda a: a[:, None].astype(np.float32)
    steps = Transition(obs(x), act, reward.astype(np.float32), obs(after), act, done.astype(np.float32))
    return Dataset(steps, np.zeros((1, 1), np.float32), episode.astype(np.int32), np.asarray(len(x)))


def test_a_goal_that_is_far_is_found_from_along_logged_episodes_and_not_otherwise():
    data, worlds = chain_log(), chain_worlds()
    hypers = rppo.Hypers(
        envs=32, segment=32, steps=120_000, epochs=4, minibatches=2, width=16, lr=3e-3, entropy=0.01, core="none"
    )
    planner = rppo.guided(rppo.net_init(jax.random.key(9), hypers, 1, worlds.task.actions))

    def reached(along, seed):
        setting = replace(hypers, along=along)
        k1, k2 = jax.random.split(jax.random.key(seed))
        state = planner.init(k1, setting, data, worlds)
        one = lambda state, key: planner.update(key, setting, state, data, worlds)
        state, _ = jax.lax.scan(one, state, jax.random.split(k2, setting.updates))
        policy = planner.policy(setting, state, worlds.task)
        return rollouts(jax.random.key(2), policy, worlds, 4)[0].returns.mean()

    every = jax.jit(jax.vmap(reached, (None, 0)), compiler_options=HASTE)
    without, along = (np.asarray(every(share, jnp.arange(8))) for share in (0.0, 0.5))
    assert np.mean(along) >= 0.75
    assert np.mean(without) <= 0.5  # a first net that happens to lean towards the goal finds it by itself
