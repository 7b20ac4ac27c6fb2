"""Large damaged and odd tables, one of each kind, for `large_tables` to read."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from offing.data import Schema

MB = 1_000_000
HEADER = b"time,unit,temp,door,mode,fan,cost\n"
SCHEMA = Schema(
    unit="unit",
    time="time",
    per="day",
    obs=("temp", "door", "mode"),
    cyclic={"hour": 24},
    lags={"temp": 1},
    action="fan",
    reward="-cost - abs(next(temp) - temp)",
)
BOMB = (
    "max(cost + 1, " * 38 + "cost" + ")" * 38
)  # as deep as a formula may be: every level has a column of its own


class Table(NamedTuple):
    """A table in a file, the bytes that it holds once unpacked, and the schema to load it by."""

    path: Path
    content: int
    schema: Schema = SCHEMA


def sound(size: int, first: int = 0) -> Iterator[bytes]:
    """Pieces of a sound table without its header, about `size` bytes in all."""
    rng, written = np.random.default_rng(0), 0
    while written < size:
        at = np.arange(first, first + 100_000)
        stamp = np.datetime64("1990-01-01T00:00:00") + (at // 100).astype("timedelta64[h]")
        table = pa.table(
            {
                "time": stamp,
                "unit": np.array([f"m{i:02}" for i in range(100)])[at % 100],
                "temp": rng.normal(4, 1, len(at)).round(2),
                "door": np.array(["no", "yes"])[rng.integers(2, size=len(at))],
                "mode": np.array(list("abc"))[rng.integers(3, size=len(at))],
                "fan": np.array(["low", "high"])[rng.integers(2, size=len(at))],
                "cost": rng.random(len(at)).round(3),
            }
        )
        csv.write_csv(table, out := io.BytesIO(), csv.WriteOptions(include_header=False, quoting_style="none"))
        yield out.getvalue()
        written, first = written + out.tell(), first + len(at)


def spoilt(tail: bytes, middle: bytes = b"", schema: Schema = SCHEMA) -> Callable[[Path, int], Table]:
    """A sound table with something else in its middle or at its end."""

    def made(folder: Path, size: int) -> Table:
        path = folder / "log.csv"
        with path.open("wb") as file:
            file.write(HEADER)
            for number, piece in enumerate(sound(size)):
                file.write(piece + (middle if number == size // (9 * MB) else b""))
            file.write(tail)
        return Table(path, path.stat().st_size, schema)

    return made


def repeated(piece: bytes, header: bytes = HEADER, schema: Schema = SCHEMA) -> Callable[[Path, int], Table]:
    """A header, and one piece over and over."""

    def made(folder: Path, size: int) -> Table:
        path, block = folder / "log.csv", piece * max(1, MB // len(piece))
        with path.open("wb") as file:
            file.write(header)
            for _ in range(size // len(block)):
                file.write(block)
        return Table(path, path.stat().st_size, schema)

    return made


def numbered(form: str, schema: Schema = SCHEMA) -> Callable[[Path, int], Table]:
    """Rows of one form, each with its own number."""

    def made(folder: Path, size: int) -> Table:
        path, number = folder / "log.csv", 0
        with path.open("w") as file:
            file.write(HEADER.decode())
            while file.tell() < size:
                file.write("".join(form.format(n=n, day=n % 28 + 1) for n in range(number, number + 50_000)))
                number += 50_000
        return Table(path, path.stat().st_size, schema)

    return made


def noise(folder: Path, size: int) -> Table:
    """Random bytes, with a header."""
    path, rng = folder / "log.csv", np.random.default_rng(0)
    with path.open("wb") as file:
        file.write(HEADER)
        for _ in range(size // MB):
            file.write(rng.bytes(MB))
    return Table(path, path.stat().st_size)


def wide(folder: Path, size: int) -> Table:
    """Ten thousand columns of one digit, the most that are read."""
    names = ["time", "unit", "temp", "door", "mode", "fan", "cost", *(f"c{i}" for i in range(9_993))]
    path, row = folder / "log.csv", ",1" * 9_995
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for number in range(size * 4 // 10 // len(row)):
            file.write(f"{number},0,{number % 7},{number % 2},{number % 3}{row}\n")
    every = tuple(name for name in names if name not in ("time", "unit", "fan", "cost"))
    return Table(
        path, path.stat().st_size, Schema(unit="unit", time="time", obs=every, action="fan", reward="-cost")
    )


def packed(ending: str, times: int, sound_rows: bool = False) -> Callable[[Path, int], Table]:
    """A compressed file: of sound rows, or of one row over and over, so that it holds `times` the size."""

    def made(folder: Path, size: int) -> Table:
        path, content = folder / ending, 0
        block = b"0,0,1,0,0,1,1\n" * (MB // 14)
        pieces = sound(times * size) if sound_rows else itertools.repeat(block, times * size // len(block))
        with contextlib.ExitStack() as stack:
            if path.suffix == ".zip":
                archive = stack.enter_context(zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED))
                file: Any = stack.enter_context(archive.open("log.csv", "w", force_zip64=True))
            else:
                file = stack.enter_context(gzip.open(path, "wb", 6))
            for piece in itertools.chain([HEADER], pieces):
                content += len(piece)
                file.write(piece)
        return Table(path, content)

    return made


def parquet(constant: bool) -> Callable[[Path, int], Table]:
    """A Parquet file of numbers: sound, or of columns that never change, which take next to nothing."""

    def made(folder: Path, size: int) -> Table:
        path, rng, rows = folder / "log.parquet", np.random.default_rng(0), MB
        writer, pieces = None, max(1, size // (rows * 28)) * (40 if constant else 1)
        for number in range(pieces):
            drawn = {n: np.zeros(rows, np.float32) if constant else rng.random(rows, np.float32) for n in "abcde"}
            table = pa.table({"time": np.arange(rows) * (not constant) + number * rows, **drawn})
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
        every = Schema(time="time", window=100, obs=("a", "b", "c"), action="d", actions="box", reward="-e")
        return Table(path, pieces * rows * 28, every)

    return made


def parquet_words(folder: Path, size: int) -> Table:
    """A Parquet file of one long word in every row, which is in the file once."""
    path, rows = folder / "log.parquet", max(1, size // 100)
    word = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array(["x" * (size // 50)]))
    numbers = np.random.default_rng(0).random((4, rows))
    pq.write_table(
        pa.table({"time": np.arange(rows), "mode": word, **dict(zip("abde", numbers, strict=True))}), path
    )
    every = Schema(time="time", window=100, obs=("a", "b", "mode"), action="d", actions="box", reward="-e")
    return Table(path, path.stat().st_size, every)


def excel(columns: int, bomb: bool = False) -> Callable[[Path, int], Table]:
    """A workbook, written by hand; a bomb's rows never end."""

    def made(folder: Path, size: int) -> Table:
        import openpyxl

        path, book = folder / "log.xlsx", openpyxl.Workbook(write_only=True)
        sheet, rng = book.create_sheet(), np.random.default_rng(0)
        sheet.append([*HEADER.decode().strip().split(","), *(f"c{i}" for i in range(columns - 7))])
        for number in range(size // (150 * columns)):  # openpyxl takes a second for some 4 MB
            numbers = [1] * (columns - 7) if bomb else rng.random(columns - 7).round(3).tolist()
            sheet.append([number, 0, number % 7 / 10, number % 2, number % 3, number % 2, 1, *numbers])
        book.save(path)
        with zipfile.ZipFile(path) as archive:
            content = sum(item.file_size for item in archive.infolist())
        return Table(path, content, replace(SCHEMA, per=None, cyclic=None, actions="discrete"))

    return made


KINDS: dict[str, Callable[[Path, int], Table]] = {
    "sound": spoilt(b""),
    "late word": spoilt(b"2999-01-01 00:00:00,m00,abc,no,a,low,0.1\n"),
    "huge number": spoilt(
        b"2999-01-01 00:00:00,m00," + b"9" * 400 + b",no,a,low,0.1\n2999-01-01 01:00:00,m00,1,no,a,low,0.1\n"
    ),
    "unclosed quote": spoilt(b"", b'2999-01-01 00:00:00,m00,"1,no,a,low,0.1\n'),
    "long cell": spoilt(b"", b"2999-01-01 00:00:00,m00," + b"7" * (30 * MB) + b",no,a,low,0.1\n"),
    "short row": spoilt(b"2999-01-01 00:00:00,m00\n"),
    "late empty cell": spoilt(b"2999-01-01 00:00:00,m00,,no,a,low,0.1\n"),
    "late odd time": spoilt(b"32.13.2999,m00,1,no,a,low,0.1\n"),
    "time twice": spoilt(b"1990-01-01 00:00:00,m00,1,no,a,low,0.1\n"),
    "late byte": spoilt(b"2999-01-01 00:00:00,m00,1,no,\xff\xfe,low,0.1\n"),
    "formula bomb": spoilt(b"2999-01-01 00:00:00,m00,,no,a,low,0.1\n", schema=replace(SCHEMA, reward=BOMB)),
    "formula bomb loaded": spoilt(b"", schema=replace(SCHEMA, reward=BOMB)),
    "a word a row": numbered("2024-01-{day:02} 00:00,m1,1,no,word{n},low,1\n"),
    "a unit a row": numbered("2024-01-{day:02} 00:00,unit{n},1,no,a,low,1\n"),
    "numbers of one digit": repeated(b"0,0,1,0,0,1,1\n"),
    "empty cells": repeated(b",,,,,,\n"),
    "empty lines": repeated(b"\n"),
    "nulls": repeated(b"\0"),
    "one line": repeated(b"1,"),
    "long header": repeated(b"abc,", header=b""),
    "noise": noise,
    "ten thousand columns": wide,
    "gz": packed("log.csv.gz", 1, True),
    "gz bomb": packed("log.csv.gz", 20),
    "zip bomb": packed("log.zip", 20),
    "parquet": parquet(False),
    "parquet bomb": parquet(True),
    "parquet of one word": parquet_words,
    "excel": excel(20),
    "excel bomb": excel(20, True),
}  # fmt: skip
