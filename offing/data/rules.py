"""Do all episodes pay by one rule? Rewards whose sign, unit or goal changes between them teach a world nothing.

As `_drivers` asks who drove, this asks who paid: for k = 1 and 2, episodes are dealt to k predictors of the reward
from observation, action and next observation, each to the one that predicts half of its rows best; the other half
says how well. A log whose every reward has the wrong sign pays by one rule too: that is another task, and only
somebody who knows what is good can tell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._drivers import FEATURES, PLAINLY, along_episodes, dealt
from ._glance import first_rows, glance, rows_of, scaled
from ._guess import WIDE, features
from .dataset import Log

LEAST = 0.05  # of the rewards' variance that a second rule must add to be one


class Rules(NamedTuple):
    """Shares of the rewards' variance that one rule explains, and that two do which take turns by episode."""

    one: float
    two: float
    episodes: int

    @property
    def several(self) -> bool:
        """Whether two explain plainly what one does not."""
        return self.two - self.one >= LEAST and 1 - self.two <= PLAINLY * (1 - self.one)


def rules(log: Log, seed: int = 0) -> Rules | None:
    """What one rule explains of the rewards, and what two do; None where no episodes are long enough to tell."""
    data, rng = rows_of(log.data), np.random.default_rng([seed, 5])
    picked = along_episodes(data, first_rows(data), rng)
    if picked is None:
        return None
    (episodes, steps), rows = picked.shape, picked.ravel()
    state = []
    for column in (data.obs, data.action, data.next_obs):
        seen = glance(column, data.count)
        state.append(scaled(column[rows], seen.mean, seen.std))
    wide = np.concatenate(state, 1)
    if wide.shape[1] > WIDE:
        wide = wide @ rng.normal(size=(wide.shape[1], WIDE)) / np.sqrt(wide.shape[1])
    y = data.reward[rows].astype(np.float64).reshape(episodes, steps, 1)
    if y.var() <= 1e-12 * (1 + np.square(y).mean()):
        return Rules(1.0, 1.0, episodes)
    y = (y - y.mean()) / y.std()
    x = features(wide.shape[1], FEATURES // 4, rng)(wide).reshape(episodes, steps, -1)
    explained = lambda weight: 1 - float(np.mean((x[:, 1::2] @ weight - y[:, 1::2]) ** 2) / y[:, 1::2].var())
    best = lambda k: float(np.clip(max(map(explained, dealt(x[:, 0::2], y[:, 0::2], k, rng))), 0, 1))
    return Rules(best(1), best(2), episodes)
