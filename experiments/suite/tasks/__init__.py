"""All tasks by name, and the draw that split them into an open and a sealed half."""

from __future__ import annotations

import numpy as np

from .classic import Acrobot, BlindCartPole, MountainCar, PendulumTarget
from .later import LATER
from .living import Bioreactor, Glucose, Irrigation
from .motion import Ferry, Lander, WindFarm
from .plants import Battery, Boiler, ColdStore, Tank
from .task import KINDS, Act, Amounts, Choices, Moved, State, Task
from .trade import Admission, Clinic, Inventory, Pricing

FIRST: tuple[Task, ...] = (
    Acrobot(), Admission(), Battery(), Bioreactor(), Boiler(), BlindCartPole(), Clinic(), ColdStore(), Ferry(),
    Glucose(), Inventory(), Irrigation(), Lander(), MountainCar(), PendulumTarget(), Pricing(), Tank(), WindFarm(),
)  # fmt: skip
EVERY: tuple[Task, ...] = (*FIRST, *LATER)  # what came after the draw is open
TASKS: dict[str, Task] = {task.name: task for task in EVERY}
HALVES = ("open", "sealed")
SPLIT_SEED = 20261116  # written down before any result: the day of the draw
SEALED = (
    "battery", "bioreactor", "boiler", "cartpole_blind", "clinic", "glucose", "irrigation", "lander",
    "pendulum_target",
)  # fmt: skip
# as `draw_split` gave them, once


def draw_split(seed: int = SPLIT_SEED) -> tuple[str, ...]:
    """The names of the sealed half: of choices and of amounts half each, drawn by the seed."""
    rng, sealed = np.random.default_rng(seed), []
    for kind in (Choices, Amounts):
        names = sorted(task.name for task in FIRST if isinstance(task.actions, kind))
        sealed += rng.permutation(names)[: len(names) // 2].tolist()
    return tuple(sorted(sealed))


def half(name: str) -> tuple[str, ...]:
    """The names of the tasks in the open or the sealed half."""
    return tuple(task for task in TASKS if (task in SEALED) == (name == "sealed"))


__all__ = [
    "EVERY", "FIRST", "HALVES", "KINDS", "LATER", "SEALED", "SPLIT_SEED", "TASKS", "Act", "Amounts", "Choices",
    "Moved", "State", "Task", "draw_split", "half",
]  # fmt: skip
