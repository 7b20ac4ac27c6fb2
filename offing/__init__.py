"""offing: fully offline reinforcement learning. A log in; a policy, what it will earn, and whether to trust that.

log = offing.load("offing:pendulum", rows=1_000)
result = offing.sorel(log, scale="quick", seed=0)
result.verdict, result.interval(0.9)
action, state = result.policy.predict(log.data.steps.obs[0])
"""

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from .data import Log, Schema, load, samples
from .door import (
    EvaluationResult,
    Inspection,
    PosteriorResult,
    SorelResult,
    TorelResult,
    evaluate,
    inspect,
    sorel,
    torel,
)
from .report.actor import Actor, load_actor
from .report.store import load_posterior
from .types import BadInput, Planner, Policy
from .version import __version__ as __version__

if TYPE_CHECKING:
    from .door import posterior

load_policy = load_actor

__all__ = [  # noqa: RUF022  in the order of the pipeline
    "load",
    "samples",
    "Log",
    "Schema",
    "BadInput",
    "inspect",
    "Inspection",
    "posterior",
    "PosteriorResult",
    "load_posterior",
    "Planner",
    "Policy",
    "sorel",
    "SorelResult",
    "torel",
    "TorelResult",
    "evaluate",
    "EvaluationResult",
    "load_policy",
    "Actor",
]

MOVED = {  # what used to be here, and where those who build with the parts find it
    "data": ("split", "take"),
    "hypers": ("draw", "grid"),
    "pil": ("PIL", "regret_bound"),
    "posterior.models.ensemble": ("space",),
    "report.verdict": ("Verdict", "verdict"),
    "tune.candidates": ("PolicyChoice", "choose_policy"),
    "tune.choose": ("PosteriorChoice", "choose_posterior"),
    "tune.systems": ("Ranking", "Result"),
    "tune.trials": ("Contender", "Trial"),
    "types": ("Box", "Dataset", "Discrete", "Posterior", "Seen", "Task", "Transition"),
    "value.estimate": ("ValueEstimate",),
    "value.predictive": ("Predictive", "predictive"),
}
RENAMED = {"get_planner": ("planner", "get"), "planner_space": ("planner", "space")}


def __getattr__(name: str):  # anything that ever was a name of this package
    """What used to be here, with a warning that says where it is; for one version."""
    home = next((home for home, names in MOVED.items() if name in names), None)
    home, own = RENAMED.get(name, (home, name))
    if home is None:
        raise AttributeError(f"module 'offing' has no attribute {name!r}")
    warnings.warn(f"offing.{name} is offing.{home}.{own}", DeprecationWarning, stacklevel=2)
    return getattr(import_module(f".{home}", __name__), own)


class _Room(ModuleType):
    """The package `offing.posterior`, which can also be called: `offing.posterior(log)`."""

    @staticmethod
    def __call__(*args: object, **options: object) -> PosteriorResult:
        from . import door

        return door.posterior(*args, **options)  # type: ignore[arg-type]


sys.modules[f"{__name__}.posterior"].__class__ = _Room
