"""`offing-runtime` in a virtual environment with numpy alone: it plays CartPole over a pipe, and is timed.

    python -m benchmarks.runtime [--scale smoke] [--episodes 200]

A policy of `offing sorel offing:cartpole` is written by `--to numpy`. A fresh virtual environment gets numpy and
the runtime and nothing else. The simulator stays here and asks the policy there, a line of JSON a step; the policy
itself plays the same episodes here. Then a net of 2x64 decides there on one core. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import jax
import numpy as np

import offing
from offing import planner as planners
from offing.report.actor import Actor
from offing.ship.export import shipped, write_shipment
from offing.types import Box, Task

RUNTIME = Path(__file__).parents[1] / "runtime"
HORIZON = 500
CHILD = """
import sys
import numpy, offing_runtime
known = {"numpy", "offing_runtime", *sys.stdlib_module_names}
assert not [name for name in sys.modules if name.split(".")[0] not in known and not name.startswith("_")]
import json
policy, state = offing_runtime.load(sys.argv[1]), None
for line in sys.stdin:
    step = json.loads(line)
    action, state = policy.predict(step["row"], None if step["start"] else state, step["reward"])
    print(json.dumps(action), flush=True)
"""
CLOCK = """
import sys, time
import numpy, offing_runtime
policy = offing_runtime.load(sys.argv[1])
rows, state, took = numpy.random.default_rng(0).normal(size=(4000, 8)).astype("float32"), None, []
for row in rows:
    begin = time.perf_counter()
    action, state = policy.predict(row, state, 0.5)
    took.append(time.perf_counter() - begin)
print(1e6 * float(numpy.median(took)))
"""


def moved(state: np.ndarray, right: np.ndarray) -> np.ndarray:
    """One step of the cart and its pole (Barto, Sutton & Anderson, 1983) [N, 4]."""
    x, speed, angle, turn = state.T
    force, cos, sin = np.where(right, 10.0, -10.0), np.cos(angle), np.sin(angle)
    push = (force + 0.05 * turn**2 * sin) / 1.1
    spin = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    pull = push - 0.05 * spin * cos / 1.1
    return np.stack([x + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turn, turn + 0.02 * spin], -1)


def fallen(state: np.ndarray) -> np.ndarray:
    return (np.abs(state[:, 0]) > 2.4) | (np.abs(state[:, 2]) > 0.2095)


def environment(folder: Path) -> Path:
    """A virtual environment with numpy and the runtime alone; the Python in it.

    Both are linked from here, so that it is made without a network.
    """
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(
        subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    )
    for each in Path(np.__file__).parents[1].glob("numpy*"):
        (packages / each.name).symlink_to(each)
    shutil.copytree(RUNTIME / "offing_runtime", packages / "offing_runtime")
    return python


def over_a_pipe(command: list[str], starts: np.ndarray, names: list[str] | None, steps: int) -> np.ndarray:
    """Returns of episodes that a policy in another process plays; `names` are its columns, if it has a table's."""
    earned = np.zeros(len(starts))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for episode, first in enumerate(starts):
            state = first[None]
            for t in range(steps):
                numbers = state[0].astype(np.float32).tolist()
                row = numbers if names is None else dict(zip(names, numbers, strict=True))
                child.stdin.write(json.dumps({"row": row, "start": t == 0, "reward": 1.0}) + "\n")
                child.stdin.flush()
                action: Any = json.loads(child.stdout.readline())
                right = action == 1 if names is None else action["push"] == "right"
                earned[episode] += 1
                state = moved(state, np.array([right]))
                if fallen(state)[0]:
                    break
        child.stdin.close()
    return earned


def here(actor: Actor, starts: np.ndarray, steps: int) -> np.ndarray:
    """Returns of the same episodes, played by the policy itself, all at once."""
    state, alive, earned, memory = starts, np.ones(len(starts), bool), np.zeros(len(starts)), None
    for t in range(steps):
        reward = None if t == 0 else np.ones(len(starts))
        action, memory = actor.predict(state.astype(np.float32), memory, reward=reward)
        earned += alive
        state = np.where(alive[:, None], moved(state, np.asarray(action) == 1), state)
        alive &= ~fallen(state)
    return earned


def decision(python: Path, folder: Path) -> float:
    """Median microseconds of one decision of a net of 2x64 with eight numbers in and two out."""
    planner, actions = planners.get("bc"), Box((-1.0, -1.0), (1.0, 1.0))
    policy = planner.blank(planner.Hypers(width=64, depth=2), 8, Task(10, 0.99, actions))
    leaves, tree = jax.tree.flatten(policy)
    keys = jax.random.split(jax.random.key(0), len(leaves))
    leaves = [leaf + 0.1 * jax.random.normal(k, np.shape(leaf)) for k, leaf in zip(keys, leaves, strict=True)]
    actor = Actor(jax.tree.unflatten(tree, leaves), Task(10, 0.99, actions), 8)
    write_shipment(shipped(actor.policy, 8, actions, actor.names, {}, "2x64"), "numpy", folder)
    one_core = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    took = [
        float(subprocess.run([python, "-c", CLOCK, folder], env=one_core, capture_output=True, check=True).stdout)
        for _ in range(3)
    ]
    return min(took)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="smoke")
    parser.add_argument("--episodes", type=int, default=200)
    given = parser.parse_args()
    log = offing.load("offing:cartpole")
    actor = offing.sorel(log, given.scale, progress=False).policy
    starts = np.random.default_rng(3).uniform(-0.05, 0.05, (given.episodes, 4))
    with tempfile.TemporaryDirectory() as scratch:
        python, export = environment(Path(scratch) / "venv"), Path(scratch) / "export"
        write_shipment(shipped(actor.policy, 4, log.task.actions, actor.names, {}, log.name), "numpy", export)
        there = over_a_pipe([str(python), "-I", "-c", CHILD, str(export)], starts, None, HORIZON)
        ours = here(actor, starts, HORIZON)
        microseconds = decision(python, Path(scratch) / "timed")
    same = bool(np.array_equal(there, ours))
    result = {"episodes": given.episodes, "return": float(there.mean()), "return_here": float(ours.mean())}
    print(json.dumps({**result, "episode_by_episode": same, "microseconds_2x64": round(microseconds, 1)}))
    return 0 if same and microseconds < 100 else 1


if __name__ == "__main__":
    sys.exit(main())
