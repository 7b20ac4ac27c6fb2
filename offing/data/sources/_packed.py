"""Packed files: how much they hold, found out before it is unpacked, and no more than is sound."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

from ...types import BadInput
from . import size_of

TIMES = 100  # what a packed file may hold, of its own size; sound tables are packed to a third or a thirtieth
SMALL = 64 * 2**20  # bytes that any may hold
CHUNK = 2**20


def refuse_bomb(path: Path, content: int, at_least: bool = False) -> None:
    """BadInput for a file whose content is far larger than it."""
    size = path.stat().st_size
    if content > max(SMALL, TIMES * size):
        what = f"{'more than ' if at_least else ''}{size_of(content)}"
        raise BadInput(
            f"{path}: {size_of(size)} that unpack to {what}, and {TIMES} times the file or {size_of(SMALL)} is "
            "the most; unpack it yourself if that is right"
        )


def gzip_head(path: Path, count: int) -> tuple[bytes, int]:
    """The first bytes of a gzip file, and how many it holds: counted, as its own word for that may be wrong."""
    most = max(SMALL, TIMES * path.stat().st_size)
    with gzip.open(path, "rb") as raw:
        head = raw.read(count)
        total = len(head)
        while piece := raw.read(CHUNK):
            total += len(piece)
            if total > most:
                refuse_bomb(path, total, at_least=True)
    return head, total


def zip_content(path: Path) -> int:
    """How much the files in a zip archive hold, as its directory says: no more of a file than that is unpacked."""
    with zipfile.ZipFile(path) as archive:
        content = sum(item.file_size for item in archive.infolist())
    refuse_bomb(path, content)
    return content
