"""What a task of the suite is: many episodes side by side, in plain numpy.

The state of N episodes is a dict of arrays [N] or [N, K]. `step` draws what happens next, `observe` says what
of it the columns of a log show; the rest is hidden. An episode that has ended may be stepped on: nobody counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

State = dict[str, np.ndarray]
Act = Callable[[np.ndarray], np.ndarray]  # observations [N, S] -> choices [N] or amounts [N, A]

KINDS = {
    "jumps": "a column that jumps at random",
    "coin": "a random column of 0 and 1",
    "heavy tails": "noise with heavy tails",
    "noise by state": "noise that depends on the state",
    "exogenous": "a clock, a price or weather: columns that no action changes",
    "paid for what comes": "a reward paid for what comes",
    "goal": "a goal that pays and ends",
    "limit": "a limit that costs and ends",
    "walls": "walls: columns that stop",
    "constant and collinear": "columns that are constant, or follow from others",
    "few values": "columns that take few values",
    "orders of magnitude": "raw counts over several orders of magnitude",
    "hidden velocities": "velocities that no column shows",
    "hidden constants": "constants of an episode that no column shows",
    "many columns": "sixty columns",
    "two columns": "two columns",
    "discrete": "choices",
    "continuous": "amounts",
    "few long": "few long episodes",
    "many short": "many short episodes",
    "deterministic and rough": "no chance, and dynamics that are hard to fit",
    "clone solves": "a clone of the behaviour solves it already",
    "nothing good": "nothing in the log is any good",
}


class Choices(NamedTuple):
    """Actions 0 ... n - 1."""

    n: int

    @property
    def width(self) -> int:
        return self.n


class Amounts(NamedTuple):
    """Actions [A] between `low` and `high`."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def width(self) -> int:
        return len(self.low)


class Moved(NamedTuple):
    """What came of one step of N episodes."""

    state: State
    reward: np.ndarray  # [N]
    ended: np.ndarray  # [N]  truly, not by the horizon


class Task:
    """A true task. Its class says what it is; its docstring, what happens in it."""

    name: str
    kinds: tuple[str, ...]
    why: str
    horizon: int
    columns: tuple[str, ...]
    actions: Choices | Amounts
    wide: tuple[str, ...] = ()  # columns whose logarithm a linear policy reads
    jumping: tuple[str, ...] = ()  # columns that jump at random
    behaviours: tuple[float, ...] = (0.1, 0.35, 0.6, 0.8)  # which of the pool write logs, by rank: 0 worst, 1 best
    noise: float = 0.25  # how often a behaviour tries something else

    @property
    def discount(self) -> float:
        """Of the value: at most a tenth of its weight lies beyond the horizon, where estimators like FQE look."""
        return min(0.99, round(0.1 ** (1 / self.horizon), 3))

    def start(self, rng: np.random.Generator, episodes: int) -> State:
        """The state that so many episodes begin in."""
        raise NotImplementedError

    def step(self, state: State, action: np.ndarray, rng: np.random.Generator) -> Moved:
        """State, and actions [N] (choices) or [N, A] (amounts), to what comes of them."""
        raise NotImplementedError

    def observe(self, state: State) -> np.ndarray:
        """The columns [N, S] that a log shows of a state."""
        return np.stack([state[name] for name in self.columns], 1)

    def scripts(self) -> dict[str, Act]:
        """Controllers made by hand, good and bad."""
        raise NotImplementedError

    def column(self, obs: np.ndarray, name: str) -> np.ndarray:
        """One column [N] of observations, by its name."""
        return np.asarray(obs, np.float64)[:, self.columns.index(name)]

    def constant(self, *amounts: float) -> Act:
        """The policy that always does the same."""
        if isinstance(self.actions, Choices):
            return lambda obs: np.full(len(obs), int(amounts[0]))
        return lambda obs: np.tile(np.asarray(amounts, np.float64), (len(obs), 1))

    def amounts(self, *parts: np.ndarray) -> np.ndarray:
        """Columns of amounts, each [N], as actions within their range [N, A]."""
        assert isinstance(self.actions, Amounts)
        return np.clip(np.stack(np.broadcast_arrays(*parts), 1), self.actions.low, self.actions.high)


def never(reward: np.ndarray) -> np.ndarray:
    """No episode ends."""
    return np.zeros(len(reward), bool)
