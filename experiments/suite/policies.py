"""The pool of a task: controllers made by hand, nets of several stages of training, and disturbed ones of both.

`offing evaluate` takes none that draws its actions. What is random here is therefore decided by the observation: a
coarse cell of it is hashed, so that the same row always gives the same action and rows apart give unrelated ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from .tasks import Act, Choices, Task

WEIGHTS = Path(__file__).with_name("pools.npz")
HIDDEN = 6  # tanh units of the nets


class Reading(NamedTuple):
    """How a policy's net reads observations: logarithms of wide columns, then mean 0 and deviation 1."""

    wide: np.ndarray  # [S]  of 0 and 1
    mean: np.ndarray  # [S]
    std: np.ndarray  # [S]

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        x = np.asarray(obs, np.float64)
        x = np.where(self.wide > 0, np.log1p(np.abs(x)), x)
        return np.clip((x - self.mean) / self.std, -5, 5)


def reading_of(task: Task, obs: np.ndarray) -> Reading:
    """The reading that makes these observations standard."""
    wide = np.array([name in task.wide for name in task.columns], float)
    x = np.where(wide > 0, np.log1p(np.abs(obs)), obs).astype(np.float64)
    return Reading(wide, x.mean(0), np.maximum(x.std(0), 1e-6 + 1e-6 * np.abs(x.mean(0))))


def weights(task: Task, hidden: int) -> int:
    """How many numbers a net has; without hidden units it is linear."""
    inputs, outputs = len(task.columns), task.actions.width
    return (inputs + 1) * outputs if hidden == 0 else (inputs + 1) * hidden + (hidden + 1) * outputs


def scores(task: Task, hidden: int, theta: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Nets theta [P, W] at readings z [P, N, S]: outputs [P, N, A]."""
    inputs, outputs = len(task.columns), task.actions.width
    cut = (inputs + 1) * (hidden or outputs)
    first = theta[:, :cut].reshape(len(theta), inputs + 1, -1)
    out = z @ first[:, :-1] + first[:, -1:]
    if hidden == 0:
        return out
    second = theta[:, cut:].reshape(len(theta), hidden + 1, outputs)
    return np.tanh(out) @ second[:, :-1] + second[:, -1:]


def actions(task: Task, out: np.ndarray) -> np.ndarray:
    """The largest output is the choice; amounts are squashed into their range."""
    if isinstance(task.actions, Choices):
        return out.argmax(-1)
    low, high = np.array(task.actions.low), np.array(task.actions.high)
    return low + (high - low) * (0.5 + 0.5 * np.tanh(out))


def net(task: Task, hidden: int, theta: np.ndarray, reading: Reading) -> Act:
    """A net as a policy."""
    return lambda obs: actions(task, scores(task, hidden, theta[None], reading(obs)[None])[0])


def dice(obs: np.ndarray, reading: Reading, salt: int, width: int) -> np.ndarray:
    """Numbers [N, width] in [0, 1) that a coarse cell of the observation decides, evenly spread over cells."""
    cells = np.floor(3 * reading(obs)).astype(np.int64).astype(np.uint64)
    numbers = np.empty((len(cells), width))
    for k in range(width):
        mixed = np.full(len(cells), 0x9E3779B97F4A7C15 * (1 + salt * 64 + k) % 2**64, np.uint64)
        for column in cells.T:
            mixed = (mixed ^ column) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(29)
        numbers[:, k] = (mixed >> np.uint64(11)).astype(np.float64) / 2**53
    return numbers


def rolled(task: Task, reading: Reading, salt: int) -> Act:
    """The policy that does anything, cell by cell."""

    def act(obs: np.ndarray) -> np.ndarray:
        if isinstance(task.actions, Choices):
            return np.minimum((dice(obs, reading, salt, 1)[:, 0] * task.actions.n).astype(int), task.actions.n - 1)
        low, high = np.array(task.actions.low), np.array(task.actions.high)
        return low + (high - low) * dice(obs, reading, salt, task.actions.width)

    return act


def disturbed(task: Task, policy: Act, share: float, reading: Reading, salt: int) -> Act:
    """A policy that does anything in a share of all cells."""
    wild = rolled(task, reading, salt)

    def act(obs: np.ndarray) -> np.ndarray:
        strays = dice(obs, reading, salt + 1, 1)[:, 0] < share
        done = np.asarray(policy(obs))
        return np.where(strays if done.ndim == 1 else strays[:, None], wild(obs), done)

    return act


class Pool(NamedTuple):
    """A task's policies by name, from the worst to the best, and what each earned when the pool was made."""

    policies: dict[str, Act]
    earned: dict[str, float]

    def ranked(self, share: float) -> str:
        """The policy at that rank: 0 the worst, 1 the best."""
        return list(self.policies)[round(share * (len(self.policies) - 1))]

    def behaviours(self, task: Task) -> tuple[str, ...]:
        """Which of them write the task's logs."""
        return tuple(dict.fromkeys(self.ranked(share) for share in task.behaviours))


def build(task: Task, nets: dict[str, np.ndarray], reading: Reading) -> dict[str, Act]:
    """All policies of a task; `nets` has weights by name, `linear_...` or `net_...`."""
    policies = dict(task.scripts())
    best = next(iter(policies))
    policies |= {
        name: net(task, HIDDEN if name.startswith("net") else 0, theta.astype(np.float64), reading)
        for name, theta in nets.items()
    }
    last = [name for name in nets if name.endswith("last")]
    policies["dice"] = rolled(task, reading, 1)
    policies[f"{best}_disturbed"] = disturbed(task, policies[best], 0.35, reading, 3)
    for i, name in enumerate(last):
        policies[f"{name}_disturbed"] = disturbed(task, policies[name], (0.2, 0.5)[i % 2], reading, 5 + 2 * i)
    return policies


def pool(task: Task, path: Path = WEIGHTS) -> Pool:
    """The committed pool of a task."""
    with np.load(path) as kept:
        mine = {key.split("/", 1)[1]: kept[key] for key in kept.files if key.startswith(task.name + "/")}
    reading = Reading(*mine.pop("reading").astype(np.float64))
    order, earned = mine.pop("order").tolist(), mine.pop("earned").tolist()
    policies = build(task, mine, reading)
    if set(order) != set(policies):
        raise ValueError(f"{task.name}: its pool was made for other policies; run the command train again")
    return Pool({name: policies[name] for name in order}, dict(zip(order, earned, strict=True)))
