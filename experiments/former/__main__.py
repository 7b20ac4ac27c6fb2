"""Prints a table of version 0.1 from its records; with `--picture FILE` it is drawn too, where it was."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from . import judged, posterior, sorel, torel

RESULTS = Path(__file__).parents[1] / "results"
FILES = {"sorel": "value_against_rows_{}", "torel": "tuned_offline_{}", "judged": "judge_policies_{}"}


def read(name: str) -> list[dict[str, Any]]:
    """The records of a file; none where there is none."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else []


def printed(what: str, suite: str) -> str:
    """The table."""
    if what == "posterior":
        return posterior.table(read("pil_against_rows"))
    records = read(FILES[what].format(suite))
    if what == "judged":
        truths = read(f"judge_policies_{'brax' if suite == 'brax' else 'gymnax'}_truths")
        return judged.table(records, truths, read("value_against_rows_brax") if suite == "brax" else [])
    return sorel.table(records) if what == "sorel" else torel.table(records)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.former", description=__doc__)
    parser.add_argument("what", choices=(*FILES, "posterior"))
    parser.add_argument("suite", nargs="?", choices=("gymnax", "brax", "random"), default="gymnax")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args(arguments)
    print(printed(given.what, given.suite))
    if given.picture is not None and given.what == "sorel":
        sorel.draw(read(FILES["sorel"].format(given.suite)), given.picture)
    if given.picture is not None and given.what == "judged":
        truths = read(f"judge_policies_{'brax' if given.suite == 'brax' else 'gymnax'}_truths")
        judged.draw(read(FILES["judged"].format(given.suite)), truths, given.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
