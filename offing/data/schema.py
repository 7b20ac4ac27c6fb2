"""Which column is what: the schema, its TOML form, and what the names of columns say."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..types import BadInput

Names = str | tuple[str, ...] | None
WIDE = ("obs", "action", "next_obs")  # roles that several columns may fill together
ALIASES = {
    "obs": ("obs", "observation", "observations", "state", "states"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards"),
    "terminated": ("terminated", "terminal", "terminals", "termination", "terminations"),
    "truncated": ("truncated", "truncation", "truncations", "timeout", "timeouts"),
    "episode": ("episode", "episodes", "episode_id", "episode_index", "trajectory", "trajectory_id"),
    "step": ("step", "steps", "timestep", "time_step", "step_id", "step_index"),
    "next_obs": ("next_obs", "next_observation", "next_observations", "next_state", "next_states"),
    "logp": ("logp", "log_prob", "logprob", "action_log_prob", "behaviour_logp", "behavior_logp"),
}
ROLES = tuple(ALIASES)
NEEDED = ("obs", "action", "reward")
FAMILY = re.compile(r"(.+?)[_.\[/-]?(\d+)\]?")  # obs_0, observation.0, obs[0], obs0
QUESTION = (
    'whole numbers: choices or amounts? State actions = "discrete" or actions = "box" in the schema '
    "(or give n_actions=K for choices, and floats for amounts)"
)


@dataclass(frozen=True)
class Schema:
    """Which column is what, in the log's own names; what is None is read off the log, and said."""

    obs: Names = None
    action: Names = None
    reward: str | None = None
    terminated: str | None = None  # true ends
    truncated: str | None = None  # time-outs
    episode: str | None = None
    step: str | None = None
    next_obs: Names = None
    logp: str | None = None  # of the logged action under the behaviour
    actions: str | None = None  # "discrete" or "box"
    n: int | None = None  # choices, if discrete
    low: float | tuple[float, ...] | None = None  # of each action, if a box
    high: float | tuple[float, ...] | None = None
    horizon: int | None = None
    discount: float | None = None
    starts: tuple[tuple[float, ...], ...] | None = None  # observations that episodes begin in

    def __post_init__(self) -> None:
        for item in fields(self):
            value = _plain(getattr(self, item.name))
            object.__setattr__(self, item.name, value)
            wanted = WANTED[item.name]
            if value is not None and not wanted[1](value):
                raise BadInput(f"schema, '{item.name}': {_short(value)} where {wanted[0]} was expected")
        if self.actions == "box" and self.n is not None:
            raise BadInput("schema, 'n': belongs to discrete actions, and the schema says box")
        if self.actions == "discrete" and (self.low is not None or self.high is not None):
            raise BadInput("schema, 'low' and 'high': belong to a box, and the schema says discrete")
        used: dict[str, str] = {}
        for role in ROLES:
            for column in self.names(role):
                if column in used:
                    raise BadInput(f"schema, '{role}': column {column!r} is already '{used[column]}'")
                used[column] = role

    def names(self, role: str) -> tuple[str, ...]:
        """The columns that fill a role, in order."""
        value = getattr(self, role)
        return () if value is None else (value,) if isinstance(value, str) else value

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(role for role in ROLES if getattr(self, role) is not None)

    @property
    def discrete(self) -> bool | None:
        """Whether actions are choices; None where the schema does not say."""
        if self.actions is None:
            return True if self.n is not None else False if self.low is not None or self.high is not None else None
        return self.actions == "discrete"

    def settings(self) -> dict[str, Any]:
        """What it says of the task, in the words that `from_arrays` takes."""
        names = {"n": "n_actions", "low": "action_low", "high": "action_high"}
        keys = ("n", "low", "high", "horizon", "discount", "starts")
        return {names.get(key, key): getattr(self, key) for key in keys if getattr(self, key) is not None}


def _plain(value: Any) -> Any:
    """Lists as tuples and numpy's numbers as Python's."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _names(value: Any) -> bool:
    return _name(value) or (isinstance(value, tuple) and bool(value) and all(map(_name, value)))


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(value: Any) -> bool:
    return _number(value) or _row(value)


def _row(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(_number, value))


def _table(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(_row, value)) and len({*map(len, value)}) == 1


WANTED = {
    **{role: ("a column's name", _name) for role in ROLES},
    **{role: ("a column's name or a list of them", _names) for role in WIDE},
    "actions": ('"discrete" or "box"', lambda value: value in ("discrete", "box")),
    "n": ("a whole number", _count),
    "low": ("a number or one per action", _numbers),
    "high": ("a number or one per action", _numbers),
    "horizon": ("a whole number", _count),
    "discount": ("a number", _number),
    "starts": ("a list of observations of one width", _table),
}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def parse(text: str, name: str = "schema") -> Schema:
    """The schema in a TOML text; BadInput says which line or key is wrong."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # nesting without end exhausts the parser's stack
        reason = str(error).splitlines()[0] if str(error) else "too deep"
        raise BadInput(f"{name}: not a schema in TOML ({reason})") from None
    known = [item.name for item in fields(Schema)]
    for key in found:
        if key not in known:
            raise BadInput(f"{name}, {key!r}: no such key; there are {', '.join(known)}")
    try:
        return Schema(**found)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None


def text_of(schema: Schema, notes: Sequence[str] = ()) -> str:
    """The schema as TOML, with what was inferred and why as comments at its head."""
    lines = ["# " + "".join(c if c.isprintable() else repr(c)[1:-1] for c in note) for note in notes]
    for item in fields(schema):
        value = getattr(schema, item.name)
        if value is not None:
            lines.append(f"{item.name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def complete(
    columns: Mapping[str, np.ndarray], name: str, known: Schema | None = None, strict: bool = True
) -> tuple[Schema, list[str], list[str]]:
    """The schema with a column for each role that a name speaks for, the reasons, and what is not used.

    If `strict`, what is needed and missing is refused.
    """
    known = known or Schema()
    for role in known.roles:
        for column in known.names(role):
            if column not in columns:
                have = listed(list(columns)) or "nothing"
                text = f"missing, and the schema says it is '{role}'; there is {have}"
                raise BadInput(f"{name}, column {column!r}: {text}")
    used = {column for role in known.roles for column in known.names(role)}
    found: dict[str, Names] = {role: getattr(known, role) for role in known.roles}
    free = {column: value for column, value in columns.items() if column not in used}
    families = _families(free)
    reasons: list[str] = []
    for role in (role for role in ROLES if role not in found):
        names = _named(role, free, families, name)
        if names:
            found[role] = names
            many = not isinstance(names, str)
            text = f"{len(names)} columns, {names[0]!r} to {names[-1]!r}, by their names" if many else ""
            reasons.append(f"{role}: " + (text or f"column {names!r}, by its name"))
    for column in free:
        if column.lower() in ("done", "dones") and not {"terminated", "truncated"} & set(found):
            text = "does it mark true ends or time-outs? Say in a schema that it is 'terminated' or 'truncated'"
            if strict:
                raise BadInput(f"{name}, column {column!r}: {text}")
            reasons.append(f"column {column!r}: {text}")
    missing = [role for role in NEEDED if role not in found]
    if strict and missing:
        have = listed(list(columns)) or "nothing"
        raise BadInput(f"{name}, column '{missing[0]}': missing; there is {have}; say in a schema which it is")
    schema = replace(known, **found)
    used = {column for role in schema.roles for column in schema.names(role)}
    return schema, reasons, [f"column {column!r}: not used" for column in columns if column not in used]


def _named(role: str, columns: Mapping[str, Any], families: Mapping[str, Any], name: str) -> Names:
    """The column or columns whose names speak for the role, if they do so without doubt."""
    single = [column for column in columns if column.lower() in ALIASES[role]]
    several = [key for key in families if key.lower() in ALIASES[role]] if role in WIDE else []
    candidates = [*single, *(f"{key}_0.." for key in several)]
    if len(candidates) > 1:
        raise BadInput(
            f"{name}, column {candidates[1]!r}: may be '{role}', and so may {candidates[0]!r}; "
            f"say in a schema which is '{role}'"
        )
    return single[0] if single else _members(families[several[0]], several[0], name) if several else None


def whole(columns: Mapping[str, np.ndarray], schema: Schema) -> bool:
    """Whether the action columns hold whole numbers."""
    return all(np.asarray(columns[column]).dtype.kind in "iub" for column in schema.names("action"))


def listed(names: list[str]) -> str:
    """Names for a sentence, the first dozen of them."""
    shown = ", ".join(repr(name) if len(name) <= 60 else repr(name[:57] + "...") for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _families(columns: Mapping[str, Any]) -> dict[str, list[tuple[int, str]]]:
    """Columns that differ in a trailing number only, by what stands before it."""
    found: dict[str, list[tuple[int, str]]] = {}
    for column in columns:
        match = FAMILY.fullmatch(column)
        if match and len(match[2]) < 7:
            found.setdefault(match[1], []).append((int(match[2]), column))
    return found


def _members(family: list[tuple[int, str]], key: str, name: str) -> tuple[str, ...]:
    """The family's columns in the order of their numbers, none of which may be missing or there twice."""
    family = sorted(family)
    for place, (number, column) in enumerate(family, family[0][0] if family[0][0] < 2 else 0):
        if number != place:
            what = "there twice" if number < place else f"but none numbered {place}"
            raise BadInput(f"{name}, column {column!r}: {what} among the columns {key}_*; say in a schema which")
    return tuple(column for _, column in family)
