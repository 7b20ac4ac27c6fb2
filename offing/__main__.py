"""The command line: parse, call one function of `offing.door`, print. One subcommand per journey.

A subcommand is a dataclass of flags in `flags` and a function in `commands`; `COMMANDS` joins the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import tyro

from .commands import acting, learning
from .flags import (
    Collect,
    Command,
    Evaluate,
    Explain,
    Export,
    Inspect,
    Play,
    Posterior,
    Sample,
    Sorel,
    Torel,
    Watch,
)
from .version import __version__

BAD_INPUT = 2
INTERRUPTED = 130
COMMANDS: dict[type, Callable[..., int]] = {
    Sorel: learning.sorel,
    Torel: learning.torel,
    Evaluate: learning.evaluate,
    Posterior: learning.posterior,
    Inspect: learning.inspect,
    Play: acting.play,
    Collect: acting.collect,
    Sample: acting.sample,
    Export: acting.export,
    Watch: acting.watch,
    Explain: acting.explain,
}


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


if __name__ == "__main__":
    sys.exit(main())
