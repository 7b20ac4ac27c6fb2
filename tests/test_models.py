"""World models as parts: every one goes through the same door, is kept and comes back, and anybody can add one."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing import posterior as registry
from offing.data import Log, load
from offing.posterior import walk
from offing.posterior.models import ensemble, linear, neighbours
from offing.report.reports import Facts
from offing.report.store import load_posterior, save_posterior
from offing.tune.choose import choose_posterior, refit
from offing.types import BadInput, Drawn, Posterior, WorldModel

KEY = jax.random.key(0)
TINY = {
    "ensemble": ensemble.Hypers(
        width=8, depth=1, activation="silu", batch_size=16, updates=40, members=2, elites=2, folds=2
    ),
    "linear": linear.Hypers(members=3),
    "neighbours": neighbours.Hypers(steps=64, members=3),
}

FACTS = Facts(data="a log", rows=300, seed=0, scale="smoke", seconds=1.0)


@pytest.fixture(scope="module")
def log() -> Log:
    """Cart and pole, and a lamp that goes on and off: so that worlds have choices and ends."""
    found = load("offing:cartpole", 400)
    steps = found.data.steps
    lamp = np.random.default_rng(0).integers(0, 2, (len(steps.obs) + 1, 1)).astype(np.float32)
    steps = steps._replace(obs=np.c_[steps.obs, lamp[:-1]], next_obs=np.c_[steps.next_obs, lamp[1:]])
    starts = np.c_[found.data.starts, np.zeros(len(found.data.starts), np.float32)]
    return found._replace(data=found.data._replace(steps=steps, starts=starts))


def one_step(posterior: Posterior, copies: int = 7) -> Drawn:
    place = walk.begin(jax.random.key(1), posterior, copies)
    action = jnp.broadcast_to(jnp.array([1.0, 0.0]), (posterior.members, copies, 2))
    return jax.tree.map(np.asarray, jax.jit(walk.fixed(posterior))(jax.random.key(2), place, action)[1])


def same(a, b) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.fixture(scope="module", params=sorted(TINY))
def chosen(request, log):
    model = registry.get(request.param)
    return model, choose_posterior(KEY, log, [TINY[request.param]], model=model)


def test_the_three_models_are_found_by_name():
    assert set(TINY) <= set(registry.names())
    for name in TINY:
        model = registry.get(name)
        assert (model.name, isinstance(model, WorldModel)) == (name, True)
        assert len(model.space("smoke", 400)) >= 2
        assert all(isinstance(setting, model.Hypers) for setting in model.space("quick", 400))
    with pytest.raises(BadInput, match="ensemble, linear, neighbours"):
        registry.get("oracle")


@pytest.mark.parametrize(("wanted", "worlds"), [(0, 4), (3, 6), (16, 8)])
def test_a_plan_has_more_worlds_to_be_judged_in_than_were_chosen_by(wanted, worlds, log):
    setting = TINY["ensemble"]
    choice = choose_posterior(KEY, log, [setting, setting])
    assert choice.picked.members == 4  # two folds of two
    assert refit(KEY, log, choice, worlds_wanted=wanted).members == worlds


def test_every_model_is_chosen_stepped_and_kept(chosen, tmp_path):
    model, choice = chosen
    found = choice.picked
    assert (found.folds, found.members, choice.model) == (2, 2 * TINY[model.name].members, model)
    assert choice.chance.shape == choice.share.shape == (6,)
    assert ((choice.share >= 0) & (choice.share <= 1)).all()
    drawn = one_step(found)
    assert drawn.next_obs.shape == (found.members, 7, 5)
    assert {drawn.terminated.dtype, drawn.out_of_support.dtype, drawn.clipped.dtype} == {np.dtype(bool)}
    assert all(np.isfinite(leaf).all() for leaf in drawn)
    save_posterior(tmp_path, choice, FACTS)
    again = load_posterior(tmp_path)
    assert (again.folds, again.members, again.terminates) == (2, found.members, found.terminates)
    same(one_step(again), drawn)
    same((again.starts, again.low, again.high), (found.starts, found.low, found.high))
    if found.moments is not None:
        place, action = walk.begin(KEY, found, 3), jnp.zeros((found.members, 3, 2))
        same(walk.expected(again, place, action), walk.expected(found, place, action))


def test_a_posterior_that_is_put_together_again_shares_its_programs(chosen):
    """What is static about it is equal, though its methods are those of another object."""
    model, choice = chosen
    again = model.load(model.save(choice.picked), choice.picked.task)
    assert jax.tree.structure(again) == jax.tree.structure(choice.picked)
    assert hash(jax.tree.structure(again)) == hash(jax.tree.structure(choice.picked))


def test_a_rule_of_the_task_ends_episodes_in_every_model(chosen, log):
    model, _ = chosen
    ruled = log._replace(task=log.task._replace(done=lambda obs, action, after: after[..., 0] > 0))
    choice = choose_posterior(KEY, ruled, [TINY[model.name]], model=model)
    drawn = one_step(choice.picked, 40)
    calm = ~drawn.out_of_support
    np.testing.assert_array_equal(drawn.terminated[calm], (drawn.next_obs[..., 0] > 0)[calm])
    assert 0 < drawn.terminated.mean() < 1


def test_damaged_arrays_are_refused(chosen, tmp_path):
    model, choice = chosen
    saved = model.save(choice.picked)
    name = sorted(name for name in saved.arrays if name.startswith("theta."))[0]
    with pytest.raises(BadInput, match="damaged or of another version"):
        model.load(saved._replace(arrays={k: v for k, v in saved.arrays.items() if k != name}), choice.picked.task)


# ---- models of somebody else

SOURCE = '''
"""Worlds that drift by the fold's mean change, whatever is done."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from offing.hypers import hypers
from offing.posterior import _table
from offing.types import Drawn, Fitted, Posterior, Prepared, WorldModel


@hypers
class Hypers:
    members: int = 2
    folds: int = 2
    wide: float = 1.0


class Theta(NamedTuple):
    mean: jax.Array
    std: jax.Array


@dataclass(frozen=True)
class Sample:
    def __call__(self, key, theta, memory, obs, action):
        y = theta.mean + theta.std * jax.random.normal(key, (*obs.shape[:-1], theta.mean.shape[-1]))
        no = jnp.zeros(obs.shape[:-1], bool)
        return Drawn(obs + y[..., :-1], y[..., -1], no, no, no), memory


def fit(key, hypers, data, split, arrays, shape):
    y = jnp.concatenate([data.steps.next_obs - data.steps.obs, data.steps.reward[:, None]], -1)

    def fold(key, rows, size):
        used = (jnp.arange(rows.shape[0]) < size)[:, None]
        mean = jnp.sum(y[rows] * used, 0) / size
        std = jnp.sqrt(jnp.sum(jnp.square(y[rows] - mean) * used, 0) / size)
        draws = mean + hypers.wide * std / jnp.sqrt(size) * jax.random.normal(key, (hypers.members, *mean.shape))
        return Theta(draws, jnp.broadcast_to(std, draws.shape)), jnp.zeros(hypers.members)

    keys = jax.random.split(key, hypers.folds)
    theta, nll = jax.vmap(fold)(keys, jnp.asarray(split.train), jnp.asarray(split.sizes))
    return Fitted(jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]), theta), nll)


def made(theta, starts, low, high, task, folds):
    return Posterior(theta, *map(jnp.asarray, (starts, low, high)), Sample(), task, folds=folds)


def posterior(fitted, hypers, prepared, data, task):
    edge = jnp.full(data.steps.obs.shape[1] + 1, 9.0)
    return made(fitted.theta, data.starts, -edge, edge, task, hypers.folds)


def load(saved, task):
    edges = (saved.arrays[name] for name in ("starts", "low", "high"))
    return made(_table.load(saved, Theta), *edges, task, saved.rest["folds"])


model = WorldModel(
    "drift", Hypers, lambda scale, rows=0: [Hypers()], lambda data, task: Prepared((), ()), fit, posterior,
    _table.save, load,
)
'''


def defined() -> WorldModel:
    module = ModuleType("drift_here")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(SOURCE, module.__dict__)
    return module.model


def test_a_model_that_is_a_value_goes_through_choice_refit_and_store(log, tmp_path):
    model = defined()
    choice = choose_posterior(KEY, log, model.space("quick", 400), model=model)
    assert choice.picked.moments is None  # so that PIL and planners ask it by drawing
    assert np.isfinite([choice.pil.e, choice.pil.v]).all()
    assert refit(KEY, log, choice).members == 4
    save_posterior(tmp_path, choice, FACTS)
    same(one_step(load_posterior(tmp_path, model)), one_step(choice.picked))
    with pytest.raises(BadInput, match="no such model"):
        load_posterior(tmp_path)  # nobody knows it by name


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Path:
    """A package that adds the model, as pip would leave it."""
    folder = tmp_path / "site"
    told = folder / "drift_elsewhere-1.0.dist-info"
    told.mkdir(parents=True)
    (folder / "drift_elsewhere.py").write_text(SOURCE)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: drift_elsewhere\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[offing.models]\ndrift = drift_elsewhere:model\n")
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_a_model_of_another_package_is_found_by_name_and_read_back(log, installed, tmp_path):
    assert "drift" in registry.names()
    model = registry.get("drift")
    choice = choose_posterior(KEY, log, model.space("quick", 400), model=model)
    save_posterior(tmp_path / "out", choice, FACTS)
    same(one_step(load_posterior(tmp_path / "out")), one_step(choice.picked))


def test_settings_of_different_folds_cannot_be_compared(log):
    settings = [TINY["linear"], replace(TINY["linear"], folds=1)]
    with pytest.raises(BadInput, match="different numbers of folds"):
        choose_posterior(KEY, log, settings, model=linear.model)
