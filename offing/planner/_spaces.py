"""Named sets of settings for the planners that learn from rows: phi_III as `choose_policy` searches them.

`smoke`: two that train for a moment, for tests. `default`: for logs of some 10,000 rows on a CPU. `paper`: the
grids of TOReL's experiments, which are those of Jackson et al. (2025), or where they have none, values that the
planner's own authors name. All axes are floats, so that every space is one program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..hypers import grid, names
from ..types import BadInput
from . import bc, combo, cql, edac, iql, mopo, morel, rebrac, sacn, td3bc

SCALES = ("smoke", "default", "paper")
TINY: dict[str, Any] = {"updates": 4, "batch_size": 16, "width": 8, "depth": 1}
SMALL: dict[str, Any] = {"updates": 8_000, "batch_size": 256, "width": 64, "depth": 2, "lr": 1e-3}
WHOLE: dict[str, Any] = {"updates": 1_000_000}
Space = dict[str, Callable[[], list[Any]]]  # scale -> its settings

BC: Space = {
    "smoke": lambda: grid(bc.Hypers(**TINY), lr=(1e-3, 3e-3)),
    "default": lambda: grid(bc.Hypers(**SMALL), lr=(3e-4, 1e-3), decay=(0.0, 0.01)),
    "paper": lambda: grid(bc.Hypers(**WHOLE), lr=(1e-4, 3e-4, 1e-3)),  # there is no grid; rates around the default
}
IQL: Space = {
    "smoke": lambda: grid(iql.Hypers(**TINY), expectile=(0.7, 0.9)),
    "default": lambda: grid(iql.Hypers(**SMALL), beta=(3.0, 10.0, 30.0), expectile=(0.7, 0.9)),
    # the paper's table of grids
    "paper": lambda: grid(iql.Hypers(**WHOLE), beta=(0.5, 3.0, 10.0), expectile=(0.5, 0.7, 0.9)),
}
REBRAC: Space = {
    "smoke": lambda: grid(rebrac.Hypers(**TINY), actor_bc=(0.01, 0.1)),
    "default": lambda: grid(rebrac.Hypers(**SMALL), critic_bc=(0.0, 0.01, 0.1), actor_bc=(0.003, 0.03, 0.1, 0.3)),
    # the paper's table of grids
    "paper": lambda: grid(
        rebrac.Hypers(**WHOLE),
        critic_bc=(0.0, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.1),
        actor_bc=(5e-4, 1e-3, 2e-3, 3e-3, 0.03, 0.1, 0.3, 1.0),
    ),
}
TD3BC: Space = {
    "smoke": lambda: grid(td3bc.Hypers(**TINY), alpha=(1.0, 2.5)),
    "default": lambda: grid(td3bc.Hypers(**SMALL), alpha=(2.5, 10.0, 40.0, 160.0)),
    # the weights that Fujimoto & Gu (2021) compare
    "paper": lambda: grid(td3bc.Hypers(**WHOLE), alpha=(1.0, 2.0, 2.5, 3.0, 4.0)),
}
CQL: Space = {
    "smoke": lambda: grid(cql.Hypers(**TINY, draws=2), conservative=(0.5, 5.0)),
    "default": lambda: grid(cql.Hypers(**SMALL, draws=4, actor_pace=0.3), conservative=(0.1, 0.5, 2.0, 5.0)),
    # the weights that the authors' code names for locomotion (Kumar et al., 2020)
    "paper": lambda: grid(cql.Hypers(**WHOLE), conservative=(5.0, 10.0)),
}
SACN: Space = {
    "smoke": lambda: grid(sacn.Hypers(**TINY, critics=2), lr=(1e-3, 3e-3)),
    "default": lambda: grid(sacn.Hypers(**SMALL, critics=10), polyak=(0.005, 0.02), discount=(0.97, 0.99)),
    # rates of targets around the paper's: its own axis, the number of critics, is shape
    "paper": lambda: grid(sacn.Hypers(**WHOLE), polyak=(0.0025, 0.005, 0.01)),
}
EDAC: Space = {
    "smoke": lambda: grid(edac.Hypers(**TINY, critics=2), eta=(0.0, 1.0)),
    "default": lambda: grid(edac.Hypers(**SMALL, critics=5), polyak=(0.005, 0.02), eta=(0.1, 1.0, 5.0)),
    # the weights that An et al. (2021) compare
    "paper": lambda: grid(edac.Hypers(**WHOLE), eta=(0.0, 1.0, 5.0)),
}

# Planners that imagine: `steps` are their gradient steps.
TINY_DREAM: dict[str, Any] = {
    "steps": 8,
    "every": 4,
    "envs": 10,
    "segment": 2,
    "retain": 2,
    "batch_size": 16,
    "width": 8,
    "depth": 1,
    "critics": 2,
}
SMALL_DREAM: dict[str, Any] = {
    "steps": 8_000,
    "every": 250,
    "envs": 400,
    "batch_size": 128,
    "width": 64,
    "depth": 2,
    "critics": 4,
    "lr": 1e-3,
    "polyak": 0.01,
}
LONG: dict[str, Any] = {"steps": 3_000_000}  # released for MOPO and MOReL; all else is the classes' own
MOPO: Space = {
    "smoke": lambda: grid(mopo.Hypers(**TINY_DREAM), penalty=(0.5, 5.0)),
    "default": lambda: grid(mopo.Hypers(**SMALL_DREAM), length=(1.0, 5.0), penalty=(0.5, 5.0)),
    # the paper's table of grids
    "paper": lambda: grid(mopo.Hypers(**LONG, raw=True), length=(1.0, 3.0, 5.0), penalty=(1.0, 5.0)),
}
MOREL: Space = {
    "smoke": lambda: grid(morel.Hypers(**TINY_DREAM), pessimism=(0.0, 5.0)),
    "default": lambda: grid(morel.Hypers(**SMALL_DREAM), pessimism=(0.5, 2.0), offset=(-50.0, -500.0)),
    # the paper's table of grids
    "paper": lambda: grid(
        morel.Hypers(**LONG),
        pessimism=(0.0, 5.0, 10.0, 15.0, 20.0, 25.0),
        offset=(-30.0, -50.0, -100.0, -200.0),
    ),
}
COMBO: Space = {
    "smoke": lambda: grid(combo.Hypers(**TINY_DREAM), conservative=(0.5, 5.0)),
    "default": lambda: grid(combo.Hypers(**SMALL_DREAM), conservative=(0.1, 0.5, 2.0, 5.0)),
    # the weights that Yu et al. (2021) compare
    "paper": lambda: grid(combo.Hypers(**LONG), conservative=(0.5, 1.0, 5.0)),
}
SPACES: dict[str, Space] = {
    "bc": BC,
    "combo": COMBO,
    "cql": CQL,
    "edac": EDAC,
    "iql": IQL,
    "mopo": MOPO,
    "morel": MOREL,
    "rebrac": REBRAC,
    "sacn": SACN,
    "td3bc": TD3BC,
}


def space(planner: str, scale: str = "default", **fixed: Any) -> list[Any]:
    """The settings of that planner and scale; what is `fixed` is the same in all of them."""
    if planner not in SPACES:
        raise BadInput(f"{planner}: no named settings; there are {', '.join(sorted(SPACES))}")
    if scale not in SPACES[planner]:
        raise BadInput(f"{scale}: no such scale of {planner}; there are {', '.join(SPACES[planner])}")
    found = SPACES[planner][scale]()
    if "updates" in fixed and "updates" not in names(type(found[0])):  # of planners that imagine: gradient steps
        steps = fixed.pop("updates")
        found = [replace(setting, steps=steps, every=min(setting.every, steps)) for setting in found]
    try:
        found = [replace(setting, **fixed) for setting in found]
    except TypeError:
        raise BadInput(f"{planner}: has no setting among {', '.join(fixed)} that is not its own") from None
    return list(dict.fromkeys(found))
