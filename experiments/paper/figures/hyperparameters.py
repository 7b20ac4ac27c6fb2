"""Counterparts of the paper's four tables of hyperparameters: its values beside the library's presets."""

from __future__ import annotations

from offing import planner as planners
from offing.planner import rppo
from offing.posterior.models import ensemble

from ..drawing import table
from ..published import ENSEMBLE, GRIDS, SOLVER, SWEEP
from .figure import Drawn, Figure, Records

WORLD = {  # their rows by the names of our fields
    "layers": "depth", "layer size": "width", "activation": "activation", "members": "members", "elites": "elites",
    "batch size": "batch_size", "learning rate": "lr", "weight decay": "decay", "schedule": "final_lr",
}  # fmt: skip


def draw(records: Records) -> Drawn:
    del records
    return Drawn("\n\n".join([world_model(), solver(), sweep(), grids()]))


def shown(values: object) -> str:
    each = values if isinstance(values, tuple | list) else [values]
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in each)


def world_model() -> str:
    """The ensemble: their table, and what our scales search."""
    rows = []
    for theirs, (gymnax, brax) in ENSEMBLE.items():
        name = WORLD.get(theirs, "")
        of = lambda scale, name=name: shown(sorted({getattr(s, name) for s in ensemble.space(scale, 0)}, key=str))
        rows.append(
            [theirs, gymnax, brax, *(of(scale) if name else None for scale in ("quick", "large", "paper"))]
        )
    head = ["", "paper, Gymnax", "paper, Brax and D4RL", "ours, quick", "ours, large", "ours, paper"]
    return (
        "**The ensemble.** Epochs and validation split have no counterpart: updates are counted, and whole "
        "episodes are held out.\n\n" + table(head, rows)
    )


def solver() -> str:
    """The solver's settings task by task: theirs, which `rppo.PAPER` has."""
    names = list(SOLVER["pendulum"])
    ours = {task: {name: getattr(one, name) for name in names} for task, one in rppo.PAPER.items()}
    rows = [[name, *(f"{shown(SOLVER[t][name])} / {shown(ours[t][name])}" for t in SOLVER)] for name in names]
    same = all(ours[task][name] == SOLVER[task][name] for task in SOLVER for name in names)
    return (
        f"**The solver, task by task** (paper / `rppo.PAPER`; {'all the same' if same else 'they differ'}; its "
        "layer size of 256 is one with the width of the memory here):\n\n" + table(["", *SOLVER], rows)
    )


def sweep() -> str:
    """The ranges that its sweep draws from."""
    scales = ("quick", "large")
    spaces = {scale: planners.space("rppo", scale) for scale in scales}
    found = lambda scale, name: shown(sorted({getattr(s, name) for s in spaces[scale]}))
    rows = [
        [name, shown(values), shown(tuple(rppo.SWEEP[name])), *(found(scale, name) for scale in scales)]
        for name, values in SWEEP.items()
    ]
    head = ["", "paper's sweep", "`--scale paper`", *(f"`--scale {scale}`" for scale in scales)]
    return "**The solver's sweep.**\n\n" + table(head, rows)


def grids() -> str:
    """The four planners' grids."""
    rows = []
    for name, axes in GRIDS.items():
        space = planners.space(name, "paper")
        for axis, values in axes.items():
            ours = tuple(sorted({getattr(setting, axis) for setting in space}))
            same = ours == tuple(sorted(values))
            rows.append([name, axis, shown(values), len(space), "the same" if same else shown(ours)])
    return "**The planners' grids** (`--space paper`).\n\n" + table(
        ["planner", "", "paper", "settings", "ours"], rows
    )


figure = Figure("hyperparameters", "Hyperparameters", (), draw, always=True)
