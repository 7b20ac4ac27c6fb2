"""Room 1: files in, Dataset and Task out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from ..types import BadInput
from .dataset import Behaviour, Log, Split, behaviour, broken, ranges, split, subsample, take
from .drafting import draft
from .schema import Schema
from .sources import BUDGET, TABLES
from .sources.arrays import from_arrays
from .sources.npz import columns_of, read_npz
from .sources.toml import read_schema

__all__ = [
    "BUDGET",
    "Behaviour",
    "Log",
    "Schema",
    "Split",
    "behaviour",
    "broken",
    "draft",
    "load",
    "ranges",
    "read_schema",
    "samples",
    "sketch",
    "split",
    "subsample",
    "take",
]

PREFIX, MINARI = "offing:", "minari:"
KINDS = (
    ".npz, .hdf5, .h5, .parquet, .pq and .csv are read, folders of the last three and of Minari, and the samples"
)
Source = str | os.PathLike[str] | Mapping[str, Any] | Any  # Any: what speaks the Arrow protocol


def samples() -> list[str]:
    """Names of the embedded sample logs, as `load` takes them."""
    folder = files(__name__) / "samples"
    return sorted(
        PREFIX + item.name.removesuffix(".npz") for item in folder.iterdir() if item.name.endswith(".npz")
    )


def load(
    source: Source,
    rows: int | None = None,
    seed: int = 0,
    schema: Schema | str | os.PathLike[str] | None = None,
    budget: int = BUDGET,
    root: str | os.PathLike[str] | None = None,
) -> Log:
    """The log in a file, a folder, a dict of arrays, a DataFrame or an embedded sample (`offing:pendulum`).

    `rows` keeps that many, episodes in random order by `seed`. `schema` says which column is what. A log that
    would take more than `budget` bytes is read as a sample of whole episodes. `root` is where `minari:ID` lies.
    Raises BadInput, whose message is one line.
    """
    with _one_line():
        if isinstance(schema, (str, os.PathLike)):
            schema = read_schema(Path(schema))
        return subsample(_read(source, schema, budget, seed, root), rows, seed)


@contextmanager
def _one_line() -> Iterator[None]:
    """Keeps a refusal to one line, whatever characters the names of files and columns hold."""
    try:
        yield
    except BadInput as error:
        line = str(error)
        if line.isprintable():
            raise
        raise BadInput("".join(c if c.isprintable() else repr(c)[1:-1] for c in line)) from None


def _read(
    source: Source, schema: Schema | None, budget: int, seed: int, root: str | os.PathLike[str] | None
) -> Log:
    if isinstance(source, Mapping):
        return from_arrays(source, schema=schema)
    known = schema or Schema()
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"):
        from .sources.tables import read_frame

        return read_frame(source, known, budget, seed)
    if not isinstance(source, (str, os.PathLike)):
        raise BadInput(f"{type(source).__name__}: not a log; give a file, a dict of arrays or a DataFrame")
    name = os.fspath(source)
    if name.startswith(PREFIX):
        return _sample(name, schema)
    if name.startswith(MINARI):
        from .sources.minari import folder_of, read_minari

        folder = folder_of(name.removeprefix(MINARI), None if root is None else Path(root))
        return read_minari(folder, name, known, budget, seed)
    return _file(Path(name), name, schema, budget, seed)


def _sample(name: str, schema: Schema | None) -> Log:
    if name not in samples():
        raise BadInput(f"{name}: no such sample; there are {', '.join(samples())}")
    with as_file(files(__name__) / "samples" / f"{name.removeprefix(PREFIX)}.npz") as path:
        return read_npz(path, schema)._replace(name=name)


def sketch(source: Source) -> tuple[Schema, list[str]]:
    """A first schema for a log, by the names and kinds of its columns, and what was inferred and why."""
    with _one_line():
        return _sketch(source)


def _sketch(source: Source) -> tuple[Schema, list[str]]:
    if isinstance(source, Mapping):
        return draft({str(key): np.atleast_1d(value) for key, value in source.items() if np.ndim(value)}, "arrays")
    name = os.fspath(source)
    if name.startswith(MINARI):
        return Schema(), ["a Minari dataset carries its own columns and spaces"]
    if name.startswith(PREFIX):
        return Schema(), ["a sample carries its own columns and spaces"]
    kind, paths = _kind(Path(name), name)
    if kind == "minari":
        return Schema(), ["a Minari dataset carries its own columns and spaces"]
    if kind == "npz":
        return draft({key: value for key, value in columns_of(paths[0]).items() if value.ndim}, name)
    if kind == "hdf5":
        from .sources.hdf5 import kinds_of
    else:
        from .sources.tables import kinds_of
    return draft(kinds_of(paths[0]), name)


def _file(path: Path, name: str, schema: Schema | None, budget: int, seed: int) -> Log:
    kind, paths = _kind(path, name)
    known = schema or Schema()
    if kind == "npz":
        return read_npz(path, schema, budget)
    if kind == "hdf5":
        from .sources.hdf5 import read_hdf5

        return read_hdf5(path, known, budget, seed)
    if kind == "minari":
        from .sources.minari import read_minari

        return read_minari(paths[0], name, known, budget, seed)
    from .sources.tables import read_tables

    return read_tables(paths, name, known, budget, seed)


def _kind(path: Path, name: str) -> tuple[str, list[Path]]:
    """What a path holds, by its name, and the files or the folder to read."""
    try:
        there, folder, plain = path.exists(), path.is_dir(), path.is_file()
        inside = sorted(path.iterdir()) if folder and path.suffix != ".npz" else [path]
    except OSError as error:  # unreadable, or a name that is too long
        raise BadInput(f"{name}: cannot be read ({error.strerror})") from None
    except ValueError:  # a name with a null in it
        raise BadInput(f"{name}: no such file") from None
    if not there:
        raise BadInput(f"{name}: no such file")
    if not folder and not plain:
        raise BadInput(f"{name}: not a plain file")
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return "npz", [path]
    if suffix in (".hdf5", ".h5") and plain:
        return "hdf5", [path]
    for base in (path, path / "data"):
        if folder and (base / "metadata.json").is_file():
            return "minari", [base]
    parts = [item for item in inside if item.suffix.lower() in TABLES]
    kinds = {TABLES[part.suffix.lower()] for part in parts}
    if len(kinds) > 1:
        raise BadInput(f"{name}: Parquet and CSV files in one folder; give one kind")
    if not kinds:
        raise BadInput(f"{name}: unknown kind of file; {KINDS} {', '.join(samples())}")
    return "tables", parts
