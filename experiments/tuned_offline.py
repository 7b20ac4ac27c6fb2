"""TOReL's choice against the truth: every setting's predicted return beside its true one (the paper's table).

    python experiments/tuned_offline.py --suite gymnax
    python experiments/tuned_offline.py --suite brax --task hopper --planners iql rebrac mopo morel --logs out/logs

Every sweep is what `offing torel` does: posterior by PIL, settings trained and ranked in held-out worlds; then,
and only then, every policy is played in the true environment. Trials are kept as they finish, and finished sweeps
in results/, so that a killed run goes on where it was. `--jobs 2` runs two logs side by side. `--phase plan`
leaves the playing out and keeps policies, `--phase play` plays those, `--phase table` prints the table. `--phase
score` has the worlds of today judge kept Brax policies of planners that look at no world. The true environment is
here to check, afterwards.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from abreast import abreast
from scipy import stats

import offing
from offing.data import Log
from offing.hypers import asdict
from offing.online import bandit, envs
from offing.online.play import Played, play_pool
from offing.posterior.models.ensemble import space as world_space
from offing.report.store import Folder, identity, pack, unpack, write
from offing.tune import systems
from offing.tune.candidates import pad_starts
from offing.tune.choose import PosteriorChoice, choose_posterior, refit
from offing.tune.plans import TrialPlan
from offing.tune.run import Run
from offing.tune.systems import chosen, overlapping
from offing.tune.trials import Contender, Trial
from offing.types import Policy, Posterior
from offing.value import metrics
from offing.value.predictive import predictive

RESULTS = Path(__file__).parent / "results"
SUITES: dict[str, dict[str, Any]] = {
    "gymnax": {
        "sweeps": [("pendulum", "rebrac"), ("cartpole", "iql"), ("cartpole", "rebrac")],
        "points": [(20_000, 0), (20_000, 1), (20_000, 2)],
        "space": "default",
        "scale": "quick",
        "updates": None,
        "episodes": 64,
    },
    "brax": {
        "sweeps": [
            (task, planner)
            for task in ("halfcheetah", "hopper", "walker2d")
            for planner in ("iql", "rebrac", "mopo", "morel")
        ],
        "points": [(200_000, 0)],
        "space": "paper",
        "scale": "large",
        "updates": 50_000,
        "episodes": 32,
    },
}


def name(record: dict[str, Any]) -> str:
    return "{suite}-{task}-{planner}-{rows}-{seed}".format(**record)


def run(suite: str, task: str, planner: str, rows: int, seed: int, given: Any) -> tuple[dict[str, Any], Any]:
    """One sweep: what was predicted of every setting, and their policies."""
    plan = SUITES[suite]
    began = time.perf_counter()
    source = f"offing:{task}" if suite == "gymnax" else Path(given.logs) / f"{task}.npz"
    log = offing.load(source, rows, seed)
    updates = given.updates or plan["updates"]
    space = given.space or plan["space"]
    fixed = {} if updates is None else {"updates": updates}
    settings = tuple(offing.planner.space(planner, space, **fixed))
    models = world_space(given.scale or plan["scale"], rows)
    cache = cache_of(given.work, log, seed, models)
    mine = Folder(cache.path / planner, identity(log.fingerprint, seed, settings, space, given.seeds))
    result = systems.torel(
        jax.random.key(seed),
        log,
        models,
        [Contender(planner, offing.planner.get(planner), settings)],
        seed,
        TrialPlan(seeds=given.seeds),
        Run(_Both(cache, mine, planner)),
    )
    record = {
        "suite": suite,
        "task": task,
        "planner": planner,
        "rows": rows,
        "seed": seed,
        "space": space,
        "updates": updates,
        "settings": [asdict(trial.setting) for trial in result.trials],
        "seeds": [trial.seed for trial in result.trials],
        **scored(result.trials, result.posterior, result.worlds),
        "behaviour": result.behaviour._asdict(),
        "seconds": round(time.perf_counter() - began, 1),
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "python": platform.python_version(),
    }
    return record, [trial.policy for trial in result.trials]


def which(posterior: PosteriorChoice, worlds: Posterior) -> dict[str, Any]:
    """Which worlds were chosen, and among what."""
    return {
        "pil": posterior.pil.total,
        "word": posterior.pil.word,
        "models": [[score.e, score.v] for score in posterior.scores],
        "nll": list(posterior.nll),
        "prior_scales": [point.prior_scale for point in posterior.points],
        "bootstraps": [point.bootstrap for point in posterior.points],
        "picked": posterior.index,
        "noise_scale": float(np.mean(posterior.share)),
    }


def scored(trials: Sequence[Trial], posterior: PosteriorChoice, worlds: Posterior) -> dict[str, Any]:
    """What worlds said of a sweep's policies, and what that chooses."""
    index = chosen(trials)
    return {
        **which(posterior, worlds),
        "predicted": [trial.score for trial in trials],
        "intervals": [trial.returns.interval(0.9) for trial in trials],
        "chosen": index,
        "alike": list(overlapping(trials, index)),
    }


def score(record: dict[str, Any], policies: list[Policy], log: Log, given: Any) -> None:
    """Asks the worlds of today about the policies of a planner that looked at none; they are to be played anew."""
    began = time.perf_counter()
    posterior, worlds = worlds_of(log, record["seed"], given.scale or SUITES[record["suite"]]["scale"], given.work)
    planner, judge, trials = offing.planner.get(record["planner"]), pad_starts(worlds), []
    for i, (setting, policy) in enumerate(zip(record["settings"], policies, strict=True)):
        ours = predictive(jax.random.key(7), policy, judge, log.data, copies=64, loss=posterior.pil)
        seed = record["seeds"][i] if "seeds" in record else 0
        trials.append(Trial(record["planner"], planner.Hypers(**setting), seed, ours.returns, ours.value, policy))
    record.update(scored(trials, posterior, worlds), scoring_seconds=round(time.perf_counter() - began, 1))
    for name in ("realised", "stderr", "ucb"):
        record.pop(name, None)


def cache_of(work: Path, log: Log, seed: int, models: Any) -> Folder:
    """Where worlds fitted to a log are kept, for every sweep and for those who judge what it found."""
    return Folder(work, identity(log.fingerprint, seed, models, "worlds"))


def worlds_of(
    log: Log, seed: int, scale: str, work: Path | None, **fixed: float
) -> tuple[PosteriorChoice, Posterior]:
    """The posterior as `offing sorel` and `offing torel` have it; by the same seed its folds are the same rows.

    `fixed` numbers stand in every setting instead of the scale's own.
    """
    models = list(dict.fromkeys(replace(point, **fixed) for point in world_space(scale, log.data.rows)))
    run = Run(cache_of(work, log, seed, models) if work else None)
    key = jax.random.split(jax.random.key(seed))[0]
    choice = choose_posterior(key, log, models, seed, run)
    return choice, refit(key, log, choice, run)


class _Both:
    """Two caches: worlds are every planner's, trials one planner's."""

    def __init__(self, worlds: Folder, trials: Folder, planner: str):
        self.worlds, self.trials, self.planner = worlds, trials, planner

    def _of(self, what: str) -> Folder:
        return self.trials if what.startswith(self.planner) else self.worlds

    def get(self, name: str) -> Any:
        return self._of(name).get(name)

    def put(self, name: str, arrays: Any) -> None:
        self._of(name).put(name, arrays)


def keep(folder: Path, record: dict[str, Any], policies: list[Policy]) -> None:
    """The parameters of a sweep's policies, so that they can be played elsewhere."""
    leaves = [jax.tree.leaves(policy.params) for policy in policies]
    arrays = {
        f"a{j}": np.stack([np.asarray(each[j], np.float32) for each in leaves]) for j in range(len(leaves[0]))
    }
    write(folder / f"{name(record)}.npz", pack(arrays))


def fetch(folder: Path, record: dict[str, Any], task: Any, width: int) -> list[Policy]:
    """The policies of a sweep, from where `keep` put them."""
    planner = offing.planner.get(record["planner"])
    arrays = unpack(folder / f"{name(record)}.npz")
    policies = []
    for i, given in enumerate(record["settings"]):
        blank = planner.blank(planner.Hypers(**given), width, task)
        leaves = [jnp.asarray(arrays[f"a{j}"][i]) for j in range(len(arrays))]
        policies.append(replace(blank, params=jax.tree.unflatten(jax.tree.structure(blank.params), leaves)))
    return policies


def realise(record: dict[str, Any], policies: list[Policy], episodes: int) -> None:
    """Adds what every policy truly earned."""
    where = f"brax-{record['task']}" if record["suite"] == "brax" else record["task"]
    task = envs.make(where).task
    played = play_pool(policies, task, where, episodes, seed=1_000 + record["seed"])
    record["realised"] = [float(each.returns.mean()) for each in played]
    record["stderr"] = [float(each.returns.std(ddof=1) / np.sqrt(episodes)) for each in played]
    record["episodes"] = episodes
    record["ucb"] = against_ucb(played, record["chosen"])


def against_ucb(played: list[Played], chosen: int) -> dict[str, Any]:
    """Online samples until a bandit over these policies names one as good as `chosen`: over 20 of them, and all.

    None: it does not within its pulls, after which it names what is worth `reaches` on average.
    """
    arms, worth = [bandit.stored(each) for each in played], [float(each.returns.mean()) for each in played]
    by_arms = {}
    for among in (bandit.AMONG, len(arms)):
        curve = bandit.tuned(0, arms, worth, among)
        needed = bandit.needed(curve, worth[chosen])
        matched = needed if np.isfinite(needed) else None
        by_arms[str(among)] = {"needed": matched, "reaches": curve.worth[-1], "samples": curve.samples[-1]}
    return by_arms


def table(records: list[dict[str, Any]]) -> str:
    """The sweeps as Markdown: does the prediction rank, and what did its choice truly earn?"""
    lines = [
        "| task | planner | seed | n | PIL | Pearson r | p | Spearman | regret@1 (chance) | chosen | best "
        "| median | default | worst | chosen lies at | UCB's samples to match, of 20 / all | s |",
        "|---|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in (r for r in records if "realised" in r):
        predicted, true = np.array(r["predicted"]), np.array(r["realised"])
        good = np.isfinite(predicted)
        flat = np.ptp(predicted[good]) == 0 or np.ptp(true[good]) == 0
        pearson = (np.nan, np.nan) if flat else stats.pearsonr(predicted[good], true[good])
        rank, regret = (
            metrics.spearman(predicted[good], true[good]),
            metrics.regret(predicted[good], true[good], scaled=True),
        )
        at = (true[r["chosen"]] - true.min()) / max(np.ptp(true), 1e-9)
        lines.append(
            f"| {r['task']} | {r['planner']} | {r['seed']} | {good.sum()} | {r['word']} | {pearson[0]:.2f} "
            f"| {pearson[1]:.2g} | {rank.value:.2f} | {regret.value:.2f} ({regret.chance:.2f}) "
            f"| {true[r['chosen']]:,.0f} | {true.max():,.0f} | {np.median(true):,.0f} "
            f"| {format(true[usual(r)].mean(), ',.0f') if usual(r) else '–'} | {true.min():,.0f} "
            f"| {at:.0%} | {matched(r.get('ucb', {}))} | {r['seconds']:.0f} |"
        )
    return "\n".join([*lines, "", *by_setting(records)])


def by_setting(records: list[dict[str, Any]]) -> list[str]:
    """Where settings have several policies: how the means of each setting's correlate, which are independent."""
    lines = []
    for r in (r for r in records if "realised" in r and len(set(r.get("seeds", [0]))) > 1):
        _, setting = np.unique([str(one) for one in r["settings"]], return_inverse=True)
        predicted, true = (
            np.bincount(setting, r[column]) / np.bincount(setting) for column in ("predicted", "realised")
        )
        pearson = stats.pearsonr(predicted, true)
        where = f"{r['task']}, {r['planner']}, seed {r['seed']}"
        lines.append(f"- {where}: means of {len(predicted)} settings, r {pearson[0]:.2f}, p {pearson[1]:.2g}")
    return lines


def usual(record: dict[str, Any]) -> list[int]:
    """Which of a sweep's policies have the planner's defaults in all that the sweep varies: one for each seed."""
    settings, default = record["settings"], asdict(offing.planner.get(record["planner"]).Hypers())
    varied = [name for name in settings[0] if any(one[name] != settings[0][name] for one in settings)]
    return [i for i, one in enumerate(settings) if all(one[name] == default[name] for name in varied)]


def matched(ucb: dict[str, Any]) -> str:
    """What a bandit needed to match the choice; a dash where that was not asked."""
    each = [f"{one['needed']:,.0f}" if one["needed"] else "never" for one in ucb.values()]
    return " / ".join(each) or "–"


def parsed() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=sorted(SUITES), default="gymnax")
    parser.add_argument("--task", nargs="+", help="default: all of the suite")
    parser.add_argument("--planners", nargs="+", help="default: all of the suite")
    parser.add_argument("--phase", choices=("all", "plan", "score", "play", "table"), default="all")
    parser.add_argument("--points", nargs="+", help="ROWS:SEED, default: the suite's")
    parser.add_argument("--space")
    parser.add_argument("--scale")
    parser.add_argument("--seeds", type=int, default=1, help="policies of each setting")
    parser.add_argument("--updates", type=int)
    parser.add_argument("--logs", type=Path, default=Path("out/logs"), help="folder of the Brax logs, TASK.npz")
    parser.add_argument("--out", type=Path, help="default: results/tuned_offline_SUITE.json")
    parser.add_argument("--policies", type=Path, default=Path("out/policies"))
    parser.add_argument("--work", type=Path, default=Path("out/work"), help="where finished trials are kept")
    parser.add_argument("--episodes", type=int, help="to play, default: the suite's")
    parser.add_argument("--jobs", type=int, default=1, help="logs side by side, each on a core of its own")
    parser.add_argument("--quiet", action="store_true", help="no table at the end")
    given = parser.parse_args()
    given.out = given.out or RESULTS / f"tuned_offline_{given.suite}.json"
    given.episodes = given.episodes or SUITES[given.suite]["episodes"]
    return given


Sweeps = list[tuple[str, str]]  # task, planner
Points = list[tuple[int, ...]]  # rows, seed


def left_to_do(records: list[dict[str, Any]], sweeps: Sweeps, points: Points) -> list[list[str]]:
    """The flags of every process that runs what is not there yet: one for each task and size of log."""
    done = {(r["task"], r["planner"], r["rows"], r["seed"]) for r in records}
    parts = []
    for rows, seed in points:
        for task in dict.fromkeys(task for task, _ in sweeps):
            left = [p for t, p in sweeps if t == task and (t, p, rows, seed) not in done]
            parts += [["--task", task, "--points", f"{rows}:{seed}", "--planners", *left]] if left else []
    return parts


def plan_all(records: list[dict[str, Any]], sweeps: Sweeps, points: Points, given: argparse.Namespace) -> None:
    """Runs every sweep that is not there yet, and plays its policies unless planning is all that was asked."""
    done = {(r["task"], r["planner"], r["rows"], r["seed"]) for r in records}
    left = [(*sweep, *point) for point in points for sweep in sweeps if (*sweep, *point) not in done]
    for task, planner, rows, seed in left:
        record, policies = run(given.suite, task, planner, rows, seed, given)
        if given.phase == "plan":
            keep(given.policies, record, policies)
        else:
            realise(record, policies, given.episodes)
        records.append(record)
        save(given.out, records)
        print(f"{name(record)}: {len(policies)} settings, {record['word']}, {record['seconds']} s", flush=True)


def score_all(records: list[dict[str, Any]], sweeps: Sweeps, given: argparse.Namespace) -> None:
    """Scores kept policies again, in worlds that they were not planned in."""
    for record in (r for r in records if (r["task"], r["planner"]) in sweeps):
        if offing.planner.get(record["planner"]).imagines:
            print(f"{name(record)}: planned in worlds, so left as it is", flush=True)
            continue
        log = offing.load(Path(given.logs) / f"{record['task']}.npz", record["rows"], record["seed"])
        score(record, fetch(given.policies, record, log.task, log.data.steps.obs.shape[1]), log, given)
        save(given.out, records)
        print(f"{name(record)}: scored, {record['word']}, {record['scoring_seconds']} s", flush=True)


def play_all(records: list[dict[str, Any]], given: argparse.Namespace) -> None:
    """Plays kept policies in the true environment."""
    for record in (r for r in records if "realised" not in r):
        env = envs.make(f"brax-{record['task']}" if record["suite"] == "brax" else record["task"])
        width = jax.eval_shape(env.reset, jax.random.key(0))[1].shape[0]
        realise(record, fetch(given.policies, record, env.task, width), given.episodes)
        save(given.out, records)
        print(f"{name(record)}: played", flush=True)


def save(out: Path, records: list[dict[str, Any]]) -> None:
    """Writes all records."""
    write(out, (json.dumps(records, indent=1) + "\n").encode())


def main() -> None:
    given = parsed()
    suite = SUITES[given.suite]
    records = json.loads(given.out.read_text()) if given.out.exists() else []
    points = [tuple(map(int, p.split(":"))) for p in given.points] if given.points else suite["points"]
    sweeps = [
        (task, planner)
        for task, planner in suite["sweeps"]
        if (not given.task or task in given.task) and (not given.planners or planner in given.planners)
    ]
    if given.phase in ("all", "plan") and given.jobs > 1:
        abreast(left_to_do(records, sweeps, points), given.out, given.jobs)
        records = json.loads(given.out.read_text()) if given.out.exists() else []
    elif given.phase in ("all", "plan"):
        plan_all(records, sweeps, points, given)
    if given.phase == "score":
        score_all(records, sweeps, given)
    if given.phase == "play":
        play_all(records, given)
    if given.phase not in ("plan", "score") and not given.quiet:
        print(table(records))


if __name__ == "__main__":
    main()
