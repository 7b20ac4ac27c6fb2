"""Negative controls, from log to verdict: what must never be deployed, and the reason that says so.

The log is CartPole's, cut to episodes of 60 steps: 1,000 rows of a behaviour that falls after 17.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from imagined import fitted

import offing
from offing.data import Log, behaviour, broken
from offing.pil import PIL
from offing.planner.rppo import SMALL as PLAN
from offing.posterior._space import SMALL
from offing.posterior.models import linear
from offing.posterior.models.ensemble import Hypers
from offing.report.verdict import Verdict, verdict
from offing.tune import systems
from offing.tune.candidates import pad_starts
from offing.tune.choose import choose_posterior, refit
from offing.types import Box, Dataset, Policy, Task, Transition
from offing.value.predictive import Predictive, predictive, rolled

HORIZON = 60
QUESTIONS = ("log sound", "held where it could be checked", "where the log has been", "earn more than")
TINY = replace(Hypers(**SMALL), width=16, batch_size=32, updates=300, members=3, elites=3, rates=(1.0,))
MODELS = (TINY, replace(TINY, init_diversity=0.1, shared=1.0))
PLANS = (replace(PLAN, steps=24_000, envs=30, segment=25, minibatches=3, width=16),)
KEY = jax.random.key(0)


def failed(found: Verdict) -> list[str]:
    """The questions that were answered No."""
    return [q for q, reason in zip(QUESTIONS, found.reasons, strict=True) if q in reason and "? No: " in reason]


@pytest.fixture(scope="module")
def log() -> Log:
    log = offing.load("offing:cartpole", 1000)
    return log._replace(task=log.task._replace(horizon=HORIZON))


def spoilt(log: Log, **columns) -> Log:
    return log._replace(data=log.data._replace(steps=log.data.steps._replace(**columns)))


def judged(log: Log, **rest) -> Verdict:
    result = systems.sorel(KEY, log, MODELS, PLANS, copies=32)
    return verdict(result.pil, result.predicted, result.behaviour, **rest)


@pytest.fixture(scope="module")
def known(log):
    """The true log's own posterior: what it was chosen by, and its worlds."""
    choice = choose_posterior(KEY, log, MODELS)
    return choice, refit(KEY, log, choice)


def verdict_on(policy: Policy, log: Log, known) -> tuple[Verdict, Predictive]:
    choice, worlds = known
    own, held = pad_starts(worlds.fold(0)), pad_starts(worlds.fold(1))
    predicted = predictive(jax.random.key(1), policy, held, log.data, own=own, copies=32, loss=choice.pil)
    found = verdict(choice.pil, predicted, behaviour(log.data, log.task), broken=broken(log.data))
    return found, predicted


def test_next_states_shuffled_among_rows(log):
    rows, after = log.data.rows, np.array(log.data.steps.next_obs)
    after[:rows] = np.random.default_rng(0).permutation(after[:rows])
    shuffled = spoilt(log, next_obs=after)
    result = systems.sorel(KEY, shuffled, MODELS, PLANS, copies=32)
    told = broken(shuffled.data)
    assert told > 0.95
    found = verdict(result.pil, result.predicted, result.behaviour, broken=told)
    assert found.word == "NOT-ENOUGH-EVIDENCE"
    assert failed(found)[0] == "log sound"
    alone = verdict(result.pil, result.predicted, result.behaviour)  # and if nobody had looked
    assert alone.word != "GO"
    assert failed(alone)  # which question stops it is the noise's to say


def test_rewards_flipped_in_half_of_the_episodes(log):
    episode = np.asarray(log.data.episode)
    sign = np.where(np.random.default_rng(1).permutation(episode.max() + 1)[episode] % 2, 1, -1)
    flipped = spoilt(log, reward=(log.data.steps.reward * sign).astype(np.float32))
    assert judged(flipped).word != "GO"


def test_a_policy_planned_for_flipped_rewards(log, known):
    """Flipped in every episode they are another task, for which to fall at once is right; for this it is not.

    The policy looks at the observation alone: one that remembers sees rewards too, and here it would see others.
    """
    flipped = spoilt(log, reward=-log.data.steps.reward)
    planned = systems.sorel(KEY, flipped, MODELS, [replace(plan, core="none") for plan in PLANS], copies=32)
    assert planned.predicted.returns.median > planned.behaviour.mean
    found, predicted = verdict_on(planned.picked, log, known)
    assert predicted.returns.median < behaviour(log.data, log.task).mean
    assert found.word != "GO"
    assert "earn more than" in failed(found)


def lean(params, memory, seen, key):
    """Right where a weighted sum of what is seen is above 0, else left."""
    right = params[0] + seen.obs @ params[1:] > 0
    return jax.nn.one_hot(right.astype(int), 2), memory


def test_a_policy_that_always_pushes_one_way(log, known):
    found, predicted = verdict_on(Policy(jnp.array([1.0, 0, 0, 0, 0]), (), lean), log, known)
    assert predicted.length < 15  # the pole falls the other way
    assert found.word != "GO"
    assert "earn more than" in failed(found)


def test_a_promise_that_no_episode_checked(log, known):
    """It leans the pole and runs after it: no stretch of the log was set aside to check such a promise by, and on
    single steps the worlds are surer than they are right, so a promise of three times the log's return is no GO.
    """
    found, predicted = verdict_on(Policy(jnp.array([-0.1, 0, 0, 1.0, 0.5]), (), lean), log, known)
    assert predicted.returns.median > behaviour(log.data, log.task).mean
    assert found.word == "NOT-ENOUGH-EVIDENCE"
    assert failed(found) == ["held where it could be checked"]


def test_a_promise_that_only_extrapolation_makes():
    """s' = 0.9 s + u + noise pays s; the log pushed by 0.1 at most, and the policy pushes by 1, always.

    Worlds drawn from the exact posterior imagine ten times what was ever seen, agree on it and are calibrated. The
    promise is held to what rewards can add up to; that the way there is unknown is all that speaks against it.
    """
    rng = np.random.default_rng(2)
    episodes, steps = 40, 20
    action = rng.uniform(-0.1, 0.1, (episodes, steps, 1)).astype(np.float32)
    obs = np.zeros((episodes, steps + 1, 1), np.float32)
    for t in range(steps):
        obs[:, t + 1] = 0.9 * obs[:, t] + action[:, t] + 0.02 * rng.standard_normal((episodes, 1))
    flat = lambda a: a.reshape(-1, 1)
    now = flat(obs[:, :-1])
    rows = Transition(now, flat(action), now[:, 0], flat(obs[:, 1:]), flat(action), np.zeros(len(now), np.float32))
    episode = np.repeat(np.arange(episodes), steps)
    data = Dataset(rows, obs[:, 0], episode, np.asarray(len(now), np.int32))
    task = Task(steps, 0.95, Box((-1.0,), (1.0,)))
    posterior = fitted(linear.model, jax.random.key(3), linear.Hypers(noise=0.02, members=8), data, task)
    theta = posterior.theta._replace(high=jnp.full_like(posterior.theta.high, 10.0))
    posterior = replace(posterior, theta=theta, high=jnp.array([10.0, 10.0]))  # as if nothing were ever clipped
    half = np.full(2, 0.5)
    calibrated = PIL(half, half, half, half, half, half, members=8)
    constant = lambda params, memory, seen, key: (params + 0 * seen.obs, memory)

    def ask(push):
        policy = Policy(jnp.asarray(push), (), constant)
        predicted = predictive(jax.random.key(4), policy, posterior, data, copies=32)
        return verdict(calibrated, predicted, behaviour(data, task), broken=broken(data)), predicted

    pushes = Policy(jnp.asarray(1.0), (), constant)
    imagined = rolled(jax.random.key(4), pushes, posterior, 32)[0].returns
    assert np.median(imagined) > 10 * behaviour(data, task).best
    found, predicted = ask(1.0)
    most = predicted.returns.bounds[1]  # that logged rewards can add up to: worlds say more, and are held to it
    assert predicted.returns.median == pytest.approx(most)
    assert most > 2.5 * behaviour(data, task).best
    assert failed(found) == ["where the log has been"]
    assert found.word == "NOT-ENOUGH-EVIDENCE"
    found, predicted = ask(0.01)  # and within what was tried the same question is passed
    assert "where the log has been" not in failed(found)
