"""What the numbers of a log are: the table's own columns, how each became numbers, and the way back.

A `Columns` travels with a log, a policy and every page. It turns rows of the table into the observations that a
policy was trained on, refusing by name what does not fit, and turns actions into what the table calls them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from itertools import product

import numpy as np

from ..types import BadInput, Box, Discrete
from ._cells import Rows, cells_of, encoded, is_plain, listed, names_of

ENCODINGS = ("number", "yes-no", "category", "cyclic", "lag", "difference", "indicator")
OTHER = "other"  # the level that unseen words go to, where a schema says so
Cell = str | int | float | bool
Json = dict[str, object]


@dataclass(frozen=True)
class Column:
    """One column of the table and the numbers that it becomes in an observation."""

    name: str
    encoding: str = "number"
    width: int = 1  # numbers per row; more than one where a cell holds a vector
    levels: tuple[str, ...] = ()  # words of a category, or the words for no and for yes
    other: bool = False  # words that are none of the levels have a number of their own
    period: float | None = None  # of a cyclic column, in its own units
    source: str | None = None  # the column of times that it is read off, where the table has no such column
    lag: int = 0  # rows that it lies back
    fill: float | None = None  # stands where a cell is empty
    exogenous: bool = False  # no action changes it

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that it becomes."""
        if self.encoding == "category":
            return tuple(f"{self.name}={level}" for level in (*self.levels, *([OTHER] if self.other else [])))
        if self.encoding == "cyclic":
            return f"sin({self.name})", f"cos({self.name})"
        if self.encoding == "lag":
            return (self.before,)
        if self.encoding == "difference":
            return (f"{self.name}-{self.before}",)
        if self.encoding == "indicator":
            return (f"{self.name} missing",)
        return (self.name,) if self.width == 1 else tuple(f"{self.name}[{i}]" for i in range(self.width))

    @property
    def before(self) -> str:
        """What a row calls this column's value of `lag` rows before."""
        return f"{self.name}[t-{self.lag}]"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The cells of a row that it is made of."""
        return {"lag": (self.before,), "difference": (self.name, self.before)}.get(self.encoding, (self.name,))


@dataclass(frozen=True)
class ActionColumn:
    """One column of the table that is acted on: amounts within bounds, or one of some choices."""

    name: str
    low: tuple[float, ...] = ()  # of amounts, one per number
    high: tuple[float, ...] = ()
    levels: tuple[Cell, ...] = ()  # of choices: what the table calls each

    @property
    def discrete(self) -> bool:
        return not self.low

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the amounts, or of the choices."""
        if self.discrete:
            return tuple(f"{self.name}={level}" for level in self.levels)
        return (self.name,) if len(self.low) == 1 else tuple(f"{self.name}[{i}]" for i in range(len(self.low)))


@dataclass(frozen=True)
class Columns:
    """The observation's and the action's columns of a log, in order.

    `table` says whether rows have names of their own; a log of plain arrays has `obs[0]` and so on, and its
    actions come back as plain arrays. `others` are columns of the table that an observation does not need: a row
    may have them or not.
    """

    obs: tuple[Column, ...] = ()
    action: tuple[ActionColumn, ...] = ()
    table: bool = False
    others: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers of an observation, in order."""
        return tuple(name for column in self.obs for name in column.names)

    @cached_property
    def action_names(self) -> tuple[str, ...]:
        """Names of the numbers of an action: of the amounts, or of every choice, products of several columns."""
        if len(self.action) > 1 and self.discrete:
            return tuple(", ".join(names) for names in product(*(column.names for column in self.action)))
        return tuple(name for column in self.action for name in column.names)

    @cached_property
    def exogenous(self) -> tuple[bool, ...]:
        """Of every number of an observation, whether no action changes it."""
        return tuple(column.exogenous for column in self.obs for _ in column.names)

    @cached_property
    def together(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of an observation, by place, that are one thing: words of a category, parts of a clock."""
        ends = np.cumsum([len(column.names) for column in self.obs]).tolist()
        one = [column.encoding in ("category", "cyclic") for column in self.obs]
        both = zip([0, *ends], ends, one, strict=False)
        return tuple(tuple(range(first, end)) for first, end, whole in both if whole)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The cells that a row must hold, in the log's order."""
        return tuple(dict.fromkeys(name for column in self.obs for name in column.inputs))

    @property
    def discrete(self) -> bool:
        return bool(self.action) and self.action[0].discrete

    @property
    def choices(self) -> int:
        """How many choices there are, products of several columns counted as one choice each."""
        return math.prod(len(column.levels) for column in self.action) if self.discrete else 0

    def encode(self, rows: Rows) -> np.ndarray:
        """Rows as observations [N, S]: a dict, several, an Arrow table, a DataFrame, or plain numbers in order.

        BadInput names the column that is missing, unknown, empty, or holds what the log never did.
        """
        if is_plain(rows):
            return self._plain(np.asarray(rows))
        cells = self._cells(rows)
        return np.concatenate([encoded(column, cells) for column in self.obs], -1)

    def decode(self, actions: np.ndarray) -> object:
        """Actions as the table has them, given one row of numbers [A] or several [N, A]; choices are one-hot rows.

        Of a table: a dict of names for one, a list of them for several. Of plain arrays: amounts as they are, and
        choices as whole numbers.
        """
        actions = np.asarray(actions)
        width = len(self.action_names)
        if actions.ndim not in (1, 2) or actions.shape[-1] != width:
            raise BadInput(f"actions of shape {actions.shape}: {width} numbers a row were expected")
        if not self.table:
            return actions.argmax(-1) if self.discrete else actions
        rows = np.atleast_2d(actions)
        cells = self._choices(rows.argmax(-1)) if self.discrete else self._amounts(rows)
        named = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        return named[0] if actions.ndim == 1 else named

    def matches(self, other: Columns, whose: str) -> None:
        """BadInput, naming the first difference, unless another's observations and actions are these, in order."""
        for mine, theirs, what in (
            (self.names, other.names, "observation"),
            (self.action_names, other.action_names, "action"),
        ):
            for place, (here, there) in enumerate(zip(mine, theirs, strict=False)):
                if here != there:
                    raise BadInput(f"{whose}: {what} {place} is {there!r} where {here!r} was expected")
            if len(mine) != len(theirs):
                raise BadInput(f"{whose}: {len(theirs)} {what} columns where {len(mine)} were expected")

    def to_json(self) -> Json:
        """Plain lists, texts and numbers, from which `from_json` makes the same again."""
        kept = lambda item: {
            field.name: value
            for field in fields(item)
            if (value := getattr(item, field.name)) != field.default or field.default is MISSING
        }
        plain = lambda item: {
            key: list(value) if isinstance(value, tuple) else value for key, value in kept(item).items()
        }
        return {
            "table": self.table,
            "obs": [plain(column) for column in self.obs],
            "action": [plain(column) for column in self.action],
            "others": list(self.others),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, object]) -> Columns:
        """What `to_json` wrote; BadInput if it is something else."""
        try:
            made = lambda kind, item: kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in item.items()})
            obs = tuple(made(Column, item) for item in _list(saved["obs"]))
            action = tuple(made(ActionColumn, item) for item in _list(saved["action"]))
            whole = cls(obs, action, bool(saved["table"]), tuple(map(str, _list(saved["others"]))))
            if any(column.encoding not in ENCODINGS for column in obs):
                raise ValueError("encoding")
            return whole
        except (KeyError, TypeError, ValueError, AttributeError):
            raise BadInput("columns: damaged, or not what offing wrote") from None

    def _plain(self, rows: np.ndarray) -> np.ndarray:
        width = len(self.names)
        if rows.dtype.kind not in "fiub" or rows.ndim not in (1, 2) or rows.shape[-1] != width:
            raise BadInput(
                f"observations of shape {rows.shape}: {width} numbers a row were expected, {listed(self.names)}"
            )
        observations = np.atleast_2d(np.asarray(rows, np.float32))
        if not np.isfinite(observations).all():
            row, number = np.argwhere(~np.isfinite(observations))[0]
            raise BadInput(f"column {self.names[number]!r}, row {row}: not a finite number")
        return observations

    def _cells(self, rows: Rows) -> dict[str, np.ndarray]:
        """The cells of every column that is needed, column by column."""
        names = names_of(rows)
        known = {*self.inputs, *self.others, *(c.source for c in self.obs), *(c.name for c in self.action)}
        for name in names:
            if name not in known:
                raise BadInput(f"column {name!r}: unknown to the log; its columns are {listed(self.inputs)}")
        sources = {column.name: column.source for column in self.obs if column.source}
        for name in self.inputs:
            if name not in names and sources.get(name) not in names:
                raise BadInput(f"column {name!r}: missing; a row needs {listed(self.inputs)}")
        needed = [name for name in dict.fromkeys((*self.inputs, *sources.values())) if name in names]
        wide = {column.name: column.width for column in self.obs if column.encoding == "number"}
        columns = {name: cells_of(rows, name, wide.get(name, 1)) for name in needed}
        for name, cells in columns.items():
            if len(cells) != len(columns[needed[0]]):
                raise BadInput(
                    f"column {name!r}: {len(cells)} rows where {needed[0]!r} has {len(columns[needed[0]])}"
                )
        return columns

    def _choices(self, index: np.ndarray) -> dict[str, list[Cell]]:
        places = np.unravel_index(index, tuple(len(column.levels) for column in self.action))
        return {
            column.name: [column.levels[i] for i in place.tolist()]
            for column, place in zip(self.action, places, strict=True)
        }

    def _amounts(self, rows: np.ndarray) -> dict[str, list[object]]:
        amounts: dict[str, list[object]] = {}
        first = 0
        for column in self.action:
            part = rows[:, first : first + len(column.low)]
            first += len(column.low)
            amounts[column.name] = part[:, 0].tolist() if part.shape[1] == 1 else list(part)
        return amounts


def plain_columns(width: int, actions: Box | Discrete) -> Columns:
    """Columns of plain arrays: `obs[0]`, `obs[1]`, ...; amounts by their bounds, or choices by their numbers."""
    if isinstance(actions, Discrete):
        acted = ActionColumn("action", levels=tuple(range(actions.n)))
    else:
        acted = ActionColumn("action", actions.low, actions.high)
    return Columns((Column("obs", width=width),) if width > 1 else (Column("obs[0]"),), (acted,))


def table_columns(
    obs: Sequence[str], action: Sequence[str], width: int, actions: Box | Discrete, others: Sequence[str] = ()
) -> Columns:
    """Columns of a table whose cells are numbers already: one column each, or one column of vectors."""
    seen = (Column(obs[0], width=width),) if len(obs) == 1 else tuple(map(Column, obs))
    if isinstance(actions, Discrete):
        acted = (ActionColumn(action[0], levels=tuple(range(actions.n))),)
    elif len(action) == 1:
        acted = (ActionColumn(action[0], actions.low, actions.high),)
    else:
        edges = zip(action, actions.low, actions.high, strict=True)
        acted = tuple(ActionColumn(name, (low,), (high,)) for name, low, high in edges)
    return Columns(seen, acted, True, tuple(others))


def _list(value: object) -> list[dict[str, object]]:
    if not isinstance(value, list):
        raise TypeError
    return value
