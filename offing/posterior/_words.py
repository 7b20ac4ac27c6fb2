"""What worlds make of each column, in words for people: the kinds that shape a net say it by number."""

from __future__ import annotations

from collections.abc import Hashable

from ._kinds import Kinds


def described(shape: Hashable) -> dict[str, tuple[int, ...]]:
    """How columns of the observation are read, and which are read so; amounts need no word."""
    assert isinstance(shape, Kinds)
    inside = lambda outputs: tuple(sorted({c for c in outputs if c < shape.width}))
    every = {
        "is not changed by any action": shape.exogenous,
        "follows from the next values of other columns": shape.derived,
        "stays the same all episode": shape.still,
        "goes on like a clock": inside(c for c, _ in shape.clocks),
        "is read by its logarithm": shape.logs,
        "takes few values and no others": inside(c for c, _ in shape.choices),
        "often has one and the same value": inside(c for c, _ in shape.gates),
        "counts in whole numbers": inside(shape.whole),
    }
    return {words: columns for words, columns in every.items() if columns}
