"""TOReL: every setting of a planner's grid ranked by held-out worlds, and what every policy truly earns.

Then, and only then, a bandit may try the same policies online: over a random twenty of them, as in the paper, and
over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from offing import planner as planners
from offing.hypers import asdict
from offing.online import bandit
from offing.online.play import task_of
from offing.posterior.models import get
from offing.report.store import identity
from offing.tune import systems
from offing.tune.plans import TrialPlan
from offing.tune.run import Cache, Run
from offing.tune.trials import Contender

from ..parts import Numbers, Part, Place, Settings
from . import kept
from .tasks import ADROIT, BRAX, EVERY, GYMNAX, MUJOCO, Source
from .truth import earn
from .worlds import Worlds, about, model_of

LEVEL = 0.9
PLANNERS = ("iql", "rebrac", "mopo", "morel")
SEVERAL = {"iql": 3, "mopo": 3}  # policies of a setting on Brax, where a grid is small; on MuJoCo of every grid
ROWS = 200_000
POINTS = 60  # of a bandit's curve in a record
SECONDS = {"iql": 110.0, "rebrac": 270.0, "mopo": 150.0, "morel": 180.0}  # of one policy a setting, on an H200
PLAYING = {"brax": 600.0, "mujoco": 900.0, "gymnax": 20.0}  # of a sweep, on a core


def parts(scale: str) -> list[Part]:
    """Sweeps of every planner on every log, and what their policies truly earn."""
    if scale == "smoke":
        toy = {"rows": 400, "seed": 0, "space": "smoke", "updates": 30, "episodes": 4, "trials": 20}
        toy |= {"scale": scale}
        file = {**toy, "rows": 150}
        return [
            *sweep(EVERY["toy"], "iql", {**toy, "seeds": 1}, "CPU", 30, 5),
            *sweep(EVERY["toy_medium_expert"], "iql", {**file, "seeds": 1}, "CPU", 30, 5),
        ]
    listed: list[Part] = []
    for source, planner in ((GYMNAX[1], "rebrac"), (GYMNAX[0], "iql"), (GYMNAX[0], "rebrac")):
        for seed in (0, 1, 2):
            how = {"rows": 20_000, "seed": seed, "space": "default", "updates": None, "seeds": 1, "scale": "quick"}
            how |= {"episodes": 64, "trials": 1_000}
            listed += sweep(source, planner, how, "CPU", 350, PLAYING["gymnax"])
    for source in (*BRAX, *MUJOCO, *ADROIT):
        kind = "brax" if source in BRAX else "mujoco"
        for planner in PLANNERS if source not in ADROIT else PLANNERS[:2]:
            several = SEVERAL.get(planner, 1) if kind == "brax" else 3
            how = {
                "rows": ROWS,
                "seed": 0,
                "space": "paper",
                "updates": 50_000,
                "seeds": several,
                "scale": "large",
            }
            how |= {"episodes": 32, "trials": 1_000}
            grown = 1 + 0.5 * (several - SEVERAL.get(planner, 1))
            listed += sweep(source, planner, how, "GPU", SECONDS[planner] * grown, PLAYING[kind])
    return listed


def name_of(source: Source, planner: str, seed: int) -> str:
    return f"{source.name}-{planner}-{seed}"


def sweep(
    source: Source, planner: str, how: dict[str, Any], hardware: str, seconds: float, playing: float
) -> list[Part]:
    """A sweep, and its playing."""
    at = {"task": source.name, "planner": planner, **how}
    name = name_of(source, planner, how["seed"])
    plans = {key: value for key, value in at.items() if key not in ("episodes", "trials")}
    return [
        Part(
            "torel",
            f"plan-{name}",
            "plan",
            hardware,
            seconds,
            plans,
            plan,
            source.needs,
            (path_of(plans),),
            source.brought,
        ),
        Part("torel", f"play-{name}", "play", "CPU", playing, at, realise, (f"torel/plan-{name}",)),
    ]


def plan(place: Place, settings: Settings) -> Numbers:
    """One sweep: what `offing torel` says of every setting; the policies are kept."""
    name, scale = str(settings["planner"]), str(settings["scale"])
    rows, seed, seeds = (settings[key] for key in ("rows", "seed", "seeds"))
    source = EVERY[str(settings["task"])]
    log = source.load(place, rows, seed)
    fixed = {} if settings["updates"] is None else {"updates": settings["updates"]}
    grid = tuple(planners.space(name, str(settings["space"]), **fixed))
    model = get(model_of(scale))
    models = model.space(scale, log.data.rows)
    fitted = {"request": identity(log.fingerprint, seed, models, "torel worlds", model.name)}
    shared = place.cache("torel-worlds", fitted)
    mine = place.cache("torel-{task}-{planner}-{seed}".format(**settings), {**settings, "log": log.fingerprint})
    result = systems.torel(
        jax.random.key(seed),
        log,
        models,
        [Contender(name, planners.get(name), grid)],
        seed,
        TrialPlan(seeds=seeds, copies=4 if scale == "smoke" else 64),
        Run(Both(shared, mine, name)),
        model,
    )
    kept.save(place.file(path_of(settings)), [trial.policy for trial in result.trials])
    return {
        **about(Worlds(result.posterior, result.worlds), log.task),
        "rows": log.data.rows,
        "policies": [{"planner": name, **asdict(trial.setting)} for trial in result.trials],
        "seeds": [trial.seed for trial in result.trials],
        "predicted": [trial.score if np.isfinite(trial.score) else None for trial in result.trials],
        "interval": [list(trial.returns.interval(LEVEL)) for trial in result.trials],
        "chosen": result.index,
        "indistinguishable": list(result.indistinguishable),
        "default": default([trial.setting for trial in result.trials], name),
        "behaviour": result.behaviour._asdict(),
    }


def path_of(settings: Settings) -> str:
    return "policies/torel-{task}-{planner}-{seed}.npz".format(**settings)


def default(settings: list[object], planner: str) -> list[int]:
    """Which policies have the planner's defaults in all that the sweep varies: one for each seed, or none."""
    each, usual = [asdict(one) for one in settings], asdict(planners.get(planner).Hypers())
    varied = [name for name in each[0] if any(one[name] != each[0][name] for one in each)]
    return [i for i, one in enumerate(each) if all(one[name] == usual[name] for name in varied)]


class Both:
    """Two caches: worlds are every planner's, trials one planner's."""

    def __init__(self, worlds: Cache, trials: Cache, planner: str):
        self.worlds, self.trials, self.planner = worlds, trials, planner

    def _of(self, what: str) -> Cache:
        return self.trials if what.startswith(self.planner) else self.worlds

    def get(self, name: str) -> list[np.ndarray] | None:
        return self._of(name).get(name)

    def put(self, name: str, arrays: Sequence[np.ndarray]) -> None:
        self._of(name).put(name, arrays)


def realise(place: Place, settings: Settings) -> Numbers:
    """What every policy truly earned, and what a bandit over them needs to name one as good as the chosen."""
    source = EVERY[str(settings["task"])]
    name = name_of(source, str(settings["planner"]), settings["seed"])
    planned = place.read(f"torel/plan-{name}")["numbers"]
    task, width = task_of(source.env)
    policies = kept.load(place.file(path_of(settings)), planned["policies"], width, task)
    seed = 1_000 + settings["seed"]
    earned = earn(policies, task, source.env, settings["episodes"], seed)
    arms, worth = [bandit.stored(each) for each in earned.played], [float(p.returns.mean()) for p in earned.played]
    target, curves = worth[planned["chosen"]], {}
    for among in dict.fromkeys((min(bandit.AMONG, len(arms)), len(arms))):
        curve = bandit.tuned(0, arms, worth, among, trials=settings["trials"])
        some = np.unique(np.linspace(0, len(curve.samples) - 1, POINTS).astype(int))
        needed = bandit.needed(curve, target)
        curves[str(among)] = {
            "needed": needed if np.isfinite(needed) else None,
            **{field: getattr(curve, field)[some].tolist() for field in ("samples", "worth", "low", "high")},
        }
    return {**earned.columns(), "bandit": curves, "target": target}
