"""What kind of number each column is, asked of the log before any net is trained.

Columns of the next observation, and the reward as the last of them, are told apart by the values that they take:

    still    what it was, in every row: which machine it is, a number that was set for good
    clock    the value that always follows on the one before: an hour of the day, a counter
    choice   a few values and no others: a switch, a gear, a reward that is paid or not; or which of several
             columns is 1, where exactly one always is (`_category`)
    gate     one value again and again, and others besides: a set-point that stays where it is until it jumps, a
             force that is nought unless something touches. Whether it leaves that value is drawn first
    wall     the largest or smallest value again and again: a limit of speed, the end of a rail
    whole    whole numbers, many of them: counts
    amount   everything else

A Gaussian's mean lies between two values of a switch and beside the usual value of a force: a world that goes on
from there is soon where no log has been.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..data.categories import Groups, categories, parted
from ..types import Array, Dataset
from ._category import places

CLOCK = 512  # values of a clock, at most
TURNS = 4  # rows to a value of it, at least, over all of them: else anything follows once on anything
SAME = 1e-6  # share of a column's range by which what follows on a value may differ and be the same
ANEW = 0.95  # share of rows whose value was met in other episodes too, and at whose value actions differed
STRETCH = 64  # rows that are taken for an episode where episodes are unknown
GLANCE = 8_192  # rows that show whether a column takes so few
FEW = 8  # values of a column that takes no others
TIMES = 25  # rows to a value, at least: in a short log every column takes few
OFTEN = 0.05  # share of rows at one value, from which on a column has a gate; and of rows elsewhere
TIES = 3  # rows that share the very largest or smallest value of a column: it stops there, and is a wall
BY_CHANCE = 1e-3  # probability that all of the rows nearest to an edge ended, if ends had nothing to do with it
OWN_ENDS = 0.2  # share of all ends that lie beyond an edge which is one
STAYS, USUAL = "stays", "usual"


class Kinds(NamedTuple):
    """The kinds of a log's columns; hashable, since they shape the program. Outputs 0 ... S - 1 are the columns of
    the next observation, output S is the reward.
    """

    width: int  # S
    terminates: bool = False  # whether anything in the log ended
    walls: bool = False  # whether any column stops
    gates: tuple[tuple[int, str], ...] = ()  # outputs with a gate, and whether they stay or take a usual value
    choices: tuple[tuple[int, int], ...] = ()  # outputs that choose, and among how many values
    whole: tuple[int, ...] = ()
    history: str = "none"  # what a world remembers of an episode (`_history`)
    logs: tuple[int, ...] = ()  # columns that worlds read by their logarithm (`_magnitude`)
    exogenous: tuple[int, ...] = ()  # columns that no action changes (`_exogenous`)
    still: tuple[int, ...] = ()
    clocks: tuple[tuple[int, int], ...] = ()  # and how many values they take
    derived: tuple[int, ...] = ()  # columns whose next value follows from those of others (`_derived`)
    groups: Groups = ()  # columns of which exactly one is 1; the first of them has the choice
    settled: bool = False  # whether the same always led to the same (`_settled`)

    @property
    def leads(self) -> tuple[int, ...]:
        """The columns whose next values derived ones may read; none where nothing is derived."""
        if not self.derived:
            return ()
        return tuple(c for c in range(self.width) if c not in self.derived and c not in self.still)

    @property
    def parted(self) -> bool:
        """Whether not every column may read everything (`_masks`)."""
        return bool(self.exogenous or self.derived)

    @property
    def choosing(self) -> set[int]:
        """The columns that are chosen, those of categories included."""
        return {c for c, _ in self.choices} | {c for group in self.groups for c in group}

    def of_state(self) -> Block:
        return Block(
            self.width,
            tuple((c, kind) for c, kind in self.gates if c < self.width),
            tuple((c, n) for c, n in self.choices if c < self.width),
            self.still,
            self.clocks,
            self.groups,
        )

    def of_reward(self) -> Block:
        return Block(
            1,
            tuple((0, kind) for c, kind in self.gates if c == self.width),
            tuple((0, n) for c, n in self.choices if c == self.width),
        )


class Block(NamedTuple):
    """The kinds of the outputs of one net."""

    width: int
    gates: tuple[tuple[int, str], ...]
    choices: tuple[tuple[int, int], ...]
    still: tuple[int, ...] = ()
    clocks: tuple[tuple[int, int], ...] = ()
    groups: Groups = ()

    def group(self, column: int) -> tuple[int, ...]:
        """The columns of the category whose choice is written down with this one, if it is one's."""
        return next((group for group in self.groups if group[0] == column), ())

    @property
    def most(self) -> int:
        """Values of the output that takes most, among those that choose."""
        return max((n for _, n in self.choices), default=0)

    @property
    def extras(self) -> int:
        """Logits beside means and variances: one a gate, `most` a choice."""
        return len(self.gates) + len(self.choices) * self.most

    @property
    def ways(self) -> int:
        """Outputs of which something is drawn that is not an amount: gates, then choices."""
        return len(self.gates) + len(self.choices)


class Values(NamedTuple):
    """The values behind the kinds, as numbers."""

    walls: np.ndarray | Array  # [2, S]  where columns stop, infinite where they do not
    usual: np.ndarray | Array  # [G]  the usual value of each gate; of one that stays, unused
    levels: np.ndarray | Array  # [C, K]  values of each choice, the last repeated
    unit: np.ndarray | Array  # [S]  of columns that are read by their logarithm; 1 for all others
    edges: np.ndarray | Array  # [2, S]  beyond which episodes have ended, infinite where there is none
    clocks: np.ndarray | Array  # [T, 2, K]  values of each clock and what follows on them, the last repeated

    def beyond(self, state: Array) -> Array:
        """Whether states [..., S] lie beyond an edge at which episodes end [...]."""
        return jnp.any((state < self.edges[0]) | (state > self.edges[1]), -1)


class Targets(NamedTuple):
    """Every row in terms of the kinds."""

    amount: np.ndarray | Array  # [N, S + 1]  1 where the output is an amount, so that means and variances learn it
    moved: np.ndarray | Array  # [N, G]  1 where a gate was left
    chosen: np.ndarray | Array  # [N, C]  which value of a choice
    held: (
        np.ndarray | Array
    )  # [N, S + 1]  1 or -1 where the output stands at a wall, high or low; [N, 0] if none does


def kinds_of(
    data: Dataset,
    history: str = "none",
    logs: tuple[int, ...] = (),
    unit: np.ndarray | None = None,
    exogenous: tuple[int, ...] = (),
) -> tuple[Kinds, Values, Targets]:
    """The kinds of the rows in use, the values behind them, and all rows in terms of them.

    Columns in `logs` are there as their logarithms already, to `unit`.
    """
    rows, steps = data.rows, data.steps
    obs, after = np.asarray(steps.obs), np.asarray(steps.next_obs)
    reward = np.asarray(steps.reward)
    width = obs.shape[1]
    unit = np.ones(width, np.float32) if unit is None else np.asarray(unit, np.float32)
    sort, groups = Sorted(), categories(obs[:rows], after[:rows])
    halved = parted(groups, np.isin(np.arange(width), exogenous))  # a schema names some of its columns alone
    groups = tuple(group for group in groups if group not in halved)
    firsts = {group[0]: np.arange(len(group), dtype=np.float32) for group in groups}
    inside = {c for group in groups for c in group}
    other = Others(np.asarray(data.episode)[:rows], np.asarray(steps.action)[:rows])
    for c in range(width):
        if c in inside:
            sort.choices |= {c: firsts[c]} if c in firsts else {}
            continue
        now, next_ = obs[:rows, c], after[:rows, c]
        follows = successor(now, next_, other)
        sort.put(c, now, next_, follows, unit[c] * np.expm1(next_) if c in logs else next_)
    sort.put(width, None, reward[:rows], None, None)
    walls = stops(after[:rows])
    kinds = Kinds(
        width,
        bool(np.any(np.asarray(steps.done)[:rows])),
        bool(np.isfinite(walls).any()),
        tuple((c, kind) for c, (kind, _) in sort.gates.items()),
        tuple((c, len(levels)) for c, levels in sort.choices.items()),
        tuple(sort.whole),
        history,
        logs,
        exogenous,
        tuple(sort.still),
        tuple((c, len(table)) for c, table in sort.clocks.items()),
        groups=groups,
    )
    most = max(map(len, sort.choices.values()), default=0)
    turns = max(map(len, sort.clocks.values()), default=0)
    levels = [np.pad(v, (0, most - len(v)), "edge") for v in sort.choices.values()]
    tables = [np.pad(v, ((0, turns - len(v)), (0, 0)), "edge").T for v in sort.clocks.values()]
    values = Values(
        walls,
        np.asarray([usual for _, usual in sort.gates.values()], np.float32),
        np.asarray(levels, np.float32).reshape(len(levels), most),
        unit,
        ending_edges(data),
        np.asarray(tables, np.float32).reshape(len(tables), 2, turns),
    )
    return kinds, values, targets(kinds, values, obs, np.concatenate([after, reward[:, None]], 1))


@dataclass
class Sorted:
    """Columns by their kind, with the values behind each."""

    still: list[int] = field(default_factory=list)
    clocks: dict[int, np.ndarray] = field(default_factory=dict)
    choices: dict[int, np.ndarray] = field(default_factory=dict)
    gates: dict[int, tuple[str, float]] = field(default_factory=dict)
    whole: list[int] = field(default_factory=list)

    def put(
        self,
        column: int,
        now: np.ndarray | None,
        after: np.ndarray,
        follows: np.ndarray | None,
        plain: np.ndarray | None,
    ) -> None:
        """Finds the kind of a column, of which `plain` is `after` in the log's units; the reward has neither."""
        if follows is not None and not len(follows):
            self.still.append(column)
        elif follows is not None:
            self.clocks[column] = follows
        elif (values := few_values(after, now)) is not None:
            self.choices[column] = values
        else:
            if plain is not None and _whole(plain):
                self.whole.append(column)
            if (gate := _gate(after, now)) is not None:
                self.gates[column] = gate


def targets(kinds: Kinds, values: Values, obs: np.ndarray, after: np.ndarray) -> Targets:
    """Rows in terms of the kinds: obs [N, S], after [N, S + 1] with the reward last."""
    rows, width = len(obs), kinds.width
    amount = np.ones((rows, width + 1), np.float32)
    amount[:, [*kinds.still, *(c for c, _ in kinds.clocks)]] = 0.0
    moved = np.zeros((rows, len(kinds.gates)), np.float32)
    for g, (c, kind) in enumerate(kinds.gates):
        stands = after[:, c] == (obs[:, c] if kind == STAYS else np.asarray(values.usual)[g])
        moved[:, g] = ~stands
        amount[:, c] = ~stands
    chosen = np.zeros((rows, len(kinds.choices)), np.int32)
    for i, (c, n) in enumerate(kinds.choices):
        level, group = np.asarray(values.levels)[i, :n], kinds.of_state().group(c)
        chosen[:, i] = places(group, after) if group else np.abs(after[:, c, None] - level).argmin(1)
        amount[:, group or c] = 0.0
    held = np.zeros((rows, 0), np.float32)
    if kinds.walls:
        low, high = np.asarray(values.walls)
        sides = (after[:, :-1] == high).astype(np.float32) - (after[:, :-1] == low)
        held = np.pad(sides, ((0, 0), (0, 1)))
    return Targets(amount, moved, chosen, held)


class Others(NamedTuple):
    """What else stands in the rows of a column."""

    episode: np.ndarray  # [N]
    action: np.ndarray  # [N, A]

    @property
    def half(self) -> np.ndarray:
        """Every second episode, or where there are none every second stretch of rows [N]."""
        place = self.episode if self.episode[0] >= 0 else np.arange(len(self.episode)) // STRETCH
        return np.cumsum(np.r_[0, place[1:] != place[:-1]]) % 2 == 0

    def differ(self, index: np.ndarray) -> np.ndarray:
        """Whether actions differed where a column stood at the value of that index [N]."""
        low, high = (np.full((index.max() + 1, self.action.shape[1]), edge) for edge in (np.inf, -np.inf))
        np.minimum.at(low, index, self.action)
        np.maximum.at(high, index, self.action)
        return np.any(high > low, 1)[index]


def successor(obs: np.ndarray, after: np.ndarray, others: Others) -> np.ndarray | None:
    """Every value of a column and what always follows on it [K, 2]; none of them where it never changes, and None
    where nothing follows for certain.

    What half of the episodes teach must hold in the others too, whatever was done: after a transient anything
    follows once on anything, and what a controller does in the same way every time follows from what it does.
    """
    some = slice(None, None, max(1, len(obs) // GLANCE))
    if np.array_equal(obs[some], after[some]) and np.array_equal(obs, after):
        return np.zeros((0, 2))
    if len(np.unique(obs[some])) > CLOCK:
        return None
    values, index = np.unique(obs, return_inverse=True)
    if len(values) > CLOCK or TURNS * len(values) > len(obs):
        return None
    least, most = np.full(len(values), np.inf), np.full(len(values), -np.inf)
    np.minimum.at(least, index, after)
    np.maximum.at(most, index, after)
    if np.any(most - least > SAME * np.ptp(after)) or np.mean(others.differ(index)) < ANEW:
        return None
    half = others.half
    met = [np.bincount(index[part], minlength=len(values)) > 0 for part in (half, ~half)]
    held = [np.mean(met[1 - i][index[part]]) if part.any() else 0.0 for i, part in enumerate((half, ~half))]
    return np.stack([values, least], 1) if min(held) >= ANEW else None


def few_values(after: np.ndarray, obs: np.ndarray | None) -> np.ndarray | None:
    """The values of a column that takes few and no others, or None."""
    few = min(FEW, len(after) // TIMES)
    if len(np.unique(after[:: max(1, len(after) // 1_000)])) > few:  # a glance shows most to be amounts
        return None
    seen = np.unique(after) if obs is None else np.union1d(obs, after)
    return seen.astype(np.float32) if 0 < len(seen) <= max(few, 1) else None


def _whole(values: np.ndarray) -> bool:
    """Whether these are whole numbers, up to rounding."""
    return bool(np.all(np.abs(values - np.round(values)) <= 1e-6 * np.abs(values)))


def _gate(after: np.ndarray, obs: np.ndarray | None) -> tuple[str, float] | None:
    """How a column stands at one value, and at which, if it often does and often does not."""
    often = lambda share: OFTEN <= share <= 1 - max(OFTEN / 10, TIMES / len(after))
    if obs is not None:
        stays = after == obs
        seen, counts = np.unique(after[stays], return_counts=True)
        if often(stays.mean()) and counts.max() < 0.9 * stays.sum():  # else it stands at one value: see below
            return STAYS, 0.0
    seen, counts = np.unique(after, return_counts=True)
    most = counts.argmax()
    return (USUAL, float(seen[most])) if often(counts[most] / len(after)) else None


def stops(after: np.ndarray) -> np.ndarray:
    """Where each column stops [2, S], or infinity.

    A continuous quantity takes its very largest value once, unless something holds it there. Nets round such a
    corner off, and can be far out where the log says exactly where the state will be.
    """
    low, high = after.min(0), after.max(0)
    many = lambda edge: np.sum(after == edge, 0) >= TIES
    walls = [np.where(many(low), low, -np.inf), np.where(many(high), high, np.inf)]
    return np.stack(walls).astype(np.float32)


def ending_edges(data: Dataset) -> np.ndarray:
    """Beyond which values of each column episodes end [2, S], low and high; infinite where none is seen to.

    Beyond any row after which an episode went on there are rows after which it ended: more than would be there by
    chance, and a good part of all ends. A column that is merely large when something else ends an episode, as a
    speed is, has few of them there. The edge lies halfway between the last row on one side and the first on the
    other.
    """
    rows = data.rows
    after, done = np.asarray(data.steps.next_obs)[:rows], np.asarray(data.steps.done)[:rows] > 0
    edges = np.stack([np.full(after.shape[1], -np.inf), np.full(after.shape[1], np.inf)]).astype(np.float32)
    if done.all() or not done.any():
        return edges
    least = max(TIES, np.log(BY_CHANCE) / np.log(done.mean()), OWN_ENDS * done.sum())
    for side, sign in enumerate((-1.0, 1.0)):
        went_on, ended = sign * after[~done], sign * after[done]
        last = went_on.max(0)
        first = np.where(ended > last, ended, np.inf).min(0)
        seen = np.sum(ended > last, 0) >= least
        edges[side] = np.where(seen, sign * (last + first) / 2, edges[side])
    return edges
