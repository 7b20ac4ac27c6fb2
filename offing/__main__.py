"""The command line: parse, call one function of `offing.door`, print. One subcommand per journey.

A subcommand is a dataclass of flags in `flags` and a function here; `COMMANDS` joins the two.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from .flags import (
    ALongRun,
    Collect,
    Command,
    Evaluate,
    Explain,
    Export,
    Inspect,
    OfALog,
    Output,
    Play,
    Posterior,
    Sample,
    Sorel,
    Torel,
    Watch,
)
from .version import __version__

if TYPE_CHECKING:
    from rich.console import RenderableType

    from .data import Log
    from .door.common import Options
    from .progress import Bar
    from .report.jsonable import Json
    from .tune.trials import Contender

BAD_INPUT = 2
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; bad input is one line on stderr and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--version"]:
        print(f"offing {__version__}")
        return 0
    command = tyro.cli(Command, prog="offing", description="Fully offline reinforcement learning.", args=given)  # type: ignore[call-overload]
    from .types import BadInput

    try:
        return COMMANDS[type(command)](command)
    except BadInput as error:
        print(f"offing: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        kept = "; the same command goes on from the last finished chunk" if hasattr(command, "fresh") else ""
        print(f"offing: interrupted{kept}", file=sys.stderr)
        return INTERRUPTED


# ---- one function per subcommand


def sorel(command: Sorel) -> int:
    from . import door
    from .report.results import summary
    from .report.verdict import EXIT

    log, bar = _begin(command)
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
        **_how(command, bar),
    )
    _print(command, bar, result.to_json(), [], summary(result, command.folder), len(result.ruling.reasons) + 2)
    return EXIT[result.verdict]


def torel(command: Torel) -> int:
    from . import door
    from .report.ranking import summary, trials_table

    contenders = _contenders(command)
    log, bar = _begin(command)
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
        **_how(command, bar),
    )
    _print(command, bar, result.to_json(), [trials_table(result)], summary(result, command.folder), 3)
    return 0


def evaluate(command: Evaluate) -> int:
    from . import door
    from .report.evaluation_store import summary

    log, bar = _begin(command)
    result = door.evaluate(
        log,
        command.policy,
        command.scale,
        command.seed,
        methods=command.methods,
        level=command.level,
        judging=door.Judging(command.within, command.sampled, command.forget, command.model, command.judge),
        **_how(command, bar),
    )
    _print(
        command,
        bar,
        result.to_json(),
        result.tables(),
        summary(result, command.folder),
        1 + len(command.policy),
    )
    return 0


def posterior(command: Posterior) -> int:
    from . import door
    from .report.table import settings_table, summary

    log, bar = _begin(command)
    result = door.posterior(log, command.scale, command.seed, model=command.model, **_how(command, bar))
    _print(command, bar, result.to_json(), [settings_table(result)], summary(result, command.folder), 3)
    return 0


def inspect(command: Inspect) -> int:
    from . import door
    from .report import inspection

    if command.write_schema is not None:
        return _draft(command.data, command.write_schema)
    log, bar = _begin(command)
    found = door.inspect(log, command.seed, out=command.out)
    where = "" if command.out is None else f"{command.out / inspection.PAGE}  "
    first = f"{found.data}: {found.rows:,} rows, seed {command.seed}"
    lines = [*found.lines(), f"{where}online samples used: 0"]
    _print(command, bar, found.to_json(), [first, *found.tables()], lines, len(lines))
    return 0


def play(command: Play) -> int:
    from .online.play import play as run
    from .online.play import summary, task_of
    from .progress import Bar
    from .report import results
    from .report.jsonable import to_json
    from .types import BadInput
    from .value import policies

    _cache()
    if (command.folder is None) == (command.policy is None):
        raise BadInput("offing play: give the folder of a finished run or --policy, one of the two")
    earned = None
    if command.folder is None:
        task, width = task_of(command.env)
        policy = policies.resolve(str(command.policy), task, width, results.finished_policy)
    else:
        (policy, task), report = results.load_policy(command.folder), results.read_result(command.folder)
        earned = None if report is None else report.returns
    with Bar(not command.quiet, lines=True) as bar:
        played = run(policy, task, command.env, command.episodes, command.seed, command.sampled, bar)
    predicted = None if earned is None else {n: getattr(earned, n) for n in ("interval", "level", "median")}
    said = summary(played, predicted)
    if command.folder is not None:
        results.save_play(command.folder, said)
    true = said["return"]
    error = "" if true["stderr"] is None else f" ± {true['stderr']:,.1f}"
    words = f"{command.env}: realised return {true['mean']:,.1f}{error} over {command.episodes} episodes"
    if "predicted" in said:
        (low, high), where = said["predicted"]["interval"], "inside" if said["inside"] else "OUTSIDE"
        words += (
            f", {where} the predicted {said['predicted']['level']:.0%} interval {low:,.1f} … {high:,.1f} "
            f"(median {said['predicted']['median']:,.1f})"
        )
    _print(command, bar, to_json(said), [], [words], 1)
    return 0


def collect(command: Collect) -> int:
    from .door.common import writable
    from .online.collect import collect as run
    from .online.minari import check, save_minari
    from .progress import Bar
    from .report.store import save_columns
    from .types import BadInput

    form = command.format or {".npz": "npz", "": "minari"}.get(command.out.suffix)
    if form is None or (form == "npz") != (command.out.suffix == ".npz"):
        raise BadInput(f"{command.out}: give a name that ends in .npz, or that of a folder for a Minari dataset")
    _cache()
    writable(command.out.parent)
    if form == "minari":
        check(command.out)
    asked = (command.policy, command.steps, command.noise, command.horizon)
    with Bar(lines=True) as bar:
        columns = run(command.kind, command.rows, command.seed, bar, *asked)
    if form == "minari":
        save_minari(command.out, columns, command.kind, command.policy)
    else:
        save_columns(command.out, columns)
    ended, cut = int(columns["terminated"].sum()), int(columns["truncated"].sum())
    print(f"{command.out}: {command.rows:,} rows, {ended + cut:,} episodes ({ended:,} ended, {cut:,} timed out)")
    return 0


def sample(command: Sample) -> int:
    from .data import sample_file
    from .door.common import writable
    from .report.store import write

    path, content = sample_file(command.name, command.out)
    writable(path.parent)
    write(path, content)
    print(f"{path}: written; `offing inspect {path}` says what is in it")
    return 0


def export(command: Export) -> int:
    from .door.common import writable
    from .ship.export import export as run

    if command.to == "mlflow":
        from .ship.tracked import log_run

        print(log_run(command.folder))
        return 0
    if command.out is not None:
        writable(command.out)
    print(*run(command.folder, command.to, command.out), sep="\n")
    return 0


def watch(command: Watch) -> int:
    from .data import load
    from .door.common import writable
    from .watch.earning import EXIT
    from .watch.page import save
    from .watch.watch import Watch as Watching

    _cache()
    out = command.folder if command.out is None else command.out
    writable(out)
    watching = Watching.of(command.folder, _learned_from(command))
    root = os.environ.get("MINARI_DATASETS_PATH")
    watched = watching.update(load(command.data, schema=command.schema, root=root))
    files = save(out, watched, command.data)
    print(*watched.sentences(), files[1], sep="\n")
    return EXIT[watched.word]


def explain(command: Explain) -> int:
    from .door.common import writable
    from .door.results import read_finished
    from .explain.page import PAGE, attach
    from .report.results import PAGE as REPORT

    _cache()
    writable(command.folder)
    result, log = read_finished(command.folder), _learned_from(command)
    explained = result.explain(log)
    attach(command.folder, REPORT, explained, log.name, result.run)
    print(*explained.sentences(), command.folder / PAGE, sep="\n")
    return 0


COMMANDS: dict[type, Callable[..., int]] = {
    Sorel: sorel,
    Torel: torel,
    Evaluate: evaluate,
    Posterior: posterior,
    Inspect: inspect,
    Play: play,
    Collect: collect,
    Sample: sample,
    Export: export,
    Watch: watch,
    Explain: explain,
}


# ---- what they share


def _begin(command: OfALog) -> tuple[Log, Bar]:
    """The log that a command names, and its progress; where Minari keeps its own is for the user's variable."""
    from .data import load
    from .door.common import writable
    from .progress import Bar

    _cache()
    out = command.folder if isinstance(command, ALongRun) else getattr(command, "out", None)
    if out is not None:
        writable(out)
    bar = Bar(not command.quiet, lines=True)
    root = os.environ.get("MINARI_DATASETS_PATH")
    several = [command.data, *getattr(command, "new", ())]
    source = several if len(several) > 1 else command.data
    return load(source, command.rows, command.seed, schema=command.schema, root=root), bar


def _learned_from(command: Watch | Explain) -> Log:
    """The log that the run in a command's folder learned from."""
    from .data import load
    from .report import results
    from .report.reports import SorelReport
    from .types import BadInput

    report = results.read_result(command.folder)
    if report is None:
        raise BadInput(f"{command.folder}: holds no finished result")
    root = os.environ.get("MINARI_DATASETS_PATH")
    try:
        changes = report.changes if isinstance(report, SorelReport) else None
        known = [report.data] if changes is None else [part.name for part in changes.parts]
        logs = list(command.log) or known
        source = logs if len(logs) > 1 else logs[0]
        return load(source, report.rows, report.seed, schema=command.schema, root=root)
    except BadInput as error:
        raise BadInput(f"--log: give the log that the policy was learned from: {error}") from None


def _how(command: ALongRun, bar: Bar) -> Options:
    """How the run goes."""
    where = getattr(command, "engine", "here")
    return {"out": command.folder, "fresh": command.fresh, "engine": where, "progress": bar}


def _print(
    command: Output, bar: Bar, plain: Json, tables: Iterable[RenderableType], lines: list[str], last: int
) -> None:
    """One JSON object on stdout and words on stderr, or tables and words on stdout; if quiet, the last lines."""
    from rich.console import Console

    stream = sys.stderr if command.json else sys.stdout
    if not command.quiet:
        console = Console(file=stream)
        console = console if console.is_terminal else Console(file=stream, width=140)
        for table in tables:
            console.print(table)
            print(file=stream)
    if isinstance(command, ALongRun) and not bar.spent:
        print(f"{command.folder}: already finished; --fresh runs it again", file=sys.stderr)
    print(*(lines[-last:] if command.quiet else lines), sep="\n", file=stream)
    if command.timings:
        spent = sorted(bar.spent.items(), key=lambda item: -item[1])
        parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent)
        print(f"timings: {parts or 'nothing was run'}; {bar.seconds:.1f} s in all", file=sys.stderr)
    if command.json:
        print(json.dumps(plain, allow_nan=False))


def _contenders(command: Torel) -> list[Contender]:
    """The planners asked for, with their settings or the search for them."""
    from dataclasses import replace

    from . import planner as planners
    from .tune.search import get
    from .tune.spaces import read_space
    from .tune.trials import Contender
    from .types import BadInput

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
    found = read_space(command.space)
    if command.planner != (found.planner,):
        raise BadInput(
            f"{command.space}: is a space of {found.planner}; --planner {found.planner} alone goes with it"
        )
    found = found._replace(base=replace(found.base, **fixed))
    search = get(command.search, found, command.seed)
    planner = planners.get(found.planner)
    if command.search == "optuna":
        return [Contender(found.planner, planner, (), search, command.tries)]
    most = int(found.count) if command.search == "grid" else command.tries
    return [Contender(found.planner, planner, tuple(search.ask(most)))]


def _draft(data: str, path: Path) -> int:
    from .data import sketch
    from .data.schema import text_of
    from .door.common import writable
    from .report.store import write
    from .types import BadInput

    if path.suffix != ".toml":
        raise BadInput(f"{path}: give a name that ends in .toml")
    writable(path.parent)
    schema, notes = sketch(data)
    write(path, text_of(schema, notes).encode())
    print(*notes, f"{path}: a draft; read it before you use it (--schema {path})", sep="\n")
    return 0


def _cache() -> None:
    """Compiled programs are kept between runs, unless the user says where with JAX's own variable."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(Path.home() / ".cache" / "offing" / "jax"))


if __name__ == "__main__":
    sys.exit(main())
