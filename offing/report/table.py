"""A finished posterior as a table and a few plain sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

COLUMNS = {
    "width": "width",
    "depth": "depth",
    "members": "members",
    "own": "own",
    "prior_scale": "prior",
    "bootstrap": "boot",
    "decay": "decay",
}
SCORES = {"nll": "NLL", "error": "E", "spread": "V", "noise": "noise", "total": "PIL"}


def settings_table(result: dict[str, Any]) -> Table:
    """Every setting tried with E, V, noise, PIL and imbalance; the chosen one is marked."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for name in (*COLUMNS.values(), *SCORES.values(), "imbal.", ""):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for i, setting in enumerate(result["settings"]):
        chosen = i == result["chosen"]
        numbers = [f"{setting[key]:g}" for key in COLUMNS] + [f"{setting[key]:.3g}" for key in SCORES]
        style = "bold green" if chosen else None
        table.add_row(
            "→" if chosen else "", *numbers, f"{setting['imbalance']:+.2f}", setting["word"], style=style
        )
    return table


def summary(result: dict[str, Any], out: Path) -> list[str]:
    """What was found, in sentences."""
    loss, bound = result["pil"], result["pil"]["bound"]
    regret = "vacuous (Theorem 1 says nothing at this PIL and discount)"
    if not bound["vacuous"]:
        regret = f"{bound['value']:.2g} of the largest regret there can be, under the log's own distribution"
    return [
        f"{result['data']}: {result['rows']:,} rows, seed {result['seed']}, {len(result['settings'])} settings "
        f"({result['scale']}), {result['seconds']:.0f} s",
        f"PIL {loss['total']:.3g} nats a step = error {loss['error']:.3g} + spread {loss['spread']:.3g}; "
        f"imbalance {loss['imbalance']:+.2f}: {loss['word']}",
        f"{result['noise_scale']:.0%} of the squared residual on held-out rows is chance, on average over columns",
        f"regret bound: {regret}",
        *(f"note: {note}" for note in result["notes"]),
        f"{out / 'posterior.json'}  online samples used: {result['online_samples']}",
    ]
