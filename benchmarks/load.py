"""Seconds and peak memory to load a large log from Parquet, and to inspect it; prints one line of JSON.

    python benchmarks/load.py
    python benchmarks/load.py --rows 300000
    python benchmarks/load.py --messy

10 million rows of 17 observations and 6 actions, episodes of 1,000 steps, written piece by piece into a temporary
file by another process, so that the peak is the reader's. `--logged` writes next observations too; without them
they are the next row's, and the last row of each episode, a time-out, is dropped. `--messy` writes a CSV as
people have it instead: machines interleaved by time, timestamps, yes and no, a category, empty cells, named
choices; with a schema that has a reward formula, a clock and a lag. `base_gb` is what the process takes before
it reads a row. `waited` is how long its threads waited for a core that others had, as Linux counts it, and `disk`
how long for the disk: on a busy machine these are what `seconds` has and `core_seconds` has not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import offing
from offing.data import Schema, load
from offing.data.inspect import inspect

OBS, ACTIONS, LENGTH, PIECE = 17, 6, 1_000, 100_000


def write(path: Path, rows: int, logged: bool) -> None:
    """A made-up log of that shape: speed does not depend on what is in it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, rows, PIECE):
        count = min(PIECE, rows - first)
        draw = lambda count=count: rng.standard_normal(count, np.float32)
        columns = {f"obs_{i}": draw() for i in range(OBS)}
        columns |= {f"action_{i}": np.tanh(draw()) for i in range(ACTIONS)}
        columns |= {"reward": draw(), "terminated": np.zeros(count, bool)}
        columns["truncated"] = np.arange(first + 1, first + count + 1) % LENGTH == 0
        if logged:
            columns |= {f"next_obs_{i}": draw() for i in range(OBS)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


MACHINES = 100
MESSY = Schema(
    unit="machine",
    time="timestamp",
    per="day",
    obs=("temp", "setpoint", "outdoor", "price", "door", "product"),
    cyclic={"hour": 24},
    lags={"temp": 1},
    fill={"outdoor": "forward 6"},
    exogenous=("outdoor", "price", "door"),
    action="compressor",
    choices={"compressor": ("low", "mid", "high")},
    reward="-cost - 0.4 * abs(next(temp) - setpoint)",
)


def write_messy(path: Path, rows: int) -> None:
    """A table of machines interleaved by time; what is in it is made up."""
    import pyarrow as pa
    import pyarrow.csv as csv

    rng = np.random.default_rng(0)
    names = np.array([f"M{i:03}" for i in range(MACHINES)])
    writer = None
    for first in range(0, rows, PIECE):
        count = min(PIECE, rows - first)
        at = np.arange(first, first + count)
        hour = np.datetime64("2000-01-01T00:00:00") + (at // MACHINES).astype("timedelta64[h]")
        outdoor = pa.array(rng.normal(12, 5, count).round(1), mask=(rng.random(count) < 0.01) & (at >= MACHINES))
        table = pa.table(
            {
                "timestamp": hour,
                "machine": names[at % MACHINES],
                "temp": rng.normal(4, 1, count).round(2),
                "setpoint": np.full(count, 4.0),
                "outdoor": outdoor,
                "price": rng.random(count).round(3),
                "door": np.array(["no", "yes"])[rng.integers(2, size=count)],
                "product": np.array(["fish", "fruit", "milk"])[at % 3],
                "compressor": np.array(["low", "mid", "high"])[rng.integers(3, size=count)],
                "cost": rng.random(count).round(3),
            }
        )
        writer = writer or csv.CSVWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def peak() -> float:
    """The most memory that the process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def waited() -> tuple[float, float]:
    """Seconds that the threads of this process waited for a core, and for the disk; nan if nobody counts."""
    try:
        queued = sum(int(task.read_text().split()[1]) for task in Path("/proc/self/task").glob("*/schedstat"))
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[39])
    except (OSError, IndexError):
        return float("nan"), float("nan")
    return queued / 1e9, ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--logged", action="store_true", help="write next observations too")
    parser.add_argument("--messy", action="store_true", help="a CSV as people have it, with a schema")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("log.csv" if options.messy else "log.parquet")
        target, more = (write_messy, ()) if options.messy else (write, (options.logged,))
        writing = multiprocessing.get_context("spawn").Process(target=target, args=(path, options.rows, *more))
        writing.start()
        writing.join()
        base, began, core, before = peak(), time.perf_counter(), time.process_time(), waited()
        plain = Schema(actions="box", low=-1.0, high=1.0, discount=0.99)
        log = load(path, schema=MESSY if options.messy else plain)
        seconds, cores = time.perf_counter() - began, time.process_time() - core
        read, after = peak(), waited()
        began = time.perf_counter()
        inspect(log, 0)
        result = {
            "benchmark": "load a messy table" if options.messy else "load",
            "version": offing.__version__,
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "rows": options.rows,
            "loaded": log.data.rows,
            "file_gb": round(path.stat().st_size / 1e9, 3),
            "seconds": round(seconds, 2),
            "core_seconds": round(cores, 2),
            "waited": round(after[0] - before[0], 2),
            "disk": round(after[1] - before[1], 2),
            "peak_gb": round(read, 2),
            "inspect_seconds": round(time.perf_counter() - began, 2),
            "inspect_peak_gb": round(peak(), 2),
            "base_gb": round(base, 2),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
