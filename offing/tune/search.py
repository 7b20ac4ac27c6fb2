"""Which settings to try next: the whole grid, random draws, or Optuna's sampler; by ask and tell, in batches."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from types import ModuleType
from typing import TYPE_CHECKING, Generic, NamedTuple

from ..hypers import Uniform, Value
from ..hypers import draw as draw_settings
from ..types import BadInput, H
from .run import Run
from .spaces import Axis, Space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

ATTEMPTS = 20  # times that a sampler is asked for one setting that it has not given before


class Search(NamedTuple, Generic[H]):
    """`ask(count)` gives settings that it has not given before, fewer where there are none; `tell` their worth."""

    name: str
    ask: Callable[[int], list[H]]
    tell: Callable[[Sequence[H], Sequence[float]], None]  # settings asked, scores: higher is better


def seek(
    search: Search[H], score: Callable[[list[H]], Sequence[float]], tries: int, batch: int
) -> tuple[list[H], list[float]]:
    """At most `tries` settings and their scores, asked and scored batch after batch."""
    settings, scores = [], []
    while some := search.ask(min(batch, tries - len(settings))):
        worth = [float(value) for value in score(some)]
        search.tell(some, worth)
        settings += some
        scores += worth
    return settings, scores


def part(run: Run, settings: Sequence[object]) -> Run:
    """The run with the part of its cache that belongs to one batch, named after its settings."""
    return run.part(hashlib.sha256(repr(list(settings)).encode()).hexdigest()[:12])


# ---- searches


def get(name: str, space: Space[H], seed: int = 0) -> Search[H]:
    """The search of that name; BadInput if there is none, or if its package is not installed."""
    if name not in SEARCHES:
        raise BadInput(f"{name}: no such search; there are {', '.join(SEARCHES)}")
    return SEARCHES[name](space, seed)


def grid(space: Space[H], seed: int = 0) -> Search[H]:
    """Every combination once, the last axis fastest."""
    del seed
    for name, axis in space.axes.items():
        if isinstance(axis, Uniform):
            raise BadInput(f"axes.{name}: a range has no grid; list its choices, or search at random")
    points = (_point(space, values) for values in product(*space.axes.values()))
    return Search("grid", lambda count: list(islice(points, max(count, 0))), _unheard)


def draw(space: Space[H], seed: int = 0) -> Search[H]:
    """Draws, each axis by itself; the same for a seed in batches of any size."""
    points = _draws(space, seed)
    return Search("random", lambda count: list(islice(points, max(count, 0))), _unheard)


def _draws(space: Space[H], seed: int) -> Iterator[H]:
    """Settings as they are drawn, each the first time alone; the draws of a seed begin the same however many."""
    given, tries = 0, 16
    while given < space.count:
        drawn = list(dict.fromkeys(draw_settings(seed, space.base, tries, **space.axes)))
        yield from drawn[given:]
        given, tries = len(drawn), 2 * tries


def _unheard(settings: Sequence[object], scores: Sequence[float]) -> None:
    """What a search does that does not learn."""


def _point(space: Space[H], values: Sequence[Value]) -> H:
    point = dict(zip(space.axes, values, strict=True))
    return replace(space.base, **point)  # type: ignore[type-var]


def tpe(space: Space[H], seed: int = 0) -> Search[H]:
    """Tree-structured Parzen estimators (Bergstra et al., 2011), Optuna's: for spaces too large for a grid.

    Within a batch, settings that are still out count as bad ("constant liar"), so that they spread.
    """
    try:
        import optuna
    except ImportError:
        raise BadInput("optuna is not installed; pip install 'offing[optuna]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    ranges = {name: _distribution(optuna.distributions, axis) for name, axis in space.axes.items()}
    trials: dict[H, optuna.trial.Trial | None] = {}  # by setting; None once it is told
    draws = _draws(space, seed)

    def one() -> H:
        for _ in range(ATTEMPTS):
            trial = study.ask(ranges)
            setting = _point(space, [_chosen(axis, trial.params[name]) for name, axis in space.axes.items()])
            if setting not in trials:
                break
            study.tell(trial, state=optuna.trial.TrialState.FAIL)  # no news, and the sampler draws anew
        else:  # it keeps to what it knows: something new at random
            setting = next(setting for setting in draws if setting not in trials)
            study.enqueue_trial({name: _place(axis, getattr(setting, name)) for name, axis in space.axes.items()})
            trial = study.ask(ranges)
        trials[setting] = trial
        return setting

    def ask(count: int) -> list[H]:
        return [one() for _ in range(int(min(count, space.count - len(trials))))]

    def tell(settings: Sequence[H], scores: Sequence[float]) -> None:
        for setting, value in zip(settings, scores, strict=True):
            trial = trials.get(setting)
            if trial is None:
                raise ValueError(f"{setting} was not asked, or told before")
            study.tell(trial, -math.inf if math.isnan(value) else float(value))
            trials[setting] = None

    return Search("optuna", ask, tell)


def _distribution(kinds: ModuleType, axis: Axis) -> BaseDistribution:
    if isinstance(axis, Uniform):
        return kinds.FloatDistribution(axis.low, axis.high, log=axis.log)
    return kinds.CategoricalDistribution(range(len(axis)))  # by place: choices may be of any kind


def _chosen(axis: Axis, place: float) -> Value:
    return place if isinstance(axis, Uniform) else axis[int(place)]


def _place(axis: Axis, chosen: Value) -> Value:
    return chosen if isinstance(axis, Uniform) else axis.index(chosen)


SEARCHES: dict[str, Callable[[Space, int], Search]] = {"grid": grid, "random": draw, "optuna": tpe}
