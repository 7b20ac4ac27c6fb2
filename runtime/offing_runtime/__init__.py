"""Runs a policy that `offing export --to numpy` wrote; needs numpy and nothing else.

policy = offing_runtime.load("policy.npz")
action, state = policy.predict(row)                     # the first step of an episode
action, state = policy.predict(row, state, reward)      # every other; reward: what the last action earned
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._columns import BadInput, Columns
from ._program import Program

__all__ = ["BadInput", "Policy", "load"]
__version__ = "0.1.0"
FORMAT, VERSION = "offing-policy", 1


class Policy:
    """`predict` decides; `about` is what the run said of the policy: verdict, interval, fingerprint and more."""

    def __init__(self, described: dict[str, Any], constants: dict[str, np.ndarray]):
        self.about: dict[str, Any] = described["about"]
        self.columns = Columns(described["columns"])
        self.remembers: bool = described["program"]["outputs"]["next_state"] is not None
        self._program = Program(described["program"], constants)

    def predict(self, row: Any, state: Any = None, reward: float = 0.0) -> tuple[Any, Any]:
        """An action for a row of the table (or its numbers, in order), and the state to come back with."""
        obs, named = self.columns.encode(row), isinstance(row, Mapping)
        if not self.remembers:
            return self.columns.decode(self._program(obs, 0.0, self._program.initial)[0], named), None
        held = self._program.initial if state is None else np.asarray(state, np.float32)
        if held.shape != self._program.initial.shape:
            raise BadInput(f"state of shape {held.shape}: give what `predict` gave back, or None in a first step")
        if state is not None and not np.isfinite(reward):
            raise BadInput("reward: not a finite number; give what the last action earned")
        action, after = self._program(obs, reward, held)
        return self.columns.decode(action, named), after


def load(path: str | os.PathLike[str]) -> Policy:
    """The policy in a file, or in a folder that holds `policy.npz`."""
    file = os.path.join(path, "policy.npz") if os.path.isdir(path) else path
    try:
        with np.load(file, allow_pickle=False) as arrays:
            described = json.loads(arrays["policy.json"].tobytes())
            constants = {name: arrays[name] for name in arrays.files if name != "policy.json"}
        if described["format"] != FORMAT or described["version"] > VERSION:
            raise ValueError("another version")
        return Policy(described, constants)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{file}: no policy that this version can run ({error})") from None
