"""The policy of a finished run, written for where it will act: numpy, ONNX, StableHLO or C, checked beforehand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import __version__
from ..data.columns import Columns, plain_columns
from ..report.reports import Predicted, SorelReport
from ..report.results import load_with_columns, read_result
from ..report.store import pack, write
from ..types import Array, BadInput, Box, Discrete, Policy
from .c import c_files, identifier
from .onnx import onnx_model
from .program import FORMAT, VERSION, Program
from .trace import stepper, trace

FORMATS = ("onnx", "numpy", "stablehlo", "c")
Decision = tuple[np.ndarray, np.ndarray]  # what was done, and the state after it
STEPS = 64  # of random inputs that an export is checked at before it is written
NEAR = 1e-5  # of the actions' range: how far an amount may be from the policy's


class Shipment(NamedTuple):
    """All that goes with a policy: what it computes, what its numbers are called, and what was predicted of it."""

    policy: Policy
    actions: Box | Discrete
    program: Program
    columns: Columns
    about: dict[str, object]

    @property
    def described(self) -> dict[str, object]:
        """As JSON, all but the constants."""
        return {**self._about, "program": self.program.to_json()}

    @property
    def beside(self) -> dict[str, object]:
        """As JSON, what goes with a program that is written in another way."""
        return {**self._about, "initial": self.program.initial.tolist(), "refusals": self.refusals}

    @property
    def _about(self) -> dict[str, object]:
        return {"format": FORMAT, "version": VERSION, "about": self.about, "columns": self.columns.to_json()}

    @property
    def refusals(self) -> list[str]:
        """What is answered to a number that is not finite, by its place."""
        return self.program.refusals(self.columns.names)


def shipment(folder: Path) -> Shipment:
    """The policy that `offing sorel` or `torel` left in a folder, ready to be written."""
    policy, task, width, columns = load_with_columns(folder)
    columns = columns if columns.obs else plain_columns(width, task.actions)
    report = read_result(folder)
    if report is None:
        raise BadInput(f"{folder}: holds no finished result")
    return shipped(policy, width, task.actions, columns, about(report), str(folder))


def shipped(
    policy: Policy, width: int, actions: Box | Discrete, columns: Columns, about: dict[str, object], name: str
) -> Shipment:
    """A policy with all that goes with it."""
    return Shipment(policy, actions, trace(policy, width, actions, name), columns, about)


def about(report: Predicted) -> dict[str, object]:
    """What a run says of its policy, in a few words and numbers."""
    return {
        "offing": __version__,
        "system": report.system,
        "planner": report.planned.planner,
        "data": report.data,
        "fingerprint": report.fingerprint,
        "run": report.run,
        "verdict": report.ruling.word if isinstance(report, SorelReport) else None,
        "predicted return": report.returns.median,
        "interval": list(report.returns.interval),
        "level": report.returns.level,
    }


def export(folder: Path, to: str, out: Path | None = None) -> list[Path]:
    """Writes the policy of a finished run in one of `FORMATS`; gives the files."""
    if to not in FORMATS:
        raise BadInput(f"--to {to}: one of {', '.join(FORMATS)}")
    return write_shipment(shipment(folder), to, folder / "export" if out is None else out)


def write_shipment(sent: Shipment, to: str, out: Path) -> list[Path]:
    """Writes files into the folder `out` once all their contents are made and checked."""
    writers: dict[str, Callable[[Shipment], dict[str, bytes]]] = {
        "numpy": _numpy,
        "onnx": _onnx,
        "stablehlo": _stablehlo,
        "c": _c,
    }
    contents = writers[to](sent)
    for name, content in contents.items():
        write(out / name, content)
    return [out / name for name in contents]


def _numpy(sent: Shipment) -> dict[str, bytes]:
    text = np.frombuffer(json.dumps(sent.described).encode(), np.uint8)
    return {"policy.npz": pack({"policy.json": text, **sent.program.constants})}


def _onnx(sent: Shipment) -> dict[str, bytes]:
    try:
        import onnxruntime  # pyright: ignore[reportMissingImports]

        content = onnx_model(sent.program, {"offing": json.dumps(sent.beside)})
    except ImportError as error:
        raise BadInput(f"--to onnx: {error.name} is not installed: pip install 'offing[onnx]'") from None
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    remembers = sent.program.remembers

    def ask(obs: np.ndarray, reward: np.ndarray, state: np.ndarray) -> Decision:
        given = {"obs": obs[None], "reward": reward[None], "state": state[None]}
        made = [np.asarray(out)[0] for out in session.run(None, given if remembers else {"obs": obs[None]})]
        return made[0], made[1] if remembers else state

    check(sent, ask, "the ONNX file")
    return {"policy.onnx": content}


def _stablehlo(sent: Shipment) -> dict[str, bytes]:
    from jax import export as exporter

    step, initial = stepper(sent.policy, sent.program.width, sent.actions)
    remembers = sent.program.remembers

    def refused(obs: Array, reward: Array, state: Array) -> Array:
        bad = ~jnp.isfinite(obs)
        if remembers:
            bad = jnp.append(bad, ~jnp.isfinite(reward) & (state[-1] != 0))
        return jnp.where(bad.any(), jnp.argmax(bad), -1)

    def whole(obs: Array, reward: Array, state: Array) -> tuple[Array, Array, Array]:
        return *step(obs, reward, state), refused(obs, reward, state)

    def alone(obs: Array) -> tuple[Array, Array]:
        action, _, why = whole(obs, jnp.zeros(()), jnp.asarray(initial))
        return action, why

    pieces = ((sent.program.width,), (), initial.shape) if remembers else ((sent.program.width,),)
    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in pieces]
    run = jax.jit(whole) if remembers else jax.jit(alone)
    made = exporter.export(run, platforms=("cpu", "cuda", "tpu"))(*shapes)
    return {
        "policy.stablehlo": bytes(made.serialize()),
        "policy.mlir": made.mlir_module().encode(),
        "policy.json": json.dumps(sent.beside, indent=1).encode(),
    }


def _c(sent: Shipment) -> dict[str, bytes]:
    names, acted = sent.columns.names, sent.columns.action_names
    facts = {**sent.about, "observation": list(names), "action": list(acted), "columns": sent.columns.to_json()}
    header, source = c_files(sent.program, identifier("policy"), facts, sent.refusals)
    return {"policy.h": header.encode(), "policy.c": source.encode()}


def check(sent: Shipment, ask: Callable[..., Decision], what: str) -> None:
    """BadInput unless what was made does as the policy does, at random inputs step after step."""
    step, initial = stepper(sent.policy, sent.program.width, sent.actions)
    step = jax.jit(step)
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(STEPS, sent.program.width)).astype(np.float32)
    reward = rng.normal(size=STEPS).astype(np.float32)
    wide = 1.0 if isinstance(sent.actions, Discrete) else np.subtract(sent.actions.high, sent.actions.low)
    state, held = initial, sent.program.initial
    for o, r in zip(obs, reward, strict=True):
        due, state = step(o, r, state)
        got, held = ask(o, r, held)
        off = np.abs(np.asarray(due, float) - np.asarray(got, float))
        if not (off <= NEAR * np.maximum(wide, 1.0)).all():
            raise BadInput(f"{what}: differs from the policy by {off.max():.2g}; nothing was written")
