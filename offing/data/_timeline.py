"""A log along its time: units, the clock's steps and gaps, how far a step leads, and what drifts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ._glance import BINS, Column, Rows
from ._guess import VALUES
from .clock import MICRO
from .dataset import Log
from .facts import Clock, Drift, Histogram, Jumps, Line, Moved, UnitFacts
from .provenance import Provenance
from .sources._order import interleaved

BLOCKS = 20  # pieces of the log, in time order, that drift is read off
DRIFT = 0.5  # standard deviations that a column may move from the first quarter of a log to the last
SURE = 4.0  # standard errors by which a drift must show
LINES = 4  # columns whose drift is drawn
LISTED = 100  # units that are listed, those with most rows
SAMPLE = 20_000  # steps whose size is measured
FAR = 10.0  # usual steps that make a jump
GAP = 1.5  # usual steps of time that make a gap


def units(data: Rows, where: Provenance | None) -> tuple[UnitFacts, ...]:
    """Rows, episodes and reward of every unit, those with most rows first."""
    if where is None or not where.units:
        return ()
    unit = where.unit[: data.count]
    rows = np.bincount(unit, minlength=len(where.units))
    reward = np.bincount(unit, weights=data.reward, minlength=len(where.units)) / np.maximum(rows, 1)
    first = np.r_[True, data.episode[1:] != data.episode[:-1]]
    episodes = np.bincount(unit[first], minlength=len(where.units))
    most = np.argsort(-rows, kind="stable")[:LISTED]
    return tuple(UnitFacts(where.units[i], int(rows[i]), int(episodes[i]), float(reward[i])) for i in most)


def clock(data: Rows, where: Provenance | None) -> Clock | None:
    """The steps of time between neighbouring rows of a unit; None where rows have no time."""
    if where is None or where.time is None or not data.in_order or data.count < 2:
        return None
    time, unit = where.time[: data.count], where.unit[: data.count]
    second = float(MICRO if where.dated else 1)
    steps = np.diff(time)[unit[1:] == unit[:-1]] / second
    if not len(steps) or not (usual := float(np.median(steps))) > 0:
        return None
    counts, edges = np.histogram(np.minimum(steps / usual, 10.0), BINS, (0.0, 10.0))
    return Clock(
        where.dated,
        float(time.min()) / second,
        float(time.max()) / second,
        usual,
        float(np.mean(np.abs(steps - usual) > 0.01 * usual)),
        int(np.count_nonzero(steps > GAP * usual)),
        float(steps.max()),
        where.backwards,
        Histogram(tuple(counts.tolist()), tuple(edges.tolist())),
    )


def jumps(log: Log, data: Rows, obs: Column, rng: np.random.Generator) -> Jumps | None:
    """Sizes of steps beside distances of rows drawn at random; None if no column moves."""
    drawn = np.sort(rng.choice(data.count, min(data.count, SAMPLE), replace=False, shuffle=False))
    many = [len(np.unique(column)) > VALUES for column in data.obs[drawn].T]  # a switch does nothing but jump
    moving = np.flatnonzero((obs.std > 0) & (np.array(many) | (not any(many))))
    if not len(moving) or data.count < 30:
        return None
    here = data.obs[drawn][:, moving] / obs.std[moving]
    parts = np.abs(data.next_obs[drawn][:, moving] / obs.std[moving] - here)
    steps = np.sqrt(np.mean(parts**2, 1))
    apart = np.sqrt(np.mean((here - here[rng.permutation(len(here))]) ** 2, 1))
    usual, top = float(np.median(steps)), max(float(steps.max()), float(apart.max()), 1e-9)
    far = steps > FAR * usual
    edges = np.linspace(0, top, BINS + 1)
    shape = lambda sizes: Histogram(tuple(np.histogram(sizes, edges)[0].tolist()), tuple(edges.tolist()))
    return Jumps(
        usual,
        float(np.median(apart)),
        float(far.mean()),
        log.columns.names[moving[int(parts[far].mean(0).argmax())]] if far.any() else "",
        bool(data.episode[0] >= 0 and interleaved(data.obs, data.episode)),
        shape(steps),
        shape(apart),
    )


def drift(log: Log, data: Rows, whole: tuple[Column, Column, Column]) -> Drift | None:
    """How far columns move from the first quarter of the log's time to the last, in standard deviations."""
    rows = data.count
    if rows < 2 * BLOCKS or not data.in_order:
        return None
    time = None if log.provenance is None else log.provenance.time
    order = None if time is None else np.argsort(time[:rows], kind="stable")
    edges = np.linspace(0, rows, BLOCKS + 1).astype(int)
    pieces = [slice(a, b) if order is None else np.sort(order[a:b]) for a, b in pairwise(edges)]
    parts: list[Moved] = []
    lines: list[tuple[float, str, np.ndarray]] = []
    arrays = (data.obs, data.action, data.reward[:, None])
    names = (log.columns.names, log.columns.action_names, ("reward",))
    for array, column, named in zip(arrays, whole, names, strict=True):
        means = np.array([array[piece].mean(0, dtype=np.float64) for piece in pieces])
        unit = np.where(column.std > 0, column.std, 1.0)
        far, moved = _moved(means / unit)
        parts.append(moved)
        shown = np.argsort(-far, kind="stable")[:LINES]
        lines += [(float(far[i]), named[i], (means[:, i] - column.mean[i]) / unit[i]) for i in shown]
    reward, others = lines[-1], sorted(lines[:-1], key=lambda line: -line[0])[:LINES]
    middle = (edges[:-1] + edges[1:]) // 2
    where = middle if order is None or time is None else time[order[middle]]
    second = float(MICRO) if log.provenance is not None and log.provenance.dated and time is not None else 1.0
    return Drift(
        "order" if order is None else "time",
        parts[0],
        parts[1],
        parts[2],
        tuple((where / second).tolist()),
        tuple(Line(name, tuple(means.tolist())) for _, name, means in (reward, *others)),
    )


def _moved(means: np.ndarray) -> tuple[np.ndarray, Moved]:
    """How far each column moves, given its means over time in standard deviations [BLOCKS, W]."""
    quarter = BLOCKS // 4
    start, end = means[:quarter], means[-quarter:]
    moved = np.abs(end.mean(0) - start.mean(0))
    doubt = np.sqrt((start.var(0, ddof=1) + end.var(0, ddof=1)) / quarter)
    sure = np.flatnonzero((moved > SURE * doubt) & (moved > DRIFT))
    return moved, Moved(float(moved.max()), int(moved.argmax()), tuple(int(i) for i in sure))
