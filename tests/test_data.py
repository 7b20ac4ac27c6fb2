"""Logs in, Dataset and Task out: the samples, the formats, fewer rows, and the split."""

import os

import jax
import numpy as np
import pytest

from offing.data import Schema, crossed, load, samples, split, subsample, take
from offing.data.dataset import HELD, PIECES, runs
from offing.types import BadInput, Box, Discrete, Task

SAMPLES = ("offing:cartpole", "offing:pendulum")


def columns(lengths, width=3, seed=0, ends=()):
    """A log of episodes of these lengths, each row unlike any other; those in `ends` truly end."""
    rng = np.random.default_rng(seed)
    rows = sum(lengths)
    last = np.cumsum(lengths) - 1
    path = [rng.normal(size=(n + 1, width)) for n in lengths]
    terminated, truncated = np.zeros(rows, bool), np.zeros(rows, bool)
    truncated[last] = True
    for e in ends:
        terminated[last[e]], truncated[last[e]] = True, False
    return {
        "obs": np.concatenate([p[:-1] for p in path]).astype(np.float32),
        "action": rng.uniform(-1, 1, (rows, 2)).astype(np.float32),
        "reward": rng.normal(size=rows).astype(np.float32),
        "next_obs": np.concatenate([p[1:] for p in path]).astype(np.float32),
        "terminated": terminated,
        "truncated": truncated,
        "action_low": np.float32([-1, -1]),
        "action_high": np.float32([1, 1]),
        "horizon": max(lengths),
        "discount": 0.9,
    }


def bag(rows):
    """A log without a mark of where episodes begin or end."""
    return {k: v for k, v in columns([rows]).items() if k not in ("terminated", "truncated")}


def used(log):
    """Rows in use."""
    return take(log.data, np.arange(log.data.rows))


def inner(data):
    """Rows whose successor in the log is their successor in the episode."""
    return np.flatnonzero(data.episode[1:] == data.episode[:-1])


def assert_sound(data):
    """What is true of every log with episodes, whole or cut."""
    steps, at = data.steps, inner(data)
    last = np.setdiff1d(np.arange(len(data.episode)), at)
    np.testing.assert_array_equal(steps.next_obs[at], steps.obs[at + 1])
    np.testing.assert_array_equal(steps.next_action[at], steps.action[at + 1])
    np.testing.assert_array_equal(steps.next_action[last], steps.action[last])
    assert not steps.done[at].any()
    assert all(leaf.dtype == np.float32 for leaf in steps)


def fallen(data):
    """CartPole's own rule, on the observation after each row."""
    return (np.abs(data.steps.next_obs[:, 0]) > 2.4) | (np.abs(data.steps.next_obs[:, 2]) > np.deg2rad(12))


@pytest.fixture(scope="module")
def sample():
    return {name: load(name) for name in SAMPLES}


def test_the_samples_are_named():
    assert samples() == sorted([*SAMPLES, "offing:coldstore"])


@pytest.mark.parametrize(
    ("name", "width", "space", "horizon"),
    [("offing:cartpole", 4, Discrete(2), 500), ("offing:pendulum", 3, Box((-2.0,), (2.0,)), 200)],
)
def test_samples_are_whole(sample, name, width, space, horizon):
    log = sample[name]
    data = log.data
    assert log.name == name
    assert data.rows == 20_000
    assert data.steps.obs.shape == data.steps.next_obs.shape == (20_000, width)
    assert data.steps.action.shape == data.steps.next_action.shape == (20_000, space.width)
    assert (log.task.actions, log.task.horizon, log.task.discount) == (space, horizon, 0.99)
    hash(log.task)  # static in compiled programs
    assert_sound(data)
    lengths = np.bincount(data.episode)
    np.testing.assert_array_equal(data.episode, np.repeat(np.arange(len(lengths)), lengths))
    assert lengths.max() <= horizon
    assert data.starts.shape == (len(lengths), width)
    np.testing.assert_array_equal(data.starts, data.steps.obs[np.r_[0, np.cumsum(lengths)[:-1]]])


def test_cartpole_ends_and_pendulum_times_out(sample):
    cartpole, pendulum = sample["offing:cartpole"].data, sample["offing:pendulum"].data
    ends = np.setdiff1d(np.arange(20_000), inner(cartpole))
    np.testing.assert_array_equal(np.flatnonzero(cartpole.steps.done), ends[:-1])  # the last one was cut to fit
    np.testing.assert_array_equal(fallen(cartpole), cartpole.steps.done == 1)
    assert not pendulum.steps.done.any()
    assert (np.bincount(pendulum.episode) == 200).all()
    assert set(np.unique(cartpole.steps.action)) == {0.0, 1.0}
    assert (cartpole.steps.action.sum(1) == 1).all()


def test_a_dict_of_arrays_is_a_log():
    given = columns([5, 3, 4], ends=[1])
    log = load(given)
    data = log.data
    np.testing.assert_array_equal(data.steps.obs, given["obs"])
    np.testing.assert_array_equal(data.steps.reward, given["reward"])
    np.testing.assert_array_equal(data.episode, [0] * 5 + [1] * 3 + [2] * 4)
    np.testing.assert_array_equal(np.flatnonzero(data.steps.done), [7])  # a time-out is no end
    np.testing.assert_array_equal(data.starts, given["obs"][[0, 5, 8]])
    assert log.task == Task(5, 0.9, Box((-1.0, -1.0), (1.0, 1.0)))
    assert log.notes == ()
    assert_sound(data)


def test_lists_will_do_and_what_was_assumed_is_said():
    given = {
        "obs": [0.0, 1.0, 2.0, 3.0],
        "action": [[0], [2], [1], [2]],
        "n_actions": 3,
        "reward": [[1.0], [0.5], [1.0], [0.0]],
        "final_obs": [9.0, 8.0],
        "terminated": [0, 1, 0, 0],
        "comment": "by hand",
    }
    log = load(given)
    np.testing.assert_array_equal(log.data.steps.obs[:, 0], [0, 1, 2, 3])
    np.testing.assert_array_equal(log.data.steps.next_obs[:, 0], [1, 9, 3, 8])
    np.testing.assert_array_equal(log.data.steps.action, np.eye(3)[[0, 2, 1, 2]])
    np.testing.assert_array_equal(log.data.steps.reward, [1, 0.5, 1, 0])
    assert log.task == Task(2, 0.99, Discrete(3))
    assert log.notes == ("column 'comment': not used", "horizon not given: 2, the longest logged episode")


def test_bounds_not_given_are_the_logs_own_and_said():
    given = columns([6, 6])
    del given["action_low"], given["action_high"]
    log = load(given)
    np.testing.assert_allclose(log.task.actions.low, given["action"].min(0))
    np.testing.assert_allclose(log.task.actions.high, given["action"].max(0))
    assert any(note.startswith("action_low not given") for note in log.notes)
    assert any(note.startswith("action_high not given") for note in log.notes)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_round_trip(tmp_path, save):
    given = columns([5, 3, 4], ends=[1])
    path = tmp_path / "log.npz"
    save(path, **given)
    log, direct = load(path), load(given)
    jax.tree.map(np.testing.assert_array_equal, log.data, direct.data)
    assert log.task == direct.task
    assert log.fingerprint == direct.fingerprint
    assert log.name == os.fspath(path)
    assert load(str(path)).name == str(path)


def test_other_names_for_the_same_columns():
    given = columns([5, 3, 4], ends=[1])
    plural = {
        "observations": given["obs"],
        "actions": given["action"],
        "rewards": given["reward"],
        "next_observations": given["next_obs"],
        "terminals": given["terminated"],
        "timeouts": given["truncated"],
        **{k: given[k] for k in ("action_low", "action_high", "horizon", "discount")},
    }
    assert load(plural).fingerprint == load(given).fingerprint
    plural["terminations"], plural["truncations"] = plural.pop("terminals"), plural.pop("timeouts")
    assert load(plural).fingerprint == load(given).fingerprint
    del plural["truncations"]
    plural["episodes"] = np.repeat([7, 2, 5], [5, 3, 4])  # any whole numbers, counted from 0 inside
    assert load(plural).fingerprint == load(given).fingerprint


def test_fingerprints_tell_logs_apart():
    given = columns([5, 3, 4], ends=[1])
    same = load(given).fingerprint
    assert len(same) == 16
    assert load({k: np.copy(v) for k, v in given.items()}).fingerprint == same
    for column in ("obs", "action", "reward", "next_obs"):
        other = {**given, column: given[column].copy()}
        other[column].flat[4] += np.float32(1e-3)
        assert load(other).fingerprint != same, column
    flags = {"terminated": given["truncated"], "truncated": given["terminated"]}
    for other in (flags, {"horizon": 6}, {"discount": 0.91}, {"action_high": np.float32([1, 1.5])}):
        assert load({**given, **other}).fingerprint != same, other


def test_what_the_log_says_of_its_own_actions_stays_with_its_rows():
    given = columns([5, 3, 9, 4], ends=[1])
    given |= {"logp": given["reward"], "episode": np.repeat([0, 1, 2, 3], [5, 3, 9, 4]), "step": np.arange(21)}
    order = np.random.default_rng(0).permutation(21)
    mixed = {key: value[order] if np.shape(value)[:1] == (21,) else value for key, value in given.items()}
    log = load(mixed)
    np.testing.assert_array_equal(log.logp, log.data.steps.reward)
    for rows in (17, 8):
        log = subsample(log, rows, seed=rows)
        np.testing.assert_array_equal(log.logp, log.data.steps.reward)
    derived = load({key: value for key, value in mixed.items() if key != "next_obs"}, schema=Schema(step="step"))
    np.testing.assert_array_equal(derived.logp, derived.data.steps.reward)  # rows at time-outs are gone
    assert len(derived.logp) == 18


def test_chances_that_cannot_be_are_refused_and_others_tell_logs_apart():
    given = columns([5, 3, 4])
    plain = load(given)
    assert plain.logp is None
    assert load({**given, "logp": np.zeros(12)}).fingerprint != plain.fingerprint
    choices = {**given, "action": np.arange(12) % 3, "n_actions": 3}
    assert load({**choices, "logp": np.full((12, 1), -0.5)}).logp.shape == (12,)
    with pytest.raises(BadInput, match=r"'logp', row 7: 0\.25"):
        load({**choices, "logp": np.where(np.arange(12) == 7, 0.25, -0.5)})
    with pytest.raises(BadInput, match="'logp': shape"):
        load({**given, "logp": np.zeros((12, 2))})


def test_starts_may_be_named_apart():
    starts = np.float32([[1, 2, 3], [4, 5, 6]])
    log = load({**columns([5, 3, 4]), "starts": starts})
    np.testing.assert_array_equal(log.data.starts, starts)
    np.testing.assert_array_equal(subsample(log, 7, 0).data.starts, starts)


# Fewer rows.


def ids(data, whole):
    """For each row of `data`, where it stood in `whole`; every observation there is one of a kind."""
    place = {row.tobytes(): i for i, row in enumerate(np.asarray(whole.steps.obs))}
    assert len(place) == len(whole.steps.obs)
    return np.array([place[row.tobytes()] for row in np.asarray(data.steps.obs)])


def assert_same_shapes(a, b):
    assert jax.tree.map(np.shape, a._replace(starts=0)) == jax.tree.map(np.shape, b._replace(starts=0))
    assert [x.dtype for x in jax.tree.leaves(a)] == [x.dtype for x in jax.tree.leaves(b)]


LENGTHS = [7, 1, 13, 5, 11, 2, 17, 3, 19, 4, 6, 23, 8, 9]
WHOLE = load(columns(LENGTHS, ends=[0, 2, 5, 8, 11]))


@pytest.mark.parametrize("rows", [2, 7, 10, 11, 24, 53, 100, 127])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_subsample_of_unlike_episodes(rows, seed):
    log = subsample(WHOLE, rows, seed)
    data, all_of = used(log), WHOLE.data
    assert log.data.rows == rows
    assert_same_shapes(log.data, all_of)
    assert_sound(data)
    at = ids(data, all_of)
    assert len(set(at)) == rows
    parts = runs(data.episode)
    assert len(parts) >= min(PIECES, rows)
    begin = np.r_[0, np.cumsum(LENGTHS)[:-1]]
    for part in parts:  # each an episode's first steps, in order
        assert at[part[0]] in begin
        np.testing.assert_array_equal(np.diff(at[part]), 1)
    np.testing.assert_array_equal(data.starts, data.steps.obs[[part[0] for part in parts]])
    whole = [len(part) == LENGTHS[all_of.episode[at[part[0]]]] for part in parts]
    if len(parts) > PIECES:
        assert all(whole[:-1])
    for column in ("obs", "action", "reward", "next_obs", "done"):  # nothing is made up: cuts are not ends
        np.testing.assert_array_equal(getattr(data.steps, column), getattr(all_of.steps, column)[at])
    everything = ids(log.data, all_of)
    np.testing.assert_array_equal(np.sort(everything), np.arange(sum(LENGTHS)))  # the rest is kept, unused


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("rows", [200, 1_000, 2_001, 5_000])
def test_subsample_of_the_samples(sample, name, rows):
    whole = sample[name]
    log = load(name, rows, seed=3)
    data = used(log)
    assert log.data.rows == rows == len(data.episode)
    assert_same_shapes(log.data, whole.data)
    assert_sound(data)
    lengths = np.bincount(data.episode)
    assert len(lengths) >= PIECES
    np.testing.assert_array_equal(data.starts, data.steps.obs[np.r_[0, np.cumsum(lengths)[:-1]]])
    if name == "offing:pendulum":
        assert not data.steps.done.any()
        even, full = [rows // 10] * 10, [200] * (rows // 200) + [1] * (rows % 200)
        assert lengths.tolist() == (even if rows <= 2_000 else full)
    else:
        np.testing.assert_array_equal(fallen(data), data.steps.done == 1)
        assert data.steps.done.any()
    assert log.fingerprint != whole.fingerprint


def test_subsample_is_decided_by_its_seed():
    one, again, other = (subsample(WHOLE, 53, seed) for seed in (4, 4, 5))
    jax.tree.map(np.testing.assert_array_equal, one.data, again.data)
    assert one.fingerprint == again.fingerprint
    assert other.fingerprint != one.fingerprint
    assert set(ids(used(one), WHOLE.data)) != set(ids(used(other), WHOLE.data))


def test_more_rows_of_one_seed_hold_the_fewer(sample):
    fewer, more = (used(load("offing:pendulum", rows, 1)) for rows in (2_600, 5_000))
    np.testing.assert_array_equal(fewer.steps.obs, more.steps.obs[:2_600])


def test_subsample_leaves_its_log_alone():
    before = jax.tree.map(np.copy, WHOLE.data)
    subsample(WHOLE, 24, 0)
    jax.tree.map(np.testing.assert_array_equal, WHOLE.data, before)
    assert subsample(WHOLE, None, 0) is WHOLE
    assert subsample(WHOLE, sum(LENGTHS), 0) is WHOLE


@pytest.mark.parametrize("given", [columns(LENGTHS, ends=[0, 2]), bag(60)])
def test_a_subsample_of_a_subsample_draws_on_rows_in_use_only(given):
    whole = load(given)
    once = subsample(whole, 50, 0)
    twice = subsample(once, 20, 1)
    assert twice.data.rows == 20
    assert_same_shapes(twice.data, whole.data)
    assert set(ids(used(twice), whole.data)) <= set(ids(used(once), whole.data))
    np.testing.assert_array_equal(np.sort(ids(twice.data, whole.data)), np.arange(whole.data.rows))
    starts = {row.tobytes() for row in used(twice).steps.obs}
    assert all(row.tobytes() in starts for row in twice.data.starts)


def test_subsample_of_a_bag_draws_rows():
    whole = load(bag(60))
    log = subsample(whole, 20, 0)
    at = ids(used(log), whole.data)
    assert len(set(at)) == 20
    assert not np.array_equal(at, np.sort(at))
    assert (log.data.episode == -1).all()
    np.testing.assert_array_equal(log.data.steps.next_action, log.data.steps.action)
    np.testing.assert_array_equal(log.data.starts, used(log).steps.obs)  # states not in use start nothing
    np.testing.assert_array_equal(log.data.steps.reward, whole.data.steps.reward[ids(log.data, whole.data)])


@pytest.mark.parametrize("rows", [-1, 0, 1, sum(LENGTHS) + 1])
def test_subsample_refuses_what_is_not_there(rows):
    with pytest.raises(BadInput, match=rf"^arrays: {rows} rows asked for; it has {sum(LENGTHS)}"):
        subsample(WHOLE, rows, 0)


# The split.


def parts_of(found, data):
    """The split's rows as sets: one per fold, then validation, then held out."""
    folds = [set(row[:n].tolist()) for row, n in zip(found.train, found.sizes, strict=True)]
    assert [len(fold) for fold in folds] == found.sizes.tolist()  # no row twice
    valid = found.valid[: int(found.valid_size)].tolist()
    assert len(set(valid)) == len(valid)
    assert found.train.shape == (len(folds), len(data.episode))
    assert (np.diff(found.held) > 0).all()
    return [*folds, set(valid), set(found.held.tolist())]


def assert_apart(parts, rows):
    assert all(parts)
    assert sum(map(len, parts)) == rows  # with the union below: no two share a row, and none is left out
    assert set().union(*parts) == set(range(rows))


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("folds", [2, 3])
def test_split_of_the_samples(sample, name, folds):
    data = load(name, 5_000).data
    found, notes = split(data, 0, folds)
    assert notes == []
    parts = parts_of(found, data)
    assert_apart(parts, 5_000)
    episodes = [set(data.episode[sorted(part)]) for part in parts]
    assert sum(map(len, episodes)) == len(set().union(*episodes))  # no episode on two sides
    longest = np.bincount(data.episode[:5_000]).max()
    assert np.ptp(found.sizes) <= longest
    assert 1_000 <= len(found.held) < 1_000 + longest
    assert 500 <= found.valid_size < 500 + longest


def test_split_shares_are_asked_for():
    data = load("offing:pendulum", 10_000).data
    found, _ = split(data, 0, held=0.5, valid=0.02)
    assert (len(found.held), int(found.valid_size)) == (5_000, 200)
    assert found.sizes.tolist() == [2_400, 2_400]


def test_validation_rows_are_capped_and_their_table_has_one_shape(sample):
    data = sample["offing:pendulum"].data
    found, _ = split(data, 0, valid=0.3)
    assert int(found.valid_size) == 2_048
    assert len(np.unique(found.valid)) == 2_048
    small, _ = split(load("offing:pendulum", 1_000).data, 0)
    assert small.valid.shape == found.valid.shape
    assert small.train.shape == found.train.shape


@pytest.mark.parametrize("folds", [3, 4])
def test_crossed_folds_learn_from_all_but_a_part_of_their_own(folds):
    data = load("offing:cartpole", 2_000).data
    found = crossed(data, 0, folds)
    seen = [set(rows[:size].tolist()) for rows, size in zip(found.train, found.sizes, strict=True)]
    every = set.union(*seen)
    missed = [every - mine for mine in seen]
    assert set.union(*missed) == every  # each row is one that a fold has not seen
    assert sum(map(len, missed)) == len(every)  # and one fold alone
    assert not every & set(found.valid[: int(found.valid_size)].tolist())
    assert min(map(len, seen)) > 0.95 * (1 - 1 / folds) * len(every)
    episode = np.asarray(data.episode)
    assert all(len({*episode[list(part)]} & {*episode[list(every - part)]}) == 0 for part in missed)


def test_split_is_decided_by_its_seed():
    one, again, other = (split(WHOLE.data, seed)[0] for seed in (0, 0, 1))
    jax.tree.map(np.testing.assert_array_equal, one, again)
    assert set(one.held) != set(other.held)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("episodes", [2, 3, 9])
def test_few_episodes_are_split_by_pieces_and_said(episodes, seed):
    data = load(columns([11] * episodes)).data
    found, notes = split(data, seed)
    assert len(notes) == 1
    assert notes[0].startswith(f"{episodes} episodes: split by pieces")
    parts = parts_of(found, data)
    assert_apart(parts, 11 * episodes)
    longest = -(-11 // -(-PIECES // episodes))
    assert np.ptp(found.sizes) <= longest
    sides = np.array([next(i for i, part in enumerate(parts) if row in part) for row in range(11 * episodes)])
    assert min(map(len, runs(sides))) >= 11 // -(-PIECES // episodes)  # pieces, not rows one by one


def test_ten_episodes_are_enough():
    assert split(load(columns([4] * 10)).data, 0)[1] == []


def test_bags_are_split_by_rows_and_said():
    data = load(bag(500)).data
    found, notes = split(data, 0)
    assert len(notes) == 1
    assert notes[0].startswith("split by rows")
    assert_apart(parts_of(found, data), 500)
    assert (len(found.held), int(found.valid_size), found.sizes.tolist()) == (100, 50, [175, 175])


def test_split_sees_rows_in_use_only():
    data = subsample(WHOLE, 53, 0).data
    assert_apart(parts_of(split(data, 0)[0], data), 53)


def test_a_long_log_holds_out_no_more_than_it_needs():
    rows = 250_000
    given = {name: np.zeros((rows, 1), np.float32) for name in ("obs", "action", "next_obs")}
    given |= {
        "reward": np.zeros(rows),
        "terminated": np.zeros(rows, bool),
        "truncated": np.arange(rows) % 50 == 49,
    }
    found, _ = split(load(given).data, 0)
    assert len(found.held) == HELD
    assert found.sizes.sum() == rows - HELD - 4_100  # whole episodes of 50
    assert abs(found.sizes[0] - found.sizes[1]) <= 50


def test_episodes_that_go_far_are_in_every_part():
    far = np.arange(100) % 10 == 3  # one episode in ten goes ten times as far
    given = columns([5] * 100)
    size = np.repeat(np.where(far, 10.0, 1.0), 5)[:, None]
    data = load({**given, "obs": given["obs"] * size, "next_obs": given["next_obs"] * size}).data
    for seed in range(5):
        found, _ = split(data, seed)
        held = np.unique(data.episode[found.held])
        assert np.sum(far[held]) == 2  # of twenty
        for f in range(2):
            assert np.sum(far[np.unique(data.episode[found.train[f, : found.sizes[f]]])]) in (3, 4)


def test_one_episode_cannot_be_split():
    with pytest.raises(BadInput, match="one episode of 40 rows, so no episode can be held out"):
        split(load(columns([40])).data, 0)


@pytest.mark.parametrize(("given", "folds"), [(columns([1, 2]), 2), (bag(3), 2), (columns([2] * 12), 11)])
def test_too_few_rows_cannot_be_split(given, folds):
    with pytest.raises(BadInput, match=rf"too few to split into {folds} folds"):
        split(load(given).data, 0, folds)


def test_the_fewest_that_can_be_split():
    data = load(columns([2, 2])).data
    found, _ = split(data, 0)
    assert [len(part) for part in parts_of(found, data)] == [1, 1, 1, 1]


@pytest.mark.parametrize("rows", [5, 6])
def test_with_few_rows_the_folds_have_the_most(rows):
    data = load(bag(rows)).data
    found, _ = split(data, 0)
    assert [len(part) for part in parts_of(found, data)] == [2, rows - 4, 1, 1]


@pytest.mark.parametrize(("held", "valid"), [(0.99, 0.1), (0.1, 0.99), (1.0, 1.0)])
def test_no_side_is_left_empty(held, valid):
    data = load(columns([3] * 12)).data
    assert_apart(parts_of(split(data, 0, 3, held, valid)[0], data), 36)


def test_shares_are_met_whatever_the_order():
    for seed in range(30):
        found, _ = split(WHOLE.data, seed)
        assert 26 <= len(found.held) < 26 + max(LENGTHS)  # a fifth of 128 rows, the last episode whole
        assert 13 <= found.valid_size < 13 + max(LENGTHS)


def test_take_is_the_named_rows():
    rows = np.array([3, 4, 9])
    data = take(WHOLE.data, rows)
    assert data.rows == 3
    np.testing.assert_array_equal(data.steps.reward, WHOLE.data.steps.reward[rows])
    np.testing.assert_array_equal(data.episode, WHOLE.data.episode[rows])
    np.testing.assert_array_equal(data.starts, WHOLE.data.starts)
