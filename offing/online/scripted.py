"""A policy that somebody wrote: any Python function from a batch of observations to actions, and noise on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, BadInput, Box, Discrete, Key
from ..value.foreign import call_policy, read
from ..value.policies import named
from .policies import Acted, around

Script = Callable[[np.ndarray], Any]  # obs [N, S] -> actions [N] or [N, A]


def imported(text: str) -> Script:
    """The function that MODULE:FUNCTION names."""
    if not all(text.partition(":")):
        raise BadInput(f"{text}: no such policy; give random, trained, or a function as MODULE:FUNCTION")
    function = named(text)
    if not callable(function):
        raise BadInput(f"{text}: is a {type(function).__name__}, not a function")
    return function


def called(script: Script, name: str, obs: np.ndarray, actions: Box | Discrete) -> np.ndarray:
    """What the function does there, as action rows [N, A]; BadInput names the first observation it fails at."""
    return read(call_policy(lambda: script(obs.copy()), name, obs), name, obs, actions)


def noisy(keys: Key, rows: Array, noise: float, actions: Box | Discrete) -> Acted:
    """The scripted action rows [N, A] with noise on them, and the exact log-probability of what comes out.

    Choices: a share `noise` is drawn evenly. Amounts: a Gaussian of `noise` half-widths of the box about them, cut
    to the box; without noise an amount has no density, and `logp` is left out.
    """
    if isinstance(actions, Box):
        return {"action": rows} if noise == 0 else _amounts(keys, rows, noise, actions)
    return _choices(keys, rows, noise)


@partial(jax.jit, static_argnames="actions")
def _amounts(keys: Key, rows: Array, noise: float, actions: Box) -> Acted:
    low, high = (jnp.array(edge) for edge in actions)
    mean = jnp.clip((2 * rows - low - high) / jnp.maximum(high - low, 1e-6), -1, 1)
    return jax.vmap(lambda key, row: around(key, row, noise, actions))(keys, mean)


@jax.jit
def _choices(keys: Key, rows: Array, noise: float) -> Acted:
    def one(key: Key, row: Array) -> Acted:
        k1, k2 = jax.random.split(key)
        n = row.shape[0]
        other = jax.nn.one_hot(jax.random.randint(k1, (), 0, n), n)
        action = jnp.where(jax.random.bernoulli(k2, noise), other, row)
        return {"action": action, "logp": jnp.log(jnp.sum(action * ((1 - noise) * row + noise / n)))}

    return jax.vmap(one)(keys, rows)
