"""A policy by what a user calls it: a finished run, a function, a file of another library.

    DIR                   what `offing sorel` or `offing torel` left there; or result.json or the policy file in it
    MODULE:FUNCTION       a Python function, or an object with `predict`; modules in the current folder are found
    FILE.onnx             one float input [B, S]; of its first output, amounts or choices (`onnx_function`)
    sb3:ALGORITHM:FILE    a model of Stable-Baselines3 or sb3-contrib (sb3:ppo:model.zip)
    d3rlpy:FILE           a model of d3rlpy (d3rlpy:model.d3)

A function, and a file of the last two libraries, which pickle, is code that runs: only name what you trust.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Protocol, TypeVar

import numpy as np

from ..types import BadInput, Box, Discrete, Policy, Task
from ._given import sentence
from .foreign import foreign

T = TypeVar("T")
FORMS = "the folder of a finished run, MODULE:FUNCTION, FILE.onnx, sb3:ALGORITHM:FILE or d3rlpy:FILE"
NUMBERS = {"tensor(float)": np.float32, "tensor(double)": np.float64}  # that an ONNX file may take
SB3, CONTRIB = "stable_baselines3", "sb3_contrib"
NAMES = ("A2C", "DDPG", "DQN", "PPO", "SAC", "TD3")  # of Stable-Baselines3; what else there is, is sb3-contrib's
EXTRAS = {"ARS", "CROSSQ", "MASKABLEPPO", "QRDQN", "RECURRENTPPO", "TQC", "TRPO"}


class Saved(Protocol):
    """Reads the policy of a finished run, by its folder or a file in it (`report.results.finished_policy`)."""

    def __call__(self, path: str, task: Task, width: int) -> Policy: ...


def resolve(spec: str, task: Task, width: int, saved: Saved) -> Policy:
    """The policy that `spec` names, for the task's actions and observations of `width` numbers."""
    kind, _, rest = spec.partition(":")
    if kind == "sb3":
        return foreign(sb3_model(rest, spec), task, width, spec, trace=False)
    if kind == "d3rlpy":
        return foreign(d3rlpy_model(rest, spec), task, width, spec, trace=False)
    if spec.endswith(".onnx"):
        return foreign(onnx_function(spec, task, width), task, width, spec, trace=False)
    if spec and Path(spec).exists():
        return saved(spec, task, width)
    if not (kind and rest):
        raise BadInput(f"{spec}: no such policy; give {FORMS}")
    return foreign(named(spec), task, width, spec)


# ---- for which actions


def same_actions(one: Box | Discrete, other: Box | Discrete) -> bool:
    """Whether both are the same choices, or the same amounts up to rounding."""
    if type(one) is not type(other) or one.width != other.width:
        return False
    return isinstance(one, Discrete) or bool(np.allclose(one, other, rtol=1e-4, atol=1e-6))


def described(actions: Box | Discrete) -> str:
    """Actions in words: `2 choices`, `1 amounts in [-2, 2]`."""
    if isinstance(actions, Discrete):
        return f"{actions.n} choices"
    edges = [f"[{low:g}, {high:g}]" for low, high in zip(actions.low, actions.high, strict=True)]
    same = len(set(edges)) == 1
    return f"{actions.width} amounts in {edges[0] if same else ' x '.join(edges)}"


# ---- somebody else's


def named(text: str) -> object:
    """What MODULE:NAME names; modules in the folder that the command runs in are found too."""
    module, _, name = text.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        thing: object = importlib.import_module(module)
        for part in name.split("."):
            thing = getattr(thing, part)
    except Exception as error:  # a module's own code may fail in any way
        raise BadInput(f"{text}: cannot be imported: {sentence(error)}") from error
    finally:
        sys.path.remove(here)
    return thing


def onnx_function(path: str, task: Task, width: int) -> Callable[[np.ndarray], np.ndarray]:
    """A function of observations from an ONNX file.

    It has one float input [B, S], B left open. Of its outputs the first counts: amounts [B, A]; or for choices,
    whole numbers [B] that are the choices, or floats [B, n] of which the largest is taken (logits, say).
    """
    _there(path, path)
    runtime = needed("onnxruntime", path, "pip install 'offing[onnx]'")
    session = _loaded(path, lambda: runtime.InferenceSession(path, providers=["CPUExecutionProvider"]))
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type not in NUMBERS or len(inputs[0].shape) != 2:
        has = ", ".join(f"{each.name} {each.type} {each.shape}" for each in inputs)
        raise BadInput(f"{path}: one float input [B, {width}] was expected; it has {has}")
    rows, numbers = inputs[0].shape
    if isinstance(rows, int):
        raise BadInput(
            f"{path}: takes {rows} observations at a time; export it with a batch axis that is left open"
        )
    if isinstance(numbers, int) and numbers != width:
        raise BadInput(f"{path}: takes observations of {numbers} numbers, the log's have {width}")
    kind = NUMBERS[inputs[0].type]

    def act(obs: np.ndarray) -> np.ndarray:
        given = np.asarray(session.run(None, {inputs[0].name: obs.astype(kind)})[0])
        scores = (
            isinstance(task.actions, Discrete) and given.dtype.kind == "f" and given.shape[1:] == (task.actions.n,)
        )
        return np.where(np.isnan(given).any(1), np.nan, given.argmax(1)) if scores else given

    return act


def sb3_model(rest: str, spec: str) -> Predicts:
    """A model of Stable-Baselines3 or sb3-contrib, by ALGORITHM:FILE."""
    algorithm, _, file = rest.partition(":")
    known = {name.upper(): SB3 for name in NAMES} | dict.fromkeys(EXTRAS, CONTRIB)
    if algorithm.upper() not in known or not file:
        every = ", ".join(sorted(name.lower() for name in known))
        raise BadInput(f"{spec}: give sb3:ALGORITHM:FILE, the algorithm one of {every}")
    _there(file, spec)
    package = known[algorithm.upper()]
    library = needed(package, spec, f"pip install {package.replace('_', '-')}")
    kind = next(getattr(library, name) for name in dir(library) if name.upper() == algorithm.upper())
    model = _loaded(spec, lambda: kind.load(file, device="cpu"))
    return Layered(model) if algorithm.upper() == "RECURRENTPPO" else model


State = tuple[np.ndarray, ...] | None  # of a recurrent model


class Predicts(Protocol):
    """A model of Stable-Baselines3, or one that is called alike."""

    def predict(
        self, obs: np.ndarray, state: State, episode_start: np.ndarray, deterministic: bool = True
    ) -> tuple[np.ndarray, State]: ...


class Layered:
    """A recurrent model whose state has its layers before its batch [L, B, H]: ours has the batch first."""

    def __init__(self, model: Predicts):
        self.model = model

    def predict(
        self, obs: np.ndarray, state: State, episode_start: np.ndarray, deterministic: bool = True
    ) -> tuple[np.ndarray, State]:
        turned = lambda each: None if each is None else tuple(np.swapaxes(leaf, 0, 1) for leaf in each)
        action, after = self.model.predict(obs, turned(state), episode_start, deterministic)
        return action, turned(after)


def d3rlpy_model(file: str, spec: str) -> object:
    """A model of d3rlpy, as its `save` wrote it."""
    if not file:
        raise BadInput(f"{spec}: give d3rlpy:FILE")
    _there(file, spec)
    library = needed("d3rlpy", spec, "pip install d3rlpy")
    return _loaded(spec, lambda: library.load_learnable(file, device="cpu:0"))


def needed(package: str, spec: str, how: str) -> ModuleType:
    """The package, or BadInput that says what to install."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise BadInput(f"{spec}: needs {package}, which cannot be imported ({error}): {how}") from error


def _there(path: str, spec: str) -> None:
    if not Path(path).is_file():
        raise BadInput(f"{spec}: no such file")


def _loaded(spec: str, load: Callable[[], T]) -> T:
    try:
        return load()
    except Exception as error:  # another library's file may be wrong in any way
        raise BadInput(f"{spec}: cannot be read: {sentence(error)}") from error
