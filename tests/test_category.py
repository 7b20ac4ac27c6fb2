"""Columns of which exactly one is 1 are one category: found in the log, and drawn as one choice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing import load
from offing.data import split
from offing.data.categories import categories, parted
from offing.posterior import _keep
from offing.posterior._calibrate import calibrate
from offing.posterior._exogenous import untouched
from offing.posterior._kinds import Kinds, kinds_of
from offing.posterior._masks import masks
from offing.posterior._words import described
from offing.posterior.models import ensemble
from offing.posterior.models.ensemble import Hypers
from offing.posterior.walk import Place, fixed, memories

STEPS = 20
TINY = Hypers(width=32, depth=2, activation="silu", batch_size=64, updates=600, lr=1e-2, members=2, elites=2)
WEATHER, MODE = 3, 4  # levels of two categories: one that no action changes, one that actions choose
STAYS = 0.7  # of both: how often it is what it was, whatever was done


def works(rows: int = 2_400, seed: int = 0):
    """A machine in one of four modes; the weather comes and goes; warm is what both make of it."""
    rng = np.random.default_rng(seed)
    eye, seen, led, acts, paid = np.eye, [], [], [], []
    row = lambda warm, weather, mode: np.r_[warm, eye(WEATHER)[weather], eye(MODE)[mode]]
    for _ in range(rows // STEPS):
        warm, weather, mode = rng.normal(), rng.integers(WEATHER), rng.integers(MODE)
        for _ in range(STEPS):
            a = int(rng.integers(MODE))
            new = 0.5 * warm + 0.3 * mode - 0.4 * weather + 0.1 * rng.normal()
            sky = weather if rng.random() < STAYS else rng.integers(WEATHER)
            now = mode if rng.random() < STAYS else a
            for rows_, one in ((seen, row(warm, weather, mode)), (led, row(new, sky, now)), (acts, a)):
                rows_.append(one)
            paid.append(float(now == 2) - float(sky == 1))
            warm, weather, mode = new, sky, now
    columns = {"obs": np.array(seen, np.float32), "next_obs": np.array(led, np.float32)}
    ends = np.arange(len(seen)) % STEPS == STEPS - 1
    more = {"action": np.array(acts), "n_actions": MODE, "reward": np.array(paid, np.float32), "truncated": ends}
    return load(columns | more)


SKY, MODES = (1, 2, 3), (4, 5, 6, 7)


@pytest.fixture(scope="module")
def fitted():
    log = works()
    parts, _ = split(log.data, 0, TINY.folds)
    prepared = ensemble.prepare(log.data, log.task)
    made = jax.jit(ensemble.fit, static_argnums=5)(
        jax.random.key(0), TINY, log.data, parts, prepared.arrays, prepared.shape
    )
    worlds = ensemble.posterior(made, TINY, prepared, log.data, log.task)
    held = [jax.tree.map(lambda leaf: leaf, log.data)] * TINY.folds
    return log, calibrate(worlds, held, held, np.ones(9))


def test_a_category_is_found_beside_others():
    log = works(400)
    data = log.data
    assert categories(np.asarray(data.steps.obs), np.asarray(data.steps.next_obs)) == (SKY, MODES)
    kinds, values, targets = kinds_of(data)
    assert kinds.groups == (SKY, MODES)
    assert kinds.choices[:2] == ((1, 3), (4, 4))
    assert kinds.gates == ()
    assert np.asarray(targets.amount)[:, 1:8].max() == 0
    assert np.array_equal(targets.chosen[:, 1], np.asarray(data.steps.next_obs)[:, 4:8].argmax(1))
    assert values.levels.shape == (3, 4)  # the reward chooses, too


def test_what_is_no_category():
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (200, 3)).astype(float)
    assert categories(coins, rng.integers(0, 2, (200, 3)).astype(float)) == ()
    which = np.eye(3)[rng.integers(0, 3, 201)]
    assert categories(which[:-1], which[:-1]) == ()  # which machine it is: it never changes
    assert categories(which[:-1], which[1:]) == ((0, 1, 2),)
    two = np.c_[which, rng.integers(0, 2, 201)]
    assert categories(two[:-1], two[1:]) == ((0, 1, 2),)
    before = np.c_[rng.integers(0, 2, 201), which]
    assert categories(before[:-1], before[1:]) == ((1, 2, 3),)
    broken = which.copy()
    broken[7] = 0  # nothing in one row
    assert categories(broken[:-1], broken[1:]) == ()
    assert categories(np.ones((5, 1)), np.ones((5, 1))) == ()
    assert categories(which[:-1], which[:-1], still=True) == ((0, 1, 2),)
    assert parted(((1, 2), (3, 4), (5, 6)), np.isin(np.arange(7), (0, 1, 2, 4))) == ((3, 4),)
    late = np.tile(which, (60, 1))
    late[-1] = 0  # which a glance at some rows does not show
    assert categories(late[:-1], late[1:]) == ()


def test_worlds_are_always_in_one_of_them_as_often_as_the_log(fitted):
    _, worlds = fitted
    count = 400
    step, key = fixed(worlds), jax.random.key(1)
    place = Place(jnp.broadcast_to(worlds.starts[0], (worlds.members, count, 8)), memories(worlds, count))
    went = []
    for t in range(12):
        k1, k2 = jax.random.split(jax.random.fold_in(key, t))
        action = jax.nn.one_hot(jax.random.randint(k1, (worlds.members, count), 0, MODE), MODE)
        before = np.asarray(place.obs)
        place, _ = step(k2, place, action)
        went.append((before, np.asarray(action), np.asarray(place.obs)))
    before, action, after = (
        np.concatenate([part.reshape(-1, part.shape[-1]) for part in each]) for each in zip(*went, strict=True)
    )
    for group in (SKY, MODES):
        assert set(np.unique(after[:, group])) == {0.0, 1.0}
        assert np.all(after[:, group].sum(1) == 1)
    stayed = np.mean(after[:, SKY].argmax(1) == before[:, SKY].argmax(1))
    assert stayed == pytest.approx(STAYS + (1 - STAYS) / WEATHER, abs=0.04)
    new = after[:, MODES].argmax(1)
    either = (new == before[:, MODES].argmax(1)) | (new == action.argmax(1))
    assert either.mean() > 0.97  # never a mode that was neither there nor chosen
    assert np.mean(new == action.argmax(1)) == pytest.approx((1 - STAYS) + STAYS / MODE, abs=0.05)


def test_moments_are_the_chances_of_each(fitted):
    log, worlds = fitted
    steps = log.data.steps
    theta = jax.tree.map(lambda leaf: leaf[0], worlds.theta)
    mean, std, _ = worlds.moments(theta, (), jnp.asarray(steps.obs[:50]), jnp.asarray(steps.action[:50]))
    chance = np.asarray(mean[:, :-1]) + np.asarray(steps.obs[:50])
    for group in (SKY, MODES):
        assert np.allclose(chance[:, group].sum(1), 1, atol=1e-5)
        p = np.clip(chance[:, group], 0, 1)
        assert np.allclose(np.asarray(std)[:, group], np.sqrt(p * (1 - p)), atol=1e-4)


def test_no_action_changes_all_of_a_category_or_none(fitted):
    log, worlds = fitted
    found = untouched(log.data)
    assert set(SKY) <= set(found)
    assert not set(MODES) & set(found)
    some = kinds_of(log.data, exogenous=(0, 1, 2))[0]
    assert some.exogenous == (0, 1, 2)  # what a schema names holds, and is then no category
    assert some.groups == (MODES,)
    kinds = worlds.moments.world.kinds
    mask = masks(kinds, 8 + MODE + len(kinds.leads), 32, 2)
    assert not mask.reads[1, 8 : 8 + MODE].any()
    assert mask.reads[4, 8 : 8 + MODE].all()


def test_a_saved_one_is_the_same(fitted):
    log, worlds = fitted
    theta, world, rest = _keep.load(_keep.save(worlds))
    again = ensemble.assemble(theta, world, rest, log.task)
    assert world.kinds == worlds.moments.world.kinds
    assert isinstance(world.kinds.groups[0], tuple)
    obs = jnp.broadcast_to(worlds.starts[:3], (worlds.members, 3, 8))
    action = jnp.broadcast_to(jnp.eye(MODE)[:3], (worlds.members, 3, MODE))
    step = lambda w: fixed(w)(jax.random.key(0), Place(obs, memories(w, 3)), action)[0].obs
    assert np.array_equal(step(again), step(worlds))


def test_pages_have_a_word_for_it():
    kinds = Kinds(8, choices=((0, 2), (1, 3)), groups=(SKY,))
    words = described(kinds)
    assert words["one category, of which one column is 1"] == SKY
    assert words["of few values and no others"] == (0,)
