"""Which column is what: the schema, its TOML form, and what the names of columns say."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..types import BadInput
from ._wanted import ALIASES, ROLES, WANTED, WIDE, plain, short

Names = str | tuple[str, ...] | None
Numbers = Mapping[str, float] | None
Words = Mapping[str, str] | None
Choices = Mapping[str, tuple[str | int | float | bool, ...]] | None
NEEDED = ("obs", "action", "reward")
SHAPING = (
    *("unit", "time", "every", "per", "gap", "starts_when", "window", "yes_no", "categories", "cyclic", "lags"),
    *("differences", "exogenous", "leave_out", "fill", "choices", "action_at"),
)
NEEDS = {"time_format": "time", "every": "time", "per": "time", "gap": "time", "resample": "every"}
DRAFTS = "offing inspect DATA --write-schema FILE.toml drafts one"
FAMILY = re.compile(r"(.+?)[_.\[/-]?(\d+)\]?")  # obs_0, observation.0, obs[0], obs0
QUESTION = (
    'whole numbers: choices or amounts? State actions = "discrete" or actions = "box" in the schema '
    "(or give n_actions=K for choices, and floats for amounts)"
)


@dataclass(frozen=True)
class Schema:
    """Which column is what, in the log's own names; what is None is read off the log, and noted."""

    # Whose rows are whose, and when
    unit: Names = None  # columns that tell machines, patients or sites apart; "none": there is one alone
    time: str | None = None  # rows are ordered by it, within units
    time_format: str | None = None  # as in strptime, where a form is ambiguous: "%d.%m.%Y %H:%M"
    every: str | None = None  # resample to steps of this length: "15min"
    resample: str | None = None  # "last" or "mean" of what fell into a step
    # What is observed, done and earned
    obs: Names = None
    action: Names = None
    reward: str | None = None  # a column, or a formula over columns: "-cost - 10 * alarm - abs(next(temp) - temp)"
    terminated: str | None = None  # true ends: a column, or a formula
    truncated: str | None = None  # time-outs: a column, or a formula
    # Episodes
    episode: Names = None  # one column or several
    per: str | None = None  # "hour", "day", "week" or "month": time-outs at its turn
    gap: str | None = None  # "2h": after a longer pause an episode is a new one
    starts_when: str | None = None  # "batch changes", or a formula that is true in an episode's first row
    window: int | None = None  # one long run is cut into episodes of so many steps, which count as time-outs
    step: str | None = None
    next_obs: Names = None
    logp: str | None = None  # of the logged action under the behaviour
    # How columns become numbers
    yes_no: Names = None  # columns of yes and no, in whichever words
    categories: Names = None  # columns whose words become a number each
    other: Names = None  # categories whose unseen words are `other`; of the rest they are refused
    cyclic: Numbers = None  # {hour = 24}: sine and cosine; hour, weekday, month, ... may be read off `time`
    lags: Numbers = None  # {temp = 3}: values of the three rows before, too
    differences: Numbers = None  # {temp = 1}: the change since so many rows before, too
    exogenous: Names = None  # columns that no action changes: weather, price, the clock
    leave_out: Names = None  # columns that nothing is to use
    fill: Words = None  # {outdoor = "forward 4"}: or "mean", "indicator", "drop rows"
    # Actions
    actions: str | None = None  # "discrete" or "box"
    n: int | None = None  # choices, if discrete
    choices: Choices = None  # {speed = ["low", "mid", "high"]}: all there are, in order
    low: float | tuple[float, ...] | None = None  # of each action, if a box
    high: float | tuple[float, ...] | None = None
    action_at: str | None = None  # "next row": the action of a row stands in the row after it
    # The task
    horizon: int | None = None
    discount: float | None = None
    starts: tuple[tuple[float, ...], ...] | None = None  # observations that episodes begin in

    def __post_init__(self) -> None:
        for item in fields(self):
            value = plain(getattr(self, item.name))
            object.__setattr__(self, item.name, value)
            wanted = WANTED[item.name]
            if value is not None and not wanted[1](value):
                raise BadInput(f"schema, '{item.name}': {short(value)} where {wanted[0]} was expected")
        if self.actions == "box" and (self.n is not None or self.choices is not None):
            raise BadInput("schema, 'n' and 'choices': belong to discrete actions, and the schema says box")
        if self.actions == "discrete" and (self.low is not None or self.high is not None):
            raise BadInput("schema, 'low' and 'high': belong to a box, and the schema says discrete")
        for key, needs in NEEDS.items():
            if getattr(self, key) is not None and getattr(self, needs) is None:
                raise BadInput(f"schema, '{key}': needs '{needs}', which names the column of times")
        if self.next_obs is not None and (self.every or self.lags or self.differences):
            raise BadInput(
                "schema, 'next_obs': cannot stand beside 'every', 'lags' or 'differences'; leave it out"
            )
        used: dict[str, str] = {}
        for role in ROLES:
            for column in self.names(role):
                if column in used:
                    text = f"schema, '{role}': column {column!r} is already '{used[column]}'; take it out of one"
                    more = f', or write a formula: "1 * {column}"' if role == "reward" else ""
                    raise BadInput(text + more)
                used[column] = role

    @property
    def shapes(self) -> bool:
        """Whether it asks for more than columns of numbers: rows are then ordered, filled and encoded."""
        return any(getattr(self, key) is not None for key in SHAPING) or isinstance(self.episode, tuple)

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


def parse(text: str, name: str = "schema") -> Schema:
    """The schema in a TOML text; BadInput says which line or key is wrong."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # nesting without end exhausts the parser's stack
        reason = str(error).splitlines()[0] if str(error) else "too deep"
        raise BadInput(f"{name}: not a schema in TOML ({reason})") from None
    known = [item.name for item in fields(Schema)]
    for key in table:
        if key not in known:
            raise BadInput(f"{name}, {key!r}: no such key; there are {', '.join(known)}")
    try:
        return Schema(**table)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None


def text_of(schema: Schema, notes: Sequence[str] = ()) -> str:
    """The schema as TOML: the reason for a key stands above it, what belongs to no key at the head."""
    clean = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in note) for note in notes]
    values = {item.name: getattr(schema, item.name) for item in fields(schema)}
    used = {key: value for key, value in values.items() if value is not None}
    about = {key: [note for note in clean if note.startswith(f"{key}: ")] for key in used}
    placed = {note for each in about.values() for note in each}
    lines = [f"# {note}" for note in clean if note not in placed]
    for key, value in used.items():
        lines += [f"# {note.removeprefix(f'{key}: ')}" for note in about[key]]
        lines.append(f"{key} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        bare = lambda key: key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)
        return "{" + ", ".join(f"{bare(key)} = {_toml(item)}" for key, item in value.items()) + "}"
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
    roles: dict[str, Names] = {role: getattr(known, role) for role in known.roles}
    free = {column: value for column, value in columns.items() if column not in used}
    families = _families(free)
    reasons: list[str] = []
    for role in (role for role in ROLES if role not in roles):
        names = _named(role, free, families, name)
        if names:
            roles[role] = names
            many = not isinstance(names, str)
            text = f"{len(names)} columns, {names[0]!r} to {names[-1]!r}, by their names" if many else ""
            reasons.append(f"{role}: " + (text or f"column {names!r}, by its name"))
    for column in free:
        if column.lower() in ("done", "dones") and not {"terminated", "truncated"} & set(roles):
            text = "does it mark true ends or time-outs? Say in a schema that it is 'terminated' or 'truncated'"
            if strict:
                raise BadInput(f"{name}, column {column!r}: {text}")
            reasons.append(f"column {column!r}: {text}")
    missing = [role for role in NEEDED if role not in roles]
    if strict and missing:
        have = listed(list(columns)) or "nothing"
        raise BadInput(
            f"{name}, column '{missing[0]}': missing; there is {have}; say in a schema which it is ({DRAFTS})"
        )
    schema = replace(known, **roles)
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
    families: dict[str, list[tuple[int, str]]] = {}
    for column in columns:
        match = FAMILY.fullmatch(column)
        if match and len(match[2]) < 7:
            families.setdefault(match[1], []).append((int(match[2]), column))
    return families


def _members(family: list[tuple[int, str]], key: str, name: str) -> tuple[str, ...]:
    """The family's columns in the order of their numbers, none of which may be missing or there twice."""
    family = sorted(family)
    for place, (number, column) in enumerate(family, family[0][0] if family[0][0] < 2 else 0):
        if number != place:
            what = "there twice" if number < place else f"but none numbered {place}"
            raise BadInput(f"{name}, column {column!r}: {what} among the columns {key}_*; say in a schema which")
    return tuple(column for _, column in family)
