"""Arrays as a log, checked row by row and column by column; every other source ends here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from ...types import BadInput, Box, Dataset, Discrete, Task, Transition
from ..columns import plain_columns
from ..dataset import Log, fingerprint
from ..schema import ALIASES as WORDS
from ..schema import ROLES, Schema
from ..successors import completed
from . import Request, Source
from ._checked import (
    actions,
    array_of,
    final_next,
    flags,
    log_probabilities,
    logged_next,
    numbers,
    scalar,
    whole_numbers,
)
from ._order import episodes_of, in_order, refuse_interleaved, successors_of

LONGEST = 10**9  # horizons beyond this are slips of the pen
ALIASES = {word: role for role, words in WORDS.items() for word in words} | {
    "final_observations": "final_obs",
}
COLUMNS = ROLES
SETTINGS = ("horizon", "discount", "n_actions", "action_low", "action_high", "final_obs", "starts")


def renamed(given: Mapping[str, Any], schema: Schema, name: str) -> tuple[dict[str, Any], list[str]]:
    """The arrays under the names of the roles that the schema gives them, with its settings."""
    taken = {column: role for role in schema.roles for column in schema.names(role)}
    for column, role in taken.items():
        if column not in given:
            have = ", ".join(map(repr, list(given)[:12])) or "nothing"
            raise BadInput(
                f"{name}, column {column!r}: missing, and the schema says it is '{role}'; there is {have}"
            )
    columns = {key: value for key, value in given.items() if key not in taken}
    for role in schema.roles:  # a column that the schema names as something else is that, whatever its name
        columns = {key: value for key, value in columns.items() if ALIASES.get(key, key) != role}
        parts = schema.names(role)
        columns[role] = given[parts[0]] if len(parts) == 1 else _beside([given[p] for p in parts], parts, name)
    columns |= schema.settings()
    notes: list[str] = []
    if schema.discrete is not None and "action" in columns:
        columns["action"], more = actions_by_schema(array_of(columns, "action", name), schema, columns, notes)
        columns = {**more, **columns}
    return columns, notes


def actions_by_schema(
    action: np.ndarray, schema: Schema, settings: dict[str, Any], notes: list[str]
) -> tuple[np.ndarray, dict[str, Any]]:
    """Actions as the schema has them: amounts as floats; of choices, how many there are if nothing says."""
    if not schema.discrete:
        settings.pop("n_actions", None)
        return (action.astype(np.float32) if action.dtype.kind in "iub" else action), {}
    if action.dtype.kind not in "fiub" or not action.size or "n_actions" in settings:
        return action, {}
    top = action.max()
    if not np.isfinite(top):
        return action, {}
    choices = max(2, int(min(float(top), 1e9)) + 1)
    notes.append(f"n not given: {choices}, by the highest choice in the log")
    return action, {"n_actions": choices}


def _beside(parts: list[Any], names: tuple[str, ...], name: str) -> np.ndarray:
    """Columns side by side, one number of each per row."""
    arrays = [array_of({column: part}, column, name) for column, part in zip(names, parts, strict=True)]
    for column, array in zip(names, arrays, strict=True):
        if array.dtype.kind not in "fiub":
            raise BadInput(f"{name}, column {column!r}: holds {array.dtype}, not numbers")
        if array.shape != arrays[0].shape or array.ndim != 1:
            raise BadInput(
                f"{name}, column {column!r}: shape {array.shape} where one number per row was expected, "
                f"as many as {names[0]!r} has"
            )
    return np.stack(arrays, -1)


class Rows(NamedTuple):
    """The columns of a log, each checked, row by row."""

    obs: np.ndarray  # [N, S]
    action: np.ndarray  # [N, A]
    reward: np.ndarray  # [N]
    terminated: np.ndarray  # [N]
    truncated: np.ndarray  # [N]
    next_obs: np.ndarray | None  # [N, S]
    logp: np.ndarray | None  # [N]
    ids: np.ndarray | None  # [N]  which episode, as the log numbers them

    def at(self, index: np.ndarray) -> Rows:
        """Those rows alone, in that order."""
        return jax.tree.map(lambda part: part[index], self)  # None is no leaf


def from_arrays(
    given: Mapping[str, Any],
    name: str = "arrays",
    schema: Schema | None = None,
    successors: bool = False,
    unknown: np.ndarray | None = None,
    acts: tuple[str, ...] = (),
) -> Log:
    """The log in a dict of arrays, what was assumed in `notes`; BadInput names column and first bad row. `acts`
    are the names that the columns of actions have where they come from.

    With a schema, or where `successors` says so, next observations that were not logged are taken from the next
    row, and at the end of an episode from what like rows led to.
    `unknown` [N] marks rows, in order, whose next observation is not known although one is given.
    """
    if schema is not None and schema.shapes:
        return _shaped(given, name, schema)
    log = read_arrays(given, name, schema, successors, unknown, acts)
    return log._replace(fingerprint=fingerprint(log.data, log.task, log.logp))


def read_arrays(
    given: Mapping[str, object],
    name: str,
    schema: Schema | None,
    successors: bool,
    unknown: np.ndarray | None = None,
    acts: tuple[str, ...] = (),
) -> Log:
    """The same, of plain columns and without its fingerprint, which takes a while."""
    renames: list[str] = []
    if schema is not None:
        given, renames = renamed(given, schema, name)
    columns, notes = _named(given, name)
    notes = renames + notes
    rows, space, order = _ordered(columns, name, notes, acts if schema is None else schema.names("action"))
    marked = "terminated" in columns or "truncated" in columns
    episode = episodes_of(rows.ids, rows.terminated, rows.truncated, marked, order, name, notes)
    horizon, discount = _spans(columns, name, episode)
    next_obs = rows.next_obs
    if next_obs is None and "final_obs" not in columns and (successors or schema is not None) and episode[0] >= 0:
        refuse_interleaved(rows.obs, episode, schema, name)
        keep, next_obs = successors_of(rows.obs, rows.terminated, episode, name, notes)
        horizon = _kept_horizon(horizon, "horizon" in columns, episode, keep, notes)
        unknown = np.r_[episode[1:] != episode[:-1], True][keep]
        rows, next_obs = rows.at(keep), next_obs[keep]
        episode = np.unique(episode[keep], return_inverse=True)[1].astype(np.int32)
    elif next_obs is None:
        next_obs = final_next(columns, rows.obs, episode, name)
    if unknown is not None:
        next_obs = completed(rows.obs, rows.action, next_obs, unknown, rows.terminated)
    if "horizon" not in columns:
        notes.append(f"horizon not given: {horizon}, the longest logged episode")
    obs, action, reward = rows.obs, rows.action, rows.reward
    starts = _starts(columns, obs, episode, name, notes)
    notes += constant(obs, action, reward)
    done = rows.terminated.astype(np.float32)
    steps = Transition(obs, action, reward, next_obs, _next_actions(action, episode), done)
    data, task = Dataset(steps, starts, episode, np.asarray(len(obs), np.int32)), Task(horizon, discount, space)
    columns_of = plain_columns(obs.shape[1], space)
    return Log(data, task, name, tuple(notes), "", rows.logp, columns_of)


def _ordered(
    columns: Mapping[str, Any], name: str, notes: list[str], acts: tuple[str, ...]
) -> tuple[Rows, Box | Discrete, np.ndarray | None]:
    """The rows, checked and episode after episode; the space of actions; and their order, if not the log's.

    `acts` are the names that the log has for the actions' columns.
    """
    obs = _observations(columns, name)
    count = len(obs)
    reward = numbers(columns, "reward", name, count)
    if reward.shape == (count, 1):
        reward = reward[:, 0]
    if reward.ndim != 1:
        raise BadInput(f"{name}, column 'reward': shape {reward.shape} where ({count},) was expected")
    terminated, truncated = (flags(columns, column, name, count) for column in ("terminated", "truncated"))
    ids, step = (whole_numbers(columns, column, name, count) for column in ("episode", "step"))
    action, space = actions(columns, name, count, notes, acts)
    next_obs = logged_next(columns, obs, name)
    logp = log_probabilities(columns, name, count, space)
    rows = Rows(obs, action, reward, terminated, truncated, next_obs, logp, ids)
    order = in_order(ids, step, (obs, action, reward, terminated, truncated, next_obs), name, notes)
    if order is None:
        return rows, space, order
    if next_obs is None and "final_obs" in columns:
        raise BadInput(f"{name}, column 'final_obs': cannot be matched to rows that are out of order; sort them")
    return rows.at(order), space, order


def _observations(columns: Mapping[str, Any], name: str) -> np.ndarray:
    """One flat vector of numbers per row [N, S], two rows or more."""
    obs = numbers(columns, "obs", name)
    if len(obs) == 0:
        raise BadInput(f"{name}: the log is empty")
    if len(obs) == 1:
        raise BadInput(f"{name}: one row is not enough to learn from or to hold anything out")
    obs = obs[:, None] if obs.ndim == 1 else obs
    if obs.ndim != 2 or obs.shape[1] == 0:
        raise BadInput(
            f"{name}, column 'obs': shape {obs.shape}; give one flat vector of numbers per row "
            "(images need an encoder first, nested observations flattening)"
        )
    return obs


def _spans(columns: Mapping[str, Any], name: str, episode: np.ndarray) -> tuple[int, float]:
    """Horizon and discount, as given or by default: the longest logged episode, and 0.99."""
    lengths = np.unique(episode, return_counts=True)[1] if episode[0] >= 0 else np.array([1])
    horizon = int(scalar(columns, "horizon", name, lengths.max(), whole=True))
    discount = float(scalar(columns, "discount", name, 0.99))
    if not 1 <= horizon <= LONGEST:
        raise BadInput(f"{name}, 'horizon': {horizon:g} is not within 1 and {LONGEST:g}")
    if not 0 <= discount <= 1:
        raise BadInput(f"{name}, 'discount': {discount:g} is not within 0 and 1")
    return horizon, discount


def _next_actions(action: np.ndarray, episode: np.ndarray) -> np.ndarray:
    """The action logged next in the same episode; at its end, the row's own."""
    following = action.copy()
    if episode[0] >= 0:
        goes_on = (episode[1:] == episode[:-1]).reshape(-1, *[1] * (action.ndim - 1))
        np.copyto(following[:-1], action[1:], where=goes_on)
    return following


def _shaped(given: Mapping[str, Any], name: str, schema: Schema) -> Log:
    """The log in arrays that a schema orders, fills or encodes, as it does a table."""
    from ..table.cells import cells_of
    from ..table.log import completed, needed, shaped

    columns = {str(key): array_of(given, key, name) for key in given}
    columns = {key: column for key, column in columns.items() if column.ndim}
    whole, reasons = completed(schema, columns, name)
    cells = {key: cells_of(columns[key], key) for key in needed(whole, columns)}
    if len({cell.count for cell in cells.values()}) != 1:
        raise BadInput(f"{name}: columns of different lengths")
    own = {*whole.names("obs"), *whole.names("action")}
    log = shaped(cells, whole, Request(given, name), [key for key in columns if key not in own])
    return log._replace(notes=(*reasons, *log.notes))


def _kept_horizon(horizon: int, stated: bool, episode: np.ndarray, keep: np.ndarray, notes: list[str]) -> int:
    """The horizon once rows without a next one are gone: episodes that lost their last one are still whole."""
    before, after = (int(np.unique(part, return_counts=True)[1].max()) for part in (episode, episode[keep]))
    if horizon > before or after >= horizon:
        return horizon
    if stated:
        notes.append(
            f"horizon: {after}, not {horizon}, since the last row of each episode has nothing that follows"
        )
    return after


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


def _starts(
    columns: Mapping[str, Any], obs: np.ndarray, episode: np.ndarray, name: str, notes: list[str]
) -> np.ndarray:
    if "starts" in columns:
        starts = numbers(columns, "starts", name)
        if starts.ndim != 2 or starts.shape[1] != obs.shape[1] or len(starts) == 0:
            raise BadInput(
                f"{name}, column 'starts': shape {starts.shape} where (any, {obs.shape[1]}) was expected"
            )
        return starts
    if episode[0] < 0:
        return obs
    return obs[np.r_[True, episode[1:] != episode[:-1]]]


def constant(obs: np.ndarray, action: np.ndarray, reward: np.ndarray) -> list[str]:
    """A note for every column that never changes."""
    places = [("obs", f"[{i}]") for i in np.flatnonzero(np.ptp(obs, axis=0) == 0)]
    places += [("action", f"[{i}]") for i in np.flatnonzero(np.ptp(action, axis=0) == 0)]
    places += [("reward", "")] if np.ptp(reward) == 0 else []
    return [f"column '{column}'{where}: constant" for column, where in places]


def _columns(request: Request) -> dict[str, np.ndarray]:
    given = request.what if isinstance(request.what, Mapping) else {}
    return {str(key): np.atleast_1d(value) for key, value in given.items() if np.ndim(value)}


def _load(request: Request) -> Log:
    assert isinstance(request.what, Mapping)  # as `takes` checked
    return from_arrays(request.what, schema=request.schema)


source = Source("", _load, _columns, takes=lambda given: isinstance(given, Mapping))
