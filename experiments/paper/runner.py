"""Runs parts: what has a record is not run again, and a run that is killed loses only the part it was in."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import NamedTuple

from offing.report.store import write
from offing.types import BadInput

from .parts import Part, Place
from .records import ROOT, Took, save, state, status


class Limits(NamedTuple):
    """How far a run goes: parts at once, and the seconds after which none begins that would not end in time."""

    jobs: int = 1
    seconds: float = float("inf")


WHOLE = Limits()


def run(parts: Sequence[Part], place: Place, arguments: Sequence[str] = (), limits: Limits = WHOLE) -> int:
    """Runs every part that is not done, in order; how many are left. `arguments` repeat the call for one part."""
    tree, began = str(state()["tree"]), time.monotonic()
    left = [part for part in parts if status(part, place, tree) != "done"]
    print(f"{len(parts)} parts, {len(parts) - len(left)} of them done", flush=True)
    while left:
        ready = [p for p in left if not missing(p, place, tree) and fits(p, limits, time.monotonic() - began)]
        if not ready:
            break
        if limits.jobs > 1:
            finished = abreast(ready, place, arguments, limits, began)
        else:
            finished = [part for part in ready if alone(part, place, limits, began)]
        if not finished:
            break  # what is left waits for something that does not come
        left = [part for part in left if part not in finished]
    for part in left:
        waits = missing(part, place, tree)
        print(f"{part.id}: left{', it needs ' + ', '.join(waits) if waits else ''}", flush=True)
    return len(left)


def fits(part: Part, limits: Limits, spent: float) -> bool:
    """Whether the part is expected to end in time."""
    return spent + part.seconds <= limits.seconds


def missing(part: Part, place: Place, tree: str) -> list[str]:
    """Parts and files that it needs and that are not there; a record of another state is none."""
    records = [need for need in part.needs if not current(need, place, tree)]
    return [*records, *(name for name in part.brought if not (place.work / name).exists())]


def current(need: str, place: Place, tree: str) -> bool:
    return place.record_of(need).exists() and place.read(need)["tree"] == tree


def alone(part: Part, place: Place, limits: Limits, began: float) -> bool:
    """Runs a part in this process; whether it left a record. What fails is named, and the others go on."""
    if not fits(part, limits, time.monotonic() - began):
        return False
    start, used = time.perf_counter(), time.process_time()
    try:
        numbers = part.work(place, part.settings)
    except BadInput as error:
        print(f"{part.id}: {error}", flush=True)
        return False
    except Exception as error:
        said = place.work / "failed" / f"{part.id}.txt"
        write(said, traceback.format_exc().encode())
        print(f"{part.id}: failed ({type(error).__name__}: {error}); {said}", flush=True)
        return False
    took = Took(time.perf_counter() - start, time.process_time() - used)
    save(part, place, numbers, took)
    print(f"{part.id}: {took.seconds:.0f} s, {took.core_seconds:.0f} core-seconds", flush=True)
    return True


def abreast(
    parts: Sequence[Part], place: Place, arguments: Sequence[str], limits: Limits, began: float
) -> list[Part]:
    """Runs parts side by side, each a process on a core of its own; those that left a record."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    free: Queue[int] = Queue()
    for i in range(limits.jobs):
        free.put(cores[i % len(cores)])
    tree = str(state()["tree"])

    def one(part: Part) -> bool:
        if not fits(part, limits, time.monotonic() - began):
            return False
        core = free.get()
        command = [sys.executable, "-m", "experiments.paper", *arguments, "--part", part.id]
        environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # on a GPU they share its memory
        process = subprocess.Popen(command, cwd=ROOT, env=environment)
        if part.hardware == "CPU" and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, {core})  # before it has threads, which all inherit it
        process.wait()
        free.put(core)
        return status(part, place, tree) == "done"

    with ThreadPoolExecutor(limits.jobs) as pool:
        return [part for part, done in zip(parts, pool.map(one, parts), strict=True) if done]
