"""What somebody's function gives for observations: action rows, or the line that says what is wrong with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ..types import BadInput, BadPolicy, Box, Discrete

T = TypeVar("T")
EDGE = 1e-5  # of the box's width: an amount that is out by less is taken for the edge
Label = Callable[[int], str]  # what the i-th observation is called


def plain(i: int) -> str:
    return "the observation"


def call_policy(call: Callable[[], T], name: str, obs: np.ndarray, quiet: bool = True) -> T:
    """What the call comes back with; BadPolicy with its first observation if it fails. `quiet`: no warnings."""
    try:
        with warnings.catch_warnings():
            # A function is called thousands of times: what it warns of, it warned of when it was tried.
            warnings.simplefilter("ignore" if quiet else "default")
            return call()
    except BadInput:
        raise
    except Exception as error:  # somebody's code may fail in any way
        what = f"given {len(obs)} observations, the first {shown(obs[0])}"
        raise BadPolicy(f"{name}: failed, {what}: {sentence(error)}") from error


def read(output: object, name: str, obs: np.ndarray, actions: Box | Discrete, label: Label = plain) -> np.ndarray:
    """Its output at observations [N, S], as action rows [N, A]; BadPolicy names the first that is no action."""
    given = call_policy(lambda: np.asarray(output, dtype=float), name, obs)
    shape = (len(obs),) if isinstance(actions, Discrete) else (len(obs), actions.width)
    if not fits(given.shape, shape, actions):
        at = f"first at {shown(obs[0])}"
        raise BadPolicy(f"{name}: gave shape {given.shape} where {shape} was expected, {at}")
    if isinstance(actions, Discrete):
        given = given.reshape(shape)
        bad = ~((given == np.round(given)) & (given >= 0) & (given < actions.n))
        refuse(name, obs, given, bad, f"is not one of the choices 0 to {actions.n - 1}", label)
        return np.eye(actions.n, dtype=np.float32)[given.astype(int)]
    given, (low, high) = given.reshape(shape), np.asarray(actions)
    slack = EDGE * (high - low)
    bad = ~((given >= low - slack) & (given <= high + slack))
    refuse(name, obs, given, bad.any(1), f"is not within {shown(low)} and {shown(high)}", label)
    return np.clip(given, low, high).astype(np.float32)


def fits(shape: tuple[int, ...], due: tuple[int, ...], actions: Box | Discrete) -> bool:
    """Whether a shape is the one that is due; a choice or a single amount may have an axis of its own, or none."""
    single = isinstance(actions, Discrete) or actions.width == 1
    return shape == due or (single and shape in ((due[0],), (due[0], 1)))


def refuse(name: str, obs: np.ndarray, given: np.ndarray, bad: np.ndarray, why: str, label: Label = plain) -> None:
    """BadPolicy with the first observation that is marked as bad, if any is."""
    if bad.any():
        i = int(np.argmax(bad))
        raise BadPolicy(f"{name}: gave {shown(given[i])} for {label(i)} {shown(obs[i])}, which {why}")


def shown(numbers: np.ndarray) -> str:
    """A few numbers on one line."""
    flat = np.ravel(numbers)
    few = ", ".join(f"{number:.4g}" for number in flat[:8])
    return few if np.ndim(numbers) == 0 else f"[{few}{', ...' if len(flat) > 8 else ''}]"


def sentence(error: Exception) -> str:
    """An exception on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
