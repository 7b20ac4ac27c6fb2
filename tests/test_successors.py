"""Where steps led that ended their episodes, in a log that has no next observations."""

import numpy as np
import pyarrow as pa
import pytest

from offing import load
from offing.data import Schema, successors
from offing.data.categories import categories
from offing.data.successors import FEWEST, completed

COLUMNS = ("level", "hour", "steps", "switch", "machine")


def tanks(episodes: int = 60, seed: int = 0):
    """Levels that fill by what is done and overflow beyond 10; an hour, a count, a switch, a machine."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        level, hour, switch, machine = rng.uniform(2, 8), int(rng.integers(0, 24)), 0.0, float(episode % 3)
        for step in range(40):
            act = rng.uniform(-1, 1)
            now = (level, hour, step, switch, machine)
            level, hour, switch = level + 0.8 * act + 0.3 + 0.02 * rng.normal(), (hour + 1) % 24, float(act > 0)
            over = level > 10
            rows.append((episode, *now, act, float(over), level, hour, step + 1, switch, machine))
            if over:
                break
    return np.array(rows)


@pytest.fixture(scope="module")
def log():
    rows = tanks()
    obs, action, over, truth = rows[:, 1:6], rows[:, 6:7], rows[:, 7] > 0, rows[:, 8:]
    last = np.where(over[:, None], obs, truth)
    return obs, action, over, truth, completed(obs, action, last, over, over)


def test_what_always_follows_follows_at_ends_too(log):
    _, _, over, truth, made = log
    assert over.sum() > 20
    for column in ("hour", "steps", "machine"):
        c = COLUMNS.index(column)
        np.testing.assert_array_equal(made[over, c], truth[over, c])
    np.testing.assert_array_equal(made[~over], truth[~over])


def test_few_values_are_those_of_like_rows(log):
    _, _, over, truth, made = log
    c = COLUMNS.index("switch")
    assert set(made[over, c]) <= {0.0, 1.0}
    assert (made[over, c] == truth[over, c]).mean() > 0.8


def test_ends_lie_beyond_the_limit_that_ends_them(log):
    obs, _, over, truth, made = log
    off = made[over, 0] - truth[over, 0]
    assert np.abs(off).mean() < 0.2
    assert np.abs(obs[over, 0] - truth[over, 0]).mean() > 0.5  # where the last observation would have stood in
    assert (made[over, 0] > 10).mean() > 0.9


def walled(episodes: int = 60, seed: int = 1):
    """A store that fills up to 10 and no further, a valve that mostly stays, a pump that mostly stands at 0.

    No episode ends by itself; where the last step of each led is known here and not in the log.
    """
    rng, rows = np.random.default_rng(seed), []
    for _ in range(episodes):
        store, valve, pump = rng.uniform(0, 10), rng.uniform(), 0.0
        for step in range(30):
            act = rng.uniform(-1, 1)
            now = (store, valve, pump)
            store = float(np.clip(store + 2 * act + 0.6, 0, 10))
            valve = rng.uniform() if act > 0.6 else valve
            pump = act if act < -0.5 else 0.0
            rows.append((*now, act, step == 29, store, valve, pump))
    return np.array(rows)


@pytest.fixture(scope="module")
def stopped():
    rows = walled()
    obs, action, cut, truth = rows[:, :3], rows[:, 3:4], rows[:, 4] > 0, rows[:, 5:]
    made = completed(obs, action, np.where(cut[:, None], obs, truth), cut, np.zeros(len(cut), bool))
    return obs, truth, cut, made


def test_where_an_episode_was_cut_off_nothing_lies_beyond_the_log(stopped):
    obs, truth, cut, made = stopped
    assert made[:, 0].min() == 0
    assert made[:, 0].max() == 10
    assert np.abs(made[cut, 0] - truth[cut, 0]).mean() < 0.3
    assert (truth[cut, 0] == 10).sum() > 5
    assert (made[cut, 0] == 10)[truth[cut, 0] == 10].mean() > 0.6
    assert obs[:, 1].min() <= made[:, 1].min()


def test_what_stays_stays_and_what_stands_at_a_value_stands_there(stopped):
    obs, truth, cut, made = stopped
    stays, rests = truth[cut, 1] == obs[cut, 1], truth[cut, 2] == 0
    assert (made[cut, 1] == obs[cut, 1])[stays].mean() > 0.9
    assert (made[cut, 2] == 0)[rests].mean() > 0.9
    assert (made[cut, 1] != obs[cut, 1])[~stays].mean() > 0.5


@pytest.mark.parametrize(("ties", "reached"), [(5, 10.0), (1, 10.7)])
def test_a_wall_that_rows_share_stops_an_end_too_and_a_single_largest_row_is_none(ties, reached):
    rng = np.random.default_rng(0)
    now, then = rng.uniform(0, 9, 600), rng.uniform(0, 9, 600)
    then[:ties] = 10.0  # of 600 rows: too few to be where the column mostly stands
    last, like, expected = np.array([9.5, 9.5]), np.array([50, 50]), np.array([10.7, 10.7])
    made = successors._column(now, then, last, like, expected, np.array([True, False]))
    np.testing.assert_allclose(made, [reached, 10.0])  # the other was cut off, and lies within the log


def test_a_count_passes_the_largest_that_went_on_where_that_ended_an_episode():
    rng, rows = np.random.default_rng(2), []
    for _ in range(80):
        queue = 0
        while queue <= 12:
            come = int(rng.integers(0, 4))
            rows.append((queue, come / 3, queue + come > 12, queue + come))
            queue += come
    rows = np.array(rows)
    obs, action, over, truth = rows[:, :1], rows[:, 1:2], rows[:, 2] > 0, rows[:, 3:]
    assert np.sum(obs == obs.max()) > 10  # many stand at the largest, and nothing stops them there
    made = completed(obs, action, np.where(over[:, None], obs, truth), over, over)
    assert (made[over] > 12).mean() > 0.8
    assert np.abs(made[over] - truth[over]).mean() < 0.5


def test_of_too_few_rows_the_last_observation_stands_in():
    obs, action = np.arange(20.0)[:, None], np.zeros((20, 1))
    unknown = np.arange(20) % 5 == 4
    np.testing.assert_array_equal(completed(obs, action, obs, unknown, unknown), obs)
    assert len(obs) < FEWEST


def test_a_table_without_next_observations_has_ends_beyond_their_limit():
    rows = tanks(seed=1)
    names = ("episode", *COLUMNS, "push", "over")
    table = pa.table({name: rows[:, i] for i, name in enumerate(names)} | {"reward": -rows[:, 1]})
    schema = Schema(obs=COLUMNS, action="push", reward="reward", terminated="over", episode="episode")
    log = load(table, schema=schema)
    ends = np.flatnonzero(np.asarray(log.data.steps.done) > 0)
    assert any("60 ends of episodes it is taken from what like rows led to" in note for note in log.notes)
    after = np.asarray(log.data.steps.next_obs)[ends]
    assert (after[:, 0] > 10).mean() > 0.9
    assert (after[:, 1] == (np.asarray(log.data.steps.obs)[ends, 1] + 1) % 24).all()


def test_chance_at_the_end_of_episodes_is_as_large_as_elsewhere():
    """A price that wanders: its stand-in wanders as far, and a last row that was cut short is kept."""
    rng = np.random.default_rng(3)
    price, push = np.cumsum(rng.normal(size=(300, 10)), 1), rng.uniform(-1, 1, (300, 10))
    over = np.arange(10) == 9
    table = {"price": price.ravel(), "push": push.ravel(), "cut": np.tile(over, 300), "reward": push.ravel()}
    names = {"obs": ("price",), "action": "push", "reward": "reward", "truncated": "cut"}
    log = load(pa.table(table), schema=Schema(**names))
    steps = log.data.steps
    assert log.data.rows == 3_000
    assert log.task.horizon == 10
    moved = (np.asarray(steps.next_obs) - np.asarray(steps.obs))[:, 0].reshape(300, 10)
    assert moved[:, :9].std() == pytest.approx(1.0, abs=0.05)
    assert moved[:, 9].std() == pytest.approx(1.0, abs=0.15)


def test_where_an_episode_ended_a_category_is_one_word():
    """`failed` ends episodes and stays in none: nothing follows on it in the rows that went on."""
    rng = np.random.default_rng(0)
    rows, steps = 1_000, 10
    word = np.where(np.arange(rows) % steps == steps - 1, 2, rng.integers(0, 2, rows))
    obs = np.c_[rng.normal(size=rows), np.eye(3)[word], np.ones(rows), np.zeros(rows)]
    unknown = np.arange(rows) % steps == steps - 1
    after = np.where(unknown[:, None], obs, np.roll(obs, -1, 0))
    made = completed(obs, rng.uniform(size=(rows, 1)), after, unknown, unknown)
    assert np.all(made[:, 1:4].sum(1) == 1)
    assert categories(obs, made) == ((1, 2, 3),)
    assert np.all(made[:, 4:] == obs[:, 4:])  # which machine it is does not change
