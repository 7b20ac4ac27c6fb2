"""Gradient steps a second of the ensemble fit at HalfCheetah shapes; prints one line of JSON.

    python benchmarks/posterior.py

17 observations, 6 actions, 200,000 rows, 10 members of 3x200, batch 256: the setting at which the public code
does 5,474 steps a second on one H200. Times whole fits, initialisation and scoring included, after compilation.
On a CPU: 600 updates, so that scoring and setting up weigh more, and steps per second of processor time.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from offing.data import split
from offing.hypers import stack
from offing.posterior.models import ensemble
from offing.types import Box, Dataset, Task, Transition


def log(rows: int, obs: int = 17, actions: int = 6) -> Dataset:
    """A made-up log of that shape, of episodes of 1,000 steps: speed does not depend on what is in it."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape, np.float32)
    action = draw(rows, actions)
    steps = Transition(draw(rows, obs), action, draw(rows), draw(rows, obs), action, np.zeros(rows, np.float32))
    episode = (np.arange(rows) // 1_000).astype(np.int32)
    return Dataset(steps, steps.obs[::1_000], episode, np.asarray(rows, np.int32))


def measure(settings: int, updates: int, rows: int, repeats: int) -> dict[str, Any]:
    """Steps a second of `settings` fits in one program: the median of the repeats, and steps per core-second."""
    data = log(rows)
    parts, _ = split(data, 0, folds=1)
    hypers = [ensemble.Hypers(folds=1, updates=updates, lr=1e-3 * (i + 1) / settings) for i in range(settings)]
    task = Task(1_000, 0.99, Box((-1.0,) * 6, (1.0,) * 6))
    prepared = ensemble.prepare(data, task, history="none")
    one = lambda h, k, d, s, a: ensemble.model.fit(k, h, d, s, a, prepared.shape)
    run = jax.jit(jax.vmap(one, in_axes=(0, None, None, None, None)))
    rest = jax.device_put((data, parts, prepared.arrays))
    args = (jax.tree.map(jnp.asarray, stack(hypers)), jax.random.key(0), *rest)
    began = time.perf_counter()
    program = run.lower(*args).compile()
    compiled = time.perf_counter() - began
    jax.block_until_ready(program(*args))
    walls, cores = [], []
    for _ in range(repeats):
        wall, core = time.perf_counter(), time.process_time()
        jax.block_until_ready(program(*args))
        walls.append(time.perf_counter() - wall)
        cores.append(time.process_time() - core)
    steps = settings * updates
    return {
        "settings": settings,
        "steps_per_second": round(steps / float(np.median(walls)), 1),
        "steps_per_core_second": round(steps / float(np.median(cores)), 1),
        "seconds": [round(w, 3) for w in walls],
        "compile_seconds": round(compiled, 1),
    }


def main() -> None:
    on_gpu = jax.default_backend() == "gpu"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, nargs="+", default=[1, 8] if on_gpu else [1])
    parser.add_argument("--updates", type=int, default=20_000 if on_gpu else 600)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    device = jax.devices()[0]
    line = {
        "benchmark": "posterior",
        "shape": "17 obs, 6 actions, 10 members of 3x200, batch 256",
        "rows": given.rows,
        "updates": given.updates,
        "runs": [measure(s, given.updates, given.rows, given.repeats) for s in given.settings],
        "device": device.device_kind if on_gpu else platform.processor() or platform.machine(),
        "jax": jax.__version__,
        "python": platform.python_version(),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
