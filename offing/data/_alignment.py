"""Whether rows say what they seem to: whose action moved a step, what no action moves, what a reward knows.

Each is a regression on rows of some episodes, scored on rows of others: a line and random ridges of the state, and
actions beside them. What a part adds is how much worse the prediction is without it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ._glance import Column, Rows, scaled
from ._guess import TEACH, features, ridge
from .columns import Columns
from .facts import Alignment, Effect, Leak

FEATURES = 64  # random ridges of the state
LEAST = 300  # rows with neighbours on both sides, or no figure is given
WIDEST = 64  # numbers of the observation, and of the action: wider ones are not examined


class Neighbours:
    """Rows that stand between two others of their episode, halved by episode: for learning, and for scoring."""

    def __init__(self, data: Rows, obs: Column, rng: np.random.Generator) -> None:
        inside = data.episode[1:-1] >= 0
        inside &= (data.episode[2:] == data.episode[1:-1]) & (data.episode[:-2] == data.episode[1:-1])
        rows = np.flatnonzero(inside) + 1
        self.rows = np.sort(rng.choice(rows, min(len(rows), 2 * TEACH), replace=False, shuffle=False))
        half = rng.permutation(int(data.episode[-1]) + 1) % 2 == 0
        self.learns = half[data.episode[self.rows]]
        if data.episode[-1] < 3:  # too few to halve
            self.learns = np.arange(len(self.rows)) < len(self.rows) // 2
        self.data, self.obs = data, obs
        self.lift = features(len(obs.mean), FEATURES, rng)

    @property
    def enough(self) -> bool:
        return min(self.learns.sum(), (~self.learns).sum()) >= LEAST // 2 and self.data.obs.shape[1] <= WIDEST

    def state(self, shift: int = 0) -> np.ndarray:
        """Features of the observation so many rows on [N, F]."""
        return self.lift(scaled(self.data.obs[self.rows + shift], self.obs.mean, self.obs.std))

    def action(self, shift: int = 0) -> np.ndarray:
        action = self.data.action[self.rows + shift].astype(np.float64)
        spread = action.std(0)
        return (action - action.mean(0)) / np.where(spread > 0, spread, 1.0)

    def errors(self, parts: Sequence[np.ndarray], target: np.ndarray) -> np.ndarray:
        """Mean squared error of each column of the target, in rows that were not learned from [K]."""
        x = np.concatenate(parts, 1)
        weight = ridge(x[self.learns], target[self.learns], 1e-4)
        return np.mean((target[~self.learns] - x[~self.learns] @ weight) ** 2, 0)


def alignment(near: Neighbours, names: Sequence[str]) -> Alignment | None:
    """Which row's action tells most about a step, by the number of the observation that they tell most about."""
    steps = (near.data.next_obs[near.rows] - near.data.obs[near.rows]).astype(np.float64)
    whole = steps[~near.learns].var(0)
    moving = np.flatnonzero(whole > 0)
    if not len(moving) or near.data.action.shape[1] > WIDEST:
        return None
    steps, whole = steps[:, moving], whole[moving]
    acts = [near.action(shift) for shift in (-1, 0, 1)]
    state = near.state()
    every = near.errors([state, *acts], steps)
    adds = [near.errors([state, *(acts[j] for j in range(3) if j != i)], steps) - every for i in range(3)]
    shares = np.maximum(np.stack(adds) / whole, 0.0)  # [3, columns]
    column = int(shares.max(0).argmax())
    before, own, after = (float(share) for share in shares[:, column])
    reached = [near.errors(parts, acts[1]).sum() for parts in ([state], [state, near.state(-1)])]
    return Alignment(
        names[int(moving[column])], before, own, after, float(1 - reached[1] / max(reached[0], 1e-12))
    )


def effects(near: Neighbours, columns: Columns) -> tuple[Effect, ...]:
    """What the action tells about each number's next value, of what the state leaves open; of numbers that are one
    thing, about that of them of which it tells most.
    """
    if near.data.action.shape[1] > WIDEST:
        return ()
    after = near.data.next_obs[near.rows].astype(np.float64)
    base, whole = after[~near.learns].var(0), [near.state()]
    plain = near.errors(whole, after)
    known = near.errors([*whole, near.action()], after)
    settled = plain <= 1e-6 * np.maximum(base, 1e-30)  # nothing is left open
    shares = np.where(settled, 0.0, np.clip(1 - known / np.maximum(plain, 1e-30), 0.0, 1.0))
    for parts in map(list, columns.together):
        shares[parts] = shares[parts].max()
    every = zip(columns.names, shares.tolist(), columns.exogenous, strict=True)
    return tuple(Effect(name, share, out) for name, share, out in every)


def leak(near: Neighbours, names: Sequence[str]) -> Leak | None:
    """What explains the reward: the state, the action, what came next; and whether later rows still add to it."""
    data = near.data
    reward = data.reward[near.rows].astype(np.float64)[:, None]
    whole = float(reward[~near.learns].var())
    if whole <= 0 or data.action.shape[1] > WIDEST:
        return None
    now, after, past, later = (
        scaled(part, near.obs.mean, near.obs.std)
        for part in (
            data.obs[near.rows],
            data.next_obs[near.rows],
            data.obs[near.rows - 1],
            data.next_obs[near.rows + 1],
        )
    )
    bent = lambda x: np.concatenate([near.lift(x), np.abs(x), x**2], 1)  # rewards are often distances
    step = [bent(now), near.action(), bent(after), np.abs(after - now)]
    parts = {
        "state": step[:1],
        "action": step[:2],
        "step": step,
        "before": [*step, bent(past), near.action(-1)],
        "after": [*step, bent(later), near.action(1)],
    }
    shares = {name: float(np.clip(1 - near.errors(part, reward)[0] / whole, 0, 1)) for name, part in parts.items()}
    return Leak(**shares, of_episode=_one_each(data), column=_is_reward(near, reward[:, 0], names))


def _one_each(data: Rows) -> bool:
    """Whether every row of an episode has the same reward, and episodes differ in it."""
    same = data.episode[1:] == data.episode[:-1]
    still = data.reward[1:] == data.reward[:-1]
    return bool(same.sum() >= LEAST and still[same].all() and not still.all())


def _is_reward(near: Neighbours, reward: np.ndarray, names: Sequence[str]) -> str:
    """The number of the observation that the reward is a line of, if one is."""
    for i, name in enumerate(names):
        column = near.data.obs[near.rows, i].astype(np.float64)
        if column.std() > 0 and abs(np.corrcoef(column, reward)[0, 1]) > 1 - 1e-6:
            return name
    return ""
