"""A first schema for a log: what the names of its columns say, what they hint at, and what only the user knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from .schema import ALIASES, NEEDED, QUESTION, Schema, complete, listed, whole

# Names that hint at a role, but may mean something else: for drafts, which a person reads, not for loading.
HINTS = {
    "action": ("a", "act", "control", "u"),
    "reward": ("r", "rew"),
    "episode": ("ep", "traj", "traj_id", "run", "run_id", "trial", "trial_id", "rollout", "session", "session_id"),
    "step": ("t", "time", "tick", "time_index", "hour", "day", "index_in_episode"),
    "next_obs": ("obs_next", "observation_next", "state_next"),
}
AFTER = ("next_{}", "{}_next", "next.{}", "{}.next")  # how a column's next value may be named


def draft(columns: Mapping[str, np.ndarray], name: str = "columns") -> tuple[Schema, list[str]]:
    """A schema for columns, given some of their rows or none, and what was inferred and why.

    Names that leave no doubt come first, then names that hint, then groups of names that begin alike; columns
    that nothing else uses are taken for the observation, and marked as a guess. What remains open is left out,
    and the notes ask it: which column is the action, whether `done` marks true ends or time-outs, whether
    whole-number actions are choices or amounts.
    """
    schema, notes, _ = complete(columns, name, strict=False)
    for guess in (_by_hints, _by_prefix, _by_what_is_left, _by_pairs):
        schema, more = guess(schema, list(columns))
        notes += more
    free = _free(schema, list(columns))
    for role in NEEDED:
        if getattr(schema, role) is None:
            have = listed(free) or "nothing"
            notes.append(f"{role}: no name speaks for it; write {role} = NAME, which may be one of {have}")
    if schema.action is not None and whole(columns, schema):
        notes.append(f"actions: {QUESTION}")
    return schema, notes + [f"column {column!r}: not used" for column in free]


def _free(schema: Schema, columns: list[str]) -> list[str]:
    used = {column for role in schema.roles for column in schema.names(role)}
    return [column for column in columns if column not in used]


def _by_hints(schema: Schema, columns: list[str]) -> tuple[Schema, list[str]]:
    """Roles that one column's name hints at."""
    notes = []
    for role, names in HINTS.items():
        hinted = [column for column in _free(schema, columns) if column.lower() in names]
        if getattr(schema, role) is None and len(hinted) == 1:
            schema = replace(schema, **{role: hinted[0]})
            notes.append(f"{role}: column {hinted[0]!r}, which its name hints at; check it")
    return schema, notes


def _by_prefix(schema: Schema, columns: list[str]) -> tuple[Schema, list[str]]:
    """Roles that several columns fill whose names begin alike: obs_speed, obs_height."""
    notes = []
    for role in ("next_obs", "obs", "action"):
        stems = tuple(f"{alias}{mark}" for alias in ALIASES[role] for mark in "_./-")
        family = tuple(column for column in _free(schema, columns) if column.lower().startswith(stems))
        if getattr(schema, role) is None and family:
            schema = replace(schema, **{role: family})
            notes.append(f"{role}: {_columns(family)}, by how their names begin; check them")
    return schema, notes


def _by_what_is_left(schema: Schema, columns: list[str]) -> tuple[Schema, list[str]]:
    """The observation: every column that nothing else uses, if all else that is needed was found."""
    free = [column for column in _free(schema, columns) if column.lower() not in ("done", "dones")]
    if schema.obs is not None or schema.action is None or schema.reward is None or not free:
        return schema, []
    after = {form.format(column) for column in free for form in AFTER}
    unused = tuple(column for column in free if column not in after)
    return replace(schema, obs=unused), [f"obs: {_columns(unused)}: all that nothing else uses. A guess; check it"]


def _by_pairs(schema: Schema, columns: list[str]) -> tuple[Schema, list[str]]:
    """Next observations, where every column of the observation has its own: level and next_level."""
    now, free = schema.names("obs"), set(_free(schema, columns))
    if schema.next_obs is not None or not now:
        return schema, []
    for form in AFTER:
        ahead = tuple(form.format(column) for column in now)
        if free.issuperset(ahead):
            return replace(schema, next_obs=ahead), [f"next_obs: {_columns(ahead)}, by the observation's names"]
    return schema, []


def _columns(names: tuple[str, ...]) -> str:
    return f"column {names[0]!r}" if len(names) == 1 else f"{len(names)} columns, {names[0]!r} to {names[-1]!r}"
