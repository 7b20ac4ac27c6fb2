"""A table and its schema in, a log out: the one way that every messy table goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...types import BadInput
from ..columns import Columns
from ..dataset import Log
from ..expression import columns_in, looks_ahead, parse
from ..provenance import Provenance
from ..schema import NEEDED, Schema, complete
from ..sources import Request, size_of
from ..sources._order import refuse_interleaved
from ..sources.arrays import from_arrays
from ..successors import FEWEST, stood_in
from .cells import BLOCK, Cells, Rows, together
from .encode import Acted, Encoded, actions_of, observation_columns
from .episodes import Episodes, episodes_of
from .missing import filled, refuse_empty
from .order import ordered, timed
from .origin import provenance_of

FORMULAS = ("reward", "terminated", "truncated", "starts_when")


def is_shaped(schema: Schema, columns: Mapping[str, object]) -> bool:
    """Whether a schema asks for more than columns of numbers: encodings, orders, rules or formulas."""
    formulas = [getattr(schema, key) for key in FORMULAS if getattr(schema, key) is not None]
    return schema.shapes or any(text not in columns for text in formulas if not str(text).isidentifier())


def completed(schema: Schema, columns: Mapping[str, np.ndarray], name: str) -> tuple[Schema, list[str]]:
    """The schema with roles that names speak for, and with every column that it names known to be there."""
    roles = {key: None for key in FORMULAS if _formula(getattr(schema, key), columns)}
    kept = {key: getattr(schema, key) for key in roles}
    whole, reasons, _ = complete(columns, name, replace(schema, **roles), strict=not kept.get("reward"))
    schema = replace(whole, **kept)
    if missing := [role for role in NEEDED if getattr(schema, role) is None]:
        complete(columns, name, replace(schema, reward=None), strict=missing != ["reward"])
        raise BadInput(f"{name}, column '{missing[0]}': missing; say in a schema which it is")
    for key, names in used_by(schema).items():
        for column in names:
            if column not in columns:
                raise BadInput(f"{name}: schema, '{key}': there is no column {column!r}")
    return schema, reasons


def _formula(given: str | None, columns: Mapping[str, object]) -> bool:
    return given is not None and given not in columns


def used_by(schema: Schema) -> dict[str, tuple[str, ...]]:
    """Columns of the table that every key of a schema names; clocks that are read off the time are none."""
    keys = ("unit", "episode", "obs", "action", "next_obs", "yes_no", "categories", "other", "leave_out")
    used = {key: schema.names(key) for key in keys}
    used |= {key: schema.names(key) for key in ("time", "step", "logp") if getattr(schema, key)}
    if schema.unit == "none":
        used.pop("unit")
    for key in ("lags", "differences", "fill", "choices"):
        used[key] = tuple(getattr(schema, key) or ())
    return used


def needed(schema: Schema, columns: Mapping[str, object]) -> list[str]:
    """Every column that has to be read, formulas included."""
    names = [name for key, names in used_by(schema).items() if key != "leave_out" for name in names]
    names += [name for name in (schema.cyclic or {}) if name in columns]
    names += [name for name in schema.names("exogenous") if name in columns]
    for key in FORMULAS:
        text = getattr(schema, key)
        if text is None:
            continue
        if text in columns:
            names.append(text)
        elif text.split()[-1:] == ["changes"] and text[: -len("changes")].strip().strip("`") in columns:
            names.append(text[: -len("changes")].strip().strip("`"))
        else:
            read = columns_in(parse(text, key))
            if absent := [name for name in read if name not in columns]:
                raise BadInput(f"schema, '{key}': {text[:60]!r} reads {absent[0]!r}, and there is no such column")
            names += read
    out = set(schema.names("leave_out"))
    return [name for name in dict.fromkeys(names) if name not in out or name in used_elsewhere(schema)]


def used_elsewhere(schema: Schema) -> set[str]:
    """Columns that `leave_out` keeps out of the observation, and that something else still uses."""
    return {*schema.names("unit"), *schema.names("episode"), *schema.names("action"), schema.time or ""}


def shaped(cells: dict[str, Cells], schema: Schema, request: Request, others: list[str]) -> Log:
    """The log in the cells of a table; `schema` is complete, and names columns that are there."""
    notes: list[str] = []
    rows = ordered(cells, schema, request.name, notes)
    marks = {
        f"{name} missing": Cells("number", rows.cells[name].empty.astype(np.int8), scale=1)
        for name, how in (schema.fill or {}).items()
        if how == "indicator" and name in rows.cells
    }
    rows, stands = filled(rows._replace(cells={**rows.cells, **marks}), schema, notes)
    inside = [name for name in schema.names("obs") if name not in schema.names("leave_out")]
    inside += [*schema.names("action"), *schema.names("next_obs")]
    refuse_empty(rows, [*inside, *_in_formulas(schema, rows)], request.name)
    if rows.count < 2:
        raise BadInput(f"{request.name}: {rows.count} rows are left; at least 2 are needed")
    episodes = episodes_of(rows, schema, notes)
    rows = episodes.rows
    acted = actions_of(rows, schema, request.name, notes)
    rows, after = _next_cells(rows, schema)
    encoded = list(observation_columns(rows, schema, stands, notes))
    then = None if after is None else list(observation_columns(after, schema, stands, []))
    if not encoded:
        raise BadInput(f"{request.name}: no column is left for the observation")
    columns = Columns(tuple(part.column for part in encoded), acted.columns, True, tuple(others))
    given, where, unknown = _arrays(rows, episodes, acted, (encoded, then), schema, request, notes)
    del rows, after, episodes, acted, encoded, then  # what they hold is as large as the log
    log = from_arrays(given, request.name, unknown=unknown, acts=schema.names("action"))
    return log._replace(notes=(*notes, *log.notes), columns=columns, provenance=where)


def _next_cells(rows: Rows, schema: Schema) -> tuple[Rows, Rows | None]:
    """The rows, and the same with the logged next observations in the observation's place, if they were logged."""
    then = schema.names("next_obs")
    if not then:
        return rows, None
    now = schema.names("obs")
    if len(then) != len(now):
        raise BadInput(f"schema, 'next_obs': {len(then)} columns where 'obs' has {len(now)}")
    words = schema.names("categories")
    both = zip(now, then, strict=True)
    pairs = [together(rows.cells[one], rows.cells[other], one in words) for one, other in both]
    here = {**rows.cells, **{name: pair[0] for name, pair in zip(now, pairs, strict=True)}}
    there = {**rows.cells, **{name: pair[1] for name, pair in zip(now, pairs, strict=True)}}
    return rows._replace(cells=here), rows._replace(cells=there)


def _in_formulas(schema: Schema, rows: Rows) -> list[str]:
    """Columns of numbers that a reward reads."""
    text = str(schema.reward)
    return [text] if text in rows.cells else list(columns_in(parse(text, "reward")))


def _lost(ends: int, ahead: bool) -> str:
    """Why true ends are no part of the log."""
    why = "actions stand in the row after" if ahead else "the reward reads the next row"
    return (
        f"terminated: {ends} true ends are lost: {why}, and nothing follows on them; their episodes seem cut short"
    )


def _inferred(dropped: int, alone: int, followed: int) -> str:
    """What was done for next observations that were not logged."""
    text = "next_obs not given: the next row's"
    text += f"; {dropped} rows that nothing follows on were left out" if dropped else ""
    return text + stood_in(alone, followed)


def _arrays(
    rows: Rows,
    episodes: Episodes,
    acted: Acted,
    seen: tuple[list[Encoded], list[Encoded] | None],
    schema: Schema,
    request: Request,
    notes: list[str],
) -> tuple[dict[str, object], Provenance, np.ndarray | None]:
    """The arrays of a log, rows that something follows on, or that truly end; where those come from; and of which
    nobody knows where they led.
    """
    ahead = schema.action_at == "next row"
    action = acted.numbers
    if ahead:
        action = np.roll(action, -1, 0)
        notes.append("actions: taken from the row after, as action_at says")
    encoded, then = seen
    reward, looks = _reward(rows, schema)
    followed = int((~rows.last).sum())
    known = not ahead and not looks  # what was done in a last row, and what it earned
    keep = ~rows.last | (known & (episodes.terminated | (then is not None) | (followed >= FEWEST)))
    dropped, alone = int((~keep).sum()), int((keep & rows.last).sum())
    if lost := int((episodes.terminated & ~keep).sum()):
        notes.append(_lost(lost, ahead))
    keep = _within(keep, episodes.number, encoded, acted, request, notes)
    kept = np.flatnonzero(keep).astype(np.int32)
    del keep
    if len(kept) < 2:
        raise BadInput(
            f"{request.name}: too few rows have their next row in the table; name unit, time and episodes"
        )
    if then is None:
        notes.append(_inferred(dropped, alone, followed))
    reward = reward[kept]
    _refuse_nan(reward, kept, rows, "reward", str(schema.reward))
    reward, action, number = _short(reward), _short(action[kept]), episodes.number[kept]
    where = provenance_of(rows, kept, schema)
    obs, next_obs = _observations(rows, encoded, kept)
    if then is not None:
        next_obs = _observations(rows, then, kept)[0]
    elif schema.time is None and schema.step is None:
        refuse_interleaved(obs, number, schema, request.name)
    given: dict[str, object] = {
        "obs": obs,
        "next_obs": next_obs,
        "action": action,
        "reward": reward,
        "terminated": episodes.terminated[kept],
        "episode": np.cumsum(np.r_[False, number[1:] != number[:-1]], dtype=np.int32),
    }
    if schema.logp is not None:
        given["logp"] = rows.numbers(schema.logp)[kept]
    if schema.horizon is not None and then is not None:
        given["horizon"] = schema.horizon
    elif schema.horizon is not None:
        given["horizon"] = _horizon(schema.horizon, episodes.number, kept, notes)
    unknown = rows.last[kept] if then is None else None
    return given | _settings(schema) | _bounds(acted, schema), where, unknown


def _settings(schema: Schema) -> dict[str, object]:
    """What a schema says of the task itself."""
    return {key: getattr(schema, key) for key in ("discount", "starts") if getattr(schema, key) is not None}


def _bounds(acted: Acted, schema: Schema) -> dict[str, object]:
    bounds = {"action_low": schema.low, "action_high": schema.high}
    return {**acted.settings, **{key: value for key, value in bounds.items() if value is not None}}


def _horizon(given: int, number: np.ndarray, kept: np.ndarray, notes: list[str]) -> int:
    """The horizon; less by one where every episode lost its last row, so that whole ones stay whole."""
    before, after = (int(np.bincount(each).max()) for each in (number, number[kept]))
    if after < given <= before:
        notes.append(f"horizon: {after}, not {given}, since the last row of each episode has nothing that follows")
        return after
    return given


def _reward(rows: Rows, schema: Schema) -> tuple[np.ndarray, bool]:
    """What every row earned, and whether that is read off the next row."""
    text = str(schema.reward)
    if text in rows.cells:
        return rows.numbers(text), False
    node = parse(text, "reward")
    return rows.computed(node, "reward"), looks_ahead(node)


def _refuse_nan(numbers: np.ndarray, kept: np.ndarray, rows: Rows, key: str, text: str) -> None:
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = rows.origin[kept[int(bad.argmax())]]
        raise BadInput(f"schema, '{key}', row {row}: {text[:60]!r} gives no finite number there")


def _observations(rows: Rows, encoded: list[Encoded], kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Observations of the rows that are kept and of those that follow them, float32 [K, S] each."""
    width = sum(len(part.column.names) for part in encoded)
    following = lambda at: np.where(rows.last[at], at, np.minimum(at + 1, rows.count - 1))
    obs, after = np.empty((len(kept), width), np.float32), np.empty((len(kept), width), np.float32)
    first = 0
    for part in encoded:
        span = slice(first, first + len(part.column.names))
        for begin in range(0, len(kept), BLOCK):
            some = slice(begin, begin + BLOCK)
            for target, source in ((obs, kept[some]), (after, following(kept[some]))):
                numbers = part.numbers(source)
                target[some, span] = _as_float32(numbers[:, None] if numbers.ndim == 1 else numbers)
        first = span.stop
    return obs, after


def _short(numbers: np.ndarray) -> np.ndarray:
    """Amounts as float32, which is what a log holds; whole numbers as they are."""
    return _as_float32(numbers) if numbers.dtype.kind == "f" else numbers


def _as_float32(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what is too large for float32 is refused by name
        return numbers.astype(np.float32)


def _within(
    keep: np.ndarray,
    number: np.ndarray,
    encoded: list[Encoded],
    acted: Acted,
    request: Request,
    notes: list[str],
) -> np.ndarray:
    """Rows that the budget holds: all, or those of whole episodes drawn by the seed."""
    width = sum(len(part.column.names) for part in encoded)
    acts = acted.settings.get("n_actions") or len(acted.columns)
    fits = request.budget // (4 * (2 * (width + int(str(acts))) + 3))
    total = int(keep.sum())
    if total <= fits:
        return keep
    sizes = np.bincount(number[keep], minlength=int(number[-1]) + 1)
    order = np.random.default_rng([request.seed, 3]).permutation(len(sizes))
    taken = order[np.cumsum(sizes[order]) <= fits]
    chosen = np.zeros(len(sizes), bool)
    chosen[taken] = True
    notes.append(
        f"larger than the budget of {size_of(request.budget)}: {len(taken)} of {len(sizes)} episodes were drawn "
        f"with seed {request.seed}, {int(sizes[taken].sum())} of {total} rows"
    )
    return keep & chosen[number]


__all__ = ["completed", "is_shaped", "needed", "shaped", "timed"]
