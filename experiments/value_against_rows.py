"""Predicted value against the size of the log, and what the policy truly earns (the paper's value-against-data).

    python experiments/value_against_rows.py --suite gymnax
    python experiments/value_against_rows.py --suite brax --task hopper --logs out/logs

Every point is what `offing sorel` does with that many rows and that seed: posterior by PIL, policy by predictive
median, interval and verdict; then, and only then, the policy is played in the true environment. Finished points
are kept in results/ and not run again. `--jobs 2` runs two sizes of log side by side. `--phase plan` leaves out
the playing and keeps the policies, `--phase play` plays those: a GPU plans best, and some true environments step
best on a CPU. `--phase table` prints the tables and draws the figure.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from abreast import abreast
from matplotlib import rc_context
from matplotlib.figure import Figure
from tuned_offline import which, worlds_of

import offing
from offing.hypers import asdict
from offing.online.play import play
from offing.planner import rppo
from offing.planner import space as planner_space
from offing.report.store import write
from offing.report.verdict import verdict
from offing.tune.candidates import pad_starts
from offing.tune.systems import planned
from offing.types import Policy
from offing.value.predictive import predictive

RESULTS = Path(__file__).parent / "results"
LEVEL = 0.9
SUITES: dict[str, dict[str, Any]] = {
    "gymnax": {
        "tasks": ("pendulum", "cartpole"),
        "points": [(rows, seed) for rows in (200, 1_000, 3_000, 8_000, 20_000) for seed in (0, 1, 2)],
        "longest": 0,
        "scale": "quick",
        "cores": ("linear",),
        "episodes": 400,
    },
    "brax": {
        "tasks": ("halfcheetah", "hopper", "walker2d"),
        "points": [(200_000, 0), (50_000, 0), (200_000, 1), (200_000, 2), (500_000, 0), (20_000, 0)],
        "longest": 500_000,  # compiling costs a GPU more than what lies unused
        "scale": "large",
        "cores": ("none", "linear"),
        "episodes": 128,
    },
}
MANY = 200_000  # rows from which points are counted apart
# least and most that an episode can earn, where a task sets it: what errors are measured against
SPAN = {"pendulum": (-1_700.0, 0.0), "cartpole": (0.0, 500.0)}


def run(suite: str, task: str, rows: int, seed: int, given: Any) -> list[tuple[dict[str, Any], list[Policy]]]:
    """One point: a record for each core, and the policies of its sweep."""
    plan = SUITES[suite]
    scale = given.scale or plan["scale"]
    source = f"offing:{task}" if suite == "gymnax" else Path(given.logs) / f"{task}.npz"
    log = offing.load(source, rows, seed)
    log = padded(log, max(plan["longest"], rows)) if plan["longest"] else log
    points, began = [], time.perf_counter()
    posterior, worlds = worlds_of(log, seed, scale, given.work, **given.fixed)
    print(f"{task} {rows} {seed}: worlds {posterior.pil.word}, {time.perf_counter() - began:.0f} s", flush=True)
    key = jax.random.split(jax.random.key(seed))[1]  # as `sorel` has it
    for core in given.cores or plan["cores"]:
        settings = planner_space("rppo", scale, core=core)
        result = planned(key, log, posterior, worlds, settings)
        promise = result.predicted.returns
        sweep = [
            predictive(jax.random.key(7), p, pad_starts(worlds.fold(1)), log.data, copies=64).returns.median
            for p in result.policy.policies
        ]
        ruling = verdict(result.pil, result.predicted, result.behaviour)
        record = {
            "suite": suite,
            "task": task,
            "rows": rows,
            "seed": seed,
            "core": core,
            "scale": scale,
            **which(posterior, worlds),
            "error": result.pil.e,
            "spread": result.pil.v,
            "imbalance": result.pil.imbalance,
            "calibrated": result.pil.calibrated,
            "common": result.pil.common,
            "predicted": promise.median,
            "interval": promise.interval(LEVEL),
            "level": LEVEL,
            "range": promise.range,
            "epistemic": promise.epistemic,
            "gap": promise.gap,
            "widen": promise.widen,
            "starts": float(np.sqrt(promise.starts)),
            "support": result.predicted.support._asdict(),
            "behaviour": result.behaviour._asdict(),
            "verdict": ruling.word,
            "settings": [asdict(setting) for setting in settings],
            "chosen": result.policy.index,
            "own": np.asarray(result.policy.planned[result.policy.index].own).tolist(),
            "held": np.asarray(result.policy.planned[result.policy.index].held).tolist(),
            "sweep": sweep,
            "seconds": round(time.perf_counter() - began, 1),
            "device": jax.devices()[0].device_kind,
            "jax": jax.__version__,
            "python": platform.python_version(),
        }
        points.append((record, list(result.policy.policies)))
        began = time.perf_counter()
    return points


def padded(log: Any, rows: int) -> Any:
    """The log in arrays of so many rows, of which only its own are in use: one program for all sizes."""
    more = max(0, rows - len(log.data.episode))
    pad = lambda leaf: np.concatenate([leaf[:rows], np.zeros((more, *leaf.shape[1:]), leaf.dtype)])
    steps = jax.tree.map(pad, jax.tree.map(np.asarray, log.data.steps))
    return log._replace(data=log.data._replace(steps=steps, episode=pad(np.asarray(log.data.episode))))


def name(record: dict[str, Any]) -> str:
    return "{suite}-{task}-{rows}-{seed}-{core}".format(**record)


def save(path: Path, records: list[dict[str, Any]]) -> None:
    write(path, (json.dumps(records, indent=1) + "\n").encode())


def keep(folder: Path, record: dict[str, Any], policies: list[Policy]) -> None:
    """The parameters of a point's policies, so that they can be played elsewhere."""
    arrays = {
        f"{i}|{j}": np.asarray(leaf, np.float32)
        for i, policy in enumerate(policies)
        for j, leaf in enumerate(jax.tree.leaves(policy.params))
    }
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{name(record)}.npz", **arrays)  # type: ignore[arg-type]


def fetch(folder: Path, record: dict[str, Any], task: Any, width: int) -> list[Policy]:
    """The policies of a point, from where `keep` put them."""
    with np.load(folder / f"{name(record)}.npz", allow_pickle=False) as file:
        policies = []
        for i, setting in enumerate(record["settings"]):
            blank = rppo.blank(rppo.Hypers(**setting), width, task)
            leaves = [jnp.asarray(file[f"{i}|{j}"]) for j in range(len(jax.tree.leaves(blank.params)))]
            params = jax.tree.unflatten(jax.tree.structure(blank.params), leaves)
            policies.append(Policy(params, blank.memory, blank.act))
    return policies


def realise(record: dict[str, Any], policies: list[Policy], episodes: int, whole: bool) -> None:
    """Adds what the chosen policy truly earned, and with `whole` every policy of the sweep."""
    from offing.online import envs

    prefix = "brax-" if record["suite"] == "brax" else ""
    where = prefix + record["task"]
    task = envs.make(where).task
    earned = []
    for i, policy in enumerate(policies):
        if whole or i == record["chosen"]:
            played = play(policy, task, where, episodes, seed=1_000 + record["seed"])
            earned.append(float(played.returns.mean()))
            if i == record["chosen"]:
                record["realised"] = earned[-1]
                record["stderr"] = float(played.returns.std(ddof=1) / np.sqrt(episodes))
                record["episodes"] = episodes
    if whole:
        record["realised_sweep"] = earned
    low, high = record["interval"]
    record["inside"] = bool(low <= record["realised"] <= high)


def table(records: list[dict[str, Any]]) -> str:
    """The points as Markdown, and what they come to."""
    lines = [
        "| task | rows | seed | memory | PIL | | predicted | 90% interval | realised | inside | verdict | s |",
        "|---|--:|--:|---|--:|---|--:|--:|--:|---|---|--:|",
    ]
    for r in sorted(records, key=lambda r: (r["task"], r["core"], r["rows"], r["seed"])):
        low, high = r["interval"]
        word = r.get("word", "calibrated" if r["calibrated"] else "not calibrated")
        truth = f"{r['realised']:,.1f} ± {r['stderr']:.1f}" if "realised" in r else "–"
        lines.append(
            f"| {r['task']} | {r['rows']:,} | {r['seed']} | {r['core']} | {r['pil']:.3g} | {word} "
            f"| {r['predicted']:,.1f} | {low:,.1f} … {high:,.1f} | {truth} "
            f"| {'yes' if r.get('inside') else 'no'} | {r['verdict']} | {r['seconds']:.0f} |"
        )
    return "\n".join([*lines, "", *account(records)])


def account(records: list[dict[str, Any]]) -> list[str]:
    """Coverage, error and correlation, task by task, over calibrated points and over all."""
    lines = []
    done = [r for r in records if "realised" in r]
    for task in dict.fromkeys(r["task"] for r in done):
        for core in dict.fromkeys(r["core"] for r in done if r["task"] == task):
            mine = [r for r in done if r["task"] == task and r["core"] == core]
            kinds = {"calibrated": [r for r in mine if r["calibrated"]], "all": mine}
            if any(r["rows"] >= MANY for r in mine):
                more = {
                    f"{n}, {MANY:,} rows or more": [r for r in k if r["rows"] >= MANY] for n, k in kinds.items()
                }
                kinds |= more
            for what, some in kinds.items():
                if not some:
                    lines.append(f"{task}, {core}: no {what} points")
                    continue
                error = np.mean([abs(r["predicted"] - r["realised"]) for r in some])
                cover = np.mean([r["inside"] for r in some])
                part = ""
                if task in SPAN:
                    part = f" ({error / (SPAN[task][1] - SPAN[task][0]):.1%} of the range of returns)"
                lines.append(
                    f"{task}, {core}, {what}: {len(some)} points, interval covers {cover:.0%}, "
                    f"mean absolute error {error:.1f}{part}"
                )
            if task not in SPAN:
                times, top = max((r["realised"] / r["behaviour"]["best"], r["realised"]) for r in mine)
                lines.append(f"{task}, {core}: at best {top:,.0f}, {times:.2f} times the best tenth of its log")
            pairs = [
                (a, b)
                for r in mine
                for a, b in zip(r["sweep"], r.get("realised_sweep", []), strict=False)
                if r["rows"] == 200_000
            ]
            if len(pairs) > 2:
                r = np.corrcoef(np.transpose(pairs))[0, 1]
                lines.append(f"{task}, {core}: correlation over {len(pairs)} settings at 200,000 rows {r:.2f}")
    wrong = [r for r in done if r["verdict"] == "GO" and r["realised"] <= r["behaviour"]["mean"]]
    lines.append(f"GO given {sum(r['verdict'] == 'GO' for r in done)} times, wrongly {len(wrong)} times")
    return lines


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Predicted median and interval beside the realised return, against rows; hollow where not calibrated."""
    tasks = list(dict.fromkeys(r["task"] for r in records))
    figure = Figure(figsize=(5.2 * len(tasks), 4), layout="constrained")
    for axis, task in zip(np.ravel(figure.subplots(1, len(tasks))), tasks, strict=True):
        mine = [r for r in records if r["task"] == task and "realised" in r]
        for i, r in enumerate(mine):
            at = r["rows"] * 1.06 ** (r["seed"] * 2 - 2 + (r["core"] == "none"))
            low, high = r["interval"]
            colour = "#0072b2" if r["core"] != "none" else "#56b4e9"
            axis.plot(
                [at, at], [low, high], color=colour, lw=2, alpha=0.5, label="90% interval" if not i else None
            )
            face = colour if r["calibrated"] else "none"
            axis.plot(at, r["predicted"], "o", mec=colour, mfc=face, label="predicted" if not i else None)
            axis.plot(at, r["realised"], "x", color="#d55e00", mew=2, label="realised" if not i else None)
        if mine:
            axis.axhline(mine[-1]["behaviour"]["mean"], color="0.6", ls=":", label="logged behaviour")
        axis.set(title=task, xscale="log", xlabel="rows", ylabel="return")
        sizes = sorted({r["rows"] for r in mine})
        axis.set_xticks(sizes, [f"{rows:,}" for rows in sizes])
        axis.minorticks_off()
        axis.legend(frameon=False, fontsize=8)
    with rc_context({"svg.hashsalt": path.stem}):  # same records, same file
        figure.savefig(path, metadata={"Date": None})


def parsed() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=sorted(SUITES), default="gymnax")
    parser.add_argument("--task", nargs="+", help="default: all of the suite")
    parser.add_argument("--phase", choices=("all", "plan", "play", "table"), default="all")
    parser.add_argument("--points", nargs="+", help="ROWS:SEED, default: the suite's")
    parser.add_argument("--cores", nargs="+")
    parser.add_argument("--scale")
    fixed = "of the worlds, instead of the scale's: prior_scale=0"
    parser.add_argument("--fixed", nargs="+", default=[], metavar="NAME=NUMBER", help=fixed)
    parser.add_argument("--logs", type=Path, default=Path("out/logs"), help="folder of the Brax logs, TASK.npz")
    parser.add_argument("--out", type=Path, help="default: results/value_against_rows_SUITE.json")
    parser.add_argument("--policies", type=Path, default=Path("out/policies"))
    parser.add_argument("--work", type=Path, help="where fitted worlds are kept; default: nowhere")
    parser.add_argument("--episodes", type=int, help="to play, default: the suite's")
    parser.add_argument("--until", type=float, default=float("inf"), help="begin no point after so many seconds")
    parser.add_argument("--jobs", type=int, default=1, help="sizes of log side by side, each on a core of its own")
    parser.add_argument("--quiet", action="store_true", help="no table at the end")
    given = parser.parse_args()
    given.fixed = {called: float(number) for called, number in (each.split("=") for each in given.fixed)}
    if given.jobs > 1 and given.until < float("inf"):
        parser.error("--until counts one process's time: it goes with --jobs 1")
    given.out = given.out or RESULTS / f"value_against_rows_{given.suite}.json"
    given.episodes = given.episodes or SUITES[given.suite]["episodes"]
    given.task = given.task or SUITES[given.suite]["tasks"]
    return given


Points = list[tuple[int, ...]]  # rows, seed


def left_to_do(records: list[dict[str, Any]], points: Points, tasks: Sequence[str]) -> list[list[str]]:
    """The flags of every process that runs what is not there yet: one for each task and size of log."""
    done = {(r["task"], r["rows"], r["seed"]) for r in records}
    sizes = sorted({rows for rows, _ in points}, reverse=True)
    left = lambda task, rows: [f"{r}:{s}" for r, s in points if r == rows and (task, r, s) not in done]
    some = [["--task", task, "--points", *left(task, rows)] for rows in sizes for task in tasks]
    return [part for part in some if part[-1] != "--points"]


def plan_all(records: list[dict[str, Any]], points: Points, given: argparse.Namespace) -> None:
    """Runs every point that is not there yet, and plays its policies unless planning is all that was asked."""
    began, done = time.perf_counter(), {(r["task"], r["rows"], r["seed"]) for r in records}
    for task, rows, seed in [(task, *point) for task in given.task for point in points]:
        if (task, rows, seed) in done or time.perf_counter() - began > given.until:
            continue
        for record, policies in run(given.suite, task, rows, seed, given):
            if given.phase == "plan":
                keep(given.policies, record, policies)
            else:
                realise(record, policies, given.episodes, given.suite == "brax" and rows == 200_000)
            records.append(record)
            truth = f", realised {record['realised']:.1f}" if "realised" in record else ""
            sure = "calibrated" if record["calibrated"] else "not calibrated"
            promise = f"predicted {record['predicted']:.1f} in {np.round(record['interval'], 1)}{truth}"
            print(f"{name(record)}: {sure}, {promise}, {record['verdict']}, {record['seconds']} s", flush=True)
        save(given.out, records)


def play_all(records: list[dict[str, Any]], given: argparse.Namespace) -> None:
    """Plays kept policies in the true environment."""
    from offing.online import envs

    for record in (r for r in records if "realised" not in r and r["task"] in given.task):
        env = envs.make(f"brax-{record['task']}")
        width = jax.eval_shape(env.reset, jax.random.key(0))[1].shape[0]
        policies = fetch(given.policies, record, env.task, width)
        realise(record, policies, given.episodes, record["rows"] == 200_000)
        save(given.out, records)
        figures = f"predicted {record['predicted']:.1f}, realised {record['realised']:.1f}"
        print(f"{name(record)}: {figures}", flush=True)


def main() -> None:
    given = parsed()
    records = json.loads(given.out.read_text()) if given.out.exists() else []
    points = SUITES[given.suite]["points"]
    if given.points:
        points = [tuple(map(int, point.split(":"))) for point in given.points]
    if given.phase in ("all", "plan") and given.jobs > 1:
        abreast(left_to_do(records, points, given.task), given.out, given.jobs)
        records = json.loads(given.out.read_text()) if given.out.exists() else []
    elif given.phase in ("all", "plan"):
        plan_all(records, points, given)
    if given.phase == "play":
        play_all(records, given)
    if given.phase != "plan" and not given.quiet:
        print(table(records))
        draw(records, given.out.with_suffix(".svg"))


if __name__ == "__main__":
    main()
