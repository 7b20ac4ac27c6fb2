"""A schema from its file; and the text of any short file in TOML."""

from __future__ import annotations

from pathlib import Path

from ...types import BadInput
from ..schema import Schema, parse

LONGEST = 2**20  # bytes; such a file is a page, not a book


def read_schema(path: Path) -> Schema:
    """The schema in a TOML file."""
    return parse(text_in(path, "schema"), str(path))


def text_in(path: Path, what: str) -> str:
    """The text of a file that should hold a `what`, such as "schema"."""
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise BadInput(f"{path}: no such file") from None
    if len(content) > LONGEST:
        raise BadInput(f"{path}: longer than {LONGEST} bytes, so not a {what}")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not a {what} in TOML (not UTF-8)") from None
