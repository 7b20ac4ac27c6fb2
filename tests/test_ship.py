"""Exports against the policies they were made of."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from offing import planner as planners
from offing.data.columns import ActionColumn, Column, Columns
from offing.ship.export import shipped, write_shipment
from offing.ship.trace import stepper, trace
from offing.types import BadInput, Box, Discrete, Policy, Seen, Task

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

import offing_runtime
from offing_runtime._program import Program as Runner

BOX, CHOICE = Box((-2.0, 0.5), (2.0, 3.0)), Discrete(3)
WIDTH = 4


def shaken(policy, seed=0):
    """The policy with random parameters of a fair size."""
    leaves, tree = jax.tree.flatten(policy.params)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    leaves = [leaf + 0.4 * jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)]
    params = jax.tree.unflatten(tree, leaves)
    scale = params[1]._replace(std=jnp.abs(params[1].std) + 0.5, reward=jnp.asarray(1.3))
    return Policy((params[0], scale), policy.memory, policy.act)


def made(name, actions, **settings):
    planner = planners.get(name)
    return shaken(planner.blank(planner.Hypers(**settings), WIDTH, Task(10, 0.99, actions)))


def walked(policy, actions, steps=200):
    """Random inputs, and what the policy does at them one after another."""
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(steps, WIDTH)).astype(np.float32) * 2
    reward = rng.normal(size=steps).astype(np.float32)
    start = (rng.random(steps) < 0.05) | (np.arange(steps) == 0)

    def one(carry, at):
        memory, last = carry
        o, r, s = at
        action, memory = policy.act(policy.params, memory, Seen(o, last * (1 - s), r * (1 - s), s), None)
        return (memory, action), action

    first = (policy.memory, jnp.zeros(actions.width))
    out = np.asarray(jax.jit(lambda xs: jax.lax.scan(one, first, xs)[1])((obs, reward, start.astype(np.float32))))
    return obs, reward, start, out.argmax(-1) if isinstance(actions, Discrete) else out


CASES = [
    ("bc", BOX, {"width": 8, "depth": 2}),
    ("iql", CHOICE, {"width": 8, "depth": 2}),
    ("sacn", BOX, {"width": 8, "depth": 2}),
    *(
        ("rppo", actions, {"core": core, "width": 8})
        for actions in (BOX, CHOICE)
        for core in ("none", "gru", "linear")
    ),
]
IDS = [f"{name}-{settings.get('core', '')}-{type(actions).__name__}" for name, actions, settings in CASES]


@pytest.fixture(scope="module", params=CASES, ids=IDS)
def case(request):
    name, actions, settings = request.param
    policy = made(name, actions, **settings)
    return policy, actions, trace(policy, WIDTH, actions), walked(policy, actions)


def apart(got, due):
    """The largest difference; of choices, any is 1 or more."""
    assert np.shape(got) == np.shape(due)
    return float(np.max(np.abs(np.asarray(got, float) - np.asarray(due, float))))


def test_numpy_does_as_the_policy_does(case):
    _, _, program, (obs, reward, start, due) = case
    run = Runner(program.to_json(), program.constants)
    state, got = run.initial, []
    for o, r, s in zip(obs, reward, start, strict=True):
        action, state = run(o, r, run.initial if s else state)
        got.append(action)
    assert apart(np.array(got), due) <= 1e-5


def test_onnx_does_as_the_policy_does(case):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from offing.ship.onnx import onnx_model

    _, _, program, (obs, reward, start, due) = case
    session = runtime.InferenceSession(onnx_model(program, {"offing": "{}"}))
    assert session.get_modelmeta().custom_metadata_map == {"offing": "{}"}
    if not program.remembers:
        assert [each.name for each in session.get_inputs()] == ["obs"]
        assert apart(session.run(None, {"obs": obs})[0], due) <= 1e-5
        return
    state, got = program.initial[None], []
    for o, r, s in zip(obs, reward, start, strict=True):
        given = {"obs": o[None], "reward": r[None], "state": program.initial[None] if s else state}
        action, state, refused = session.run(None, given)
        assert refused.tolist() == [-1]
        got.append(action[0])
    assert apart(np.array(got), due) <= 1e-5
    twice = session.run(None, {"obs": obs[:2], "reward": reward[:2], "state": np.tile(program.initial, (2, 1))})[0]
    assert apart(twice[0], due[0]) <= 1e-5


DRIVER = """
#include "it.h"
#include <stdio.h>
int main(void) {
    float obs[IT_OBS], reward, state[IT_STATE + 1];
    int start;
    while (1) {
        for (int i = 0; i < IT_OBS; i++) if (scanf("%f", obs + i) != 1) return 0;
        if (scanf("%f %d", &reward, &start) != 2) return 0;
        CALL
    }
}
"""


def c_driver(program):
    """A program that reads rows and prints what the exported policy does at each."""
    out = "int choice;" if program.choices else "float action[IT_ACTIONS];"
    more, begin = (
        (", reward, state", "if (start) it_begin(state);")
        if program.remembers
        else ("", "(void)start; (void)state;")
    )
    call = f"{out} {begin} const char *why = it_step(obs{more}, {'&choice' if program.choices else 'action'});"
    show = (
        'printf("%d\\n", choice);'
        if program.choices
        else 'for (int i = 0; i < IT_ACTIONS; i++) printf("%.9g ", action[i]); puts("");'
    )
    return DRIVER.replace("CALL", f"{call} if (why) puts(why); else {{ {show} }}")


def test_c_does_as_the_policy_does(case, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no compiler")
    from offing.ship.c import c_files

    _, actions, program, (obs, reward, start, due) = case
    header, source = c_files(program, "it", {"verdict": "GO"}, [f"number {i} is bad" for i in range(WIDTH + 1)])
    for name, text in (("it.h", header), ("it.c", source), ("main.c", c_driver(program))):
        (tmp_path / name).write_text(text)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
    subprocess.run([compiler, *strict, "it.c", "main.c", "-o", "it", "-lm"], cwd=tmp_path, check=True)
    rows = [[*o, r, s] for o, r, s in zip(obs, reward, start.astype(int), strict=True)]
    given = "\n".join(" ".join(f"{x:.9g}" for x in row) for row in rows) + "\n1 2 nan 3 0 1\n"
    got = subprocess.run([str(tmp_path / "it")], input=given, capture_output=True, text=True, check=True).stdout
    *lines, refused = got.splitlines()
    assert refused == "number 2 is bad"
    numbers = np.array([[float(x) for x in line.split()] for line in lines])
    assert apart(numbers[:, 0] if isinstance(actions, Discrete) else numbers, due) <= 1e-5


# ---- whole exports, as files

TABLE = Columns(
    obs=(
        Column("speed"),
        Column("on", encoding="yes-no", levels=("no", "yes")),
        Column("kind", encoding="category", levels=("a", "b")),
    ),
    action=(ActionColumn("valve", (-2.0,), (2.0,)), ActionColumn("heat", (0.5,), (3.0,))),
    table=True,
    others=("day",),
)
ROW = {"speed": 0.3, "on": "yes", "kind": "b", "day": "Monday"}


@pytest.fixture(scope="module", params=["linear", "none"])
def sent(request):
    policy = made("rppo", BOX, core=request.param, width=8)
    return shipped(policy, WIDTH, BOX, TABLE, {"verdict": "GO", "fingerprint": "f"}, "it")


def test_the_runtime_speaks_the_tables_names(sent, tmp_path):
    (file,) = write_shipment(sent, "numpy", tmp_path)
    policy = offing_runtime.load(tmp_path)
    assert offing_runtime.load(file).about == {"verdict": "GO", "fingerprint": "f"}
    action, state = policy.predict(ROW)
    step, initial = stepper(sent.policy, WIDTH, BOX)
    due, after = step(TABLE.encode(ROW)[0], np.float32(0), initial)
    assert action == pytest.approx({"valve": float(due[0]), "heat": float(due[1])}, abs=1e-5)
    if not policy.remembers:
        assert state is None
        return
    second, _ = policy.predict([0.1, 0, 1, 0], state, 0.7)
    due, _ = step(np.array([0.1, 0, 1, 0], np.float32), np.float32(0.7), after)
    np.testing.assert_allclose(second, due, atol=1e-5)  # numbers in, numbers out


BAD = [
    {"on": "yes", "kind": "b"},
    {**ROW, "speeed": 1},
    {**ROW, "speed": "fast"},
    {**ROW, "speed": None},
    {**ROW, "speed": float("inf")},
    {**ROW, "on": "perhaps"},
    {**ROW, "kind": "c"},
    {**ROW, "kind": ""},
    [1.0, 2.0],
    [1.0, 2.0, float("nan"), 0.0],
]


@pytest.mark.parametrize("row", BAD, ids=str)
def test_a_bad_row_is_refused_alike(sent, tmp_path, row):
    write_shipment(sent, "numpy", tmp_path)
    with pytest.raises(BadInput) as ours:
        TABLE.encode(row)
    with pytest.raises(offing_runtime.BadInput) as theirs:
        offing_runtime.load(tmp_path).predict(row)
    assert str(theirs.value) == str(ours.value)


ALL = Columns(
    obs=(
        Column("hour", encoding="cyclic", period=24.0, source="at"),
        Column("month", encoding="cyclic", period=12.0, source="at"),
        Column("weekday", encoding="cyclic", period=7.0, source="at"),
        Column("x", encoding="lag", lag=1),
        Column("x", encoding="difference", lag=1),
        Column("y", fill=2.0),
        Column("y", encoding="indicator"),
        Column("v", width=2),
        Column("k", encoding="category", levels=("1", "2"), other=True),
    ),
    action=(ActionColumn("a", levels=("low", "high")), ActionColumn("b", levels=(1, 2, 3))),
    table=True,
)


def test_the_runtime_encodes_and_decodes_every_kind_of_column():
    theirs = offing_runtime.Columns(ALL.to_json())
    for at, y, k in (("2024-02-29T13:45:10", None, 2), ("2023-12-31 23:59:59+02:00", 1.5, "9")):
        row = {"at": at, "x": 3.0, "x[t-1]": 1.25, "y": y, "v": [1.0, 2.0], "k": k}
        np.testing.assert_allclose(theirs.encode(row), ALL.encode(row)[0], atol=1e-5)
    for choice in range(6):
        assert theirs.decode(choice) == ALL.decode(np.eye(6)[choice])


def test_stablehlo_does_as_the_policy_does(sent, tmp_path):
    files = write_shipment(sent, "stablehlo", tmp_path)
    assert json.loads(files[2].read_text())["about"]["verdict"] == "GO"
    call = jax.export.deserialize(bytearray(files[0].read_bytes())).call
    step, initial = stepper(sent.policy, WIDTH, BOX)
    obs = np.array([0.1, 2, -1, 0], np.float32)
    due = step(obs, np.float32(0.5), initial)[0]
    got = call(obs, np.float32(0.5), initial)[0] if sent.program.remembers else call(obs)[0]
    np.testing.assert_allclose(got, due, atol=1e-5)


def test_an_export_that_differs_is_not_written(sent, tmp_path):
    pytest.importorskip("onnxruntime")
    wrong = {name: 1.1 * array for name, array in sent.program.constants.items()}
    wrong = {name: array.astype(sent.program.constants[name].dtype) for name, array in wrong.items()}
    bad = sent._replace(program=replace(sent.program, constants=wrong))
    with pytest.raises(BadInput, match="differs from the policy"):
        write_shipment(bad, "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (file,) = write_shipment(sent, "onnx", tmp_path)
    assert file.stat().st_size > 1000
