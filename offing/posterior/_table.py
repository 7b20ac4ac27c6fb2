"""Worlds that are one NamedTuple of arrays, as they are kept: for models as simple as that."""

from __future__ import annotations

from typing import TypeVar

import jax.numpy as jnp
import numpy as np

from ..types import BadInput, Posterior, Saved

T = TypeVar("T", bound=tuple)  # a NamedTuple class


def save(posterior: Posterior) -> Saved:
    """The worlds' fields, and the posterior's own arrays."""
    arrays = {f"theta.{name}": np.asarray(leaf) for name, leaf in posterior.theta._asdict().items()}
    arrays |= {name: np.asarray(getattr(posterior, name)) for name in ("starts", "low", "high")}
    return Saved(arrays, {"folds": posterior.folds, "terminates": posterior.terminates})


def load(saved: Saved, kind: type[T]) -> T:
    """The worlds that `save` kept, as values of that NamedTuple."""
    try:
        return kind(*(jnp.asarray(saved.arrays[f"theta.{name}"]) for name in kind._fields))  # type: ignore[attr-defined]
    except KeyError:
        raise BadInput("the worlds' arrays are damaged or of another version") from None
