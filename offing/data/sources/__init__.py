"""Where logs come from, one file per format; the only place in this room that opens files."""

BUDGET = 4 * 2**30  # bytes that a log may take in memory; of a larger one, whole episodes are drawn
TABLES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}  # files of rows, by suffix


def size_of(count: float) -> str:
    """Bytes in words."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
