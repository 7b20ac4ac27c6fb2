"""Policies on disk, for other machines to judge and to play: settings as JSON, weights as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from offing import planner as planners
from offing.hypers import asdict
from offing.report.store import pack, unpack, write
from offing.types import Policy, Task


def described(planner: str, settings: Sequence[object]) -> list[dict[str, Any]]:
    """What a record says of policies, in their order, and `load` reads them by."""
    return [{"planner": planner, **asdict(setting)} for setting in settings]


def save(path: Path, policies: Sequence[Policy]) -> None:
    """The weights of all of them."""
    arrays = {
        f"{i}|{j}": np.asarray(leaf, np.float32)
        for i, policy in enumerate(policies)
        for j, leaf in enumerate(jax.tree.leaves(policy.params))
    }
    write(path, pack(arrays))


def load(path: Path, descriptions: Sequence[dict[str, Any]], width: int, task: Task) -> list[Policy]:
    """The policies that `save` left there, for observations of that many numbers."""
    arrays, policies = unpack(path), []
    for i, one in enumerate(descriptions):
        planner = planners.get(str(one["planner"]))
        setting = planner.Hypers(**{name: value for name, value in one.items() if name != "planner"})
        blank = planner.blank(setting, width, task)
        structure = jax.tree.structure(blank.params)
        leaves = [jnp.asarray(arrays[f"{i}|{j}"]) for j in range(structure.num_leaves)]
        policies.append(replace(blank, params=jax.tree.unflatten(structure, leaves)))
    return policies
