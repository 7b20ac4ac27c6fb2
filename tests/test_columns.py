"""Columns: names, encodings and levels that travel with a log, and refusals by name."""

import json

import numpy as np
import pyarrow as pa
import pytest

import offing
from offing.data.columns import ActionColumn, Column, Columns

WHOLE = Columns(
    (
        Column("temp"),
        Column("door", "yes-no", levels=("no", "yes")),
        Column("site", "category", levels=("north", "south"), other=True),
        Column("hour", "cyclic", period=24.0, source="time", exogenous=True),
        Column("temp", "lag", lag=1),
        Column("temp", "difference", lag=1),
        Column("outdoor", fill=7.0),
        Column("outdoor", "indicator"),
    ),
    (ActionColumn("fan", levels=("low", "high")), ActionColumn("valve", levels=(0, 1, 2))),
    True,
    ("time", "cost"),
)
ROW = {"temp": 4.0, "door": "Yes", "site": "south", "time": "2024-03-01T06:00", "temp[t-1]": 3.5, "outdoor": None}
ENCODED = [4.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 3.5, 0.5, 7.0, 1.0]


def test_a_row_of_the_table_becomes_the_numbers_that_were_learned_from():
    assert WHOLE.names == (
        *("temp", "door", "site=north", "site=south", "site=other", "sin(hour)", "cos(hour)"),
        *("temp[t-1]", "temp-temp[t-1]", "outdoor", "outdoor missing"),
    )
    np.testing.assert_allclose(WHOLE.encode(ROW)[0], ENCODED, atol=1e-6)
    np.testing.assert_array_equal(WHOLE.encode([ROW, ROW]), np.repeat(WHOLE.encode(ROW), 2, 0))
    np.testing.assert_array_equal(WHOLE.encode(pa.Table.from_pylist([ROW, ROW])), WHOLE.encode([ROW, ROW]))
    backwards = dict(reversed(ROW.items()))
    np.testing.assert_array_equal(WHOLE.encode(backwards), WHOLE.encode(ROW))  # by name, not by place
    assert WHOLE.encode(ENCODED).shape == (1, 11)
    assert WHOLE.exogenous == (False,) * 5 + (True, True) + (False,) * 4


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_is_read_by_name(library):
    frame = pytest.importorskip(library).DataFrame([ROW, ROW])
    np.testing.assert_allclose(WHOLE.encode(frame), [ENCODED, ENCODED], atol=1e-6)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"site": "west"}, None),
        ({"door": "maybe"}, "'door': 'maybe'"),
        ({"temp": "warm"}, "'temp': 'warm' where a number"),
        ({"temp": None}, "'temp', row 0: empty"),
        ({"tmep": 4.0}, "'tmep': unknown"),
        ({"time": "yesterday"}, "'time': not a date"),
        ({"temp": float("inf")}, "'temp', row 0: not a finite"),
        ({"temp": [1.0, 2.0]}, "1 rows where 'temp' has 2"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(change, text):
    if text is None:
        assert WHOLE.encode({**ROW, **change})[0, 4] == 1
        plain = Columns((Column("site", "category", levels=("north",)),), table=True)
        with pytest.raises(offing.BadInput, match="'site': 'west' is none of its levels 'north'"):
            plain.encode({"site": "west"})
        return
    with pytest.raises(offing.BadInput, match=text):
        WHOLE.encode({**ROW, **change})


def test_missing_columns_are_named():
    for name in ("temp", "door", "site", "temp[t-1]", "outdoor"):
        with pytest.raises(offing.BadInput, match="missing") as caught:
            WHOLE.encode({key: value for key, value in ROW.items() if key != name})
        assert repr(name) in str(caught.value)
    with pytest.raises(offing.BadInput, match="11 numbers a row"):
        WHOLE.encode(np.zeros(3))


def test_reversed_columns_of_another_log_are_refused_by_name():
    one = Columns((Column("a"), Column("b")), (ActionColumn("u", (0.0,), (1.0,)),), True)
    with pytest.raises(offing.BadInput, match="policy: observation 0 is 'b' where 'a'"):
        one.matches(Columns(one.obs[::-1], one.action, True), "policy")
    with pytest.raises(offing.BadInput, match="1 observation columns where 2"):
        one.matches(Columns(one.obs[:1], one.action, True), "policy")
    one.matches(one, "policy")


def test_actions_have_the_table_s_names():
    assert WHOLE.choices == 6
    assert WHOLE.action_names[4] == "fan=high, valve=1"
    assert WHOLE.decode(np.eye(6)[4]) == {"fan": "high", "valve": 1}
    assert WHOLE.decode(np.eye(6)[[0, 5]]) == [{"fan": "low", "valve": 0}, {"fan": "high", "valve": 2}]
    amounts = Columns((), (ActionColumn("u", (0.0,), (1.0,)), ActionColumn("v", (0.0,), (1.0,))), True)
    assert amounts.decode(np.array([0.25, 0.5])) == {"u": 0.25, "v": 0.5}
    with pytest.raises(offing.BadInput, match="2 numbers a row"):
        amounts.decode(np.zeros(3))


def test_json_and_back():
    assert Columns.from_json(json.loads(json.dumps(WHOLE.to_json()))) == WHOLE
    for bad in ({}, {"obs": 3}, {**WHOLE.to_json(), "obs": [{"name": "x", "encoding": "spell"}]}):
        with pytest.raises(offing.BadInput, match="damaged"):
            Columns.from_json(bad)


def test_every_log_has_columns():
    log = offing.load("offing:pendulum", 500)
    assert log.columns.names == ("obs[0]", "obs[1]", "obs[2]")
    assert log.columns.action_names == ("action",)
    np.testing.assert_array_equal(log.columns.encode(log.data.steps.obs[:3]), log.data.steps.obs[:3])
    np.testing.assert_array_equal(log.columns.decode(np.ones((2, 1))), np.ones((2, 1)))
    assert offing.load("offing:cartpole", 500).columns.decode(np.eye(2)).tolist() == [0, 1]  # type: ignore[union-attr]


def test_a_table_s_names_stay():
    table = pa.table(
        {"x": [0.0, 1.0, 2.0, 3.0], "y": [1.0] * 4, "u": [0, 1, 0, 1], "pay": [1.0] * 4, "ep": [0] * 4}
    )
    schema = offing.data.Schema(obs=("x", "y"), action="u", reward="pay", episode="ep", actions="discrete")
    columns = offing.load(table, schema=schema).columns
    assert columns.names == ("x", "y")
    assert columns.decode(np.eye(2)[1]) == {"u": 1}
    assert columns.encode({"y": 2.0, "x": 1.0, "ep": 0}).tolist() == [[1.0, 2.0]]
