"""Which settings to try next: grids, draws, Optuna; and spaces, in Python and in TOML."""

import math
import sys
from importlib.util import find_spec

import pytest

from offing.hypers import Uniform, grid, hypers
from offing.tune import search
from offing.tune.run import Run
from offing.tune.spaces import read_space, space, space_of
from offing.types import BadInput


@hypers
class Setting:
    lr: float = 0.1
    decay: float = 0.5
    width: int = 3
    core: str = "none"
    sizes: tuple[int, ...] = (3, 2)
    flag: bool = False


SMALL = space(Setting(flag=True), {"lr": [1, 0.1, 0.01], "core": ["none", "gru"], "sizes": [[3], [5, 7]]})
WIDE = space(
    Setting(), {"lr": Uniform(1e-4, 1.0, log=True), "decay": {"low": -1, "high": 1}, "core": ("none", "gru")}
)
needs_optuna = pytest.mark.skipif(
    find_spec("optuna") is None, reason="optuna is not installed (the extra `optuna`)"
)
EVERY = ["grid", "random", pytest.param("optuna", marks=needs_optuna)]


def worth(setting):
    """Highest at lr = 0.01, decay = 0.3 with a gru."""
    return -((math.log10(setting.lr) + 2) ** 2) - (setting.decay - 0.3) ** 2 - (setting.core != "gru")


# ---- searches


@pytest.mark.parametrize("name", EVERY)
def test_a_finite_space_is_searched_to_its_end_and_nothing_twice(name):
    found, scores = search.seek(search.get(name, SMALL), lambda asked: map(worth, asked), tries=50, batch=5)
    assert len(found) == len(set(found)) == len(scores) == SMALL.count == 12
    assert set(found) == set(
        grid(Setting(flag=True), lr=(1, 0.1, 0.01), core=("none", "gru"), sizes=((3,), (5, 7)))
    )
    assert scores == [worth(setting) for setting in found]


def test_a_grid_comes_in_its_order():
    asks = search.grid(SMALL)
    assert asks.ask(2) + asks.ask(100) == grid(Setting(flag=True), **SMALL.axes)
    assert asks.ask(1) == []


@pytest.mark.parametrize("name", EVERY[1:])
def test_a_search_is_decided_by_its_seed(name):
    def found(seed, batch):
        return search.seek(search.get(name, WIDE, seed), lambda asked: map(worth, asked), 14, batch)[0]

    assert found(3, 4) == found(3, 4)
    assert found(3, 4) != found(4, 4)
    assert len(found(3, 4)) == len(set(found(3, 4))) == 14
    for setting in found(3, 4):
        assert 1e-4 <= setting.lr <= 1
        assert -1 <= setting.decay <= 1
        assert setting.core in ("none", "gru")
        assert setting.width == 3
    if name == "random":
        assert found(3, 4) == found(3, 9)  # batches are no part of it


@needs_optuna
def test_optuna_learns_from_what_it_is_told():
    def best(name, told):
        tops = [
            max(map(worth, search.seek(search.get(name, WIDE, seed), lambda asked: map(told, asked), 60, 6)[0]))
            for seed in range(5)
        ]
        return sum(tops) / 5

    assert best("optuna", worth) > 0.5 * best("random", worth)  # of what is lost (the best is 0), less than half
    assert best("optuna", lambda setting: -worth(setting)) < best("optuna", worth) - 0.1


@needs_optuna
def test_optuna_bears_scores_that_are_no_numbers():
    asks = search.get("optuna", WIDE)
    for _ in range(6):
        batch = asks.ask(4)
        asks.tell(batch, [math.nan, -math.inf, 1.0, 2.0])
    assert len(asks.ask(4)) == 4
    with pytest.raises(ValueError, match="told before"):
        asks.tell(batch, [1.0] * 4)
    with pytest.raises(ValueError, match="not asked"):
        asks.tell([Setting(lr=7.0)], [1.0])


def test_a_search_that_is_not_there_is_said():
    with pytest.raises(BadInput, match="moon: no such search; there are grid, random, optuna"):
        search.get("moon", SMALL)
    with pytest.raises(BadInput, match=r"axes\.lr: a range has no grid"):
        search.get("grid", WIDE)


def test_optuna_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(BadInput, match=r"optuna is not installed; pip install 'offing\[optuna\]'"):
        search.get("optuna", SMALL)


def test_a_batch_has_a_part_of_the_cache_of_its_own():
    class Names:
        def get(self, name):
            return [name]

        def put(self, name, arrays):
            raise AssertionError

    name = lambda settings: search.part(Run(Names()), settings).get("plan-0-1")[0]
    assert name([Setting(lr=1.0)]) == name([Setting(lr=1)])
    assert len({name([Setting()]), name([Setting(lr=1.0)]), name([Setting(), Setting()])}) == 3
    assert search.part(Run(), [Setting()]) == Run()


# ---- spaces


FILE = """
planner = "iql"

[base]
updates = 200
discount = 1

[axes]
beta = [1, 3.0, 3]
width = [16, 32]
expectile = {low = 0.5, high = 0.9}
lr = {low = 1e-4, high = 1e-2, log = true}
"""


def test_a_space_is_read_from_a_file(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(FILE)
    found = read_space(path)
    assert found.planner == "iql"
    assert (found.base.updates, found.base.discount, found.base.batch_size) == (200, 1.0, 256)
    assert found.axes == {
        "beta": (1.0, 3.0),
        "width": (16, 32),
        "expectile": Uniform(0.5, 0.9),
        "lr": Uniform(1e-4, 1e-2, log=True),
    }
    assert found.count == math.inf
    assert len(search.draw(found).ask(5)) == 5
    path.write_text('planner = "iql"')
    assert search.grid(read_space(path)).ask(9) == [found.base.__class__()]


WRONG = [
    ("planner = ", "not a space in TOML"),
    ("[axes]", "planner: a planner's name is missing; there are"),
    ('planner = "moon"', "planner: moon: no such planner; there are"),
    ('planner = "iql"\nseeds = 3', "seeds: no such key; there are planner, base, axes"),
    ('planner = "iql"\nbase = 3', "base: 3 where a table of fields was expected"),
    ('planner = "iql"\n[base]\nbeta_ = 3', "base.beta_: no such field; there are updates, batch_size"),
    ('planner = "iql"\n[base]\nupdates = 1e3', "base.updates: 1000.0 where a whole number was expected"),
    ('planner = "iql"\n[base]\nupdates = true', "base.updates: True where a whole number was expected"),
    ('planner = "iql"\n[base]\nbeta = "3"', "base.beta: '3' where a number was expected"),
    ('planner = "iql"\n[base]\nbeta = nan', "base.beta: nan where a number was expected"),
    ('planner = "iql"\n[axes]\nalpha = [1]', "axes.alpha: no such field; there are updates"),
    ('planner = "iql"\n[axes]\nbeta = 3', "axes.beta: 3 where a list of choices or low and high were expected"),
    ('planner = "iql"\n[axes]\nbeta = []', "axes.beta: [] where a list of choices or low and high were expected"),
    ('planner = "iql"\n[axes]\nbeta = [1, [2]]', "axes.beta: (2,) where a number was expected"),
    (
        'planner = "iql"\n[axes]\nwidth = {low = 3, high = 5}',
        "axes.width: a range is for numbers",
    ),
    ('planner = "iql"\n[axes]\nbeta = {low = 3}', "axes.beta: {'low': 3} where low and high were expected"),
    ('planner = "iql"\n[axes]\nbeta = {low = 3, high = 3}', "where low and high were expected, low the smaller"),
    ('planner = "iql"\n[axes]\nbeta = {low = 3, hi = 5}', "axes.beta.hi: no such key of a range; there are low"),
    ('planner = "iql"\n[axes]\nbeta = {low = 0, high = 5, log = true}', "true from low > 0 on"),
    ('planner = "iql"\n[axes]\nbeta = {low = 1, high = 5, log = 1}', "where log = true or false was expected"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_what_is_wrong_in_a_space_is_said_in_one_line(tmp_path, text, why):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as told:
        read_space(path)
    assert str(told.value).startswith(str(path))
    assert why in str(told.value)
    assert "\n" not in str(told.value)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_space(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="not a space in TOML"):
        read_space(tmp_path / "bytes.toml")


def test_lists_are_tuples_and_flags_are_flags():
    found = space(Setting(), {"sizes": [[3], [3], [5, 7]], "flag": [True, False]})
    assert found.axes == {"sizes": ((3,), (5, 7)), "flag": (True, False)}
    assert found.count == 4
    for axes in ({"flag": [1]}, {"width": [True]}, {"sizes": [3]}, {"core": [3]}, {"lr": [False]}):
        with pytest.raises(BadInput, match="was expected"):
            space(Setting(), axes)
    assert space_of({"planner": "iql"}).count == 1
