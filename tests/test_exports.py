"""A thousand steps of every export beside its policy, on three logs, with memory and without."""

import shutil
from types import SimpleNamespace

import jax
import pytest

import offing
from benchmarks.exports import LOGS, NEAR, compared, sent_by
from offing import planner as planners
from offing.data import subsample
from offing.planner._plan import train
from offing.report.actor import Actor

for needed in ("onnx", "onnxruntime"):
    pytest.importorskip(needed)
if not any(map(shutil.which, ("cc", "gcc", "clang"))):
    pytest.skip("no compiler", allow_module_level=True)


def trained(log, core):
    """A small clone of the log's behaviour, after a few updates."""
    planner = planners.get("clone")
    hypers = planner.Hypers(updates=30, runs=8, segment=8, width=8, core=core)
    worlds = SimpleNamespace(task=log.task)  # a clone looks into no world

    @jax.jit
    def learned(key, data):
        state = planner.init(key, hypers, data, worlds)
        state, _ = train(jax.random.split(key, hypers.updates), hypers, planner, state, data, worlds)
        return planner.policy(hypers, state, log.task).params

    blank = planner.blank(hypers, log.data.steps.obs.shape[1], log.task)
    params = learned(jax.random.key(0), log.data)
    policy = jax.tree.unflatten(jax.tree.structure(blank), jax.tree.leaves(params) + jax.tree.leaves(blank.memory))
    return Actor(policy, log.task, log.data.steps.obs.shape[1], log.columns, core)


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("core", ["linear", "none"])
def test_a_thousand_steps_agree_and_bad_inputs_are_refused_alike(name, core, tmp_path):
    log = subsample(offing.load(name), 2_000, 0)
    lines = compared(sent_by(trained(log, core), log), log, 1_000, tmp_path)
    assert [line.format for line in lines] == ["numpy", "onnx", "stablehlo", "c"]
    for line in lines:
        assert line.memory == (core == "linear")
        assert line.apart <= NEAR, line
        assert line.refused == line.bad > 3, line
