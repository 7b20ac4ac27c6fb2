"""An experiment's parts side by side, each in a process and on a core of its own.

One process of JAX leaves most of a second core idle at these sizes; two processes do not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from threading import Lock

from offing.report.store import write


def cores() -> list[int]:
    """Those that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def abreast(parts: Sequence[Sequence[str]], out: Path, jobs: int) -> None:
    """This script with each part's arguments, `jobs` at a time; what they find goes to the list in `out`.

    A part writes to a file named after its arguments, goes on from it if it is there, and is put into `out` when
    it is whole. A part that fails stops the others from beginning.
    """
    free: Queue[int] = Queue()
    for i in range(jobs):
        free.put(cores()[i % len(cores())])
    lock, failed = Lock(), []

    def one(place: int) -> None:
        if failed:
            return
        called = "-".join(word.strip("-").replace(":", "-") for word in parts[place])
        core, mine = free.get(), out.with_name(f"{out.stem}.{called}.json")
        command = [sys.executable, *sys.argv, *parts[place], "--jobs", "1", "--quiet", "--out", str(mine)]
        process = subprocess.Popen(command)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, {core})  # before it has threads, which all inherit it
        code = process.wait()
        free.put(core)
        if code:
            failed.append(parts[place])
            return
        with lock:
            merge(out, mine)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, range(len(parts))))
    if failed:
        raise SystemExit(f"{' '.join(failed[0])}: failed; what was finished is kept")


def merge(out: Path, part: Path) -> None:
    """Puts a part's records behind those of `out`, and the part away."""
    if not part.exists():
        return
    there = json.loads(out.read_text()) if out.exists() else []
    write(out, (json.dumps(there + json.loads(part.read_text()), indent=1) + "\n").encode())
    part.unlink()
