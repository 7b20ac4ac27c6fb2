"""The command line: one subcommand per journey, flags read off dataclasses."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

BAD_INPUT = 2
INTERRUPTED = 130


@dataclass(frozen=True)
class Collect:
    """Make a log in a true environment, for samples, tests and experiments (needs the extra `envs`)."""

    kind: Positional[
        Literal[
            "gymnax-pendulum-random",
            "gymnax-cartpole-random",
            "brax-halfcheetah-full-replay",
            "brax-hopper-full-replay",
            "brax-walker2d-full-replay",
        ]
    ]
    """Environment and who acts in it: `random` is an ensemble of randomly initialised policies taking turns;
    `full-replay` is all that an agent did while it learned, from its first stumbles to its best."""
    rows: int
    """Steps to log."""
    out: Path
    """Where to write it, an .npz file."""
    seed: int = 0
    """Same seed, same log."""


@dataclass(frozen=True)
class PosteriorCommand:
    """Learn a posterior over worlds from a log, choose its settings by PIL, and say if it is calibrated."""

    data: Positional[str]
    """The log: an .npz file, or an embedded sample (offing:pendulum, offing:cartpole)."""
    out: Path
    """Folder for posterior.json and the posterior itself."""
    rows: int | None = None
    """Use this many rows of it (default: all)."""
    seed: int = 0
    """Same seed, same result."""
    scale: Literal["smoke", "quick", "standard", "paper"] = "standard"
    """How much to try: smoke, whether the log goes through (its numbers mean nothing); quick, 12 small settings;
    standard, 24, a few minutes on two cores; paper, 48 large ones, for a GPU."""
    fresh: bool = False
    """Start anew, even if OUT holds a finished or an interrupted run."""


Command = (
    Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[PosteriorCommand, tyro.conf.subcommand("posterior")]
)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; bad input is one line on stderr and exit code 2."""
    command = tyro.cli(Command, prog="offing", description="Fully offline reinforcement learning.", args=arguments)  # type: ignore[call-overload]
    from .types import BadInput

    try:
        return collect(command) if isinstance(command, Collect) else posterior(command)
    except BadInput as error:
        print(f"offing: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("offing: interrupted; the same command goes on from the last finished chunk", file=sys.stderr)
        return INTERRUPTED


def collect(command: Collect) -> int:
    from .online.collect import collect as run
    from .report.store import save_columns
    from .types import BadInput

    if command.out.suffix != ".npz":
        raise BadInput(f"{command.out}: give a name that ends in .npz")
    _writable(command.out.parent)
    with _Bar() as bar:
        columns = run(command.kind, command.rows, command.seed, bar)
    save_columns(command.out, columns)
    ended, cut = int(columns["terminated"].sum()), int(columns["truncated"].sum())
    print(f"{command.out}: {command.rows:,} rows, {ended + cut:,} episodes ({ended:,} ended, {cut:,} timed out)")
    return 0


def posterior(command: PosteriorCommand) -> int:
    began = time.perf_counter()
    import jax
    from rich.console import Console

    from . import __version__
    from .data import load
    from .posterior.spaces import space
    from .report import store
    from .report.table import settings_table, summary
    from .tune.choose import choose_posterior
    from .types import BadInput

    _cache()
    settings = space(command.scale)
    log = load(command.data, command.rows, command.seed)
    run = store.identity(log.fingerprint, command.seed, settings, __version__)
    _writable(command.out)
    done = None if command.fresh else store.finished(command.out)
    if done is not None and done.get("run") != run:
        raise BadInput(f"{command.out}: holds the result of another run; choose another folder, or pass --fresh")
    if done is not None:
        print(f"{command.out}: already finished; --fresh runs it again", file=sys.stderr)
    else:
        for note in log.notes:
            print(f"{log.name}: {note}", file=sys.stderr)
        folder = store.Folder(command.out, run)
        if command.fresh:
            folder.clear()
        with _Bar() as bar:
            choice = choose_posterior(jax.random.key(command.seed), log, settings, command.seed, folder, bar)
        facts = {
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
        done = store.save_posterior(command.out, choice, facts)
        folder.clear()
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)  # what a pipe or a file can hold, unlike a terminal, is not for us to guess
    console.print(settings_table(done))
    print()
    print(*summary(done, command.out), sep="\n")
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
        self.began = time.perf_counter()

    def __enter__(self) -> _Bar:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
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
