"""Where the last step of an episode led, in a log that has no next observations.

What came next is in the next row, but nothing comes after an episode's last one. Such a row is needed: it says
what the step earned, and whether and why it ended the episode. Were the last observation to stand in for where it
led, a clock would stop there, a price would hold still, and no end would lie beyond its limit. Were the row left
out, every episode would be a step shorter. So it is taken from what like rows led to, column by column:

    what always follows on its value    a clock, a counter, what never changes: that
    a few values, a category            what followed on the nearest row
    all else                            what is expected of it (`trees`), and as far from that as the nearest row
                                        was: predictive mean matching (Little, 1988). Whole where the column is

A column that often stays what it was, or often stands at one value, does so where the nearest row's did. And all
lies within what rows of the log led to, but where an episode ended: a limit is passed there. What stops at its
largest value, row after row, stops there too. A single row beyond would hide such a wall from all that follows.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from ..trees import predict
from .categories import categories

FEWEST = 100  # rows that went on, fewer than which say too little: there the last observation stands in
MOST = 4_096  # of them that are learned from
FEW = 8  # values of a column that takes no others
NARROW = 64  # columns; of more of them boosted trees would take too long
VALUES = 512  # of a column of which something always follows on each
OFTEN = 0.05  # share of rows in which a column stays, or stands at one value, from which on that is its way
OWN = 0.9  # share of the rows in which it stayed that may be at one value, or it stands there
TIES = 3  # rows that share the largest or smallest value of a column of fractions: it stops there


def completed(
    obs: np.ndarray, action: np.ndarray, next_obs: np.ndarray, unknown: np.ndarray, over: np.ndarray
) -> np.ndarray:
    """The next observations [N, S], those of `unknown` rows [N] as the other rows say; `over` are rows that ended
    their episodes.
    """
    going, ends = np.flatnonzero(~unknown), np.flatnonzero(unknown)
    if not len(ends) or len(going) < FEWEST:
        return next_obs
    going = going[np.unique(np.linspace(0, len(going) - 1, min(len(going), MOST)).astype(int))]
    now, then = obs[going].astype(np.float64), next_obs[going].astype(np.float64)
    ended = obs[ends].astype(np.float64)
    x, queries = (np.concatenate([obs[rows], action[rows]], 1).astype(np.float64) for rows in (going, ends))
    like = _nearest(x, queries)
    change = predict(x, then - now, np.concatenate([queries, x[like]]), boosted=obs.shape[1] <= NARROW)
    expected = ended + change[: len(ends)] + (then - now)[like] - change[len(ends) :]
    made = next_obs.copy()
    for column in range(obs.shape[1]):
        rows = (now[:, column], then[:, column])
        made[ends, column] = _column(*rows, ended[:, column], like, expected[:, column], over[ends])
    for group in map(list, categories(obs, next_obs, still=True)):
        stays = np.array_equal(now[:, group], then[:, group])
        made[ends[:, None], group] = ended[:, group] if stays else then[like][:, group]
    return made


def _column(
    now: np.ndarray, then: np.ndarray, ended: np.ndarray, like: np.ndarray, expected: np.ndarray, over: np.ndarray
) -> np.ndarray:
    """What follows on `ended` values of one column, of which `now` was followed by `then`; `over` as above."""
    values, first, which = np.unique(now, return_index=True, return_inverse=True)
    if len(values) <= VALUES and (then == then[first][which]).all():
        place = np.minimum(np.searchsorted(values, ended), len(values) - 1)
        step = then[like] - now[like]  # on a value that no row went on from: as on the nearest
        return np.where(values[place] == ended, then[first][place], ended + step)
    if len(values) <= FEW:
        return then[like]
    whole = bool((now == np.round(now)).all())
    made = _standing(now, then, ended, like, np.round(expected) if whole else expected)
    low, high = min(now.min(), then.min()), max(now.max(), then.max())
    free = lambda edge: over & (whole or np.sum(then == edge) < TIES)
    return np.clip(made, np.where(free(low), -np.inf, low), np.where(free(high), np.inf, high))


def _standing(
    now: np.ndarray, then: np.ndarray, ended: np.ndarray, like: np.ndarray, made: np.ndarray
) -> np.ndarray:
    """What was made of one column, but where it stays what it was, or at the value where it mostly is."""
    stays = then == now
    if stays.mean() >= OFTEN and np.unique(then[stays], return_counts=True)[1].max() < OWN * stays.sum():
        return np.where(stays[like], ended, made)
    values, counts = np.unique(then, return_counts=True)
    usual = values[counts.argmax()]
    return np.where(then[like] == usual, usual, made) if counts.max() >= OFTEN * len(then) else made


def _nearest(x: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Which row of x is nearest to each query, in standard deviations of every column."""
    width = np.where(x.std(0) > 0, x.std(0), 1.0)
    return np.asarray(KDTree(x / width).query(queries / width)[1])


def stood_in(count: int, followed: int) -> str:
    """What is said of so many last rows that are kept."""
    if not count:
        return ""
    how = "the last obs stands in" if followed < FEWEST else "it is taken from what like rows led to"
    return f"; at {count} ends of episodes {how}"
