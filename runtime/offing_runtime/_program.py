"""The policy's program, as numpy runs it: one closure per operation, over a list of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ONE = np.float32(1)
NAMES = (
    "exp log log1p expm1 tanh sqrt abs sign floor ceil sin cos maximum minimum where add neg=negative round=rint"
)
NAMES += (
    " not=logical_not sub=subtract mul=multiply div=divide pow=power eq=equal ne=not_equal lt=less le=less_equal"
)
NAMES += " gt=greater ge=greater_equal and=logical_and or=logical_or dot=matmul"
PLAIN = {name.split("=")[0]: getattr(np, name.split("=")[-1]) for name in NAMES.split()}
PLAIN |= {"logistic": lambda x: ONE / (ONE + np.exp(-x)), "rsqrt": lambda x: ONE / np.sqrt(x)}
REDUCE = {name: getattr(np, name) for name in ("sum", "max", "min", "any", "all")}


def operation(kind: str, more: dict[str, Any]) -> Callable[..., Any]:
    """What an operation does, its attributes bound."""
    if kind in PLAIN:
        return PLAIN[kind]
    if kind in REDUCE:
        reduce, axes = REDUCE[kind], tuple(more["axes"])
        return lambda x: reduce(x, axis=axes)
    if kind in ("argmax", "argmin"):
        find, axis = getattr(np, kind), more["axes"][0]
        return lambda x: find(x, axis=axis)
    if kind == "reshape":
        shape = tuple(more["shape"])
        return lambda x: np.reshape(x, shape)
    if kind == "broadcast":
        shape, dims = tuple(more["shape"]), more["dims"]
        return lambda x: np.broadcast_to(np.expand_dims(x, [i for i in range(len(shape)) if i not in dims]), shape)
    if kind == "transpose":
        return lambda x: np.transpose(x, more["axes"])
    if kind == "concat":
        return lambda *parts: np.concatenate(parts, more["axis"])
    if kind == "slice":
        where = tuple(map(slice, more["starts"], more["limits"], more["strides"]))
        return lambda x: x[where]
    if kind == "cast":
        dtype = np.dtype(more["kind"])
        return lambda x: np.asarray(x).astype(dtype)
    raise ValueError(f"operation {kind} is unknown; the policy is of a later version")


class Program:
    """Runs a program: (obs, reward, state) -> action, next state; arrays of 32 bits throughout."""

    def __init__(self, described: dict[str, Any], constants: dict[str, np.ndarray]):
        ops, outputs = described["ops"], described["outputs"]
        names = [*described["inputs"], *constants, *(op[2] for op in ops)]
        place = {name: i for i, name in enumerate(names)}
        self.inputs = len(described["inputs"])
        self.blank = [*([None] * self.inputs), *constants.values(), *([None] * len(ops))]
        self.steps = [
            (operation(kind, more), [place[name] for name in read], place[made]) for kind, read, made, more in ops
        ]
        self.action = place[outputs["action"]]
        self.next_state = None if outputs["next_state"] is None else place[outputs["next_state"]]
        self.initial = np.array(described["initial"], np.float32)

    def __call__(self, obs: np.ndarray, reward: float, state: np.ndarray) -> tuple[Any, np.ndarray]:
        slots = self.blank.copy()
        slots[: self.inputs] = (obs, np.float32(reward), state)[: self.inputs]
        with np.errstate(over="ignore"):
            for run, read, made in self.steps:
                slots[made] = run(*[slots[i] for i in read])
        return slots[self.action], state if self.next_state is None else slots[self.next_state]
