"""Every export of a policy, beside the policy: random inputs step after step, and inputs that must be refused.

    python -m benchmarks.exports [--scale smoke] [--steps 1000]

trains a policy with memory and one without by `offing sorel --paper` on three embedded logs, writes each in every
format, and prints a table and one line of JSON. Amounts must agree to 1e-5 of their range, choices exactly, and
what one refuses the other must refuse in the same words.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import jax
import jax.export
import numpy as np

import offing
from offing.data import Log
from offing.report.actor import Actor
from offing.ship.export import FORMATS, Shipment, shipped, write_shipment
from offing.ship.trace import stepper
from offing.types import BadInput, Discrete

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

import offing_runtime  # pyright: ignore[reportMissingImports]

LOGS = ("offing:pendulum", "offing:cartpole", "offing:coldstore")
NEAR = 1e-5
State = np.ndarray | None
Decide = Callable[[np.ndarray, float, State], tuple[np.ndarray, State]]  # obs, reward, state -> action, state


class Inputs(NamedTuple):
    """Random inputs, step after step."""

    obs: np.ndarray  # [T, S]
    reward: np.ndarray  # [T]
    start: np.ndarray  # [T]


@dataclass(frozen=True)
class Line:
    """One export of one policy, beside the policy."""

    log: str
    memory: bool
    format: str
    steps: int
    apart: float  # largest difference of an amount, of its range; of choices, the share that differs
    refused: int  # bad inputs that were refused in the policy's own words
    bad: int  # bad inputs

    @property
    def agrees(self) -> bool:
        return self.apart <= NEAR and self.refused == self.bad


def inputs(log: Log, steps: int, seed: int = 0) -> Inputs:
    """Inputs about the log's own: twice as wide, with an episode's start in one of twenty."""
    rng, rows = np.random.default_rng(seed), log.data.rows
    obs, reward = np.asarray(log.data.steps.obs)[:rows], np.asarray(log.data.steps.reward)[:rows]
    wide = lambda x, shape: (x.mean(0) + 2 * x.std(0) * rng.normal(size=shape)).astype(np.float32)
    start = (rng.random(steps) < 0.05) | (np.arange(steps) == 0)
    return Inputs(wide(obs, (steps, obs.shape[1])), wide(reward, steps), start)


def played(decide: Decide, given: Inputs) -> np.ndarray:
    """What is decided, step after step; at a start the state is forgotten."""
    state, actions = None, []
    for obs, reward, start in zip(*given, strict=True):
        action, state = decide(obs, 0.0 if start else float(reward), None if start else state)
        actions.append(np.asarray(action, float))
    return np.stack(actions)


def by_policy(sent: Shipment) -> Decide:
    """The policy itself."""
    step, initial = stepper(sent.policy, sent.program.width, sent.actions)
    run = jax.jit(step)

    def decide(obs: np.ndarray, reward: float, state: State) -> tuple[np.ndarray, State]:
        action, after = run(obs, np.float32(reward), initial if state is None else state)
        return np.asarray(action), np.asarray(after)

    return decide


def by_numpy(sent: Shipment, folder: Path) -> Decide:
    """`offing-runtime`, given plain numbers."""
    write_shipment(sent, "numpy", folder)
    policy = offing_runtime.load(folder)
    return lambda obs, reward, state: policy.predict(obs, state, reward)


def by_onnx(sent: Shipment, folder: Path) -> Decide:
    """onnxruntime."""
    import onnxruntime

    (file,) = write_shipment(sent, "onnx", folder)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    described = json.loads(session.get_modelmeta().custom_metadata_map["offing"])
    initial = np.array(described["initial"], np.float32)

    def decide(obs: np.ndarray, reward: float, state: State) -> tuple[np.ndarray, State]:
        given = {"obs": obs[None]}
        if sent.program.remembers:
            held = initial if state is None else state
            given |= {"reward": np.array([reward], np.float32), "state": held[None]}
        action, *after, refused = (np.asarray(out)[0] for out in session.run(None, given))
        if refused >= 0:
            raise BadInput(described["refusals"][int(refused)])
        return action, after[0] if after else None

    return decide


def by_stablehlo(sent: Shipment, folder: Path) -> Decide:
    """JAX, from the serialised program alone."""
    files = write_shipment(sent, "stablehlo", folder)
    call = jax.jit(jax.export.deserialize(bytearray(files[0].read_bytes())).call)
    described = json.loads(files[2].read_text())
    initial = np.array(described["initial"], np.float32)

    def decide(obs: np.ndarray, reward: float, state: State) -> tuple[np.ndarray, State]:
        held = initial if state is None else state
        action, *after, refused = call(obs, np.float32(reward), held) if sent.program.remembers else call(obs)
        if int(refused) >= 0:
            raise BadInput(described["refusals"][int(refused)])
        return np.asarray(action), np.asarray(after[0]) if after else None

    return decide


def by_c(sent: Shipment, folder: Path) -> Decide:
    """The source file, compiled as strictly as C99 allows."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise BadInput("no C compiler is here")
    write_shipment(sent, "c", folder)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-shared", "-fPIC"]
    subprocess.run([compiler, *strict, "policy.c", "-o", "policy.so", "-lm"], cwd=folder, check=True)
    step = ctypes.CDLL(str(folder / "policy.so")).policy_step
    step.restype = ctypes.c_char_p
    pointer, program = ctypes.POINTER(ctypes.c_float), sent.program
    size = program.values[program.action].size

    def decide(obs: np.ndarray, reward: float, state: State) -> tuple[np.ndarray, State]:
        held = np.ascontiguousarray(program.initial if state is None else state, np.float32).copy()
        action = np.zeros(1, np.int32) if program.choices else np.zeros(size, np.float32)
        memory = (ctypes.c_float(reward), held.ctypes.data_as(pointer)) if program.remembers else ()
        out = action.ctypes.data_as(ctypes.POINTER(ctypes.c_int) if program.choices else pointer)
        why = step(np.ascontiguousarray(obs, np.float32).ctypes.data_as(pointer), *memory, out)
        if why is not None:
            raise BadInput(why.decode())
        return action[0] if program.choices else action, held

    return decide


BY = {"numpy": by_numpy, "onnx": by_onnx, "stablehlo": by_stablehlo, "c": by_c}
assert set(BY) == set(FORMATS)


def refusal(decide: Decide, obs: np.ndarray, reward: float, state: State) -> str | None:
    """Why nothing is decided; None if something is."""
    try:
        decide(obs, reward, state)
    except (BadInput, offing_runtime.BadInput) as error:
        return str(error)
    return None


def refusals(decide: Decide, actor: Actor, given: Inputs) -> tuple[int, int]:
    """How many bad inputs are refused in the words of `Actor.predict`, and of how many."""
    good = given.obs[0]
    _, state = decide(good, 0.0, None)
    _, kept = actor.predict(good)
    cases: list[tuple[np.ndarray, float]] = []
    for place in range(len(good)):
        for wrong in (np.nan, np.inf, -np.inf):
            bad = good.copy()
            bad[place] = wrong
            cases.append((bad, 0.5))
    cases += [(good, np.nan), (good, np.inf)] * actor.remembers
    alike = 0
    for obs, reward in cases:
        due = refusal(lambda o, r, _: actor.predict(o, kept, reward=r), obs, reward, None)  # type: ignore[arg-type]
        alike += due is not None and refusal(decide, obs, reward, state) == due
    return alike, len(cases)


def compared(sent: Shipment, log: Log, steps: int, folder: Path) -> list[Line]:
    """Every format of one policy, beside it."""
    given = inputs(log, steps)
    due = played(by_policy(sent), given)
    actor = Actor(sent.policy, log.task, sent.program.width, sent.columns)
    lines = []
    for name, make in BY.items():
        decide = make(sent, folder)
        got = played(decide, given)
        if isinstance(sent.actions, Discrete):
            apart = float(np.mean(got != due))
        else:
            wide = np.maximum(np.subtract(sent.actions.high, sent.actions.low), 1.0)
            apart = float(np.max(np.abs(got - due) / wide))
        alike, bad = refusals(decide, actor, given)
        lines.append(Line(log.name, sent.program.remembers, name, steps, apart, alike, bad))
    return lines


def sent_by(actor: Actor, log: Log) -> Shipment:
    """A policy of a run, ready to be written."""
    return shipped(actor.policy, actor.width, log.task.actions, actor.names, {}, log.name)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="smoke")
    parser.add_argument("--steps", type=int, default=1_000)
    given = parser.parse_args()
    lines: list[Line] = []
    print(f"{'log':18} {'memory':7} {'format':10} {'steps':>6} {'apart':>9}  refused alike")
    for name in LOGS:
        log = offing.load(name)
        for core in ("linear", "none"):
            result = offing.sorel(log, given.scale, core=core, paper=True, progress=False)
            with tempfile.TemporaryDirectory() as folder:
                some = compared(sent_by(result.policy, log), log, given.steps, Path(folder))
            for line in some:
                share = f"{line.refused} of {line.bad}"
                print(
                    f"{line.log:18} {'yes' if line.memory else 'no':7} {line.format:10} {line.steps:6,} "
                    f"{line.apart:9.2g}  {share}",
                    flush=True,
                )
            lines += some
    print(json.dumps({"agree": all(line.agrees for line in lines), "lines": [asdict(line) for line in lines]}))
    return 0 if all(line.agrees for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
