"""Ten policies judged in one run, on CartPole's log and on a log of pure noise: are all estimates written?

    python -m benchmarks.ten_policies [--scale quick] [--rows 4000]

Prints a line of JSON for each log: seconds, policies, estimates that are there, and what was left out, with why.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable

import numpy as np

import offing
from offing.door.common import Scale

POLICIES = 10


def weighted(seed: int, width: int) -> Callable[[np.ndarray], np.ndarray]:
    """A choice of two by the sign of a sum of what is seen, with weights of its own."""
    weights = np.random.default_rng(seed).normal(size=width)
    return lambda obs: (obs @ weights > 0).astype(int)


def noise(rows: int) -> offing.Log:
    """Episodes of 25 steps in which nothing depends on anything."""
    rng = np.random.default_rng(0)
    episode = np.arange(rows) // 25
    return offing.load(
        {
            "obs": rng.normal(size=(rows, 4)),
            "action": rng.integers(0, 2, rows),
            "n_actions": 2,
            "reward": rng.normal(size=rows),
            "next_obs": rng.normal(size=(rows, 4)),
            "terminated": np.zeros(rows, bool),
            "truncated": episode != np.r_[episode[1:], -1],
        }
    )


def estimated(name: str, log: offing.Log, scale: Scale) -> dict[str, object]:
    """What an evaluation of ten policies came to."""
    began = time.perf_counter()
    policies = {f"policy {i}": weighted(i, log.data.steps.obs.shape[1]) for i in range(POLICIES)}
    result = offing.evaluate(log, policies, scale=scale)
    methods = Counter(method for each in result.estimates.values() for method in each)
    return {
        "log": name,
        "scale": scale,
        "rows": log.data.rows,
        "seconds": round(time.perf_counter() - began, 1),
        "policies": len(result.estimates),
        "estimates": dict(methods),
        "left_out": result.missing(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", default="quick")
    parser.add_argument("--rows", type=int, default=4_000)
    given = parser.parse_args()
    for name, log in (
        ("offing:cartpole", offing.load("offing:cartpole", given.rows)),
        ("noise", noise(given.rows)),
    ):
        print(json.dumps(estimated(name, log, given.scale)), flush=True)


if __name__ == "__main__":
    main()
