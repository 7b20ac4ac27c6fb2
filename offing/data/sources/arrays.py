"""Arrays as a log: dicts of arrays and `.npz` files, checked row by row and column by column."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...types import BadInput, Box, Dataset, Discrete, Task, Transition
from ..dataset import Log, fingerprint

LARGEST = np.float32(1e12)  # beyond this a float32 measurement has no square that can be trusted
LONGEST = 10**9  # horizons beyond this are slips of the pen
ALIASES = {
    "observations": "obs",
    "actions": "action",
    "rewards": "reward",
    "next_observations": "next_obs",
    "final_observations": "final_obs",
    "terminals": "terminated",
    "terminations": "terminated",
    "timeouts": "truncated",
    "truncations": "truncated",
    "episodes": "episode",
}
COLUMNS = ("obs", "action", "reward", "next_obs", "terminated", "truncated", "episode")
SETTINGS = ("horizon", "discount", "n_actions", "action_low", "action_high", "final_obs", "starts")


def read_npz(path: Path) -> Log:
    """The log in an `.npz` file; arrays that would need pickle are refused, not loaded."""
    columns: dict[str, np.ndarray] = {}
    key = None
    try:
        with path.open("rb") as raw:
            file = np.load(raw, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise BadInput(f"{path}: not an .npz archive; save the log with numpy.savez")
            for key in file.files:
                columns[key] = file[key]
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (IsADirectoryError, PermissionError) as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
    except BadInput:
        raise
    except Exception as error:  # a damaged archive may fail in any of a dozen ways
        where = f", column {key!r}" if key else ""
        if key and "Object arrays" in str(error):
            text = "holds Python objects and would need pickle; save plain numeric arrays"
            raise BadInput(f"{path}{where}: {text}") from None
        raise BadInput(f"{path}{where}: damaged or not an .npz file") from None
    return from_arrays(columns, str(path))


def from_arrays(given: Mapping[str, Any], name: str = "arrays") -> Log:
    """The log in a dict of arrays, what was assumed in `notes`; BadInput names column and first bad row."""
    columns, notes = _named(given, name)
    obs = _numbers(columns, "obs", name)
    rows = len(obs)
    if rows == 0:
        raise BadInput(f"{name}: the log is empty")
    if rows == 1:
        raise BadInput(f"{name}: one row is not enough to learn from or to hold anything out")
    obs = obs[:, None] if obs.ndim == 1 else obs
    if obs.ndim != 2 or obs.shape[1] == 0:
        raise BadInput(f"{name}, column 'obs': shape {obs.shape}; give one flat vector of numbers per row")
    reward = _numbers(columns, "reward", name, rows)
    if reward.shape == (rows, 1):
        reward = reward[:, 0]
    if reward.ndim != 1:
        raise BadInput(f"{name}, column 'reward': shape {reward.shape} where ({rows},) was expected")
    terminated = _flags(columns, "terminated", name, rows)
    truncated = _flags(columns, "truncated", name, rows)
    episode = _episodes(columns, terminated, truncated, name, rows, notes)
    action, space = _actions(columns, name, rows, notes)
    next_obs = _next_obs(columns, obs, episode, name)
    starts = _starts(columns, obs, episode, name, notes)
    notes += [f"column '{column}'{where}: constant" for column, where in _constant(obs, action, reward)]

    last = np.ones(rows, bool)
    last[:-1] = episode[1:] != episode[:-1]
    if episode[0] < 0:
        last[:] = True
    next_action = np.where(last[:, None], action, np.roll(action, -1, axis=0))
    lengths = np.unique(episode, return_counts=True)[1] if episode[0] >= 0 else np.array([1])
    horizon = int(_scalar(columns, "horizon", name, lengths.max(), whole=True))
    discount = float(_scalar(columns, "discount", name, 0.99))
    if "horizon" not in columns:
        notes.append(f"horizon not given: {horizon}, the longest logged episode")
    if not 1 <= horizon <= LONGEST:
        raise BadInput(f"{name}, 'horizon': {horizon:g} is not within 1 and {LONGEST:g}")
    if not 0 <= discount <= 1:
        raise BadInput(f"{name}, 'discount': {discount:g} is not within 0 and 1")

    steps = Transition(obs, action, reward, next_obs, next_action, terminated.astype(np.float32))
    data = Dataset(steps, starts, episode, np.asarray(rows, np.int32))
    task = Task(horizon, discount, space)
    return Log(data, task, name, tuple(notes), fingerprint(data, task))


def _named(given: Mapping[str, Any], name: str) -> tuple[dict[str, Any], list[str]]:
    columns: dict[str, Any] = {}
    notes: list[str] = []
    for key, value in given.items():
        known = ALIASES.get(key, key)
        if known in columns:
            raise BadInput(f"{name}, column {key!r}: given twice, also as '{known}'")
        if known in ("done", "dones"):
            raise BadInput(
                f"{name}, column '{key}': does it mark true ends or time-outs? Name it 'terminated' or 'truncated'"
            )
        if known in COLUMNS or known in SETTINGS:
            columns[known] = value
        else:
            notes.append(f"column {key!r}: not used")
    missing = [column for column in ("obs", "action", "reward") if column not in columns]
    if missing:
        have = ", ".join(map(repr, given)) or "nothing"
        raise BadInput(f"{name}, column '{missing[0]}': missing; there is {have}")
    return columns, notes


def _array(columns: Mapping[str, Any], column: str, name: str) -> np.ndarray:
    try:
        return np.asarray(columns[column])
    except ValueError:
        raise BadInput(f"{name}, column '{column}': rows of different lengths") from None


def _numbers(columns: Mapping[str, Any], column: str, name: str, rows: int | None = None) -> np.ndarray:
    """The column as finite float32 of moderate size, or BadInput with the first row that is not."""
    array = _array(columns, column, name)
    if array.dtype.kind not in "fiub":
        raise BadInput(f"{name}, column '{column}': holds {array.dtype}, not numbers")
    if array.ndim == 0:
        raise BadInput(f"{name}, column '{column}': a single number where one per row was expected")
    if rows is not None and len(array) != rows:
        raise BadInput(f"{name}, column '{column}': {len(array)} rows where 'obs' has {rows}")
    beyond = (array > LARGEST) | (array < -LARGEST)
    for bad, what in ((~np.isfinite(array), "not finite"), (beyond, f"beyond {LARGEST:g}")):
        if bad.any():
            row = int(np.argwhere(bad)[0][0])
            value = array[row] if array.ndim == 1 else array[row][bad[row]].flat[0]
            raise BadInput(f"{name}, column '{column}', row {row}: {value} is {what}; repair or drop the row")
    return np.ascontiguousarray(array, np.float32)


def _flags(columns: Mapping[str, Any], column: str, name: str, rows: int) -> np.ndarray:
    if column not in columns:
        return np.zeros(rows, bool)
    array = _numbers(columns, column, name, rows)
    array = array.reshape(rows, -1)[:, 0] if array.size == rows else array
    if array.ndim != 1:
        raise BadInput(f"{name}, column '{column}': shape {array.shape} where ({rows},) was expected")
    bad = (array != 0) & (array != 1)
    if bad.any():
        row = int(np.argmax(bad))
        raise BadInput(f"{name}, column '{column}', row {row}: {array[row]:g} where 0 or 1 was expected")
    return array.astype(bool)


def _episodes(
    columns: Mapping[str, Any],
    terminated: np.ndarray,
    truncated: np.ndarray,
    name: str,
    rows: int,
    notes: list[str],
) -> np.ndarray:
    """Episode of each row, counted from 0; -1 throughout where the log does not tell."""
    ends = terminated | truncated
    if "episode" in columns:
        ids = _array(columns, "episode", name)
        if ids.shape != (rows,) or ids.dtype.kind not in "iu":
            raise BadInput(f"{name}, column 'episode': one whole number per row was expected")
        new = np.r_[True, ids[1:] != ids[:-1]]
        if len(np.unique(ids)) != new.sum():
            seen: set[Any] = set()
            for row in np.flatnonzero(new):
                if ids[row] in seen:
                    raise BadInput(
                        f"{name}, column 'episode', row {row}: episode {ids[row]} goes on after another "
                        "began; sort the rows by episode and step"
                    )
                seen.add(ids[row])
        inside = ends[:-1] & ~new[1:]
        if inside.any():
            row = int(np.argmax(inside))
            raise BadInput(f"{name}, column 'episode', row {row}: episode {ids[row]} goes on after its end")
    elif "terminated" in columns or "truncated" in columns:
        new = np.r_[True, ends[:-1]]
    else:
        notes.append(
            "no episodes in the log: rows are a bag of transitions, and every state stands in for a start"
        )
        return np.full(rows, -1, np.int32)
    return (np.cumsum(new) - 1).astype(np.int32)


def _actions(
    columns: Mapping[str, Any], name: str, rows: int, notes: list[str]
) -> tuple[np.ndarray, Box | Discrete]:
    """Actions as float rows, and their space; whole numbers are a question, never a guess."""
    action = _numbers(columns, "action", name, rows)
    if "n_actions" in columns:
        count = int(_scalar(columns, "n_actions", name, 0, whole=True))
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
        raise BadInput(
            f"{name}, column 'action': whole numbers; say that they are choices with n_actions=K, "
            "or save them as floats if they are amounts"
        )
    action = action[:, None] if action.ndim == 1 else action
    if action.ndim != 2 or action.shape[1] == 0:
        raise BadInput(f"{name}, column 'action': shape {action.shape}; give one flat vector of numbers per row")
    width = action.shape[1]
    edges = []
    for key, seen in (("action_low", action.min(0)), ("action_high", action.max(0))):
        if key in columns:
            edge = _numbers({key: np.atleast_1d(_array(columns, key, name))}, key, name)
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
        text = f"{action[row, i]:g} is outside [{low[i]:g}, {high[i]:g}], the range of dimension {i}"
        raise BadInput(f"{name}, column 'action', row {row}: {text}")
    return action, Box(tuple(map(float, low)), tuple(map(float, high)))


def _next_obs(columns: Mapping[str, Any], obs: np.ndarray, episode: np.ndarray, name: str) -> np.ndarray:
    """The observation after each row: logged, or the next row's with `final_obs` after an episode's last."""
    rows = len(obs)
    if "next_obs" in columns:
        next_obs = _numbers(columns, "next_obs", name, rows)
        next_obs = next_obs[:, None] if next_obs.ndim == 1 else next_obs
        if next_obs.shape != obs.shape:
            raise BadInput(f"{name}, column 'next_obs': shape {next_obs.shape} where 'obs' has {obs.shape}")
        return next_obs
    if "final_obs" not in columns or episode[0] < 0:
        raise BadInput(
            f"{name}, column 'next_obs': missing; give it, "
            "or 'final_obs' with the last observation of each episode"
        )
    final = _numbers(columns, "final_obs", name)
    final = final[:, None] if final.ndim == 1 else final
    ends = np.flatnonzero(np.r_[episode[1:] != episode[:-1], True])
    if final.shape != (len(ends), obs.shape[1]):
        expected = (len(ends), obs.shape[1])
        raise BadInput(f"{name}, column 'final_obs': shape {final.shape} where {expected} was expected")
    next_obs = np.roll(obs, -1, axis=0)
    next_obs[ends] = final
    return next_obs


def _starts(
    columns: Mapping[str, Any], obs: np.ndarray, episode: np.ndarray, name: str, notes: list[str]
) -> np.ndarray:
    if "starts" in columns:
        starts = _numbers(columns, "starts", name)
        if starts.ndim != 2 or starts.shape[1] != obs.shape[1] or len(starts) == 0:
            raise BadInput(
                f"{name}, column 'starts': shape {starts.shape} where (any, {obs.shape[1]}) was expected"
            )
        return starts
    if episode[0] < 0:
        return obs
    return obs[np.r_[True, episode[1:] != episode[:-1]]]


def _constant(obs: np.ndarray, action: np.ndarray, reward: np.ndarray) -> list[tuple[str, str]]:
    found = [("obs", f"[{i}]") for i in np.flatnonzero(np.ptp(obs, axis=0) == 0)]
    found += [("action", f"[{i}]") for i in np.flatnonzero(np.ptp(action, axis=0) == 0)]
    return found + ([("reward", "")] if np.ptp(reward) == 0 else [])


def _scalar(columns: Mapping[str, Any], key: str, name: str, default: Any, whole: bool = False) -> Any:
    if key not in columns:
        return default
    value = _array(columns, key, name)
    if value.size != 1 or value.dtype.kind not in "fiu" or not np.isfinite(value).all():
        raise BadInput(f"{name}, '{key}': one number was expected")
    number = value.reshape(()).item()
    if whole and number != int(number):
        raise BadInput(f"{name}, '{key}': {number:g} where a whole number was expected")
    return number
