"""How actions depend on the state: how much it settles, what is left over, how many controllers there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..types import Box, Discrete, Task
from ._advice import CERTAIN, TAKEN
from ._glance import Column, Rows
from ._guess import WIDE, View, affine, features, halves, nearest, ridge, snap, view_of
from .facts import Controllers

FEATURES = 192  # random, of the state, from which actions are predicted
LONG, FEW = 16, 4  # rows that an episode must have, and episodes that long there must be
TURNS, STEPS = 96, 128  # episodes, and rows of each, that are searched for controllers taking turns
CONTROLLERS = 4  # at most as many are told apart
TRIES = 4  # at dealing episodes to them
PLAINLY = 0.25  # of what one controller leaves unexplained, more of them leave at most this


class Choosing(NamedTuple):
    """How actions depend on the state."""

    explained: float  # share of the variance
    predicted: float  # the same, or the share of choices
    left_over: float
    columns: tuple[float, ...]  # what is left over of each amount
    controllers: Controllers | None


def choosing(data: Rows, task: Task, obs: Column, first: np.ndarray | None, rng: np.random.Generator) -> Choosing:
    """How actions depend on the state: how much it explains, what is left over, how many controllers there are.

    Actions are predicted from the state by rows of other episodes: by a line, by random features and by
    neighbours, whichever errs least. What is left over is what similar states were tried with.
    """
    teach, ask = halves(data, first, rng)
    view = view_of(data, task, obs, rng)
    (seen, known), (queries, truth) = view(teach), view(ask)
    lift = features(seen.shape[1], FEATURES, rng)
    guesses = [np.broadcast_to(known.mean(0), truth.shape), nearest(seen, known, queries)]
    guesses += [f(queries) @ ridge(f(seen), known, r) for f, r in ((affine, 1e-6), (lift, 1e-4), (lift, 1e-2))]
    if isinstance(task.actions, Box):
        guesses += [snapped for guess in guesses if (snapped := snap(guess, known)) is not None]
    errors = np.array([np.mean((truth - guess) ** 2, 0) for guess in guesses])  # [G, A]
    best = int(errors.sum(1).argmin())
    whole = max(float(errors[0].sum()), 1e-12)
    explained = float(np.clip(1 - errors[best].sum() / whole, 0, 1))
    if isinstance(task.actions, Box):
        width = np.array(task.actions.high) - np.array(task.actions.low)
        left = np.sqrt(errors.min(0)) / np.where(width > 0, width, 1.0)
        parts = (explained, float(left.mean()), tuple(left.tolist()))
    else:
        hits = max(_score(guess, truth, task) for guess in guesses)
        parts = (hits, 1 - hits, ())
    return Choosing(explained, *parts, controllers(data, task, view, first, rng))


def along_episodes(data: Rows, first: np.ndarray | None, rng: np.random.Generator) -> np.ndarray | None:
    """Rows [E, R] along some episodes, as many of each; None if no episodes are long enough to tell."""
    if first is None:
        return None
    lengths = np.diff(np.r_[first, data.count])
    long = np.flatnonzero(lengths >= LONG)
    if len(long) < FEW:
        return None
    long = rng.permutation(long)[:TURNS]
    steps = min(STEPS, int(np.median(lengths[long])) // 2 * 2)
    return first[long, None] + np.linspace(0, lengths[long] - 1, steps, axis=1).astype(int)


def controllers(
    data: Rows, task: Task, view: View, first: np.ndarray | None, rng: np.random.Generator
) -> Controllers | None:
    """Whether episodes were driven by one controller, by a few taking turns, or each in its own way.

    For k = 1, 2, ... episodes are dealt to k predictors of the action, each to the one that predicts half of its
    rows best; the other half says how well. None if there are no episodes long enough to tell.
    """
    rows = along_episodes(data, first, rng)
    if rows is None:
        return None
    state, y = (part.reshape(*rows.shape, -1) for part in view(rows.ravel()))  # [E, R, S], [E, R, A]
    x = features(state.shape[-1], FEATURES // 4, rng)(state)  # [E, R, F]
    fit, test = (x[:, 0::2], y[:, 0::2]), (x[:, 1::2], y[:, 1::2])
    scores = [
        max(_score(test[0] @ weight, test[1], task) for weight in dealt(*fit, k, rng))
        for k in range(1, min(CONTROLLERS, len(rows) // 2) + 1)
    ]
    alone = _score(_alone(state, fit[1]), test[1], task)
    limit = CERTAIN if isinstance(task.actions, Box) else TAKEN
    better = lambda k, score: k == 1 or 1 - score < PLAINLY * (1 - scores[0])
    enough = [k for k, score in enumerate(scores, 1) if score >= limit and better(k, score)]
    return Controllers(tuple(scores), alone, enough[0] if enough else None, len(rows))


def dealt(x: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The weights of k predictors, each fitted to the episodes that it predicts best [E, F, A]; several tries."""
    episodes, steps, width = x.shape
    turned = x.transpose(0, 2, 1)
    gram, cross = turned @ x + 1e-3 * steps * np.eye(width), turned @ y  # [E, F, F], [E, F, A]
    flat, known = x.reshape(-1, width), y.reshape(episodes * steps, -1)
    for _ in range(1 if k == 1 else TRIES):
        whose = rng.permutation(episodes) % k
        weights = np.zeros((k, *cross.shape[1:]))
        for _ in range(15):
            for j in range(k):
                own = whose == j if np.any(whose == j) else np.arange(episodes) == rng.integers(episodes)
                weights[j] = np.linalg.solve(gram[own].sum(0), cross[own].sum(0))
            errors = [
                np.mean((flat @ weight - known) ** 2, 1).reshape(episodes, steps).mean(1) for weight in weights
            ]
            old, whose = whose, np.argmin(errors, 0)
            if np.array_equal(whose, old):
                break
        yield weights[whose]


def _alone(state: np.ndarray, known: np.ndarray) -> np.ndarray:
    """What each episode's even rows say of its odd ones, by a line of its own [E, R, A]."""
    centre = state[:, 0::2].mean(1, keepdims=True)
    x, queries, mean = state[:, 0::2] - centre, state[:, 1::2] - centre, known.mean(1, keepdims=True)
    turned, size = x.transpose(0, 2, 1), x.var((1, 2))[:, None, None]
    gram = turned @ x + (1e-2 * x.shape[1] * size + 1e-9) * np.eye(x.shape[2])
    return mean + queries @ np.linalg.solve(gram, turned @ (known - mean))


def _score(guess: np.ndarray, truth: np.ndarray, task: Task) -> float:
    """Share of the variance explained, or of the choices predicted."""
    if isinstance(task.actions, Discrete):
        taken = truth.argmax(-1)
        return float(np.mean((guess.argmax(-1) == taken) & (taken < WIDE)))  # that it is a rare one does not count
    whole = float(truth.var((0, 1)).sum())
    return float(np.clip(1 - np.mean((truth - guess) ** 2, (0, 1)).sum() / whole, 0, 1)) if whole > 0 else 1.0
