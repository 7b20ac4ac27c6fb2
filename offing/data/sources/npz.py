"""`.npz` files: sizes are checked before anything is unpacked, and nothing is unpickled."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ...types import BadInput
from ..dataset import Log
from ..schema import Schema
from . import BUDGET, Request, Source, size_of
from .arrays import from_arrays


def read_npz(path: Path, schema: Schema | None = None, budget: int = BUDGET) -> Log:
    """The log in an `.npz` file."""
    return from_arrays(columns_of(path, budget), str(path), schema)


def columns_of(path: Path, budget: int = BUDGET) -> dict[str, np.ndarray]:
    """The arrays in an `.npz` file; those that would need pickle are refused, not loaded."""
    columns: dict[str, np.ndarray] = {}
    key = None
    try:
        with path.open("rb") as raw:
            file = np.load(raw, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise BadInput(f"{path}: not an .npz archive; save the log with numpy.savez")
            _weigh(file, path, budget)
            for key in file.files:
                _measure(file, key, path)
                columns[key] = file[key]
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (IsADirectoryError, PermissionError) as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
    except BadInput:
        raise
    except Exception as error:  # a damaged archive may fail in any of a dozen ways
        where = f", column {key!r}" if key else ""
        if key and "Object arrays" in str(error):
            text = "holds Python objects and would need pickle; save plain numeric arrays"
            raise BadInput(f"{path}{where}: {text}") from None
        raise BadInput(f"{path}{where}: damaged or not an .npz file") from None
    return columns


def _weigh(file: Any, path: Path, budget: int) -> None:
    """Refuses an archive whose arrays would not fit, by what it declares and before any is unpacked."""
    archive: zipfile.ZipFile = file.zip
    total = sum(item.file_size for item in archive.infolist())
    if total > budget:
        raise BadInput(
            f"{path}: unpacks to {size_of(total)}, above the budget of {size_of(budget)}; "
            "save it as Parquet, which is read piece by piece"
        )


def _measure(file: Any, key: str, path: Path) -> None:
    """Refuses an array that claims more than its member holds: room for a claim is made before it is read."""
    archive: zipfile.ZipFile = file.zip
    if f"{key}.npy" not in archive.NameToInfo:
        return
    with archive.open(f"{key}.npy") as member:
        version = np.lib.format.read_magic(member)
        first = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(member)
    claimed = math.prod((dtype.itemsize, *shape))
    if not dtype.hasobject and claimed > archive.getinfo(f"{key}.npy").file_size:
        raise BadInput(f"{path}, column {key!r}: damaged; it claims {size_of(claimed)} and holds less")


def _is_archive(given: object) -> bool:
    return isinstance(given, Path) and given.suffix == ".npz"  # a folder of that name is refused as a file


def _columns(request: Request) -> dict[str, np.ndarray]:
    return {key: value for key, value in columns_of(request.paths[0]).items() if value.ndim}


def _load(request: Request) -> Log:
    if len(request.paths) > 1:
        raise BadInput(f"{request.name}: {len(request.paths)} .npz files in one folder; give one of them")
    return read_npz(request.paths[0], request.schema, request.budget)


source = Source("an .npz file", _load, _columns, suffixes=(".npz",), takes=_is_archive, whole=True)
