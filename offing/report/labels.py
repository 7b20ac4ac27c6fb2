"""Settings in a few words: which hyperparameters differ, and what tells one setting from the others."""

from __future__ import annotations

from collections.abc import Sequence

from ..hypers import Settings, Value
from ..wording import number

LONGEST = 26  # letters that tell a setting from others; where more are needed it is numbered


def differing(tried: Sequence[Settings]) -> list[str]:
    """Names of the hyperparameters that are not the same in all settings."""
    names = [n for n, value in tried[0].items() if not isinstance(value, (dict, list, tuple))]
    return [name for name in names if len({repr(setting.get(name)) for setting in tried}) > 1]


def differences(tried: Sequence[Settings]) -> list[str]:
    """What tells each setting from the others in a few words, or else its number."""
    names = differing(tried)
    labels = [", ".join(f"{name} {shown(setting.get(name))}" for name in names) for setting in tried]
    if all(0 < len(label) <= LONGEST for label in labels):
        return labels
    return [f"setting {i + 1}" for i in range(len(tried))]


def shown(value: Value) -> str:
    """A hyperparameter as it was given."""
    return f"{value:g}" if isinstance(value, float) else number(value)
