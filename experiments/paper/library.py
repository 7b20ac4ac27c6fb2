"""The state of the library: the hash that git gives to the folder `offing/`, told without git."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tree_of(folder: Path) -> str:
    """The hash that git gives to a folder of these contents, so that it can be told where there is no git."""
    entries = []
    for path in folder.iterdir():
        if path.name == "__pycache__" or path.suffix == ".pyc":
            continue
        if path.is_dir():
            entries.append((f"{path.name}/", b"40000 ", path.name, tree_of(path)))
        else:
            content = path.read_bytes()
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            mode = b"100755 " if os.access(path, os.X_OK) else b"100644 "
            entries.append((path.name, mode, path.name, blob))
    body = b"".join(
        mode + name.encode() + b"\0" + bytes.fromhex(digest) for _, mode, name, digest in sorted(entries)
    )
    return hashlib.sha1(b"tree %d\0" % len(body) + body).hexdigest()


@cache
def imported() -> str:
    """The hash of `offing/` as this process found it first, which is about what it runs."""
    return tree_of(ROOT / "offing")
