"""What an inspection says of a log, in typed parts; `inspect.json` holds the same under the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["discrete", "continuous"]


@dataclass(frozen=True)
class Histogram:
    """How many values lie between each edge and the next."""

    counts: tuple[int, ...]
    edges: tuple[float, ...]


@dataclass(frozen=True)
class Spread:
    """One column: mean, deviation and range of all rows; quartiles and the count of values of those drawn."""

    mean: float
    std: float
    min: float
    q25: float
    median: float
    q75: float
    max: float
    values: int


@dataclass(frozen=True)
class EpisodeSpread(Spread):
    """The same of one number an episode, with its histogram."""

    histogram: Histogram


@dataclass(frozen=True)
class ObservationFacts(Spread):
    """One number of the observation."""

    constant: bool
    walls: tuple[float | None, float | None]  # values that it stops at, below and above


@dataclass(frozen=True)
class AmountFacts(Spread):
    """One action that is an amount."""

    low: float
    high: float
    histogram: tuple[int, ...]  # over its allowed range
    left_over: float  # of its range, that actions in similar states differ by


@dataclass(frozen=True)
class Controllers:
    """How well k controllers that take turns by episode predict the actions."""

    predicted: tuple[float, ...]  # by 1, 2, ... controllers
    alone: float  # by one an episode
    count: int | None  # as many suffice
    episodes: int  # that were searched


@dataclass(frozen=True)
class ActionFacts:
    """How actions spread, and how they depend on the state."""

    still: bool  # always the same
    used: float  # share of the choices, or of tenths of the ranges, that were taken
    unchanging: float | None  # share of the episodes in which the action never changes
    explained: float  # share of the variance that the state explains
    predicted: float  # the same, or the share of choices that the state predicts
    left_over: float
    controllers: Controllers | None
    shares: tuple[float, ...] = ()  # of each choice
    amounts: tuple[AmountFacts, ...] = ()
    at_the_edge: float | None = None


@dataclass(frozen=True)
class ActedIn:
    """How one number of the observation was met: shares of each action, by parts of its range."""

    name: str
    edges: tuple[float, ...]  # [B + 1]
    shares: tuple[tuple[float, ...], ...]  # [B, choices or tenths of the range]; each row adds up to 1
    rows: tuple[int, ...]  # [B]


@dataclass(frozen=True)
class InTime:
    """Mean returns of groups of episodes, in the log's order."""

    episode: tuple[int, ...]  # the first of each group
    returns: tuple[float, ...]


@dataclass(frozen=True)
class EpisodeFacts:
    """Lengths, ends, and returns with and without discount."""

    count: int
    terminated: int
    cut: int
    at_horizon: int
    lengths: EpisodeSpread
    returns: EpisodeSpread
    whole_returns: EpisodeSpread | None
    discounted: EpisodeSpread
    in_time: InTime


@dataclass(frozen=True)
class UnitFacts:
    """One machine, patient or site."""

    name: str
    rows: int
    episodes: int
    reward: float  # of a step, on average


@dataclass(frozen=True)
class Clock:
    """Steps of time between rows of a unit, in seconds where times are dates."""

    dated: bool
    first: float
    last: float
    usual: float
    other: float  # share of the steps that have another length
    gaps: int  # steps longer than one and a half usual ones
    longest: float
    backwards: int  # rows of a unit that stood before one of an earlier time
    steps: Histogram  # as multiples of the usual one, no more than 10


@dataclass(frozen=True)
class Jumps:
    """How far a step leads, against how far apart rows are that have nothing to do with each other."""

    usual: float  # standard deviations a column, the median step
    chance: float  # between rows drawn at random
    share: float  # of the steps that are more than ten usual ones
    worst: str  # the column that jumps farthest in them; "" if there is none
    interleaved: bool  # rows jump from the one before and go on from one further back
    steps: Histogram  # sizes of steps
    drawn: Histogram  # distances of rows drawn at random, with the same edges


@dataclass(frozen=True)
class Coverage:
    """How near rows are to those of other episodes, in standard deviations a column; in how many directions."""

    median_distance: float
    far_distance: float
    directions: float
    width: int


@dataclass(frozen=True)
class Copies:
    """Shares of the rows that repeat another, exactly or nearly, and whole episodes that do."""

    exact: float
    near: float
    episodes: int | None
    dropped: int  # copies of a row before it that were not loaded


@dataclass(frozen=True)
class Moved:
    """How far the columns of one kind move from the first quarter of the log to the last."""

    moved: float  # standard deviations, the most of any column
    column: int
    sure: tuple[int, ...]  # columns whose move is beyond doubt


@dataclass(frozen=True)
class Line:
    """One column's mean over time, in standard deviations from its mean."""

    name: str
    means: tuple[float, ...]


@dataclass(frozen=True)
class Drift:
    """How columns move over time, or over the log's order where times are not known."""

    by: Literal["time", "order"]
    observations: Moved
    actions: Moved
    rewards: Moved
    at: tuple[float, ...]  # seconds or numbers, or rows: the middle of each piece
    lines: tuple[Line, ...]  # the reward, and the columns that move most


@dataclass(frozen=True)
class Alignment:
    """Which row's action tells most about a step: that of the row itself, the one before or the one after."""

    column: str  # the number of the observation that actions tell most about
    before: float  # share of how its steps vary that each alone can tell
    own: float
    after: float
    reached: float  # of what an observation leaves open of its row's action, that the row before tells

    @property
    def word(self) -> Literal["aligned", "late", "early", "unknown"]:
        """Late: the action stands a row after the one it was taken in. Early: a row before.

        The action of the row after tells of a step also where it merely answers what the step led to; if it
        made the step, then where the step began tells of it, too.
        """
        if max(self.before, self.own, self.after) < TELLS:
            return "unknown"
        if self.after >= TELLS and self.own < 0.1 * self.after and self.before < self.after:
            return "late" if self.reached >= TELLS else "unknown"
        if self.before >= TELLS and self.own < 0.5 * self.before:
            return "early"
        return "aligned"


TELLS = 0.01  # of how steps vary: less is not told from nothing


@dataclass(frozen=True)
class Effect:
    """What the action tells about the next value of one number, once the state is known."""

    name: str
    share: float  # of what the state leaves open
    named: bool  # whether the schema says that no action changes it

    @property
    def exogenous(self) -> bool:
        """Whether no action seems to change it."""
        return self.share < UNTOUCHED


UNTOUCHED = 0.005  # of what the state leaves open: less is not told from nothing


@dataclass(frozen=True)
class Leak:
    """What of the reward is explained by what, in rows of other episodes."""

    state: float  # by the observation alone
    action: float  # with the action
    step: float  # with the next observation
    before: float  # with the row before as well
    after: float  # with the row after the next as well
    of_episode: bool  # every row of an episode has the same reward, as where an outcome was written into each
    column: str  # the number of the observation that is the reward itself; "" if there is none

    @property
    def ahead(self) -> bool:
        """Whether rewards tell what comes later than the step that they are paid for."""
        gain = self.after - self.step
        return gain > 0.05 and gain > 3 * max(self.before - self.step, 0.0)


@dataclass(frozen=True)
class RewardPart:
    """One term of the reward's formula."""

    text: str
    mean: float  # of a step
    std: float


@dataclass(frozen=True)
class Answer:
    """SOReL, TOReL or neither yet; why, as answers to questions; and what else to know."""

    system: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Everything that can be said of a log without learning a world from it."""

    data: str
    fingerprint: str
    seed: int
    notes: tuple[str, ...]
    rows: int
    obs_width: int
    names: tuple[str, ...]
    action_names: tuple[str, ...]
    exogenous: tuple[str, ...]  # as the schema names them
    inferred: bool  # next observations are the next rows'
    action_kind: Kind
    action_width: int
    horizon: int
    discount: float
    bytes: int
    ends: int
    episodes: EpisodeFacts | None  # None for a bag of transitions
    units: tuple[UnitFacts, ...]  # none where the log does not tell them apart
    unit_count: int
    clock: Clock | None  # None where rows have no time
    jumps: Jumps | None
    rewards: Spread
    reward_parts: tuple[RewardPart, ...]  # none where the reward is a column
    leak: Leak | None
    observations: tuple[ObservationFacts, ...]
    actions: ActionFacts
    acted_in: tuple[ActedIn, ...]
    alignment: Alignment | None
    effects: tuple[Effect, ...]
    coverage: Coverage
    copies: Copies
    drift: Drift | None  # None where rows are few, or no longer in the order that they were logged in
    broken: float
    answer: Answer = Answer("neither yet", (), ())
