"""Progress where you can see it: a bar on a terminal and in a notebook, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from functools import cache
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rich.console import Console
from rich.progress import Progress, TaskID

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")


class Stage(NamedTuple):
    """What one kind of work has taken: seconds in all, of compiling and of running, and programs."""

    seconds: float = 0.0
    compiling: float = 0.0
    running: float = 0.0
    programs: float = 0

    @property
    def host(self) -> float:
        """Seconds of everything else: reading, numpy, drawing, single operations."""
        return max(0.0, self.seconds - self.compiling - self.running)


class Meter:
    """What programs take: listens to JAX, and waits for what it runs."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []  # of tracing, lowering and compiling, or reading what was kept
        self.programs: list[str] = []
        self.running = 0.0
        self.lock = Lock()  # programs are compiled in several threads

    def hear(self, event: str, duration_secs: float, **about: str | int) -> None:
        """Notes one part of compiling; parts of that part, which were heard before it, are not counted again."""
        if not event.startswith("/jax/core/compile/"):
            return
        with self.lock:
            now = time.perf_counter()
            begin = now - duration_secs
            while self.spans and self.spans[-1][0] >= begin:
                self.spans.pop()
            self.spans.append((max(begin, self.spans[-1][1]) if self.spans else begin, now))
            if event.endswith("backend_compile_duration"):
                self.programs.append(str(about.get("fun_name", "")))

    @property
    def compiling(self) -> float:
        """Seconds so far."""
        with self.lock:
            return sum(end - begin for begin, end in self.spans)

    def measure(self, run: Callable[[], R]) -> R:
        """Runs a program, and notes what that took beside compiling it."""
        import jax

        began, before = time.perf_counter(), self.compiling
        result = jax.block_until_ready(run())
        self.running += time.perf_counter() - began - (self.compiling - before)
        return result

    def read(self) -> Stage:
        """The clock, and all so far."""
        return Stage(time.perf_counter(), self.compiling, self.running, len(self.programs))


@cache
def meter() -> Meter:
    """The process's one: JAX forgets no listener."""
    import jax

    from .compiling import MEASURES

    one = Meter()
    jax.monitoring.register_event_duration_secs_listener(one.hear)
    MEASURES.append(one.measure)
    return one


class Bar:
    """Called with (what, done, total); `lines` writes plain lines to stderr where no bar can be shown.

    With `timings` it waits for every program, and so knows what compiling and running took.
    """

    def __init__(self, show: bool = True, lines: bool = False, timings: bool = False) -> None:
        console = Console(stderr=True)
        able = show and (console.is_terminal or console.is_jupyter)
        self.bar = Progress(console=console, transient=True) if able else None
        self.lines = show and lines and not able
        self.tasks: dict[str, TaskID] = {}
        self.stages: dict[str, Stage] = {}  # by what was done, its first word
        self.meter = meter() if timings else None
        self.first = self.before = self._read()

    def _read(self) -> Stage:
        """The clock and the meter, as they stand."""
        return Stage(time.perf_counter()) if self.meter is None else self.meter.read()

    def whole(self) -> Stage:
        """All that was spent since it was made."""
        return Stage(*(now - first for now, first in zip(self._read(), self.first, strict=True)))

    @property
    def spent(self) -> dict[str, float]:
        """Seconds by what was done."""
        return {name: stage.seconds for name, stage in self.stages.items()}

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return round(self.whole().seconds, 1)

    def __enter__(self) -> Bar:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        read, name = self._read(), what.split()[0]
        if done:
            so_far = self.stages.get(name, Stage())
            self.stages[name] = Stage(
                *(old + new - last for old, new, last in zip(so_far, read, self.before, strict=True))
            )
        self.before = read
        if self.lines:
            print(
                f"{what}: {done}/{total} after {read.seconds - self.first.seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        if self.bar is None:
            return
        if what not in self.tasks:
            self.tasks[what] = self.bar.add_task(what, total=total)
        self.bar.update(self.tasks[what], completed=done, total=total)
