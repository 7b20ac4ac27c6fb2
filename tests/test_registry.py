"""Parts that another package adds: found by name, on the command line, in its help, and by the contract tests."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from offing import planner as planners
from offing.types import BadInput, Planner

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "add-a-planner.md"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package that adds the planner of the documentation, as pip would leave it: code and a dist-info folder."""
    folder = tmp_path_factory.mktemp("site")
    code = re.search(r"```python\n(.*?)\nlog = ", PAGE.read_text(), re.DOTALL).group(1)
    (folder / "elsewhere.py").write_text(code)
    told = folder / "elsewhere-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text(
        "[offing.planners]\nmine = elsewhere:planner\niql = elsewhere:planner\n"
    )
    return folder


@pytest.fixture
def broken(package, tmp_path, monkeypatch):
    """Another one, whose planners cannot be used."""
    (tmp_path / "broken_part.py").write_text("import nothing_of_that_name\n")
    told = tmp_path / "broken-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text(
        "[offing.planners]\nbad = broken_part:planner\nodd = elsewhere:Hypers\n"
    )
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.fixture
def installed(package, monkeypatch):
    monkeypatch.syspath_prepend(str(package))


def run(package, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        env={
            "PYTHONPATH": f"{package}:{Path(__file__).parents[1]}",
            "JAX_PLATFORMS": "cpu",
            "PATH": "",
            "HOME": "/tmp",
        },
        capture_output=True,
        text=True,
    )


def test_a_planner_of_another_package_is_found_by_name(installed):
    assert "mine" in planners.names()
    assert isinstance(planners.get("mine"), Planner)
    assert len(planners.space("mine")) == 3
    assert planners.get("iql").name == "iql"  # nobody takes the name of one that is there


def test_what_cannot_be_used_is_said_in_one_line(broken):
    with pytest.raises(BadInput, match=r"broken_part:planner cannot be imported .*nothing_of_that_name"):
        planners.get("bad")
    with pytest.raises(BadInput, match="elsewhere:Hypers is no Planner"):
        planners.get("odd")


def test_the_smallest_planner_is_short(package):
    lines = (package / "elsewhere.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < 80


def test_it_is_in_the_help_and_runs_from_the_command_line(package, tmp_path):
    said = run(package, "-m", "offing", "torel", "--help")
    assert re.search(r"\bmine\b", said.stdout)
    said = run(
        package, "-m", "offing", "torel", "offing:cartpole", "--rows", "300", "--planner", "mine",
        "--space", "smoke", "--scale", "smoke", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "mine" in said.stdout


def test_the_contract_tests_cover_it(package):
    listed = run(
        package,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-o",
        "addopts=",
        str(Path(__file__).parent / "test_planner.py"),
    )
    assert "mine-box" in listed.stdout
