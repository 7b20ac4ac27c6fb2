"""Columns whose next value follows from those of others: found in the log, and drawn once the others are there."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing import load
from offing.data import Log, split
from offing.pil import evidence
from offing.posterior import _keep
from offing.posterior._derived import derived
from offing.posterior._kinds import Kinds, kinds_of
from offing.posterior._masks import masks
from offing.posterior._words import described
from offing.posterior._world import Expect, World
from offing.posterior.models import ensemble
from offing.posterior.models.ensemble import Hypers
from offing.posterior.walk import Place, expected, fixed, memories
from offing.types import BadInput, Posterior

STEPS = 20
TINY = Hypers(width=32, depth=2, activation="silu", batch_size=64, updates=600, lr=1e-2, members=2, elites=2)


def log_of(columns: list[np.ndarray], after: list[np.ndarray], action: np.ndarray, reward: np.ndarray) -> Log:
    obs, led = (np.stack(each, 1).astype(np.float32) for each in (columns, after))
    return load(
        {"obs": obs, "next_obs": led, "action": action[:, None].astype(np.float32), "reward": reward}
        | {"truncated": np.arange(len(obs)) % STEPS == STEPS - 1, "action_low": -1.0, "action_high": 1.0}
    )


def shop(rows: int = 2_400, seed: int = 0) -> Log:
    """Customers come by chance, most of them on one day of two; goods that are not there cannot be sold."""
    rng = np.random.default_rng(seed)
    seen, led, acts, paid = [], [], [], []
    for _ in range(rows // STEPS):
        x = np.array([rng.uniform(0, 30), 0.0, rng.integers(0, 2), 0.0])  # stock, customers, day, income
        for _ in range(STEPS):
            a = rng.uniform(-1, 1)
            came = rng.gamma(2.0, 8.0 if x[2] else 2.0)
            there = x[0] + 10 * (1 + a)
            new = np.array([max(there - came, 0.0), came, 1 - x[2], 3 * min(there, came)])
            for rows_, row in ((seen, x), (led, new), (acts, a), (paid, new[3] - 10 * (1 + a))):
                rows_.append(row)
            x = new
    columns = lambda those: list(np.array(those).T)
    return log_of(columns(seen), columns(led), np.array(acts), np.array(paid, np.float32))


def found(log: Log) -> tuple[int, ...]:
    return derived(log.data, kinds_of(log.data)[0])


def test_stock_and_income_follow_from_customers():
    assert found(shop()) == (0, 3)


@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_so_in_other_logs_of_the_shop(seed):
    assert found(shop(seed=seed)) == (0, 3)


def test_one_of_two_columns_of_the_same_in_other_units_follows():
    rng = np.random.default_rng(0)
    warm = rng.normal(size=1_200)
    after, action = 0.8 * warm + rng.normal(size=1_200), rng.uniform(-1, 1, 1_200)
    other = rng.normal(size=(2, 1_200))
    log = log_of([warm, 32 + 1.8 * warm, other[0]], [after, 32 + 1.8 * after, other[1]], action, warm)
    assert len(found(log)) == 1
    assert set(found(log)) < {0, 1}


def test_what_is_certain_or_only_goes_together_does_not_follow():
    """Nothing is open in a swing without noise; and a common cause that leaves half open is a common cause."""
    rng = np.random.default_rng(0)
    x, v, action = rng.normal(size=1_200), rng.normal(size=1_200), rng.uniform(-1, 1, 1_200)
    faster = v - 0.1 * x + 0.2 * action
    assert found(log_of([x, v], [x + 0.1 * faster, faster], action, x)) == ()
    shared, own = rng.normal(size=1_200), rng.normal(size=(2, 1_200))
    assert found(log_of([x, v], [shared + own[0], shared + own[1]], action, x)) == ()


def test_a_column_that_chooses_leads():
    """Rain is told from what flows in; but it is rain that has a chance, and what flows in follows."""
    rng = np.random.default_rng(0)
    rain, inflow, action = (
        rng.integers(0, 2, 1_201).astype(float),
        rng.normal(size=1_201),
        rng.uniform(-1, 1, 1_200),
    )
    inflow = 5 * rain + 0.5 * inflow
    assert found(log_of([inflow[:-1], rain[:-1]], [inflow[1:], rain[1:]], action, action)) == (0,)


def test_what_no_action_changes_follows_from_such_columns_alone():
    """Demand could be told from the stock as well as the stock from demand; but demand is the one to lead."""
    rng = np.random.default_rng(1)
    seen, led, acts = [], [], []
    for _ in range(60):
        stock, demand = rng.normal(10, 3, 2)
        for _ in range(STEPS):
            a, came = rng.uniform(-1, 1), 10 + 0.5 * (demand - 10) + rng.normal(0, 3)
            after = 0.8 * stock + 8 * (1 + a) - 0.8 * came + 4
            for rows, row in ((seen, (stock, demand)), (led, (after, came)), (acts, a)):
                rows.append(row)
            stock, demand = after, came
    columns = lambda those: list(np.array(those).T)
    log = log_of(columns(seen), columns(led), np.array(acts), np.array(acts))
    assert found(log) == (1,)  # where nobody says whose cause is whose
    assert derived(log.data, kinds_of(log.data, exogenous=(1,))[0]) == (0,)


def test_few_episodes_or_one_column_say_nothing():
    assert found(shop(rows=200)) == ()
    x = np.random.default_rng(0).normal(size=1_200)
    assert found(log_of([x], [x[::-1]], np.clip(x, -1, 1), x)) == ()


def test_masks_let_columns_that_follow_read_those_that_lead_and_no_others():
    """Of four columns the first follows, the second is moved by no action, and the third is both."""
    kinds = Kinds(4, exogenous=(1, 2), derived=(0, 2), gates=((2, "stays"),))
    assert kinds.leads == (1, 3)
    inputs = 4 + 1 + 2  # state, one action, how the columns that lead changed
    mask = masks(kinds, inputs, 32, 2)
    reach = np.abs(mask.net[2]) @ np.abs(mask.net[1]) @ np.abs(mask.net[0]) > 0  # [2D, X]
    everything = [[1, 1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 1, 0], [1, 1, 1, 1, 1, 0, 0]]
    for column, seen in enumerate(everything):
        assert mask.reads[column].astype(int).tolist() == seen
        for row in (column, column + 4):  # its mean and its variance
            assert reach[row].astype(int).tolist() == seen
    logit = mask.extra @ np.abs(mask.net[1]) @ np.abs(mask.net[0]) > 0
    assert logit[0].astype(int).tolist() == everything[2]


@pytest.fixture(scope="module")
def fitted():
    log = shop()
    prepared = ensemble.model.prepare(log.data, log.task)
    parts, _ = split(log.data, 0, 2)
    hypers = replace(TINY, prior_scale=0.5)
    train = jax.jit(ensemble.model.fit, static_argnums=5)
    done = train(jax.random.key(0), hypers, log.data, parts, prepared.arrays, prepared.shape)
    worlds = ensemble.model.posterior(done, hypers, prepared, log.data, log.task)
    return log, ensemble.calibrate(worlds, *[[log.data] * worlds.folds] * 2, np.ones(5))


def world_of(worlds: Posterior) -> World:
    assert isinstance(worlds.moments, Expect)
    return worlds.moments.world


def test_goods_that_are_sold_are_gone(fitted):
    """In imagined steps stock, customers and income go together as the shop's own rule has it."""
    log, worlds = fitted
    assert world_of(worlds).kinds.derived == (0, 3)
    steps, rows = log.data.steps, np.arange(0, log.data.rows, 3)
    every = lambda leaf: jnp.broadcast_to(np.asarray(leaf)[rows], (worlds.members, len(rows), leaf.shape[1]))
    obs, action = every(steps.obs), every(steps.action)
    place = Place(obs, memories(worlds, len(rows)))
    after = np.asarray(fixed(worlds)(jax.random.key(1), place, action)[1].next_obs)
    there = np.asarray(obs[..., 0] + 10 * (1 + action[..., 0]))
    stock, income = np.maximum(there - after[..., 1], 0), 3 * np.minimum(there, after[..., 1])
    for column, rule in ((0, stock), (3, income)):
        assert np.mean(np.square(after[..., column] - rule)) < 0.05 * np.var(rule)


def test_what_leads_does_not_read_what_came_of_it(fitted):
    """Customers are expected as before, whatever is said of the step; the stock is not."""
    log, worlds = fitted
    steps = log.data.steps
    world, theta = world_of(worlds), jax.tree.map(lambda leaf: leaf[0], worlds.theta)
    obs, action = (jnp.asarray(np.asarray(leaf)[:64]) for leaf in (steps.obs, steps.action))
    x = world.enter(theta, (), obs, action)
    plain, more = world.says(theta, x, jnp.zeros((64, 4))), world.says(theta, x, jnp.full((64, 4), 5.0))
    np.testing.assert_array_equal(plain.mean[:, 1], more.mean[:, 1])
    assert np.all(plain.mean[:, 0] > more.mean[:, 0])  # five more customers


def test_moments_are_of_what_is_expected_where_nothing_is_known_yet(fitted):
    """The stock with the customers that are expected; and what is open in their number is open in the stock."""
    worlds = fitted[1]
    obs = jnp.broadcast_to(jnp.asarray([40.0, 4.0, 1.0, 12.0]), (worlds.members, 1, 4))
    place = Place(obs, memories(worlds, 1))
    moments = expected(worlds, place, jnp.zeros((worlds.members, 1, 1)))
    mean, std = (np.asarray(each).mean((0, 1, 2)) for each in (moments.mean, moments.std))
    customers = 4.0 + mean[1]
    assert 40.0 + mean[0] == pytest.approx(50.0 - customers, abs=4.0)
    assert 12.0 + mean[3] == pytest.approx(3 * customers, abs=12.0)
    assert std[1] == pytest.approx(8.0 * np.sqrt(2.0), rel=0.4)
    assert std[0] == pytest.approx(std[1], rel=0.4)
    assert std[3] == pytest.approx(3 * std[1], rel=0.4)


def test_what_is_wrong_about_a_column_that_follows_is_no_chance(fitted):
    """Worlds that all sell a fifth less than came are wrong, and customers tell it where the state does not."""
    log, worlds = fitted
    expect = worlds.moments

    def off(theta, memory, obs, action, after=None, ended=None):
        moments = expect(theta, memory, obs, action, after, ended)
        wrong = 0.0 if after is None else 0.2 * jnp.maximum(after[..., 1] - 20.0, 0.0)
        return moments._replace(mean=moments.mean.at[..., 0].add(wrong))

    kept = [log.data] * worlds.folds
    right, biased = (evidence(each, log.data, kept) for each in (worlds, replace(worlds, moments=off)))
    more = biased.plain[0] - right.plain[0]
    assert more > 0.005
    assert biased.bias[0] - right.bias[0] > 0.7 * more
    blind = evidence(replace(worlds, moments=off, derived=()), log.data, kept)
    assert blind.bias[0] < biased.bias[0] - 0.2 * more


def test_the_kinds_of_columns_are_said_in_words():
    kinds = Kinds(
        6,
        exogenous=(1, 4),
        derived=(0,),
        clocks=((4, 24),),
        choices=((2, 3), (6, 2)),
        whole=(0, 6),
        gates=((3, "stays"), (5, "usual"), (6, "usual")),
    )
    assert described(kinds) == {
        "not changed by any action": (1, 4),
        "drawn after the others, from which it follows": (0,),
        "a clock": (4,),
        "of few values and no others": (2,),  # so is the reward, which is no column
        "often unchanged": (3,),
        "often at one value": (5,),
        "a whole number": (0,),
    }


def test_they_are_saved_and_come_back(fitted):
    log, worlds = fitted
    again = ensemble.model.load(_keep.save(worlds), log.task)
    assert world_of(again) == world_of(worlds)
    place = Place(jnp.asarray(worlds.starts)[None, :8].repeat(worlds.members, 0), memories(worlds, 8))
    action = jnp.zeros((worlds.members, 8, 1))
    one, other = (fixed(each)(jax.random.key(0), place, action)[1].next_obs for each in (worlds, again))
    np.testing.assert_array_equal(one, other)
    earlier = _keep.save(worlds)  # as a version wrote it that knew of no such columns: its nets read fewer inputs
    del earlier.rest["kinds"]["derived"]
    with pytest.raises(BadInput, match="another version"):
        ensemble.model.load(earlier, log.task)
