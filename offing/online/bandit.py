"""Tuning online: a bandit over the policies of a sweep, and what it pays in true steps (UCB1, Auer et al., 2002).

    pull  argmax over arms of  mean + width * sqrt(explore * ln t / n),   arms never pulled first
    name  the arm with the highest mean so far

A pull is one episode, and costs as many online samples as that episode was long. This is the baseline that the
paper holds its offline choice against, in the form of Jackson et al. (2025): returns there are scores from 0 to
100 with a `width` of 1, and the arms are 20 policies drawn from the sweep. Theirs charges the full horizon for
every episode, however short; here it is the true length, and it can pull all arms as well as 20 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..types import BadInput
from .play import Played

PULLS, TRIALS, AMONG = 200, 1_000, 20  # of Jackson et al.
EXPLORE = 2.0  # UCB1's, and theirs
WIDTH = 0.01  # of the bonus, over the range of what arms are worth: theirs; UCB1's theory asks for 1

Arm = Callable[[np.random.Generator], tuple[float, int]]  # an episode: what it earned, and how long it was


class Course(NamedTuple):
    """One bandit from its first pull to its last; every field [T]."""

    pulled: np.ndarray  # which arm
    returns: np.ndarray
    samples: np.ndarray  # online steps so far, this pull's included
    named: np.ndarray  # the arm it would deploy after this pull


class Curve(NamedTuple):
    """What the named arm is truly worth against online samples spent, over many bandits."""

    samples: np.ndarray  # [G]
    worth: np.ndarray  # [G]  mean over bandits; nan while one of them has not finished an episode
    low: np.ndarray  # [G]  of a 95% bootstrap interval of that mean
    high: np.ndarray  # [G]
    arms: int  # that each bandit had to choose among


def stored(played: Played) -> Arm:
    """An arm that draws from episodes which were played before, each as likely as any other."""
    returns, lengths = np.asarray(played.returns, float), np.asarray(played.lengths, int)

    def arm(rng: np.random.Generator) -> tuple[float, int]:
        i = rng.integers(len(returns))
        return float(returns[i]), int(lengths[i])

    return arm


def ucb(
    rng: np.random.Generator, arms: Sequence[Arm], pulls: int, width: float, explore: float = EXPLORE
) -> Course:
    """That many pulls, `width` in the arms' own units; ties are broken at random."""
    if not arms or pulls < 1:
        raise BadInput(f"{len(arms)} arms and {pulls} pulls: a bandit needs at least one of each")
    count, total = np.zeros(len(arms)), np.zeros(len(arms))
    rows, spent = [], 0
    for t in range(1, pulls + 1):
        seen = np.maximum(count, 1)
        bonus = width * np.sqrt(explore * np.log(t) / seen)
        i = _highest(rng, np.where(count == 0, np.inf, total / seen + bonus))
        earned, length = arms[i](rng)
        count[i], total[i], spent = count[i] + 1, total[i] + earned, spent + length
        mean = np.where(count > 0, total / np.maximum(count, 1), -np.inf)
        rows.append((i, earned, spent, _highest(rng, mean)))
    return Course(*(np.array(column) for column in zip(*rows, strict=True)))


def _highest(rng: np.random.Generator, scores: np.ndarray) -> int:
    best = np.flatnonzero(scores == scores.max())
    return int(best[0] if len(best) == 1 else rng.choice(best))


def regret(course: Course, worth: Sequence[float] | np.ndarray) -> np.ndarray:
    """What pulling these arms and not the best has cost so far [T], given what each is truly worth."""
    worth = np.asarray(worth, float)
    return np.cumsum(worth.max() - worth[course.pulled])


def tuned(
    seed: int,
    arms: Sequence[Arm],
    worth: Sequence[float] | np.ndarray,
    among: int | None = None,
    pulls: int = PULLS,
    trials: int = TRIALS,
    width: float = WIDTH,
    points: int = 200,
) -> Curve:
    """Many bandits, each over all arms or a fresh draw of `among` of them; `worth` is what arms are truly worth.

    `width` is a share of the range of `worth`.
    """
    worth = np.asarray(worth, float)
    if worth.shape != (len(arms),) or trials < 1:
        raise BadInput(f"{len(arms)} arms, {worth.shape} true values, {trials} trials: give a value for every arm")
    size = len(arms) if among is None else min(among, len(arms))
    rng, courses = np.random.default_rng(seed), []
    for _ in range(trials):
        mine = rng.choice(len(arms), size, replace=False)
        course = ucb(rng, [arms[i] for i in mine], pulls, width * float(np.ptp(worth)))
        courses.append((course.samples, worth[mine][course.named]))
    grid = np.linspace(0, min(samples[-1] for samples, _ in courses), points + 1)[1:]
    each = np.stack([_at(grid, *course) for course in courses])  # [trials, G]
    means = np.stack([each[rng.integers(trials, size=trials)].mean(0) for _ in range(200)])
    low, high = np.quantile(means, (0.025, 0.975), axis=0)
    return Curve(grid, each.mean(0), low, high, size)


def _at(grid: np.ndarray, samples: np.ndarray, worth: np.ndarray) -> np.ndarray:
    """What the named arm is worth when so many samples are spent; nan before the first episode is over."""
    last = np.searchsorted(samples, grid, side="right") - 1
    return np.where(last < 0, np.nan, worth[np.maximum(last, 0)])


def needed(curve: Curve, target: float) -> float:
    """Online samples after which bandits name what is worth `target` on average, and go on to; inf if never."""
    below = np.flatnonzero(~(curve.worth >= target))
    first = 0 if not len(below) else int(below[-1]) + 1
    return float(curve.samples[first]) if first < len(curve.samples) else float("inf")
