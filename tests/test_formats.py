"""Formats of logs: the folder is the registry, and another package adds one by an entry point."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import offing
from offing.data.opening import formats
from offing.data.sources import Request, Source, registry

PACKAGE = """
import json
from pathlib import Path
from offing.data import Source, load


def read(request):
    rows = [json.loads(line) for path in request.paths for line in Path(path).read_text().splitlines()]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return load(columns, schema=request.schema)._replace(name=request.name)


source = Source("a .jsonl file", read, suffixes=(".jsonl",))
"""
LINES = [
    {
        "obs": [i / 2, 0.5 - i],
        "action": 0.1 * i,
        "reward": 1.0,
        "truncated": i == 5,
        "next_obs": [i + 0.5, -i - 0.5],
    }
    for i in range(6)
]


@pytest.fixture
def package(tmp_path):
    """A package that adds the format `jsonl`, as it lies when installed."""
    (tmp_path / "lines.py").write_text(PACKAGE)
    info = tmp_path / "lines-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[offing.sources]\njsonl = lines:source\n")
    import json

    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(line) for line in LINES))
    return tmp_path


def contract(name: str, source: Source) -> None:
    """What every format must be."""
    assert isinstance(source, Source), name
    assert callable(source.load), name
    assert source.suffixes or source.prefix or source.takes, f"{name} opens nothing"
    assert all(suffix.startswith(".") for suffix in source.suffixes), name
    assert source.prefix == "" or source.prefix.endswith(":"), name
    assert source.about or source.takes, f"{name} is named in no help"
    if source.suffixes:
        missing = Request([__import__("pathlib").Path("/nowhere/log" + source.suffixes[0])], "log")
        with pytest.raises((offing.BadInput, FileNotFoundError)):
            source.load(missing)


@pytest.mark.parametrize("name", registry.names())
def test_every_format_keeps_the_contract(name):
    source = registry.get(name)
    contract(name, source)
    assert registry.get(name) is source  # asked for again, it is the same one


def test_no_two_formats_open_the_same():
    known = formats().values()
    suffixes = [suffix for source in known for suffix in source.suffixes]
    prefixes = [source.prefix for source in known if source.prefix]
    assert len(set(suffixes)) == len(suffixes)
    assert len(set(prefixes)) == len(prefixes)


def test_another_package_adds_a_format(package, monkeypatch):
    monkeypatch.syspath_prepend(str(package))
    assert "jsonl" in registry.names()
    contract("jsonl", registry.get("jsonl"))
    log = offing.load(str(package / "log.jsonl"))
    np.testing.assert_allclose(log.data.steps.obs[:, 0], np.arange(6) / 2)
    assert "a .jsonl file" in offing.data.help_text()


def test_the_command_line_finds_it(package):
    code = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(package)!r})
        from offing.__main__ import main
        try:
            main(["inspect", "--help"])
        except SystemExit:
            pass
        main(["inspect", {str(package / "log.jsonl")!r}])
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "a .jsonl file" in " ".join(done.stdout.replace("│", " ").split()), done.stderr
    assert "6 rows" in done.stdout
