"""From a log to a verdict: how long `offing sorel` and `offing evaluate` take, cold and warm, and their programs.

    python -m benchmarks.verdict [--what sorel evaluate] [--trees . ../earlier] [--scale quick] [--rows 4000]

Runs the command line of each tree (this one; `git worktree add ../earlier COMMIT` makes another) in processes of
their own: first with an empty cache of programs, then with the cache that this left. Prints a line of JSON for
each: wall seconds, seconds of all cores together, programs. On a shared machine compare seconds of cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POLICIES = 14  # of `evaluate`, on CartPole's log: numpy functions, of which no two are of one kind
COUNTED = """
import sys
import jax
programs = []
def hear(event, seconds, **about):
    if event.endswith("backend_compile_duration"):
        programs.append(event)
jax.monitoring.register_event_duration_secs_listener(hear)
from offing.__main__ import main
code = main(sys.argv[2:])
open(sys.argv[1], "w").write(str(len(programs)))
sys.exit(code)
"""
WEIGHTED = """
import numpy as np
def weighted(seed):
    weights = np.random.default_rng(seed).normal(size=4)
    return lambda obs: (np.asarray(obs) @ weights > 0).astype(int)
"""


def command(what: str, scale: str, rows: int, out: Path) -> list[str]:
    """What is given to the command line."""
    if what == "sorel":
        return ["sorel", "offing:pendulum", "--scale", scale, "--out", str(out)]
    policies = [part for i in range(POLICIES) for part in ("--policy", f"fourteen:policy{i}")]
    return ["evaluate", "offing:cartpole", "--rows", str(rows), "--scale", scale, "--out", str(out), *policies]


def timed(tree: Path, given: list[str], folder: Path) -> dict[str, float]:
    """One process: wall seconds, seconds of cores, programs."""
    counted = folder / "programs"
    path = os.pathsep.join(map(str, (tree, folder)))
    more = {"PYTHONPATH": path, "JAX_COMPILATION_CACHE_DIR": str(folder / "cache")}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    line = [sys.executable, "-c", COUNTED, str(counted), *given]
    done = subprocess.run(line, cwd=tree, env={**os.environ, **more}, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{tree}: {' '.join(given)} failed: {done.stderr.strip().splitlines()[-1:]}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(wall, 1), "core_seconds": round(spent, 1), "programs": int(counted.read_text())}


def commit(tree: Path) -> str:
    """The tree's commit, where there is git."""
    shown = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=tree, capture_output=True, text=True)
    return shown.stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="+", choices=("sorel", "evaluate"), default=["sorel", "evaluate"])
    parser.add_argument("--trees", nargs="+", type=Path, default=[Path()])
    parser.add_argument("--scale", default="quick")
    parser.add_argument("--rows", type=int, default=4_000, help="of CartPole's log, for evaluate")
    given = parser.parse_args()
    for what in given.what:
        for tree in (each.resolve() for each in given.trees):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                named = "".join(f"policy{i} = weighted({i})\n" for i in range(POLICIES))
                (folder / "fourteen.py").write_text(WEIGHTED + named)
                for state in ("cold", "warm"):
                    asked = command(what, given.scale, given.rows, folder / state)
                    line = {"what": what, "commit": commit(tree), "scale": given.scale, "state": state}
                    print(json.dumps(line | timed(tree, asked, folder)), flush=True)


if __name__ == "__main__":
    main()
