"""Seconds and peak memory to load, inspect and fit a log larger than memory; prints one line of JSON.

    python -m benchmarks.large --rows 1000000
    python -m benchmarks.large --rows 100000000

A log of 10 columns (6 observations, an action, a reward, true ends and time-outs) is written piece by piece by
another process, as Parquet or with `--arrow` as an Arrow file. A fresh process then runs the door on it:
`offing.load`, `offing.inspect` and `offing.posterior(scale="quick")`, or another `--scale`. Of each part: seconds,
core-seconds, and its peak as Linux counts it (`peak_gb`, with pages of mapped files, which the system takes back
when it needs them) and of memory that no file backs (`anonymous_gb`, looked at ten times a second). The log lies
in a folder of its own under `--folder`, and is removed after.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import numpy as np

import offing
from offing.data import Schema
from offing.door.common import Scale

OBS, LENGTH, PIECE = 6, 1_000, 500  # numbers, steps and episodes that are made together
SCHEMA = Schema(obs=tuple(f"x{i}" for i in range(OBS)), actions="box", low=-1.0, high=1.0, discount=0.99)


def episodes(rng: np.random.Generator, count: int, length: int) -> dict[str, np.ndarray]:
    """So many episodes of springs that an action pulls at, some of which end; made up, but learnable."""
    obs = np.zeros((length, count, OBS), np.float32)
    action = np.clip(rng.normal(0, 0.5, (length, count)), -1, 1).astype(np.float32)
    noise = rng.standard_normal((length, count, OBS // 2), np.float32)
    x, v = rng.normal(0, 1, (count, OBS // 2)), rng.normal(0, 1, (count, OBS // 2))
    for t in range(length):
        obs[t] = np.concatenate([x, v], 1)
        v = 0.98 * v - 0.05 * np.sin(x) + 0.05 * action[t, :, None] * (1, 0.5, 0.2) + 0.02 * noise[t]
        x = x + 0.1 * v
    flat = lambda a: np.ascontiguousarray(np.swapaxes(a, 0, 1)).reshape(count * length, *a.shape[2:])
    states, acts = flat(obs), flat(action)
    last = np.arange(count * length) % length == length - 1
    ends = last & (states[:, 0] > 2)
    columns = {f"x{i}": states[:, i] for i in range(OBS)}
    reward = (1 - np.square(states[:, 0]) - 0.1 * np.square(acts)).astype(np.float32)
    return columns | {"action": acts, "reward": reward, "terminated": ends, "truncated": last & ~ends}


def write(path: Path, rows: int) -> None:
    """The log, by whole episodes and in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer, left = np.random.default_rng(0), None, max(rows // LENGTH, 1)
    while left:
        count = min(PIECE, left)
        table, left = pa.table(episodes(rng, count, min(LENGTH, rows))), left - count
        if writer is None:
            arrow = path.suffix == ".arrow"
            writer = (
                pa.ipc.new_file(path, table.schema)
                if arrow
                else pq.ParquetWriter(path, table.schema, use_dictionary=False, compression="NONE")
            )
        writer.write_table(table)
    if writer is not None:
        writer.close()


def status(name: str) -> float:
    """A line of what Linux says of this process, in GB."""
    text = Path("/proc/self/status").read_text()
    return next((int(line.split()[1]) * 1024 / 1e9 for line in text.splitlines() if line.startswith(name)), 0.0)


@contextmanager
def measured(into: dict[str, float]) -> Iterator[None]:
    """Seconds, core-seconds and peaks of what happens inside."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    over, most = threading.Event(), [status("RssAnon")]

    def look() -> None:
        while not over.wait(0.1):
            most.append(max(most.pop(), status("RssAnon")))

    watching = threading.Thread(target=look)
    watching.start()
    began, core = time.perf_counter(), time.process_time()
    try:
        yield
    finally:
        into["seconds"] = round(time.perf_counter() - began, 1)
        into["core_seconds"] = round(time.process_time() - core, 1)
        over.set()
        watching.join()
        into["peak_gb"], into["anonymous_gb"] = round(status("VmHWM"), 2), round(max(most), 2)


def source(path: str) -> object:
    """What is loaded: the file, or an Arrow file as a table that is mapped."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(path)).read_all() if path.endswith(".arrow") else path


def door(path: str, parts: list[str], scale: Scale) -> dict[str, object]:
    """What the door's functions take on the log, in this process."""
    result: dict[str, object] = {"base_gb": round(status("VmHWM"), 2)}
    figures: dict[str, dict[str, float]] = {part: {} for part in ("load", *parts)}
    with measured(figures["load"]):
        log = offing.load(source(path), schema=SCHEMA)
    result["loaded"] = log.data.rows
    if "inspect" in parts:
        with measured(figures["inspect"]):
            inspection = offing.inspect(log)
        result |= {"inspected": inspection.rows, "answer": inspection.system}
    if "posterior" in parts:
        with measured(figures["posterior"]):
            fitted = offing.posterior(log, scale, progress=False)
        result |= {"fitted": fitted.rows, "calibrated": fitted.pil.word, "pil": round(fitted.pil.total, 4)}
    return result | figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--arrow", action="store_true", help="an Arrow file instead of Parquet")
    parser.add_argument("--scale", default="quick", choices=get_args(Scale))
    parser.add_argument("--parts", nargs="+", default=["inspect", "posterior"], choices=("inspect", "posterior"))
    parser.add_argument("--folder", type=Path, help="where the log lies meanwhile (default: the temporary folder)")
    parser.add_argument("--door", help=argparse.SUPPRESS)  # in the fresh process: the log
    options = parser.parse_args()
    if options.door:
        print(json.dumps(door(options.door, options.parts, options.scale)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / ("log.arrow" if options.arrow else "log.parquet")
        writing = multiprocessing.get_context("spawn").Process(target=write, args=(path, options.rows))
        began = time.perf_counter()
        writing.start()
        writing.join()
        head = {
            "benchmark": "a log larger than memory",
            "version": offing.__version__,
            "machine": platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "rows": options.rows,
            "file_gb": round(path.stat().st_size / 1e9, 3),
            "written_seconds": round(time.perf_counter() - began, 1),
        }
        again = [sys.executable, "-m", "benchmarks.large", "--door", str(path), "--scale", options.scale]
        fresh = subprocess.run([*again, "--parts", *options.parts], stdout=subprocess.PIPE, text=True, check=True)
    print(json.dumps(head | json.loads(fresh.stdout)))


if __name__ == "__main__":
    main()
