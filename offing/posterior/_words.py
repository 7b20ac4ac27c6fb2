"""What worlds make of each column, in words for people: the kinds that shape a net say it by number."""

from __future__ import annotations

from collections.abc import Hashable

from ._kinds import STAYS, USUAL, Kinds


def described(shape: Hashable) -> dict[str, tuple[int, ...]]:
    """How columns of the observation are read, and which are read so; amounts need no word."""
    assert isinstance(shape, Kinds)
    inside = lambda outputs: tuple(sorted({c for c in outputs if c < shape.width}))
    every = {
        "not changed by any action": shape.exogenous,
        "drawn after the others, from which it follows": shape.derived,
        "the same all episode": shape.still,
        "a clock": inside(c for c, _ in shape.clocks),
        "read by its logarithm": shape.logs,
        "of few values and no others": inside(c for c, _ in shape.choices if not shape.of_state().group(c)),
        "one category, of which one column is 1": inside(c for group in shape.groups for c in group),
        "often unchanged": inside(c for c, kind in shape.gates if kind == STAYS),
        "often at one value": inside(c for c, kind in shape.gates if kind == USUAL),
        "a whole number": inside(shape.whole),
        "where the same always led to the same": tuple(range(shape.width)) if shape.settled else (),
    }
    return {words: columns for words, columns in every.items() if columns}
