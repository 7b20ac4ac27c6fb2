"""Subcommands that learn from a log, or look into one: sorel, torel, evaluate, posterior, inspect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..flags import Evaluate, Inspect, Posterior, Sorel, Torel
from .terminal import begin, how, show

if TYPE_CHECKING:
    from ..tune.trials import Contender


def sorel(command: Sorel) -> int:
    from .. import door
    from ..report.results import summary
    from ..report.verdict import EXIT

    log, bar = begin(command)
    result = door.sorel(
        log,
        command.scale,
        command.seed,
        baseline=command.baseline,
        level=command.level,
        model=command.model,
        core=command.core,
        candidates=command.candidates,
        paper=command.paper,
        before=command.earlier,
        **how(command, bar),
    )
    show(command, bar, result.to_json(), [], summary(result, command.folder), len(result.ruling.reasons) + 2)
    return EXIT[result.verdict]


def torel(command: Torel) -> int:
    from .. import door
    from ..report.ranking import summary, trials_table

    contenders = _contenders(command)
    log, bar = begin(command)
    result = door.torel(
        log,
        contenders,
        command.scale,
        command.seed,
        space=command.space,
        level=command.level,
        tuning=door.Tuning(
            command.seeds,
            command.halve,
            command.select,
            command.model,
            (command.space, command.search, command.tries),
        ),
        **how(command, bar),
    )
    show(command, bar, result.to_json(), [trials_table(result)], summary(result, command.folder), 3)
    return 0


def evaluate(command: Evaluate) -> int:
    from .. import door
    from ..report.evaluation_store import summary

    log, bar = begin(command)
    result = door.evaluate(
        log,
        command.policy,
        command.scale,
        command.seed,
        methods=command.methods,
        level=command.level,
        judging=door.Judging(command.within, command.sampled, command.forget, command.model, command.judge),
        **how(command, bar),
    )
    show(
        command,
        bar,
        result.to_json(),
        result.tables(),
        summary(result, command.folder),
        1 + len(command.policy),
    )
    return 0


def posterior(command: Posterior) -> int:
    from .. import door
    from ..report.table import settings_table, summary

    log, bar = begin(command)
    result = door.posterior(log, command.scale, command.seed, model=command.model, **how(command, bar))
    show(command, bar, result.to_json(), [settings_table(result)], summary(result, command.folder), 3)
    return 0


def inspect(command: Inspect) -> int:
    from .. import door
    from ..report.inspection import PAGE

    if command.write_schema is not None:
        return _draft(command.data, command.write_schema)
    log, bar = begin(command)
    result = door.inspect(log, command.seed, out=command.out)
    where = "" if command.out is None else f"{command.out / PAGE}  "
    first = f"{result.data}: {result.rows:,} rows, seed {command.seed}"
    lines = [*result.lines(), f"{where}online samples used: 0"]
    show(command, bar, result.to_json(), [first, *result.tables()], lines, len(lines))
    return 0


def _contenders(command: Torel) -> list[Contender]:
    """The planners requested, with their settings or the search for them."""
    from dataclasses import replace

    from .. import planner as planners
    from ..tune.search import get
    from ..tune.spaces import read_space
    from ..tune.trials import Contender
    from ..types import BadInput

    if len(set(command.planner)) != len(command.planner):
        raise BadInput("--planner: the same one is named twice")
    fixed = {} if command.updates is None else {"updates": command.updates}
    if not command.space.endswith(".toml"):
        if command.search != "grid":
            raise BadInput(f"--search {command.search}: goes with a --space file that describes a space")
        return [
            Contender(n, planners.get(n), tuple(planners.space(n, command.space, **fixed)))
            for n in command.planner
        ]
    space = read_space(command.space)
    if command.planner != (space.planner,):
        raise BadInput(
            f"{command.space}: is a space of {space.planner}; --planner {space.planner} alone goes with it"
        )
    space = space._replace(base=replace(space.base, **fixed))
    search = get(command.search, space, command.seed)
    planner = planners.get(space.planner)
    if command.search == "optuna":
        return [Contender(space.planner, planner, (), search, command.tries)]
    most = int(space.count) if command.search == "grid" else command.tries
    return [Contender(space.planner, planner, tuple(search.ask(most)))]


def _draft(data: str, path: Path) -> int:
    from ..data import sketch
    from ..data.schema import text_of
    from ..door.common import writable
    from ..report.store import write
    from ..types import BadInput

    if path.suffix != ".toml":
        raise BadInput(f"{path}: give a name that ends in .toml")
    writable(path.parent)
    schema, notes = sketch(data)
    write(path, text_of(schema, notes).encode())
    print(*notes, f"{path}: a draft; read it before you use it (--schema {path})", sep="\n")
    return 0
