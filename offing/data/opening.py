"""What somebody gives as a log, and the format that opens it."""

from __future__ import annotations

import os
from pathlib import Path

from ..types import BadInput
from .schema import listed
from .sources import Request, Source, registry


def formats() -> dict[str, Source]:
    """Every format by its name: those of the folder first, then those that other packages add."""
    return {name: registry.get(name) for name in (*registry.own(), *registry.added())}


def help_text() -> str:
    """What can be loaded, in one sentence for the command line."""
    return f"The log: {_abouts(formats())}; or a folder of such files."


def opened(given: object, request: Request) -> tuple[Source, Request]:
    """The format that opens what was given, and the request with what it reads; BadInput if none does."""
    known = formats()
    if not isinstance(given, (str, os.PathLike)):
        for source in known.values():
            if source.takes is not None and not source.whole and source.takes(given):
                return source, request._replace(what=given)
        raise BadInput(f"{type(given).__name__}: not a log; give a file, a dict of arrays or a DataFrame")
    name = os.fspath(given)
    for source in known.values():
        if source.prefix and name.startswith(source.prefix):
            return source, request._replace(what=name.removeprefix(source.prefix), name=name)
    return _file(Path(name), request._replace(name=name), known)


def _file(path: Path, request: Request, known: dict[str, Source]) -> tuple[Source, Request]:
    """The format of a file by its ending, of a folder by what is in it."""
    name = request.name
    try:
        there, folder, plain = path.exists(), path.is_dir(), path.is_file()
        inside = sorted(path.iterdir()) if folder else [path]
    except OSError as error:  # unreadable, or a name that is too long
        raise BadInput(f"{name}: cannot be read ({error.strerror})") from None
    except ValueError:  # a name with a null in it
        raise BadInput(f"{name}: no such file") from None
    if not there:
        raise BadInput(f"{name}: no such file")
    if not folder and not plain:
        raise BadInput(f"{name}: not a plain file")
    for source in known.values():
        if source.whole and source.takes is not None and folder and source.takes(path):
            return source, request._replace(what=[path])
    files = [item for item in inside if item.is_file()]
    by_suffix = [(source, [item for item in files if _ends(item, source)]) for source in known.values()]
    readable = [(source, parts) for source, parts in by_suffix if parts]
    if len(readable) > 1:
        kinds = " and ".join(source.suffixes[0] for source, _ in readable)
        raise BadInput(f"{name}: {kinds} files in one folder; give one kind")
    if not readable:
        there = f" (there is {_some(inside)})" if folder else ""
        raise BadInput(f"{name}: unknown kind of file{there}; what is read: {_abouts(known)}")
    source, parts = readable[0]
    return source, request._replace(what=parts)


def _abouts(known: dict[str, Source]) -> str:
    return ", ".join(source.about for source in known.values() if source.about)


def _ends(path: Path, source: Source) -> bool:
    return path.name.lower().endswith(source.suffixes) if source.suffixes else False


def _some(paths: list[Path]) -> str:
    return listed([path.name for path in paths]) or "nothing"
