"""Records in, figures out: what the suite says of verdicts, promises and estimates, by task and overall.

A plan truly beats its log if it earned more than the log's mean by two standard errors. GO is wrong if what came
was no more than the log's mean; NO-GO is right if the plan did not truly beat it. Errors and widths of estimates
are shares of the pool's true range.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

Record = dict[str, Any]
LEVELS = ("0.5", "0.9", "0.99")
GO, NO_GO = "GO", "NO-GO"


class Share(NamedTuple):
    """So many of so many, with the binomial interval of Clopper and Pearson at 95%."""

    count: int
    of: int

    @property
    def value(self) -> float:
        return self.count / self.of if self.of else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        if not self.of:
            return 0.0, 1.0
        low = stats.beta.ppf(0.025, self.count, self.of - self.count + 1) if self.count else 0.0
        high = stats.beta.ppf(0.975, self.count + 1, self.of - self.count) if self.count < self.of else 1.0
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.count} of {self.of} ({self.value:.0%}; {low:.0%} to {high:.0%})" if self.of else "none"


class Sorel(NamedTuple):
    """Figures of `offing sorel` over some records."""

    runs: int
    go_where_better: Share
    wrong_go: Share
    no_go_right: Share
    covered: dict[str, Share]
    same_over_seeds: Share
    verdicts: dict[str, int]
    seconds: float  # median
    too_high: Share  # of all runs, those whose whole 90% interval lies above what came


class Evaluate(NamedTuple):
    """Figures of `offing evaluate` over some records; of the discounted value unless said."""

    runs: int
    policies: int
    error: float
    fqe_error: float
    ratio: float
    middle: tuple[float, float]  # the median log's error, the posterior's and FQE's: one log alone cannot make it
    spearman: float
    fqe_spearman: float
    covered: dict[str, Share]
    fqe_covered: dict[str, Share]
    width: float  # median, of the 90% interval
    return_error: float  # of the undiscounted return
    return_covered: dict[str, Share]
    return_width: float
    seconds: float


class Field(NamedTuple):
    """Figures of the choice among a run's candidates, each of which was played in its true task."""

    runs: int
    candidates: int
    at_least_log: Share  # runs whose policy earned no less than the log's mean, by two standard errors
    near_best: Share  # runs whose choice earned the best candidate's return less 5% of the field's range
    far_enough: Share  # runs whose choice lies at 90% of the way from the worst candidate to the best
    spearman: float  # of promised and earned over a run's candidates, on average
    covered: Share  # candidates that earned what their 90% interval promised


class Imagined(NamedTuple):
    """Figures of worlds over some records."""

    runs: int
    unexplained: float  # share of the reward's variance, mean over tasks whose reward is paid for what comes
    coins: list[float]  # imagined frequency of 1 over the log's, by column of every run
    often: list[float]  # imagined jumps over the log's, by jumping column of every run
    far: list[float]  # and how far they go
    slack: tuple[list[float], list[float], list[float]]  # the same three of a fresh log over the log: chance alone


def read(places: Iterable[Path]) -> list[Record]:
    """Records from folders and gathered files, each job once for every commit: the later place wins."""
    by_job: dict[tuple[Any, ...], Record] = {}
    for place in places:
        texts = [p.read_text() for p in sorted(place.glob("*.json"))] if place.is_dir() else [place.read_text()]
        for text in texts:
            held = json.loads(text)
            for record in held if isinstance(held, list) else [held]:
                by_job[(*_job(record), record["commit"])] = record
    return [by_job[key] for key in sorted(by_job)]


def latest(records: Iterable[Record]) -> list[Record]:
    """Each job's last record: figures are made of these."""
    by_job: dict[tuple[Any, ...], Record] = {}
    for record in sorted(records, key=lambda r: r.get("at", "")):
        by_job[_job(record)] = record
    return [by_job[key] for key in sorted(by_job)]


def by_commit(records: Iterable[Record]) -> dict[str, int]:
    """How many runs each commit has in these records, in order of time: every run, not the last alone."""
    counts: dict[str, int] = defaultdict(int)
    for record in sorted(records, key=lambda r: r.get("at", "")):
        counts[f"{record['commit']} ({record.get('at', '')[:10]}, {record['scale']})"] += 1
    return dict(counts)


def _job(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("half", "what", "control", "task", "rows", "seed", "scale"))


def gain(record: Record) -> tuple[float, float]:
    """What a plan earned more than its log's mean, and the standard error of that."""
    earned, log = record["realised"], record["log"]
    return earned["mean"] - log["mean"], float(np.hypot(earned["stderr"], log["stderr"]))


def better(record: Record) -> bool:
    """Whether a plan truly beat its log."""
    more, error = gain(record)
    return more > 2 * error


def inside(intervals: Record, truth: float, level: str) -> bool:
    low, high = intervals[level]
    return low <= truth <= high


def _share(hits: Iterable[bool]) -> Share:
    every = list(hits)
    return Share(sum(map(bool, every)), len(every))


def sorel_figures(records: Sequence[Record]) -> Sorel:
    """Figures of plans on sound logs."""
    verdicts: dict[str, int] = defaultdict(int)
    by_log: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for record in records:
        verdicts[record["verdict"]] += 1
        by_log[record["task"], record["rows"], record["scale"]].append(record["verdict"])
    return Sorel(
        runs=len(records),
        go_where_better=_share(r["verdict"] == GO for r in records if better(r)),
        wrong_go=_share(gain(r)[0] <= 0 for r in records if r["verdict"] == GO),
        no_go_right=_share(not better(r) for r in records if r["verdict"] == NO_GO),
        covered={
            level: _share(inside(r["promise"]["intervals"], r["realised"]["mean"], level) for r in records)
            for level in LEVELS
        },
        same_over_seeds=_share(len(set(words)) == 1 for words in by_log.values() if len(words) > 1),
        verdicts=dict(verdicts),
        seconds=float(np.median([r["seconds"] for r in records])),
        too_high=_share(r["promise"]["intervals"]["0.9"][0] > r["realised"]["mean"] for r in records),
    )


def field_figures(records: Sequence[Record]) -> Field | None:
    """Figures of choices, of the records whose candidates were played; nothing where there are none."""
    runs = [r for r in records if r.get("field")]
    if not runs:
        return None
    ways, ranks, covered = [], [], []
    for run in runs:
        earned = np.array([one["realised"] for one in run["field"]])
        promised = np.array([one["median"] for one in run["field"]])
        chosen = next(one["realised"] for one in run["field"] if one["chosen"])
        ways.append(1 - (earned.max() - chosen) / (np.ptp(earned) or 1.0))
        ranks.append(_rank_correlation(promised, earned))
        covered += [one["interval"][0] <= one["realised"] <= one["interval"][1] for one in run["field"]]
    return Field(
        runs=len(runs),
        candidates=len(covered),
        at_least_log=_share(gain(r)[0] >= -2 * gain(r)[1] for r in runs),
        near_best=_share(way >= 0.95 for way in ways),
        far_enough=_share(way >= 0.9 for way in ways),
        spearman=float(np.mean(ranks)),
        covered=_share(covered),
    )


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's; 0 where either says the same of all."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(stats.rankdata(a), stats.rankdata(b))[0, 1])


def stopped(records: Sequence[Record]) -> dict[str, int]:
    """How many runs each question of the verdict stopped, by the question: those that it answered with No.

    What a question says in brackets is of one log, and left out.
    """
    counts: dict[str, int] = defaultdict(int)
    for record in records:
        for reason in record.get("reasons", ()):
            question, _, answer = reason.partition("?")
            counts[question.partition(" (")[0] + "?"] += answer.strip().startswith("No")
    return {question: count for question, count in counts.items() if count}


def flips(records: Sequence[Record], small: str = "quick", large: str = "large") -> tuple[Share, list[Record]]:
    """Of good plans that were GO at the small scale, how many are not at the large one, though good; and which."""
    runs = [r for r in records if r["what"] == "sorel" and r["control"] == "none" and better(r)]
    named = lambda scale: {(r["task"], r["rows"], r["seed"]): r for r in runs if r["scale"] == scale}
    before, after = named(small), named(large)
    both = [key for key, r in before.items() if r["verdict"] == GO and key in after]
    turned = [after[key] for key in both if after[key]["verdict"] != GO]
    return Share(len(turned), len(both)), turned


def imagined_figures(records: Sequence[Record], paid: Iterable[str]) -> Imagined:
    """Figures of worlds; `paid` are the tasks whose reward is paid for what comes."""
    named, whole = set(paid), [r for r in records if r["what"] == "worlds"]
    by_task: dict[str, list[float]] = defaultdict(list)
    for record in whole:
        if record["task"] in named:
            by_task[record["task"]].append(record["reward_unexplained"])
    coins = [one for r in whole for one in r["coins"].values()]
    jumps = [one for r in whole for one in r["jumps"].values()]
    share = lambda who: [one[who] / one["log"] for one in coins]
    leap = lambda who, what: [one[who][what] / max(one["log"][what], 1e-12) for one in jumps]
    three = lambda who: (share(who), leap(who, "often"), leap(who, "far"))
    means = [float(np.mean(each)) for each in by_task.values()]
    return Imagined(
        len(whole), float(np.mean(means)) if means else float("nan"), *three("imagined"), three("fresh")
    )


class Compared(NamedTuple):
    """One record's estimates by one method beside the truths."""

    estimate: np.ndarray  # [P]
    low: dict[str, np.ndarray]
    high: dict[str, np.ndarray]
    truth: np.ndarray

    @property
    def range(self) -> float:
        return float(np.ptp(self.truth)) or 1.0

    @property
    def error(self) -> float:
        return float(np.mean(np.abs(self.estimate - self.truth)) / self.range)

    @property
    def spearman(self) -> float:
        return _rank_correlation(self.estimate, self.truth)

    def hits(self, level: str) -> list[bool]:
        if level not in self.low:
            return []
        return ((self.low[level] <= self.truth) & (self.truth <= self.high[level])).tolist()


def compared(record: Record, method: str, kind: str = "value") -> Compared | None:
    """A method's estimates of a record's policies, as far as it has both it and the posterior's."""
    truth = "discounted" if kind == "value" else "mean"
    rows = [p for p in record["policies"].values() if method in p and p[method][kind] is not None]
    if not rows:
        return None
    ours = [row[method][kind] for row in rows]
    levels = [level for level in LEVELS if all(level in s["intervals"] for s in ours)]
    ends = lambda side: {level: np.array([s["intervals"][level][side] for s in ours]) for level in levels}
    return Compared(
        np.array([s["median"] for s in ours]),
        ends(0),
        ends(1),
        np.array([row["truth"][truth] for row in rows]),
    )


def evaluate_figures(records: Sequence[Record]) -> Evaluate:
    """Figures of estimates on sound logs: means over logs, coverage over all policies."""
    ours = [one for r in records if (one := compared(r, "predictive"))]
    theirs = [one for r in records if (one := compared(r, "fqe"))]
    returns = [one for r in records if (one := compared(r, "predictive", "return"))]
    mean = lambda numbers: float(np.mean(numbers)) if len(numbers) else float("nan")
    middle = lambda numbers: float(np.median(numbers)) if len(numbers) else float("nan")
    error, fqe = mean([one.error for one in ours]), mean([one.error for one in theirs])
    covered = lambda many: {level: _share(hit for one in many for hit in one.hits(level)) for level in LEVELS}
    return Evaluate(
        runs=len(records),
        policies=sum(len(one.truth) for one in ours),
        error=error,
        fqe_error=fqe,
        ratio=error / fqe if fqe else float("nan"),
        middle=(middle([one.error for one in ours]), middle([one.error for one in theirs])),
        spearman=mean([one.spearman for one in ours]),
        fqe_spearman=mean([one.spearman for one in theirs]),
        covered=covered(ours),
        fqe_covered=covered(theirs),
        width=_width(ours),
        return_error=mean([one.error for one in returns]),
        return_covered=covered(returns),
        return_width=_width(returns),
        seconds=float(np.median([r["seconds"] for r in records])),
    )


def _width(many: Sequence[Compared]) -> float:
    """The median width of a 90% interval over all policies, as a share of its pool's range."""
    widths = [w for one in many for w in (one.high["0.9"] - one.low["0.9"]) / one.range]
    return float(np.median(widths)) if widths else float("nan")
