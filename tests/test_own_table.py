"""The way of a fresh user, as README prints it: a table, a draft, one line edited, a verdict, and the truth."""

import json
import re
import shlex
from pathlib import Path

from offing.__main__ import main

README = (Path(__file__).parents[1] / "README.md").read_text()
SHORT = {"sorel": ["--scale", "smoke"], "play": ["--episodes", "50"]}  # so that the suite stays short


def test_the_way_that_readme_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    section = re.search(r"## Your own table\n(.*?)\n## ", README, re.DOTALL)
    assert section is not None
    blocks = re.findall(r"```(sh|toml)\n(.*?)```", section[1], re.DOTALL)
    commands = [line for kind, text in blocks if kind == "sh" for line in text.splitlines()]
    assert [shlex.split(line)[1] for line in commands] == ["sample", "inspect", "sorel", "play"]
    ended = {}
    for kind, text in blocks:
        if kind == "toml":
            edit(Path("s.toml"), text.strip())
            continue
        for line in text.splitlines():
            _, command, *rest = shlex.split(line)
            ended[command] = main([command, *rest, *SHORT.get(command, [])])
            assert "Traceback" not in capsys.readouterr().err
    folder = Path("out/sorel-coldstore")
    result = json.loads((folder / "result.json").read_text())
    assert ended == {"sample": 0, "inspect": 0, "sorel": ended["sorel"], "play": 0}
    assert ended["sorel"] == {"GO": 0, "NO-GO": 3, "NOT-ENOUGH-EVIDENCE": 4}[result["verdict"]["word"]]
    played = json.loads((folder / "play.json").read_text())
    low, high = played["predicted"]["interval"]
    assert played["inside"] == (low <= played["return"]["mean"] <= high)
    assert (folder / "report.html").exists()


def edit(path, line):
    """Puts a line in the place of the draft's line with the same key; no other is touched."""
    key = line.split(" = ")[0]
    text = path.read_text()
    changed, count = re.subn(rf"^{key} = .*$", lambda _: line, text, flags=re.MULTILINE)
    assert count == 1
    assert len(changed.splitlines()) == len(text.splitlines())
    path.write_text(changed)
