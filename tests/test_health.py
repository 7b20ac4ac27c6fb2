"""Negative controls of an evaluation: each is caught by its figure, which says so, and a sound log trips none.

The log is CartPole's, cut to episodes of 60 steps; the policy leans after the pole.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import offing
from offing.data import Log, behaviour
from offing.data.inspect import inspect
from offing.data.rules import Rules, rules
from offing.posterior._space import SMALL
from offing.posterior.models.ensemble import Hypers
from offing.tune.candidates import pad_starts
from offing.tune.choose import choose_posterior
from offing.tune.evaluate import evaluate, predicted
from offing.tune.judge import in_worlds
from offing.tune.plans import EvaluationPlan
from offing.types import Policy, Seen
from offing.value.health import Check, Evidence, checks
from offing.value.left_out import LeftOut

TINY = replace(Hypers(**SMALL), width=16, batch_size=32, updates=300, members=4, elites=4)
MODELS = tuple(
    replace(TINY, prior_scale=scale) for scale in (6.0, 9.0, 12.0, 17.0)
)  # small nets err, and may say so
KEY = jax.random.key(0)
PLAN = EvaluationPlan(methods=["predictive"], scale="smoke", copies=32)


def lean(params, memory, seen, key):
    """Right where a weighted sum of what is seen is above 0, else left."""
    return jax.nn.one_hot((params[0] + seen.obs @ params[1:] > 0).astype(int), 2), memory


BALANCES = Policy(jnp.array([0.0, 0.05, 0.3, 1.0, 0.5]), (), lean)


@dataclass(frozen=True)
class Negated:
    """Draws of worlds that pay the other way."""

    sample: Any

    def __call__(self, key, theta, memory, obs, action):
        drawn, memory = self.sample(key, theta, memory, obs, action)
        return drawn._replace(reward=-drawn.reward), memory


@pytest.fixture(scope="module")
def log() -> Log:
    log = offing.load("offing:cartpole", 1_500)
    return log._replace(task=log.task._replace(horizon=60))


@pytest.fixture(scope="module")
def judged(log):
    return evaluate(KEY, log, MODELS, {"mine": BALANCES}, PLAN)


@pytest.fixture(scope="module")
def sound(judged) -> Evidence:
    return judged.evidence


def spoilt(log: Log, **columns) -> Log:
    return log._replace(data=log.data._replace(steps=log.data.steps._replace(**columns)))


def tripped(found: Evidence) -> dict[str, Check]:
    """The figures beyond their limits, by name."""
    return {check.name: check for check in checks(found)[0] if not check.passed}


def test_a_sound_log_and_a_policy_inside_it_trip_nothing(sound):
    assert tripped(sound) == {}
    names = {check.name for check in checks(sound)[0]}
    assert names >= {
        "consistent",
        "predicted",
        "one_rule",
        "tried",
        "calibrated",
        "own_behaviour",
        "outside",
        "worse",
    }


def test_next_states_shuffled_among_rows(log, sound):
    rows, after = log.data.rows, np.array(log.data.steps.next_obs)
    after[:rows] = np.random.default_rng(0).permutation(after[:rows])
    shuffled = spoilt(log, next_obs=after)
    choice = choose_posterior(KEY, shuffled, MODELS)
    found = sound._replace(inspected=inspect(shuffled), predicted=predicted(shuffled, choice))
    caught = tripped(found)
    assert set(caught) == {"consistent", "predicted"}
    assert "mixed up" in caught["consistent"].sentence
    assert "shuffled" in caught["predicted"].sentence
    assert caught["predicted"].value < 0.05 < 0.9 < sound.predicted


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize("name", ["offing:cartpole", "offing:pendulum"])
def test_rewards_flipped_in_some_episodes(name, share, sound):
    log = offing.load(name, 2_000)
    episode = np.asarray(log.data.episode)
    bad = np.random.default_rng(1).random(episode.max() + 1) < share
    flipped = spoilt(log, reward=np.where(bad[episode], -1, 1).astype(np.float32) * log.data.steps.reward)
    assert tripped(sound._replace(rules=rules(log))) == {}
    caught = tripped(sound._replace(rules=rules(flipped)))
    assert set(caught) == {"one_rule"}
    assert "the sign" in caught["one_rule"].sentence


def test_rewards_flipped_in_all_of_them(log, sound, judged):
    """A sound log of another task, in which the policy is the worst there is; only its owner can know better."""
    flipped = spoilt(log, reward=-log.data.steps.reward)
    worlds = replace(judged.worlds, sample=Negated(judged.worlds.sample))  # every reward is 1, and now it is -1
    ours = in_worlds(KEY, flipped, {"mine": BALANCES}, pad_starts(worlds), copies=32)
    logged = behaviour(flipped.data, flipped.task)
    caught = tripped(sound._replace(estimates=ours, behaviour=logged, rules=rules(flipped)))
    assert set(caught) == {"worse"}
    assert "look at the sign" in caught["worse"].sentence


def test_a_policy_that_leaves_the_log(log, sound, judged):
    """It leans the pole and runs after it, ever faster."""
    runner = Policy(jnp.array([-0.1, 0, 0, 1.0, 0.5]), (), lean)
    ours = in_worlds(KEY, log, {"mine": runner}, pad_starts(judged.worlds), copies=32)
    caught = tripped(sound._replace(estimates=ours))
    assert caught
    assert set(caught) <= {"outside", "guarded"}
    assert all("a guess about ground that nobody has seen" in check.sentence for check in caught.values())


def test_one_behaviour_only(log, sound):
    obs = jnp.asarray(log.data.steps.obs)
    one = spoilt(log, action=np.asarray(lean(BALANCES.params, (), Seen(obs, None, None, None), None)[0]))
    caught = tripped(sound._replace(inspected=inspect(one)))
    assert set(caught) == {"tried"}
    assert "the log cannot tell what others lead to" in caught["tried"].sentence
    swings = offing.load("offing:pendulum", 2_000)
    assert tripped(sound._replace(inspected=inspect(swings))) == {}
    steered = spoilt(swings, action=np.clip(-2 * swings.data.steps.obs[:, 2:], -2, 2))
    assert set(tripped(sound._replace(inspected=inspect(steered)))) == {"tried"}


def test_a_second_rule_must_be_plain():
    assert Rules(0.1, 0.9, 10).several
    assert not Rules(0.99, 0.999, 10).several  # there is nothing left to explain
    assert not Rules(0.1, 0.5, 10).several  # nor do two explain much


def test_a_check_that_fails_is_left_out_and_the_others_stand(sound):
    whole = {check.name for check in checks(sound)[0]}
    found, missing = checks(sound._replace(inspected=LeftOut("no"), predicted=LeftOut("never")))
    assert set(missing) == {"consistent", "predicted", "tried"}
    assert {check.name for check in found} == whole - set(missing)
    assert missing["predicted"] == LeftOut("what it rests on was left out: never")
