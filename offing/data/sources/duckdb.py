"""A query of a DuckDB file: `duckdb:FILE?query=SELECT ...`, read through Arrow."""

from __future__ import annotations

from pathlib import Path

from ...types import BadInput
from . import Request, Source
from ._tables import Part, as_bad_input, first_cells, read_parts
from .frame import part_of

FORM = "duckdb:FILE?query=SELECT ... FROM ..."


def _part(request: Request) -> Part:
    try:
        import duckdb
    except ImportError:
        raise BadInput(f"{request.name}: DuckDB needs the extra: pip install 'offing[duckdb]'") from None
    file, mark, query = str(request.what).partition("?query=")
    if not mark or not query.strip():
        raise BadInput(f"{request.name}: no query; write {FORM}")
    if not Path(file).is_file():
        raise BadInput(f"{file}: no such file")

    def opened() -> Part:
        with duckdb.connect(file, read_only=True, config={"enable_external_access": "false"}) as base:
            return part_of(base.execute(query).to_arrow_table(), request.name)

    return as_bad_input(request.name, opened)


source = Source(
    f"{FORM} (extra `duckdb`)",
    lambda request: read_parts([_part(request)], request),
    lambda request: _part(request).kinds,
    cells=lambda request: first_cells([_part(request)]),
    prefix="duckdb:",
    extra="duckdb",
)
