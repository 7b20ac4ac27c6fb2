"""Progress where you can see it: a bar on a terminal and in a notebook, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, TaskID


class Bar:
    """Called with (what, done, total); `lines` writes plain lines to stderr where no bar can be shown."""

    def __init__(self, show: bool = True, lines: bool = False) -> None:
        console = Console(stderr=True)
        able = show and (console.is_terminal or console.is_jupyter)
        self.bar = Progress(console=console, transient=True) if able else None
        self.lines = show and lines and not able
        self.tasks: dict[str, TaskID] = {}
        self.began = self.last = time.perf_counter()
        self.spent: dict[str, float] = {}  # seconds by what was done, its first word

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return round(time.perf_counter() - self.began, 1)

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
        now = time.perf_counter()
        if done:
            self.spent[what.split()[0]] = self.spent.get(what.split()[0], 0.0) + now - self.last
        self.last = now
        if self.lines:
            print(f"{what}: {done}/{total} after {now - self.began:.0f} s", file=sys.stderr, flush=True)
        if self.bar is None:
            return
        if what not in self.tasks:
            self.tasks[what] = self.bar.add_task(what, total=total)
        self.bar.update(self.tasks[what], completed=done, total=total)
