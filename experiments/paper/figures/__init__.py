"""What is drawn, from records alone: a module per figure or table, named as its page is. Each has `figure`."""

from __future__ import annotations

from importlib import import_module

from ..contents import ours
from .figure import Figure


def get(name: str) -> Figure:
    """The figure of that name."""
    return import_module(f".{name}", __package__).figure


def every() -> list[Figure]:
    """All figures, in the order of the paper."""
    return [get(name) for name in ours()]
