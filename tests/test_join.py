"""Several logs of one task, read as one."""

import numpy as np
import pytest

import offing
from offing.data import join
from offing.types import Box

pandas = pytest.importorskip("pandas")

OBS = ("level", "flow")


def columns(episodes=6, steps=5, seed=0, low=-1.0, **more):
    """Columns of a table with that many episodes."""
    rng, rows = np.random.default_rng(seed), episodes * steps
    table = {name: rng.normal(size=rows) for name in OBS}
    table |= {"action": rng.uniform(low, 1, rows), "reward": rng.normal(size=rows)}
    return pandas.DataFrame({**table, "episode": np.repeat(np.arange(episodes), steps), **more})


def read(table, low=-1.0, discount=0.99, obs=OBS):
    schema = offing.Schema(obs=obs, actions="box", low=low, high=1.0, discount=discount)
    return offing.load(table, schema=schema)


def bag(log):
    """The same rows without their episodes."""
    return log._replace(data=log.data._replace(episode=np.full_like(log.data.episode, -1)))


def test_rows_follow_one_another_and_episodes_stay_apart():
    old, new = read(columns()), read(columns(4, 7, seed=1))
    both = join([old, new])
    rows = (6 * 4, 4 * 6)  # without next observations the last row of an episode leads nowhere
    assert both.data.rows == sum(rows)
    np.testing.assert_array_equal(np.unique(both.data.episode), np.arange(10))
    np.testing.assert_array_equal(both.data.steps.obs[rows[0] :], new.data.steps.obs)
    assert len(both.data.starts) == 10
    assert both.task.horizon == 6
    assert any("at most 6 steps" in note for note in both.notes)
    assert [(p.rows, p.fingerprint) for p in both.parts] == [
        (rows[0], old.fingerprint),
        (rows[1], new.fingerprint),
    ]
    assert both.parts[1].behaviour.mean == pytest.approx(new.data.steps.reward.sum() / 4, rel=1e-5)
    assert both.fingerprint not in (old.fingerprint, new.fingerprint)
    assert join([old]) is old


def test_a_list_is_loaded_as_one_log():
    both = offing.load([read(columns()), read(columns(seed=1))], rows=20)
    assert both.data.rows == 20
    assert len(both.parts) == 2
    with pytest.raises(offing.BadInput, match="no log"):
        offing.load([])


def test_the_widest_bounds_count():
    both = join([read(columns()), read(columns(low=-2.0), low=-2.0)])
    assert both.task.actions == Box((-2.0,), (1.0,))
    assert any("widest" in note for note in both.notes)


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (lambda: read(columns(), obs=("flow", "level")), "observation 0 is 'flow' where 'level'"),
        (lambda: read(columns(), obs=("level",)), "1 observation columns where 2"),
        (lambda: read(columns(), discount=0.5), "discount 0.5 where"),
        (lambda: offing.load("offing:cartpole", rows=50), "observation 0 is 'obs"),
        (lambda: bag(read(columns())), "has no episodes"),
    ],
)
def test_what_does_not_agree_is_refused_by_name(other, names):
    with pytest.raises(offing.BadInput, match=names.replace("[", r"\[")):
        join([read(columns()), other()])
