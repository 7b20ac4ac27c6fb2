"""Writes the table of the sample `offing:coldstore` from its simulator.

python -m experiments.make_coldstore FILE.csv

The same seed gives the same file. It is embedded as offing/data/samples/coldstore.csv.
"""

import sys
from pathlib import Path

from offing.online.coldstore import table


def main(path: str) -> None:
    columns = table(seed=0)
    lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
    Path(path).write_text("\n".join(lines) + "\n")
    print(f"{path}: {len(lines) - 1} rows")


if __name__ == "__main__":
    main(sys.argv[1])
