"""Estimators against the truth: pools of policies of spread quality, judged from logs alone.

The pools: 36 policies of each gymnax task, none made by the worlds that judge them (`pools`), and what `sorel` and
`torel` planned on Brax and on D4RL's counterparts. Their truths are the parts that played them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

import offing
from offing.data import Log
from offing.online.collect import collect
from offing.online.play import task_of
from offing.report.store import save_columns
from offing.tune.candidates import pad_starts
from offing.types import Json, Policy
from offing.value import estimators, importance
from offing.value.estimate import Estimate, ValueEstimate
from offing.value.estimators import dualdice, fqe
from offing.value.pool import memoryless
from offing.value.predictive import predictive

from ..parts import Numbers, Part, Place, Settings
from . import kept, pools, sorel, torel
from .tasks import ADROIT, BRAX, EVERY, MUJOCO, SMOKE, Source
from .truth import earn
from .worlds import fit, loss

LEVEL, COPIES = 0.9, 256
METHODS = estimators.methods()
# Nets of 64 and a quick trailing copy, so that two cores train a pool to where its values have settled.
ON_CPU = {
    "fqe": fqe.Hypers(width=64, members=3, lr=1e-3, updates=10_000, track=0.05),
    "dr": importance.Doubly(width=64, members=3, lr=1e-3, updates=6_000, track=0.05),
    "dualdice": dualdice.Hypers(width=64, members=2, lr=3e-4, zeta_lr=3e-3, updates=6_000),
}
SECONDS = {"predictive": 35.0, "fqe": 60.0, "is": 10.0, "dr": 60.0, "dualdice": 120.0}  # of a sweep, on an H200
ON_CORE = {"predictive": 250.0, "fqe": 200.0, "is": 5.0, "dr": 170.0, "dualdice": 280.0}
REPLAYS = 40_000  # rows of a replay on gymnax


def parts(scale: str) -> list[Part]:
    """Every pool by every method."""
    if scale == "smoke":
        return [_judged(_sweep(SMOKE[0], "iql", 0, 400), m, scale, "CPU", 20) for m in ("predictive", "is")]
    listed: list[Part] = []
    for task in ("pendulum", "cartpole"):
        pool: Settings = {"task": task, "seed": pools.SEED}
        truth: Settings = {"task": task, "episodes": 400}
        listed.append(
            Part("judges", f"pool-{task}", "collect", "CPU", 60, pool, make_pool, (), (pool_path(task),))
        )
        listed.append(
            Part("judges", f"truth-{task}", "play", "CPU", 30, truth, truth_of_pool, (f"judges/pool-{task}",))
        )
        for seed in (0, 1, 2):
            steps = max(REPLAYS, pools.STEPS[task])
            log: Settings = {"task": task, "seed": seed, "rows": REPLAYS, "steps": steps}
            listed.append(
                Part("judges", f"log-{task}-{seed}", "collect", "CPU", 40, log, replay, (), (log_path(log),))
            )
            for method in METHODS:
                listed.append(_judged(_spread(task, seed), method, "quick", "CPU", ON_CORE[method]))
    for source in (*BRAX, *MUJOCO, *ADROIT):
        for planner in ("iql", "rebrac"):
            for method in METHODS:
                asked = _sweep(source, planner, 0, torel.ROWS)
                listed.append(_judged(asked, method, "large", "GPU", SECONDS[method]))
    for source in BRAX:
        for method in METHODS:
            listed.append(_judged(_plans(source), method, "large", "GPU", SECONDS[method]))
    return listed


class Pool(NamedTuple):
    """What is judged: where its log, its policies and its truth are."""

    name: str
    task: str
    kind: str  # spread, torel or sorel
    rows: int
    seed: int
    planner: str
    made_by: str  # the part that made the policies
    played_by: str
    log: tuple[str, ...]  # the part that made the log

    @property
    def settings(self) -> dict[str, Json]:
        names = ("task", "kind", "rows", "seed", "planner", "made_by", "played_by")
        return {name: getattr(self, name) for name in names}


def _spread(task: str, seed: int) -> Pool:
    made, played = f"judges/pool-{task}", f"judges/truth-{task}"
    return Pool(f"{task}-{seed}", task, "spread", REPLAYS, seed, "", made, played, (f"judges/log-{task}-{seed}",))


def _sweep(source: Source, planner: str, seed: int, rows: int) -> Pool:
    name = torel.name_of(source, planner, seed)
    return Pool(
        name, source.name, "torel", rows, seed, planner, f"torel/plan-{name}", f"torel/play-{name}", source.needs
    )


def _plans(source: Source) -> Pool:
    name = f"{source.name}-{sorel.SWEPT['brax']}-0-none"
    return Pool(
        f"{source.name}-sorel-0",
        source.name,
        "sorel",
        sorel.SWEPT["brax"],
        0,
        "rppo",
        f"sorel/plan-{name}",
        f"sorel/play-{name}",
        source.needs,
    )


def _judged(pool: Pool, method: str, scale: str, hardware: str, seconds: float) -> Part:
    settings: Settings = {**pool.settings, "method": method, "scale": scale}
    needs = tuple(dict.fromkeys((pool.made_by, *pool.log)))
    brought = EVERY[pool.task].brought
    return Part("judges", f"{pool.name}-{method}", "plan", hardware, seconds, settings, judge, needs, (), brought)


# ---- pools, logs and truths of gymnax


def pool_path(task: str) -> str:
    """A task in, the file of its pool's policies out."""
    return f"policies/spread-{task}.npz"


def log_path(settings: Settings) -> str:
    """Settings with a task and a seed in, the file of that replay out."""
    return "logs/replay-{task}-{seed}.npz".format(**settings)


def make_pool(place: Place, settings: Settings) -> Numbers:
    """The pool of a gymnax task: `pools` says of what."""
    task = str(settings["task"])
    members = pools.make(task)
    pools.keep(place.file(pool_path(task)), members)
    return {"policies": [member.name for member in members]}


def replay(place: Place, settings: Settings) -> Numbers:
    """A thinned replay of an online run, from poor to good play, as the Brax logs are."""
    task, seed = str(settings["task"]), settings["seed"]
    rows, steps = settings["rows"], settings["steps"]
    columns = collect(task, rows, seed, policy="trained", steps=steps)
    save_columns(place.file(log_path(settings)), columns)
    return {"rows": rows, "mean_reward": float(np.mean(columns["reward"]))}


def truth_of_pool(place: Place, settings: Settings) -> Numbers:
    """What every policy of a pool truly earns."""
    task = str(settings["task"])
    given = task_of(task)[0]
    members = pools.fetch(place.file(pool_path(task)), task, given)
    return earn([one.policy for one in members], given, task, settings["episodes"]).columns()


# ---- judging


def log_of(place: Place, settings: Settings) -> Log:
    task, rows, seed = str(settings["task"]), settings["rows"], settings["seed"]
    if settings["kind"] == "spread":
        return offing.load(place.file(log_path(settings)), rows, seed)
    return EVERY[task].load(place, rows, seed)


def policies_of(place: Place, settings: Settings, log: Log) -> list[Policy]:
    task, width = str(settings["task"]), log.data.steps.obs.shape[1]
    if settings["kind"] == "spread":
        members = pools.fetch(place.file(pool_path(task)), task, log.task)
        return [one.policy for one in members]
    made = str(settings["made_by"])
    record = place.read(made)
    path = {"torel": torel.path_of, "sorel": sorel.path_of}[str(settings["kind"])]
    numbers = record["numbers"]
    return kept.load(place.file(path(record["settings"])), numbers["policies"], width, log.task)


def judge(place: Place, settings: Settings) -> Numbers:
    """What one method says of every policy of a pool."""
    log, method, scale = log_of(place, settings), str(settings["method"]), str(settings["scale"])
    policies, more = policies_of(place, settings, log), {}
    if method == estimators.PREDICTIVE:
        estimates, more = by_worlds(place, log, policies, settings)
    else:
        estimator = estimators.get(method)
        judged = [memoryless(policy) if estimator.memoryless else policy for policy in policies]
        hypers = ON_CPU[method] if scale == "quick" and method in ON_CPU else estimator.hypers(scale)
        known = {"logp": log.logp} if estimator.weighs and log.logp is not None else {}
        estimates = estimator.estimate(jax.random.key(11), judged, log.data, log.task, hypers, **known)
    returns = [one.returns for one in estimates if one.returns is not None]
    names = dict.fromkeys(name for one in estimates for name in one.health)
    return {
        "value": columns([one.estimate for one in estimates]),
        "return": columns(returns) if returns else None,
        "health": {name: [float(one.health[name]) for one in estimates] for name in names},
        "notes": sorted({note for one in estimates for note in one.notes}),
        **more,
    }


def columns(estimates: Sequence[ValueEstimate]) -> Json:
    """Estimates policy by policy."""
    return {
        "median": [one.median for one in estimates],
        "interval": [list(one.interval(LEVEL)) for one in estimates],
        "range": [list(one.range) for one in estimates],
    }


def by_worlds(
    place: Place, log: Log, policies: Sequence[Policy], settings: Settings
) -> tuple[list[Estimate], Numbers]:
    """The posterior's word: all worlds, or for what was planned in the first fold, those of the second."""
    scale, imagined = str(settings["scale"]), settings["planner"] in ("rppo", "mopo", "morel")
    fitted = fit(place, log, settings["seed"], scale)
    judge = pad_starts(fitted.worlds.fold(1) if imagined else fitted.worlds)
    own = pad_starts(fitted.worlds.fold(0)) if imagined else None
    copies = 4 if scale == "smoke" else COPIES
    said = []
    for policy in policies:
        one = predictive(
            jax.random.key(11), policy, judge, log.data, own=own, copies=copies, loss=fitted.choice.pil
        )
        said.append(Estimate(one.value, {**one.support._asdict(), "length": one.length}, (), one.returns))
    return said, {"pil": loss(fitted.choice.pil, log.task), "worlds": fitted.worlds.members}
