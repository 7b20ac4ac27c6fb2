"""The first decision: a posterior by PIL. The second, a policy by value, is in `candidates`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np

from ..data import Log, Split, crossed, split, take
from ..hypers import groups
from ..pil import PIL, evidence, judge
from ..posterior.models import ensemble
from ..posterior.replay import Replay, replay
from ..types import BadInput, Dataset, Fitted, Key, Posterior, Prepared, WorldModel
from .run import ALONE, Run
from .sweep import sweep

PLENTY = 50_000  # rows of which a fifth more is no longer worth the time
CROSSED = 4  # folds of worlds that judge what was planned in none of them
UNSEEN = 8  # episodes that each of them must not have seen: of fewer there is one block to check by
NEAR = 0.5  # nats a quantity: a setting that predicts worse than the best by more is no candidate


class PosteriorChoice(NamedTuple):
    """A posterior chosen by PIL, with all that the choice was based on."""

    index: int
    points: tuple[Any, ...]
    scores: tuple[PIL, ...]  # on the same held-out rows, with the same variance of chance
    nll: tuple[float, ...]  # mean held-out negative log-likelihood of the members: PIL up to a constant
    picked: Posterior
    replay: Replay | None  # of the picked one; None if the log has no runs of steps
    reference: int  # the setting nearest the log, which chance was asked of
    notes: tuple[str, ...]
    split: Split  # which rows it learned from and which were held out
    whole: Split  # which rows the worlds that `refit` gives learned from, fold by fold
    model: WorldModel
    prepared: Prepared
    chance: np.ndarray  # [S + 1]  its variance, as the reference says
    names: tuple[str, ...] = ()  # of the columns of the observation

    @property
    def pil(self) -> PIL:
        return self.scores[self.index]

    @property
    def share(self) -> np.ndarray:
        """How much of the chosen worlds' squared residual is chance [S + 1]."""
        return np.clip(self.chance / np.maximum(self.pil.plain, 1e-12), 0.0, 1.0)

    @property
    def readings(self) -> dict[str, tuple[str, ...]]:
        """How the worlds read which columns, in words; nothing of those that are plain amounts."""
        if self.model.describe is None:
            return {}
        name = lambda column: self.names[column] if column < len(self.names) else f"obs[{column}]"
        every = self.model.describe(self.prepared.shape)
        return {words: tuple(name(column) for column in columns) for words, columns in every.items()}


def choose_posterior(
    key: Key,
    log: Log,
    settings: Sequence[Any],
    seed: int = 0,
    run: Run = ALONE,
    model: WorldModel = ensemble.model,
) -> PosteriorChoice:
    """phi_I, phi_II = argmin PIL subject to E ~ V (Algorithms 1 and 2, first line), on held-out episodes,
    among settings that predict about as well as the best does.

    Shapes and learning rates come first (`narrow`). The variance of chance is asked once, of the setting that
    predicts held-out rows best, and shared: it is the log's, not the model's. If none of them is calibrated, the
    likeliest is taken and the notes say so.
    """
    if len({setting.folds for setting in settings}) != 1:
        raise BadInput("settings with different numbers of folds cannot be compared: they hold out different rows")
    data, task = log.data, log.task
    parts, notes = split(data, seed, settings[0].folds)
    whole = parts if data.rows > PLENTY else split(data, seed, settings[0].folds, held=0.0)[0]
    held, others = take(data, parts.held), learned_elsewhere(data, parts)
    named = tuple(column for column, outside in enumerate(log.columns.exogenous) if outside)
    prepared = model.prepare(data, task._replace(exogenous=named))
    fitter = Fitter(key, data, model, prepared, {}, abreast(model, settings))
    settings = narrow(fitter, parts, settings, run)
    fitted = fitter("fit", parts, settings, run)
    worlds = [model.posterior(f, h, prepared, data, task) for f, h in zip(fitted, settings, strict=True)]
    rough = []
    for i, world in enumerate(worlds):
        rough.append(evidence(world, held))
        run.tell("score", i + 1, len(worlds))
    reference = int(np.argmin(np.nan_to_num([np.sum(f.plain) for f in rough], nan=np.inf)))
    rough[reference] = evidence(worlds[reference], held, others)
    chance = rough[reference].chance
    scores = tuple(judge(f, chance) for f in rough)
    nll = tuple(float(np.mean(f.nll)) for f in fitted)
    index = best([s.total for s in scores], [s.balanced for s in scores], nll, NEAR * len(chance))
    notes += _notes(scores, index, worlds[index].terminates)
    choice = PosteriorChoice(
        index, tuple(settings), scores, nll, worlds[index], None, reference, tuple(notes), parts, whole, model,
        prepared, chance, log.columns.names,
    )  # fmt: skip
    picked = calibrated(choice, worlds[index], data, parts)
    return choice._replace(picked=picked, replay=replay(jax.random.fold_in(key, 1), picked, held))


def _notes(scores: Sequence[PIL], index: int, terminates: bool) -> list[str]:
    notes = []
    if not terminates:
        notes.append("no episode in the log ended by itself, so imagined ones end at the horizon alone")
    if scores[index].word == "unproven":
        notes.append(f"E and V agree, but on {scores[index].units} episodes: too few to call it calibrated")
    elif not scores[index].calibrated:
        who = "setting" if not any(s.calibrated for s in scores) else "setting that predicts well"
        notes.append(f"no {who} is calibrated; the one that predicts best is {scores[index].word}")
    return notes


def learned_elsewhere(data: Dataset, parts: Split) -> list[Dataset]:
    """For each fold, the rows that other folds learned from."""
    trained = [train[:size] for train, size in zip(parts.train, parts.sizes, strict=True)]
    others = [[rows for g, rows in enumerate(trained) if g != f] for f in range(len(trained))]
    return [take(data, np.sort(np.concatenate(rest))) if rest else take(data, parts.held) for rest in others]


def unseen(data: Dataset, parts: Split) -> list[Dataset]:
    """For each fold, the rows that its worlds had no part in: held-out ones, and those of other folds alone."""
    trained = [train[:size] for train, size in zip(parts.train, parts.sizes, strict=True)]
    every = np.unique(np.concatenate([parts.held.astype(int), *trained]))
    return [take(data, np.setdiff1d(every, rows)) for rows in trained]


def calibrated(
    choice: PosteriorChoice, worlds: Posterior, data: Dataset, parts: Split, learned: Split | None = None
) -> Posterior:
    """The worlds with chance as rows show it that folds of `parts` have no part in; `learned` are the rows that
    they learned from, if these are fewer.
    """
    if choice.model.calibrate is None:
        return worlds
    own = parts if learned is None else learned
    seen = [take(data, train[:size]) for train, size in zip(own.train, own.sizes, strict=True)]
    return choice.model.calibrate(worlds, seen, unseen(data, parts), choice.share)


def refit(
    key: Key,
    log: Log,
    choice: PosteriorChoice,
    run: Run = ALONE,
    worlds_wanted: int = 0,
) -> Posterior:
    """The chosen setting, fitted once more, to folds of all rows: what was held out to choose it is not lost.

    A log of plenty of rows keeps the worlds it was chosen by. Where more worlds of a fold are wanted than a
    setting has members, there are up to twice as many: an interval from few worlds is wide because they are few.
    """
    data, hypers = log.data, choice.points[choice.index]
    if data.rows > PLENTY:
        return choice.picked
    folds = len(choice.whole.sizes)
    if folds != hypers.folds:
        fewer = lambda count: max(2, count * hypers.folds // folds)  # about as many worlds in all
        sizes = {name: fewer(getattr(hypers, name)) for name in ("members", "elites") if hasattr(hypers, name)}
        hypers = replace(hypers, folds=folds, **sizes)
    if worlds_wanted and hasattr(hypers, "elites"):
        count = max(hypers.members, min(2 * hypers.members, worlds_wanted))
        hypers = replace(hypers, members=count, elites=count - hypers.members + hypers.elites)
    wide = abreast(choice.model, choice.points)
    fitter = Fitter(key, data, choice.model, choice.prepared, None, wide)
    fitted = fitter("refit", choice.whole, [hypers], run)[0]
    worlds = choice.model.posterior(fitted, hypers, choice.prepared, data, log.task)
    return calibrated(choice, worlds, data, choice.whole)


def cross(choice: PosteriorChoice, log: Log, seed: int) -> PosteriorChoice:
    """The choice, to be refitted to CROSSED folds that each learn from all episodes but a part.

    Worlds in which a policy is planned and worlds that judge it learn from disjoint episodes. Where policies come
    from elsewhere all worlds judge, and what half of the log teaches would be lost for nothing. A log of too few
    episodes stays in two folds: what a fold has not seen is to say what it is off by.
    """
    data = log.data
    if data.rows > PLENTY or len(np.unique(np.asarray(data.episode)[: data.rows])) < CROSSED * UNSEEN:
        return choice
    parts = crossed(data, seed, CROSSED)
    episodes = [len(np.unique(rows.episode[: rows.rows])) for rows in unseen(data, parts)]
    return choice if min(episodes) < UNSEEN else choice._replace(whole=parts)


def best(totals: Sequence[float], balanced: Sequence[bool], nll: Sequence[float], near: float = np.inf) -> int:
    """Lowest PIL among the balanced whose held-out likelihood is within `near` nats of the best; if none is, the
    best likelihood.

    Not the least imbalanced, nor a balanced one at any price: strong priors spread worlds until they are as
    doubtful as they are wrong, and wrong they then are. Nor the lowest PIL: measured by one variance for all rows,
    a few that no world can predict decide it. What spread is missing the value's interval makes up for
    (`ValueEstimate.widen`).
    """
    likely = np.nan_to_num(nll, nan=np.inf)  # a fit that diverged is nobody's choice
    able = np.asarray(balanced, bool) & (likely <= likely.min() + near)
    ranked = np.where(able, totals, np.inf) if able.any() else likely
    return int(np.argmin(np.nan_to_num(ranked, nan=np.inf)))


class Fitter(NamedTuple):
    """Fits settings of one model to folds of one log."""

    key: Key
    data: Dataset
    model: WorldModel
    prepared: Prepared
    known: dict[Any, Fitted] | None = None  # parts that are fitted already, to the same rows
    abreast: int = 0  # parts that a program fits at once, where settings need not run one by one

    def __call__(self, what: str, parts: Split, settings: Sequence[Any], run: Run) -> list[Fitted]:
        """Every setting fitted to the folds of `parts`. What a fit does not read stays off the device.

        Settings run in parts where their model has them, so that probes, fits and refits are one program. A part
        that was fitted before is not fitted again: the probe of a rate is the first part of the setting that it
        was asked for.
        """
        data, model = self.data, self.model
        bare = (self.key, data._replace(starts=np.zeros((0, 1))), parts._replace(held=np.zeros(0)))
        args = jax.device_put((*bare, self.prepared.arrays))
        apart = [[setting] if model.parts is None else model.parts(setting) for setting in settings]
        done: dict[Any, Fitted] = {} if self.known is None else self.known
        every = list(dict.fromkeys(part for parts in apart for part in parts if part not in done))
        if every:
            worlds = max(s.folds * getattr(s, "members", 1) for s in every)
            each = worlds * len(data.episode) * (data.steps.obs.shape[1] + 2) * 12
            work = program(model, self.prepared.shape)
            fitted = sweep(what, work, every, *args, bytes_each=each, abreast=self.abreast, run=run)
            done.update(zip(every, fitted, strict=True))
        ours = [[done[part] for part in parts] for parts in apart]
        return [
            one[0] if model.join is None else model.join(setting, one)
            for setting, one in zip(settings, ours, strict=True)
        ]


def abreast(model: WorldModel, settings: Sequence[object]) -> int:
    """How many parts of settings run side by side where they can: those of one setting; 0 if there are none."""
    return 0 if model.parts is None else max(len(model.parts(setting)) for setting in settings)


@cache
def program(model: WorldModel, shape: Hashable) -> Callable[..., Fitted]:
    """One function per model and shape, so that compiled programs are found again."""
    return lambda hypers, key, data, parts, arrays: model.fit(key, hypers, data, parts, arrays, shape)


def narrow(fitter: Fitter, parts: Split, settings: Sequence[Any], run: Run = ALONE) -> list[Any]:
    """The settings that are worth fitting whole: the likelier half of their shapes, each at the rate that suits
    it, where its plainest setting is likeliest. A few members of each shape are asked. Models without `rates`
    keep what they have.

    Which rate and which shape suit is the log's affair. A smooth log is learned ten times as well at a bold rate,
    and one of collisions not at all; and spread, which is what settings of a shape differ by, does not ask for
    another.
    """
    tuned, tries = list(settings), []
    for group in groups(settings):
        same = [settings[i] for i in group.index]
        if len(getattr(same[0], "rates", ())) < 2 or len({setting.lr for setting in same}) > 1:
            continue
        plain = min(same, key=lambda s: (s.prior_scale, s.bootstrap, s.jitter, s.ridge))
        few = min(ensemble.PAIR, plain.members)  # they say it for all
        tries.append(
            (group.index, [replace(plain, lr=plain.lr * r, members=few, elites=few) for r in plain.rates])
        )
    probes = [setting for _, many in tries for setting in many]
    fitted = iter(fitter("rate", parts, probes, run) if probes else [])
    likely = []  # of each shape, held-out negative log-likelihood at its rate
    for index, many in tries:
        nll = np.nan_to_num([float(np.mean(next(fitted).nll)) for _ in many], nan=np.inf)
        likely.append(float(nll.min()))
        for i in index:
            tuned[i] = replace(tuned[i], lr=many[int(nll.argmin())].lr)
    worse = np.argsort(likely, kind="stable")[-(-len(tries) // 2) :]
    dropped = {i for shape in worse for i in tries[shape][0]}
    return [setting for i, setting in enumerate(tuned) if i not in dropped]
