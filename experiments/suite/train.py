"""Makes the pools: linear policies and small nets, trained in the true tasks by the cross-entropy method."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .play import remembers_nothing, seen, truth, written
from .policies import HIDDEN, WEIGHTS, Reading, actions, build, reading_of, scores, weights
from .tasks import EVERY, Task

CANDIDATES, EPISODES, ELITE = 48, 16, 10
STAGES = {
    "linear": {"first": 2, "middle": 8, "last": 40},
    "net": {"middle": 10, "last": 60},
}  # after how many rounds
JUDGED = 2000  # episodes that rank the pool


def earned(task: Task, hidden: int, theta: np.ndarray, reading: Reading, rng: np.random.Generator) -> np.ndarray:
    """Mean returns [P] of nets theta [P, W], all episodes of all of them side by side."""
    count, n = len(theta), len(theta) * EPISODES
    state, total, alive = task.start(rng, n), np.zeros(n), np.ones(n, bool)
    for _ in range(task.horizon):
        z = reading(seen(task, state)).reshape(count, EPISODES, -1)
        done = actions(task, scores(task, hidden, theta, z))
        state, reward, ended = task.step(state, done.reshape(n, *done.shape[2:]), rng)
        total, alive = total + np.where(alive, reward, 0.0), alive & ~ended
    return total.reshape(count, EPISODES).mean(1)


def trained(task: Task, kind: str, reading: Reading, seed: int) -> dict[str, np.ndarray]:
    """Weights at every stage of one training, by name."""
    hidden, rng = (HIDDEN if kind == "net" else 0), np.random.default_rng([seed, hidden_salt(kind)])
    mean = np.zeros(weights(task, hidden))
    std, kept = np.full(len(mean), 0.7), {}
    for done in range(1, max(STAGES[kind].values()) + 1):
        theta = mean + std * rng.normal(size=(CANDIDATES, len(mean)))
        best = theta[np.argsort(earned(task, hidden, theta, reading, rng))[-ELITE:]]
        mean, std = best.mean(0), 0.7 * best.std(0) + 0.3 * std * 0.97
        kept |= {f"{kind}_{stage}": mean.astype(np.float32) for stage, at in STAGES[kind].items() if at == done}
    return kept


def hidden_salt(kind: str) -> int:
    """A number of its own for each kind of net, so that their luck differs."""
    return list(STAGES).index(kind)


def made(task: Task, seed: int = 0) -> dict[str, np.ndarray]:
    """One task's pool as arrays: reading, weights, and the order in which the policies earn."""
    seen_by_hand = written(task, list(task.scripts().values()), 0.5, 4000, np.random.default_rng([seed, 9]))
    reading = reading_of(task, seen_by_hand.obs)
    nets = {name: theta for kind in STAGES for name, theta in trained(task, kind, reading, seed).items()}
    earned = {
        name: truth(task, remembers_nothing(policy), JUDGED, seed + 1).mean
        for name, policy in build(task, nets, reading).items()
    }
    order = sorted(earned, key=lambda name: earned[name])
    return {
        "reading": np.stack(reading),
        **nets,
        "order": np.array(order),
        "earned": np.array([earned[name] for name in order]),
    }


def make(path: Path = WEIGHTS) -> None:
    """Makes the pools that are not there yet, and writes all of them to one file."""
    kept = dict(np.load(path)) if path.exists() else {}
    for task in EVERY:
        if f"{task.name}/order" in kept:
            continue
        pool = made(task)
        kept |= {f"{task.name}/{name}": array for name, array in pool.items()}
        ranked = zip(pool["order"], pool["earned"], strict=True)
        print(f"{task.name}:", ", ".join(f"{name} {value:.4g}" for name, value in ranked), flush=True)
    np.savez_compressed(path, **kept)
