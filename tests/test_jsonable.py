"""Results as JSON and back, whatever numbers are in them."""

import json
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing.report.jsonable import from_json, key, to_json
from offing.types import BadInput
from offing.value.left_out import LeftOut, attempt


class Pair(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Inner:
    name: str
    kind: Literal["a", "b"]
    numbers: tuple[float, ...]
    pair: tuple[float, float]


@dataclass(frozen=True)
class Outer:
    returns: float = field(metadata=key("return"))
    count: int
    sure: bool
    inner: Inner | LeftOut
    parts: dict[str, Inner]
    bounds: Pair
    rows: float | None = None


NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from(
    [0.0, -0.0, 1e308, 5e-324, np.inf, np.nan]
)
INNERS = st.builds(
    Inner,
    st.text(max_size=5),
    st.sampled_from(["a", "b"]),
    st.lists(NUMBERS, max_size=3).map(tuple),
    st.tuples(NUMBERS, NUMBERS),
)
OUTERS = st.builds(
    Outer,
    NUMBERS,
    st.integers(-10, 10),
    st.booleans(),
    INNERS | st.builds(LeftOut, st.text(max_size=5)),
    st.dictionaries(st.text(max_size=3), INNERS, max_size=2),
    st.builds(Pair, NUMBERS, NUMBERS),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)


@settings(max_examples=200, deadline=None, database=None)
@given(OUTERS)
def test_what_is_written_is_read_back(outer):
    text = json.dumps(to_json(outer), allow_nan=False)
    back = from_json(Outer, json.loads(text))
    assert to_json(back) == to_json(outer)  # numbers that are not finite are null both times
    assert type(back.inner) is type(outer.inner)
    assert (back.count, back.sure, back.rows, set(back.parts)) == (
        outer.count,
        outer.sure,
        outer.rows,
        set(outer.parts),
    )


def test_numbers_of_numpy_and_of_jax_become_plain():
    import jax.numpy as jnp

    given = {
        "a": np.float32(1.5),
        "b": np.array([1, 2]),
        "c": jnp.ones(2),
        "d": np.nan,
        "e": np.bool_(True),
        3: (),
    }
    assert to_json(given) == {"a": 1.5, "b": [1, 2], "c": [1.0, 1.0], "d": None, "e": True, "3": []}
    with pytest.raises(TypeError, match="object: cannot be written"):
        to_json(object())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"return": "much"}, r"Outer\.return: 'much' is not"),
        ({"count": True}, r"Outer\.count: True is not"),
        ({"bounds": {"low": 1.0}}, r"Outer\.bounds\.high: is missing"),
        ({"inner": {"name": 1}}, r"Outer\.inner: .* none of the kinds"),
        ({"parts": []}, r"Outer\.parts: \[\] is not"),
    ],
)
def test_json_that_does_not_fit_is_refused_by_name(change, said):
    whole = Outer(1.0, 2, True, LeftOut("why"), {}, Pair(0, 1))
    table = to_json(whole)
    assert isinstance(table, dict)
    assert from_json(Outer, table) == whole
    with pytest.raises(BadInput, match=said):
        from_json(Outer, {**table, **change})


def test_an_addition_that_fails_is_left_out_with_its_reason():
    assert attempt(lambda: 3) == 3
    assert attempt(lambda: 1 / 0) == LeftOut("it failed with ZeroDivisionError: division by zero")

    def bad(error):
        raise error

    assert attempt(lambda: bad(BadInput("the log is\n a bag."))) == LeftOut("the log is a bag")
    assert attempt(lambda: bad(RuntimeError())) == LeftOut("it failed with RuntimeError")
    for passed_on in (MemoryError, KeyboardInterrupt):
        with pytest.raises(passed_on):
            attempt(lambda e=passed_on: bad(e()))
