"""What a policy computes at one step, as a list of plain operations on arrays: what every export is written from.

    obs [S], reward [], state [N]  ->  action [A] or choice [], next_state [N]

The state is one vector: what the policy remembers, its last action, and whether an episode is on. It begins as
`Program.initial`. A policy that remembers nothing has neither reward nor state.

Operations are numpy's, with its rules of broadcasting. `KINDS` lists them all, and what each takes beside arrays:

    dot         a [..., k] @ b [k, n]                    where       condition, if so, if not
    sum max min any all argmax   over `axes`              reshape     to `shape`
    broadcast   axes go to `dims` of `shape`             transpose   `axes`
    concat      along `axis`                             slice       from `starts` to `limits` by `strides`
    cast        to `kind`: float32, int32 or bool
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

UNARY = ("neg", "exp", "log", "log1p", "expm1", "tanh", "logistic", "sqrt", "rsqrt", "abs", "sign", "floor")
UNARY = (*UNARY, "ceil", "round", "not", "sin", "cos")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "pow", "eq", "ne", "lt", "le", "gt", "ge", "and", "or")
REDUCE = ("sum", "max", "min", "any", "all", "argmax", "argmin")
SHAPE = ("reshape", "broadcast", "transpose", "concat", "slice", "cast")
KINDS = (*UNARY, *BINARY, *REDUCE, *SHAPE, "dot", "where")
FORMAT, VERSION = "offing-policy", 1
BAD_REWARD = "reward: not a finite number; give what the last action earned"
Attributes = dict[str, int | str | list[int]]


class Value(NamedTuple):
    """What is known of an array before it is computed."""

    shape: tuple[int, ...]
    kind: str  # float32, int32 or bool

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))


class Op(NamedTuple):
    """One operation: its kind, the names that it reads and the one that it makes, and what else it takes."""

    kind: str
    inputs: tuple[str, ...]
    output: str
    attributes: Attributes


@dataclass(frozen=True)
class Program:
    """Operations in the order that they run; inputs are called obs, reward and state."""

    inputs: tuple[str, ...]
    ops: tuple[Op, ...]
    action: str
    next_state: str | None
    values: dict[str, Value]  # of every name, constants and inputs included
    constants: dict[str, np.ndarray]
    initial: np.ndarray  # [N]  the state before the first step of an episode
    choices: int | None  # how many there are; None for amounts

    @property
    def remembers(self) -> bool:
        return self.next_state is not None

    @property
    def width(self) -> int:
        """Numbers of an observation."""
        return self.values["obs"].size

    def refusals(self, names: Sequence[str]) -> list[str]:
        """What is refused by its place in the observation, where a number is not finite; the reward comes last."""
        texts = [f"column {name!r}, row 0: not a finite number" for name in names]
        return [*texts, BAD_REWARD] if self.remembers else texts

    def to_json(self) -> dict[str, object]:
        """All but the constants, which are arrays."""
        return {
            "inputs": list(self.inputs),
            "ops": [[op.kind, list(op.inputs), op.output, op.attributes] for op in self.ops],
            "outputs": {"action": self.action, "next_state": self.next_state},
            "initial": self.initial.tolist(),
            "choices": self.choices,
            "width": self.width,
        }
