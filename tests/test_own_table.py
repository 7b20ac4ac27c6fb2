"""The way of a fresh user, as README prints it: a table, a draft, one line edited, a verdict, and the truth.

And the pages that come of it, in a headless browser where there is one.
"""

import json
import re
import shlex
from pathlib import Path

import pytest
from browser import BROWSER, measure

from offing.__main__ import main
from offing.watch.earning import EXIT

README = (Path(__file__).parents[1] / "README.md").read_text()
SHORT = {"sorel": ["--scale", "smoke"], "play": ["--episodes", "50"]}  # so that the suite stays short
VERDICTS = {"GO": 0, "NO-GO": 3, "NOT-ENOUGH-EVIDENCE": 4}


def edit(path, line):
    """Puts a line in the place of the draft's line with the same key; no other is touched."""
    key = line.split(" = ")[0]
    text = path.read_text()
    changed, count = re.subn(rf"^{key} = .*$", lambda _: line, text, flags=re.MULTILINE)
    assert count == 1
    assert len(changed.splitlines()) == len(text.splitlines())
    path.write_text(changed)


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The folder in which README's commands were run, and how each of them ended."""
    folder = tmp_path_factory.mktemp("user")
    section = re.search(r"## Your own table\n(.*?)\n## ", README, re.DOTALL)
    assert section is not None
    ended = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for kind, text in re.findall(r"```(sh|toml)\n(.*?)```", section[1], re.DOTALL):
            if kind == "toml":
                edit(Path("s.toml"), text.strip())
                continue
            for line in text.splitlines():
                _, command, *rest = shlex.split(line)
                ended[command] = main([command, *rest, *SHORT.get(command, [])])
    return folder, ended


def test_the_way_that_readme_prints(walked):
    folder, ended = walked
    out = folder / "out" / "sorel-coldstore"
    result = json.loads((out / "result.json").read_text())
    assert ended == {"sample": 0, "inspect": 0, "sorel": VERDICTS[result["verdict"]["word"]], "play": 0}
    assert list(ended) == ["sample", "inspect", "sorel", "play"]
    played = json.loads((out / "play.json").read_text())
    low, high = played["predicted"]["interval"]
    assert played["inside"] == (low <= played["return"]["mean"] <= high)
    assert (out / "report.html").exists()
    readings = result["posterior"]["readings"]
    untouched = readings["not changed by any action"]
    assert {"setpoint", "outdoor", "price"} <= set(untouched)  # as the schema says
    assert "temp" not in untouched
    assert ", ".join(untouched) in (out / "report.html").read_text()


@pytest.mark.skipif(BROWSER is None, reason="no headless browser")
def test_no_page_is_cut_off_at_any_width_and_bad_news_has_no_tick(walked, tmp_path, monkeypatch):
    monkeypatch.chdir(walked[0])
    table = ["coldstore.csv", "--schema", "s.toml"]
    run = "out/sorel-coldstore"
    small = ["--rows", "600", "--scale", "smoke"]
    assert main(["inspect", *table, "--out", "out/inspect"]) == 0
    assert main(["watch", run, "coldstore.csv", "--schema", "s.toml"]) in EXIT.values()
    assert main(["torel", *table, *small, "--planner", "bc", "--planner", "iql", "--space", "smoke"]) == 0
    policies = ["--policy", run, "--policy", "out/torel-coldstore"]
    assert main(["evaluate", *table, *small, *policies, "--methods", "fqe"]) == 0
    pages = {
        "report": Path(run, "report.html"),
        "explain": Path(run, "explain.html"),
        "watch": Path(run, "watch.html"),
        "inspect": Path("out/inspect/inspect.html"),
        "ranking": Path("out/torel-coldstore/report.html"),
        "evaluation": Path("out/evaluate-coldstore/evaluation.html"),
    }
    measured = measure(pages, tmp_path)
    assert len(measured) == 3 * len(pages)
    assert [each for each in measured if each["problems"]] == []
    ticks = {each["page"]: each["ticks"] for each in measured}
    assert not [text for texts in ticks.values() for text in texts if re.match(r"No\b|It cannot|Not\b", text)]
    checked = json.loads(Path("out/evaluate-coldstore/evaluation.json").read_text())["checks"]
    chances = [text for text in ticks["evaluation"] if text.startswith("With probability")]
    assert all(int(re.findall(r"\d+", text)[0]) >= 50 for text in chances)  # of being better than the log
    passed = [check for check in checked if check["passed"] and check["name"] != "worse"]
    assert len(ticks["evaluation"]) - len(chances) == len(passed)
    reasons = json.loads(Path(run, "result.json").read_text())["verdict"]["reasons"]
    assert len(ticks["report"]) == sum("? Yes: " in reason for reason in reasons)


def test_a_sample_is_written_once_and_never_over_another_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sample", "coldstore"]) == main(["sample", "offing:coldstore"]) == 0
    Path("mine.csv").write_text("a,b\n1,2\n")
    capsys.readouterr()
    for name, out, words in [("coldstore", "mine.csv", "is there already"), ("coldstore", "x.npz", ".csv file"),
                             ("nothing", "x.csv", "offing:coldstore")]:  # fmt: skip
        assert main(["sample", name, "--out", out]) == 2
        line = capsys.readouterr().err
        assert words in line
        assert line.count("\n") == 1
    assert Path("mine.csv").read_text() == "a,b\n1,2\n"
