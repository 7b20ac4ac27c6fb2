"""README and docs: every Python snippet runs as printed, every command is one that the program takes."""

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
import tyro

from offing.flags import Command

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


GENERATED = {ROOT / f"docs/reference/{name}.md" for name in ("api", "commands")}  # by tools/site.py
COMMANDS = tuple(get_args(each)[0] for each in get_args(Command))


def blocks(kind):
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}-{i}")
        for page in PAGES
        for i, text in enumerate(re.findall(rf"```{kind}\n(.*?)```", page.read_text(), re.DOTALL))
    ]


@pytest.mark.parametrize("text", blocks("python"))
def test_snippets_run(text, capsys):
    exec(compile(text, "snippet", "exec"), {})
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("text", blocks("sh"))
def test_commands_are_taken(text):
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("offing ")]
    makes = [line.split()[1] for line in text.splitlines() if line.startswith("make ")]
    assert lines or makes
    for line in lines:
        taken = tyro.cli(Command, args=line[1:])  # type: ignore[call-overload]
        assert isinstance(taken, COMMANDS)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(makes) <= set(targets)


def test_links_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            target = (page.parent / link).resolve()
            assert target.exists() or target in GENERATED, f"{page.relative_to(ROOT)}: {link}"
