"""The parts of an evaluation as plain data: frozen dataclasses of numbers, words and each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..pil import Bound
from ..value.left_out import LeftOut
from .jsonable import key
from .reports import Facts as Facts


@dataclass(frozen=True)
class TaskReport:
    horizon: int
    discount: float


@dataclass(frozen=True)
class Interval:
    interval: tuple[float, float]
    level: float


@dataclass(frozen=True, kw_only=True)
class ValueReport:
    """A value: where it is thought to lie, and how sure that is."""

    median: float
    interval: tuple[float, float]
    level: float
    deviation: float
    range: tuple[float, float]  # lowest and highest world, or member


@dataclass(frozen=True, kw_only=True)
class EstimateReport(ValueReport):
    """What one method says of one policy: the discounted value, and where it has one the return of an episode."""

    returns: ValueReport | None = field(metadata=key("return"))
    health: dict[str, float]
    faults: tuple[str, ...]  # what its health says against it
    notes: tuple[str, ...]  # what it had to assume
    agrees: bool | None  # whether its interval meets that of the worlds; None for the worlds themselves
    explained: str | None  # whether it agrees, and if not, why
    conformal: Interval | None = None  # of the return, by how the log's own behaviour was predicted


@dataclass(frozen=True)
class Row:
    """A policy by a method, as a row of a table."""

    policy: str
    method: str
    value: float
    value_low: float
    value_high: float
    returns: float | None
    returns_low: float | None
    returns_high: float | None
    agrees: bool | None
    faults: str

    @classmethod
    def of(cls, policy: str, method: str, one: EstimateReport) -> Row:
        earned = (None, None, None) if one.returns is None else (one.returns.median, *one.returns.interval)
        return cls(policy, method, one.median, *one.interval, *earned, one.agrees, "; ".join(one.faults))


@dataclass(frozen=True)
class Block:
    """A stretch of the log: what its episodes earned, and what was predicted of them."""

    fold: int
    first: int
    last: int
    episodes: int
    logged: float
    predicted: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class ConformalReport:
    factor: float | None  # None: too few blocks for one
    policies: int
    note: str


@dataclass(frozen=True)
class BacktestReport:
    """The log's own behaviour, predicted by worlds that did not see it."""

    blocks: tuple[Block, ...]
    inside: int
    level: float
    held: bool
    bias: float
    error: float
    conformal: ConformalReport


@dataclass(frozen=True)
class HorizonReport:
    """Error and spread of the worlds by steps ahead."""

    steps: tuple[int, ...]
    error: tuple[float, ...]
    spread: tuple[float, ...]
    agree: tuple[bool, ...]
    trusted: int
    largest: int
    share: float


@dataclass(frozen=True)
class LawReport:
    slope: float
    floor: float


@dataclass(frozen=True)
class LossPoint:
    rows: float
    pil: float
    error: float
    spread: float


@dataclass(frozen=True)
class WidthPoint:
    rows: float
    half_width: float


@dataclass(frozen=True)
class WidthReport:
    """Half-widths of one policy's interval against rows, and how many another one would take; None: no number."""

    points: tuple[WidthPoint, ...]
    law: LawReport
    now: float
    target: float
    rows: float | None
    between: tuple[float | None, float | None]


@dataclass(frozen=True)
class MoreDataReport:
    """Loss and widths against rows, fitted to parts of the log and read off beyond it."""

    extrapolation: bool
    points: tuple[LossPoint, ...]
    law: LawReport
    slope: float
    widths: dict[str, WidthReport | LeftOut]


@dataclass(frozen=True, kw_only=True)
class LossReport:
    """The posterior's information loss, in nats per step."""

    total: float
    error: float
    spread: float
    noise: float
    imbalance: float
    calibrated: bool
    word: str
    units: int = 0
    bound: Bound | None = None
    outputs: dict[str, list[float] | float] = field(default_factory=dict)
    released: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WorldsReport:
    """The settings of worlds that were tried, with their scores, and which was chosen."""

    settings: tuple[dict[str, object], ...]
    chosen: int
    noise_scale: float
    replay: dict[str, object] | None = None
    readings: dict[str, tuple[str, ...]] = field(default_factory=dict)  # columns by how the worlds read them
