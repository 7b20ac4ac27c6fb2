"""What the state that an action was taken in predicts of it: by a line, by random features, by neighbours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..types import Discrete, Task
from ._glance import Column, Rows, scaled

TEACH, ASK = 8_192, 2_048  # rows that teach what to expect in a state, and rows of other episodes that ask
NEIGHBOURS = 5
WIDE = 64  # wider states are mixed into this many columns, and rarer choices are one, to predict actions
VALUES = 20  # a column with no more different values than this is a label or a switch, not a measurement


View = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # rows -> states [N, S], actions [N, A]


def halves(data: Rows, first: np.ndarray | None, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """At most TEACH rows of one half of the episodes, and ASK rows of the other."""
    rows = data.count
    if first is None or len(first) == 1:
        cut = rows // 2
        parts = (
            (np.arange(cut), np.arange(cut, rows)) if first is not None else np.split(rng.permutation(rows), [cut])
        )
    else:
        lengths = np.diff(np.r_[first, rows])
        side = np.repeat(rng.permutation(len(first)) % 2 == 0, lengths)
        parts = np.flatnonzero(side), np.flatnonzero(~side)
    pick = lambda part, most: rng.choice(part, min(len(part), most), replace=False, shuffle=False)
    return pick(parts[0], TEACH), pick(parts[1], ASK)


def view_of(data: Rows, task: Task, obs: Column, rng: np.random.Generator) -> View:
    """States and actions of rows as they predict and as they are predicted: scaled, and not too wide."""
    width = len(obs.mean)
    mix = rng.normal(size=(width, WIDE)) / np.sqrt(width) if width > WIDE else None
    rare = None
    if isinstance(task.actions, Discrete) and task.actions.n > WIDE:
        rare = np.argsort(-np.bincount(data.action.argmax(1), minlength=task.actions.n))

    def view(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = scaled(data.obs[rows], obs.mean, obs.std)
        action = data.action[rows].astype(np.float64)
        if rare is not None:
            action = np.concatenate([action[:, rare[:WIDE]], action[:, rare[WIDE:]].sum(1, keepdims=True)], 1)
        return state if mix is None else state @ mix, action

    return view


def parts(rows: np.ndarray) -> list[np.ndarray]:
    return np.split(rows, range(512, len(rows), 512))


def distances(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    squared = (points**2).sum(1)[:, None] + (rows**2).sum(1) - 2 * points @ rows.T
    return np.sqrt(np.maximum(squared, 0.0))


def nearest(seen: np.ndarray, known: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """What the nearest rows did, on average [Q, A]."""
    count = min(NEIGHBOURS, len(seen))
    near = [np.argpartition(distances(part, seen), count - 1, axis=1)[:, :count] for part in parts(queries)]
    return known[np.concatenate(near)].mean(1)


def affine(x: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones((*x.shape[:-1], 1)), x], -1)


def features(width: int, count: int, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """A map of states to themselves and to random ridges of them."""
    weight, bias = rng.normal(size=(width, count)) / np.sqrt(width), rng.normal(size=count)
    return lambda x: np.concatenate([affine(x), np.tanh(1.5 * x @ weight + bias)], -1)


def ridge(x: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Weights of a ridge regression [F, A]."""
    gram = x.T @ x
    gram[np.diag_indices(len(gram))] += ridge * len(x)
    return np.linalg.solve(gram, x.T @ y)


def snap(guess: np.ndarray, known: np.ndarray) -> np.ndarray | None:
    """Guesses moved to the nearest of the few values that actions take; None if they take many."""
    values = [np.unique(column) for column in known.T]
    if max(map(len, values)) > VALUES:
        return None
    nearest = [v[np.abs(g[:, None] - v).argmin(1)] for g, v in zip(guess.T, values, strict=True)]
    return np.stack(nearest, 1)
