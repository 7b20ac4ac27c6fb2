"""The tables of docs/results/torel.md, from the records of version 0.1."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

import offing
from offing.hypers import asdict
from offing.value import metrics


def table(records: list[dict[str, Any]]) -> str:
    """The sweeps as Markdown: does the prediction rank, and what did its choice truly earn?"""
    lines = [
        "| task | planner | seed | n | PIL | Pearson r | p | Spearman | regret@1 (chance) | chosen | best "
        "| median | default | worst | chosen lies at | UCB's samples to match, of 20 / all | s |",
        "|---|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in (r for r in records if "realised" in r):
        predicted, true = np.array(r["predicted"]), np.array(r["realised"])
        good = np.isfinite(predicted)
        flat = np.ptp(predicted[good]) == 0 or np.ptp(true[good]) == 0
        pearson = (np.nan, np.nan) if flat else stats.pearsonr(predicted[good], true[good])
        rank, regret = (
            metrics.spearman(predicted[good], true[good]),
            metrics.regret(predicted[good], true[good], scaled=True),
        )
        at = (true[r["chosen"]] - true.min()) / max(np.ptp(true), 1e-9)
        lines.append(
            f"| {r['task']} | {r['planner']} | {r['seed']} | {good.sum()} | {r['word']} | {pearson[0]:.2f} "
            f"| {pearson[1]:.2g} | {rank.value:.2f} | {regret.value:.2f} ({regret.chance:.2f}) "
            f"| {true[r['chosen']]:,.0f} | {true.max():,.0f} | {np.median(true):,.0f} "
            f"| {format(true[usual(r)].mean(), ',.0f') if usual(r) else '–'} | {true.min():,.0f} "
            f"| {at:.0%} | {matched(r.get('ucb', {}))} | {r['seconds']:.0f} |"
        )
    return "\n".join([*lines, "", *by_setting(records)])


def by_setting(records: list[dict[str, Any]]) -> list[str]:
    """Where settings have several policies: how the means of each setting's correlate, which are independent."""
    lines = []
    for r in (r for r in records if "realised" in r and len(set(r.get("seeds", [0]))) > 1):
        _, setting = np.unique([str(one) for one in r["settings"]], return_inverse=True)
        predicted, true = (
            np.bincount(setting, r[column]) / np.bincount(setting) for column in ("predicted", "realised")
        )
        pearson = stats.pearsonr(predicted, true)
        where = f"{r['task']}, {r['planner']}, seed {r['seed']}"
        lines.append(f"- {where}: means of {len(predicted)} settings, r {pearson[0]:.2f}, p {pearson[1]:.2g}")
    return lines


def usual(record: dict[str, Any]) -> list[int]:
    """Which of a sweep's policies have the planner's defaults in all that the sweep varies: one for each seed."""
    settings, default = record["settings"], asdict(offing.planner.get(record["planner"]).Hypers())
    varied = [name for name in settings[0] if any(one[name] != settings[0][name] for one in settings)]
    return [i for i, one in enumerate(settings) if all(one[name] == default[name] for name in varied)]


def matched(ucb: dict[str, Any]) -> str:
    """What a bandit needed to match the choice; a dash where that was not asked."""
    each = [f"{one['needed']:,.0f}" if one["needed"] else "never" for one in ucb.values()]
    return " / ".join(each) or "–"
