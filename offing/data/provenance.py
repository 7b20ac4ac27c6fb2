"""Where the rows of a log stood in the table that they came from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .facts import RewardPart


class Provenance(NamedTuple):
    """Unit and time of every row, and what was met on the way from the table to the log."""

    unit: np.ndarray  # [N]  int32, places in `units`; zeros where units are not told apart
    units: tuple[str, ...]  # their names
    time: np.ndarray | None  # [N]  microseconds, or numbers as they are
    dated: bool  # whether `time` holds moments
    backwards: int  # rows of a unit that stood before one of an earlier time
    copies: int  # rows that were copies of the one before, and were dropped
    parts: tuple[RewardPart, ...]  # what the reward adds up

    def at(self, rows: np.ndarray) -> Provenance:
        """The same of these rows, in their order."""
        return self._replace(unit=self.unit[rows], time=None if self.time is None else self.time[rows])
