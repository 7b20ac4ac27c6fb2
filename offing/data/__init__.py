"""Logs: what a file, a table or arrays hold, as a Dataset and a Task."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..types import BadInput
from .columns import Columns
from .dataset import Behaviour, Log, Part, Split, behaviour, broken, crossed, ranges, split, subsample, take
from .drafting import draft
from .join import join
from .large import fewer
from .opening import help_text, opened
from .schema import Schema
from .sources import BUDGET, Request, Source
from .sources._toml import read_schema, text_in
from .sources.sample import sample_file, samples
from .table.draft import draft_table

__all__ = [
    "BUDGET",
    "Behaviour",
    "Columns",
    "Log",
    "Part",
    "Request",
    "Schema",
    "Source",
    "Split",
    "behaviour",
    "broken",
    "crossed",
    "draft",
    "fewer",
    "help_text",
    "join",
    "load",
    "ranges",
    "read_schema",
    "sample_file",
    "samples",
    "sketch",
    "split",
    "subsample",
    "take",
    "text_in",
]

LONGEST = 1_200  # letters of a refusal: names of columns may be of any length
Given = str | os.PathLike[str] | Mapping[str, object] | object  # or what speaks the Arrow protocol


def load(
    source: Given,
    rows: int | None = None,
    seed: int = 0,
    schema: Schema | str | os.PathLike[str] | None = None,
    budget: int | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Log:
    """The log in a file, a folder, a dict of arrays, a DataFrame or an embedded sample (`offing:pendulum`).

    A list of such logs, or of what this function gave, is read as one: an earlier log, and what came later.
    `rows` keeps that many, episodes in random order by `seed`. `schema` says which column is what. A log that
    would take more than BUDGET bytes of memory is kept on disk instead, if its rows are in order; with a `budget`
    of bytes a larger one is read as a sample of whole episodes. `root` is where `minari:ID` lies. Raises BadInput,
    whose message is one line.
    """
    with _one_line():
        if isinstance(schema, (str, os.PathLike)):
            schema = read_schema(Path(schema))
        if isinstance(source, (list, tuple)) and not isinstance(source, Log):
            each = [
                part if isinstance(part, Log) else load(part, None, seed, schema, budget or BUDGET, root)
                for part in source
            ]
            return fewer(join(each), rows, seed)
        where = None if root is None else Path(root)
        whole = Request(None, "log", schema, BUDGET if budget is None else budget, seed, where, budget is None)
        format_, request = opened(source, whole)
        return fewer(format_.load(request), rows, seed)


def sketch(source: Given) -> tuple[Schema, list[str]]:
    """A first schema for a log, by the names and kinds of its columns, and what was inferred and why."""
    with _one_line():
        format_, request = opened(source, Request(None, "log"))
        if format_.cells is not None:
            first = format_.cells(request)
            if first.time is not None or any(cell.kind == "word" for cell in first.cells.values()):
                return draft_table(first)
        if format_.columns is None:
            return Schema(), [f"{request.name} carries its own columns and spaces"]
        return draft(format_.columns(request), request.name)


@contextmanager
def _one_line() -> Iterator[None]:
    """Keeps a refusal to one line, whatever characters the names of files and columns hold."""
    try:
        yield
    except MemoryError as error:
        raise BadInput(
            f"not enough memory for this log ({error}); give budget=BYTES to read a sample of it"
        ) from None
    except BadInput as error:
        line = str(error)
        if line.isprintable() and len(line) <= LONGEST:
            raise
        line = line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
        raise BadInput("".join(c if c.isprintable() else repr(c)[1:-1] for c in line)) from None
