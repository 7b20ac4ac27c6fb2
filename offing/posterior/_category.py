"""Categories in worlds: columns of which exactly one is 1 (`data.categories`) are one choice.

Drawn each by itself, none of them or two would be 1, which no row of the log ever was. The choice is written down
with the first column, among as many values as there are columns, and its values are their places.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array


def places(group: tuple[int, ...], after: np.ndarray) -> np.ndarray:
    """Which column of the category is 1 [N]."""
    return after[:, list(group)].argmax(1)


def written(outputs: Array, group: tuple[int, ...], place: Array) -> Array:
    """The outputs [..., D] with the category at the column of that place."""
    return jnp.asarray(outputs).at[..., np.array(group)].set(jax.nn.one_hot(place, len(group)))
