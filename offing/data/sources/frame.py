"""DataFrames of any library that speaks the Arrow protocol: pandas, polars, Arrow itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from . import Request, Source
from ._rows import BATCH
from ._tables import Part, as_bad_input, first_cells, read_parts


def part_of(table: pa.Table, name: str) -> Part:
    """An Arrow table as a part."""
    return Part(
        name, table.schema, table.num_rows, lambda names: iter(table.select(names).to_batches(max_chunksize=BATCH))
    )


def _part(request: Request) -> Part:
    frame: Any = request.what

    def opened() -> Part:
        if hasattr(frame, "__arrow_c_stream__"):
            return part_of(pa.table(frame), "table")
        from pyarrow.interchange import from_dataframe

        return part_of(from_dataframe(frame), "table")

    return as_bad_input("table", opened)


source = Source(
    "",
    lambda request: read_parts([_part(request)], request._replace(name="table")),
    lambda request: _part(request).kinds,
    cells=lambda request: first_cells([_part(request)]),
    takes=lambda given: hasattr(given, "__arrow_c_stream__") or hasattr(given, "__dataframe__"),
)
