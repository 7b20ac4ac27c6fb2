"""The suite's command line: `tasks` lists it, `run` runs it resumably, `table` and `gather` read the records.

python -m experiments.suite tasks
python -m experiments.suite run --half open --what sorel evaluate --rows 4000 --seeds 0 --jobs 2 --out out/suite
python -m experiments.suite table --records out/suite
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from .jobs import COSTS
from .tasks import EVERY, HALVES, SEALED, TASKS, Choices, half

RESULTS = Path(__file__).parents[1] / "results" / "suite.json"


def main(arguments: list[str] | None = None) -> int:
    """Runs one command."""
    given = _parser().parse_args(arguments)
    commands = {"tasks": tasks, "train": train, "run": run, "job": job, "table": table, "gather": gather}
    return commands[given.command](given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.suite", description="Twenty-two tasks, nine of them sealed."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("tasks", help="every task: its half, kinds, columns, actions, horizon")
    commands.add_parser("train", help="make the pools of policies that are missing, in the true tasks")
    runs = commands.add_parser("run", help="run the product on logs of one half; goes on where it was stopped")
    runs.add_argument("--half", choices=HALVES, required=True)
    runs.add_argument("--tasks", nargs="+", help="of that half (default: all)")
    runs.add_argument("--what", nargs="+", choices=tuple(COSTS), default=["sorel", "evaluate"])
    runs.add_argument("--rows", nargs="+", type=int, default=[4000, 20000])
    runs.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    runs.add_argument("--scale", default="quick")
    runs.add_argument("--controls", action="store_true", help="run the negative controls instead")
    runs.add_argument("--jobs", type=int, default=1, help="how many at once, one core each")
    runs.add_argument("--minutes", type=float, default=1e6, help="end cleanly after this long")
    runs.add_argument("--gpu", action="store_true", help="leave the choice of device to JAX (default: the CPU)")
    runs.add_argument("--out", type=Path, required=True)
    one = commands.add_parser("job", help="run one job in this process")
    one.add_argument("job", help="as JSON: what, task, rows, seed, scale, control")
    one.add_argument("--out", type=Path, required=True)
    for name, what in (("table", "print every figure"), ("gather", "write the records, compact, to one file")):
        reads = commands.add_parser(name, help=what)
        reads.add_argument("--records", type=Path, nargs="+", default=[RESULTS], help="folders, or gathered files")
        if name == "table":
            reads.add_argument("--commit", help="records of that commit alone (default: each job's last)")
    reads.add_argument("--out", type=Path, default=RESULTS)
    return parser


def tasks(_: argparse.Namespace) -> int:
    """Prints the table of tasks."""
    print(f"{'task':16} {'half':7} {'columns':>7} {'actions':>11} {'horizon':>7} {'discount':>8}  kinds; why")
    for task in EVERY:
        width = task.actions.width
        acts = f"{width} choices" if isinstance(task.actions, Choices) else f"{width} amounts"
        where = "sealed" if task.name in SEALED else "open"
        print(
            f"{task.name:16} {where:7} {len(task.columns):7} {acts:>11} {task.horizon:7} {task.discount:8}  "
            f"{', '.join(task.kinds)}; {task.why}"
        )
    return 0


def train(_: argparse.Namespace) -> int:
    """Makes the pools."""
    from .train import make

    make()
    return 0


def run(given: argparse.Namespace) -> int:
    """Runs the jobs of one half; 0 once all of them are done, 1 while some are left."""
    from .jobs import listed
    from .runner import run as run_jobs

    names = tuple(given.tasks or half(given.half))
    strange = [name for name in names if name not in half(given.half)]
    if strange:
        print(f"{', '.join(strange)}: not in the {given.half} half, which is {', '.join(half(given.half))}")
        return 2
    jobs = listed(
        names, tuple(given.what), tuple(given.rows), tuple(given.seeds), given.scale, controls=given.controls
    )
    return int(run_jobs(jobs, given.out, given.jobs, given.minutes, given.gpu) > 0)


def job(given: argparse.Namespace) -> int:
    """Runs one job here, on the core that SUITE_CORE names."""
    if "SUITE_CORE" in os.environ:
        os.sched_setaffinity(0, {int(os.environ["SUITE_CORE"])})
    from .jobs import Job, perform, write

    request = Job(*json.loads(given.job))
    assert request.task in TASKS
    folder = given.out / "work" / request.name
    write(given.out / f"{request.name}.json", perform(request, folder))
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def table(given: argparse.Namespace) -> int:
    """Prints every figure of the records."""
    from .table import read
    from .words import printed

    missing = [str(place) for place in given.records if not place.exists()]
    if missing:
        print(f"{missing[0]}: no such file or folder of records")
        return 2
    records = read(given.records)
    print(printed([record for record in records if given.commit in (None, record["commit"])]))
    return 0


def gather(given: argparse.Namespace) -> int:
    """Writes all records, compact, to one file."""
    from .table import read
    from .words import compact

    records = read(given.records)
    given.out.write_text("[\n" + ",\n".join(json.dumps(compact(record)) for record in records) + "\n]\n")
    print(f"{given.out}: {len(records)} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
