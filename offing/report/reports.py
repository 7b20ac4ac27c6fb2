"""What the systems write down, typed: `result.json` and `posterior.json` are these, and pages read them.

`jsonable.to_json` writes a report and `jsonable.from_json` reads it back. What an older version called otherwise
is accepted under its old name, with a warning (`upgraded`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..data import Behaviour
from ..hypers import Settings
from ..pil import Bound
from ..value.support import Support
from .changes import Changes
from .jsonable import Json, key


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What was run, and on what."""

    data: str
    rows: int
    seed: int
    scale: str
    seconds: float
    fingerprint: str = ""
    run: str = ""  # what makes two runs the same one
    version: str = ""
    device: str = ""
    jax: str = ""
    model: str = "ensemble"
    online_samples: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A posterior information loss: its sums, and where they are kept, each output's numbers."""

    error: float
    spread: float
    noise: float
    total: float
    imbalance: float
    calibrated: bool
    word: str
    units: int = 0
    bound: Bound | None = None
    outputs: dict[str, tuple[float, ...]] = field(default_factory=dict)
    released: dict[str, float] = field(default_factory=dict)  # by the released code's convention


@dataclass(frozen=True, kw_only=True)
class TriedWorlds(Loss):
    """One setting of the world model, and how well it predicted held-out rows."""

    setting: Settings
    nll: float


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Error against spread by steps ahead, for each noise scale, under logged actions."""

    scales: tuple[float, ...]
    horizons: tuple[int, ...]
    error: tuple[tuple[float, ...], ...]
    spread: tuple[tuple[float, ...], ...]
    score: tuple[tuple[float, ...], ...]
    scale: float
    left: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChosenWorlds:
    """The settings of worlds that were tried, and which one was chosen."""

    settings: tuple[TriedWorlds, ...]
    chosen: int
    replay: Curve | None
    noise_scale: float
    readings: dict[str, tuple[str, ...]] = field(default_factory=dict)  # columns by how the worlds read them


@dataclass(frozen=True, kw_only=True)
class Space:
    """A space of actions: a number of choices, or bounds."""

    choices: int | None = None
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TaskReport:
    """What was known of the problem."""

    horizon: int
    discount: float
    actions: Space


@dataclass(frozen=True, kw_only=True)
class TriedPlan:
    """One setting of a planner, round by round in the worlds it was trained in and in others."""

    setting: Settings
    score: float | None = None
    own: tuple[float, ...] = ()
    held: tuple[float, ...] = ()
    best: int = 0


@dataclass(frozen=True, kw_only=True)
class SavedPolicy:
    """All that it takes to have the policy again: its planner, setting and arrays, and the columns it reads."""

    planner: str
    settings: tuple[TriedPlan, ...]
    chosen: int
    arrays: str = ""
    width: int = 0
    task: TaskReport | None = None
    columns: dict[str, object] | None = None

    @property
    def setting(self) -> Settings:
        return self.settings[self.chosen].setting


@dataclass(frozen=True, kw_only=True)
class Earned:
    """What a policy will earn: the median over worlds, its interval, and what that is made of."""

    median: float
    mean: float
    interval: tuple[float, float]
    level: float
    epistemic: float
    aleatoric: float
    stderr: float
    range: tuple[float, float]
    worlds: tuple[float, ...] = ()
    terms: dict[str, float] = field(default_factory=dict)  # half-widths of the interval, by what they come of
    fields: dict[str, float | tuple[float, ...]] = field(default_factory=dict)  # the estimate, beside its returns


@dataclass(frozen=True, kw_only=True)
class Predicted(Facts):
    """What reports on a policy have in common: the worlds, the policy, and what it earns in them."""

    system: str
    promise: str  # "value": the number is meant; "ranking": only its order is
    posterior: ChosenWorlds
    planned: SavedPolicy = field(metadata=key("policy"))
    pil: Loss
    value: Earned  # discounted
    returns: Earned = field(metadata=key("return"))  # undiscounted
    length: float
    support: Support
    behaviour: Behaviour
    episodes: str = ""  # file of the imagined episodes' returns


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """The verdict's word, and the answer to every question that was asked."""

    word: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CandidateReport:
    """A policy that could have been handed over, and what would have been promised for it."""

    name: str
    planner: str
    setting: Settings
    median: float
    lower: float  # on average over the worst quarter of held-out worlds
    interval: tuple[float, float]
    distance: float  # from the logged actions
    indistinguishable: bool  # from the one with the highest lower return
    chosen: bool


@dataclass(frozen=True, kw_only=True)
class SorelReport(Predicted):
    """`result.json` of SOReL."""

    candidates: tuple[CandidateReport, ...] = field(default=(), metadata=key("field"))
    ruling: Ruling = field(metadata=key("verdict"))
    baseline: float | None
    probability: float
    changes: Changes | None = None  # what new rows changed, where several logs were given


@dataclass(frozen=True, kw_only=True)
class TriedPolicy:
    """One trial of TOReL: a setting with a seed, and what it came to."""

    planner: str
    setting: Settings
    seed: int
    score: float | None  # None: it diverged
    interval: tuple[float | None, float | None]
    predicted: float | None
    value: float | None
    updates: int
    share: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class TorelReport(Predicted):
    """`result.json` of TOReL."""

    select: str
    space: str
    trials: tuple[TriedPolicy, ...]
    chosen: int
    indistinguishable: tuple[int, ...]
    saved: float


@dataclass(frozen=True, kw_only=True)
class SavedWorlds:
    """All that it takes to have the worlds again."""

    arrays: str
    folds: int
    members: int
    task: TaskReport
    model: str = "ensemble"
    rest: dict[str, object] = field(default_factory=dict)  # what the model keeps beside its arrays


@dataclass(frozen=True, kw_only=True)
class PosteriorReport(Facts):
    """`posterior.json`."""

    settings: tuple[TriedWorlds, ...]
    chosen: int
    reference: int
    pil: Loss
    noise_scale: float
    replay: Curve | None
    readings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    chance: tuple[float, ...] = ()  # share of the unexplained variance that is chance, output by output
    world: SavedWorlds


SCORES = {"error", "spread", "noise", "total", "imbalance", "calibrated", "word", "nll", "bound", "units"}
PLAN_SCORES = {"score", "own", "held", "best"}


def upgraded(plain: Json) -> Json:
    """A report of version 0.1 under today's names: a setting's hyperparameters stood beside its scores."""
    if not isinstance(plain, dict):
        return plain
    report = dict(plain)
    for name, scores in (("posterior", SCORES), ("policy", PLAN_SCORES)):
        part = report.get(name)
        if isinstance(part, dict):
            report[name] = {**part, "settings": _nested(part.get("settings"), scores)}
    if "settings" in report:
        report["settings"] = _nested(report["settings"], SCORES)
    if report != plain:
        warnings.warn("a result of offing 0.1 is read; the next version will not read it", stacklevel=3)
    return report


def _nested(settings: Json, scores: set[str]) -> Json:
    if not isinstance(settings, list):
        return settings
    return [
        _one(each, scores) if isinstance(each, Mapping) and "setting" not in each else each for each in settings
    ]


def _one(flat: Mapping[str, Json], scores: set[str]) -> dict[str, Json]:
    hypers: dict[str, Json] = {name: value for name, value in flat.items() if name not in scores}
    return {**{name: value for name, value in flat.items() if name in scores}, "setting": hypers}
