"""A strong second regressor: what it finds in a residual out of sample is error, and not chance.

Ridge regression on linear, square and random cosine features, and boosted trees on what that leaves
(`sklearn.ensemble.HistGradientBoostingRegressor`): the one sees what is smooth, the other edges and corners.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

RIDGE = 3.0  # of the ridge, on standardised features
WAVES = 64  # random cosine features
ROUNDS = 60  # of boosting
RATE = 0.13  # by which each round goes
LEAVES = (
    15  # of a tree, at most; twice as many take twice as long, and what they see is rarely there out of sample
)
LEAF = 20  # rows that a leaf of a tree must hold, at least
BINS = 63


def predict(x: np.ndarray, y: np.ndarray, queries: np.ndarray, seed: int = 0, boosted: bool = True) -> np.ndarray:
    """What is expected of y [N, D] at `queries` [K, X], learned from x [N, X]: [K, D]; by what is smooth alone if
    not `boosted`, which takes a hundredth of the time. One core works on it: see `_threads`.
    """
    with _threads().limit(limits=1):
        return _predict(x, y, queries, seed, boosted)


def _predict(x: np.ndarray, y: np.ndarray, queries: np.ndarray, seed: int, boosted: bool) -> np.ndarray:
    centre, width = x.mean(0), x.std(0)
    width = np.where(width > 1e-9 * (1 + np.abs(centre)), width, 1.0)
    x, queries = ((a - centre) / width for a in (x, np.clip(queries, x.min(0), x.max(0))))
    smooth, there = _ridge(x, y, queries, seed)
    if not boosted:
        return there
    rest = _boosted(x, y - smooth, queries, seed)
    return there + rest


def _ridge(x: np.ndarray, y: np.ndarray, queries: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    waves, phase = rng.normal(size=(x.shape[1], WAVES)) / np.sqrt(x.shape[1]), rng.uniform(0, 2 * np.pi, WAVES)
    features = lambda a: np.concatenate([np.ones((len(a), 1)), a, np.square(a), np.cos(a @ waves + phase)], 1)
    design = features(x)
    gram = design.T @ design + np.diag(np.r_[1e-6, np.full(design.shape[1] - 1, RIDGE)])
    weight = np.linalg.solve(gram, design.T @ y)
    return design @ weight, features(queries) @ weight


def _boosted(x: np.ndarray, y: np.ndarray, queries: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingRegressor

    prediction = np.zeros((len(queries), y.shape[1]))
    for d in range(y.shape[1]):
        size = y[:, d].std()
        if not size > 1e-12 or len(x) < 4 * LEAF:  # nor of what is not a number: a fit that diverged
            continue
        model = HistGradientBoostingRegressor(
            max_iter=ROUNDS, learning_rate=RATE, max_leaf_nodes=LEAVES, min_samples_leaf=LEAF, max_bins=BINS,
            random_state=seed,
            early_stopping=False,  # type: ignore[arg-type]  # its own annotation knows only "auto"
            l2_regularization=1.0,
        )  # fmt: skip
        prediction[:, d] = size * model.fit(x, y[:, d] / size).predict(queries)
    return prediction


@cache
def _threads() -> ThreadpoolController:
    """What limits threads: rows are few, so that threads would wait for each other most of the time, and on a busy
    machine without end. To look for the libraries that start them takes as long as a small fit, so once is enough.
    """
    import sklearn.ensemble  # noqa: F401  # whose library of threads is to be there when it is looked for
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
