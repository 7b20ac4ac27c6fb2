"""A policy by what a user calls it: a folder, a function, a file of another library."""

from __future__ import annotations

from ..types import BadInput, Policy, Task


def resolve(spec: str, task: Task, width: int) -> Policy:
    """The policy that `spec` names, for the task's actions and observations of `width` numbers."""
    del task, width
    raise BadInput(f"{spec}: no such policy")
