"""The rows of a log at a glance: means, deviations, ranges, quantiles; in chunks, so that size is no matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..types import Dataset
from .facts import EpisodeSpread, Histogram, Spread

CELLS = 1 << 21  # numbers read at once
TIES = 3  # rows that share the very largest or smallest value of a column: it stops there, and is a wall
BINS = 40


class Column(NamedTuple):
    """Every row of every column at a glance."""

    mean: np.ndarray  # [W]
    std: np.ndarray  # [W]
    low: np.ndarray  # [W]
    high: np.ndarray  # [W]


class Rows(NamedTuple):
    """The rows in use, as numpy sees them."""

    obs: np.ndarray  # [N, S]
    action: np.ndarray  # [N, A]
    reward: np.ndarray  # [N]
    next_obs: np.ndarray  # [N, S]
    done: np.ndarray  # [N]
    episode: np.ndarray  # [N]
    in_order: bool  # as logged: drawing some of the episodes mixes them

    @property
    def count(self) -> int:
        return len(self.reward)


def rows_of(data: Dataset) -> Rows:
    """The rows of a dataset that are in use."""
    steps = data.steps
    parts = (steps.obs, steps.action, steps.reward, steps.next_obs, steps.done, data.episode)
    return Rows(*(np.asarray(part)[: data.rows] for part in parts), in_order=data.rows == len(data.episode))


def blocks(rows: int, width: int) -> Iterator[slice]:
    """Pieces of the log that hold about CELLS numbers each."""
    size = max(1, CELLS // width)
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def glance(array: np.ndarray, rows: int) -> Column:
    """Mean, deviation, least and greatest of every column, exactly, in one pass of chunks."""
    shift = array[0].astype(np.float64)
    width = array.shape[1]
    total, square = np.zeros(width), np.zeros(width)
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    for block in blocks(rows, width):
        part = array[block]
        low, high = np.minimum(low, part.min(0)), np.maximum(high, part.max(0))
        part = part - shift
        total += part.sum(0)
        square += np.einsum("nw,nw->w", part, part)
    mean = total / rows
    std = np.where(high > low, np.sqrt(np.maximum(square / rows - mean**2, 0.0)), 0.0)
    return Column(mean + shift, std, low, high)


def spread(drawn: np.ndarray, whole: Column, i: int) -> Spread:
    """One column: mean, deviation and range of all rows; quartiles and the count of values of those drawn."""
    first, middle, third = (float(q) for q in np.quantile(drawn.astype(np.float64), (0.25, 0.5, 0.75)))
    mean, std, low, high = (float(part[i]) for part in whole)
    return Spread(mean, std, low, first, middle, third, high, len(np.unique(drawn)))


def summed(values: np.ndarray) -> EpisodeSpread:
    """As `spread`, of one number an episode, with a histogram."""
    values = np.asarray(values, np.float64)
    counts, edges = np.histogram(values, BINS)
    column = spread(values, glance(values[:, None], len(values)), 0)
    return EpisodeSpread(**vars(column), histogram=Histogram(tuple(counts.tolist()), tuple(edges.tolist())))


def first_rows(data: Rows) -> np.ndarray | None:
    """The first row of every episode [E]; None for a bag of transitions."""
    episode = data.episode
    return None if episode[0] < 0 else np.flatnonzero(np.r_[True, episode[1:] != episode[:-1]])


def scaled(rows: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    return (rows - mean) / np.where(std > 0, std, 1.0)
