"""The five functions that most users need: a log in, a result out that can say, save, draw and predict.

    log = offing.load("table.csv", schema="table.toml")
    result = offing.sorel(log, scale="quick", seed=0)
    result.verdict, result.interval(0.9)
    action, state = result.policy.predict(row)

Each takes a log, or what `offing.load` takes. No key, no spaces and no copies are needed. Progress is shown on a
terminal and in a notebook. With a folder `out` the result is written there, and a run that was interrupted goes on
where it was. The command line is these functions with flags.
"""

from __future__ import annotations

from .evaluate import EvaluationResult, Judging, evaluate
from .inspect import Inspection, inspect
from .posterior import posterior
from .results import PosteriorResult, SorelResult, TorelResult
from .sorel import sorel
from .torel import Tuning, torel

__all__ = [
    "EvaluationResult",
    "Inspection",
    "Judging",
    "PosteriorResult",
    "SorelResult",
    "TorelResult",
    "Tuning",
    "evaluate",
    "inspect",
    "posterior",
    "sorel",
    "torel",
]
