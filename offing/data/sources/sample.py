"""The logs that come with the package, such as `offing:pendulum`."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from ...types import BadInput
from ..dataset import Log
from . import First, Request, Source
from ._tables import first_cells, read_parts
from ._toml import read_schema
from .csv import opened
from .npz import read_npz

PREFIX = "offing:"
FOLDER = files("offing.data") / "samples"


def samples() -> list[str]:
    """Names of the embedded sample logs, as `load` takes them."""
    names = [item.name.rsplit(".", 1) for item in FOLDER.iterdir() if "." in item.name]
    return sorted(PREFIX + name for name, ending in names if ending in ("npz", "csv"))


def sample_file(name: str, out: Path | None = None) -> tuple[Path, bytes]:
    """Where to write an embedded sample to, and its bytes; BadInput if another file is there."""
    plain = name.removeprefix(PREFIX)
    if PREFIX + plain not in samples():
        raise BadInput(f"{name}: no such sample; there are {', '.join(samples())}")
    file = next(item for item in FOLDER.iterdir() if item.name in (f"{plain}.csv", f"{plain}.npz"))
    path, content = Path(file.name) if out is None else out, file.read_bytes()
    if path.suffix != Path(file.name).suffix:
        raise BadInput(f"{path}: the sample is a {Path(file.name).suffix} file; give --out a name that ends so")
    if path.exists() and (path.is_dir() or path.read_bytes() != content):
        raise BadInput(f"{path}: is there already, and holds something else; give another name by --out")
    return path, content


def _load(request: Request) -> Log:
    if request.name not in samples():
        raise BadInput(f"{request.name}: no such sample; there are {', '.join(samples())}")
    with as_file(FOLDER) as folder:
        if not (folder / f"{request.what}.csv").is_file():
            return read_npz(folder / f"{request.what}.npz", request.schema)._replace(name=request.name)
        schema = request.schema or read_schema(folder / f"{request.what}.toml")
        return read_parts([opened(folder / f"{request.what}.csv")], request._replace(schema=schema))


def _cells(request: Request) -> First:
    with as_file(FOLDER / f"{request.what}.csv") as path:
        return first_cells([opened(path)]) if path.is_file() else First({}, None)


source = Source(f"an embedded sample ({', '.join(samples())})", _load, cells=_cells, prefix=PREFIX)
