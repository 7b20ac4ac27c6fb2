"""The door: the script that users expect; results that say, save and predict."""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import offing
from offing.__main__ import main
from offing.data.columns import ActionColumn, Column, Columns
from offing.door.folder import read_sorel
from offing.report.actor import Actor
from offing.types import Box, Discrete, Policy, Task


def steer(params, memory, seen, key):
    """Amounts that add up what was seen; memory counts steps of the episode."""
    del key
    count = jnp.where(seen.start > 0, 0.0, memory) + 1
    return params * seen.obs.sum(-1, keepdims=True) + seen.reward[..., None], count


def choose(params, memory, seen, key):
    return jax.nn.one_hot(jnp.where(seen.obs[..., 0] > 0, 1, 0), 2) + 0 * params, memory


AMOUNTS = Actor(Policy(jnp.float32(2.0), jnp.zeros(()), steer), Task(10, 0.9, Box((-9.0,), (9.0,))), 2)
TABLE = Columns((Column("level"), Column("flow")), (ActionColumn("valve", levels=("shut", "open")),), True)
CHOICES = Actor(Policy(jnp.float32(1.0), (), choose), Task(10, 0.9, Discrete(2)), 2, TABLE)


def test_one_observation_or_a_batch_and_state_goes_on():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        action, state = AMOUNTS.predict(np.array([1.0, 2.0]))
    np.testing.assert_allclose(action, [6.0])
    assert state.memory.tolist() == [1.0]
    action, state = AMOUNTS.predict(np.array([1.0, 2.0]), state, reward=0.5)
    np.testing.assert_allclose(action, [6.5])
    assert state.memory.tolist() == [2.0]
    batch, _ = AMOUNTS.predict(np.ones((3, 2)))
    assert batch.shape == (3, 1)
    with pytest.warns(UserWarning, match="reward"):
        AMOUNTS.predict(np.array([1.0, 2.0]), state)
    _, state = AMOUNTS.predict(np.array([1.0, 2.0]), state, episode_start=True)
    assert state.memory.tolist() == [1.0]
    with pytest.raises(offing.BadInput, match="1 episodes, 3 observations"):
        AMOUNTS.predict(np.ones((3, 2)), state)


def test_choices_are_whole_numbers_or_the_tables_words():
    assert CHOICES.predict(np.array([1.0, 0.0]))[0] == 1
    assert CHOICES.predict(np.array([[1.0, 0.0], [-1.0, 0.0]]))[0].tolist() == [1, 0]
    assert CHOICES.predict({"level": 1.0, "flow": 0.0})[0] == {"valve": "open"}
    rows = [{"level": 1.0, "flow": 0.0}, {"flow": 0.0, "level": -1.0}]
    assert CHOICES.predict(rows)[0] == [{"valve": "open"}, {"valve": "shut"}]
    with pytest.raises(offing.BadInput, match="flow"):
        CHOICES.predict({"level": 1.0})


@pytest.fixture(scope="module")
def frame():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"level": rng.normal(size=240), "flow": rng.normal(size=240)})
    table["action"] = rng.uniform(-1, 1, 240)
    table["reward"] = -(table["level"] ** 2)
    table["episode"] = np.repeat(np.arange(24), 10)
    return table


SCHEMA = offing.Schema(obs=("level", "flow"), actions="box", low=-1.0, high=1.0)


@pytest.fixture(scope="module")
def result(frame, tmp_path_factory):
    out = tmp_path_factory.mktemp("door") / "out"
    options = {"model": "linear", "candidates": ["bc"], "schema": SCHEMA, "out": out, "progress": False}
    return offing.sorel(frame, "smoke", **options), out, options


def test_the_expected_script_from_a_dataframe(result, frame, tmp_path):
    made, out, _ = result
    assert made.verdict in ("GO", "NO-GO", "NOT-ENOUGH-EVIDENCE")
    low, high = made.interval(0.9)
    assert low <= made.returns.median <= high
    assert made.interval(0.5)[1] <= high
    made.save(tmp_path / "copy")
    row = frame.iloc[0][["level", "flow"]].to_dict()
    action, _ = made.policy.predict(row)
    assert set(action) == {"action"}
    assert offing.load_policy(tmp_path / "copy").predict(row)[0] == action
    assert len(made.field) >= 2
    assert len(repr(made)) < 2_000
    assert made.verdict in made._repr_html_()
    assert made.verdict in made.report(tmp_path / "page.html").read_text()
    assert json.loads((out / "result.json").read_text()) == made.to_json()


def test_a_finished_run_is_read_and_not_run_again(result, frame):
    made, out, options = result
    again = offing.sorel(frame, "smoke", **options)
    assert again.to_json() == made.to_json()
    assert again.interval(0.7) == made.interval(0.7)
    assert read_sorel(out).estimate.returns.tolist() == made.estimate.returns.tolist()
    with pytest.raises(offing.BadInput, match="another run"):
        offing.sorel(frame, "smoke", 1, **options)


def test_new_rows_are_learned_from_too_and_what_they_changed_is_reported(result, frame, tmp_path):
    before, out, options = result
    later = frame.assign(reward=frame["reward"] + 5)
    options = {**options, "out": tmp_path / "both", "before": out}
    made = offing.sorel([frame, later], "smoke", **options)
    old, new = made.changes.parts
    assert old.rows == new.rows == 240  # the last row of an episode counts, too
    assert new.behaviour.mean == pytest.approx(old.behaviour.mean + 10 * 5, rel=1e-4)
    assert made.changes.before.median == before.returns.median
    assert made.changes.now.median == made.returns.median
    page = (tmp_path / "both" / "report.html").read_text()
    assert "What did the new rows change?" in page
    assert "Promised before, from 240 rows" in page
    assert any("Promised now, from 480 rows" in line for line in made.lines())
    assert read_sorel(tmp_path / "both").changes == made.changes
    with pytest.raises(offing.BadInput, match="goes with several logs"):
        offing.sorel(frame, "smoke", **{**options, "out": tmp_path / "one"})
    with pytest.raises(offing.BadInput, match="none of the logs"):
        offing.sorel([later, later], "smoke", **{**options, "out": tmp_path / "other"})


def test_a_result_is_explained_in_a_notebook(result, frame):
    made, out, _ = result
    explained = made.explain()
    assert {"by_column", "regions", "courses", "worlds"} <= set(explained.figures)
    assert all(figure.startswith("<svg") for figure in explained.figures.values())
    assert "fidelity" not in explained.left_out
    (explanation,) = explained.explanations.values()
    brings = sum(region.brings for region in explanation.regions)
    assert brings == pytest.approx(explanation.difference, abs=1e-3 * max(1, abs(brings)))
    low, _, high = explanation.promised.gain
    assert low <= brings <= high
    assert f"says {explanation.fidelity:.0%}"[:7] in repr(explained)
    assert explained._repr_html_().count("<svg") == len(explained.figures)
    assert (out / "explain.json").exists()
    assert '<section id="explained">' in (out / "report.html").read_text()
    again = read_sorel(out)
    with pytest.raises(offing.BadInput, match="give the log"):
        again.explain()
    assert again.explain(made.log).sentences() == explained.sentences()
    with pytest.raises(offing.BadInput, match="is not the log"):
        again.explain(offing.load(frame, rows=100, schema=SCHEMA))


def test_worlds_say_save_and_draw(frame, tmp_path):
    options = {"model": "linear", "schema": SCHEMA, "progress": False}
    worlds = offing.posterior(frame, "smoke", out=tmp_path / "a", **options)
    assert worlds.pil.word in (tmp_path / "a" / "posterior.html").read_text()
    assert worlds.report(tmp_path / "page.html").read_text().count("<svg") >= 1
    assert len(worlds.to_frame()) == len(worlds.settings)
    assert worlds.pil.word in repr(worlds)
    assert "<li>" in worlds._repr_html_()
    again = offing.posterior(frame, "smoke", out=tmp_path / "a", **options)
    again.save(tmp_path / "b")
    assert again.to_json() == worlds.to_json() == json.loads((tmp_path / "b" / "posterior.json").read_text())


def test_what_is_no_option_is_refused(frame):
    with pytest.raises(offing.BadInput, match="no such option"):
        offing.sorel(frame, "smoke", sedation=3)
    with pytest.raises(offing.BadInput, match="probability"):
        offing.sorel(frame, "smoke", level=2.0)


def test_names_in_the_order_of_the_pipeline():
    assert len(offing.__all__) <= 20
    assert offing.__all__[0] == "load"
    assert all(hasattr(offing, name) for name in offing.__all__)
    with pytest.warns(DeprecationWarning, match=r"offing\.data\.split"):
        assert offing.split is offing.data.split
    with pytest.raises(AttributeError, match="nothing"):
        offing.nothing  # noqa: B018


def test_version_and_an_out_that_is_a_file(tmp_path, capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"offing {offing.__version__}\n"
    path = tmp_path / "file"
    path.write_text("x")
    assert main(["sorel", "offing:cartpole", "--rows", "300", "--scale", "smoke", "--out", str(path)]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "is a file" in err
