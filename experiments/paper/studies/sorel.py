"""SOReL against rows: what was promised by rows alone, and what the policy then truly earned.

Three systems: the paper's with a memory (its GRU), the same without one, and ours, a portfolio of candidates.
Beside each chosen policy stands the one without its history, which FQE can judge as well, as in the paper.
"""

from __future__ import annotations

import jax
import numpy as np

from offing import planner as planners
from offing.data import Log, broken
from offing.online.play import task_of
from offing.report.verdict import verdict
from offing.tune.candidates import pad_starts
from offing.tune.portfolio import portfolio
from offing.tune.run import Run
from offing.tune.systems import WORLDS, Result, planned
from offing.types import Json, Policy
from offing.value import estimators
from offing.value.estimate import Estimate, ValueEstimate
from offing.value.pool import memoryless
from offing.value.predictive import predictive

from ..parts import Numbers, Part, Place, Settings
from . import kept
from .tasks import BRAX, EVERY, GYMNAX, Source
from .truth import Earned, earn
from .worlds import about, fit

LEVEL = 0.9
SYSTEMS = ("memory", "none", "ours")
CORES = {"memory": "gru", "none": "none"}  # of the paper's system; ours has cores of its own
GYMNAX_POINTS = [(rows, seed) for rows in (200, 1_000, 3_000, 8_000, 20_000) for seed in (0, 1, 2)]
BRAX_POINTS = [(200_000, 0), (50_000, 0), (200_000, 1), (200_000, 2), (500_000, 0), (20_000, 0)]
LONGEST = 500_000  # rows that arrays of a Brax log have: compiling costs a GPU more than what lies unused
SWEPT = {"gymnax": 1_000, "brax": 200_000}  # rows at which the paper sweeps the solver's settings
SECONDS = {"memory": 60.0, "none": 60.0, "ours": 120.0}  # expected of a plan, large on an H200 or quick on a core


def parts(scale: str) -> list[Part]:
    """Plans of every system at every point, and what their policies truly earn."""
    if scale == "smoke":
        toy = EVERY["toy"]
        return [part for system in ("none", "ours") for part in point(toy, 400, 0, system, scale)]
    gymnax = [(s, n, seed) for s in GYMNAX for n, seed in GYMNAX_POINTS]
    brax = [(s, n, seed) for n, seed in BRAX_POINTS for s in BRAX]
    return [
        *(part for at in gymnax for system in ("memory", "ours") for part in point(*at, system, "quick")),
        *(part for at in brax for system in SYSTEMS for part in point(*at, system, "large")),
    ]


def point(source: Source, rows: int, seed: int, system: str, scale: str) -> list[Part]:
    """A plan, and its playing."""
    large = scale == "large"
    at: Settings = {"task": source.name, "rows": rows, "seed": seed, "system": system, "scale": scale}
    at = {**at, "core": CORES.get(system, "none" if scale == "smoke" else None)}
    name = f"{source.name}-{rows}-{seed}-{system}"
    episodes = {"smoke": 8, "quick": 400, "large": 64}[scale]
    whole = rows == SWEPT["brax" if large else "gymnax"] or scale == "smoke"
    plays: Settings = {**at, "episodes": episodes, "whole": whole}
    hardware, seconds = ("GPU" if large else "CPU"), 30.0 if scale == "smoke" else SECONDS[system]
    playing = (300.0 if whole else 40.0) if large else 10.0
    done = f"sorel/plan-{name}"
    return [
        Part(
            "sorel",
            f"plan-{name}",
            "plan",
            hardware,
            seconds,
            at,
            plan,
            source.needs,
            (path_of(at),),
            source.brought,
        ),
        Part("sorel", f"play-{name}", "play", "CPU", playing, plays, realise, (done,)),
    ]


def path_of(settings: Settings) -> str:
    return "policies/sorel-{task}-{rows}-{seed}-{system}.npz".format(**settings)


def plan(place: Place, settings: Settings) -> Numbers:
    """One point: worlds by PIL, policies, the promise for the chosen one, and the verdict."""
    source, rows, seed = EVERY[str(settings["task"])], settings["rows"], settings["seed"]
    scale, system = str(settings["scale"]), str(settings["system"])
    plain = source.load(place, rows, seed)
    log = padded(plain, LONGEST) if scale == "large" else plain
    ours = system == "ours"
    fitted = fit(place, log, seed, scale, wanted=WORLDS if ours else 0)
    names, core = ("bc", "rppo") if scale == "smoke" else (), settings["core"]
    plans = (
        portfolio(scale, log.task.actions, names, core, log.data.rows)
        if ours
        else planners.space("rppo", scale, core=core)
    )
    key = jax.random.split(jax.random.key(seed))[1]  # as `sorel` has it
    run = Run(
        place.cache("sorel-{task}-{rows}-{seed}-{system}".format(**settings), {**settings, "log": log.fingerprint})
    )
    result = planned(key, log, fitted.choice, fitted.worlds, plans, run=run)
    policies, described, scores, chosen = field_of(result, log)
    kept.save(place.file(path_of(settings)), policies)
    ruling = verdict(result.pil, result.predicted, result.behaviour, broken=broken(plain.data))
    return {
        **about(fitted, log.task),
        **promised(result.predicted.returns),
        "verdict": ruling.word,
        "behaviour": result.behaviour._asdict(),
        "support": result.predicted.support._asdict(),
        "length": result.predicted.length,
        "policies": described,
        "scores": scores,
        "chosen": chosen,
        "forgetful": forgetful(result, plain, scale),
    }


def field_of(result: Result, log: Log) -> tuple[list[Policy], list[Numbers], list[float], int]:
    """All policies of a plan: themselves, their settings, what held-out worlds say of each, and the chosen one."""
    if result.policy.field is not None:
        field = result.policy.field
        every = [kept.described(one.planner, [one.setting])[0] for one in field.candidates]
        return (
            [one.policy for one in field.candidates],
            every,
            [one.promise.median for one in field.candidates],
            field.index,
        )
    choice, judge = result.policy, pad_starts(result.worlds.fold(1))
    scores = [
        predictive(jax.random.key(7), policy, judge, log.data, copies=64).returns.median
        for policy in choice.policies
    ]
    return list(choice.policies), kept.described(choice.planner, choice.points), scores, choice.index


def promised(promise: ValueEstimate) -> Numbers:
    """The promise for the chosen policy's return, with the paper's bands."""
    returns = np.asarray(promise.returns)
    middle = int(np.argsort(returns.mean(1))[len(returns) // 2])
    return {
        "predicted": promise.median,
        "interval": list(promise.interval(LEVEL)),
        "range": list(promise.range),
        "middle_std": float(returns[middle].std()),  # of rollouts in the median world: the paper's dark band
        "terms": promise.terms,
        "gap": promise.gap,
        "widen": promise.widen,
    }


def forgetful(result: Result, log: Log, scale: str) -> Json:
    """The discounted value of the chosen policy with its history emptied at every step, by worlds and by FQE."""
    policy, fqe = memoryless(result.picked), estimators.get("fqe")
    ours = predictive(jax.random.key(11), policy, pad_starts(result.worlds.fold(1)), log.data, loss=result.pil)
    theirs: Estimate = fqe.estimate(jax.random.key(11), [policy], log.data, log.task, fqe.hypers(scale))[0]
    short = lambda value: {"median": value.median, "interval": list(value.interval(LEVEL))}
    return {"worlds": short(ours.value), "fqe": short(theirs.estimate)}


def padded(log: Log, rows: int) -> Log:
    """The log in arrays of so many rows, of which only its own are in use: one program for all sizes."""
    more = max(0, rows - len(log.data.episode))

    def pad(leaf: np.ndarray) -> np.ndarray:
        return np.concatenate([leaf[:rows], np.zeros((more, *leaf.shape[1:]), leaf.dtype)])

    steps = jax.tree.map(pad, jax.tree.map(np.asarray, log.data.steps))
    return log._replace(data=log.data._replace(steps=steps, episode=pad(np.asarray(log.data.episode))))


def realise(place: Place, settings: Settings) -> Numbers:
    """What the chosen policy truly earned, with its history and without; where the sweep is, all policies."""
    source, episodes = EVERY[str(settings["task"])], settings["episodes"]
    planned_ = place.read("sorel/plan-{task}-{rows}-{seed}-{system}".format(**settings))["numbers"]
    task, width = task_of(source.env)
    policies = kept.load(place.file(path_of(settings)), planned_["policies"], width, task)
    chosen = planned_["chosen"]
    play = lambda some: earn(some, task, source.env, episodes, 1_000 + settings["seed"])
    whole: Earned = play(policies if settings["whole"] else [policies[chosen]])
    columns = whole.columns()
    place_of = chosen if settings["whole"] else 0
    mine = {name: column[place_of] for name, column in columns.items() if isinstance(column, list)}
    low, high = planned_["interval"]
    return {
        **mine,
        "episodes": episodes,
        "inside": bool(low <= mine["return"] <= high),
        "every": columns if settings["whole"] else None,
        "forgetful": {
            name: one[0]
            for name, one in play([memoryless(policies[chosen])]).columns().items()
            if isinstance(one, list)
        },
    }
