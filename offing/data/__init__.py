"""Room 1: files in, Dataset and Task out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from ..types import BadInput
from .dataset import Behaviour, Log, Split, behaviour, broken, ranges, split, subsample, take
from .sources.arrays import from_arrays, read_npz

__all__ = [
    "Behaviour",
    "Log",
    "Split",
    "behaviour",
    "broken",
    "load",
    "ranges",
    "samples",
    "split",
    "subsample",
    "take",
]

PREFIX = "offing:"


def samples() -> list[str]:
    """Names of the embedded sample logs, as `load` takes them."""
    folder = files(__name__) / "samples"
    return sorted(
        PREFIX + item.name.removesuffix(".npz") for item in folder.iterdir() if item.name.endswith(".npz")
    )


def load(source: str | os.PathLike[str] | Mapping[str, Any], rows: int | None = None, seed: int = 0) -> Log:
    """The log in an `.npz` file, a dict of arrays or an embedded sample (`offing:pendulum`).

    `rows` keeps that many, episodes in random order by `seed`. Raises BadInput, whose message is one line.
    """
    return subsample(_read(source), rows, seed)


def _read(source: str | os.PathLike[str] | Mapping[str, Any]) -> Log:
    if isinstance(source, Mapping):
        return from_arrays(source)
    name = os.fspath(source)
    if name.startswith(PREFIX):
        item = files(__name__) / "samples" / f"{name.removeprefix(PREFIX)}.npz"
        if name not in samples():
            raise BadInput(f"{name}: no such sample; there are {', '.join(samples())}")
        with as_file(item) as path:
            return read_npz(path)._replace(name=name)
    path = Path(name)
    if not path.exists():
        raise BadInput(f"{name}: no such file")
    if path.suffix != ".npz":
        raise BadInput(f"{name}: unknown kind of file; .npz is read, and the samples {', '.join(samples())}")
    return read_npz(path)
