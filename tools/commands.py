"""Every command and its help, as the real parser prints it, in Markdown: the page reference/commands of the site.

python -m tools.commands
"""

import contextlib
import io
import os
import re
from typing import get_args

import tyro

from offing.flags import Command

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def names() -> list[str]:
    """The subcommands, in the order in which the parser has them."""
    return [each.name for one in get_args(Command) for each in get_args(one) if hasattr(each, "name")]


def help_of(*command: str) -> str:
    """What `offing COMMAND --help` prints, without colours."""
    os.environ["COLUMNS"] = "78"  # so that the page does not depend on who prints it
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        tyro.cli(Command, prog="offing", args=[*command, "--help"], console_outputs=True)  # type: ignore[call-overload]
    return "\n".join(line.rstrip() for line in COLOUR.sub("", shown.getvalue()).strip().splitlines())


def markdown() -> str:
    """The page: one section for each command."""
    head = "# Commands\n\nThis page is printed by the parser itself (`python -m tools.commands`).\n"
    whole = f"\n```text\n{help_of()}\n```\n"
    parts = (f"\n## offing {name}\n\n```text\n{help_of(name)}\n```\n" for name in names())
    return head + whole + "".join(parts)


if __name__ == "__main__":
    print(markdown())
