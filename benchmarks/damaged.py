"""Damaged and odd tables by a seeded generator: each is loaded or refused in one line, in time and in memory.

    python -m benchmarks.damaged --tables 3000

Prints one line of JSON: how many were loaded and refused, the longest that one took, and memory. Files of the
generator are of 1 MB at most, and are read one after the other in this process: `extra_mb` is the most that it
held while it read one, above what it held before, and `grown_mb` what it holds more of in the end. Where size
matters, `large_tables` has a table of 40 to 130 MB of each kind, each read by a process of its own: `worst_ratio`
is the most memory that one took beyond an allowance, over what the table holds. Anything but a log or a BadInput
of one line stops it, and so does a table that takes more than twice what it holds and the allowance.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import io
import json
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import offing
from benchmarks.large_tables import COLUMN, FIXED, LIMIT, at_rest, judged, status
from benchmarks.odd_tables import KINDS, MB
from offing.data import Schema, load, sketch

NAMES = ("time", "unit", "temp", "door", "mode", "fan", "cost", "x y", "größe", "", "temp")
REWARDS = (
    "-cost",
    "-cost - next(temp)",
    "(" * 99,
    "1/0 * cost",
    "cost ** 9",
    "nope",
    "-" * 300 + "cost",
    "9e999 - cost",
)
REWARDS += (
    "if(mode == 'a', 1, 0)",
    "__import__('os')",
    "next(" * 50 + "cost" + ")" * 50,
    "log(-cost)",
    "cost + 'a'",
)
CELLS = (
    "",
    "nan",
    "1e400",
    "-1e39",
    "abc",
    '"',
    '""',
    "1,5",
    "1;5",
    "=1+1",
    "\x00",
    "é",
    "😀",
    "2024-13-45",
    "yes",
    "9" * 400,
)


def good(rng: np.random.Generator, rows: int) -> list[list[str]]:
    """A sound table: header and rows."""
    made = [["time", "unit", "temp", "door", "mode", "fan", "cost"]]
    for i in range(rows):
        stamp = f"2024-01-{1 + i // 96 % 28:02} {i // 4 % 24:02}:00"
        words = [stamp, f"m{i % 4}", f"{rng.normal():.3f}", "yes" if rng.random() < 0.3 else "no"]
        made.append(
            [*words, str(rng.choice(list("abc"))), str(rng.choice(["low", "high"])), f"{rng.random():.3f}"]
        )
    return made


def damage(rng: np.random.Generator, table: list[list[str]]) -> bytes:
    """The table as bytes, with one to three kinds of damage."""
    delimiter = str(rng.choice([",", ";", "\t", "|"]))
    for _ in range(rng.integers(1, 4)):
        if not table:
            break
        kind = rng.integers(9)
        row = int(rng.integers(len(table)))
        if kind == 0 and table[row]:
            table[row][int(rng.integers(len(table[row])))] = str(rng.choice(CELLS))
        elif kind == 1:
            table[row] = table[row][: int(rng.integers(len(table[row]) + 1))]
        elif kind == 2:
            table[row] = [*table[row], str(rng.choice(CELLS))]
        elif kind == 3:
            table[0] = [str(rng.choice(NAMES)) for _ in table[0]]
        elif kind == 4:
            column = int(rng.integers(len(table[0])))
            table[1:] = [[*r[:column], str(rng.choice(CELLS)), *r[column + 1 :]] for r in table[1:]]
        elif kind == 5:
            table.insert(row, list(table[row]))
        elif kind == 6 and rng.random() < 0.05:
            wide = int(rng.choice([500, 10_000, 12_000]))
            table[:] = [
                [*r, *(["1"] * wide if i else [f"c{j}" for j in range(wide)])] for i, r in enumerate(table[:40])
            ]
        elif kind == 7:
            table[:] = table[: int(rng.integers(3))]
    data = "\n".join(delimiter.join(row) for row in table).encode(
        str(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
    )
    if rng.random() < 0.2:
        data = data.decode("utf-8", "replace").encode("cp1252", "replace")
    if rng.random() < 0.3 and len(data):
        at = int(rng.integers(len(data)))
        data = data[:at] + bytes(rng.integers(256, size=int(rng.integers(1, 9)), dtype=np.uint8)) + data[at:]
    return data[: int(rng.integers(len(data) + 1))] if rng.random() < 0.1 else data


def packed(data: bytes, path: Path, rng: np.random.Generator) -> bytes:
    """The bytes as the file's ending says, now and then cut short."""
    if path.suffix == ".gz":
        data = gzip.compress(data)
    if path.suffix == ".zip":
        with zipfile.ZipFile(whole := io.BytesIO(), "w") as archive:
            archive.writestr("log.csv", data)
        data = whole.getvalue()
    return data[: int(rng.integers(len(data) + 1))] if rng.random() < 0.05 else data


def schema_of(rng: np.random.Generator) -> Schema | None:
    """A schema for such a table, sound or not."""
    if rng.random() < 0.2:
        return None
    more: dict[str, Any] = {"per": "day"} if rng.random() < 0.5 else {"window": 5}
    if rng.random() < 0.3:
        more["fill"] = {"temp": str(rng.choice(["forward 3", "mean", "indicator", "drop rows"]))}
    if rng.random() < 0.3:
        more["lags"] = {"temp": 2}
    return Schema(
        unit="unit",
        time="time",
        obs=("temp", "door", "mode"),
        action="fan",
        reward=str(rng.choice(REWARDS)),
        **more,
    )


def widest(data: bytes) -> int:
    """How many columns the first line may name."""
    line = data.split(b"\n", 1)[0]
    return 1 + max(line.count(mark) for mark in (b",", b";", b"\t", b"|"))


class Attempt(NamedTuple):
    """What became of a table: how long it took, its bytes, what was held before, and how much more on the way."""

    outcome: str  # "loaded" or "refused"
    seconds: float
    size: int
    columns: int
    base: int
    extra: int


def attempt(seed: int, folder: Path, weighed: bool = True) -> Attempt:
    """Makes a table by its number, loads it and drafts a schema; memory counts if it is `weighed`."""
    rng = np.random.default_rng(seed)
    path = folder / str(rng.choice(["log.csv", "log.csv", "log.csv.gz", "log.zip", "log.tsv", "log.parquet"]))
    data = damage(rng, good(rng, int(rng.integers(1, 400))))
    path.write_bytes(packed(data, path, rng))
    size = max(len(data), path.stat().st_size)
    base = at_rest() if weighed else 0
    began, outcome = time.perf_counter(), "loaded"
    for work in (lambda: load(path, schema=schema_of(rng)), lambda: sketch(path)):
        try:
            work()
        except offing.BadInput as error:
            line = str(error)
            if len(line.splitlines()) != 1 or len(line) > 2_000:
                raise AssertionError(f"table {seed}: {line[:500]!r}") from error
            outcome = "refused"
    path.unlink()
    return Attempt(outcome, time.perf_counter() - began, size, widest(data), base, status("VmHWM") - base)


def small(first: int, count: int, folder: Path) -> dict[str, Any]:
    """The generator's tables."""
    counts, longest, worst = {"loaded": 0, "refused": 0}, 0.0, (0, first)
    attempt(first, folder)  # what is imported on the way counts for nobody
    gc.freeze()  # and need not be looked through for garbage after every table
    began = at_rest()
    for seed in range(first, first + count):
        result = attempt(seed, folder)
        counts[result.outcome] += 1
        longest, worst = max(longest, result.seconds), max(worst, (result.extra, seed))
        if result.extra > LIMIT * result.size + FIXED + COLUMN * result.columns:
            raise AssertionError(f"table {seed}: {result.extra} bytes of memory for {result.size}")
    memory = {"extra_mb": round(worst[0] / MB, 1), "extra_by_table": worst[1]}
    memory["grown_mb"] = round((at_rest() - began) / MB, 1)
    return {**counts, "longest_seconds": round(longest, 2), **memory}


def large(megabytes: int, folder: Path) -> dict[str, Any]:
    """A table of each kind whose size matters."""
    worst, longest, counts = (0.0, ""), 0.0, {"large_loaded": 0, "large_refused": 0}
    for kind in KINDS:
        report = judged(kind, megabytes * MB, folder)
        for what in ("draft", "load"):
            worst = max(worst, (report[what]["ratio"], f"{kind}, {what}"))
            longest = max(longest, report[what]["seconds"])
        counts["large_refused" if report["load"]["line"] else "large_loaded"] += 1
        if worst[0] > LIMIT:
            raise AssertionError(f"{worst[1]}: memory of {worst[0]} times what it holds; {report}")
    where = {"worst_ratio": worst[0], "worst_ratio_by": worst[1], "large_longest_seconds": longest}
    return {**counts, **where, "allowance_mb": FIXED / MB, "allowance_kb_a_column": COLUMN / 1_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tables", type=int, default=3_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--megabytes", type=int, default=100, help="of each large table; 0: none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        result = {"benchmark": "damaged", **small(options.first, options.tables, Path(name))}
        if options.megabytes:
            result |= large(options.megabytes, Path(name))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
