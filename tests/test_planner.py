"""Planners: how they remember, what each of them must keep to, and what memory is worth."""

from dataclasses import replace
from types import SimpleNamespace

import imagined as by_hand
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from offing import planner as planners
from offing.hypers import names, stack
from offing.nets import Layer
from offing.planner import _memory, plan, rppo
from offing.planner.rppo import PAPER
from offing.types import (
    BadInput,
    Box,
    Dataset,
    Discrete,
    Moments,
    Planner,
    Policy,
    Posterior,
    Seen,
    Task,
    Transition,
)
from offing.value.predictive import rollouts

# Every axis is a different prime, so that a wrong broadcast cannot pass.
S, M, COPIES, T, WIDTH, HORIZON, ROWS, STARTS = 3, 5, 11, 7, 13, 17, 23, 29
ACTIONS = {"box": Box((-3.0, 0.25), (5.0, 0.5)), "discrete": Discrete(2)}
SIZES = {  # of these a planner takes what it has
    "envs": M * COPIES,
    "segment": T,
    "steps": M * COPIES * T * 4,
    "epochs": 2,
    "minibatches": 3,
    "width": WIDTH,
    "batch_size": 19,
    "updates": 4,
    "every": 2,
    "retain": 2,
    "critics": 3,
}
HASTE = {"xla_backend_optimization_level": 0}  # optimised, a program takes longer to compile than it runs


def tiny(name: str, **rest):
    """The planner's settings with every size small."""
    kind = planners.get(name).Hypers
    sizes = SIZES | ({"steps": SIZES["updates"] * SIZES["every"]} if "every" in names(kind) else {})
    return kind(**{field: size for field, size in sizes.items() if field in names(kind)} | rest)


def combinations():
    """Every planner, with every core it can have and both kinds of action."""
    for name in planners.names():
        cores = _memory.CORES if "core" in names(planners.get(name).Hypers) else (None,)
        for core in cores:
            for kind in ACTIONS:
                yield name, kind, tiny(name) if core is None else tiny(name, core=core)


EVERY = list(combinations())
# to be compiled, which costs: both kinds of action, and every core that remembers
SOME = [case for i, case in enumerate(EVERY) if i % 2 == i // 2 % 2 and getattr(case[2], "core", "") != "none"]
said = lambda case: "-".join([case[0], case[1], getattr(case[2], "core", "")])


def drift(theta, obs, action):
    """Worlds that pull to the middle, are pushed by the action, and end one episode in ten steps."""
    push = theta * action.sum(-1, keepdims=True)
    mean = jnp.concatenate([-0.5 * obs + 0.1 * push, jnp.cos(obs[..., :1]) + 0.1 * push], -1)
    return Moments(mean, jnp.full(mean.shape, 0.1), jnp.full(mean.shape[:-1], 0.1))


def worlds_of(actions, say=drift, horizon=HORIZON, theta=None) -> Posterior:
    rng = np.random.default_rng(0)
    edge, theta = np.full(S + 1, 3.0), jnp.linspace(-1, 1, M) if theta is None else theta
    rest = {"noise": 1.0, "margin": 0.5, "terminates": True}
    return by_hand.worlds(
        say, theta, rng.normal(size=(STARTS, S)), -edge, edge, Task(horizon, 0.9, actions), **rest
    )


def log_of(actions) -> Dataset:
    rng = np.random.default_rng(1)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
    steps = Transition(
        2 + draw(ROWS, S),
        draw(ROWS, actions.width),
        draw(ROWS),
        draw(ROWS, S),
        draw(ROWS, actions.width),
        np.zeros(ROWS, np.float32),
    )
    return Dataset(steps, draw(STARTS, S), np.zeros(ROWS, np.int32), np.asarray(ROWS - 4, np.int32))


def shapes(tree):
    return jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), tree)


def close(a, b, **rest):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, **{"rtol": 1e-4, "atol": 1e-5, **rest})


# ---- cores: a segment at once is step after step


def core_of(core: str, steps: int = T, copies: int = 5):
    """A core with nothing at zero, and a segment for it in which episodes start anywhere."""
    k1, k2, k3, k4, k5, k6 = jax.random.split(jax.random.key(2), 6)
    params = _memory.core_init(k1, core, WIDTH)
    params = jax.tree.map(lambda leaf: leaf + 0.3 * jax.random.normal(k2, leaf.shape), params)
    memory = () if core == "none" else jax.random.normal(k3, (copies, WIDTH))
    x = jax.random.normal(k4, (steps, copies, WIDTH))
    start = jax.random.bernoulli(k5, 0.3, (steps, copies)).astype(jnp.float32)
    return params, memory, x, start, jax.random.normal(k6, x.shape)


def stepped(params, memory, x, start):
    def one(memory, at):
        out, memory = _memory.step(params, memory, *at)
        return memory, out

    return jax.lax.scan(one, memory, (x, start))[1]


@pytest.mark.parametrize("core", _memory.CORES)
def test_a_sweep_is_step_after_step_and_so_are_its_gradients(core):
    params, memory, x, start, weight = core_of(core)
    assert 0 < start.mean() < 1

    def graded(way):
        total = lambda params, memory, x: jnp.sum(weight * way(params, memory, x, start))
        return jax.jit(lambda *a: (way(*a, start), jax.value_and_grad(total, (0, 1, 2))(*a)))(params, memory, x)

    close(graded(_memory.sweep), graded(stepped))


@pytest.mark.parametrize("core", _memory.CORES)
def test_nothing_is_remembered_beyond_the_start_of_an_episode(core):
    params, memory, x, start, _ = core_of(core)
    start = start.at[3].set(1.0)
    before = _memory.sweep(params, memory, x, start)
    after = _memory.sweep(params, jax.tree.map(lambda m: m + 1, memory), x.at[:3].add(1.0), start)
    np.testing.assert_allclose(before[3:], after[3:], atol=1e-6)
    assert np.abs(before[:3] - after[:3]).min(-1).max() > 1e-3  # and until then it matters


def test_recur_is_the_loop_it_stands_for():
    k1, k2, k3 = jax.random.split(jax.random.key(3), 3)
    keep, add = jax.random.uniform(k1, (T, 5, WIDTH)), jax.random.normal(k2, (T, 5, WIDTH))
    weight = jax.random.normal(k3, add.shape)
    h, expected = np.zeros((5, WIDTH)), []
    for t in range(T):
        h = np.asarray(keep[t]) * h + np.asarray(add[t])
        expected.append(h)
    np.testing.assert_allclose(_memory.recur(keep, add), expected, rtol=1e-5, atol=1e-6)
    scanned = lambda keep, add: jax.lax.scan(
        lambda h, at: (at[0] * h + at[1],) * 2, jnp.zeros((5, WIDTH)), (keep, add)
    )[1]
    grads = lambda way: jax.grad(lambda *a: jnp.sum(weight * way(*a)), (0, 1))(keep, add)
    close(grads(_memory.recur), grads(scanned))


def test_a_linear_core_remembers_for_spans_of_many_lengths():
    rates = jax.nn.sigmoid(_memory.core_init(jax.random.key(0), "linear", WIDTH).into.bias[:WIDTH])
    spans = 1 / np.asarray(rates)
    assert spans.min() < 3
    assert spans.max() > 50
    assert jax.tree.leaves(_memory.empty("none", WIDTH)) == []


# ---- what every planner must keep to


@pytest.mark.parametrize(("name", "kind", "hypers"), EVERY, ids=map(said, EVERY))
def test_shapes_are_fixed_and_metrics_are_scalars(name, kind, hypers):
    planner, data, posterior = planners.get(name), log_of(ACTIONS[kind]), worlds_of(ACTIONS[kind])
    key = jax.random.key(0)
    state = jax.eval_shape(planner.init, key, hypers, data, posterior)
    after, metrics = jax.eval_shape(planner.update, key, hypers, state, data, posterior)
    assert shapes(after) == shapes(state)
    assert set(metrics) == set(planner.reports) != set()
    assert {leaf.shape for leaf in metrics.values()} == {()}
    assert all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in metrics.values())
    assert hypers.updates == SIZES["updates"]

    found = jax.eval_shape(lambda state: planner.policy(hypers, state, posterior.task), state)
    blank = planner.blank(hypers, S, posterior.task)
    assert jax.tree.structure(found) == jax.tree.structure(blank)  # how it is read is part of that
    assert shapes(found) == shapes(blank)

    seen = Seen(
        jnp.ones((2, M, S)), jnp.zeros((2, M, posterior.task.actions.width)), jnp.ones((2, M)), jnp.ones((2, M))
    )
    memory = blank.begin(2, M)
    for how in (None, key):
        action, kept = blank.act(blank.params, memory, seen, how)
        assert action.shape == (2, M, posterior.task.actions.width)
        assert shapes(kept) == shapes(memory)


@pytest.fixture(scope="module", params=SOME, ids=said)
def trained(request):
    """Three settings of a planner run alone and swept, and how often that was traced."""
    name, kind, hypers = request.param
    planner, data, posterior = planners.get(name), log_of(ACTIONS[kind]), worlds_of(ACTIONS[kind])
    traces = []

    def run(hypers, key, data, posterior):
        traces.append(1)
        k1, k2 = jax.random.split(key)
        state = planner.init(k1, hypers, data, posterior)
        one = lambda state, key: planner.update(key, hypers, state, data, posterior)
        state, metrics = jax.lax.scan(one, state, jax.random.split(k2, hypers.updates))
        return state, metrics

    points = [{"lr": lr, "discount": discount} for lr, discount in ((1e-2, 0.5), (3e-3, 0.9), (1e-4, 0.99))]
    settings = [replace(hypers, **{k: v for k, v in point.items() if hasattr(hypers, k)}) for point in points]
    args = (jax.random.key(4), data, posterior)
    alone = jax.jit(run, compiler_options=HASTE)
    each = [alone(setting, *args) for setting in settings]
    swept = jax.jit(jax.vmap(run, (0, None, None, None)), compiler_options=HASTE)
    every = swept(stack(settings), *args)
    swept(stack([replace(setting, lr=2e-3) for setting in settings]), *args)
    return SimpleNamespace(
        planner=planner, settings=settings, each=each, every=every, traces=traces, posterior=posterior
    )


def test_swept_is_alone(trained):
    for i, one in enumerate(trained.each):
        close(jax.tree.map(lambda leaf, i=i: leaf[i], trained.every), one, rtol=1e-3, atol=1e-3)
    first, _, last = (jax.tree.leaves(metrics) for _, metrics in trained.each)
    assert not all(np.allclose(a, b, rtol=1e-3) for a, b in zip(first, last, strict=True))  # settings do matter


def test_one_trace_per_static_group(trained):
    assert len(trained.traces) == 2  # one alone, one swept, whatever the floats


def test_what_is_learned_is_finite_and_moves(trained):
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((trained.each, trained.every)))
    first, _, last = (
        trained.planner.policy(setting, state, trained.posterior.task).params
        for setting, (state, _) in zip(trained.settings, trained.each, strict=True)
    )
    assert any(
        np.abs(a - b).max() > 1e-3 for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(last), strict=True)
    )


def test_actions_are_never_out_of_range(trained):
    actions = trained.posterior.task.actions
    policy = trained.planner.policy(trained.settings[0], trained.each[0][0], trained.posterior.task)
    wild = jax.tree.map(lambda leaf: 100 * leaf, policy.params)
    k1, k2, k3 = jax.random.split(jax.random.key(5), 3)
    seen = Seen(
        1e4 * jax.random.normal(k1, (101, S)),
        jnp.ones((101, actions.width)),
        jax.random.normal(k2, (101,)),
        jnp.zeros(101),
    )
    for params in (policy.params, wild):
        for how in (None, k3):
            action = np.asarray(policy.act(params, policy.begin(101), seen, how)[0])
            if isinstance(actions, Discrete):
                assert set(np.unique(action)) <= {0.0, 1.0}
                np.testing.assert_array_equal(action.sum(-1), 1.0)
            else:
                assert (action >= actions.low).all()
                assert (action <= actions.high).all()
                assert params is wild or np.ptp(action, 0).min() > 0  # wild ones may stand at the edge


def act_at_start(policy, actions, **seen):
    base = Seen(jnp.ones((2, S)), jnp.zeros((2, actions.width)), jnp.zeros(2), jnp.ones(2))
    return policy.act(policy.params, policy.begin(2), base._replace(**seen), None)


@pytest.mark.parametrize("last", ["action", "reward", "memory"])
def test_what_was_before_an_episode_is_not_seen_in_it(trained, last):
    """In training the episode before was in the same world: what leaks from it is not there in a new one."""
    actions = trained.posterior.task.actions
    policy = trained.planner.policy(trained.settings[0], trained.each[0][0], trained.posterior.task)
    before = act_at_start(policy, actions)
    if last == "memory":
        after = act_at_start(replace(policy, memory=jax.tree.map(lambda m: m + 1, policy.memory)), actions)
    else:
        other = jnp.full((2, actions.width), 0.25) if last == "action" else jnp.full(2, 0.7)
        after = act_at_start(policy, actions, **{last: other})
    close(before, after, atol=1e-6)
    assert jax.tree.structure(before) == jax.tree.structure(after)


def test_the_folder_is_the_registry():
    assert "rppo" in planners.names()
    assert not [name for name in planners.names() if name.startswith("_")]
    for name in planners.names():
        assert isinstance(planners.get(name), Planner)
        assert planners.get(name).name == name
    with pytest.raises(BadInput, match="rppo"):
        planners.get("_plan")


# ---- the one training loop


class Counter:
    """A planner that learns to count, one update at a time."""

    Hypers = tiny("rppo").__class__
    init = staticmethod(lambda key, hypers, data, posterior: jnp.asarray(0.0))
    update = staticmethod(lambda key, hypers, state, data, posterior: (state + 1, {"count": state + 1}))
    policy = staticmethod(lambda hypers, state, task: Policy(state, (), rppo.Act(task.actions)))


def test_the_round_that_held_out_worlds_like_best_is_kept():
    posterior, data = worlds_of(ACTIONS["box"]), log_of(ACTIONS["box"])
    hypers = tiny("rppo", steps=M * COPIES * T * 10)  # 10 updates in 5 rounds of 2
    judge = lambda key, policy: (policy.params, -jnp.square(policy.params - 6.5))
    planned = jax.jit(lambda key: plan(key, hypers, Counter, data, posterior, judge, 5))(jax.random.key(0))
    np.testing.assert_array_equal(planned.own, [2, 4, 6, 8, 10])  # its own worlds say: ever better
    assert (planned.best, planned.params) == (2, 6)
    np.testing.assert_allclose(planned.held, -((np.arange(2, 12, 2) - 6.5) ** 2))
    np.testing.assert_array_equal(planned.metrics["count"], [1.5, 3.5, 5.5, 7.5, 9.5])
    few = jax.jit(lambda key: plan(key, tiny("rppo"), Counter, data, posterior, judge, 9))(jax.random.key(0))
    assert few.own.shape == (4,)  # no more rounds than updates


# ---- recurrent PPO, part by part


def test_actions_go_to_their_box_and_back():
    actions = ACTIONS["box"]
    raw = jnp.array([[-1.0, 1.0], [0.0, 0.0], [0.5, -0.5], [-7.0, 9.0]])
    placed = rppo.place(raw, actions)
    np.testing.assert_allclose(placed, [[-3, 0.5], [1, 0.375], [3, 0.3125], [-3, 0.5]])
    np.testing.assert_allclose(rppo.unplace(placed, actions), jnp.clip(raw, -1, 1), atol=1e-6)
    np.testing.assert_array_equal(rppo.place(jnp.eye(2), Discrete(2)), jnp.eye(2))


def test_probabilities_and_entropies_are_those_of_the_distributions():
    rng = np.random.default_rng(0)
    net = rppo.net_init(jax.random.key(0), tiny("rppo"), S, ACTIONS["box"])
    net = net._replace(log_std=jnp.array([0.3, -0.7]))
    mean, raw = rng.normal(size=(2, T, 2))
    logp, entropy = rppo.log_prob(net, jnp.asarray(mean), jnp.asarray(raw), ACTIONS["box"])
    each = stats.norm(mean, np.exp([0.3, -0.7]))
    np.testing.assert_allclose(logp, each.logpdf(raw).sum(-1), rtol=1e-5)
    np.testing.assert_allclose(entropy, each.entropy().sum(-1), rtol=1e-5)
    logits = rng.normal(size=(T, 3))
    share = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for choice in range(3):
        logp, entropy = rppo.log_prob(net, jnp.asarray(logits), jax.nn.one_hot(choice, 3), Discrete(3))
        np.testing.assert_allclose(np.exp(logp), share[:, choice], rtol=1e-5)
        np.testing.assert_allclose(entropy, -(share * np.log(share)).sum(-1), rtol=1e-5)


def test_what_is_sampled_has_the_probabilities_that_are_said():
    net = rppo.net_init(jax.random.key(0), tiny("rppo", first_std=0.5), S, ACTIONS["box"])
    drawn = rppo.choose(
        jax.random.key(1), net, jnp.broadcast_to(jnp.array([0.3, -2.0]), (4001, 2)), ACTIONS["box"]
    )
    np.testing.assert_allclose(drawn.mean(0), [0.3, -2.0], atol=0.04)
    np.testing.assert_allclose(drawn.std(0), 0.5, atol=0.03)
    logits = jnp.broadcast_to(jnp.log(jnp.array([0.2, 0.5, 0.3])), (4001, 3))
    drawn = rppo.choose(jax.random.key(1), net, logits, Discrete(3))
    np.testing.assert_allclose(drawn.mean(0), [0.2, 0.5, 0.3], atol=0.04)
    np.testing.assert_array_equal(rppo.choose(None, net, logits, Discrete(3))[0], [0, 1, 0])


@pytest.mark.parametrize("trace", [0.0, 0.8, 1.0])
def test_advantages_are_those_of_a_loop(trace):
    rng = np.random.default_rng(3)
    steps, envs, discount, mean, std = 31, 5, 0.9, 0.7, 2.0
    reward, value = rng.normal(size=(2, steps, envs))
    ended = rng.random((steps, envs)) < 0.1
    late = (rng.random((steps, envs)) < 0.1) & ~ended
    last = rng.normal(size=envs)
    assert ended.any()
    assert late.any()

    v, after = value * std + mean, last * std + mean
    total, expected = np.zeros(envs), np.zeros((steps, envs))
    for t in reversed(range(steps)):
        for n in range(envs):
            if ended[t, n]:  # nothing comes after
                rest, total[n] = 0.0, 0.0
            elif late[t, n]:  # something would have: as much as was expected here
                rest, total[n] = v[t, n], 0.0
            else:
                rest = after[n] if t == steps - 1 else v[t + 1, n]
            total[n] = reward[t, n] + discount * rest - v[t, n] + discount * trace * total[n]
            expected[t, n] = total[n]

    rows = {"reward": reward, "value": value, "ended": ended, "late": late}
    rows |= {name: np.zeros((steps, envs)) for name in ("x", "start", "raw", "logp")}
    rows = jax.tree.map(jnp.asarray, rows)
    state = SimpleNamespace(returns=(jnp.asarray(mean), jnp.asarray(std)), count=jnp.asarray(6))
    hypers = tiny("rppo", discount=discount, trace=trace)
    segment, (mean_, std_), earned = rppo.appraise(hypers, state, rows, jnp.asarray(last))
    np.testing.assert_allclose(segment.advantage, expected, rtol=1e-4, atol=1e-5)
    target = expected + v
    np.testing.assert_allclose(mean_, 0.9 * mean + 0.1 * target.mean(), rtol=1e-5)
    np.testing.assert_allclose(std_, 0.9 * std + 0.1 * target.std(), rtol=1e-5)
    np.testing.assert_allclose(segment.target, (target - mean_) / std_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(earned, reward.mean(), rtol=1e-5)
    first = rppo.appraise(
        hypers, SimpleNamespace(returns=state.returns, count=jnp.asarray(0)), rows, jnp.asarray(last)
    )
    np.testing.assert_allclose(first[1], (target.mean(), target.std()), rtol=1e-5)  # nothing to remember yet


def segment_of(hypers, actions, envs=5):
    """A segment of random numbers, as one that was gathered."""
    keys = iter(jax.random.split(jax.random.key(6), 9))
    net = rppo.net_init(next(keys), hypers, S, actions)
    net = net._replace(actor=Layer(jax.random.normal(next(keys), net.actor.weight.shape), net.actor.bias))
    draw = lambda *shape: jax.random.normal(next(keys), (T, envs, *shape))
    segment = rppo.Segment(
        draw(net.embed.weight.shape[1]),
        (draw() > 1) * 1.0,
        draw(actions.width),
        -jnp.abs(draw()),
        draw(),
        draw(),
    )
    memory = jax.tree.map(lambda leaf: jnp.ones((envs, *leaf.shape)), _memory.empty(hypers.core, hypers.width))
    return net, segment, memory


@pytest.mark.parametrize("core", _memory.CORES)
def test_burn_in_only_warms_the_memory_up(core):
    hypers, actions = tiny("rppo", core=core, burn_in=0.25), ACTIONS["box"]  # of 7 steps: the first 2
    net, segment, memory = segment_of(hypers, actions, envs=31)
    loss = jax.jit(lambda segment: rppo.loss(net, hypers, segment, memory, actions)[0])
    before = loss(segment)
    for name in ("target", "raw", "logp", "advantage"):
        moved = lambda t, name=name: segment._replace(**{name: getattr(segment, name).at[t].add(0.5)})
        changes = [abs(loss(moved(t)) - before) > 1e-5 for t in range(T)]
        expected = [True] * T if core == "none" else [False] * 2 + [True] * (T - 2)
        assert changes == expected, name
    seen = loss(segment._replace(x=segment.x.at[0].add(1.0), start=jnp.zeros_like(segment.start)))
    assert abs(seen - loss(segment._replace(start=jnp.zeros_like(segment.start)))) > 1e-5  # it is still looked at


def test_a_policy_without_memory_sees_the_observation_alone():
    net = rppo.net_init(jax.random.key(0), tiny("rppo", core="none"), S, ACTIONS["box"])
    scale = rppo.Scale(jnp.ones(S), jnp.full(S, 2.0), jnp.asarray(4.0))
    seen = Seen(jnp.full((2, S), 5.0), jnp.ones((2, 2)), jnp.array([8.0, 1e9]), jnp.zeros(2))
    np.testing.assert_allclose(rppo.features(net, scale, seen, ACTIONS["box"]), 2.0)
    net = rppo.net_init(jax.random.key(0), tiny("rppo", core="gru"), S, ACTIONS["box"])
    both = rppo.features(net, scale, seen, ACTIONS["box"])
    np.testing.assert_allclose(both[0], [2, 2, 2, 0, 5, 2, 0], rtol=1e-5)  # obs, action, reward, start
    assert both[1, -2] == 10  # nothing is let in that is out of all proportion


def test_what_is_seen_is_scaled_by_the_rows_in_use():
    data, posterior = log_of(ACTIONS["box"]), worlds_of(ACTIONS["box"])
    data.steps.obs[-4:] = 1e6  # out of use
    data.steps.obs[:, 1] = 3.0  # and never changes
    scale = rppo.init(jax.random.key(0), tiny("rppo"), data, posterior).scale
    used = data.steps.obs[:-4]
    np.testing.assert_allclose(scale.mean, used.mean(0), rtol=1e-5)
    np.testing.assert_allclose(scale.std, [used[:, 0].std(), 1.0, used[:, 2].std()], rtol=1e-5)
    np.testing.assert_allclose(scale.reward, np.sqrt(np.mean(data.steps.reward[:-4] ** 2)), rtol=1e-5)


def test_the_rate_falls_to_nothing_and_never_below():
    hypers, posterior = tiny("rppo", lr=0.05), worlds_of(ACTIONS["box"])
    data, key = log_of(ACTIONS["box"]), jax.random.key(7)
    state = rppo.init(key, hypers, data, posterior)
    update = jax.jit(rppo.update, compiler_options=HASTE)
    moves = []
    total = hypers.updates * hypers.epochs * hypers.minibatches
    for count in (0, total // 2, total, 10 * total):
        after, _ = update(key, hypers, state._replace(count=jnp.asarray(count)), data, posterior)
        moved = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), after.learner.params, state.learner.params)
        moves.append(max(map(float, jax.tree.leaves(moved))))
        assert after.count == count + hypers.epochs * hypers.minibatches
    assert moves[0] > moves[1] > 0
    assert moves[2:] == [0.0, 0.0]


def paying(theta, obs, action):
    """Worlds that pay their own number."""
    mean = jnp.concatenate([jnp.zeros_like(obs), jnp.broadcast_to(theta, (*obs.shape[:-1], 1))], -1)
    return Moments(mean, jnp.zeros_like(mean), jnp.full(mean.shape[:-1], 0.2))


def gathered(**rest):
    posterior = worlds_of(ACTIONS["box"], paying, 5, jnp.arange(M) / 2.0)
    hypers = tiny("rppo", segment=31, **rest)
    state = rppo.init(jax.random.key(8), hypers, log_of(ACTIONS["box"]), posterior)
    arena = rppo.dream(hypers, posterior)
    where, rows, last = jax.jit(
        lambda key: rppo.gather(key, hypers, state, arena, posterior.task), compiler_options=HASTE
    )(jax.random.key(9))
    return posterior, state, where, jax.tree.map(np.asarray, rows), last


def test_every_copy_stays_in_its_world_and_episodes_follow_each_other():
    posterior, state, where, rows, last = gathered()
    np.testing.assert_array_equal(rows["reward"], np.broadcast_to(np.repeat(np.arange(M) / 2.0, COPIES), (31, 55)))
    over = rows["ended"] | rows["late"]
    assert not (rows["ended"] & rows["late"]).any()
    np.testing.assert_array_equal(rows["start"][1:], over[:-1])
    assert rows["start"][0].all()
    assert 0.1 < rows["ended"].mean() < 0.3
    clock = np.asarray(state.where.clock)
    assert len(set(clock.tolist())) == 5  # they do not all end together
    for t in range(31):
        clock = clock + 1
        np.testing.assert_array_equal(rows["late"][t], (clock >= 5) & ~rows["ended"][t])
        clock = np.where(over[t], 0, clock)
    np.testing.assert_array_equal(where.clock, clock)
    np.testing.assert_array_equal(rows["obs"][1:][~over[:-1]], rows["next_obs"][:-1][~over[:-1]])
    begun = rows["obs"][1:][over[:-1]]
    assert (np.abs(begun[:, None] - np.asarray(posterior.starts)).max(-1).min(1) < 1e-6).all()
    assert last.shape == (55,)


def test_per_step_copies_change_worlds():
    rows = gathered(per_step=True)[3]
    assert (np.ptp(rows["reward"], 0) > 1).all()
    np.testing.assert_allclose(rows["reward"].mean(1), 1.0)  # but each step sees every world alike


@pytest.mark.parametrize("scale", rppo.planner.spaces)
def test_a_named_space_is_distinct_settings(scale):
    found = planners.space("rppo", scale)
    assert len({(*jax.tree.leaves(s), jax.tree.structure(s)) for s in found}) == len(found) >= 2
    assert scale != "paper" or len(found) == 16


@pytest.mark.parametrize("scale", rppo.planner.spaces)
def test_a_named_space_has_the_core_asked_for_and_wastes_no_segment(scale):
    found = planners.space("rppo", scale)
    for core in _memory.CORES:
        only = planners.space("rppo", scale, core=core)
        assert {s.core for s in only} == {core}
        assert len(set(only)) == len(only)
    for setting in (*found, *PAPER.values()):
        assert setting.envs % setting.minibatches == 0  # no segment is left out
        assert setting.updates >= 1
        assert 0 < setting.discount < 1


def test_a_space_that_does_not_exist_is_told_which_do():
    with pytest.raises(BadInput, match=", ".join(rppo.planner.spaces)):
        planners.space("rppo", "huge")


# ---- two hypotheses: what memory is worth
#
# Two worlds and two actions, nothing to observe but what is paid:
#
#              look    go
#   world A      0      1
#   world B      1     -1
#
# Looking pays 1/2 on average and going 0, so that without memory, or where the world changes at every step, always
# to look is best: 1/2 a step, (1/2) / (1 - 0.95) = 10. What looking pays tells the worlds apart: a policy that
# remembers looks once, for 1/2 on average, and then earns 1 at every step: 1/2 + 0.95 / (1 - 0.95) = 19.5. (To go
# first earns 0 + 19.) Plans are trained on episodes of 20 steps, with the value standing for the rest of those
# that time out, and are evaluated over 200, which is for ever up to 0.95^200 = 0.00004.

SEEDS = 2


def two(theta, obs, action):
    look, go = action[..., 0], action[..., 1]
    pays = jnp.where(theta == 0, go, look - go)
    mean = jnp.stack([jnp.zeros_like(pays), pays], -1)
    return Moments(mean, jnp.zeros_like(mean), jnp.zeros(mean.shape[:-1]))


def two_worlds(horizon: int) -> Posterior:
    edge = np.ones(2)
    return by_hand.worlds(two, jnp.arange(2), np.zeros((1, 1)), -edge, edge, Task(horizon, 0.95, Discrete(2)))


def planned_in_two_worlds(**rest) -> np.ndarray:
    """Discounted value of what rppo learns, by seed [SEEDS] and world [2]."""
    hypers = rppo.Hypers(
        envs=32,
        segment=16,
        steps=30_000,
        epochs=4,
        minibatches=2,
        width=16,
        lr=1e-2,
        discount=0.95,
        entropy=0.01,
        **rest,
    )
    rows = np.zeros((5, 1), np.float32)
    steps = Transition(rows, np.zeros((5, 2), np.float32), np.ones(5, np.float32), rows, rows, rows[:, 0])
    data = Dataset(steps, rows[:1], np.full(5, -1), np.asarray(5, np.int32))
    own, ever = two_worlds(20), two_worlds(200)

    def run(key):
        k1, k2, k3 = jax.random.split(key, 3)
        state = rppo.init(k1, hypers, data, own)
        one = lambda state, key: rppo.update(key, hypers, state, data, own)
        state, _ = jax.lax.scan(one, state, jax.random.split(k2, hypers.updates))
        return rollouts(k3, rppo.policy(hypers, state, own.task), ever, copies=3)[0].values.mean(-1)

    keys = jax.random.split(jax.random.key(0), SEEDS)
    return np.asarray(jax.jit(jax.vmap(run), compiler_options=HASTE)(keys))


@pytest.mark.parametrize("core", ["linear", "gru"])
def test_a_policy_that_remembers_finds_out_which_world_it_is_in(core):
    value = planned_in_two_worlds(core=core)
    assert (value.mean(1) >= 0.95 * 19.5).all(), value


@pytest.mark.parametrize("rest", [{"core": "linear", "per_step": True}, {"core": "none"}], ids=str)
def test_where_nothing_can_be_remembered_there_is_nothing_to_find_out(rest):
    value = planned_in_two_worlds(**rest)
    np.testing.assert_allclose(value.mean(1), 10.0, rtol=0.15)
