"""Does the past of an episode tell what its present does not? Asked of rows that were set aside for it."""

from __future__ import annotations

import numpy as np

from ..data.dataset import runs
from ..trees import predict
from ..types import Dataset

MOST = 4_096  # rows of either half
MUCH = 0.02  # share of an output's variance that the present must leave open
LESS = 0.7  # of what the present leaves open may be left when the past is known
SURE = 4.0  # standard errors, over episodes, by which it must be less
EPISODES = 10  # in either half, at least


def past_tells(data: Dataset, past: np.ndarray) -> bool:
    """Whether some output is predicted far better if `past` [N, P] is known too, in episodes not learned from."""
    rows, steps = data.rows, data.steps
    episode = np.asarray(data.episode)[:rows]
    if episode[0] < 0 or len(units := runs(episode)) < 2 * EPISODES:
        return False
    order = np.random.default_rng(0).permutation(len(units))
    halves = [np.concatenate([units[i] for i in order[part::2]])[:MOST] for part in (0, 1)]
    x = np.concatenate([np.asarray(steps.obs)[:rows], np.asarray(steps.action)[:rows]], 1).astype(np.float64)
    change = np.asarray(steps.next_obs)[:rows] - np.asarray(steps.obs)[:rows]
    y = np.concatenate([change, np.asarray(steps.reward)[:rows, None]], 1).astype(np.float64)
    y = y / np.where(y.std(0) > 1e-9, y.std(0), 1.0)
    learn, test = halves
    present = np.square(y[test] - predict(x[learn], y[learn], x[test]))
    open_ = present.mean(0) > MUCH
    if not open_.any():
        return False
    whole = np.concatenate([x, past[:rows].astype(np.float64)], 1)
    both = np.square(y[test][:, open_] - predict(whole[learn], y[learn][:, open_], whole[test]))
    gain = present[:, open_] - both
    _, place = np.unique(episode[test], return_inverse=True)
    sums = np.stack([np.bincount(place, gain[:, d]) for d in range(gain.shape[1])], 1)  # [episodes, D]
    error = np.sqrt(np.sum(np.square(sums - sums.mean(0)), 0)) + 1e-12
    far = sums.sum(0) / error > SURE
    return bool(np.any(far & (both.mean(0) < LESS * present[:, open_].mean(0))))
