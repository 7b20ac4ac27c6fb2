"""FQE over a pool of policies in one program against one at a time, at HalfCheetah's shapes and the paper's nets.

    python benchmarks/evaluate.py
    python benchmarks/evaluate.py --policies 8 --updates 80 --width 32 --rows 2000 --alone 2      (a CPU, seconds)

17 observations, 6 actions, 200,000 rows of noise: learning does not change the speed. 56 policies of 256-256, the
size of the paper's ReBRAC sweep; critics of 256-256 in batches of 256, none of which stops early: one for each
policy, as Fu et al. (2021) have it, and four, as is our default. After compilation, the best of several timed
calls. One at a time, `--alone` policies are timed one after the other, by a program for one, and stand for all:
their calls do the same. Prints a line of JSON for each number of members.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from offing.planner._parts import Scale, actor_init, policy_of
from offing.types import Box, Dataset, Policy, Task, Transition
from offing.value._critic import Hypers, fit
from offing.value._view import sample_of

OBS, ACTIONS = 17, 6
TASK = Task(1000, 0.99, Box((-1.0,) * ACTIONS, (1.0,) * ACTIONS))
STARTS = 200
LINE = 10  # times faster: what is due on one H200


def log(rows: int) -> Dataset:
    """Rows of noise, a thousand to an episode."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
    act = lambda: rng.uniform(-1, 1, (rows, ACTIONS)).astype(np.float32)
    steps = Transition(draw(rows, OBS), act(), draw(rows), draw(rows, OBS), act(), np.zeros(rows, np.float32))
    return Dataset(steps, draw(STARTS, OBS), (np.arange(rows) // 1000).astype(np.int32), np.asarray(rows))


def pool(count: int, width: int) -> Policy:
    """Untrained policies, stacked: every leaf [P, ...]."""
    make = lambda key: actor_init(key, "plain", (width, width), OBS, TASK.actions)
    scale = Scale(jnp.zeros((count, OBS)), jnp.ones((count, OBS)), jnp.ones(count))
    return policy_of(jax.vmap(make)(jax.random.split(jax.random.key(0), count)), scale, "plain", TASK.actions)


def clocked(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the clock and on the cores."""
    began, used = time.perf_counter(), time.process_time()
    fitted = jax.block_until_ready(call())
    if not np.isfinite(np.asarray(fitted.curve)).all():
        raise SystemExit("the values are not finite: nothing was measured")
    return time.perf_counter() - began, time.process_time() - used


def measure(policies: Policy, hypers: Hypers, data: Dataset, alone: int, repeats: int) -> dict[str, Any]:
    """Seconds, updates a second, memory and time to compile, of all policies in as many calls as `alone` says."""
    sample = jax.device_put(sample_of(data, TASK))
    count = jax.tree.leaves(policies)[0].shape[0]
    one = lambda i: jax.tree.map(lambda leaf: leaf[i : i + 1], policies)
    some = [one(i) for i in range(alone)] if alone else [policies]
    began = time.perf_counter()
    program = fit.lower(jax.random.key(0), hypers, some[0], sample, TASK.actions).compile()
    compiled = time.perf_counter() - began
    memory = program.memory_analysis()
    call = lambda policy: lambda: program(jax.random.key(1), hypers, policy, sample)
    clocked(call(some[0]))
    times = np.array([[clocked(call(policy)) for policy in some] for _ in range(repeats)])  # [R, calls, 2]
    seconds, cores = times.mean(1).min(0) * (count if alone else 1)
    size = 0 if memory is None else memory.temp_size_in_bytes + memory.output_size_in_bytes
    return {
        "seconds": round(float(seconds), 3),
        "updates_per_second": round(count * hypers.updates / float(seconds), 1),
        "updates_per_core_second": round(count * hypers.updates / float(cores), 1),
        "compile_seconds": round(compiled, 1),
        "megabytes": round(size / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=int, default=56)
    parser.add_argument("--alone", type=int, default=4, help="policies that are timed one at a time")
    parser.add_argument("--updates", type=int, default=2_000, help="of every policy's critics; a multiple of 40")
    parser.add_argument("--members", type=int, nargs="+", default=[1, Hypers().members])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    data, policies = log(given.rows), pool(given.policies, given.width)
    for members in given.members:
        hypers = Hypers(width=given.width, updates=given.updates, members=members, tolerance=0.0)
        together = measure(policies, hypers, data, 0, given.repeats)
        alone = measure(policies, hypers, data, given.alone, given.repeats)
        record = {
            "benchmark": "evaluate",
            "policies": given.policies,
            "members": members,
            "width": given.width,
            "updates": given.updates,
            "device": jax.devices()[0].device_kind,
            "jax": jax.__version__,
            "python": platform.python_version(),
            "together": together,
            "one_at_a_time": {**alone, "timed": given.alone},
            "times_faster": round(alone["seconds"] / together["seconds"], 2),
            "due": LINE,
        }
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
