"""What may stand at each key of a schema: the words for it in a message, and the test of a value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeGuard

import numpy as np

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


def plain(value: object) -> object:
    """Lists as tuples and numpy's numbers as Python's."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)


def _names(value: object) -> bool:
    return _name(value) or (isinstance(value, tuple) and bool(value) and all(map(_name, value)))


def _number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(value: object) -> bool:
    return _number(value) or _row(value)


def _row(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(_number, value))


def _table(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(_row, value)) and len({*map(len, value)}) == 1


FILLING = re.compile(r"(forward)\s*(\d+)?|mean|indicator|drop rows")


def _filling(value: object) -> bool:
    return isinstance(value, str) and FILLING.fullmatch(value) is not None


def _mapping(of: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, dict) and bool(value) and all(map(of, value.values()))


def _choices(value: object) -> bool:
    return isinstance(value, tuple) and 2 <= len(value) <= 1_000 and len(set(value)) == len(value)


def _one_of(*words: str) -> tuple[str, Callable[[object], bool]]:
    return " or ".join(f'"{word}"' for word in words), lambda value: value in words


def _span(value: object) -> bool:
    return isinstance(value, str) and span(value) is not None


SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|sec|min|m|h|hour|hours|d|day|days|w|ms)?\s*")
UNITS = {"ms": 1e-3, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
UNITS |= {"hour": 3600, "hours": 3600, "day": 86_400, "days": 86_400}


def span(text: str) -> float | None:
    """Seconds that a text such as "15min" or "2h" means, or the number itself where times are numbers."""
    match = SPAN.fullmatch(text)
    if not match or float(match[1]) <= 0:
        return None
    return float(match[1]) * UNITS[match[2] or "s"]


_PAUSE = ('a length of time such as "15min", "2h" or "1d"', _span)
_NAMES = ("a column's name or a list of them", _names)
WANTED: dict[str, tuple[str, Callable[[object], bool]]] = {
    **{role: ("a column's name", _name) for role in ROLES},
    **{role: _NAMES for role in WIDE},
    **{key: _NAMES for key in ("unit", "episode", "yes_no", "categories", "other", "exogenous", "leave_out")},
    "time": ("a column's name", _name),
    "time_format": ('a form such as "%d.%m.%Y %H:%M"', lambda value: _name(value) and "%" in value),
    "every": _PAUSE,
    "gap": _PAUSE,
    "resample": _one_of("last", "mean"),
    "per": _one_of("hour", "day", "week", "month"),
    "starts_when": ('"NAME changes" or a formula', _name),
    "window": ("a whole number, 2 or more", lambda value: _count(value) and value >= 2),
    "cyclic": ("a table such as {hour = 24}", _mapping(lambda value: _number(value) and value > 0)),
    "lags": ("a table such as {temp = 3}", _mapping(lambda value: _count(value) and 1 <= value <= 100)),
    "differences": ("a table such as {temp = 1}", _mapping(lambda value: _count(value) and 1 <= value <= 100)),
    "fill": ('"forward 4", "mean", "indicator" or "drop rows" for each column', _mapping(_filling)),
    "choices": ('a table such as {speed = ["low", "high"]}', _mapping(_choices)),
    "action_at": _one_of("this row", "next row"),
    "actions": _one_of("discrete", "box"),
    "n": ("a whole number", _count),
    "low": ("a number or one per action", _numbers),
    "high": ("a number or one per action", _numbers),
    "horizon": ("a whole number", _count),
    "discount": ("a number", _number),
    "starts": ("a list of observations of one width", _table),
}


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
