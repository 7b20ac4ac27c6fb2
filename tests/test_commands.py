"""The commands as a user runs them: results, errors, kills and resumption."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import jax
import numpy as np
import pytest

import offing
from offing.__main__ import main
from offing.posterior import walk
from offing.posterior.models.ensemble import space as world_space
from offing.report import store
from offing.report.reports import Facts
from offing.report.results import load_policy
from offing.tune.choose import choose_posterior
from offing.types import Seen

ROWS = ("--rows", "300", "--scale", "smoke")
RESULT = {
    "system",
    "promise",
    "rows",
    "seed",
    "scale",
    "posterior",
    "policy",
    "pil",
    "value",
    "return",
    "support",
    "verdict",
    "seconds",
    "online_samples",
}
KEYS = {"rows", "seed", "settings", "chosen", "pil", "seconds", "online_samples", "noise_scale", "replay", "notes"}


def run(*arguments, **more):
    command = [sys.executable, "-m", "offing", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **more)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("posterior") / "out"
    assert main(["posterior", "offing:cartpole", *ROWS, "--out", str(out)]) == 0
    return out


def test_posterior_writes_what_it_promises(finished):
    result = json.loads((finished / "posterior.json").read_text())
    assert result.keys() >= KEYS
    assert result["rows"] == 300
    assert result["online_samples"] == 0
    assert len(result["settings"]) == len(world_space("smoke"))
    chosen = result["settings"][result["chosen"]]
    for name in ("error", "spread", "noise", "total", "imbalance", "calibrated"):
        assert chosen[name] == result["pil"][name]
    assert result["pil"]["bound"].keys() == {"theorem", "pinsker", "value", "vacuous"}
    assert np.isclose(result["pil"]["total"], result["pil"]["error"] + result["pil"]["spread"])
    written = {"posterior.json", "posterior.html", result["world"]["arrays"]}
    assert {file.name for file in finished.iterdir()} == written


def test_the_table_shows_every_setting_and_the_choice(finished, capsys):
    assert main(["posterior", "offing:cartpole", *ROWS, "--out", str(finished)]) == 0
    shown = capsys.readouterr()
    assert "already finished" in shown.err
    assert len(re.findall(r"[+-]\d\.\d\d +(over-|calibrated|unproven)", shown.out)) == len(world_space("smoke"))
    assert shown.out.count("→") == 1
    assert "online samples used: 0" in shown.out


def test_a_saved_posterior_says_what_it_said(tmp_path):
    log = offing.load("offing:cartpole", 300, 0)
    choice = choose_posterior(jax.random.key(0), log, world_space("smoke")[:1])
    store.save_posterior(tmp_path, choice, Facts(data="x", rows=300, seed=0, scale="smoke", seconds=0.0))
    again = offing.load_posterior(tmp_path)
    assert again.task == choice.picked.task
    assert (again.folds, again.members) == (choice.picked.folds, choice.picked.members)
    for posterior in (again, choice.picked):
        assert jax.tree.structure(posterior.theta) == jax.tree.structure(choice.picked.theta)
    place = walk.begin(jax.random.key(1), again, 7)
    push = np.broadcast_to(np.eye(2, dtype=np.float32)[1], (again.members, 7, 2))
    one, two = (walk.fixed(p)(jax.random.key(2), place, push)[1] for p in (again, choice.picked))
    jax.tree.map(np.testing.assert_array_equal, one, two)
    jax.tree.map(np.testing.assert_array_equal, again.fold(1).theta, choice.picked.fold(1).theta)


def test_a_folder_of_another_run_is_not_overwritten(finished, capsys):
    before = (finished / "posterior.json").read_bytes()
    assert main(["posterior", "offing:cartpole", *ROWS, "--seed", "1", "--out", str(finished)]) == 2
    assert "another run" in capsys.readouterr().err
    assert (finished / "posterior.json").read_bytes() == before


@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_a_damaged_result_is_one_line(finished, tmp_path, damage):
    for file in finished.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    arrays = next(tmp_path.glob("*.npz"))
    if damage == "cut":
        arrays.write_bytes(arrays.read_bytes()[:1000])
    elif damage == "gone":
        arrays.unlink()
    else:
        (tmp_path / "posterior.json").write_text("{}")
    with pytest.raises(offing.BadInput) as caught:
        offing.load_posterior(tmp_path)
    assert "\n" not in str(caught.value)


def test_bad_input_is_one_line_exit_2_and_nothing_written(tmp_path, capsys):
    log = offing.load("offing:pendulum", 400, 0).data.steps
    bad = np.array(log.reward[:400])
    bad[17] = np.nan
    ends = np.arange(1, 401) % 40 == 0
    path = tmp_path / "log.npz"
    columns = {"obs": log.obs[:400], "action": log.action[:400], "next_obs": log.next_obs[:400], "truncated": ends}
    np.savez(path, reward=bad, **columns)
    for arguments in (
        (path,),
        (tmp_path / "none.npz",),
        ("offing:nothing",),
        ("offing:pendulum", "--rows", "999999"),
    ):
        assert main(["posterior", *map(str, arguments), "--scale", "smoke", "--out", str(tmp_path / "out")]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert len(shown.err.splitlines()) == 1, shown.err
    done = run("posterior", path, "--scale", "smoke", "--out", tmp_path / "out")  # and from a shell
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.npz"]
    assert all(part in done.stderr for part in ("log.npz", "'reward'", "row 17"))


def test_collect_and_then_use_it(tmp_path, capsys):
    pytest.importorskip("gymnax")
    path = tmp_path / "log.npz"
    kind = ["collect", "gymnax-cartpole-random", "--rows", "200", "--seed", "3", "--out", str(path)]
    assert main(kind) == 0
    assert "200 rows" in capsys.readouterr().out
    assert offing.load(path).data.rows == 200
    assert main([*kind[:-1], str(tmp_path / "log.txt")]) == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.npz"]


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    out = tmp_path_factory.mktemp("sorel") / "out"
    code = main(["sorel", "offing:cartpole", *ROWS, "--out", str(out)])
    return out, code


def test_sorel_writes_what_it_promises(solved):
    out, code = solved
    result = json.loads((out / "result.json").read_text())
    assert result.keys() >= RESULT
    assert (result["system"], result["promise"], result["online_samples"]) == ("sorel", "value", 0)
    assert code == {"GO": 0, "NO-GO": 3, "NOT-ENOUGH-EVIDENCE": 4}[result["verdict"]["word"]]
    assert len(result["verdict"]["reasons"]) >= 4
    for name in ("value", "return"):
        told = result[name]
        assert told.keys() >= {"median", "mean", "interval", "level", "epistemic", "aleatoric", "stderr"}
        assert told["interval"][0] <= told["median"] <= told["interval"][1]
    assert len(result["policy"]["settings"]) == len(offing.planner.space("rppo", "smoke"))
    page = (out / "report.html").read_text()
    assert result["verdict"]["word"] in page
    assert "online samples used: 0" in page
    assert not list(out.glob(".work"))
    assert offing.load_posterior(out).folds == 2


def test_a_saved_policy_acts_as_before(solved):
    policy, task = load_policy(solved[0])
    again, _ = load_policy(solved[0])
    seen = Seen(np.ones((3, 4), np.float32), np.zeros((3, 2), np.float32), np.zeros(3), np.ones(3))
    one, two = (p.act(p.params, p.begin(3), seen, None)[0] for p in (policy, again))
    np.testing.assert_array_equal(one, two)
    assert one.shape == (3, task.actions.width)
    assert np.asarray(one).sum() == 3  # one choice each


def test_sorel_does_not_run_twice_nor_over_another_run(solved, capsys):
    out, code = solved
    assert main(["sorel", "offing:cartpole", *ROWS, "--out", str(out)]) == code
    assert "already finished" in capsys.readouterr().err
    assert main(["sorel", "offing:cartpole", *ROWS, "--baseline", "400", "--out", str(out)]) == 2
    assert "another run" in capsys.readouterr().err


def test_play_puts_the_truth_beside_the_prediction(solved, capsys):
    pytest.importorskip("gymnax")
    out, _ = solved
    assert main(["play", str(out), "--env", "CartPole-v1", "--episodes", "20"]) == 0
    played = json.loads((out / "play.json").read_text())
    assert played["episodes"] == 20
    assert played["inside"] == (
        played["predicted"]["interval"][0] <= played["return"]["mean"] <= played["predicted"]["interval"][1]
    )
    assert "realised return" in capsys.readouterr().out
    assert main(["play", str(out), "--env", "Pendulum-v1"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("damage", ["cut", "gone", "other", "none"])
def test_a_damaged_policy_is_one_line(solved, tmp_path, damage):
    for file in solved[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    arrays = next(tmp_path.glob("policy-*.npz"))
    if damage == "cut":
        arrays.write_bytes(arrays.read_bytes()[:500])
    elif damage == "gone":
        arrays.unlink()
    elif damage == "other":
        (tmp_path / "result.json").write_text("{}")
    else:
        (tmp_path / "result.json").unlink()
    with pytest.raises(offing.BadInput) as caught:
        load_policy(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("flags", [("--level", "1.5"), ("--baseline", "nan"), ("--rows", "1")])
def test_sorel_refuses_nonsense_in_one_line(tmp_path, capsys, flags):
    assert main(["sorel", "offing:cartpole", "--scale", "smoke", *flags, "--out", str(tmp_path / "out")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_table_of_strange_names_goes_in_by_way_of_a_drafted_schema(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = ["trip,step,obs_0,obs_1,choice,earned,crashed"]
    for i in range(300):
        a, b = rng.normal(size=2).round(3)
        rows.append(f"{i // 10},{i % 10},{a},{b},{rng.integers(3)},{a + b:.4f},{int(i % 20 == 19)}")
    path, schema = tmp_path / "trips.csv", tmp_path / "trips.toml"
    path.write_text("\n".join(rows) + "\n")
    assert main(["inspect", str(path)]) == 2
    assert "'action': missing" in capsys.readouterr().err
    assert main(["inspect", str(path), "--write-schema", str(schema)]) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in ("action: no name speaks for it", "'choice'", "reward: no name"))
    said = '\naction = "choice"\nreward = "earned"\nterminated = "crashed"\nepisode = "trip"\n'
    schema.write_text(schema.read_text() + said)
    assert main(["inspect", str(path), "--schema", str(schema)]) == 2
    assert "choices or amounts" in capsys.readouterr().err
    schema.write_text(schema.read_text() + 'actions = "discrete"\n')
    assert main(["inspect", str(path), "--schema", str(schema)]) == 0
    out = capsys.readouterr().out
    assert "300 rows" in out
    assert "at 30 ends of episodes it is taken from what like rows led to" in out


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("collect", "posterior", "sorel", "play", "NO-GO"))
    with pytest.raises(SystemExit) as stop:
        main(["posterior", "offing:pendulum", "--scale", "enormous", "--out", "x"])
    assert stop.value.code == 2


def test_killed_at_any_moment_it_leaves_all_or_nothing_and_goes_on(tmp_path, finished):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "offing", "posterior", "offing:cartpole", *ROWS, "--out", str(out)]
    work = lambda: sorted(out.glob(".work/*/fit-*.npz"))
    rng, kept = random.Random(0), {}
    for attempt in range(2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began, seen = time.monotonic(), len(work())
        while process.poll() is None and time.monotonic() - began < 120 and len(work()) <= seen:
            time.sleep(0.02)
        time.sleep(rng.random() * 0.5 * attempt)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if (out / "posterior.json").exists():
            break
        for path, when in kept.items():
            assert path.stat().st_mtime_ns == when  # what was finished is not done again
        kept = {path: path.stat().st_mtime_ns for path in work()}
        assert kept
        with pytest.raises(offing.BadInput, match="no finished posterior"):
            offing.load_posterior(out)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    ours, theirs = (json.loads((Path(folder) / "posterior.json").read_text()) for folder in (out, finished))
    for name in ("settings", "chosen", "pil", "replay", "noise_scale"):
        assert ours[name] == theirs[name]
    assert not (out / ".work").exists()
    offing.load_posterior(out)


# ---- after the verdict


def test_a_finished_run_explains_itself(solved):
    out, _ = solved
    found = json.loads((out / "explain.json").read_text())
    brings = sum(region["brings"] for region in found["regions"])
    assert brings == pytest.approx(found["difference"], abs=1e-3 * max(1, abs(brings)))
    low, _, high = found["promised"]
    assert low <= found["difference"] <= high
    assert 0 <= found["fidelity"] <= 1
    page = (out / "report.html").read_text()
    assert page.count('<section id="explained">') == 1
    assert "What does the policy do?" in page
    assert main(["explain", str(out)]) == 0
    again = (out / "report.html").read_text()
    assert again.count('<section id="explained">') == 1
    assert again.rstrip().endswith("</html>")


def test_a_finished_run_is_exported(solved, tmp_path, capsys):
    out, _ = solved
    assert main(["export", str(out), "--to", "numpy", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "policy.npz")]
    assert main(["export", str(out), "--to", "c"]) == 0
    assert {file.name for file in (out / "export").iterdir()} == {"policy.h", "policy.c"}
    assert main(["export", str(tmp_path), "--to", "c"]) == 2


def test_rows_of_a_deployment_are_watched(solved, tmp_path):
    out, _ = solved
    code = main(["watch", str(out), "offing:cartpole", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "watch.json").read_text())
    assert code == {"KEEP": 0, "STOP": 5, "NOT-YET": 6}[found["word"]]
    assert found["standing"]["episodes"] == len(found["returns"]) > 0
    assert found["other_actions"] > 0.05  # the log's behaviour is not the policy
    assert (tmp_path / "watch.html").read_text().count("<svg") == 3


def test_a_logged_policy_is_served(solved, tmp_path, monkeypatch, capsys):
    pytest.importorskip("mlflow")
    pytest.importorskip("uvicorn")
    runtime = Path(__file__).parents[1] / "runtime"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'runs.db'}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(runtime))
    assert main(["export", str(solved[0]), "--to", "mlflow"]) == 0
    address = capsys.readouterr().out.split()[-1]
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    serve = [sys.executable, "-m", "mlflow", "models", "serve", "-m", address, "--env-manager", "local"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    server = subprocess.Popen(
        [*serve, "-p", str(port)],
        env={**os.environ, "PATH": path},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    row = json.dumps({"dataframe_records": [{"a": 0.1, "b": 0.0, "c": -0.1, "d": 0.2}]}).encode()
    asked = urllib.request.Request(
        f"http://localhost:{port}/invocations", row, {"Content-Type": "application/json"}
    )
    try:
        for _ in range(120):
            try:
                answer = json.load(urllib.request.urlopen(asked, timeout=5))
                break
            except OSError:  # not there yet, or gone while it starts
                assert server.poll() is None, "the server has ended"
                time.sleep(0.5)
        else:
            pytest.fail("the server did not answer within a minute")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)
    assert answer["predictions"][0]["action"] in (0, 1)
