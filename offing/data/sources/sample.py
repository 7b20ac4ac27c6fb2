"""The logs that come with the package, such as `offing:pendulum`."""

from __future__ import annotations

from importlib.resources import as_file, files

from ...types import BadInput
from ..dataset import Log
from . import Request, Source
from .npz import read_npz

PREFIX = "offing:"
FOLDER = files("offing.data") / "samples"


def samples() -> list[str]:
    """Names of the embedded sample logs, as `load` takes them."""
    return sorted(
        PREFIX + item.name.removesuffix(".npz") for item in FOLDER.iterdir() if item.name.endswith(".npz")
    )


def _load(request: Request) -> Log:
    if request.name not in samples():
        raise BadInput(f"{request.name}: no such sample; there are {', '.join(samples())}")
    with as_file(FOLDER / f"{request.what}.npz") as path:
        return read_npz(path, request.schema)._replace(name=request.name)


source = Source(f"an embedded sample ({', '.join(samples())})", _load, prefix=PREFIX)
