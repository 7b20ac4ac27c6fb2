"""What each part is worth: one thing changed at a time, in the worlds, in the planning, or in who judges.

Every case does what `offing sorel --paper` does: worlds, recurrent PPO in them, a promise; then the policy is
played. Beside it the same worlds say what the written controllers earn, which no planner has bent to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from offing import planner as planners
from offing.data import Log
from offing.online.play import task_of
from offing.planner import rppo
from offing.posterior.models.ensemble import Hypers
from offing.tune.candidates import choose_policy, pad_starts
from offing.tune.run import Run
from offing.types import Dataset, Policy, Posterior
from offing.value.pool import memoryless
from offing.value.predictive import predictive

from ..parts import Numbers, Part, Place, Settings
from . import kept
from .hands import GAINS, hands
from .posterior import off
from .tasks import BRAX, EVERY, GYMNAX
from .truth import earn
from .worlds import Worlds, fit, loss, settings_of

LEVEL, COPIES = 0.9, 256
Change = dict[str, Any]
WORLDS: dict[str, Change] = {  # of the worlds' settings: what stands in every one of the scale's
    "as it is": {},
    "prior 0": {"prior_scale": 0.0},
    "prior 1": {"prior_scale": 1.0},
    "prior 3": {"prior_scale": 3.0},
    "no bootstrap": {"bootstrap": 0.0},
    "target noise": {"jitter": 0.1},
    "no linear prior mean": {"linear": 0.0},
    "4 worlds": {"members": 2, "elites": 2},
    "8 worlds": {"members": 4, "elites": 4},
    "16 worlds": {"members": 8, "elites": 8},
    "40 worlds": {"members": 20, "elites": 20},
    "100 worlds": {"members": 50, "elites": 50},
    # a plain ensemble without a bootstrap, variance that shapes the mean, a new member at every step
    "released code": {"prior_scale": 0.0, "bootstrap": 0.0, "linear": 0.0, "beta": 0.0, "per_step": True},
}
PLANNING: dict[str, Change] = {
    "a world a step": {"per_step": True},
    "no memory": {"core": "none"},
    "GRU": {"core": "gru"},
}
JUDGED: dict[str, Change] = {  # who chooses among settings and promises
    "judged by its own worlds": {"judge": "own"},
    "linear worlds": {"model": "linear"},
    "worlds of neighbours": {"model": "neighbours"},
}
CASES = {**WORLDS, **PLANNING, **JUDGED}
OF_PLAN = ("per_step", "core")
OF_CASE = (*OF_PLAN, "judge", "model")
ROWS = {"gymnax": 5_000, "brax": 200_000}


def parts(scale: str) -> list[Part]:
    """Every case on every log."""
    if scale == "smoke":
        cases = {
            "as it is": {},
            "a world a step": {"per_step": True},
            "judged by its own worlds": {"judge": "own"},
        }
        at: Change = {"task": "toy", "rows": 400, "seed": 0, "scale": scale, "episodes": 4, "core": "none"}
        return [part for name, change in cases.items() for part in case(name, {**at, **change}, "CPU", 20)]
    listed: list[Part] = []
    for name, change in CASES.items():
        worlds = 3.0 if name == "100 worlds" else 1.0
        for source in GYMNAX:
            for seed in (0, 1, 2):
                at = {"task": source.name, "rows": ROWS["gymnax"], "seed": seed, "scale": "quick", "episodes": 400}
                listed += case(name, {**at, **change}, "CPU", 150 * worlds)
        at = {"task": BRAX[1].name, "rows": ROWS["brax"], "seed": 0, "scale": "large", "episodes": 64}
        listed += case(name, {**at, **change}, "GPU", (70 if "core" in change else 140) * worlds)
    return listed


def case(name: str, at: Change, hardware: str, seconds: float) -> list[Part]:
    """A plan under that change, and its playing."""
    source = EVERY[str(at["task"])]
    plans = {"case": name, **{key: value for key, value in at.items() if key != "episodes"}}
    part = f"{at['task']}-{at['seed']}-{name.replace(' ', '-')}"
    done = f"ablations/plan-{part}"
    known = source.env in GAINS
    needs = (f"posterior/hands-{source.env}",) if known else ()
    return [
        Part(
            "ablations", f"plan-{part}", "plan", hardware, seconds, plans, plan, (*source.needs, *needs),
            (path_of(plans),),
        ),
        Part(
            "ablations", f"play-{part}", "play", "CPU", 20, {**plans, "episodes": at["episodes"]}, realise, (done,)
        ),
    ]  # fmt: skip


def plan(place: Place, settings: Settings) -> Numbers:
    """Worlds, a plan in them and its promise, under one change."""
    source, rows, seed = EVERY[str(settings["task"])], settings["rows"], settings["seed"]
    scale, log = str(settings["scale"]), source.load(place, rows, seed)
    worlds_of, plan_of = changes(settings)
    model = str(settings.get("model", ""))
    grid = None if model else [worlds_of(one) for one in settings_of(scale, rows)]
    fitted = fit(place, log, seed, scale, grid and list(dict.fromkeys(grid)), model=model)
    plans = [plan_of(one) for one in planners.space("rppo", scale, core=settings.get("core"))]
    own = fitted.worlds.fold(0)
    judge = own if settings.get("judge") == "own" else fitted.worlds.fold(1)
    name = "ablations-{task}-{rows}-{seed}-{case}".format(**settings).replace(" ", "-")
    run = Run(place.cache(name, {**settings, "log": log.fingerprint}))
    key = jax.random.split(jax.random.key(seed))[1]
    policy = choose_policy(key, rppo.planner, list(dict.fromkeys(plans)), log.data, own, judge, "rppo", run)
    kept.save(place.file(path_of(settings)), [policy.picked])
    said = promise(policy.picked, judge, log.data, fitted)
    return {
        "pil": loss(fitted.choice.pil, log.task),
        "nll": fitted.choice.nll[fitted.choice.index],
        "worlds": fitted.worlds.members,
        "policies": kept.described("rppo", [policy.points[policy.index]]),
        **said,
        "hands": by_hands(place, str(settings["task"]), fitted, log),
    }


def changes(settings: Settings) -> tuple[Callable[[Any], Any], Callable[[rppo.Hypers], rppo.Hypers]]:
    """What a case does to a setting of worlds, and to one of the planner."""
    known = {"case", "task", "rows", "seed", "scale", "episodes", *OF_CASE}
    worlds = {name: value for name, value in settings.items() if name not in known}
    plans = {name: settings[name] for name in OF_PLAN if name in settings}
    return (
        lambda one: replace(one, **worlds) if isinstance(one, Hypers) else one,
        lambda one: replace(one, **plans),
    )


def promise(policy: Policy, judge: Posterior, data: Dataset, fitted: Worlds) -> Numbers:
    """The return that is promised, with and without the policy's history."""
    say = lambda one: (
        predictive(jax.random.key(11), one, pad_starts(judge), data, copies=COPIES, loss=fitted.choice.pil).returns
    )
    one, forgetful = say(policy), say(memoryless(policy))
    return {
        "predicted": one.median,
        "interval": list(one.interval(LEVEL)),
        "range": list(one.range),
        "forgetful": forgetful.median,
    }


def by_hands(place: Place, task: str, fitted: Worlds, log: Log) -> Numbers | None:
    """Error and coverage over the written controllers, where there are some."""
    env = EVERY[task].env
    if env not in GAINS:
        return None
    true = np.array(place.read(f"posterior/hands-{env}")["numbers"]["return"])
    error, inside = off(fitted.worlds, hands(env), log, true)
    return {"off": error, "inside": inside}


def path_of(settings: Settings) -> str:
    return "policies/ablations-{task}-{rows}-{seed}-{case}.npz".format(**settings).replace(" ", "-")


def realise(place: Place, settings: Settings) -> Numbers:
    """What the policy truly earned."""
    source, seed = EVERY[str(settings["task"])], settings["seed"]
    part = f"ablations/plan-{settings['task']}-{seed}-{str(settings['case']).replace(' ', '-')}"
    planned = place.read(part)["numbers"]
    task, width = task_of(source.env)
    policies = kept.load(place.file(path_of(settings)), planned["policies"], width, task)
    earned = earn(policies, task, source.env, settings["episodes"], 1_000 + seed)
    columns = {name: one[0] for name, one in earned.columns().items() if isinstance(one, list)}
    low, high = planned["interval"]
    return {**columns, "inside": bool(low <= columns["return"] <= high)}
