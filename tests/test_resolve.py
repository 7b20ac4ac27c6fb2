"""A policy by its name: finished runs, functions, ONNX, Stable-Baselines3, d3rlpy; and one line for all else."""

import sys
import types
from pathlib import Path

import jax
import numpy as np
import pytest

from offing.__main__ import main
from offing.hypers import asdict
from offing.planner import bc
from offing.report.results import RESULT, finished_policy
from offing.report.store import keep, write_json
from offing.types import BadInput, Box, Discrete, Task
from offing.value._foreign import Host, Native
from offing.value._view import alone
from offing.value.policies import FORMS
from offing.value.policies import resolve as resolve_with

PAIR = Task(9, 0.9, Discrete(2))
BOX = Task(9, 0.9, Box((-2.0,), (2.0,)))
OBS = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)
ROOT = Path(__file__).parents[1]


def actions_of(actions):
    """A space of actions as `result.json` has it."""
    return {"choices": actions.n} if hasattr(actions, "n") else actions._asdict()


def resolve(spec, task, width):
    return resolve_with(spec, task, width, finished_policy)


def acted(policy, task):
    seen = alone(OBS, task.actions)
    return np.asarray(policy.act(policy.params, policy.begin(len(OBS)), seen, None)[0])


# ---- a run of our own


@pytest.fixture
def run(tmp_path):
    """A folder as `offing sorel` leaves it, as far as policies go."""
    hypers = bc.Hypers(width=4, depth=1)
    policy = bc.planner.blank(hypers, 3, BOX)
    leaves = [np.full(leaf.shape, 0.1, np.float32) for leaf in jax.tree.leaves(policy.params)]
    arrays = keep(tmp_path, "policy", {f"a{i}": leaf for i, leaf in enumerate(leaves)})
    task = {"horizon": 9, "discount": 0.9, "actions": actions_of(BOX.actions)}
    kept = {"planner": "bc", "settings": [asdict(hypers)], "chosen": 0, "width": 3, "arrays": arrays, "task": task}
    write_json(tmp_path / RESULT, {"policy": kept})
    return tmp_path, arrays


def test_a_finished_run_by_its_folder_or_a_file_in_it(run):
    folder, arrays = run
    found = [acted(resolve(str(path), BOX, 3), BOX) for path in (folder, folder / RESULT, folder / arrays)]
    assert np.ptp(found[0]) > 0
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_run_of_another_task_is_refused(run):
    folder, _ = run
    for task, width, why in (
        (
            PAIR,
            3,
            r"is for observations of 3 numbers and 1 amounts in \[-2, 2\]; the log has 3 numbers and 2 choices",
        ),
        (BOX, 4, "the log has 4 numbers"),
        (BOX._replace(actions=Box((-1.0,), (2.0,))), 3, r"1 amounts in \[-1, 2\]"),
    ):
        with pytest.raises(BadInput, match=why):
            resolve(str(folder), task, width)


# ---- somebody's function

MODULE = """
import numpy as np
import jax.numpy as jnp

def damp(obs):
    return np.clip(-np.asarray(obs)[:, 2:], -2, 2)

def smooth(obs):
    return 2 * jnp.tanh(-obs[:, 2])

class Kept:
    def __init__(self, gain):
        self.gain = gain
    def predict(self, obs, state=None, episode_start=None, deterministic=True):
        return self.gain * damp(obs), None

half = Kept(0.5)
number = 7
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "somebodys.py").write_text(MODULE)
    yield
    sys.modules.pop("somebodys", None)


def test_functions_and_objects_of_modules_in_this_folder(module):
    damp, smooth, half = (resolve(f"somebodys:{name}", BOX, 3) for name in ("damp", "smooth", "half"))
    assert [type(p.act) for p in (damp, smooth, half)] == [Host, Native, Host]
    np.testing.assert_allclose(acted(damp, BOX), np.clip(-OBS[:, 2:], -2, 2))
    np.testing.assert_allclose(acted(smooth, BOX), 2 * np.tanh(-OBS[:, 2:]), atol=1e-6)
    np.testing.assert_allclose(acted(half, BOX), acted(damp, BOX) / 2)
    assert str(Path.cwd()) not in sys.path


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("nonesuch", rf"^nonesuch: no such policy; give {FORMS}$"),
        ("", "no such policy"),
        ("somebodys:", "no such policy"),
        ("somebodys:nonesuch", "cannot be imported: AttributeError"),
        ("no_such_module:f", "cannot be imported: ModuleNotFoundError"),
        ("somebodys:number", "is a int, where a function or an object with a method `predict` was expected"),
        ("somebodys:Kept", "is a class"),
        ("somebodys.py", "^somebodys.py: is no policy; give the folder"),
        (".", r"^\.: holds no finished result"),
        ("nonesuch.onnx", "^nonesuch.onnx: no such file$"),
        ("sb3:ppo:nonesuch.zip", "^sb3:ppo:nonesuch.zip: no such file$"),
        ("sb3:nonesuch:somebodys.py", "give sb3:ALGORITHM:FILE, the algorithm one of a2c, ars, "),
        ("sb3:ppo", "give sb3:ALGORITHM:FILE"),
        ("d3rlpy:nonesuch.d3", "^d3rlpy:nonesuch.d3: no such file$"),
        ("d3rlpy:", "give d3rlpy:FILE"),
    ],
)
def test_what_names_no_policy_is_refused_in_a_line(module, spec, why):
    with pytest.raises(BadInput, match=why) as caught:
        resolve(spec, BOX, 3)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("package", "spec", "how"),
    [
        ("onnxruntime", "a.onnx", r"pip install 'offing\[onnx\]'$"),
        ("stable_baselines3", "sb3:sac:a.onnx", "pip install stable-baselines3$"),
        ("sb3_contrib", "sb3:tqc:a.onnx", "pip install sb3-contrib$"),
        ("d3rlpy", "d3rlpy:a.onnx", "pip install d3rlpy$"),
    ],
)
def test_a_missing_library_is_named_with_what_to_install(tmp_path, monkeypatch, package, spec, how):
    monkeypatch.chdir(tmp_path)
    Path("a.onnx").write_text("not a model")
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(BadInput, match=rf"needs {package}, .*: {how}"):
        resolve(spec, BOX, 3)


# ---- other libraries, by their shape


class Model:
    """Speaks as models of Stable-Baselines3 do, one that remembers with its layers before its batch."""

    asked: list = []  # noqa: RUF012

    def __init__(self, layers):
        self.layers = layers

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert deterministic
        assert len(episode_start) == len(observation)
        if not self.layers:
            return np.clip(observation[:, :1], -2, 2), None
        before = np.zeros((self.layers, len(observation), 4)) if state is None else state[0]
        assert before.shape == (self.layers, len(observation), 4)
        after = before + observation[:, :1]
        return np.clip(after.sum(0)[:, :1], -2, 2), (after, after)

    @classmethod
    def load(cls, file, device):
        assert device == "cpu"
        if Path(file).read_text() != "a model":
            raise ValueError("not a\nzip file")
        return cls(2 if cls.__name__ == "RecurrentPPO" else 0)


@pytest.fixture
def libraries(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("m.zip").write_text("a model")
    Path("bad.zip").write_text("?")
    for name, kinds in (("stable_baselines3", ["PPO"]), ("sb3_contrib", ["RecurrentPPO"])):
        fake = types.ModuleType(name)
        for kind in kinds:
            setattr(fake, kind, type(kind, (Model,), {}))
        monkeypatch.setitem(sys.modules, name, fake)
    fake = types.ModuleType("d3rlpy")
    fake.load_learnable = lambda file, device: types.SimpleNamespace(predict=lambda x: (x[:, 0] > 0).astype(int))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "d3rlpy", fake)


def test_adapters_speak_to_models_as_their_libraries_do(libraries):
    found = resolve("sb3:ppo:m.zip", BOX, 3)
    assert (type(found.act), found.memory) == (Host, ())
    np.testing.assert_allclose(acted(found, BOX), np.clip(OBS[:, :1], -2, 2))
    assert acted(resolve("d3rlpy:m.zip", PAIR, 3), PAIR).argmax(1).tolist() == (OBS[:, 0] > 0).astype(int).tolist()
    with pytest.raises(BadInput, match=r"^sb3:PPO:bad.zip: cannot be read: ValueError: not a zip file$"):
        resolve("sb3:PPO:bad.zip", BOX, 3)


def test_layers_before_the_batch_are_turned(libraries):
    found = resolve("sb3:recurrentppo:m.zip", BOX, 3)
    assert [leaf.shape for leaf in found.memory] == [(2, 4), (2, 4)]
    seen = alone(np.full((11, 3), 0.25, np.float32), BOX.actions)
    first, memory = found.act(found.params, found.begin(11), seen, None)
    second, _ = found.act(found.params, memory, seen._replace(start=np.zeros(11)), None)
    assert (first[0, 0], second[0, 0]) == (0.5, 1.0)


class Session:
    """Speaks as onnxruntime does."""

    def __init__(self, path, providers):
        assert providers == ["CPUExecutionProvider"]
        self.kind = Path(path).stem

    def get_inputs(self):
        shape = {"fixed": [1, 3], "wide": ["b", 5], "image": ["b", 3, 3]}.get(self.kind, ["batch", 3])
        count = 2 if self.kind == "two" else 1
        kind = {"text": "tensor(string)", "double": "tensor(double)"}.get(self.kind, "tensor(float)")
        return [types.SimpleNamespace(name="x", type=kind, shape=shape)] * count

    def run(self, names, feed):
        assert names is None
        x = feed["x"]
        assert x.dtype == (np.float64 if self.kind == "double" else np.float32)
        scores = np.stack([x[:, 0], x[:, 1]], 1)
        said = {"scores": scores, "choices": scores.argmax(1), "column": scores.argmax(1)[:, None]}
        return [said.get(self.kind, np.clip(x[:, :1], -2, 2)), None]


@pytest.fixture
def onnx(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fake = types.ModuleType("onnxruntime")
    fake.InferenceSession = Session  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)

    def named(kind):
        Path(f"{kind}.onnx").touch()
        return f"{kind}.onnx"

    return named


def test_what_an_onnx_file_may_say(onnx):
    for kind in ("plain", "double"):
        np.testing.assert_allclose(acted(resolve(onnx(kind), BOX, 3), BOX), np.clip(OBS[:, :1], -2, 2))
    for kind in ("scores", "choices", "column"):
        assert acted(resolve(onnx(kind), PAIR, 3), PAIR).argmax(1).tolist() == OBS[:, :2].argmax(1).tolist()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("fixed", "takes 1 observations at a time; export it with a batch axis that is left open"),
        ("wide", "takes observations of 5 numbers, the log's have 3"),
        ("image", r"one float input \[B, 3\] was expected; it has x tensor\(float\)"),
        ("two", r"one float input \[B, 3\] was expected; it has x .*, x "),
        ("text", r"it has x tensor\(string\)"),
    ],
)
def test_what_an_onnx_file_may_not_take(onnx, kind, why):
    with pytest.raises(BadInput, match=why):
        resolve(onnx(kind), BOX, 3)


# ---- other libraries, as they are


def test_a_real_onnx_file(tmp_path):
    pytest.importorskip("onnxruntime")
    make = pytest.importorskip("onnx").helper
    kind = 1  # float
    gain = make.make_tensor("gain", kind, (3, 2), [1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    ports = [make.make_tensor_value_info(name, kind, ["batch", n]) for name, n in (("obs", 3), ("scores", 2))]
    graph = make.make_graph(
        [make.make_node("MatMul", ["obs", "gain"], ["scores"])], "g", ports[:1], ports[1:], [gain]
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    found = resolve(str(tmp_path / "a.onnx"), PAIR, 3)
    assert acted(found, PAIR).argmax(1).tolist() == OBS[:, :2].argmax(1).tolist()
    (tmp_path / "bad.onnx").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="cannot be read"):
        resolve(str(tmp_path / "bad.onnx"), PAIR, 3)


@pytest.mark.parametrize(("package", "kind"), [("stable_baselines3", "PPO"), ("sb3_contrib", "RecurrentPPO")])
def test_real_models_of_stable_baselines3(tmp_path, package, kind):
    library = pytest.importorskip(package)
    net = "MlpLstmPolicy" if kind == "RecurrentPPO" else "MlpPolicy"
    model = getattr(library, kind)(net, "Pendulum-v1", device="cpu", n_steps=8, batch_size=8)
    model.save(tmp_path / "m.zip")
    found = resolve(f"sb3:{kind.lower()}:{tmp_path / 'm.zip'}", BOX, 3)
    assert bool(jax.tree.leaves(found.memory)) == (kind == "RecurrentPPO")
    theirs = model.predict(OBS, None, np.ones(11, bool), deterministic=True)[0]
    np.testing.assert_allclose(acted(found, BOX), theirs, rtol=1e-4, atol=1e-6)
    with pytest.raises(BadInput, match="failed, given 5 observations"):
        resolve(f"sb3:{kind.lower()}:{tmp_path / 'm.zip'}", BOX, 4)


def test_a_real_model_of_d3rlpy(tmp_path):
    library = pytest.importorskip("d3rlpy")
    model = library.algos.DiscreteCQLConfig().create(device="cpu:0")
    model.create_impl((3,), 2)
    model.save(str(tmp_path / "m.d3"))
    found = resolve(f"d3rlpy:{tmp_path / 'm.d3'}", PAIR, 3)
    assert acted(found, PAIR).argmax(1).tolist() == model.predict(OBS).tolist()


# ---- played


@pytest.mark.parametrize(
    ("name", "env", "low", "high"),
    [("energy_swing_up", "pendulum", -200.0, -90.0), ("lean", "cartpole", 499.0, 500.0)],
)
def test_the_examples_are_good_and_can_be_played(name, env, low, high, monkeypatch, capsys):
    pytest.importorskip("gymnax")
    monkeypatch.chdir(ROOT)
    assert main(["play", "--policy", f"examples.controllers:{name}", "--env", env, "--episodes", "40"]) == 0
    shown = capsys.readouterr().out
    assert low <= float(shown.split("realised return ")[1].split(" ")[0].replace(",", "")) <= high


def test_a_policy_is_played_or_refused_in_a_line(module, capsys):
    pytest.importorskip("gymnasium")
    assert main(["play", "--policy", "somebodys:damp", "--env", "gymnasium:Pendulum-v1", "--episodes", "2"]) == 0
    assert "over 2 episodes" in capsys.readouterr().out
    for more, why in (
        (["--policy", "somebodys:nonesuch"], "cannot be imported"),
        (["--policy", "somebodys:damp", "out"], "one of the two"),
        ([], "one of the two"),
    ):
        assert main(["play", *more, "--env", "gymnasium:Pendulum-v1"]) == 2
        err = capsys.readouterr().err
        assert why in err
        assert len(err.splitlines()) == 1
    Path("worse.py").write_text("import numpy as np\ndef f(obs):\n    return np.asarray(obs)[:, 2:] * 9 + 3\n")
    assert main(["play", "--policy", "worse:f", "--env", "gymnasium:Pendulum-v1", "--episodes", "2"]) == 2
    err = capsys.readouterr().err
    assert "offing: worse:f: gave [" in err
    assert len(err.splitlines()) == 1
