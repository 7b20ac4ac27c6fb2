"""One column of arrays at a time, checked: BadInput names the column and its first bad row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ...types import BadInput, Box, Discrete
from ..schema import QUESTION

LARGEST = np.float32(1e12)  # beyond this a float32 measurement has no square that can be trusted


def array_of(columns: Mapping[str, ArrayLike], column: str, name: str) -> np.ndarray:
    """The column as an array; BadInput if its rows differ in length."""
    try:
        return np.asarray(columns[column])
    except ValueError:
        raise BadInput(f"{name}, column '{column}': rows of different lengths") from None


def numbers(columns: Mapping[str, ArrayLike], column: str, name: str, rows: int | None = None) -> np.ndarray:
    """The column as finite float32 of moderate size, or BadInput with the first row that is not."""
    array = array_of(columns, column, name)
    if array.dtype.kind not in "fiub":
        raise BadInput(f"{name}, column '{column}': holds {array.dtype}, not numbers")
    if array.ndim == 0:
        raise BadInput(f"{name}, column '{column}': a single number where one per row was expected")
    if rows is not None and len(array) != rows:
        raise BadInput(f"{name}, column '{column}': {len(array)} rows where 'obs' has {rows}")
    checked(array, column, name)
    return np.ascontiguousarray(array, np.float32)


def checked(array: np.ndarray, column: str, name: str, first: int = 0) -> None:
    """BadInput for the first number that is not finite or too large; rows are counted from `first`."""
    if array.dtype.kind == "b":
        return
    if array.dtype.kind == "f" and array.size and array.max() <= LARGEST and array.min() >= -LARGEST:
        return  # sound, and no copy was made to see it: a nan survives a maximum
    beyond = (array > LARGEST) | (array < -LARGEST)
    for bad, what in ((~np.isfinite(array), "not finite"), (beyond, f"beyond {LARGEST:g}")):
        if bad.any():
            row = int(np.argwhere(bad)[0][0])
            value = array[row] if array.ndim == 1 else array[row][bad[row]].flat[0]
            raise BadInput(
                f"{name}, column '{column}', row {first + row}: {value} is {what}; repair or drop the row"
            )


def flags(columns: Mapping[str, ArrayLike], column: str, name: str, rows: int) -> np.ndarray:
    """A column of 0 and 1 as booleans [N]; all False if it is not there."""
    if column not in columns:
        return np.zeros(rows, bool)
    array = numbers(columns, column, name, rows)
    array = array.reshape(rows, -1)[:, 0] if array.size == rows else array
    if array.ndim != 1:
        raise BadInput(f"{name}, column '{column}': shape {array.shape} where ({rows},) was expected")
    bad = (array != 0) & (array != 1)
    if bad.any():
        row = int(np.argmax(bad))
        raise BadInput(f"{name}, column '{column}', row {row}: {array[row]:g} where 0 or 1 was expected")
    return array.astype(bool)


def whole_numbers(columns: Mapping[str, ArrayLike], column: str, name: str, rows: int) -> np.ndarray | None:
    """Episode or step numbers, if they are there."""
    if column not in columns:
        return None
    array = array_of(columns, column, name)
    array = array[:, 0] if array.shape == (rows, 1) else array
    if array.dtype.kind == "f" and np.isfinite(array).all() and (np.abs(array) < 2**53).all():
        array = array.astype(np.int64) if (array == np.round(array)).all() else array
    if array.shape != (rows,) or array.dtype.kind not in "iu":
        raise BadInput(f"{name}, column '{column}': one whole number per row was expected; number the {column}s")
    return array


def actions(
    columns: Mapping[str, ArrayLike], name: str, rows: int, notes: list[str], names: tuple[str, ...] = ()
) -> tuple[np.ndarray, Box | Discrete]:
    """Actions as float rows, and their space; whole numbers are a question, never a guess.

    `names` are the log's own, of the columns that they stand in.
    """
    action = numbers(columns, "action", name, rows)
    if "n_actions" in columns:
        count = int(scalar(columns, "n_actions", name, 0, whole=True))
        if not 2 <= count <= 10_000:
            raise BadInput(f"{name}, 'n_actions': {count:g} is not within 2 and 10000")
        if action.size != rows:
            raise BadInput(f"{name}, column 'action': shape {action.shape} where one choice per row was expected")
        action = action.reshape(rows)
        bad = (action != np.round(action)) | (action < 0) | (action >= count)
        if bad.any():
            row = int(np.argmax(bad))
            text = f"{action[row]:g} is not one of the choices 0 to {count - 1}"
            raise BadInput(f"{name}, column 'action', row {row}: {text}")
        return np.eye(count, dtype=np.float32)[action.astype(int)], Discrete(count)
    if np.asarray(columns["action"]).dtype.kind in "iub":
        raise BadInput(f"{name}, column 'action': {QUESTION}")
    action = action[:, None] if action.ndim == 1 else action
    if action.ndim != 2 or action.shape[1] == 0:
        raise BadInput(f"{name}, column 'action': shape {action.shape}; give one flat vector of numbers per row")
    width = action.shape[1]
    edges = []
    for key, seen in (("action_low", action.min(0)), ("action_high", action.max(0))):
        if key in columns:
            edge = numbers({key: np.atleast_1d(array_of(columns, key, name))}, key, name)
            if edge.shape not in ((1,), (width,)):
                raise BadInput(f"{name}, column '{key}': {edge.size} numbers for {width} actions")
            edge = np.broadcast_to(edge, (width,))
        else:
            notes.append(f"{key} not given: the log's own range")
            edge = seen
        edges.append(edge)
    low, high = edges
    bad = (action < low - 1e-4 * (1 + np.abs(low))) | (action > high + 1e-4 * (1 + np.abs(high)))
    if bad.any():
        row, i = map(int, np.argwhere(bad)[0])
        column, of = (names[i], "it") if len(names) == width else ("action", f"dimension {i}")
        text = f"{action[row, i]:g} is outside [{low[i]:g}, {high[i]:g}], the range of {of}"
        raise BadInput(f"{name}, column {column!r}, row {row}: {text}")
    return action, Box(tuple(map(float, low)), tuple(map(float, high)))


def log_probabilities(
    columns: Mapping[str, ArrayLike], name: str, rows: int, space: Box | Discrete
) -> np.ndarray | None:
    """Log-probabilities of the logged actions, if they are there; a choice's is never above 0."""
    if "logp" not in columns:
        return None
    logp = numbers(columns, "logp", name, rows)
    logp = logp[:, 0] if logp.shape == (rows, 1) else logp
    if logp.ndim != 1:
        raise BadInput(f"{name}, column 'logp': shape {logp.shape} where one number per row was expected")
    bad = logp > 1e-3
    if isinstance(space, Discrete) and bad.any():
        row = int(bad.argmax())
        raise BadInput(
            f"{name}, column 'logp', row {row}: {logp[row]:g} is not the logarithm of a choice's chance"
        )
    return logp


def logged_next(columns: Mapping[str, ArrayLike], obs: np.ndarray, name: str) -> np.ndarray | None:
    """Next observations [N, S], if they were logged."""
    if "next_obs" not in columns:
        return None
    next_obs = numbers(columns, "next_obs", name, len(obs))
    next_obs = next_obs[:, None] if next_obs.ndim == 1 else next_obs
    if next_obs.shape != obs.shape:
        raise BadInput(f"{name}, column 'next_obs': shape {next_obs.shape} where 'obs' has {obs.shape}")
    return next_obs


def final_next(columns: Mapping[str, ArrayLike], obs: np.ndarray, episode: np.ndarray, name: str) -> np.ndarray:
    """The next row's observation, with `final_obs` after an episode's last."""
    if "final_obs" not in columns or episode[0] < 0:
        raise BadInput(
            f"{name}, column 'next_obs': missing; give it, "
            "or 'final_obs' with the last observation of each episode"
        )
    final = numbers(columns, "final_obs", name)
    final = final[:, None] if final.ndim == 1 else final
    ends = np.flatnonzero(np.r_[episode[1:] != episode[:-1], True])
    if final.shape != (len(ends), obs.shape[1]):
        expected = (len(ends), obs.shape[1])
        raise BadInput(f"{name}, column 'final_obs': shape {final.shape} where {expected} was expected")
    next_obs = np.roll(obs, -1, axis=0)
    next_obs[ends] = final
    return next_obs


def scalar(columns: Mapping[str, ArrayLike], key: str, name: str, default: float, whole: bool = False) -> float:
    """One number that holds for the whole log, or its default."""
    if key not in columns:
        return default
    value = array_of(columns, key, name)
    if value.size != 1 or value.dtype.kind not in "fiu" or not np.isfinite(value).all():
        raise BadInput(f"{name}, '{key}': one number was expected")
    number = value.reshape(()).item()
    if whole and number != int(number):
        raise BadInput(f"{name}, '{key}': {number:g} where a whole number was expected")
    return number
