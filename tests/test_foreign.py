"""Policies from anywhere: what forms are taken, that they are judged as if they were our own, what is refused."""

import warnings
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import two_states as two
from imagined import fitted

from offing.posterior.models import linear
from offing.types import BadInput, BadPolicy, Box, Dataset, Discrete, Policy, Seen, Task, Transition
from offing.value import _table, importance
from offing.value._foreign import Host, Native, is_host, living, on_host
from offing.value._view import alone
from offing.value.estimators import dualdice as dice
from offing.value.estimators import fqe
from offing.value.foreign import check, foreign
from offing.value.pool import memoryless
from offing.value.predictive import predictive, rolled

KEY = jax.random.key(0)
BOX = Task(7, 0.9, Box((-1.0, 0.0), (3.0, 2.0)))
THREE = Task(7, 0.9, Discrete(3))
GAIN = np.array([[0.3, -0.1], [0.2, 0.4], [-0.5, 0.1]], np.float32)  # [S, A]


# ---- one policy, written in every way that is taken


def amounts(obs):
    """Cannot be traced: the host's."""
    return np.clip(np.asarray(obs) @ GAIN + 1.0, *BOX.actions)


def traced(obs):
    return jnp.clip(obs @ GAIN + 1.0, *jnp.array(BOX.actions))


def with_jax_inside(obs):
    """On the host, and computes with JAX there, one operation at a time: as a callback this could never end."""
    return np.asarray(traced(jnp.asarray(np.asarray(obs))))


class Predicts:
    """As users of other libraries know it; it has no state."""

    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        assert deterministic
        assert episode_start.shape == (len(obs),)
        return amounts(obs), None


class Plain:
    def predict(self, x):
        return amounts(x)


@dataclass(frozen=True)
class Ours:
    """The same as a Policy of our own."""

    def __call__(self, params, memory, seen, key):
        return jnp.clip(seen.obs @ params + 1.0, *jnp.array(BOX.actions)), memory


WAYS = [(amounts, Host), (traced, Native), (with_jax_inside, Host), (Predicts(), Host), (Plain(), Host)]
OURS = Policy(jnp.asarray(GAIN), (), Ours())


def counted(obs, state, episode_start):
    """Adds up what it has seen: 2 steps' worth at most is remembered, as a dict of arrays."""
    fresh = state is None
    assert fresh == bool(np.asarray(episode_start).all())
    total = np.asarray(obs)[:, 0] + (0 if fresh else 0.5 * state["total"])
    return np.stack([np.clip(total, -1, 3), np.ones(len(obs))], 1), {
        "total": total,
        "steps": np.zeros((len(obs), 2)),
    }


def counted_traced(obs, state, episode_start):
    total = obs[:, 0] + (0 if state is None else 0.5 * state["total"])
    return jnp.stack([jnp.clip(total, -1, 3), jnp.ones(len(obs))], 1), {"total": total}


@dataclass(frozen=True)
class Counts:
    def __call__(self, params, memory, seen, key):
        total = seen.obs[..., 0] + 0.5 * jnp.where(seen.start > 0, 0.0, memory)
        return jnp.stack([jnp.clip(total, -1, 3), jnp.ones_like(total)], -1) * params, total


REMEMBERS = [(counted, Host), (counted_traced, Native)]
COUNTS = Policy(jnp.ones(()), np.float32(0), Counts())


def walked(episodes=6, length=5, seed=0) -> Dataset:
    """Random episodes of three numbers and two amounts, the last one shorter than the others."""
    rng = np.random.default_rng(seed)
    n = episodes * length - 2
    obs = rng.normal(size=(n + 1, 3)).astype(np.float32)
    action = rng.uniform((-1, 0), (3, 2), (n, 2)).astype(np.float32)
    reward = (obs[:-1, 0] + action[:, 0]).astype(np.float32)
    episode = np.arange(n) // length
    done = (np.arange(n) % (2 * length) == length - 1).astype(np.float32)
    last = np.append(np.diff(episode) > 0, True)
    after = np.where(last[:, None], obs[1:] + 0.5, obs[1:])  # what came after an end is nowhere else
    steps = Transition(obs[:-1], action, reward, after, action, done)
    return Dataset(steps, obs[:-1][np.append(True, last[:-1])], episode, np.asarray(n, np.int32))


@pytest.fixture(scope="module")
def worlds():
    data = walked()
    return data, fitted(linear.model, KEY, linear.Hypers(noise=0.3, members=3), data, BOX)


@pytest.mark.parametrize(("way", "kind"), WAYS)
def test_every_form_acts_as_it_is_written(way, kind):
    policy = foreign(way, BOX, 3, "f")
    assert type(policy.act) is kind
    assert (policy.memory, is_host(policy)) == ((), kind is Host)
    obs = np.random.default_rng(1).normal(size=(2, 5, 3)).astype(np.float32)
    done, memory = policy.act(policy.params, (), alone(obs, BOX.actions), None)
    assert (done.shape, memory) == ((2, 5, 2), ())
    np.testing.assert_allclose(done.reshape(10, 2), amounts(obs.reshape(10, 3)), atol=1e-6)
    one, _ = policy.act(policy.params, (), alone(obs[0, 0], BOX.actions), None)
    np.testing.assert_allclose(one, done[0, 0], atol=1e-6)


@pytest.mark.parametrize(("way", "kind"), WAYS)
def test_it_earns_what_the_same_policy_of_our_own_does(way, kind, worlds):
    data, posterior = worlds
    ours, theirs = (predictive(KEY, p, posterior, data, copies=11) for p in (OURS, foreign(way, BOX, 3, "f")))
    np.testing.assert_allclose(theirs.returns.returns, ours.returns.returns, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(theirs.value.returns, ours.value.returns, rtol=1e-4, atol=1e-4)
    assert 0 < theirs.length == ours.length < 7  # some episodes of the log ended by themselves
    assert theirs.support.outside == pytest.approx(ours.support.outside, abs=0.02)


@pytest.mark.parametrize(("way", "kind"), REMEMBERS)
def test_a_state_is_the_policys_memory(way, kind, worlds):
    posterior = worlds[1]
    policy = foreign(way, BOX, 3, "f")
    assert type(policy.act) is kind
    assert jax.tree.leaves(policy.memory)[-1].shape == ()
    ours, theirs = (rolled(KEY, p, posterior, 11)[0] for p in (COUNTS, policy))
    np.testing.assert_allclose(theirs.returns, ours.returns, rtol=1e-4, atol=1e-4)
    blank, plain = (rolled(KEY, memoryless(p), posterior, 11)[0] for p in (COUNTS, policy))
    np.testing.assert_allclose(plain.returns, blank.returns, rtol=1e-4, atol=1e-4)
    assert np.abs(blank.returns - ours.returns).max() > 0.1
    obs, both = np.ones((2, 3), np.float32), np.array([1.0, 0.0], np.float32)  # one begins, the other goes on
    seen = alone(obs, BOX.actions)._replace(start=both)
    memory = jax.tree.map(lambda leaf: leaf + 1, policy.begin(2))
    assert np.asarray(policy.act(policy.params, memory, seen, None)[0])[:, 0].tolist() == [1.0, 1.5]


def test_choices_are_one_hot_rows_and_episodes_that_are_over_are_not_asked():
    task = Task(7, 0.9, Discrete(2), lambda obs, action, after: after[..., 0] > 0.5)
    data = walked()
    choice = np.eye(2, dtype=np.float32)[np.arange(data.rows) % 2]
    data = data._replace(steps=data.steps._replace(action=choice, next_action=choice))
    worlds = fitted(linear.model, KEY, linear.Hypers(noise=0.1, members=3), data, task)
    worlds = replace(worlds, starts=jnp.asarray(worlds.starts).at[:, 0].set(-0.5))
    asked = []

    def push(obs):
        asked.append(len(obs))
        assert (obs[:, 0] <= 0.5).all()
        return [int(row[1] > 0) for row in obs]

    policy = foreign(push, task, 3, "f")
    asked.clear()
    found, (_, action, alive) = rolled(KEY, policy, worlds, 5, path=True)
    assert asked == [15] * len(action)  # one call a step for all episodes of all worlds
    assert np.asarray(found.lengths).min() < 7
    assert alive[-1].any()
    assert (action.sum(-1) == 1).all()
    ours = foreign(lambda obs: jnp.where(obs[:, 1] > 0, 1, 0), task, 3, "f")
    np.testing.assert_allclose(rolled(KEY, ours, worlds, 5)[0].returns, found.returns, rtol=1e-4)


def test_ten_thousand_episodes_with_jax_inside_come_to_an_end():
    """Sixty numbers, as many as an ant has; what hangs is stopped by the suite's time limit."""
    n = 10_000
    data = walked()
    wide = lambda a: np.tile(a, (1, 20))
    steps = data.steps._replace(
        obs=wide(data.steps.obs), next_obs=wide(data.steps.next_obs), done=0 * data.steps.done
    )
    data = data._replace(steps=steps, starts=wide(data.starts))  # in which nothing ends
    posterior = fitted(linear.model, KEY, linear.Hypers(noise=0.1, members=2), data, BOX._replace(horizon=20))
    policy = foreign(lambda obs: with_jax_inside(obs[:, :3]), posterior.task, 60, "f")
    assert is_host(policy)
    found = rolled(KEY, policy, posterior, n // 2)[0]
    assert np.asarray(found.lengths).sum() == 20 * n


# ---- estimators that read the log alone

TINY = {"width": 8, "depth": 1, "batch_size": 16, "updates": 40}


def best(obs):
    """What two.BOLD thinks best."""
    return (np.asarray(obs) @ two.BOLD).argmax(1)


def test_estimators_judge_it_as_the_same_policy_and_ask_it_once():
    asked = []
    policy = foreign(lambda obs: (asked.append(len(obs)), best(obs))[1], two.TASK, 2, "f")
    data, _ = two.played(two.SHY, 12, 6, 0)
    pool = [policy, two.policy(two.BOLD)]
    before = len(asked)
    for estimator, hypers in (
        (fqe.fqe, fqe.Hypers(**TINY, members=2)),
        (dice.dualdice, dice.Hypers(**TINY, members=2)),
        (importance.importance, importance.Hypers(**TINY, replicates=20)),
        (importance.doubly_robust, importance.Doubly(**TINY, members=2, replicates=20)),
    ):
        theirs, ours = estimator(KEY, pool, data, two.TASK, hypers)
        assert np.isfinite(theirs.estimate.median)
        np.testing.assert_allclose(theirs.estimate.returns, ours.estimate.returns, rtol=1e-3, atol=1e-3)
        assert theirs.notes == ours.notes
    assert len(asked) - before == 4  # once for each, at
    assert set(asked[before:]) == {2}  # the two states that the log has


def test_pools_of_foreign_policies_are_one_program():
    data = two.every_transition()
    pool = [foreign(lambda obs, i=i: np.full(len(obs), i), two.TASK, 2, "f") for i in (0, 1, 0)]
    before = dice.fit._cache_size()
    judged = dice.dualdice(KEY, pool, data, two.TASK, dice.Hypers(**TINY, members=2))
    assert dice.fit._cache_size() - before == 1
    assert judged[0].estimate.median == judged[2].estimate.median != judged[1].estimate.median


@pytest.mark.parametrize(("way", "kind"), REMEMBERS)
def test_a_memory_is_rolled_along_the_log(way, kind):
    del kind
    data = walked()
    policy = foreign(way, BOX, 3, "f")
    for estimator, hypers in (
        (importance.importance, importance.Hypers(**TINY, replicates=20)),
        (importance.doubly_robust, importance.Doubly(**TINY, members=2, replicates=20)),
    ):
        theirs, ours = estimator(KEY, [policy, COUNTS], data, BOX, hypers)
        assert np.isfinite(theirs.estimate.returns).all()
        np.testing.assert_allclose(theirs.estimate.returns, ours.estimate.returns, rtol=1e-3, atol=1e-3)
    forgetful = importance.importance(KEY, memoryless(policy), data, BOX, importance.Hypers(**TINY, replicates=20))
    plain = importance.importance(KEY, memoryless(COUNTS), data, BOX, importance.Hypers(**TINY, replicates=20))
    assert forgetful.estimate.median == pytest.approx(plain.estimate.median, rel=1e-3)
    with pytest.raises(BadInput, match="remembers"):
        fqe.fqe(KEY, policy, data, BOX, fqe.Hypers(**TINY))
    bag = data._replace(episode=np.full(data.rows, -1))
    with pytest.raises(BadInput, match="bag of transitions"):
        importance.importance(KEY, policy, bag, BOX, importance.Hypers(**TINY))


def test_a_table_takes_nothing_that_is_no_action():
    data = walked()
    bad = float(data.steps.obs[1, 0])
    policy = foreign(lambda obs: jnp.where(obs[:, :1] == bad, 9.0, 1.0) * jnp.ones(2), BOX, 3, "f")
    high = lambda obs, state: (9.0 + counted_traced(obs, state, None)[0], {"total": obs[:, 0]})
    remembers = foreign(high, BOX, 3, "f")
    for each in (policy, remembers, memoryless(remembers)):
        with pytest.raises(BadPolicy, match=r"^f: gave \[.*\] for observation \d+ of \d+, \["):
            importance.importance(KEY, each, data, BOX, importance.Hypers(**TINY))
    assert type(policy.act) is type(remembers.act) is Native


def test_a_table_knows_its_rows_and_no_others():
    data = walked()
    table = _table.on_log(foreign(amounts, BOX, 3, "f"), data, BOX)
    assert table.params.first.shape == (data.rows + len(data.starts),)  # what follows a row is a row, but at ends
    assert _table.on_log(OURS, data, BOX) is OURS
    there = np.concatenate([data.steps.obs, data.steps.next_obs, data.starts])
    np.testing.assert_array_equal(table.act(table.params, (), alone(there, BOX.actions), None)[0], amounts(there))
    other = np.nextafter(there, np.inf, dtype=np.float32)
    assert np.isnan(table.act(table.params, (), alone(other, BOX.actions), None)[0]).all()


def test_rows_that_share_half_a_hash_are_told_apart():
    obs = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    second = np.asarray(_table.chained(np.zeros((3, 2), np.uint32), obs))[:, 1]
    first = jnp.asarray(np.repeat(_table.chained(np.zeros(2, np.uint32), obs[1])[0], 3))
    kept = _table.Kept(first, jnp.asarray(second), jnp.arange(3.0)[:, None])
    seen = Seen(obs, np.zeros((3, 1)), np.zeros(3), np.ones(3))
    assert np.asarray(_table.Table()(kept, (), seen, None)[0])[1] == 1.0


def test_hashes_depend_on_order_and_history():
    one, other = np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)
    blank = np.zeros(2, np.uint32)
    a, b = _table.chained(blank, one), _table.chained(blank, other)
    found = [
        a,
        b,
        _table.chained(a, b * 0 + 1.0),
        _table.chained(a, one),
        _table.chained(b, one),
        _table.chained(a, other),
    ]
    assert len({tuple(np.asarray(h).tolist()) for h in found}) == len(found)
    grid = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), -1).reshape(-1, 2).astype(np.float32)
    hashes = np.asarray(_table.chained(np.zeros((len(grid), 2), np.uint32), grid))
    assert len(np.unique(hashes, axis=0)) == len(grid)
    ties = len(grid) - len(np.unique(hashes[:, 0]))  # of 90,000 in 2^32: one is expected
    assert ties < 8


# ---- what is refused


def odd(value):
    """A choice that is wrong at one row alone: the eleventh."""
    return lambda obs: np.where(np.isclose(np.asarray(obs)[:, 0], walked().steps.obs[11, 0]), value, 1)


def odd_amount(value):
    def act(obs):
        bad = np.isclose(np.asarray(obs)[:, :1], walked().steps.obs[11, 0])
        return np.where(bad, value, 1.0) * np.ones(2)

    return act


def seeded(obs, rng=np.random.default_rng(0)):  # noqa: B008
    return rng.uniform(0, 1, (len(obs), 2))


ROW = r"for row 11 of the log, \[[-\d., ]+\], which "
BAD_ROWS = [
    (THREE, odd(3), rf"^f: gave 3 {ROW}is not one of the choices 0 to 2$"),
    (THREE, odd(-1), rf"^f: gave -1 {ROW}is not one"),
    (THREE, odd(0.5), rf"^f: gave 0.5 {ROW}is not one"),
    (THREE, odd(np.nan), rf"^f: gave nan {ROW}is not one"),
    (
        THREE,
        lambda obs: 3 * (obs[:, 0] > 1e9) + 1.0 * (obs[:, 0] == walked().steps.obs[11, 0]) * 4,
        rf"gave 4 {ROW}",
    ),
    (BOX, odd_amount(3.5), rf"^f: gave \[3.5, 3.5\] {ROW}is not within \[-1, 0\] and \[3, 2\]$"),
    (BOX, odd_amount(np.nan), rf"^f: gave \[nan, nan\] {ROW}is not within"),
    (BOX, odd_amount(np.inf), rf"^f: gave \[inf, inf\] {ROW}is not within"),
    (
        BOX,
        seeded,
        r"^f: gave \[.*\] for .*, and \[.*\] when called again among others: what it does must follow from",
    ),
    (BOX, lambda obs: amounts(obs - np.asarray(obs).mean(0)), "when called again among others"),
    (BOX, lambda obs: amounts(obs) if len(obs) == 5 else 1 / 0, r"^f: failed, given \d+ .*: ZeroDivisionError"),
]


@pytest.mark.parametrize(("task", "function", "why"), BAD_ROWS)
def test_what_is_no_action_is_named_with_its_row(task, function, why):
    policy = foreign(function, task, 3, "f")
    with pytest.raises(BadInput, match=why) as caught:
        check(policy, walked(), task, "f")
    assert "\n" not in str(caught.value)


def test_what_is_right_is_let_through():
    for way, _ in [*WAYS, *REMEMBERS]:
        check(foreign(way, BOX, 3, "f"), walked(), BOX, "f")
    check(OURS, walked(), BOX, "ours")
    check(foreign(odd(2), THREE, 3, "f"), walked(), THREE, "f")
    check(foreign(lambda obs: amounts(obs) * (1 + 1e-7), BOX, 3, "f"), walked(), BOX, "f")


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (Policy(jnp.full((3, 2), jnp.nan), (), Ours()), r"gave \[nan, nan\] for row 0 of the log"),
        (Policy(jnp.ones((4, 2)), (), Ours()), "failed, given"),
        (Policy(jnp.ones(()), np.float32(0), lambda p, m, s, k: (s.obs, m)), r"shape \(\d+, 3\) where \(\d+, 2\)"),
        (Policy(jnp.ones(()), (), lambda p, m, s, k: (s.obs[..., :2] * 0 + 9, m)), r"gave \[9, 9\] for row 0 "),
    ],
)
def test_policies_of_our_own_are_looked_at_too(policy, why):
    with pytest.raises(BadInput, match=why):
        check(policy, walked(), BOX, "ours")


FORMS = [
    (
        lambda obs, hidden, first: obs,
        r"takes \(obs, hidden, first\), where f\(obs\) or f\(obs, state, episode_start",
    ),
    (Plain, r"^f: is a class"),
    (7, r"^f: is a int"),
    (lambda obs: np.ones((len(obs), 3)), r"gave shape \(5, 3\) for 5 observations, where \(5, 2\) was expected"),
    (lambda obs: np.ones(2), r"gave shape \(2,\)"),
    (lambda obs: 1 / 0, "failed, given 5 observations, .*ZeroDivisionError"),
    (lambda obs: [1, [2]], "failed, given 5 observations"),
    (lambda obs, state=None: amounts(obs), "takes a state, and must give actions and a state; it gave ndarray"),
    (lambda obs, state: (amounts(obs), np.ones((2, len(obs)))), r"one row for each of the 5 .*float64 \(2, 5\)"),
    (lambda obs, state: (amounts(obs), [object()] * 5), "arrays of numbers"),
    (lambda obs, state: (amounts(obs), np.ones((len(obs), 1 if state is None else 2))), "changed its shape"),
]


@pytest.mark.parametrize(("thing", "why"), FORMS)
def test_what_is_no_policy_is_refused_before_it_is_used(thing, why):
    with pytest.raises(BadInput, match=why) as caught:
        foreign(thing, BOX, 3, "f")
    assert "\n" not in str(caught.value)


def test_what_goes_wrong_on_the_way_is_named(worlds):
    """It knows the rows of the log and nothing else, which `check` cannot see."""
    data, posterior = worlds
    known = np.concatenate([data.steps.obs[:, 0], data.starts[:, 0]])
    far = lambda xp: lambda obs: xp.where(xp.isin(obs[:, :1], known), 1.0, xp.nan) * xp.ones(2)
    for policy in (foreign(lambda obs: far(np)(np.asarray(obs)), BOX, 3, "f"), foreign(far(jnp), BOX, 3, "f")):
        check(policy, data, BOX, "f")
        with pytest.raises(BadInput, match=r"^f: gave \[nan, nan\] for .*, which is not within") as caught:
            predictive(KEY, policy, posterior, data, copies=16)
        assert "\n" not in str(caught.value)


def test_the_host_is_not_asked_from_inside_a_program(worlds):
    policy = foreign(amounts, BOX, 3, "f")
    with pytest.raises(TypeError, match="JAX cannot trace it"):
        jax.jit(lambda obs: policy.act(policy.params, (), alone(obs, BOX.actions), None))(jnp.ones((2, 3)))
    assert on_host(OURS) is OURS
    assert is_host(on_host(foreign(traced, BOX, 3, "f")))


def test_episodes_that_are_over_stand_where_one_goes_on():
    obs = np.arange(12.0).reshape(2, 2, 3)
    alive = np.array([[False, True], [True, False]])
    np.testing.assert_array_equal(living(obs, alive), [[obs[0, 1], obs[0, 1]], [obs[1, 0], obs[0, 1]]])


class Tree:
    """A model as scikit-learn has them: fitted on a table with names, it warns of an array without."""

    feature_names_in_ = np.array(["x", "v"], dtype=object)

    def predict(self, X):
        if not hasattr(X, "columns"):
            warnings.warn("X does not have valid feature names", UserWarning, stacklevel=2)
        warnings.warn("this model is old", FutureWarning, stacklevel=2)
        return (np.asarray(X)[:, 0] > 0).astype(int)


def test_a_model_with_names_gets_them_and_warns_once():
    pytest.importorskip("pandas")
    task = Task(5, 0.9, Discrete(2))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        policy = foreign(Tree(), task, 2, "tree")
        for _ in range(20):
            policy.act(policy.params, (), Seen(np.ones((3, 2)), np.zeros((3, 2)), np.zeros(3), np.ones(3)), None)
    assert [str(each.message) for each in heard] == ["this model is old"]
