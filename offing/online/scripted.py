"""A policy that somebody wrote: any Python function from a batch of observations to actions, and noise on it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, BadInput, Box, Discrete, Key
from .policies import Acted, around

EDGE = 1e-5  # of the box's width: an amount that is out by less is taken for the edge
Script = Callable[[np.ndarray], Any]  # obs [N, S] -> actions [N] or [N, A]


def imported(text: str) -> Script:
    """The function that MODULE:FUNCTION names; modules in the folder that the command runs in are found too."""
    module, _, name = text.partition(":")
    if not (module and name):
        raise BadInput(f"{text}: no such policy; give random, trained, or a function as MODULE:FUNCTION")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # a module's own code may fail in any way
        raise BadInput(f"{text}: cannot be imported: {_said(error)}") from error
    finally:
        sys.path.remove(here)
    if not callable(found):
        raise BadInput(f"{text}: is a {type(found).__name__}, not a function")
    return found


def called(script: Script, name: str, obs: np.ndarray, actions: Box | Discrete) -> np.ndarray:
    """What the function does there, as action rows [N, A]; BadInput names the first observation it fails at."""
    try:
        said = script(obs.copy())
        given = np.asarray(said, dtype=float)
    except Exception as error:
        what = f"given {len(obs)} observations, the first {_row(obs[0])}"
        raise BadInput(f"{name}: failed, {what}: {_said(error)}") from error
    shape = (len(obs),) if isinstance(actions, Discrete) else (len(obs), actions.width)
    if given.shape != shape and (given.size != len(obs) or actions.width != 1 or given.shape[:1] != shape[:1]):
        raise BadInput(f"{name}: gave shape {given.shape} where {shape} was expected, first at {_row(obs[0])}")
    if isinstance(actions, Discrete):
        bad = ~((given == np.round(given)) & (given >= 0) & (given < actions.n))
        _refuse(name, obs, given, bad, f"is not one of the choices 0 to {actions.n - 1}")
        return np.eye(actions.n, dtype=np.float32)[given.astype(int)]
    given, (low, high) = given.reshape(shape), np.asarray(actions)
    slack = EDGE * (high - low)
    bad = ~((given >= low - slack) & (given <= high + slack))
    _refuse(name, obs, given, bad.any(1), f"is not within {_row(low)} and {_row(high)}")
    return np.clip(given, low, high).astype(np.float32)


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


def _refuse(name: str, obs: np.ndarray, given: np.ndarray, bad: np.ndarray, why: str) -> None:
    if bad.any():
        i = int(np.argmax(bad))
        raise BadInput(f"{name}: gave {_row(given[i])} for the observation {_row(obs[i])}, which {why}")


def _row(numbers: np.ndarray) -> str:
    """A few numbers on one line."""
    flat = np.ravel(numbers)
    shown = ", ".join(f"{number:.4g}" for number in flat[:8])
    return shown if np.ndim(numbers) == 0 else f"[{shown}{', ...' if len(flat) > 8 else ''}]"


def _said(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
