"""Large damaged and odd tables, one of each kind: how much memory a process takes to load it or to refuse it.

    python -m benchmarks.large_tables --megabytes 100

Each is read by a process of its own, which has imported everything and has read a small table before; what counts
is its peak above that, as Linux counts it (VmHWM, set back through /proc/self/clear_refs). Prints a line of JSON
for each. `ratio` is what was taken beyond an allowance and beyond the log itself, where the table was loaded, over
what the table holds: 2 is the most. A packed file counts as what it unpacks to, a hundred times its size at most;
where that is more, it is refused unread.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import offing
from benchmarks.odd_tables import HEADER, KINDS, MB, SCHEMA, sound
from offing.data import Log, Schema, load, sketch

FIXED, COLUMN = 64 * MB, 12_000  # see `allowance`
MOST = 12_000 * MB  # that a process may ask for
LIMIT = 2.0


def status(key: str) -> int:
    """A line of what Linux knows of this process, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{key}:")[1].split()[0]) * 1024


def at_rest() -> int:
    """Bytes that this process holds once it has given back what it does not use; its peak begins there anew."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def attempted(work: Callable[[], Any]) -> tuple[str, int]:
    """The line by which it is refused, or none; and the bytes of the log that came of it."""
    try:
        result = work()
    except offing.BadInput as error:
        return str(error), 0
    return "", _bytes(result) if isinstance(result, Log) else 0


def _bytes(log: Log) -> int:
    """Of what a log holds: its rows, whose episodes they are, and their times."""
    leaves = [*log.data.steps, log.data.episode, log.provenance.time if log.provenance else None]
    return sum(leaf.nbytes for leaf in leaves if isinstance(leaf, np.ndarray))


def measured(path: Path, schema: Schema, what: str) -> dict[str, Any]:
    """Peak memory and seconds of loading a table or of drafting a schema for it, in this process."""
    with tempfile.TemporaryDirectory() as name:
        small = Path(name) / "log.csv"
        small.write_bytes(HEADER + b"".join(next(sound(1)).splitlines(keepends=True)[:2_000]))
        load(small, schema=SCHEMA)
        sketch(small)
    resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))  # a table that takes all there is fails alone
    base, began = at_rest(), time.perf_counter()
    line, log = attempted((lambda: load(path, schema=schema)) if what == "load" else (lambda: sketch(path)))
    seconds = round(time.perf_counter() - began, 2)
    return {"line": line, "log": log, "extra": status("VmHWM") - base, "seconds": seconds}


def allowance(schema: Schema) -> int:
    """What a read may take whatever the table holds: Arrow and numpy work on a block of rows at a time, some 8 MB
    as numbers, hold it several times over and give back late; and every column has buffers of its own."""
    return FIXED + COLUMN * len(schema.names("obs"))


def ratio(extra: int, log: int, content: int, schema: Schema) -> float:
    """Memory that was taken beyond the allowance and the log itself, over what the table holds."""
    return max(0, extra - log - allowance(schema)) / content


def judged(kind: str, size: int, folder: Path) -> dict[str, Any]:
    """One kind of table, made here and read by processes of its own."""
    table = KINDS[kind](folder, size)
    size_mb, content = round(table.path.stat().st_size / MB, 2), table.content
    report: dict[str, Any] = {"kind": kind, "file_mb": size_mb, "content_mb": round(content / MB, 2)}
    for what in ("draft", "load"):
        words = ["--read", str(table.path), "--kind", kind, "--what", what]
        child = [sys.executable, "-m", "benchmarks.large_tables", *words]
        done = subprocess.run(child, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(f"{kind}, {what}: {done.returncode} {done.stderr[-2_000:]}")
        part = json.loads(done.stdout.splitlines()[-1])
        line = part["line"]
        if len(line.splitlines()) > 1 or len(line) > 2_000:
            raise AssertionError(f"{kind}, {what}: {line[:500]!r}")
        report[what] = {
            "extra_mb": round(part["extra"] / MB, 1),
            "log_mb": round(part["log"] / MB, 1),
            "ratio": round(ratio(part["extra"], part["log"], content, table.schema), 2),
            "seconds": part["seconds"],
            "line": line.replace(str(folder), "")[:150],
        }
    table.path.unlink()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--what", default="load", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        with tempfile.TemporaryDirectory() as name:
            schema = KINDS[options.kind](Path(name), 1).schema
        print(json.dumps(measured(options.read, schema, options.what)))
        return
    with tempfile.TemporaryDirectory() as name:
        for kind in [options.kind] if options.kind else KINDS:
            print(json.dumps(judged(kind, options.megabytes * MB, Path(name))), flush=True)


if __name__ == "__main__":
    main()
