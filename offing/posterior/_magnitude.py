"""Columns over several orders of magnitude, which worlds read by their logarithm where that predicts better.

Raw counts, concentrations, populations: from ten to a hundred thousand, what comes next is so many times what was.
Measured by its difference the large values are all that counts, and a world knows nothing of small ones. Such a
column x is taken as

    q = log(1 + x / unit)

and worlds live in q: what they learn, where they differ and what is chance. Which columns these are is asked of
rows that were not learned from, by the density that a second regressor (`trees`) gives to what came, with a
deviation of its own in every eighth of the rows: noise that grows with a column alone is no reason.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from ..data.dataset import runs
from ..nets import library
from ..trees import predict
from ..types import Array, Dataset

SPAN = 1.0  # least standard deviation of q: a column that spans less is as well taken as it is
SMALL = 0.05  # quantile of the values above nought that is the unit
MOST = 4_096  # rows of either half
PARTS = 8  # of the rows, by what the column was, each with a deviation of its own
BETTER = 0.05  # nats a row by which it must predict better
LARGEST = 1.0  # variance of q that is read as one of x: beyond, a mean is that of rows nobody has seen
EPISODES = 4  # in either half, at least


def into(columns: Sequence[int], unit: Array, obs: Array) -> Array:
    """Observations [..., S] as worlds read them."""
    if not columns:
        return obs
    marked = np.isin(np.arange(obs.shape[-1]), columns)
    xp = library(obs)
    return xp.where(marked, xp.log1p(xp.maximum(obs, 0.0) / unit), obs)


def back(columns: Sequence[int], unit: Array, q: Array) -> Array:
    """Observations in the log's own units again."""
    if not columns:
        return q
    marked = np.isin(np.arange(q.shape[-1]), columns)
    xp = library(q)
    return xp.where(marked, unit * xp.expm1(xp.where(marked, q, 0.0)), q)


def raw(columns: Sequence[int], unit: Array, q: Array) -> Array:
    """These columns alone, in their own units [..., L]: sums and products of them are what rewards are made of."""
    return back(columns, unit, q)[..., list(columns)]


def moments(columns: Sequence[int], unit: Array, q: Array, std: Array) -> tuple[Array, Array]:
    """Mean and standard deviation in the log's own units of what is Gaussian in q: those of a log-normal."""
    marked = np.isin(np.arange(q.shape[-1]), columns)
    variance = jnp.where(marked, jnp.minimum(jnp.square(std), LARGEST), 0.0)
    mean = jnp.exp(jnp.where(marked, q, 0.0) + variance / 2)  # of 1 + x / unit
    spread = unit * mean * jnp.sqrt(jnp.expm1(variance))
    return jnp.where(marked, unit * (mean - 1), q), jnp.where(marked, spread, std)


def read(data: Dataset, columns: Sequence[int], unit: Array) -> Dataset:
    """The log as worlds read it."""
    if not columns:
        return data
    steps = data.steps
    steps = steps._replace(obs=into(columns, unit, steps.obs), next_obs=into(columns, unit, steps.next_obs))
    return data._replace(steps=steps)


def by_magnitude(data: Dataset) -> tuple[tuple[int, ...], np.ndarray]:
    """The columns that are better taken by their logarithm, and the units of all [S]; 1 where there is none."""
    rows, steps = data.rows, data.steps
    obs, after = (
        np.asarray(steps.obs)[:rows].astype(np.float64),
        np.asarray(steps.next_obs)[:rows].astype(np.float64),
    )
    units = [_unit(obs[:, c], after[:, c]) for c in range(obs.shape[1])]
    wide = [c for c, each in enumerate(units) if each is not None]
    unit = np.array([each or 1.0 for each in units])
    halves = _halves(data) if wide else None
    if halves is None:
        return (), np.ones(obs.shape[1], np.float32)
    action = np.asarray(steps.action)[:rows].astype(np.float64)
    plain = _density(np.concatenate([obs, action], 1), obs[:, wide], after[:, wide], *halves)
    q, later = obs.copy(), after.copy()
    for c in wide:
        q[:, c], later[:, c] = np.log1p(obs[:, c] / unit[c]), np.log1p(after[:, c] / unit[c])
    logs = _density(np.concatenate([q, action], 1), q[:, wide], later[:, wide], *halves)
    logs -= np.mean(np.log(unit[wide] + after[halves[1]][:, wide]), 0)  # the density of x, not of q
    chosen = tuple(c for c, a, b in zip(wide, plain, logs, strict=True) if b > a + BETTER)
    keep = np.isin(np.arange(obs.shape[1]), chosen)
    return chosen, np.where(keep, unit, 1.0).astype(np.float32)


def _unit(now: np.ndarray, after: np.ndarray) -> float | None:
    """The unit of a column that is nowhere below nought and spans orders of magnitude; None for any other."""
    both = np.concatenate([now, after])
    if not np.all(np.isfinite(both)) or both.min() < 0 or not (both > 0).any():
        return None
    if len(np.unique(both[:: max(1, len(both) // 1_000)])) <= PARTS:
        return None
    unit = float(np.quantile(both[both > 0], SMALL))
    return unit if np.log1p(both / unit).std() >= SPAN else None


def _halves(data: Dataset) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows of some episodes, and rows of others; None where there are too few."""
    episode = np.asarray(data.episode)[: data.rows]
    alone = [np.array([i]) for i in range(min(data.rows, 2 * MOST))]
    units = alone if episode[0] < 0 else runs(episode)
    if len(units) < 2 * EPISODES:
        return None
    order = np.random.default_rng(0).permutation(len(units))
    one, other = (np.concatenate([units[i] for i in order[part::2]])[:MOST] for part in (0, 1))
    return one, other


def _density(x: np.ndarray, now: np.ndarray, after: np.ndarray, learn: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Mean log density of what came [D], up to a constant, in rows not learned from."""
    change = after - now
    left = change[test] - predict(x[learn], change[learn], x[test])
    density = np.zeros(now.shape[1])
    for d in range(now.shape[1]):
        part = np.argsort(np.argsort(now[test, d], kind="stable"), kind="stable") * PARTS // len(test)
        variance = np.array([np.mean(left[part == p, d] ** 2) for p in range(PARTS)])
        floor = 1e-8 * max(float(np.mean(change[test, d] ** 2)), 1e-30)
        density[d] = -0.5 * np.mean(np.log(np.maximum(variance, floor))[part])
    return density
