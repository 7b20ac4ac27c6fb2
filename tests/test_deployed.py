"""A deployment in a learned world: its columns are watched, its policy is explained."""

import jax
import numpy as np
import pytest

import offing
from offing import planner as planners
from offing.data import split
from offing.explain.explain import explained
from offing.explain.page import section
from offing.posterior.models import linear
from offing.value.predictive import rolled
from offing.watch.columns import ColumnWatch
from offing.watch.earning import promise_of
from offing.watch.watch import Watch


@pytest.fixture(scope="module")
def learned():
    """A log, worlds that learned it, and a policy that does nothing."""
    log = offing.load("offing:pendulum", rows=1000)
    task = log.task._replace(horizon=20)
    log = log._replace(task=task)
    hypers, prepared = linear.space("smoke")[0], linear.prepare(log.data, task)
    parts = split(log.data, 0)[0]
    fitted = linear.fit(jax.random.key(0), hypers, log.data, parts, prepared.arrays, prepared.shape)
    worlds = linear.posterior(fitted, hypers, prepared, log.data, task)
    planner = planners.get("rppo")
    return log, worlds, planner.blank(planner.Hypers(core="none", width=4), 3, task)


def episodes(policy, worlds):
    """Episodes of the policy in the first of the worlds."""
    obs, action, _ = (np.asarray(x)[:, 0] for x in rolled(jax.random.key(5), policy, worlds, 40, path=True)[1])
    return np.swapaxes(obs, 0, 1), np.swapaxes(action, 0, 1)


def test_columns_are_named_when_they_change_and_not_before(learned):
    log, worlds, policy = learned
    watch = ColumnWatch(jax.random.key(1), policy, worlds, log.data, ("cos", "sin", "speed"))
    obs, action = episodes(policy, worlds)
    for o, a in zip(obs, action, strict=True):
        watch.update(o[:-1], a[:-1], o[1:], np.full(len(o) - 1, float(log.data.steps.reward.mean())))
    assert not [alarm for alarm in watch.alarms.values() if alarm.column != "reward"]
    watch.reset()
    width = float(np.ptp(np.asarray(log.data.steps.obs)[:, 2]))
    for o, a in zip(obs, action, strict=True):
        after = o[1:] + np.array([0, 0, width], np.float32)  # the speed jumps at every step
        watch.update(o[:-1], a[:-1], after, np.full(len(o) - 1, float(log.data.steps.reward.mean())))
    assert watch.named is not None
    assert watch.named.column == "speed"
    assert watch.named.seen <= 40


def test_a_stream_of_rows_is_watched(learned):
    log, worlds, policy = learned
    promise = promise_of(np.full((4, 8), 0.0) + np.arange(8), (0.0, 10.0), -5.0, (-1e5, 1e5))
    watch = Watch(policy, worlds, promise, log)
    said = watch.update(log)
    assert said.word == "STOP"  # the log's behaviour earns far less
    assert said.other_actions > 0.5
    assert said.standing.episodes == len(said.returns)
    assert watch.update(log).standing.episodes == 2 * said.standing.episodes


def test_a_policy_is_explained_in_the_logs_names(learned):
    log, worlds, policy = learned
    report = {
        "behaviour": {"mean": -100.0},
        "return": {"median": -90.0, "interval": [-200.0, 0.0], "epistemic": 3.0},
    }
    found = explained(policy, worlds, log, report)
    assert sum(region.brings for region in found.regions) == pytest.approx(found.difference, rel=1e-3)
    assert found.names == log.columns.names
    assert len(found.sentences()) >= 6
    assert section(found).count("<svg") == 5
