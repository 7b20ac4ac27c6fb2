"""Floats are traced, everything else is shape: the rule, and the sweeps that stand on it."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing.hypers import Uniform, asdict, draw, grid, groups, hypers, stack


@hypers
class Setting:
    lr: float = 1e-3
    width: int = 5
    decay: float = 0.5
    activation: str = "relu"
    sizes: tuple[int, ...] = (3, 2)
    flag: bool = False


@hypers
class Longer(Setting):
    penalty: float = 2.0
    members: int = 7


def test_floats_are_leaves_and_the_rest_is_structure():
    setting = Setting(lr=0.25, width=11)
    assert jax.tree.leaves(setting) == [0.25, 0.5]
    same = jax.tree.structure(setting)
    assert same == jax.tree.structure(Setting(lr=9.0, decay=-1.0, width=11))
    for other in ({"width": 13}, {"activation": "tanh"}, {"sizes": (3,)}, {"flag": True}):
        assert same != jax.tree.structure(Setting(**{"width": 11, **other})), other


def test_round_trip_through_the_tree_keeps_every_field():
    setting = Setting(lr=0.25, width=11, sizes=(4,), flag=True)
    doubled = jax.tree.map(lambda leaf: 2 * leaf, setting)
    assert doubled == Setting(lr=0.5, width=11, decay=1.0, sizes=(4,), flag=True)
    assert type(doubled) is Setting


def test_a_subclass_adds_its_own_leaves_and_structure():
    assert jax.tree.leaves(Longer()) == [1e-3, 0.5, 2.0]
    assert jax.tree.structure(Longer()) != jax.tree.structure(Longer(members=8))
    assert jax.tree.structure(Longer()) != jax.tree.structure(Setting())
    assert isinstance(Longer(penalty=3).penalty, float)


def test_settings_cannot_be_changed():
    with pytest.raises(AttributeError):
        Setting().lr = 1.0


@pytest.mark.parametrize("given", [2, np.int64(2), np.int32(2)])
@pytest.mark.parametrize("cls", [Setting, Longer])
def test_whole_numbers_given_to_float_fields_become_floats(given, cls):
    setting = cls(lr=given)
    assert type(setting.lr) is float
    assert setting.lr == 2.0
    assert type(cls().width) is int
    via_grid = grid(cls(), decay=[given])[0]
    assert type(via_grid.decay) is float


def test_a_whole_number_does_not_cost_a_second_trace():
    traces = []

    @jax.jit
    def run(setting):
        traces.append(1)
        return setting.lr * setting.width

    assert run(Setting(lr=2)) == 10.0
    assert run(Setting(lr=3.0)) == 15.0
    assert len(traces) == 1


@pytest.mark.parametrize("cls", [Setting, Longer])
def test_structure_must_be_hashable(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}\.sizes .*hashable"):
        cls(sizes=[3, 2])


def test_asdict_is_ready_for_json():
    setting = Setting(lr=np.float32(0.25), width=np.int64(11), decay=jnp.float32(0.5))
    plain = asdict(setting)
    assert json.loads(json.dumps(plain)) == {
        "lr": 0.25,
        "width": 11,
        "decay": 0.5,
        "activation": "relu",
        "sizes": [3, 2],
        "flag": False,
    }
    assert asdict(stack([Setting(lr=0.25), Setting(lr=0.75)]))["lr"] == [0.25, 0.75]


def test_grid_runs_through_every_combination_the_last_axis_fastest():
    found = grid(Setting(flag=True), width=[5, 7], lr=[0.1, 0.2, 0.3])
    assert [(s.width, s.lr) for s in found] == [(5, 0.1), (5, 0.2), (5, 0.3), (7, 0.1), (7, 0.2), (7, 0.3)]
    assert all(s.flag and s.decay == 0.5 for s in found)
    assert grid(Setting(width=3)) == [Setting(width=3)]
    assert grid(Setting(), lr=[]) == []
    with pytest.raises(TypeError, match="nonesuch"):
        grid(Setting(), nonesuch=[1])


def test_draw_stays_within_its_ranges_and_fills_them():
    found = draw(0, Setting(), 400, lr=Uniform(1e-5, 1e-1, log=True), decay=Uniform(-2.0, 3.0), width=[3, 5, 7])
    lr, decay = np.array([s.lr for s in found]), np.array([s.decay for s in found])
    assert len(found) == 400
    assert lr.min() >= 1e-5
    assert lr.max() <= 1e-1
    assert decay.min() >= -2.0
    assert decay.max() <= 3.0
    decades = np.bincount(np.floor(np.log10(lr)).astype(int) + 5, minlength=4)  # evenly over four decades
    assert decades.min() > 60
    fifths = np.bincount(np.floor(decay).astype(int) + 2, minlength=5)
    assert fifths.min() > 50
    assert np.unique([s.width for s in found], return_counts=True)[1].min() > 100
    assert all(s.activation == "relu" for s in found)


def test_draw_is_decided_by_its_seed():
    axes = {"lr": Uniform(0.0, 1.0), "width": [3, 5, 7, 11]}
    assert draw(3, Setting(), 6, **axes) == draw(3, Setting(), 6, **axes)
    assert draw(3, Setting(), 6, **axes) != draw(4, Setting(), 6, **axes)
    assert draw(3, Setting(), 6, **axes)[:2] == draw(3, Setting(), 2, **axes)
    assert draw(3, Setting(), 0, **axes) == []


def test_stack_gives_arrays_and_refuses_unlike_structures():
    stacked = stack(grid(Setting(), lr=[1, 2, 3]))
    np.testing.assert_array_equal(stacked.lr, np.float32([1, 2, 3]))
    assert stacked.lr.dtype == np.float32
    assert stacked.decay.shape == (3,)
    assert stacked.width == 5
    with pytest.raises(ValueError, match="2 structures"):
        stack([Setting(width=3), Setting(width=5)])
    with pytest.raises(ValueError, match="2 structures"):
        stack([Setting(), Longer()])
    with pytest.raises(ValueError, match="0 structures"):
        stack([])


def test_groups_keep_where_each_setting_stood():
    settings = [Setting(lr=i, width=w) for i, w in enumerate([7, 5, 7, 7, 5, 3])]
    found = groups(settings)
    assert [g.index for g in found] == [(0, 2, 3), (1, 4), (5,)]
    assert [[s.lr for s in g.settings] for g in found] == [[0, 2, 3], [1, 4], [5]]
    assert groups([]) == []


def model(setting, x):
    """Something that floats move and structure shapes."""
    for size in setting.sizes:
        x = jnp.tanh(setting.lr * x @ jnp.ones((x.shape[-1], size)) - setting.decay)
    return x.sum() * setting.width


def test_one_trace_for_each_static_group_and_swept_equals_alone():
    settings = grid(Setting(), lr=[0.1, 0.2, 0.3], sizes=[(3, 2), (5,)], decay=[-1, 0.5])
    x = jnp.linspace(0.0, 1.0, 7)
    traces = []

    def run(setting, x):
        traces.append(setting.sizes)
        return model(setting, x)

    program = jax.jit(jax.vmap(run, in_axes=(0, None)))
    swept = np.zeros(len(settings))
    for group in groups(settings):
        swept[list(group.index)] = program(stack(group.settings), x)
    assert traces == [(3, 2), (5,)]
    program(stack(groups(settings)[0].settings), x + 1)
    assert len(traces) == 2  # other numbers, same program
    alone = np.array([model(setting, x) for setting in settings])
    np.testing.assert_allclose(swept, alone, rtol=1e-5)
    assert len(np.unique(alone.round(5))) == len(settings)  # the settings do differ
