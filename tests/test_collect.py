"""Logs from the true environments: as long as asked, the same by seed, and read like any other log."""

import importlib.util
from dataclasses import replace

import jax
import numpy as np
import pytest

from offing.data import broken, load
from offing.online import envs, replay
from offing.online.collect import KINDS, collect
from offing.online.replay import full_replay
from offing.types import BadInput, Box, Discrete, Task

pytest.importorskip("gymnax")

ROWS = 307
PENDULUM, CARTPOLE = "gymnax-pendulum-random", "gymnax-cartpole-random"
RANDOM = [kind for kind in KINDS if kind.endswith("-random")]


@pytest.fixture(scope="module")
def logs():
    return {kind: collect(kind, ROWS, seed=0) for kind in RANDOM}


def test_the_kinds_are_named():
    assert set(RANDOM) == {PENDULUM, CARTPOLE}
    assert {kind for kind in KINDS if kind not in RANDOM} == {
        f"brax-{task}-full-replay" for task in ("halfcheetah", "hopper", "walker2d")
    }


def test_a_full_replay_is_all_that_a_learner_did(monkeypatch):
    """On tasks that step fast; Brax's differ in their physics alone."""
    small = replace(replay.LEARNER, envs=4, segment=32, epochs=1, minibatches=2, width=8)
    monkeypatch.setattr(replay, "LEARNER", small)
    env = envs.make("pendulum")
    columns = full_replay(env, 700, seed=0)
    again = full_replay(env, 700, seed=0)
    assert all(np.array_equal(columns[key], again[key]) for key in columns)
    log = load(columns)
    assert log.data.rows == 700
    assert broken(log.data) == 0
    assert np.unique(log.data.steps.action).size > 100
    assert log.task.actions == env.task.actions


def test_a_full_replay_begins_with_choices_too():
    """Traced, not run: compiling a learner is dear, and amounts have shown that it learns."""
    env, hypers = envs.make("cartpole"), replace(replay.LEARNER, envs=4, width=8)
    pool = jax.eval_shape(lambda key: jax.vmap(env.reset)(jax.random.split(key, replay.POOL)), jax.random.key(0))
    begin = lambda key, pool: replay._begin(key, env, hypers, replay.arena(env, pool, 4))
    state = jax.eval_shape(begin, jax.random.key(0), pool)
    assert state.learner.params.actor.weight.shape == (2, 8)
    assert state.scale.mean.shape == (4,)


@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_rows_are_as_many_as_asked_and_load(logs, kind, tmp_path):
    columns = logs[kind]
    for name in ("obs", "action", "reward", "terminated", "truncated"):
        assert len(columns[name]) == ROWS, name
    path = tmp_path / "log.npz"
    np.savez(path, **columns)
    log = load(path)
    data = log.data
    assert data.rows == ROWS
    assert log.fingerprint == load(columns).fingerprint
    ends = np.flatnonzero(columns["terminated"] | columns["truncated"])
    assert not (columns["terminated"] & columns["truncated"]).any()
    assert ends[-1] == ROWS - 1  # every episode's end is marked, the last one's too
    np.testing.assert_array_equal(data.steps.next_obs[ends], columns["final_obs"])
    np.testing.assert_array_equal(np.bincount(data.episode), np.diff(np.r_[-1, ends]))
    assert len({row.tobytes() for row in data.starts}) == len(data.starts)  # no episode begins like another
    assert np.unique(columns["action"]).size > 1


@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_the_seed_decides(logs, kind):
    again, other = collect(kind, ROWS, seed=0), collect(kind, ROWS, seed=1)
    for name, column in logs[kind].items():
        np.testing.assert_array_equal(again[name], column)
    assert not np.array_equal(other["obs"], logs[kind]["obs"])
    assert not np.array_equal(other["action"], logs[kind]["action"])


@pytest.mark.parametrize("kind", sorted(RANDOM))
def test_the_embedded_samples_are_such_logs(logs, kind):
    """Seed 0 gave the samples; the first steps only, since rounding on another machine grows with time."""
    sample, log = load(f"offing:{KINDS[kind]}"), load(logs[kind])
    assert sample.task == log.task
    for ours, theirs in zip(log.data.steps, sample.data.steps, strict=True):
        np.testing.assert_allclose(ours[:8], theirs[:8], rtol=1e-3, atol=1e-3)


def test_cartpole_ends_where_its_rule_says(logs):
    log = load(logs[CARTPOLE])
    assert log.task == Task(500, 0.99, Discrete(2))
    after, done = log.data.steps.next_obs, log.data.steps.done
    fallen = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > np.deg2rad(12))
    np.testing.assert_array_equal(done == 1, fallen)
    assert done.sum() >= 5
    assert (log.data.steps.reward == 1).all()


def test_pendulum_never_ends(logs):
    log = load(logs[PENDULUM])
    assert log.task == Task(200, 0.99, Box((-2.0,), (2.0,)))
    assert not log.data.steps.done.any()
    assert np.flatnonzero(logs[PENDULUM]["truncated"]).tolist() == [199, ROWS - 1]
    steps = log.data.steps
    angle = np.arctan2(steps.obs[:, 1], steps.obs[:, 0])
    cost = angle**2 + 0.1 * steps.obs[:, 2] ** 2 + 0.001 * steps.action[:, 0] ** 2
    np.testing.assert_allclose(steps.reward, -cost, rtol=1e-4, atol=1e-4)  # the row's own state and action


def test_progress_is_told():
    told = []
    collect(CARTPOLE, 2, 0, lambda *what: told.append(what))
    assert told == [("collect", 2, 2)]


def test_a_sample_without_a_simulator_is_refused():
    with pytest.raises(BadInput, match=r"^offing:pendulum: no such environment; there are offing:coldstore$"):
        collect("offing:pendulum", 10, 0)


@pytest.mark.parametrize("kind", ["nonesuch", "", "gymnax-pendulum"])
def test_unknown_kinds_are_refused(kind):
    with pytest.raises(BadInput) as caught:
        collect(kind, 10, 0)
    line = str(caught.value)
    assert line.startswith(f"{kind}: no such kind of log")
    assert PENDULUM in line
    assert "gymnasium:ID" in line
    assert "\n" not in line


def test_log_probabilities_of_the_kinds_are_there_where_they_exist(logs):
    """Of choices; the pendulum's amounts are clipped, and have no density."""
    assert "logp" not in logs[PENDULUM]
    logp = logs[CARTPOLE]["logp"]
    assert logp.shape == (ROWS,)
    assert (logp <= 0).all()
    assert logp.min() < np.log(0.5) < logp.max()


@pytest.mark.parametrize("more", [{"policy": "random"}, {"steps": 400}, {"noise": 0.1}, {"horizon": 7}])
def test_the_kinds_are_made_in_one_way(more):
    with pytest.raises(BadInput, match=f"^{CARTPOLE}: is made in one way only; --{next(iter(more))} belongs"):
        collect(CARTPOLE, 10, 0, **more)


@pytest.mark.parametrize("rows", [-1, 0, 1])
def test_too_few_rows_are_refused(rows):
    with pytest.raises(BadInput, match=rf"^{rows} rows: "):
        collect(CARTPOLE, rows, 0)


def test_unknown_environments_and_a_missing_package_are_refused(monkeypatch):
    with pytest.raises(BadInput, match=r"^nonesuch: no such environment; there are cartpole, pendulum$"):
        envs.make("nonesuch")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"offing\[envs\]"):
        collect(CARTPOLE, 10, 0)
