"""Records that `brax.sh` left in a folder, put into results/: each in the place of the one it does anew.

    python experiments/gather.py out/brax

Points and sweeps that were not played yet are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from offing.report.store import write

RESULTS = Path(__file__).parent / "results"
# where records of that name go, what they are about, what tells them apart, and how they are laid out
KINDS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], dict[str, Any]]] = {
    "points": ("value_against_rows_brax", ("task", "rows", "seed", "core"), (), {"indent": 1}),
    "sweep": ("tuned_offline_brax", ("task", "planner", "rows", "seed"), (), {"indent": 1}),
    "judged": ("judge_policies_brax", ("task", "rows", "seed", "pool"), ("method",), {"separators": (",", ":")}),
    "truths": ("judge_policies_brax_truths", ("task", "pool"), (), {"separators": (",", ":")}),
}


def placed(there: list[Any], more: list[Any], about: tuple[str, ...], apart: tuple[str, ...]) -> list[Any]:
    """The records with `more` among them: in the place of those they do anew, or behind them all.

    What was said about the same before and is not said anew is gone: a pool of that name is another pool now.
    """
    of = lambda record, names: tuple(record[name] for name in names)
    new = {of(record, about + apart): record for record in more}
    stale = {of(record, about) for record in more}
    kept = {of(r, about + apart): r for r in there if of(r, about) not in stale or of(r, about + apart) in new}
    return list((kept | new).values())


def main() -> None:
    folder = Path(sys.argv[1])
    for kind, (name, about, apart, layout) in KINDS.items():
        path = RESULTS / f"{name}.json"
        more = [r for file in sorted(folder.glob(f"{kind}-*.json")) for r in json.loads(file.read_text())]
        whole = [r for r in more if kind in ("judged", "truths") or "realised" in r]
        records = placed(json.loads(path.read_text()) if path.exists() else [], whole, about, apart)
        write(path, (json.dumps(records, **layout) + "\n").encode())
        print(f"{name}: {len(whole)} new, {len(more) - len(whole)} not played yet, {len(records)} in all")


if __name__ == "__main__":
    main()
