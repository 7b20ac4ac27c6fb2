"""The suite's command line: `tasks` lists it, `run` runs it resumably, `table` and `gather` read the records.

python -m experiments.suite tasks
python -m experiments.suite run --half open --what sorel evaluate --rows 4000 --seeds 0 --jobs 2 --out out/suite
python -m experiments.suite table --records out/suite
"""

from __future__ import annotations

import argparse
import sys

from .tasks import EVERY, SEALED, Choices


def main(arguments: list[str] | None = None) -> int:
    """Runs one command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.suite", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("tasks", help="every task: its half, kinds, columns, actions, horizon")
    commands.add_parser("train", help="make the pools of policies anew, in the true tasks (two minutes)")
    given = parser.parse_args(arguments)
    return {"tasks": tasks, "train": train}[given.command](given)


def tasks(_: argparse.Namespace) -> int:
    """Prints the table of tasks."""
    print(f"{'task':16} {'half':7} {'columns':>7} {'actions':>11} {'horizon':>7} {'discount':>8}  kinds; why")
    for task in EVERY:
        width = task.actions.width
        acts = f"{width} choices" if isinstance(task.actions, Choices) else f"{width} amounts"
        where = "sealed" if task.name in SEALED else "open"
        print(
            f"{task.name:16} {where:7} {len(task.columns):7} {acts:>11} {task.horizon:7} {task.discount:8}",
            end="  ",
        )
        print(f"{', '.join(task.kinds)}; {task.why}")
    return 0


def train(_: argparse.Namespace) -> int:
    """Makes the pools."""
    from .train import make

    make()
    return 0


if __name__ == "__main__":
    sys.exit(main())
