"""Updates a second of the planners, at HalfCheetah's shapes and each planner's own sizes.

    python benchmarks/planners.py --planners iql rebrac --settings 1 9 --updates 200

17 observations, 6 actions, 200,000 rows of noise: learning does not change the speed. All settings of a run are
one program under `vmap`, as a sweep on a GPU has them; whole updates after compilation, the best of several timed
calls. One update of td3bc and rebrac is two steps of the critics and one of the actor. mopo, morel and combo dream
in worlds of 3x200 nets; their updates are gradient steps, with the dreams in the time. Prints a line of JSON
per planner; `settings_at_once` is how many a sweep would put into one program here.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from offing import planner as planners
from offing.data import split
from offing.hypers import stack
from offing.posterior._space import LARGE
from offing.posterior.models import ensemble
from offing.tune.sweep import widest
from offing.types import Box, Dataset, Posterior, Task, Transition

OBS, ACTIONS, ROWS = 17, 6, 200_000
# Public code, one setting, per core-second and on one H200 (the project's page of speeds). `single` counts steps
# of the critics, with one of the actor at every second; the others count as here.
PUBLIC = {
    "iql": {"per_core_second": 85.6, "h200": 9_073},
    "td3bc": {"single_per_core_second": 99.6, "per_core_second": 51.3},
    "rebrac": {"single_per_core_second": 9.6, "per_core_second": 6.3, "h200": 1_965},
    "mopo": {"per_core_second": 8.7, "h200": 1_230},
    "morel": {"per_core_second": 9.1},
}


def log() -> tuple[Dataset, Posterior]:
    """Rows of noise, and worlds fitted for a moment; planners that learn from rows read the task alone."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)
    act = lambda: jnp.asarray(rng.uniform(-1, 1, (ROWS, ACTIONS)), jnp.float32)
    steps = Transition(draw(ROWS, OBS), act(), draw(ROWS), draw(ROWS, OBS), act(), jnp.zeros(ROWS))
    data = Dataset(steps, draw(1, OBS), jnp.arange(ROWS) // 1000, jnp.asarray(ROWS))
    task = Task(1000, 0.99, Box((-1.0,) * ACTIONS, (1.0,) * ACTIONS))
    hypers = replace(ensemble.Hypers(**LARGE), updates=8, members=8, elites=8)
    host = jax.tree.map(np.asarray, data)
    parts, _ = split(host, 0, hypers.folds)
    prepared = ensemble.prepare(host, task, history="none")
    fit = jax.jit(lambda k, h, d, s, a: ensemble.model.fit(k, h, d, s, a, prepared.shape))
    fitted = fit(jax.random.key(0), hypers, data, parts, prepared.arrays)
    return data, ensemble.posterior(fitted, hypers, prepared, host, task).fold(0)


def measure(
    name: str, count: int, updates: int, repeats: int, data: Dataset, posterior: Posterior
) -> dict[str, Any]:
    """Settings x updates a second, and what the program takes of time to compile and of memory."""
    planner = planners.get(name)
    hypers = planner.Hypers()
    every = getattr(hypers, "every", 1)  # gradient steps of one update: a planner that dreams counts them
    hypers = replace(hypers, steps=-(-updates // every) * every) if every > 1 else replace(hypers, updates=updates)
    many = stack([replace(hypers, lr=hypers.lr * (1 + i / 64)) for i in range(count)])

    def run(hypers: Any, key: Any, data: Any, posterior: Any) -> Any:
        first, rest = jax.random.split(key)
        state = planner.init(first, hypers, data, posterior)
        one = lambda s, k: planner.update(k, hypers, s, data, posterior)
        return jax.lax.scan(one, state, jax.random.split(rest, hypers.updates))

    began = time.perf_counter()
    swept = jax.jit(jax.vmap(run, (0, None, None, None)))
    program = swept.lower(many, jax.random.key(0), data, posterior).compile()
    compiled = time.perf_counter() - began
    memory = program.memory_analysis()
    size = 0 if memory is None else int(memory.temp_size_in_bytes + memory.output_size_in_bytes)
    seconds, cores, metrics = [], [], {}
    for i in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        _, metrics = jax.block_until_ready(program(many, jax.random.key(i), data, posterior))
        seconds.append(time.perf_counter() - began)
        cores.append(time.process_time() - used)
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(metrics)):
        raise SystemExit(f"{name}: the losses are not finite: nothing was measured")
    done = count * hypers.updates * every
    return {
        "settings": count,
        "per_second": round(done / min(seconds), 1),
        "per_core_second": round(done / min(cores), 1) if jax.default_backend() == "cpu" else None,
        "compile_seconds": round(compiled, 1),
        "megabytes_each": round(size / count / 1e6, 2),
        "settings_at_once": widest(count, size // count),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planners", nargs="+", default=["bc", "iql", "td3bc", "rebrac", "cql"])
    parser.add_argument("--settings", type=int, nargs="+", default=[1])
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    facts = {"device": jax.devices()[0].device_kind, "jax": jax.__version__, "python": platform.python_version()}
    data, posterior = log()
    for name in given.planners:
        runs = [measure(name, s, given.updates, given.repeats, data, posterior) for s in given.settings]
        record = {"benchmark": "planners", "planner": name, "public_code": PUBLIC.get(name), **facts, "runs": runs}
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
