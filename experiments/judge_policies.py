"""Estimators against the truth: pools of policies of spread quality, judged from logs alone, then played.

    python experiments/judge_policies.py --suite gymnax
    python experiments/judge_policies.py --suite brax --phase judge --logs out/logs --policies out/policies
    python experiments/judge_policies.py --suite brax --phase play --policies out/policies
    python experiments/judge_policies.py --suite brax --phase table

gymnax: a pool of each task (`pools.py`), and three logs, each a thinned replay of an online run of its own, from
poor to good play, as the Brax logs are (`--kind random`: of random policies). brax: the pools are what
`tuned_offline.py --phase plan` and `value_against_rows.py --phase plan` left in --policies, the logs are files.
Judging needs logs and policies and no simulator; playing needs policies and a simulator; the table needs what both
wrote, which is two files. Whatever is finished is kept in results/ and not done again. `--jobs 2` takes two logs
side by side.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pools
import tuned_offline
import value_against_rows
from abreast import abreast
from judged import draw, table
from pools import Member

import offing
from offing.data import Log
from offing.hypers import asdict
from offing.online import envs
from offing.online.collect import collect
from offing.online.play import play, rollouts
from offing.report.store import write
from offing.tune.candidates import pad_starts
from offing.tune.choose import PosteriorChoice
from offing.types import Policy, Posterior
from offing.value import estimators, importance
from offing.value.estimate import Estimate, ValueEstimate
from offing.value.estimators import dualdice as dice
from offing.value.estimators import fqe
from offing.value.pool import memoryless
from offing.value.predictive import predictive

RESULTS = Path(__file__).parent / "results"
LEVEL = 0.9
METHODS = estimators.methods()
PRESETS: dict[str, Any] = {name: estimators.get(name).presets for name in estimators.names()}
SUITES: dict[str, dict[str, Any]] = {
    "gymnax": {
        "tasks": ("cartpole", "pendulum"),
        "points": [(40_000, 0), (40_000, 1), (40_000, 2)],
        "scale": "quick",
        "episodes": 400,
        "beyond": 1_500,  # steps after which nothing of a discounted value is left
        # Nets of 64 and a quick trailing copy, so that two cores train a pool to where its values have settled.
        "settings": {
            "fqe": fqe.Hypers(width=64, members=3, lr=1e-3, updates=10_000, track=0.05),
            "is": PRESETS["is"]["quick"],
            "dr": importance.Doubly(width=64, members=3, lr=1e-3, updates=6_000, track=0.05),
            "dualdice": dice.Hypers(width=64, members=2, lr=3e-4, zeta_lr=3e-3, updates=6_000),
        },
    },
    "brax": {
        "tasks": ("halfcheetah", "hopper"),
        "points": [(200_000, 0)],
        "scale": "large",
        "episodes": 32,
        "beyond": 3_000,
        "settings": {method: presets["large"] for method, presets in PRESETS.items()},
    },
}


def facts() -> dict[str, str]:
    return {"device": jax.devices()[0].device_kind, "jax": jax.__version__, "python": platform.python_version()}


def same(record: dict[str, Any], request: dict[str, Any]) -> bool:
    return all(record.get(name) == value for name, value in request.items())


def add(path: Path, *more: dict[str, Any]) -> None:
    """The records, behind those that are there, without spaces: they are long."""
    write(path, (json.dumps([*read(path), *more], separators=(",", ":")) + "\n").encode())


def read(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text()) if path.exists() else []


# ---- what is judged, and by what


def log_of(suite: str, task: str, rows: int, seed: int, given: Any) -> Log:
    if suite == "brax":
        return offing.load(given.logs / f"{task}.npz", rows, seed)
    if given.kind == "random":
        return offing.load(collect(f"gymnax-{task}-random", rows, seed))
    return offing.load(collect(task, rows, seed, policy="trained", steps=max(rows, pools.STEPS[task])))


def pools_of(suite: str, task: str, rows: int, seed: int, given: Any, of: Any) -> dict[str, list[Member]]:
    """Pools by name; `of` is a log's task and the width of its observations."""
    if suite == "gymnax":
        return {"spread": pools.fetch(given.policies / f"judged-{task}.npz", task, of[0])}
    by_name: dict[str, list[Member]] = {}
    for file, script, kind in (
        (given.sweeps, tuned_offline, "planner"),
        (given.plans, value_against_rows, "core"),
    ):
        for record in read(file):
            here = {"task": task, "rows": rows, "seed": seed}
            if not same(record, here) or not (given.policies / f"{script.name(record)}.npz").exists():
                continue
            policies = script.fetch(given.policies, record, *of)
            called = record[kind] if kind == "planner" else f"sorel-{record[kind]}"
            by_name[called] = [Member(f"{script.name(record)}-{i}", policy) for i, policy in enumerate(policies)]
    return by_name


def in_worlds(
    pool: list[Member], log: Log, choice: PosteriorChoice, worlds: Posterior, planned: bool, copies: int
) -> list[Estimate]:
    """The posterior's word: all worlds, or for what was planned in the first fold, those of the second."""
    judge, own = (
        (pad_starts(worlds.fold(1)), pad_starts(worlds.fold(0))) if planned else (pad_starts(worlds), None)
    )
    estimates = []
    for member in pool:
        predicted = predictive(
            jax.random.key(11), member.policy, judge, log.data, own=own, copies=copies, loss=choice.pil
        )
        health = {**predicted.support._asdict(), "length": predicted.length, "widen": predicted.value.widen}
        estimates.append(Estimate(predicted.value, health, (), predicted.returns))
    return estimates


def columns(estimates: list[ValueEstimate]) -> dict[str, Any]:
    """Estimates as JSON, one entry for each policy."""
    short = lambda *numbers: [float(f"{number:.6g}") for number in numbers]
    return {
        "median": short(*(e.median for e in estimates)),
        "interval": [short(*e.interval(LEVEL)) for e in estimates],
        "range": [short(*e.range) for e in estimates],
        "epistemic": short(*(e.epistemic for e in estimates)),
    }


def columns_of(estimates: list[Estimate]) -> dict[str, Any]:
    """An estimator's figures of a pool, as JSON."""
    names = dict.fromkeys(name for one in estimates for name in one.health)
    returns = [one.returns for one in estimates if one.returns is not None]
    return {
        "value": columns([one.estimate for one in estimates]),
        "return": columns(returns) if returns else None,
        "health": {name: [float(f"{one.health[name]:.4g}") for one in estimates] for name in names},
        "notes": sorted({note for one in estimates for note in one.notes}),
    }


def judge(suite: str, task: str, rows: int, seed: int, given: Any, out: Path) -> None:
    """Every method over every pool of one log; what is in `out` already is left out."""
    plan = SUITES[suite]
    log = log_of(suite, task, rows, seed, given)
    of, kind = (log.task, log.data.steps.obs.shape[1]), "file" if suite == "brax" else given.kind
    worlds = None
    for called, pool in pools_of(suite, task, rows, seed, given, of).items():
        for method in given.methods:
            request = {"task": task, "rows": rows, "seed": seed, "pool": called, "method": method, "kind": kind}
            if any(same(record, request) for record in read(out)):
                continue
            began, used, more = time.perf_counter(), time.process_time(), {}
            if method == "predictive":
                if worlds is None:
                    worlds = tuned_offline.worlds_of(log, seed, given.scale or plan["scale"], given.work)
                more = {
                    "pil": {"total": worlds[0].pil.total, "e": worlds[0].pil.e, "v": worlds[0].pil.v},
                    "word": worlds[0].pil.word,
                    "worlds": worlds[1].members,
                    "noise_scale": float(np.mean(worlds[0].share)),
                    "worlds_seconds": round(time.perf_counter() - began, 1),
                }
                estimates = in_worlds(pool, log, *worlds, called.startswith("sorel"), given.copies)
            else:
                policies = [memoryless(m.policy) if estimators.get(method).memoryless else m.policy for m in pool]
                hypers = PRESETS[method][given.preset] if given.preset else plan["settings"][method]
                more = {"settings": asdict(hypers)}
                estimator = estimators.get(method)
                known = {"logp": log.logp} if estimator.weighs and log.logp is not None else {}
                estimates = estimator.estimate(jax.random.key(11), policies, log.data, log.task, hypers, **known)
            seconds, cores = round(time.perf_counter() - began, 1), round(time.process_time() - used, 1)
            took = {"seconds": seconds, "core_seconds": cores}
            record = {
                "suite": suite,
                **request,
                "policies": [m.name for m in pool],
                **columns_of(estimates),
                **more,
            }
            add(out, {**record, "level": LEVEL, **took, "fingerprint": log.fingerprint, **facts()})
            print(
                f"{task} {rows} {seed} {called} {method}: {len(pool)} policies, {seconds} s, {cores} core-s",
                flush=True,
            )


# ---- the truth


@cache
def endless(where: str, steps: int) -> envs.Env:
    """The environment without its time limit, for `steps` steps: what a discounted value without end means."""
    env = envs.make(where)

    def step(key: Any, state: Any, action: Any) -> Any:
        return env.step(key, state.replace(time=0) if hasattr(state, "time") else state, action)

    return envs.Env(env.reset, step, env.task._replace(horizon=steps))


def realise(where: str, policy: Policy, episodes: int, beyond: int, seed: int) -> dict[str, float]:
    """What a policy truly earns: return, discounted value, and the value of an episode without a time limit."""
    task = envs.make(where).task
    played = play(policy, task, where, episodes, seed=seed)
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(seed), i))(jnp.arange(episodes))
    _, values, _ = _further(keys, policy, task.discount, endless(where, beyond), False)
    mean = {
        "return": played.returns,
        "value": played.values,
        "endless": np.asarray(values),
        "length": played.lengths,
    }
    means = {name: float(np.mean(column)) for name, column in mean.items()}
    return {**means, **{f"{n}_stderr": float(np.std(c, ddof=1) / np.sqrt(episodes)) for n, c in mean.items()}}


_further = jax.jit(rollouts, static_argnames=("env", "sampled"))


def realise_all(suite: str, task: str, rows: int, seed: int, given: Any, out: Path) -> None:
    """Plays every pool of a task; a pool that serves several logs is played once."""
    where = f"brax-{task}" if suite == "brax" else task
    env = envs.make(where)
    of = (env.task, jax.eval_shape(env.reset, jax.random.key(0))[1].shape[0])
    for called, pool in pools_of(suite, task, rows, seed, given, of).items():
        request = {"task": task, "pool": called, "policies": [m.name for m in pool]}
        if any(same(record, request) for record in read(out)):
            continue
        began = time.perf_counter()
        played = [realise(where, m.policy, given.episodes, SUITES[suite]["beyond"], 1_000) for m in pool]
        truth = {name: [float(f"{one[name]:.6g}") for one in played] for name in played[0]}
        more = {"episodes": given.episodes, "seconds": round(time.perf_counter() - began, 1), **facts()}
        add(
            out,
            {
                "suite": suite,
                **request,
                **truth,
                "horizon": env.task.horizon,
                "discount": env.task.discount,
                **more,
            },
        )
        print(f"{task} {called}: {len(pool)} policies played, {more['seconds']} s", flush=True)


def make(task: str, given: Any) -> None:
    """The pool of a gymnax task, if it is not there."""
    path = given.policies / f"judged-{task}.npz"
    if not path.exists():
        began = time.perf_counter()
        pools.keep(path, pools.make(task))
        print(f"{task}: pool made, {time.perf_counter() - began:.0f} s", flush=True)


def lacking(logs: list[Any], methods: Any, records: list[dict[str, Any]]) -> list[list[str]]:
    """Arguments of a part for each log that some methods have not judged, and those methods."""
    parts = []
    for task, rows, seed in logs:
        there = {r["method"] for r in records if same(r, {"task": task, "rows": rows, "seed": seed})}
        if left := [method for method in methods if method not in there]:
            point = ["--task", task, "--points", f"{rows}:{seed}"]
            parts.append([*point, "--phase", "judge", "--methods", *left])
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=sorted(SUITES), default="gymnax")
    parser.add_argument("--task", nargs="+", help="default: all of the suite")
    parser.add_argument("--phase", choices=("all", "plan", "play", "judge", "table"), default="all")
    parser.add_argument("--points", nargs="+", help="ROWS:SEED, default: the suite's")
    parser.add_argument("--kind", choices=("replay", "random"), default="replay", help="of the gymnax logs")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--scale", help="of the posterior, default: the suite's")
    parser.add_argument(
        "--preset", choices=sorted(PRESETS["fqe"]), help="of the other methods, default: the suite's"
    )
    parser.add_argument("--copies", type=int, default=256, help="episodes in every world")
    parser.add_argument("--episodes", type=int, help="to play, default: the suite's")
    parser.add_argument("--logs", type=Path, default=Path("out/logs"), help="folder of the Brax logs, TASK.npz")
    parser.add_argument("--policies", type=Path, default=Path("out/policies"))
    parser.add_argument("--sweeps", type=Path, default=RESULTS / "tuned_offline_brax.json")
    parser.add_argument("--plans", type=Path, default=RESULTS / "value_against_rows_brax.json")
    parser.add_argument("--work", type=Path, default=Path("out/work"), help="where fitted worlds are kept")
    parser.add_argument("--out", type=Path, help="default: results/judge_policies_SUITE.json, or _random")
    parser.add_argument("--truths", type=Path, help="default: results/judge_policies_SUITE_truths.json")
    parser.add_argument("--jobs", type=int, default=1, help="logs side by side, each on a core of its own")
    parser.add_argument("--quiet", action="store_true", help="no table at the end")
    given = parser.parse_args()
    suite = SUITES[given.suite]
    given.episodes = given.episodes or suite["episodes"]
    random = given.suite == "gymnax" and given.kind == "random"
    out = given.out or RESULTS / f"judge_policies_{'random' if random else given.suite}.json"
    truths = given.truths or RESULTS / f"judge_policies_{given.suite}_truths.json"
    points = [tuple(map(int, p.split(":"))) for p in given.points] if given.points else suite["points"]
    logs = [(task, rows, seed) for rows, seed in points for task in given.task or suite["tasks"]]
    tasks = list(dict.fromkeys(task for task, _, _ in logs))
    if given.phase in ("all", "plan") and given.suite == "gymnax" and given.jobs > 1:
        abreast([["--task", task, "--phase", "plan"] for task in tasks], out, given.jobs)
    elif given.phase in ("all", "plan") and given.suite == "gymnax":
        for task in tasks:
            make(task, given)
    if given.phase in ("all", "play"):
        for task, rows, seed in logs:
            realise_all(given.suite, task, rows, seed, given, truths)
    if given.phase in ("all", "judge") and given.jobs > 1:
        abreast(lacking(logs, given.methods, read(out)), out, given.jobs)
        add(out)
    elif given.phase in ("all", "judge"):
        for task, rows, seed in logs:
            judge(given.suite, task, rows, seed, given, out)
    if given.phase in ("all", "table") and not given.quiet:
        plans = read(given.plans) if given.suite == "brax" else []
        print(table(read(out), read(truths), plans))
        draw(read(out), read(truths), out.with_suffix(".svg"))


if __name__ == "__main__":
    main()
