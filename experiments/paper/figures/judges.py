"""Beyond the paper's figures: every estimator on pools of spread quality, on sweeps, on SOReL's policies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offing.value import metrics

from ..drawing import BLUE, GREEN, against, panels, table
from .figure import Drawn, Figure, Record, Records
from .sweeps import ENDLESS, NAMES, numbers


class Judged(NamedTuple):
    """One method's word on a pool, and the truth."""

    pool: str
    method: str
    said: np.ndarray
    true: np.ndarray
    interval: np.ndarray  # [P, 2]
    size: float  # range of the true values
    gone: int  # policies left out, since a number of theirs is not finite
    seconds: float


def judged(records: Records) -> list[Judged]:
    """All pools that were judged and played."""
    found = []
    for record in records.values():
        if record["study"] != "judges" or "method" not in record["settings"]:
            continue
        played = records.get(record["settings"]["played_by"])
        truth = None if played is None else truth_of(played, record)
        if truth is None:
            continue
        value = record["numbers"]["value"]
        said, pairs = numbers(value["median"]), np.array([numbers(pair) for pair in value["interval"]])
        good = np.isfinite(said) & np.isfinite(truth) & np.isfinite(pairs).all(1)
        method, pool = record["settings"]["method"], record["part"].rpartition("-")[0]
        known, gone = truth[np.isfinite(truth)], int((~good).sum())
        size = (float(np.ptp(known)) if len(known) else 0.0) or 1.0
        found.append(Judged(pool, method, said[good], truth[good], pairs[good], size, gone, record["seconds"]))
    return found


def truth_of(played: Record, record: Record) -> np.ndarray | None:
    """True discounted values of a pool; those of endless episodes for methods that know no limit of time."""
    columns = played["numbers"]
    columns = columns.get("every", columns)
    if columns is None:
        return None
    return numbers(columns["endless" if record["settings"]["method"] in ENDLESS else "value"])


def draw(records: Records) -> Drawn:
    found = judged(records)
    if not found:
        return Drawn("")
    each = []
    for pool in dict.fromkeys(one.pool for one in found):
        mine = {one.method: one for one in found if one.pool == pool}
        groups = [
            (NAMES[m] if m != "predictive" else "worlds", mine[m].true.tolist(), mine[m].said.tolist(), colour)
            for m, colour in (("predictive", BLUE), ("fqe", GREEN))
            if m in mine
        ]
        if groups:
            each.append((pool, against(groups, "true value", "estimate")))
    pictures = (
        {"judges": panels("judges", "Worlds' and FQE's estimates against the truth", each, across=4)}
        if each
        else {}
    )
    text = "\n\n".join(part for part in (account(found), gone(found), every(found)) if part)
    return Drawn(text, pictures)


def row(one: Judged) -> list[Any]:
    inside = (one.interval[:, 0] <= one.true) & (one.true <= one.interval[:, 1])
    off, n = float(np.mean(np.abs(one.said - one.true))), len(one.said)
    flat = n < 3 or np.ptp(one.true) == 0
    regret = None if flat else metrics.regret(one.said, one.true)
    rank = None if flat else metrics.spearman(one.said, one.true).value
    return [
        one.pool, "worlds" if one.method == "predictive" else NAMES[one.method], n, off / one.size, off, rank,
        regret and regret.value, regret and regret.chance, float(inside.mean()), one.seconds,
    ]  # fmt: skip


def gone(found: list[Judged]) -> str:
    """How many policies are left out, since what was said of them or their truth is not finite, by method."""
    said = []
    for method, name in NAMES.items():
        mine = [one for one in found if one.method == method]
        count = sum(one.gone for one in mine)
        if count:
            whole = count + sum(len(one.said) for one in mine)
            said.append(f"{'worlds' if method == 'predictive' else name} {count} of {whole}")
    return f"Policies left out, whose numbers are not all finite: {', '.join(said)}." * bool(said)


def every(found: list[Judged]) -> str:
    head = [
        "pool",
        "method",
        "policies",
        "error",
        "raw error",
        "Spearman",
        "regret@1",
        "by chance",
        "90% covers",
        "s",
    ]
    order = {name: i for i, name in enumerate(NAMES)}
    rows = sorted((one for one in found if len(one.said) > 1), key=lambda one: (one.pool, order[one.method]))
    return "Errors are shares of a pool's range of true values:\n\n" + table(head, [row(one) for one in rows])


def account(found: list[Judged]) -> str:
    """Whether the worlds reach what is asked of them, over all pools."""
    by = lambda method: {one.pool: row(one) for one in found if one.method == method and len(one.said) > 1}
    ours, theirs = by("predictive"), by("fqe")
    both = [pool for pool in ours if pool in theirs]
    if not both:
        return ""
    there = lambda rows, i: [rows[pool][i] for pool in both if rows[pool][i] is not None]
    mean = lambda rows, i: float(np.mean(there(rows, i))) if there(rows, i) else float("nan")
    inside = sum(round(ours[p][8] * ours[p][2]) for p in both)
    count = sum(int(ours[p][2]) for p in both)
    return (
        f"Over {len(both)} pools: the worlds' error is {mean(ours, 3) / max(mean(theirs, 3), 1e-12):.2f} of FQE's "
        f"(a fifth is asked), their Spearman {mean(ours, 5):.2f} (0.9), their 90% interval covers {inside} of "
        f"{count} (87% to 95%)."
    )


figure = Figure("judges", "Judges, judged", ("judges/", "torel/play-", "sorel/play-"), draw)
