"""Parquet files, and folders of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...types import BadInput
from . import Request, Source
from ._packed import refuse_bomb
from ._rows import BATCH
from ._tables import Part, first_cells, parts_of, read_parts

FOOTER = 64 * 2**20  # bytes of a Parquet file's footer
BUFFER = 2**20  # bytes of a column that are read at a time; without it, all of a group of rows
CELL = 2  # bytes that a cell counts as, at least: one that repeats the last takes next to none in the file


def opened(path: Path) -> Part:
    """A Parquet file as a part of a table; its footer is weighed before it is read."""
    with path.open("rb") as raw:
        raw.seek(0, 2)
        size = raw.tell()
        raw.seek(max(0, size - 8))
        length = int.from_bytes(raw.read(4), "little")
    if size < 12 or length > min(size, FOOTER):
        raise BadInput(f"{path}: damaged or not a Parquet file")
    with pq.ParquetFile(path) as file:
        fields, most = file.schema_arrow, file.metadata.num_rows
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        content = sum(group.total_byte_size for group in groups)
    if most < 0:
        raise BadInput(f"{path}: damaged; it claims {most} rows")
    refuse_bomb(path, max(content, CELL * most * len(fields)))
    words = [
        field.name for field in fields if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(
            path, page_checksum_verification=True, pre_buffer=False, read_dictionary=words, buffer_size=BUFFER
        ) as file:
            yield from file.iter_batches(batch_size=BATCH, columns=names, use_threads=False)

    return Part(str(path), fields, most, read)


def _parts(request: Request) -> list[Part]:
    return parts_of(request, opened)


source = Source(
    "a .parquet file",
    lambda request: read_parts(_parts(request), request),
    lambda request: _parts(request._replace(what=request.paths[:1]))[0].kinds,
    cells=lambda request: first_cells(_parts(request._replace(what=request.paths[:1]))),
    suffixes=(".parquet", ".pq"),
)
