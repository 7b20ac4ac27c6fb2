"""The log's own behaviour, predicted by worlds that did not see it: what a run's promises are checked by."""

from __future__ import annotations

import numpy as np

from ..data import Log
from ..types import BadInput, Key, Posterior
from ..value.backtest import Backtest, backtest
from ..value.backtest import Hypers as CloneHypers
from ..value.checks import check
from ..value.predictive import Past
from .choose import PosteriorChoice

BRIEF = 100  # updates of worlds that are only tried out, and so are their checks


def backtested(key: Key, log: Log, choice: PosteriorChoice, worlds: Posterior, level: float = 0.9) -> Backtest:
    """What the refitted worlds say of blocks of episodes that they have not seen; BadInput if there are none."""
    parts = choice.whole
    seen = np.zeros((worlds.folds, log.data.rows), bool)
    seen[:, parts.valid[: int(parts.valid_size)]] = True
    for fold, size in enumerate(parts.sizes):
        seen[fold, parts.train[fold, :size]] = True
    brief = getattr(choice.points[choice.index], "updates", BRIEF) < BRIEF
    hypers = CloneHypers(width=8, updates=40) if brief else CloneHypers(updates=2_000)
    return backtest(key, worlds, log.data, seen, choice.pil, level, hypers)


def checked(
    key: Key, log: Log, choice: PosteriorChoice, worlds: Posterior, correct: bool = True
) -> tuple[Past, str]:
    """How predictions of returns have held, and why they could not be checked, if they could not.

    The first fold plans, the second judges. What is promised is corrected if that is asked for and both have
    episodes that they did not see; checks are of promises that are made in the same way.
    """
    try:
        tested = backtested(key, log, choice, worlds)
    except BadInput as error:
        return Past(check((), choice.pil)), str(error)
    errors, own = (tested.errors([fold]) for fold in (1, 0)) if correct else (None, None)
    if errors is None or own is None:
        return Past(check(tested.scores(correct=False), choice.pil)), ""
    return Past(check(tested.scores(), choice.pil), errors, own), ""
