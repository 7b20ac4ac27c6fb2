"""The command line: one subcommand per journey, flags read off the dataclasses of `flags`."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path
from typing import Any

import tyro

from .flags import (
    Collect,
    Command,
    Evaluate,
    Explain,
    Export,
    Inspect,
    Play,
    PosteriorCommand,
    Sorel,
    Torel,
    Watch,
)

BAD_INPUT = 2
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; bad input is one line on stderr and exit code 2."""
    command = tyro.cli(Command, prog="offing", description="Fully offline reinforcement learning.", args=arguments)  # type: ignore[call-overload]
    from .types import BadInput

    try:
        runs: dict[Any, Any] = {Collect: collect, Inspect: inspect, PosteriorCommand: posterior}
        runs |= {
            Sorel: sorel,
            Torel: torel,
            Evaluate: evaluate,
            Play: play,
            Export: export,
            Watch: watch,
            Explain: explain,
        }
        return runs[type(command)](command)
    except BadInput as error:
        print(f"offing: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        kept = "; the same command goes on from the last finished chunk" if hasattr(command, "fresh") else ""
        print(f"offing: interrupted{kept}", file=sys.stderr)
        return INTERRUPTED


def collect(command: Collect) -> int:
    from .online.collect import collect as run
    from .online.minari import check, save_minari
    from .report.store import save_columns
    from .types import BadInput

    form = command.format or {".npz": "npz", "": "minari"}.get(command.out.suffix)
    if form is None or (form == "npz") != (command.out.suffix == ".npz"):
        raise BadInput(f"{command.out}: give a name that ends in .npz, or that of a folder for a Minari dataset")
    _cache()
    _writable(command.out.parent)
    if form == "minari":
        check(command.out)
    asked = (command.policy, command.steps, command.noise, command.horizon)
    with _Bar() as bar:
        columns = run(command.kind, command.rows, command.seed, bar, *asked)
    if form == "minari":
        save_minari(command.out, columns, command.kind, command.policy)
    else:
        save_columns(command.out, columns)
    ended, cut = int(columns["terminated"].sum()), int(columns["truncated"].sum())
    print(f"{command.out}: {command.rows:,} rows, {ended + cut:,} episodes ({ended:,} ended, {cut:,} timed out)")
    return 0


def inspect(command: Inspect) -> int:

    from .data.inspect import inspect as look
    from .report import inspection

    if command.write_schema is not None:
        return _draft(command.data, command.write_schema)
    if command.out is not None:
        _writable(command.out)
    found = look(_load(command), command.seed)
    if command.out is not None:
        inspection.save_inspection(command.out, found)
    console = _console()
    print(f"{found['data']}: {found['rows']:,} rows, seed {command.seed}")
    for table in inspection.printed(found):
        console.print(table)
        print()
    print(*inspection.summary(found), sep="\n")
    where = "" if command.out is None else f"{command.out / inspection.PAGE}  "
    print(f"{where}online samples used: 0")
    return 0


def posterior(command: PosteriorCommand) -> int:
    began = time.perf_counter()
    import jax

    from . import __version__
    from .posterior.models.ensemble import space
    from .report import store
    from .report.table import settings_table, summary
    from .tune.choose import choose_posterior
    from .tune.run import Run

    _cache()
    log = _load(command)
    settings = space(command.scale, log.data.rows)
    run = store.identity(log.fingerprint, command.seed, settings, __version__)
    done, folder = _begun(command, run, store.finished(command.out))
    if done is None:
        for note in log.notes:
            print(f"{log.name}: {note}", file=sys.stderr)
        with _Bar() as bar:
            choice = choose_posterior(jax.random.key(command.seed), log, settings, command.seed, Run(folder, bar))
        facts = _facts(log, command, run, began)
        done = store.save_posterior(command.out, choice, facts)
        folder.clear()
    _console().print(settings_table(done))
    print()
    print(*summary(done, command.out), sep="\n")
    return 0


def sorel(command: Sorel) -> int:
    began = time.perf_counter()
    import jax

    from . import __version__
    from . import planner as planners
    from .data import broken
    from .posterior.models.ensemble import space
    from .report import results, store
    from .report.verdict import EXIT, verdict
    from .tune import engine
    from .tune.portfolio import portfolio
    from .tune.run import Run
    from .tune.systems import sorel as run_sorel
    from .types import BadInput

    _cache()
    if not 0 < command.level < 1:
        raise BadInput(f"--level {command.level}: a probability between 0 and 1")
    if command.baseline is not None and not math.isfinite(command.baseline):
        raise BadInput(f"--baseline {command.baseline}: not a number")
    where = engine.get(command.engine)
    log = _load(command)
    models = space(command.scale, log.data.rows)
    if command.paper and command.candidates:
        raise BadInput("--paper and --candidates: the paper's system has one planner; give one of the two flags")
    if command.paper:
        plans = planners.space("rppo", command.scale, core=command.core)
        tried = plans
    else:
        plans = portfolio(command.scale, log.task.actions, command.candidates, command.core)
        tried = plans.settings
    asked = ("sorel", "paper" if command.paper else "candidates", command.baseline, command.level)
    run = store.identity(log.fingerprint, command.seed, [*models, *tried], __version__, *asked)
    done, folder = _begun(command, run, results.found(command.out))
    if done is None:
        for note in log.notes:
            print(f"{log.name}: {note}", file=sys.stderr)
        with _Bar() as bar, where.session():
            key = jax.random.key(command.seed)
            result = run_sorel(key, log, models, plans, command.seed, run=Run(folder, bar, where))
        ruling = verdict(
            result.pil, result.predicted, result.behaviour, command.baseline, broken(log.data), command.level
        )
        facts = _facts(log, command, run, began)
        done = results.save_result(command.out, result, ruling, command.baseline, command.level, facts)
        _explained(command.out, log)
        folder.clear()
    print(*results.summary(done, command.out), sep="\n")
    return EXIT[done["verdict"]["word"]]


def torel(command: Torel) -> int:
    began = time.perf_counter()
    import jax

    from . import __version__
    from .posterior.models.ensemble import space
    from .report import ranking, results, store
    from .tune import engine
    from .tune.run import Run
    from .tune.systems import torel as run_torel
    from .types import BadInput

    _cache()
    if not 0 < command.level < 1:
        raise BadInput(f"--level {command.level}: a probability between 0 and 1")
    if command.seeds < 1:
        raise BadInput(f"--seeds {command.seeds}: at least 1")
    if command.halve and command.select != "predictive":
        raise BadInput("--halve: halving asks the worlds, so it goes with --select predictive alone")
    contenders = _contenders(command)
    where = engine.get(command.engine)
    log = _load(command)
    models = space(command.scale, log.data.rows)
    asked = ("torel", [c.name for c in contenders], command.seeds, command.halve, command.level)
    asked += (command.select, command.space, command.search, command.tries)
    settings = [*models, *(setting for c in contenders for setting in c.settings)]
    run = store.identity(log.fingerprint, command.seed, settings, __version__, *asked)
    done, folder = _begun(command, run, results.found(command.out))
    if done is None:
        for note in log.notes:
            print(f"{log.name}: {note}", file=sys.stderr)
        with _Bar() as bar, where.session():
            found = run_torel(
                jax.random.key(command.seed),
                log,
                models,
                contenders,
                command.seed,
                command.seeds,
                halve=command.halve,
                select=command.select,
                level=command.level,
                run=Run(folder, bar, where),
            )
        facts = {**_facts(log, command, run, began), "space": command.space}
        done = ranking.save_ranking(command.out, found, command.level, facts, bar.spent)
        _explained(command.out, log)
        folder.clear()
    _console().print(ranking.trials_table(done))
    print()
    print(*ranking.summary(done, command.out), sep="\n")
    return 0


def _contenders(command: Torel) -> list[Any]:
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


def evaluate(command: Evaluate) -> int:
    began = time.perf_counter()
    import jax

    from . import __version__
    from .posterior.models.ensemble import space
    from .report import evaluation_store as evaluations
    from .report import store
    from .report.evaluation_parts import Facts
    from .tune import engine
    from .tune.evaluate import evaluate as run_evaluate
    from .tune.run import Run
    from .types import BadInput
    from .value.estimators import methods as every_method

    _cache()
    if not 0 < command.level < 1:
        raise BadInput(f"--level {command.level}: a probability between 0 and 1")
    if command.within is not None and not 0 < command.within < math.inf:
        raise BadInput(f"--within {command.within}: a width above 0")
    where = engine.get(command.engine)
    log = _load(command)
    policies, likes = _policies(command, log)
    named = dict.fromkeys(("predictive", *command.methods))
    methods = every_method() if "all" in named else tuple(named)
    models = space(command.scale, log.data.rows)
    asked = (command.scale, methods, command.level, command.within, command.sampled, command.forget)
    asked += (command.judge,)
    run = store.identity(log.fingerprint, command.seed, models, __version__, "evaluate", *asked, likes)
    done, folder = _begun(command, run, store.read_json(command.out / evaluations.RESULT))
    result = None if done is None else evaluations.load_evaluation(command.out)
    if result is None:
        for note in log.notes:
            print(f"{log.name}: {note}", file=sys.stderr)
        with _Bar() as bar, where.session():
            found = run_evaluate(
                jax.random.key(command.seed),
                log,
                models,
                policies,
                methods,
                command.seed,
                command.scale,
                level=command.level,
                within=command.within,
                sampled=command.sampled,
                forget=command.forget,
                judges=command.judge,
                run=Run(folder, bar, where),
            )
        facts = Facts(**_facts(log, command, run, began))
        result = evaluations.save_evaluation(command.out, found, facts)
        folder.clear()
    _console().print(evaluations.estimates_table(result))
    print()
    print(*evaluations.summary(result, command.out), sep="\n")
    return 0


def _policies(command: Evaluate, log: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The policies asked for, by what the user calls them, and what tells each from others."""
    from .report.results import finished_policy
    from .tune.judge import acts_like
    from .types import BadInput
    from .value.foreign import check
    from .value.policies import resolve

    if len(set(command.policy)) != len(command.policy):
        raise BadInput("--policy: the same one is named twice")
    width = log.data.steps.obs.shape[1]
    found = {name: resolve(name, log.task, width, finished_policy) for name in command.policy}
    for name, policy in found.items():
        check(policy, log.data, log.task, name)
    return found, {name: acts_like(policy, log) for name, policy in found.items()}


def export(command: Export) -> int:
    from .ship.export import export as run

    if command.to == "mlflow":
        from .ship.tracked import log_run

        print(log_run(command.folder))
        return 0
    if command.out is not None:
        _writable(command.out)
    print(*run(command.folder, command.to, command.out), sep="\n")
    return 0


def watch(command: Watch) -> int:
    from .data import load
    from .watch.earning import EXIT
    from .watch.page import save
    from .watch.watch import Watch as Watching

    _cache()
    out = command.folder if command.out is None else command.out
    _writable(out)
    log = _learned_from(command)
    watching = Watching.of(command.folder, log)
    watched = watching.update(
        load(command.data, schema=command.schema, root=os.environ.get("MINARI_DATASETS_PATH"))
    )
    files = save(out, watched, command.data)
    print(*watched.sentences(), files[1], sep="\n")
    return EXIT[watched.word]


def explain(command: Explain) -> int:
    from .explain.page import attach

    _cache()
    _writable(command.folder)
    found = attach(command.folder, _learned_from(command))
    print(*found.sentences(), command.folder / "explain.html", sep="\n")
    return 0


def _explained(out: Path, log: Any) -> None:
    """Adds to a finished run's page what the policy does; where that fails, the page stands without."""
    from .explain.page import attach
    from .value.left_out import LeftOut, attempt

    found = attempt(lambda: attach(out, log))
    if isinstance(found, LeftOut):
        print(f"{out}: the policy is not explained, since {found.reason}", file=sys.stderr)


def _learned_from(command: Any) -> Any:
    """The log that the run in a command's folder learned from."""
    from .data import load
    from .report import results
    from .types import BadInput

    report = results.found(command.folder)
    if report is None:
        raise BadInput(f"{command.folder}: holds no finished result")
    root = os.environ.get("MINARI_DATASETS_PATH")
    try:
        return load(
            command.log or report["data"], report["rows"], report["seed"], schema=command.schema, root=root
        )
    except BadInput as error:
        raise BadInput(f"--log: give the log that the policy was learned from: {error}") from None


def play(command: Play) -> int:
    from .online.play import play as run
    from .online.play import summary, task_of
    from .report import results
    from .types import BadInput
    from .value import policies

    _cache()
    if (command.folder is None) == (command.policy is None):
        raise BadInput("offing play: give the folder of a finished run or --policy, one of the two")
    if command.folder is None:
        task, width = task_of(command.env)
        policy, told = policies.resolve(str(command.policy), task, width, results.finished_policy), {}
    else:
        (policy, task), told = results.load_policy(command.folder), results.found(command.folder) or {}
    with _Bar() as bar:
        played = run(policy, task, command.env, command.episodes, command.seed, command.sampled, bar)
    said = summary(played, told.get("return"))
    if command.folder is not None:
        results.save_play(command.folder, said)
    earned = said["return"]
    error = "" if earned["stderr"] is None else f" ± {earned['stderr']:,.1f}"
    words = f"{command.env}: realised return {earned['mean']:,.1f}{error} over {command.episodes} episodes"
    if "predicted" in said:
        (low, high), where = said["predicted"]["interval"], "inside" if said["inside"] else "OUTSIDE"
        words += (
            f", {where} the predicted {said['predicted']['level']:.0%} interval {low:,.1f} … {high:,.1f} "
            f"(median {said['predicted']['median']:,.1f})"
        )
    print(words)
    return 0


def _begun(command: Any, run: str, done: dict[str, Any] | None) -> tuple[dict[str, Any] | None, Any]:
    """The result, if this very run is finished, and the folder that keeps its chunks."""
    from .report import store
    from .types import BadInput

    _writable(command.out)
    folder = store.Folder(command.out, run)
    if command.fresh:
        folder.clear()
        return None, folder
    if done is not None and done.get("run") != run:
        raise BadInput(f"{command.out}: holds the result of another run; choose another folder, or pass --fresh")
    if done is not None:
        print(f"{command.out}: already finished; --fresh runs it again", file=sys.stderr)
    return done, folder


def _console() -> Any:
    """The terminal; what a pipe or a file can hold, unlike a terminal, is not for us to guess."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=140)


def _facts(log: Any, command: Any, run: str, began: float) -> dict[str, Any]:
    """What was run, on what."""
    import jax

    from . import __version__

    return {
        "data": log.name,
        "fingerprint": log.fingerprint,
        "run": run,
        "rows": log.data.rows,
        "seed": command.seed,
        "scale": command.scale,
        "version": __version__,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "seconds": round(time.perf_counter() - began, 1),
    }


def _load(command: Any) -> Any:
    """The log that a command names; where Minari keeps its own is the user's to say, by Minari's variable."""
    from .data import load

    root = os.environ.get("MINARI_DATASETS_PATH")
    return load(command.data, command.rows, command.seed, schema=command.schema, root=root)


def _draft(data: str, path: Path) -> int:
    from .data import sketch
    from .data.schema import text_of
    from .report.store import write
    from .types import BadInput

    if path.suffix != ".toml":
        raise BadInput(f"{path}: give a name that ends in .toml")
    _writable(path.parent)
    schema, notes = sketch(data)
    write(path, text_of(schema, notes).encode())
    print(*notes, f"{path}: a draft; read it before you use it (--schema {path})", sep="\n")
    return 0


def _cache() -> None:
    """Compiled programs are kept between runs, unless the user says where with JAX's own variable."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(Path.home() / ".cache" / "offing" / "jax"))


def _writable(folder: Path) -> None:
    """Raises BadInput unless a file could be written there; makes nothing."""
    from .types import BadInput

    near = folder
    while not near.exists() and near != near.parent:
        near = near.parent
    if not near.is_dir() or not os.access(near, os.W_OK):
        raise BadInput(f"{folder}: cannot be written to")


class _Bar:
    """Progress: a bar on a terminal, plain lines otherwise; both on stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        self.bar = Progress(console=console, transient=True) if console.is_terminal else None
        self.tasks: dict[str, Any] = {}
        self.began = self.last = time.perf_counter()
        self.spent: dict[str, float] = {}  # seconds by what was done, its first word

    def __enter__(self) -> _Bar:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if done:
            self.spent[what.split()[0]] = self.spent.get(what.split()[0], 0.0) + now - self.last
        self.last = now
        if self.bar is None:
            print(
                f"{what}: {done}/{total} after {time.perf_counter() - self.began:.0f} s",
                file=sys.stderr,
                flush=True,
            )
            return
        if what not in self.tasks:
            self.tasks[what] = self.bar.add_task(what, total=total)
        self.bar.update(self.tasks[what], completed=done, total=total)


if __name__ == "__main__":
    sys.exit(main())
