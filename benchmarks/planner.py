"""Environment steps a second of recurrent PPO in a posterior, with updates, at the paper's HalfCheetah setting.

    python benchmarks/planner.py

512 environments x 64 steps, width 256, 8 epochs x 16 minibatches, in worlds of 3x200 with 17 observations and 6
actions. For each core and number of settings in one program, whole updates after compilation: the best of several
timed calls, each of several updates. Prints a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from offing.data import split
from offing.hypers import stack
from offing.planner import rppo
from offing.planner.rppo import PAPER
from offing.posterior.models import ensemble
from offing.types import Box, Dataset, Posterior, Task, Transition

OBS, ACTIONS, MEMBERS = 17, 6, 8
PUBLIC = 76_596  # the paper's code on the same device (the project's page of speeds)


def worlds(key: Any) -> tuple[Dataset, Posterior]:
    """Worlds of HalfCheetah's shape, hardly trained, and a log of a few rows: learning changes no speed."""
    task = Task(1000, 0.99, Box((-1.0,) * ACTIONS, (1.0,) * ACTIONS))
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(1024, OBS)).astype(np.float32)
    action = rng.uniform(-1, 1, (1024, ACTIONS)).astype(np.float32)
    reward, zeros = obs[:, 0], np.zeros(1024, np.float32)
    steps = Transition(obs, action, reward, obs + 0.1, action, zeros)
    data = Dataset(steps, obs, np.arange(1024, dtype=np.int32) // 32, np.asarray(1024, np.int32))
    hypers = replace(ensemble.Hypers(), folds=1, members=MEMBERS, elites=MEMBERS, updates=20)
    prepared = ensemble.prepare(data, task, history="none")
    parts, _ = split(data, 0, folds=1)
    fit = jax.jit(lambda k, h, d, s, a: ensemble.model.fit(k, h, d, s, a, prepared.shape))
    fitted = fit(key, hypers, data, parts, prepared.arrays)
    return data, ensemble.posterior(fitted, hypers, prepared, data, task)


def measure(core: str, settings: int, updates: int, repeats: int) -> dict[str, Any]:
    """Steps a second summed over the settings, and how long the program took to compile."""
    hypers = replace(PAPER["halfcheetah"], core=core)
    data, posterior = worlds(jax.random.key(0))
    many = stack([replace(hypers, lr=3e-4 * (1 + i / 16)) for i in range(settings)])

    def some(hypers: Any, state: Any, key: Any, data: Any, posterior: Any) -> Any:
        one = lambda s, k: rppo.update(k, hypers, s, data, posterior)
        return jax.lax.scan(one, state, jax.random.split(key, updates))

    over = (0, 0, None, None, None)
    begin = jax.jit(jax.vmap(rppo.init, (None, 0, None, None)))
    state = jax.block_until_ready(begin(jax.random.key(1), many, data, posterior))
    began = time.perf_counter()
    run = jax.jit(jax.vmap(some, over)).lower(many, state, jax.random.key(2), data, posterior).compile()
    compiled = time.perf_counter() - began
    state, _ = jax.block_until_ready(run(many, state, jax.random.key(2), data, posterior))
    seconds, cores, losses = [], [], []
    for i in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        state, metrics = jax.block_until_ready(run(many, state, jax.random.key(3 + i), data, posterior))
        seconds.append(time.perf_counter() - began)
        cores.append(time.process_time() - used)
        losses.append(np.asarray(metrics["loss"]))
    if not np.isfinite(losses).all():
        raise SystemExit("the losses are not finite: nothing was measured")
    steps = settings * updates * hypers.envs * hypers.segment
    return {
        "core": core,
        "settings": settings,
        "steps_per_second": round(steps / min(seconds)),
        "steps_per_core_second": round(steps / min(cores)),
        "compile_seconds": round(compiled, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", nargs="+", default=["gru", "linear", "none"])
    parser.add_argument("--settings", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    runs = [measure(c, s, given.updates, given.repeats) for c in given.cores for s in given.settings]
    facts = {
        "benchmark": "planner",
        "public_code": PUBLIC,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "python": platform.python_version(),
    }
    print(json.dumps({**facts, "runs": runs}))


if __name__ == "__main__":
    main()
