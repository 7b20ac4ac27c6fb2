"""Runs parts: what has a record is not run again, and a run that is killed loses only the part it was in."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
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


class Scene(NamedTuple):
    """What parts are held against: where records and files lie, all parts by their ids, and the library's tree."""

    place: Place
    known: Mapping[str, Part]
    tree: str


def run(
    parts: Sequence[Part],
    place: Place,
    arguments: Sequence[str] = (),
    limits: Limits = WHOLE,
    known: Mapping[str, Part] | None = None,
    again: bool = False,
) -> int:
    """Runs every part that is not done, in order, each once; how many are left.

    `arguments` repeat the call for one part. `known` are all parts that a need may name, beside those of the call.
    With `again` what is done is run as well.
    """
    began = time.monotonic()
    scene = Scene(place, {**(known or {}), **{part.id: part for part in parts}}, str(state()["tree"]))
    left = list(parts) if again else unfinished(parts, scene)
    tried: set[str] = set()
    print(f"{len(parts)} parts, {len(parts) - len(left)} of them done", flush=True)
    while ready := [part for part in left if part.id not in tried and not missing(part, scene)]:
        tried |= {part.id for part in ready}
        if limits.jobs > 1:
            finished = abreast(ready, scene, arguments, limits, began)
        else:
            finished = [part for part in ready if alone(part, place, limits, began)]
        left = [part for part in left if part not in finished]
    for part in left:
        waits = missing(part, scene)
        print(f"{part.id}: left{', it needs ' + ', '.join(waits) if waits else ''}", flush=True)
    return len(left)


def unfinished(parts: Sequence[Part], scene: Scene) -> list[Part]:
    """Those without a record, and those whose record is there but not the files that an unfinished one needs."""
    left = {part.id for part in parts if status(part, scene.place, scene.tree) != "done"}
    before = -1
    while before != len(left):
        before = len(left)
        needed = {need for part in parts if part.id in left for need in part.needs}
        left |= {part.id for part in parts if part.id in needed and part.gone(scene.place)}
    return [part for part in parts if part.id in left]


def fits(part: Part, limits: Limits, spent: float) -> bool:
    """Whether the part is expected to end in time."""
    return spent + part.seconds <= limits.seconds


def missing(part: Part, scene: Scene) -> list[str]:
    """Parts and files that it needs and that are not there, in words; a record of another state is none."""
    waits = [word for need in part.needs for word in absent(need, scene)]
    return [*waits, *(name for name in part.brought if not (scene.place.work / name).exists())]


def absent(need: str, scene: Scene) -> list[str]:
    """What is not there of a needed part, in words: its record, or with that those of its files that are gone."""
    part, place = scene.known.get(need), scene.place
    if part is None:  # nobody says what it makes: its record alone counts
        there = place.record_of(need).exists() and place.read(need)["tree"] == scene.tree
        return [] if there else [need]
    if status(part, place, scene.tree) != "done":
        return [need]
    return [f"{name} of {need}" for name in part.gone(place)]


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
    parts: Sequence[Part], scene: Scene, arguments: Sequence[str], limits: Limits, began: float
) -> list[Part]:
    """Runs parts side by side, each a process on a core of its own; those that left a record and their files."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    free: Queue[int] = Queue()
    for i in range(limits.jobs):
        free.put(cores[i % len(cores)])

    def one(part: Part) -> bool:
        if not fits(part, limits, time.monotonic() - began):
            return False
        core = free.get()
        command = [sys.executable, "-m", "experiments.paper", *arguments, "--only", part.id]
        environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # on a GPU they share its memory
        process = subprocess.Popen(command, cwd=ROOT, env=environment)
        if part.hardware == "CPU" and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, {core})  # before it has threads, which all inherit it
        ended = process.wait()
        free.put(core)
        return ended == 0 and not absent(part.id, scene)

    with ThreadPoolExecutor(limits.jobs) as pool:
        return [part for part, done in zip(parts, pool.map(one, parts), strict=True) if done]
