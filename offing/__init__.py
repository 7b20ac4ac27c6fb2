"""offing: fully offline reinforcement learning. A log in; a policy, what it will earn, and whether to trust that.

log = offing.load("offing:pendulum", rows=1_000)
result = offing.sorel(jax.random.key(0), log, offing.space("quick"), offing.planner_space("rppo", "quick"))
result.predicted.returns.median, result.predicted.returns.interval(0.9)
offing.verdict(result.pil, result.predicted, result.behaviour).word
"""

from .data import Log, load, samples, split, take
from .hypers import draw, grid
from .pil import PIL, pil, regret_bound
from .planner import get as get_planner
from .planner import space as planner_space
from .posterior.models.ensemble import space
from .report.evaluation import Evaluation
from .report.results import load_policy
from .report.store import load_posterior
from .report.verdict import Verdict, verdict
from .tune.candidates import PolicyChoice, choose_policy
from .tune.choose import PosteriorChoice, choose_posterior
from .tune.evaluate import Assessment, evaluate
from .tune.systems import Ranking, Result, sorel, torel
from .tune.trials import Contender, Trial
from .types import BadInput, Box, Dataset, Discrete, Planner, Policy, Posterior, Seen, Task, Transition
from .value.estimate import ValueEstimate
from .value.predictive import Predictive, predictive

__version__ = "0.1.0"

__all__ = [
    "PIL",
    "Assessment",
    "BadInput",
    "Box",
    "Contender",
    "Dataset",
    "Discrete",
    "Evaluation",
    "Log",
    "Planner",
    "Policy",
    "PolicyChoice",
    "Posterior",
    "PosteriorChoice",
    "Predictive",
    "Ranking",
    "Result",
    "Seen",
    "Task",
    "Transition",
    "Trial",
    "ValueEstimate",
    "Verdict",
    "choose_policy",
    "choose_posterior",
    "draw",
    "evaluate",
    "get_planner",
    "grid",
    "load",
    "load_policy",
    "load_posterior",
    "pil",
    "planner_space",
    "predictive",
    "regret_bound",
    "samples",
    "sorel",
    "space",
    "split",
    "take",
    "torel",
    "verdict",
]
