"""Numbers and lists in sentences, the same on every page and terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def number(x: Any) -> str:
    """Three significant digits or all of the whole ones, with thousands separated: -1,239, 12.3, 0.00457."""
    if isinstance(x, bool) or not isinstance(x, (int, float, np.number)):
        return "–" if x is None else str(x)
    x = float(x) + 0.0  # no negative zero
    if not np.isfinite(x):
        return "not a number" if np.isnan(x) else "infinite" if x > 0 else "minus infinite"
    if x != 0 and not 1e-4 <= abs(x) < 1e9:
        return f"{x:.3g}"
    return f"{x:,.0f}" if abs(x) >= 99.95 else f"{x:.3g}"


def percent(share: Any, limit: float = 0.0) -> str:
    """A share with as few digits as tell it from 0, from 1 and from its limit."""
    if share is None or not np.isfinite(share):
        return number(share)
    if 0.999 < share < 1:
        return "over 99.9%"
    if 0 < share < 0.001:
        return "under 0.1%"
    return distinct(share, 0.0, 1.0, limit)


def distinct(share: float, *marks: float) -> str:
    """A share with as few digits as tell it from each of the marks that it is not equal to."""
    others = [mark for mark in marks if mark != share]
    texts = (f"{share:,.{digits}%}" for digits in range(9))
    return next((t for d, t in enumerate(texts) if all(t != f"{o:.{d}%}" for o in others)), f"{share:.9%}")


def listed(parts: Sequence[str]) -> str:
    """Clauses as one: `a`, `a, and b`."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f", and {parts[-1]}"


def capital(text: str) -> str:
    """The text as a sentence begins."""
    return text[:1].upper() + text[1:]
