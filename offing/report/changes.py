"""What new rows changed: the logs that a run learned from, and what was promised before them and is now."""

from __future__ import annotations

from dataclasses import dataclass

from ..data import Part
from ..wording import number, percent


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a run promised of the policy that it chose."""

    run: str
    data: str
    rows: int
    verdict: str
    median: float
    interval: tuple[float, float]
    level: float
    pil: float

    @property
    def width(self) -> float:
        return self.interval[1] - self.interval[0]

    def words(self) -> str:
        """The promise in a clause."""
        low, high = map(number, self.interval)
        return f"{self.verdict}, {number(self.median)} an episode, {self.level:.0%} between {low} and {high}"


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The parts of a log, the earliest first, and the promise with and without the later ones."""

    parts: tuple[Part, ...]
    now: Promise
    before: Promise | None = None  # None: no earlier run is known

    def sentences(self) -> list[str]:
        """What the new rows changed, in words."""
        lines = [f"{part.name}: {part.rows:,} rows, whose episodes earned {_earned(part)}." for part in self.parts]
        if self.before is None:
            return [*lines, "What was promised before the new rows is not known, since no earlier run was named."]
        before, now = self.before, self.now
        lines += [
            f"Promised before, from {before.rows:,} rows: {before.words()}.",
            f"Promised now, from {now.rows:,} rows: {now.words()}. Each is of the policy that was chosen then.",
        ]
        if before.width > 0:
            lines.append(f"The interval is {percent(now.width / before.width)} as wide as it was.")
        return [*lines, f"The loss of information (PIL) was {number(before.pil)}, and is {number(now.pil)}."]


def _earned(part: Part) -> str:
    about = "about " if part.behaviour.estimated else ""
    return f"{about}{number(part.behaviour.mean)} on average"
