"""What holds of every log, whatever is in it: drawn by hypothesis, which shrinks what fails to a small case."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offing.data import Schema, load
from offing.types import BadInput

MANY = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), database=None)
NUMBER = st.floats(-1e6, 1e6, width=32).map(lambda x: x + 0.0)
ODD = st.sampled_from([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**70])


@st.composite
def logs(draw):
    """Columns of a few episodes of 1 to 6 steps, each with its own ends, choices or amounts."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=2, max_size=6))
    rows, width = sum(lengths), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([1e-3, 1.0, 1e4]))
    discrete = draw(st.booleans())
    ends = np.cumsum(lengths) - 1
    over = np.zeros(rows, bool)
    over[ends] = True
    ended = over & (rng.random(rows) < 0.5)
    obs = (scale * rng.normal(size=(rows, width))).astype(np.float32)
    return {
        "obs": obs,
        "action": rng.integers(0, 3, rows) if discrete else rng.normal(size=(rows, 2)).astype(np.float32),
        "reward": (scale * rng.normal(size=rows)).astype(np.float32),
        "next_obs": np.concatenate([obs[1:], obs[:1] + 1]),
        "terminated": ended,
        "truncated": over & ~ended,
        "episode": np.repeat(np.arange(len(lengths)), lengths),
        "step": np.concatenate([np.arange(n) for n in lengths]),
    }


def schema_of(columns):
    return (
        Schema(actions="discrete", n=3) if columns["action"].ndim == 1 else Schema(actions="box", low=-9, high=9)
    )


def table(columns):
    return pa.table({name: list(c) if c.ndim == 2 else c for name, c in columns.items()})


def rows_of(log):
    """Every row with what came next, in no order."""
    steps = log.data.steps
    return sorted(
        tuple(np.concatenate([np.ravel(np.asarray(leaf)[i]) for leaf in steps])) for i in range(log.data.rows)
    )


def one_line(columns, schema):
    """The log, or None with the certainty that the refusal is one short line."""
    try:
        return load(columns, schema=schema)
    except BadInput as error:
        text = str(error)
        assert text
        assert "\n" not in text
        assert len(text) < 600
        return None


@MANY
@given(logs(), st.integers(0, 2**32 - 1))
def test_rows_in_any_order_are_the_same_log(columns, seed):
    order = np.random.default_rng(seed).permutation(len(columns["reward"]))
    mixed = {name: column[order] for name, column in columns.items()}
    schema = schema_of(columns)
    whole = load(columns, schema=schema)
    assert load(table(columns), schema=schema).fingerprint == whole.fingerprint
    found = load(table(mixed), schema=schema)
    assert rows_of(found) == rows_of(whole)  # episodes may stand in another order, and that is the log's to say


@MANY
@given(logs())
def test_time_outs_never_end_and_next_actions_never_cross(columns):
    log = load(columns, schema=schema_of(columns))
    steps, episode = log.data.steps, np.asarray(log.data.episode)
    np.testing.assert_array_equal(np.asarray(steps.done) == 1, columns["terminated"])
    last = np.r_[episode[1:] != episode[:-1], True]
    np.testing.assert_array_equal(steps.next_action[last], steps.action[last])
    np.testing.assert_array_equal(steps.next_action[~last], steps.action[1:][~last[:-1]])
    assert len(log.data.starts) == len(np.unique(columns["episode"]))
    assert log.task.horizon == np.bincount(columns["episode"]).max()


@MANY
@given(logs(), st.data())
def test_a_number_that_is_none_is_refused_by_column_and_row(columns, data):
    name = data.draw(st.sampled_from(["obs", "reward", "next_obs"]))
    row = data.draw(st.integers(0, len(columns["reward"]) - 1))
    value = data.draw(ODD)
    spoilt = columns | {name: np.array(columns[name], np.float64)}
    spoilt[name].reshape(len(columns["reward"]), -1)[row, -1] = value
    with pytest.raises(BadInput) as refused:
        load(spoilt, schema=schema_of(columns))
    assert name in str(refused.value)
    assert f"row {row}" in str(refused.value)


@MANY
@given(logs(), st.data())
def test_columns_of_any_kind_get_a_log_or_one_line(columns, data):
    name = data.draw(st.sampled_from(sorted(columns)))
    kind = data.draw(
        st.sampled_from(["drop", "short", "long", "words", "objects", "deep", "huge", "rename", "empty"])
    )
    column = columns[name]
    changed = {
        "drop": lambda: None,
        "short": lambda: column[:-1],
        "long": lambda: np.concatenate([column, column[:1]]),
        "words": lambda: np.array(["a"] * len(column)),
        "objects": lambda: np.array([None] * len(column), object),
        "deep": lambda: column.reshape(len(column), -1, 1),
        "huge": lambda: np.full(column.shape, 2.0**60),
        "rename": lambda: None,
        "empty": lambda: column[:0],
    }[kind]()
    spoilt = {key: value for key, value in columns.items() if key != name}
    if changed is not None:
        spoilt[name] = changed
    if kind == "rename":
        spoilt[name + "x"] = column
    log = one_line(spoilt, schema_of(columns))
    if log is not None:
        assert np.isfinite(np.asarray(log.data.steps.obs)).all()
        assert len(log.data.steps.obs) == len(log.data.steps.reward)


@MANY
@given(st.dictionaries(st.text(max_size=8), st.lists(NUMBER, max_size=4), max_size=6))
def test_any_dict_gets_a_log_or_one_line(columns):
    one_line({name: np.array(values) for name, values in columns.items()}, Schema())
