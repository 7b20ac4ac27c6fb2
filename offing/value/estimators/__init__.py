"""Ways to value a policy from the log alone. The folder is the registry: x.py holds the estimator named x.

The posterior predictive (`PREDICTIVE`) is the other way, which asks learned worlds.
"""

from __future__ import annotations

from ...registry import Registry
from ..estimator import Estimator

PREDICTIVE = "predictive"  # the posterior's own name among methods
_parts = Registry(__name__, Estimator, "estimator")


def names() -> list[str]:
    """Every estimator there is, those of other packages included; nothing is imported for it."""
    return _parts.names()


def get(name: str) -> Estimator:
    """The estimator of that name; BadInput if there is none."""
    return _parts.get(name)


def methods() -> tuple[str, ...]:
    """Every way to judge a policy: the posterior predictive first, then the estimators."""
    return (PREDICTIVE, *names())


def words(method: str) -> str:
    """What a method is called inside a sentence."""
    if method == PREDICTIVE:
        return "the posterior"
    return get(method).words if method in names() else f"the worlds of {method}"
