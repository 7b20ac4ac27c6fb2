"""What the five functions of `offing` return: frozen, typed, and able to say, save, draw and predict.

Every number of a report is an attribute (`result.returns.median`, `result.pil.total`, `result.support.outside`);
`to_json` gives what the folder's JSON holds.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from ..data import Log
from ..explain.explain import explained, promised
from ..explain.page import Explained, attach, explained_by, inserted, is_attached
from ..report import jsonable
from ..report.actor import Actor
from ..report.jsonable import Json
from ..report.page import page
from ..report.posterior_page import PAGE as POSTERIOR_PAGE
from ..report.posterior_page import posterior_page
from ..report.ranking import summary as ranking_words
from ..report.ranking_page import order, ranking_page
from ..report.reports import Facts, PosteriorReport, Predicted, SorelReport, TorelReport
from ..report.results import PAGE
from ..report.results import summary as sorel_words
from ..report.store import Table, frame, posterior_report, save_posterior, write
from ..report.table import summary as posterior_words
from ..tune.choose import PosteriorChoice
from ..types import BadInput, Posterior
from ..value.estimate import ValueEstimate
from ..value.left_out import LeftOut, attempt

PathLike = str | os.PathLike[str]
LIVE = {jsonable.KEY: ""}  # metadata of fields that JSON does not hold
Saver = Callable[[Path], object]


class _Says:
    """What all results share: a few lines, a box in a notebook, JSON."""

    def lines(self) -> list[str]:
        """The result in sentences."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(line if len(line) <= 160 else f"{line[:159]}…" for line in self.lines()[:8])

    def _repr_html_(self) -> str:
        first, *others = map(html.escape, self.lines())
        rest = "".join(f"<li>{line}</li>" for line in others)
        return f"<div><b>{first}</b><ul>{rest}</ul></div>"

    def to_json(self) -> Json:
        """What the folder's JSON holds, as plain values."""
        return jsonable.to_json(self)


@dataclass(frozen=True, kw_only=True, repr=False)
class Saved(_Says):
    """A result that can be written into a folder."""

    saver: Saver = field(metadata=LIVE, compare=False)

    def save(self, folder: PathLike) -> None:
        """Writes everything into a folder, as the command line does: arrays, the page, and JSON last."""
        self.saver(Path(folder))
        self.complete(Path(folder))

    def complete(self, folder: Path) -> None:
        """Adds what an interrupted run could not add any more to a folder that holds this result."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Explains(Saved):
    """A result whose policies can be explained by the log that it learned from."""

    log: Log | None = field(default=None, metadata=LIVE, compare=False)  # None: read from a folder

    def explain(self, log: Log | None = None) -> Explained:
        """What each policy does, where it departs from the behaviour, and what its promise hangs on.

        Figures by name, sentences, and HTML in a notebook. A result that was read from a folder needs the log
        that it learned from.
        """
        return self._known if log is None else self._explained(log)

    @cached_property
    def _known(self) -> Explained:
        if self.log is None:
            raise BadInput("explain: give the log that the result was learned from, as offing.load gives it")
        return self._explained(self.log)

    def _explained(self, log: Log) -> Explained:
        raise NotImplementedError

    def _with_explanation(self, page: str) -> str:
        """The page with a section that explains, where the log is at hand."""
        made = None if self.log is None else attempt(lambda: self._known.section(without=("terms",)))
        return page if made is None or isinstance(made, LeftOut) else inserted(page, made)

    def _complete(self, folder: Path, page: str, run: str) -> None:
        """Adds the explanation to what was saved in a folder, unless it is there or the log is not at hand."""
        if self.log is not None and not is_attached(folder, page, run):
            attach(folder, page, attempt(lambda: self._known), self.log.name, run)


@dataclass(frozen=True, kw_only=True, repr=False)
class WithPolicy(Explains, Predicted):
    """A result that ends in a policy and in what it earns."""

    policy: Actor = field(metadata=LIVE, compare=False)
    worlds: Posterior = field(metadata=LIVE, compare=False)
    estimate: ValueEstimate = field(metadata=LIVE, compare=False)  # of the return, with all its episodes

    def interval(self, level: float | None = None) -> tuple[float, float]:
        """Where the true average return lies, with that probability."""
        level = self.returns.level if level is None else level
        if not 0 < level < 1:
            raise BadInput(f"interval({level}): a probability between 0 and 1")
        return self.estimate.interval(level)

    def complete(self, folder: Path) -> None:
        self._complete(folder, PAGE, self.run)

    def _explained(self, log: Log) -> Explained:
        if self.fingerprint not in ("", log.fingerprint):
            raise BadInput(f"{log.name}: is not the log that the policy was learned from ({self.data})")
        judges = self.worlds.fold(self.worlds.folds - 1)
        made = explained(self.policy.policy, judges, log, promised(self))
        return explained_by({self.planned.planner: made})


@dataclass(frozen=True, kw_only=True, repr=False)
class SorelResult(WithPolicy, SorelReport):
    """A policy, what it will earn, and whether to deploy it."""

    @property
    def verdict(self) -> str:
        """GO, NO-GO or NOT-ENOUGH-EVIDENCE."""
        return self.ruling.word

    @property
    def reasons(self) -> tuple[str, ...]:
        """The answer to every question that the verdict asks."""
        return self.ruling.reasons

    def lines(self) -> list[str]:
        first, loss, earned, *rest = sorel_words(self)
        count = len(self.reasons)
        notes, reasons = rest[: -count - 2], rest[-count - 1 : -1]
        return [f"{self.verdict}: {earned}", *reasons, loss, first, *notes]

    def report(self, path: PathLike) -> Path:
        """Writes the page to a file, and says where."""
        plain = page(self, np.asarray(self.estimate.returns))
        write(Path(path), self._with_explanation(plain).encode())
        return Path(path)

    @property
    def field(self) -> Table:
        """All candidates of all planners, a row each; where one planner was tried, its settings."""
        if not self.candidates:
            return self.to_frame()
        names = ("name", "planner", "median", "lower", "distance", "indistinguishable", "chosen")
        columns: dict[str, list[object]] = {name: [getattr(c, name) for c in self.candidates] for name in names}
        columns["low"] = [candidate.interval[0] for candidate in self.candidates]
        columns["high"] = [candidate.interval[1] for candidate in self.candidates]
        return frame(columns)

    def to_frame(self) -> Table:
        """Every setting of the planner that was tried, a row each: its hyperparameters and what it came to."""
        tried = self.planned.settings
        names = dict.fromkeys(name for each in tried for name in each.setting)
        columns: dict[str, list[object]] = {"planner": [self.planned.planner] * len(tried)}
        columns |= {name: [each.setting.get(name) for each in tried] for name in names}
        columns["score"] = [each.score for each in tried]
        columns["chosen"] = [i == self.planned.chosen for i in range(len(tried))]
        return frame(columns)


@dataclass(frozen=True, kw_only=True, repr=False)
class TorelResult(WithPolicy, TorelReport):
    """Settings of offline planners, ranked by what they earn in held-out worlds, and the best one's policy."""

    def lines(self) -> list[str]:
        return ranking_words(self)[:-1]

    def report(self, path: PathLike) -> Path:
        """Writes the page to a file, and says where."""
        write(Path(path), self._with_explanation(ranking_page(self)).encode())
        return Path(path)

    def to_frame(self) -> Table:
        """Every trial, the best first."""
        trials = [self.trials[i] for i in order(self)]
        names = dict.fromkeys(name for trial in trials for name in trial.setting)
        columns: dict[str, list[object]] = {"planner": [trial.planner for trial in trials]}
        columns |= {name: [trial.setting.get(name) for trial in trials] for name in names}
        columns |= {
            name: [getattr(trial, name) for trial in trials] for name in ("seed", "score", "value", "share")
        }
        columns["low"] = [trial.interval[0] for trial in trials]
        columns["high"] = [trial.interval[1] for trial in trials]
        best = self.trials[self.chosen]
        columns["chosen"] = [trial is best for trial in trials]
        return frame(columns)


@dataclass(frozen=True, kw_only=True, repr=False)
class PosteriorResult(Saved, PosteriorReport):
    """Worlds learned from a log, and how well they know how wrong they are."""

    worlds: Posterior = field(metadata=LIVE, compare=False)

    @classmethod
    def of(cls, choice: PosteriorChoice, facts: Facts) -> PosteriorResult:
        """From a choice among settings."""
        report = posterior_report(choice, facts)

        def saver(folder: Path) -> None:
            write(folder / POSTERIOR_PAGE, posterior_page(report).encode())
            save_posterior(folder, choice, facts)

        return cls(**vars(report), worlds=choice.picked, saver=saver)

    def report(self, path: PathLike) -> Path:
        """Writes the page to a file, and says where."""
        write(Path(path), posterior_page(self).encode())
        return Path(path)

    def lines(self) -> list[str]:
        return posterior_words(self)[:-1]

    def to_frame(self) -> Table:
        """Every setting of the world model that was tried, a row each."""
        names = dict.fromkeys(name for each in self.settings for name in each.setting)
        columns: dict[str, list[object]] = {
            name: [each.setting.get(name) for each in self.settings] for name in names
        }
        for name in ("nll", "error", "spread", "total", "imbalance", "word"):
            columns[name] = [getattr(each, name) for each in self.settings]
        columns["chosen"] = [i == self.chosen for i in range(len(self.settings))]
        return frame(columns)
