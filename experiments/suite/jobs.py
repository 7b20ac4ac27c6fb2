"""Jobs of the suite: one log, one command of the product, one record that is written whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from . import logs, product
from .imagined import imagined
from .play import truth
from .policies import pool
from .tasks import SEALED, TASKS

ROOT = Path(__file__).parents[2]
FIELD_EPISODES = 300  # that each candidate of a field is played for
FRESH = 1_000  # added to a seed for a log of the same behaviours that nothing has learned from


COSTS = {"sorel": 1.0, "evaluate": 1.5, "worlds": 0.3}  # of a job, relative to others


class Job(NamedTuple):
    """What to run: all of a record that is decided beforehand."""

    what: str  # sorel, evaluate or worlds
    task: str
    rows: int
    seed: int
    scale: str
    control: str = "none"

    @property
    def name(self) -> str:
        parts = (self.what, self.task, str(self.rows), str(self.seed), self.scale)
        return "-".join(parts if self.control == "none" else (*parts, self.control))

    @property
    def weight(self) -> float:
        """How long it may take, relative to others: the longest begin first."""
        rows = 1.0 if self.rows <= 4000 else 2.0
        return rows * COSTS[self.what] * (1 + len(TASKS[self.task].columns) / 40)


def listed(
    tasks: tuple[str, ...],
    whats: tuple[str, ...],
    rows: tuple[int, ...],
    seeds: tuple[int, ...],
    scale: str,
    controls: bool = False,
) -> list[Job]:
    """All jobs of a run, longest first; with `controls` those on spoilt logs instead."""
    jobs = [
        Job(what, task, count, seed, scale, control)
        for what in whats
        for task in tasks
        for count in rows
        for seed in seeds
        for control in (logs.CONTROLS[what] if controls else ("none",))
    ]
    return sorted(jobs, key=lambda job: (-job.weight, job.seed, job.name))


def commit() -> str:
    """The tree's commit, with a mark where files differ from it; what SUITE_COMMIT says where there is no git."""
    given = os.environ.get("SUITE_COMMIT")
    if given:
        return given
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    head = git("rev-parse", "--short", "HEAD")
    return (head or "unknown") + ("+changed" if head and git("status", "--porcelain", "--", "offing") else "")


def perform(job: Job, folder: Path) -> product.Numbers:
    """Runs one job in this process; the product's own files go to `folder`. Gives the record."""
    began, task = time.perf_counter(), TASKS[job.task]
    mine = pool(task)
    columns = logs.log_of(task, mine, job.rows, job.seed, job.control)
    given = logs.given(task, columns)
    record: product.Numbers = {
        **job._asdict(),
        "half": "sealed" if job.task in SEALED else "open",
        "commit": commit(),
        "at": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "discount": task.discount,
        "log": logs.behaviour_of(columns)._asdict(),
        "true_log": logs.true_behaviour(task, mine, job.seed)._asdict(),
    }
    if job.what == "sorel":
        record |= _planned(product.plan(given, task, job.scale, job.seed, folder), job)
    elif job.what == "worlds":
        fresh = logs.log_of(task, mine, job.rows, job.seed + FRESH)
        record |= imagined(
            task, columns, fresh, product.worlds(given, logs.given(task, fresh), job.scale, job.seed)
        )
    else:
        judged = product.judge(given, mine.policies, job.scale, job.seed)
        true = {name: one._asdict() for name, one in logs.truths(task, mine).items()}
        record["policies"] = {name: {"truth": true[name], **_methods(judged[name])} for name in judged}
    return record | {"versions": product.versions(), "seconds": round(time.perf_counter() - began, 1)}


def _planned(planned: product.Planned, job: Job) -> product.Numbers:
    """What a plan promised, and what it then earned in the true task."""
    before = time.perf_counter()
    earned = truth(TASKS[job.task], planned.mind, logs.EPISODES, logs.TRUTH_SEED)
    return {
        "verdict": planned.verdict,
        "reasons": planned.reasons,
        "promise": planned.promise._asdict(),
        "value": planned.value._asdict(),
        "realised": earned._asdict(),
        "field": [_competed(one, job) for one in planned.field],
        "product_behaviour": planned.behaviour,
        "worlds": planned.worlds,
        "product_seconds": planned.seconds,
        "played_seconds": round(time.perf_counter() - before, 1),
    }


def _competed(one: product.Candidate, job: Job) -> product.Numbers:
    """What a candidate would have been promised, and what it earns in the true task."""
    earned = truth(TASKS[job.task], one.mind, FIELD_EPISODES, logs.TRUTH_SEED)
    return {
        "name": one.name,
        "chosen": one.chosen,
        "median": one.promise.median,
        "lower": one.lower,
        "interval": one.promise.intervals["0.9"],
        "realised": earned.mean,
        "stderr": earned.stderr,
        "word": one.word,
    }


def _methods(estimates: dict[str, product.Estimate]) -> product.Numbers:
    """Estimates by method: discounted, and where there is one, the return."""
    return {
        method: {
            "value": one.value._asdict(),
            "return": None if one.returned is None else one.returned._asdict(),
        }
        for method, one in estimates.items()
    }


def write(path: Path, content: product.Numbers) -> None:
    """Writes JSON beside the place, then moves it there: a record is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partly = path.with_suffix(".partly")
    partly.write_text(json.dumps(content, indent=1, default=float))
    partly.replace(path)
