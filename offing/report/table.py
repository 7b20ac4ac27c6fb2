"""A finished posterior as a table and a few plain sentences."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from .labels import differing, shown
from .reports import PosteriorReport

NAMES = {"prior_scale": "prior", "bootstrap": "boot", "init_diversity": "diversity"}  # shorter, for a terminal
SCORES = {"nll": "NLL", "error": "E", "spread": "V", "noise": "noise", "total": "PIL"}


def settings_table(report: PosteriorReport) -> Table:
    """Every setting tried, by what differs, with E, V, noise, PIL and imbalance; the chosen one is marked."""
    names = differing([tried.setting for tried in report.settings])
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for name in (*(NAMES.get(name, name) for name in names), *SCORES.values(), "imbal.", ""):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for i, tried in enumerate(report.settings):
        numbers = [shown(tried.setting.get(name)) for name in names]
        numbers += [f"{getattr(tried, name):.3g}" for name in SCORES]
        marks = ("→", "bold green") if i == report.chosen else ("", None)
        table.add_row(marks[0], *numbers, f"{tried.imbalance:+.2f}", tried.word, style=marks[1])
    return table


def summary(report: PosteriorReport, out: Path | None = None) -> list[str]:
    """The result in sentences."""
    loss, bound = report.pil, report.pil.bound
    regret = "vacuous (Theorem 1 says nothing at this PIL and discount)"
    if bound is not None and not bound.vacuous:
        regret = f"{bound.value:.2g} of the largest regret there can be, under the log's own distribution"
    where = "" if out is None else f"{out / 'posterior.json'}  "
    return [
        f"{report.data}: {report.rows:,} rows, seed {report.seed}, {len(report.settings)} settings "
        f"({report.scale}), {report.seconds:.0f} s",
        f"PIL {loss.total:.3g} nats per step = error {loss.error:.3g} + spread {loss.spread:.3g}; "
        f"imbalance {loss.imbalance:+.2f}: {loss.word}",
        f"{report.noise_scale:.0%} of the learned variance counts as chance, by replay of held-out actions",
        f"regret bound: {regret}",
        *(f"note: {note}" for note in report.notes),
        f"{where}online samples used: {report.online_samples}",
    ]
