"""offing: fully offline reinforcement learning. A log in; a posterior over worlds out, and whether to trust it.

log = offing.load("offing:pendulum", rows=1_000)
choice = offing.choose_posterior(jax.random.key(0), log, offing.space("quick"))
choice.pil.total, choice.pil.word
"""

from .data import Log, load, samples, split, take
from .hypers import draw, grid
from .pil import PIL, pil, regret_bound
from .posterior.spaces import space
from .report.store import load_posterior
from .tune.choose import PosteriorChoice, choose_posterior
from .types import BadInput, Box, Dataset, Discrete, Posterior, Task, Transition

__version__ = "0.1.0"

__all__ = [
    "PIL",
    "BadInput",
    "Box",
    "Dataset",
    "Discrete",
    "Log",
    "Posterior",
    "PosteriorChoice",
    "Task",
    "Transition",
    "choose_posterior",
    "draw",
    "grid",
    "load",
    "load_posterior",
    "pil",
    "regret_bound",
    "samples",
    "space",
    "split",
    "take",
]
