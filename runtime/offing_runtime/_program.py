"""The policy's program, as numpy runs it: one closure per operation, over a list of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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


def operation(kind: str, more: dict[str, Any]) -> Callable[..., Any]:
    """What an operation does, its attributes bound."""
    shape, axes = tuple(more.get("shape", ())), tuple(more.get("axes", ()))
    new = [i for i in range(len(shape)) if i not in more.get("dims", ())]
    where = tuple(map(slice, more.get("starts", ()), more.get("limits", ()), more.get("strides", ())))
    table = {
        **PLAIN,
        **{name: partial(getattr(np, name), axis=axes) for name in ("sum", "max", "min", "any", "all")},
        **{name: lambda x, name=name: getattr(np, name)(x, axes[0]) for name in ("argmax", "argmin")},
        "reshape": lambda x: np.reshape(x, shape),
        "broadcast": lambda x: np.broadcast_to(np.expand_dims(x, new), shape),
        "transpose": lambda x: np.transpose(x, axes),
        "concat": lambda *parts: np.concatenate(parts, more["axis"]),
        "slice": lambda x: x[where],
        "cast": lambda x: np.asarray(x).astype(more["kind"]),
    }
    if kind not in table:
        raise ValueError(f"operation {kind} is unknown; the policy is of a later version")
    return table[kind]


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
