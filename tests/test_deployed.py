"""A deployment in a learned world: its columns are watched, its policy is explained."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import offing
from offing import planner as planners
from offing.data import split
from offing.explain.explain import explained
from offing.explain.explanation import Promised
from offing.explain.page import explained_by
from offing.posterior.models import linear
from offing.types import Moments
from offing.value.episodes import imagine
from offing.value.left_out import LeftOut
from offing.watch.columns import ColumnWatch, Scores, Usual, scores, surprise
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


def deployed(policy, worlds):
    """Episodes of the policy in the first of the worlds, as a log."""
    whole = imagine(jax.random.key(5), policy, worlds, 40)
    return type(whole)(*(leaf[:, :1] for leaf in whole)).as_log()


def one_episode(log, surprises):
    """The scores of one episode with these surprises [T, S + 1], and a start in the middle of the log's."""
    each = scores(surprises, np.zeros(len(surprises), int))
    return Scores(*(score[0] for score in each)), np.median(np.asarray(log.data.starts), 0)


def test_columns_are_named_when_they_change_and_not_before(learned):
    log, worlds, policy = learned
    watch = ColumnWatch(jax.random.key(1), policy, worlds, log.data, ("cos", "sin", "speed"))
    rows = deployed(policy, worlds)
    assert watch.update(rows) == []
    assert watch.count == 40
    watch.reset()
    width = float(np.ptp(np.asarray(log.data.steps.obs)[:, 2]))
    jump = np.array([0, 0, width], np.float32)  # of the speed, at every step
    watch.update(rows._replace(steps=rows.steps._replace(next_obs=rows.steps.next_obs + jump)))
    assert watch.named is not None
    assert watch.named.column == "speed"
    assert watch.named.seen <= 40


def test_the_column_that_is_furthest_off_is_named_and_not_the_one_that_is_quickest_to_raise_an_alarm(learned):
    """A strong friction also moves the angle, whose claim is the narrower one, so that its bets win sooner."""
    log, worlds, policy = learned
    watch = ColumnWatch(jax.random.key(1), policy, worlds, log.data, ("cos", "sin", "speed"))
    wide = np.array([0.05, 0.3, 0.3, 0.3])  # of the claims
    watch.usual = [Usual(-wide, wide, np.full(4, 0.1)) for _ in range(3)]
    watch.reset()
    calm, off = np.zeros((10, 4)), np.array([2.0, 0.1, 20.0, 0.1])  # deviations, at every step
    for _ in range(20):
        watch.take(*one_episode(log, calm))
    assert watch.ranked == []
    for _ in range(60):
        watch.take(*one_episode(log, np.broadcast_to(off, (10, 4))))
    first = min(watch.alarms.values(), key=lambda alarm: alarm.seen)
    assert first.column == "cos"
    assert watch.named is not None
    assert watch.named.column == "speed"
    assert watch.named.nats > 2 * first.nats > 0
    assert {alarm.column for alarm in watch.ranked} == {"cos", "speed"}


def test_a_sensor_that_is_off_is_named_by_where_episodes_start(learned):
    """Its own changes are right, while other columns do not do what the worlds expect of what it reads."""
    log, worlds, policy = learned
    watch = ColumnWatch(jax.random.key(1), policy, worlds, log.data, ("cos", "sin", "speed"))
    off = np.broadcast_to(np.array([30.0, 30.0, 0.0, 0.0]), (10, 4))
    for _ in range(60):
        scored, start = one_episode(log, off)
        watch.take(scored, start + np.array([0.0, 0.0, 100.0]))
    assert {alarm.column for alarm in watch.ranked} >= {"cos", "sin", "speed"}
    assert watch.named is not None
    assert (watch.named.column, watch.named.what) == ("speed", "starts elsewhere")


def test_a_stream_of_rows_is_watched(learned):
    log, worlds, policy = learned
    promise = promise_of(np.full((4, 8), 0.0) + np.arange(8), 3.5, (0.0, 10.0), -5.0, (-1e5, 1e5))
    watch = Watch(policy, worlds, promise, log)
    watched = watch.update(log)
    assert watched.word == "STOP"  # the log's behaviour earns far less
    assert watched.other_actions > 0.5
    assert watched.standing.episodes == len(watched.returns)
    assert watch.update(log).standing.episodes == 2 * watched.standing.episodes


def test_of_several_columns_the_one_that_most_likely_changed_is_said(learned):
    log, worlds, policy = learned
    watch = Watch(policy, worlds, promise_of(np.zeros((4, 8)), 0.0, (0.0, 1.0), -5.0, (-1e5, 1e5)), log)
    for _ in range(60):
        watch.columns.take(*one_episode(log, np.broadcast_to(np.array([9.0, 0.0, 90.0, 0.0]), (10, 4))))
    watched = watch.watched
    assert watched.alarms[0].column == log.columns.names[2]
    likely = [line for line in watched.sentences() if "most likely changed" in line]
    assert len(likely) == 1
    assert repr(log.columns.names[2]) in likely[0]
    alone = replace(watched, alarms=watched.alarms[:1])
    assert not any("most likely changed" in line for line in alone.sentences())


def test_a_policy_is_explained_in_the_logs_names(learned):
    log, worlds, policy = learned
    promise = Promised(-200.0, -90.0, 0.0, -100.0, {"the worlds disagree": 3.0})
    explanation = explained(policy, worlds, log, promise)
    assert sum(region.brings for region in explanation.regions) == pytest.approx(explanation.difference, rel=1e-3)
    assert explanation.names == log.columns.names
    assert len(explanation.sentences()) >= 6
    made = explained_by({"rppo": explanation})
    assert set(made.figures) == {"by_column", "regions", "courses", "worlds", "terms"}
    assert made.section().count("<svg") == 5
    assert made.section(without=("terms",)).count("<svg") == 4
    assert "<svg" in made._repr_html_()
    assert repr(made).splitlines() == explanation.sentences()


def test_what_cannot_be_explained_is_left_out_with_its_reason(learned):
    log, worlds, policy = learned
    promise = Promised(-200.0, -90.0, 0.0, -100.0, {})
    explanations = {
        "a": explained(policy, worlds, log, promise),
        "b": LeftOut("it is lost"),
        "c": LeftOut("so is it"),
    }
    made = explained_by({**explanations, "d": explanations["a"]}, {"policies": lambda: 1 / 0})
    assert list(made.explanations) == ["a", "d"]
    assert made.left_out["what b does"] == "it is lost"
    assert "ZeroDivisionError" in made.left_out["the picture policies"]
    assert "a: by_column" in made.figures
    assert "What does d do?" in made.section()
    assert "Left out: what c does; so is it." in made.section()
    assert set(made.to_json()["policies"]) == {"a", "d"}


def test_worlds_that_remember_are_asked_with_what_came_before(learned):
    """Of worlds that expect what they saw last, a surprise is what has changed since."""
    _, worlds, policy = learned
    rows = deployed(policy, worlds)
    steps = rows.steps
    own = steps.next_obs - steps.obs

    def expects(theta, memory, obs, action, after=None, ended=None):
        mean = jnp.concatenate([memory, jnp.zeros((len(obs), 1))], -1)
        return Moments(mean, jnp.ones_like(mean), jnp.zeros(len(obs)))

    known = replace(
        worlds, moments=expects, recall=lambda theta, data: np.asarray(data.steps.next_obs - data.steps.obs)
    )
    np.testing.assert_allclose(surprise(known, rows)[:, :3], 0, atol=1e-5)
    blank = replace(known, recall=lambda theta, data: np.zeros_like(data.steps.obs))
    np.testing.assert_allclose(surprise(blank, rows)[:, :3], np.clip(own, -4, 4), atol=1e-5)
