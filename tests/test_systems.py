"""SOReL as a whole, tiny: what it returns hangs together, and a second run finds what the first one kept."""

import jax
import numpy as np
import pytest
from kept import Kept

import offing
from offing.posterior.models.ensemble import space as world_space
from offing.tune import systems
from offing.tune.candidates import TABLE, pad_starts
from offing.tune.run import Run

MODELS = world_space("smoke")[:2]
PLANS = offing.planner.space("rppo", "smoke")


@pytest.fixture(scope="module")
def log():
    return offing.load("offing:cartpole", 300)


@pytest.fixture(scope="module")
def found(log):
    cache, told = Kept(), []
    progress = lambda what, done, total: told.append((what, done, total))
    result = systems.sorel(jax.random.key(0), log, MODELS, PLANS, copies=8, run=Run(cache, progress))
    return result, cache, told


def test_it_says_what_was_run_and_how_far_it_is(found):
    result, _, told = found
    assert (result.system, result.promise) == ("sorel", "value")
    assert len(result.policy.points) == len(result.policy.scores) == len(result.policy.policies) == len(PLANS)
    assert result.policy.scores[result.policy.index] == max(result.policy.scores)
    assert {what for what, _, _ in told} >= {"fit", "refit", "plan"}
    for what in ("fit", "plan"):
        last = [(done, total) for w, done, total in told if w == what][-1]
        assert last[0] == last[1]


def test_the_kept_round_is_the_one_that_held_out_worlds_liked_best(found):
    for planned, score in zip(found[0].policy.planned, found[0].policy.scores, strict=True):
        assert int(planned.best) == int(np.argmax(planned.held))
        assert score == pytest.approx(float(np.max(planned.held)))


def test_what_was_kept_is_not_done_again_and_gives_the_same(found, log):
    result, cache, _ = found
    before = cache.puts
    again = systems.sorel(jax.random.key(0), log, MODELS, PLANS, copies=8, run=Run(cache))
    assert cache.puts == before
    assert before == len(MODELS) + 1 + len(PLANS)
    np.testing.assert_array_equal(again.predicted.returns.returns, result.predicted.returns.returns)
    jax.tree.map(np.testing.assert_array_equal, again.picked.params, result.picked.params)


def test_starts_in_a_table_are_the_same_starts(found):
    worlds = found[0].worlds
    table = pad_starts(worlds)
    assert table.starts.shape[0] % TABLE == 0
    np.testing.assert_array_equal(np.unique(table.starts, axis=0), np.unique(worlds.starts, axis=0))
