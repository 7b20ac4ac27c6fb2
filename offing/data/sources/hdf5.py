"""HDF5 in the D4RL layout: `observations`, `actions`, `rewards`, `terminals`, `timeouts` side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ...types import BadInput
from ..dataset import Log
from ..schema import Schema, complete
from . import Request, Source
from ._rows import BATCH, MOST, Batch, Rows, collect
from .arrays import SETTINGS

SMALL = 2**20  # numbers in a setting, at most


def read_hdf5(path: Path, schema: Schema, request: Request) -> Log:
    """The log in an HDF5 file; groups beside its columns, such as `infos`, are not used."""
    try:
        with h5py.File(path, "r") as file:
            return collect(_rows(file, path, schema), schema, request)
    except BadInput:
        raise
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or 'no such file'})") from None
    except Exception:  # a damaged file may fail in any of a dozen ways
        raise BadInput(f"{path}: damaged or not an HDF5 file") from None


def kinds_of(path: Path) -> dict[str, np.ndarray]:
    """No rows of each column, but of its kind."""
    try:
        with h5py.File(path, "r") as file:
            return {key: np.empty(0, item.dtype) for key, item in datasets(file, path).items()}
    except BadInput:
        raise
    except Exception:
        raise BadInput(f"{path}: damaged or not an HDF5 file") from None


def datasets(group: h5py.Group, path: Path) -> dict[str, h5py.Dataset]:
    """The columns that stand in a group; links that lead nowhere are refused by name."""
    columns: dict[str, h5py.Dataset] = {}
    for key in group:
        try:
            item = group[key]
        except Exception:
            raise BadInput(f"{path}, column {key!r}: damaged") from None
        if isinstance(item, h5py.Dataset):
            if item.shape is None:
                raise BadInput(f"{path}, column {key!r}: empty")
            if item.is_virtual or item.external:
                raise BadInput(f"{path}, column {key!r}: lies in another file; save it in this one")
            columns[str(key)] = item
    return columns


def _rows(file: h5py.File, path: Path, schema: Schema) -> Rows:
    if "episode_0" in file and isinstance(file["episode_0"], h5py.Group):
        raise BadInput(f"{path}: a Minari dataset's main file; give its folder, as minari:FOLDER")
    columns = datasets(file, path)
    for role in schema.roles:  # a schema may also name columns inside groups, as group/column
        for name in schema.names(role):
            item = file.get(name)
            if isinstance(item, h5py.Dataset) and item.shape is not None:
                columns[name] = item
    for name, item in columns.items():
        if item.dtype.kind not in "fiub" and name in (
            "observations",
            "actions",
            "rewards",
            "terminals",
            "timeouts",
        ):
            raise BadInput(f"{path}, column '{name}': holds {item.dtype}, not numbers")
    settings = {name: _setting(item, name, path) for name, item in columns.items() if name in SETTINGS}
    per_row = {name: np.empty(0, item.dtype) for name, item in columns.items() if name not in SETTINGS}
    schema, _, notes = complete(per_row, str(path), schema)
    for name in ("observations", "actions"):
        if name in file and isinstance(file[name], h5py.Group):
            raise BadInput(f"{path}, column '{name}': nested; flatten it to one vector of numbers per row")
    rows = _lengths(columns, schema, path)
    if "truncated" not in schema.roles and "episode" not in schema.roles and "terminated" in schema.roles:
        notes.append("no column marks time-outs: episodes are taken to end only where they truly end")

    def read(roles: tuple[str, ...]) -> Iterator[Batch]:
        for first in range(0, rows, BATCH):
            batch = {role: _piece(columns, schema.names(role), first, path) for role in roles}
            yield Batch(batch, str(path), first)

    return Rows(str(path), schema.roles, read, rows, settings, notes)


def _setting(item: h5py.Dataset, name: str, path: Path) -> Any:
    if item.size is None or item.size > SMALL or item.dtype.kind not in "fiub":
        raise BadInput(f"{path}, '{name}': a few numbers were expected")
    return item[()]


def _lengths(columns: dict[str, h5py.Dataset], schema: Schema, path: Path) -> int:
    """Rows that all columns share, by what they declare."""
    first = schema.names("obs")[0]
    rows = columns[first].shape[0] if columns[first].ndim else 0
    for role in schema.roles:
        for name in schema.names(role):
            item = columns[name]
            if item.dtype.kind not in "fiub":
                raise BadInput(f"{path}, column {name!r}: holds {item.dtype}, not numbers")
            if item.ndim == 0:
                raise BadInput(f"{path}, column {name!r}: a single number where one per row was expected")
            if item.ndim > 2:
                raise BadInput(
                    f"{path}, column {name!r}: shape {item.shape}; give one flat vector of numbers per row "
                    "(images need an encoder first)"
                )
            if item.ndim == 2 and item.shape[1] > 10_000:
                raise BadInput(f"{path}, column {name!r}: {item.shape[1]} numbers per row; 10000 is the most")
            if item.shape[0] != rows:
                raise BadInput(f"{path}, column {name!r}: {item.shape[0]} rows where {first!r} has {rows}")
    if rows > MOST:
        raise BadInput(f"{path}: claims {rows} rows, and {MOST} is the most; give a part of it")
    return rows


def _piece(columns: dict[str, h5py.Dataset], names: tuple[str, ...], first: int, path: Path) -> np.ndarray:
    parts = []
    for name in names:
        try:
            parts.append(columns[name][first : first + BATCH])
        except Exception:
            raise BadInput(f"{path}, column {name!r}, from row {first}: damaged") from None
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def _load(request: Request) -> Log:
    if len(request.paths) > 1:
        raise BadInput(f"{request.name}: {len(request.paths)} HDF5 files in one folder; give one of them")
    return read_hdf5(request.paths[0], request.schema or Schema(), request)


source = Source(
    "an .hdf5 file (D4RL)", _load, lambda request: kinds_of(request.paths[0]), suffixes=(".hdf5", ".h5")
)
