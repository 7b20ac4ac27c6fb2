"""Runs jobs side by side, each a process on a core of its own, longest first; what is done is not done again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from .jobs import ROOT, Job, write

MARGIN = 30.0  # seconds before the end at which what still runs is ended


class Running(NamedTuple):
    """A job under way."""

    job: Job
    process: subprocess.Popen[bytes]
    core: int
    began: float


def run(jobs: list[Job], out: Path, workers: int, minutes: float, gpu: bool) -> int:
    """Runs what has no record yet, at most `minutes` long; gives how many are left."""
    out.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not record_path(out, job).exists()]
    print(f"{len(jobs)} jobs, {len(jobs) - len(waiting)} of them done", flush=True)
    end, cores = time.time() + 60 * minutes, sorted(os.sched_getaffinity(0))
    free, running, took = [cores[i % len(cores)] for i in range(workers)], [], []
    while running or (waiting and time.time() < end - MARGIN):
        while free and waiting and time.time() + _expected(took) < end - MARGIN:
            job, core = waiting.pop(0), free.pop()
            running.append(Running(job, _started(job, out, core, gpu), core, time.time()))
        time.sleep(0.5)
        still = []
        for one in running:
            if one.process.poll() is None:
                still.append(one)
                continue
            free.append(one.core)
            took.append(time.time() - one.began)
            _report(one, out, took[-1])
        running = still
        if time.time() >= end - MARGIN / 2 or not (running or _expected(took) < end - MARGIN - time.time()):
            break
    for one in running:
        one.process.terminate()
    for one in running:
        one.process.wait()
    left = sum(not record_path(out, job).exists() for job in jobs)
    print(f"{left} of {len(jobs)} jobs are left" if left else "all jobs are done", flush=True)
    return left


def record_path(out: Path, job: Job) -> Path:
    """Where a job's record stands once it is done."""
    return out / f"{job.name}.json"


def _expected(took: list[float]) -> float:
    """How long the next job may take: half of what the longest so far took, so that the last minutes are used."""
    return 0.5 * max(took, default=0.0)


def _started(job: Job, out: Path, core: int, gpu: bool) -> subprocess.Popen[bytes]:
    output = out / "said" / f"{job.name}.txt"
    output.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "experiments.suite", "job", json.dumps(job), "--out", str(out.resolve())]
    with output.open("wb") as file:
        return subprocess.Popen(
            command, cwd=ROOT, env=_environment(out, core, gpu), stdout=file, stderr=subprocess.STDOUT
        )


def _environment(out: Path, core: int, gpu: bool) -> dict[str, str]:
    """One thread on one core where the device is left alone, and one cache of compiled programs for all."""
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [env.get("PYTHONPATH")])])
    env.setdefault("JAX_COMPILATION_CACHE_DIR", str((out / "jax").resolve()))
    env.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    if gpu:  # jobs share the device and all cores: one core would compile for longer than the device runs
        return env | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    env["SUITE_CORE"] = str(core)
    env |= {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return env | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"{env.get('XLA_FLAGS', '')} {flags}".strip()}


def _report(one: Running, out: Path, took: float) -> None:
    """One line for a job that ended; what failed leaves a record of that, and is tried again next time."""
    failed = out / "failed" / f"{one.job.name}.json"
    if record_path(out, one.job).exists():
        failed.unlink(missing_ok=True)
        print(f"{one.job.name}: {took:.0f} s", flush=True)
        return
    lines = (out / "said" / f"{one.job.name}.txt").read_text(errors="replace").strip().splitlines()
    why = lines[-1] if lines else ""
    write(failed, {**one.job._asdict(), "code": one.process.returncode, "why": why})
    print(f"{one.job.name}: FAILED after {took:.0f} s with {one.process.returncode}: {why}", flush=True)
