"""What subcommands share: the log that they name, how their run goes, and what they print."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..flags import ALongRun, Explain, OfALog, Output, Watch

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..data import Log
    from ..door.common import Options
    from ..progress import Bar
    from ..report.jsonable import Json


def begin(command: OfALog) -> tuple[Log, Bar]:
    """The log that a command names, and its progress; where Minari keeps its own is for the user's variable."""
    from ..data import load
    from ..door.common import writable
    from ..progress import Bar

    keep_programs()
    out = command.folder if isinstance(command, ALongRun) else getattr(command, "out", None)
    if out is not None:
        writable(out)
    bar = Bar(not command.quiet, lines=True, timings=command.timings)
    root = os.environ.get("MINARI_DATASETS_PATH")
    several = [command.data, *getattr(command, "new", ())]
    source = several if len(several) > 1 else command.data
    return load(source, command.rows, command.seed, schema=command.schema, root=root), bar


def learned_from(command: Watch | Explain) -> Log:
    """The log that the run in a command's folder learned from."""
    from ..data import load
    from ..report import results
    from ..report.reports import SorelReport
    from ..types import BadInput

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


def how(command: ALongRun, bar: Bar) -> Options:
    """How the run goes."""
    where = getattr(command, "engine", "here")
    return {"out": command.folder, "fresh": command.fresh, "engine": where, "progress": bar}


def show(
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
        print(*timings(bar), sep="\n", file=sys.stderr)
    if command.json:
        print(json.dumps(plain, allow_nan=False))


def timings(bar: Bar) -> list[str]:
    """What each kind of work took, longest first, and last of all what lies between them."""
    from ..progress import Stage

    stages = sorted(bar.stages.items(), key=lambda item: -item[1].seconds)
    whole = bar.whole()
    known = [stage for _, stage in stages]
    between = Stage(*(all_of - sum(parts) for all_of, *parts in zip(whole, *known, strict=True)))
    lines = [f"{'timings':16} {'seconds':>8} {'compile':>8} {'run':>8} {'host':>8} {'programs':>9}"]
    for name, stage in (*stages, ("between", between), ("in all", whole)):
        parts = f"{stage.seconds:8.1f} {stage.compiling:8.1f} {stage.running:8.1f} {stage.host:8.1f}"
        lines.append(f"{name:16} {parts} {stage.programs:9.0f}")
    return lines


def keep_programs() -> None:
    """Compiled programs are kept between runs, unless the user says where with JAX's own variable."""
    import jax

    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)  # most are small, and there are many
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(Path.home() / ".cache" / "offing" / "jax"))
