"""The first table of docs/results/worlds.md, from the records of version 0.1."""

from __future__ import annotations

from typing import Any


def table(runs: list[dict[str, Any]]) -> str:
    """The runs as Markdown."""
    lines = [
        "| log | rows | seed | E | V | PIL | imbalance | | noise scale | chosen |",
        "|---|--:|--:|--:|--:|--:|--:|---|--:|---|",
    ]
    for r in sorted(runs, key=lambda r: (r["sample"], r["rows"], r["seed"])):
        chosen = ", ".join(f"{k} {v:g}" for k, v in r["chosen"].items())
        name = r["sample"].removeprefix("offing:")
        lines.append(
            f"| {name} | {r['rows']:,} | {r['seed']} | {r['error']:.3g} | {r['spread']:.3g} | {r['total']:.3g} "
            f"| {r['imbalance']:+.2f} | {r['word']} | {r['noise_scale']:g} | {chosen} |"
        )
    return "\n".join(lines)
