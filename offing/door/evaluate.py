"""What `offing.evaluate` returns, and the policies that it takes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack, cast

import jax
from rich.table import Table as Printed

from ..data import Log
from ..explain.explain import explained
from ..explain.explanation import Promised
from ..explain.page import Explained, explained_by
from ..progress import Bar
from ..report.actor import Actor
from ..report.evaluation import Evaluation, evaluation_of
from ..report.evaluation_figures import policies as policies_figure
from ..report.evaluation_store import PAGE, RESULT, estimates_table, load_evaluation, summary, with_page
from ..report.reports import Facts
from ..report.results import finished_policy, interval_terms
from ..report.store import Table, frame, identity, write, write_json
from ..tune import evaluate as evaluations
from ..tune.evaluate import Assessment
from ..tune.judge import acts_like
from ..tune.plans import EvaluationPlan
from ..tune.run import Run
from ..types import BadInput, Policy, WorldModel
from ..value.estimators import PREDICTIVE
from ..value.estimators import methods as every_method
from ..value.foreign import check, foreign
from ..value.left_out import attempt
from ..value.policies import resolve
from ..version import __version__
from .common import How, Options, Scale, Source, facts, known, model_of, probability, resumed, worked_on
from .results import LIVE, Explains, PathLike

Given = PathLike | Policy | Actor | Callable[..., object]
Policies = Given | Sequence[Given] | Mapping[str, Given]


def named_policies(given: Policies, log: Log) -> dict[str, Policy]:
    """The policies by name, checked on the log's own observations."""
    if isinstance(given, Mapping):
        named = dict(cast(Mapping[str, Given], given))
    else:
        several = [cast(Given, given)] if _one(given) else list(cast(Sequence[Given], given))
        names = [_name(each, i) for i, each in enumerate(several)]
        if len(set(names)) != len(names):
            raise BadInput("--policy: the same one is named twice")
        named = dict(zip(names, several, strict=True))
    pool = {str(name): _policy(each, str(name), log) for name, each in named.items()}
    for name, policy in pool.items():
        check(policy, log.data, log.task, name)
    return pool


def _one(given: Policies) -> bool:
    return isinstance(given, (str, os.PathLike, Policy, Actor)) or callable(given) or hasattr(given, "predict")


def _name(given: Given, place: int) -> str:
    if isinstance(given, (str, os.PathLike)):
        return os.fspath(given)
    return getattr(given, "name", "") or getattr(given, "__name__", "") or f"policy {place + 1}"


def _policy(given: Given, name: str, log: Log) -> Policy:
    width = log.data.steps.obs.shape[1]
    if isinstance(given, Actor):
        return given.policy
    if isinstance(given, Policy):
        return given
    if isinstance(given, (str, os.PathLike)):
        return resolve(os.fspath(given), log.task, width, finished_policy)
    return foreign(given, log.task, width, name)


@dataclass(frozen=True, kw_only=True, repr=False)
class EvaluationResult(Explains, Evaluation):
    """What policies will earn by every method, and whether that can be trusted."""

    assessment: Assessment | None = field(default=None, metadata=LIVE, compare=False)  # None: read from a folder
    pool: Mapping[str, Policy] = field(default_factory=dict, metadata=LIVE, compare=False)

    @classmethod
    def of(
        cls, assessment: Assessment, facts: Facts, pool: Mapping[str, Policy], log: Log | None = None
    ) -> EvaluationResult:
        """From what every method estimates of a pool of policies."""
        made, page = with_page(evaluation_of(assessment, facts))
        saver = lambda folder: _save(folder, made, page)
        return cls(**vars(made), assessment=assessment, pool=pool, log=log, saver=saver)

    def interval(self, level: float | None = None, policy: str | None = None) -> tuple[float, float]:
        """Where a policy's average return lies, with that probability, by the posterior."""
        name = next(iter(self.estimates)) if policy is None else policy
        if name not in self.estimates:
            raise BadInput(f"{name}: no such policy; there are {', '.join(self.estimates)}")
        if level is None or level == self.level:
            return self.earns(name).interval
        if self.assessment is None:
            raise BadInput(
                f"interval({level}): the folder holds that of {self.level:g}; evaluate again at this level"
            )
        if not 0 < level < 1:
            raise BadInput(f"interval({level}): a probability between 0 and 1")
        ours = self.assessment.estimates[name][PREDICTIVE]
        return (ours.returns or ours.estimate).interval(level)

    def lines(self) -> list[str]:
        return summary(self, Path())[:-1]

    def tables(self) -> list[Printed]:
        """Policies by methods, for a terminal."""
        return [estimates_table(self)]

    def to_frame(self) -> Table:
        """A row for every policy and method."""
        rows = self.rows_of()
        return frame({name: [getattr(row, name) for row in rows] for name in vars(rows[0])})

    def report(self, path: PathLike) -> Path:
        """Writes the page to a file, and says where."""
        write(Path(path), self._with_explanation(with_page(self)[1]).encode())
        return Path(path)

    def complete(self, folder: Path) -> None:
        if self.assessment is not None:
            self._complete(folder, PAGE, self.run)

    def _explained(self, log: Log) -> Explained:
        if self.assessment is None:
            raise BadInput(f"explain: the folder holds no worlds; its {PAGE} explains, or evaluate again")
        worlds, level = self.assessment.worlds, self.level

        def promise(name: str) -> Promised:
            ours, (low, high) = self.earns(name), self.interval(policy=name)
            returns = self.assessment.estimates[name][PREDICTIVE].returns if self.assessment else None
            terms = {} if returns is None else interval_terms(returns, level)
            return Promised(low, ours.median, high, self.behaviour.mean, terms)

        each = {
            name: attempt(lambda p=policy, n=name: explained(p, worlds, log, promise(n)))
            for name, policy in self.pool.items()
        }
        return explained_by(each, {"policies": lambda: policies_figure(self)})


def _save(folder: Path, made: Evaluation, page: str) -> None:
    write(folder / PAGE, page.encode())
    write_json(folder / RESULT, made)


def read_evaluation(folder: Path) -> EvaluationResult | None:
    """The evaluation in a folder, or None if there is none."""
    made = load_evaluation(folder)
    if made is None:
        return None
    return EvaluationResult(**vars(made), saver=lambda to: _save(to, made, with_page(made)[1]))


@dataclass(frozen=True)
class Judging:
    """How `evaluate` judges: how near you need to be, and what policies do with chance and with memory."""

    within: float | None = None
    sampled: bool = False
    forget: bool = False
    model: str | WorldModel = "ensemble"
    judges: Sequence[str] = ()  # worlds of other kinds to ask beside

    def check(self) -> None:
        """BadInput if it cannot be done."""
        if self.within is not None and not 0 < self.within < math.inf:
            raise BadInput(f"--within {self.within}: a width above 0")


def evaluate(
    log: Source,
    policies: Policies,
    scale: Scale = "quick",
    seed: int = 0,
    *,
    methods: Sequence[str] = ("all",),
    level: float = 0.9,
    judging: Judging | None = None,
    **options: Unpack[Options],
) -> EvaluationResult:
    """A log and policies from anywhere in; what each will earn, by several methods side by side, out.

    A policy is a folder of a finished run, MODULE:FUNCTION or a file of another library, a Python function from
    observations to actions, an object with `predict`, or `result.policy`; give one, several, or a dict by name.
    """
    how, judging = How(**known(options, How)), judging or Judging()
    probability(level)
    judging.check()
    data = how.log(log, seed)
    pool = named_policies(policies, data)
    wanted = every_method() if "all" in methods else tuple(dict.fromkeys(("predictive", *methods)))
    worlds = model_of(judging.model)
    models = worlds.space(scale, data.data.rows)
    data = worked_on(data, models, seed)
    likes = {name: acts_like(policy, data) for name, policy in pool.items()}
    plan = EvaluationPlan(
        methods=wanted,
        scale=scale,
        level=level,
        within=judging.within,
        sampled=judging.sampled,
        forget=judging.forget,
        judges=judging.judges,
    )
    asked_for = (list(judging.judges), judging.within, judging.sampled, judging.forget)
    more = (worlds.name, *asked_for, scale, wanted, level, likes)
    request = identity(data.fingerprint, seed, models, __version__, "evaluate", *more)

    def work(run: Run, bar: Bar) -> EvaluationResult:
        assessment = evaluations.evaluate(
            jax.random.key(seed),
            data,
            models,
            pool,
            plan,
            seed,
            run,
            worlds,
        )
        return EvaluationResult.of(assessment, facts(data, request, seed, scale, worlds, bar), pool, data)

    return resumed(request, how, read_evaluation, work)
