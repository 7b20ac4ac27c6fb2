"""The paper's figures: every kind of part at toy size, records, resuming, pages, and the table of contents."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import offing
from experiments.paper import pages, published, runner
from experiments.paper.__main__ import main, parsed, selected
from experiments.paper.contents import BEYOND, CONTENTS, ours
from experiments.paper.figures import correlations, get
from experiments.paper.figures import every as every_figure
from experiments.paper.figures.sweeps import Held, Sweep, discounted
from experiments.paper.parts import PHASES, Part, Place
from experiments.paper.records import FIELDS, RECORDS, ROOT, every, git, plain, state, status, tree_of
from experiments.paper.runner import Limits, run
from experiments.paper.studies import STUDIES, hands, kept, logs, pools, sac, theory, torel
from experiments.paper.studies import every as every_part
from experiments.paper.studies.tasks import EVERY
from offing.planner import space
from offing.types import Box, Discrete, Policy, Seen, Task

LABELS = """
fig:overview fig:sorel_overall fig:overall_return_barplot fig:torel_barplot fig:d4rl_torel_barchart
fig:d4rl_torel_regret_sample_efficiency fig:theoretical_regret_curves fig:sorel_hyper_sweep
fig:sorel_5_panel tab:fpe_main fig:placeholder fig:ope_all_vertical_1 fig:ope_all_vertical_2
fig:brax_datasets tab:ensemble_dynamics_hyperparams tab:sorel_ppo_rnn_hyperparameter_sweep
tab:sorel_ppo_rnn_hyperparameters tab:unifloral_orl_hyperparameters
"""


# ---- what there is


def test_every_figure_and_table_of_the_paper_has_its_counterpart_or_a_sentence_why_not():
    assert sorted(entry.label for entry in CONTENTS) == sorted(LABELS.split())
    for entry in CONTENTS:
        assert bool(entry.figures) != bool(entry.why.endswith("."))
    assert [figure.name for figure in every_figure()] == list(ours())
    assert set(BEYOND) <= set(ours())


@pytest.mark.parametrize("scale", ["smoke", "full"])
def test_parts_are_jobs_with_a_name_a_phase_hardware_and_a_cost(scale):
    parts = every_part(scale)
    for name, part in parts.items():
        assert re.fullmatch(r"[a-z]+/[\w.-]+", name)
        assert part.phase in PHASES[:-1]
        assert part.hardware in ("CPU", "GPU")
        assert part.seconds > 0
        assert set(part.needs) <= set(parts)
        assert all(PHASES.index(parts[need].phase) <= PHASES.index(part.phase) for need in part.needs), name
        assert json.loads(json.dumps(plain(dict(part.settings)))) == plain(dict(part.settings))
    order = list(parts)
    for figure in every_figure():
        assert figure.always or scale == "smoke" or figure.made_of(parts), figure.name
        made_of = list(figure.made_of(parts))
        assert made_of == sorted(made_of, key=order.index)
    assert {name.partition("/")[0] for name in parts} == set(STUDIES)


def test_what_needs_a_gpu_is_told_from_what_a_core_does():
    parts = every_part("full").values()
    assert not any(part.hardware == "GPU" for part in parts if part.phase == "play")
    assert {part.study for part in parts if part.hardware == "GPU"} == set(STUDIES) - {"theory"}


def test_every_plan_names_a_core_that_there_is():
    cores = {part.settings["core"] for part in every_part("full").values() if part.id.startswith("sorel/plan-")}
    assert cores == {"gru", "none", None}  # any other word would be a linear one without saying so


def test_the_papers_table_is_whole():
    by = lambda selector: [r for (_, _, each), r in published.PEARSON.items() if each == selector]
    assert [len(by(name)) for name in published.SELECTORS] == [28, 10, 10, 10, 10]
    assert published.PEARSON["walker2d_medium_replay", "morel", "predictive"] == (-0.53, 0.01)
    assert sum(r > 0.5 and p <= 0.05 for r, p in by("predictive")) == 18  # what its text counts


# ---- records


def test_the_trees_hash_is_gits():
    if not git("rev-parse", "HEAD") or git("status", "--porcelain", "--", "offing"):
        pytest.skip("no clean checkout")
    assert tree_of(ROOT / "offing") == git("rev-parse", "HEAD:offing")
    assert state()["changed"] is False


def test_a_tree_that_differs_has_another_hash(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("1\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_text("no part of it")
    one = tree_of(tmp_path)
    (tmp_path / "a" / "x.py").write_text("2\n")
    assert tree_of(tmp_path) != one


def test_committed_records_are_whole_and_of_one_state_of_the_library_a_study():
    records = every(RECORDS)
    for record in records.values():
        assert set(FIELDS) <= set(record)
        assert re.fullmatch("[0-9a-f]{40}", record["tree"])
        assert plain(record["numbers"]) == record["numbers"]
    for study in STUDIES:
        assert len({r["tree"] for r in records.values() if r["study"] == study}) <= 1, study


def test_pages_say_what_records_say(tmp_path):
    records, parts = every(RECORDS), every_part("full")
    for figure in every_figure():
        page = (pages.DOCS / f"{figure.name}.md").read_text()
        text, pictures = pages.block(figure, records, parts)
        assert pages.replaced(page, text) == page, f"{figure.name}: make paper-tables"
        assert all((pages.DOCS / "img" / f"{name}.svg").exists() for name in pictures)
    figures = {figure.name: figure for figure in every_figure()}
    index = (pages.DOCS / "index.md").read_text()
    assert pages.replaced(index, pages.contents(figures, records)) == index


def test_numbers_that_json_has_no_word_for_are_none_and_what_is_no_number_is_refused():
    assert plain({"a": np.float32(np.nan), "b": (np.int64(3), jnp.arange(2.0)), "c": 1 / 3}) == {
        "a": None,
        "b": [3, [0.0, 1.0]],
        "c": 0.3333333,
    }
    with pytest.raises(TypeError, match="Path"):
        plain({"where": Path("x")})


# ---- running


class Work:
    """Jobs that count how often they ran, and one that is killed."""

    def __init__(self):
        self.ran, self.kill = [], True

    def of(self, name, **more):
        def work(place, settings):
            self.ran.append(name)
            if name == "killed" and self.kill:
                raise KeyboardInterrupt
            if name == "broken":
                raise ValueError("why")
            if name == "refused":
                raise offing.BadInput("one line")
            for file in more.get("makes", ()):
                place.file(file).write_text("made")
            return {"twice": 2 * settings["x"]}

        return Part("toy", name, "plan", "CPU", 1.0, {"x": 1, "seed": 0}, work, **more)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "records", tmp_path / "work")


def test_a_killed_run_loses_only_the_part_it_was_in(place):
    jobs = Work()
    parts = [jobs.of("first"), jobs.of("killed"), jobs.of("last")]
    with pytest.raises(KeyboardInterrupt):
        run(parts, place)
    assert jobs.ran == ["first", "killed"]
    assert set(every(place.records)) == {"toy/first"}
    jobs.kill = False
    assert run(parts, place) == 0
    assert jobs.ran == ["first", "killed", "killed", "last"]
    assert run(parts, place) == 0
    assert len(jobs.ran) == 4
    record = place.read("toy/last")
    assert tuple(record) == FIELDS
    assert (record["numbers"], record["seeds"], record["tree"]) == ({"twice": 2}, 0, state()["tree"])


def test_what_fails_is_named_and_the_others_go_on(place, capsys):
    jobs = Work()
    parts = [jobs.of("broken"), jobs.of("refused"), jobs.of("needy", needs=("toy/broken",)), jobs.of("fine")]
    parts.append(jobs.of("bringer", brought=("logs/theirs.hdf5",)))
    assert run(parts, place) == 4
    out = capsys.readouterr().out
    assert "toy/broken: failed (ValueError: why)" in out
    assert "toy/refused: one line" in out
    assert "toy/needy: left, it needs toy/broken" in out
    assert "toy/bringer: left, it needs logs/theirs.hdf5" in out
    assert (place.work / "failed" / "toy" / "broken.txt").read_text().rstrip().endswith("ValueError: why")
    assert set(every(place.records)) == {"toy/fine"}


def test_what_made_a_file_that_is_gone_runs_again_where_an_unfinished_part_needs_it(place, capsys):
    jobs = Work()
    maker = jobs.of("maker", makes=("policies/one.npz",))
    player, judge = (jobs.of(name, needs=("toy/maker",)) for name in ("player", "judge"))
    known = {part.id: part for part in (maker, player, judge)}
    assert run([maker, player], place) == 0
    (place.work / "policies/one.npz").unlink()
    assert run([maker, player], place) == 0  # nobody needs the file any more
    assert jobs.ran == ["maker", "player"]
    assert run([judge], place, known=known) == 1
    assert "toy/judge: left, it needs policies/one.npz of toy/maker" in capsys.readouterr().out
    assert run([maker, player, judge], place) == 0
    assert jobs.ran == ["maker", "player", "maker", "judge"]


def test_what_fails_is_tried_once_a_call_however_long_others_go_on(place):
    jobs = Work()
    parts = [jobs.of("broken"), jobs.of("third", needs=("toy/second",)), jobs.of("second", needs=("toy/first",))]
    assert run([*parts, jobs.of("first")], place) == 1
    assert jobs.ran == ["broken", "first", "second", "third"]


def test_a_child_runs_exactly_the_part_that_it_is_named(place, monkeypatch):
    given = parsed(["all", "--only", "logs/hopper"])
    assert set(selected(given, every_part("full"))) == {"logs/hopper"}  # logs/hopper_medium begins so
    called = []

    class Child:
        pid = 0

        def __init__(self, command, **_):
            called.append(command)

        def wait(self):
            return 1

    monkeypatch.setattr(runner, "subprocess", SimpleNamespace(Popen=Child))
    part = replace(Work().of("one"), hardware="GPU")
    assert run([part], place, ["all"], Limits(jobs=2)) == 1
    assert [command[-3:] for command in called] == [["all", "--only", "toy/one"]]


def test_nothing_begins_that_would_not_end_in_time(place):
    jobs = Work()
    assert run([replace(jobs.of("long"), seconds=90.0), jobs.of("short")], place, limits=Limits(seconds=60.0)) == 1
    assert jobs.ran == ["short"]


def test_a_record_of_other_settings_or_of_another_state_is_stale(place):
    part, tree = Work().of("one"), str(state()["tree"])
    assert status(part, place, tree) == "open"
    run([part], place)
    assert status(part, place, tree) == "done"
    assert status(replace(part, settings={"x": 2, "seed": 0}), place, tree) == "stale"
    assert status(part, place, "0" * 40) == "stale"


def test_a_cache_is_of_one_state_of_the_library_and_of_one_kind_of_settings(place, monkeypatch):
    place.cache("one", {"x": 1}).put("fit", [np.ones(1)])
    assert place.cache("one", {"x": 1}).get("fit") is not None
    assert place.cache("one", {"x": 2}).get("fit") is None
    monkeypatch.setattr("experiments.paper.parts.imported", lambda: "0" * 40)
    assert place.cache("one", {"x": 1}).get("fit") is None


def test_parts_run_side_by_side_as_processes(tmp_path):
    given = ["theory", "--scale", "smoke", "--out", str(tmp_path / "r"), "--work", str(tmp_path / "w")]
    assert main([*given, "--jobs", "2", "--part", "theory/curves", "theory/linear"]) == 0
    assert set(every(tmp_path / "r")) == {"theory/curves", "theory/linear"}


# ---- every kind of part, at toy size


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The whole paper at toy size: its folder, and its records."""
    folder = tmp_path_factory.mktemp("paper")
    given = [
        "--scale",
        "smoke",
        "--out",
        str(folder / "records"),
        "--work",
        str(folder),
        "--docs",
        str(folder / "docs"),
    ]
    assert main(["all", *given]) == 0
    return folder, every(folder / "records"), given


def test_every_part_leaves_a_record_and_is_not_run_again(smoke, capsys):
    folder, records, given = smoke
    assert set(records) == set(every_part("smoke"))
    assert not (folder / "failed").exists()
    stamps = lambda: {path: path.stat().st_mtime_ns for path in (folder / "records").rglob("*.json")}
    before, count = stamps(), sum(part.phase != "collect" for part in every_part("smoke").values())
    assert not any(part.gone(Place(folder / "records", folder)) for part in every_part("smoke").values())
    assert main(["all", *given, "--phase", "plan", "play"]) == 0
    assert f"{count} parts, {count} of them done" in capsys.readouterr().out
    assert before == stamps()


def test_a_dry_run_lists_parts_hardware_and_what_was_measured(smoke, capsys):
    _, records, given = smoke
    assert main(["bandit", *given, "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("done, measured, cpu" in line for line in lines) == len(lines) - 2
    named = {line.split()[0] for line in lines[1:-1]}
    assert named == {name for name in records if name.startswith(("torel/", "logs/"))}  # and what those need
    assert main(["sorel_rows", "--out", "nowhere", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "GPU" in out
    assert "open, expected" in out
    assert "GPU 1." in out.splitlines()[-1]


def test_every_page_is_drawn_from_records(smoke):
    folder, records, _ = smoke
    for figure in every_figure():
        page = (folder / "docs" / f"{figure.name}.md").read_text()
        text = page.partition(pages.BEGIN)[2].partition(pages.END)[0]
        if figure.always:
            assert "all the same" in text
        elif figure.name == "adroit_scatter":
            assert "No record of this exists yet" in text
        else:
            assert f"from {len(figure.of(records))} records" in text
        for picture in re.findall(r"\]\((img/.*?)\)", text):
            assert (folder / "docs" / picture).read_text().startswith("<svg xmlns=")


def test_a_number_that_is_not_finite_takes_no_page_down(smoke):
    records = json.loads(json.dumps(smoke[1]))
    for name, record in records.items():
        numbers = record["numbers"]
        if name.startswith("judges/"):
            numbers["value"]["median"][0] = None
        elif name.startswith("torel/"):
            numbers["predicted" if "plan-" in name else "return"][0] = None
        elif name.startswith(("sorel/play-", "ablations/play-")):
            numbers["return"] = None
    for figure in every_figure():
        text, _ = pages.block(figure, records, every_part("smoke"))
        if figure.name in ("sorel_rows", "sorel_overall", "judges", "correlations", "ablations"):
            assert "left out" in text, figure.name
    assert "| 1 | 1 |" in pages.block(get("torel_returns"), records, every_part("smoke"))[0]


def test_a_page_without_records_says_what_they_would_cost():
    text, pictures = pages.block(get("sorel_rows"), {}, every_part("full"))
    assert not pictures
    assert re.search(r"`python -m experiments.paper sorel_rows` makes them, .* of an H200 and .* core", text)


def test_a_plan_that_was_played_has_its_promise_and_its_truth(smoke):
    _, records, _ = smoke
    plan, played = (records[f"sorel/{what}-toy-400-0-ours"]["numbers"] for what in ("plan", "play"))
    low, high = plan["interval"]
    assert low <= plan["predicted"] <= high
    assert played["inside"] == (low <= played["return"] <= high)
    assert len(played["every"]["return"]) == len(plan["policies"]) == len(plan["scores"]) >= 3
    assert played["every"]["return"][plan["chosen"]] == played["return"]
    assert played["forgetful"]["value"] == pytest.approx(played["value"], rel=1e-4)  # it has no memory to lose


def test_a_sweep_has_its_bandit_over_all_policies(smoke):
    _, records, _ = smoke
    played = records["torel/play-toy-iql-0"]["numbers"]
    chosen = records["torel/plan-toy-iql-0"]["numbers"]["chosen"]
    assert played["target"] == pytest.approx(played["return"][chosen])
    (curve,) = played["bandit"].values()
    assert curve["samples"] == sorted(curve["samples"])
    assert min(played["return"]) - 1 <= curve["worth"][-1] <= max(played["return"]) + 1


def test_the_bound_holds_and_worlds_of_a_wrong_form_are_found_out(smoke):
    _, records, _ = smoke
    for name in ("tabular", "linear"):
        numbers = records[f"theory/{name}"]["numbers"]
        assert numbers["violations"] == 0
        assert numbers["pil"][1] < numbers["pil"][0] / 5  # a tenth of it, up to luck
    straight, bent = (
        [e["error"] for e in records["theory/wrong"]["numbers"]["each"] if e["bend"] == bend]
        for bend in (0.0, 0.5)
    )
    assert bent[0] > 3 * straight[0]


# ---- logs in D4RL's layout


def d4rl_file(path, rows=240, width=11, amounts=3):
    """A file as D4RL's v2 are: columns, infos and metadata in groups, time-outs after 100 rows, one true end."""
    rng = np.random.default_rng(0)
    terminals, timeouts = np.zeros(rows, bool), np.zeros(rows, bool)
    timeouts[99], terminals[149] = True, True
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["observations"] = rng.normal(size=(rows, width)).astype(np.float32)
        file["next_observations"] = rng.normal(size=(rows, width)).astype(np.float32)
        file["actions"] = rng.uniform(-0.9, 0.9, (rows, amounts)).astype(np.float32)
        file["rewards"] = rng.normal(size=rows).astype(np.float32)
        file["terminals"], file["timeouts"] = terminals, timeouts
        file["infos/action_log_probs"] = rng.normal(size=rows).astype(np.float32)
        file["infos/qpos"], file["infos/qvel"] = rng.normal(size=(2, rows, 6))
        file["metadata/algorithm"], file["metadata/iteration"] = np.bytes_("SAC"), np.int64(3)
        file["metadata/policy/fc0/weight"] = rng.normal(size=(256, width)).astype(np.float32)
        file["metadata/policy/nonlinearity"] = np.bytes_("relu")


def test_an_original_file_of_d4rl_is_read_as_it_is_and_never_overwritten(place):
    part = every_part("full")["logs/hopper_medium"]
    path = place.work / str(part.settings["file"])
    d4rl_file(path)
    before = path.read_bytes()
    numbers = part.work(place, part.settings)
    assert (numbers["ours"], numbers["rows"], numbers["episodes"]) == (False, 240, 3)
    assert path.read_bytes() == before
    log = EVERY["hopper_medium"].load(place, None, 0)
    assert log.task == Task(1000, 0.99, Box((-1.0,) * 3, (1.0,) * 3))
    assert log.data.steps.obs.shape == (240, 11)
    assert np.flatnonzero(np.asarray(log.data.steps.done)).tolist() == [149]  # a time-out is no end
    assert EVERY["hopper_medium"].load(place, torel.ROWS, 0).data.rows == 240  # it holds no more
    assert EVERY["hopper_medium"].load(place, 120, 0).data.rows == 120


def test_what_adroit_needs_is_the_readers_to_bring(place):
    part = every_part("full")["torel/plan-pen_expert-iql-0"]
    assert part.brought == ("logs/pen_expert.hdf5",)
    assert run([part], place) == 1
    judges = [every_part("full")[f"judges/hammer_expert-rebrac-0-{name}"] for name in published.SELECTORS]
    assert {(one.needs, one.brought) for one in judges} == {
        (("torel/plan-hammer_expert-rebrac-0",), ("logs/hammer_expert.hdf5",))
    }


def test_our_counterpart_has_the_same_layout(smoke):
    folder, records, _ = smoke
    with h5py.File(folder / "logs" / "toy_medium_expert.hdf5") as file:
        assert {"observations", "next_observations", "actions", "rewards", "terminals", "timeouts"} <= set(file)
        ends = file["terminals"][:] | file["timeouts"][:]
        assert not (file["terminals"][:] & file["timeouts"][:]).any()
        inside = ~ends[:-1]
        np.testing.assert_array_equal(file["next_observations"][:-1][inside], file["observations"][1:][inside])
    assert records["logs/toy_medium_expert"]["numbers"]["ours"] is True


def test_medium_is_a_third_of_the_way_to_the_best():
    assert logs.first_medium([-10.0, -4.0, 0.5, 20.0, 11.0]) == 2


def test_density_of_the_actor_is_one():
    actor = sac.mlp_init(jax.random.key(0), (2, 8, 2))
    obs = jnp.ones((20_000, 2))
    action, logp = sac.act(jax.random.key(1), actor, obs)
    counts, edges = np.histogram(np.asarray(action), 10, (-1.0, 1.0))
    within = np.digitize(np.asarray(action)[:, 0], edges[1:-1])
    for i in np.flatnonzero(counts > 1_000):  # mean of 1 / p over a bin of p is its width over its share
        inverse = np.exp(-np.asarray(logp)[within == i]).sum() / len(action)
        assert inverse == pytest.approx(0.2, rel=0.15)


# ---- pools, policies on disk, sweeps


def test_a_swung_pendulum_is_pumped_below_and_held_above():
    gains = jnp.array([1.0, 12.0, 3.0, 0.9])
    obs = jnp.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.5], [-1.0, 0.0, -0.5], [0.999, 0.04, 0.0]])
    torque = np.asarray(hands.swing(gains, obs))[:, 0]
    assert torque[:3].tolist() == [0.0, 2.0, -2.0]
    assert -0.6 < torque[3] < -0.4  # 12 times an angle of 0.04


def test_a_leaning_pole_is_followed():
    gains = jnp.array([0.0, 0.0, 1.0, 0.0])
    acted = hands.lean(gains, jnp.array([[0.0, 0.0, 0.1, 0.0], [9.0, 9.0, -0.1, 9.0]]))
    assert np.asarray(acted).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("task", "actions"),
    [("pendulum", Box((-2.0,), (2.0,))), ("cartpole", Discrete(2))],
    ids=["amounts", "choices"],
)
def test_a_pool_comes_back_from_disk_and_acts_alike(tmp_path, task, actions):
    given, made = Task(10, 0.9, actions), []
    for name in ("online-3", "shaken-0.5", "hand-0", "iql-1"):
        empty = pools.blank(name, task, given)
        spread = lambda leaf: leaf + jnp.arange(leaf.size, dtype=float).reshape(leaf.shape) / (leaf.size + 1)
        params = pools.shaken(jax.random.key(1), jax.tree.map(spread, empty.params), 1.0)
        made.append(pools.Member(name, Policy(params, (), empty.act)))
    pools.keep(tmp_path / "pool.npz", made)
    there = pools.fetch(tmp_path / "pool.npz", task, given)
    assert [member.name for member in there] == [member.name for member in made]
    obs = jax.random.normal(jax.random.key(2), (5, pools.WIDTH[task]))
    seen = Seen(obs, jnp.zeros((5, actions.width)), *[jnp.zeros(5)] * 2)
    act = lambda policy: policy.act(policy.params, (), seen, None)[0]
    for one, other in zip(made, there, strict=True):
        np.testing.assert_array_equal(act(one.policy), act(other.policy))


def test_policies_of_unlike_planners_come_back_from_disk(tmp_path):
    task, policies, described = Task(10, 0.9, Box((-1.0,), (1.0,))), [], []
    for name in ("iql", "rppo"):
        setting = space(name, "smoke")[0]
        blank = offing.planner.get(name).blank(setting, 3, task)
        policies.append(replace(blank, params=jax.tree.map(lambda leaf: leaf + 0.3, blank.params)))
        described += plain(kept.described(name, [setting]))
    kept.save(tmp_path / "two.npz", policies)
    back = kept.load(tmp_path / "two.npz", described, 3, task)
    for one, other in zip(policies, back, strict=True):
        assert jax.tree.structure(one.params) == jax.tree.structure(other.params)
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), one.params, other.params))


def test_the_default_of_a_sweep_is_one_policy_for_each_seed():
    usual = offing.planner.get("iql").Hypers()
    settings = [replace(usual, beta=beta) for beta in (usual.beta, 2 * usual.beta) for _ in range(3)]
    assert torel.default(settings, "iql") == [0, 1, 2]
    assert torel.default([*settings[3:], replace(usual, beta=99.0)], "iql") == []


def swept(said, true, policies, chosen=0):
    row = {"policies": [{"beta": beta} for beta in policies]}
    return Sweep("t", "iql", 0, {"predictive": np.array(said)}, np.array(true), chosen, row)


def test_a_sweep_of_several_seeds_is_also_correlated_by_setting():
    betas = [1.0, 1.0, 3.0, 3.0, 9.0, 9.0]
    one = swept([1.0, 3.0, 4.0, 4.0, 9.0, 3.0], [5.0, 5.0, 0.0, 20.0, 12.0, 18.0], betas)
    assert one.by_setting().value == pytest.approx(1.0)  # means 2, 4, 6 against 5, 10, 15
    assert one.by_setting().policies == 3
    assert swept(one.said["predictive"], one.true, range(6)).by_setting() == one.correlation("predictive")
    assert swept([1.0, 3.0, 4.0, np.nan, 9.0, 3.0], one.true, betas).by_setting() is None  # of two settings


def test_every_selector_chooses_by_torels_rule_and_ties_are_averaged_over():
    betas, true = [1.0, 1.0, 3.0, 3.0], [0.0, 4.0, 10.0, 6.0]
    one = swept([1.0, 2.0, 0.0, 0.5], true, betas, chosen=1)
    said = {"fqe": [9.0, 0.0, 5.0, 6.0], "is": [1.0] * 4, "dr": [np.nan] * 4, "dualdice": [9.0, np.nan, 2.0, 1.0]}
    one.said.update({name: np.array(column) for name, column in said.items()})
    assert one.regret("predictive") == pytest.approx(0.6)  # the policy that it chose
    assert one.choice("fqe") == [[3]]  # the best single policy is of a setting that is poor on average
    assert one.regret("is") == pytest.approx(0.5) == one.blind()  # all tie
    assert one.regret("dr") is None
    assert one.choice("dualdice") == [[2]]
    assert swept([1.0, 2.0], [np.nan, np.nan], range(2)).regret("predictive") is None


def test_a_discounted_estimate_is_held_against_a_discounted_truth():
    played = {"return": [3.0], "value": [2.0], "endless": [1.0, None]}
    assert discounted("fqe", played).words == "discounted value without a time limit"
    np.testing.assert_array_equal(discounted("fqe", played).true, [1.0, np.nan])
    assert discounted("is", played).true.tolist() == [2.0]
    assert discounted("fqe", {"return": [3.0]}).words == "return"
    one = swept([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], range(3))._replace(held={"fqe": Held("value", np.arange(3.0))})
    one.said["fqe"] = np.array([1.0, 2.0, 3.0])
    assert [one.correlation(name).value for name in ("predictive", "fqe")] == pytest.approx([-1.0, 1.0])


def test_counts_are_out_of_the_papers_sweeps():
    one = swept([1.0, 2.0, 3.0, 4.1], [1.0, 2.0, 3.0, 4.0], range(4))
    text = correlations.counts([one._replace(task="hopper", planner="mopo"), one, one._replace(task="mine")])
    assert "of the paper's 28 sweeps TOReL 1 (1 are judged here; the paper 18)" in text
    assert "of the 10 that it has for every selector TOReL 0 (0 are judged here; the paper 6)" in text


def test_a_sweep_without_spread_says_so_and_what_diverged_is_left_out():
    assert swept([1.0, 2.0, 3.0], [100.0, 101.0, 102.0], range(3)).flat
    one = swept([1.0, np.nan, 3.0, 4.0], [10.0, 500.0, 20.0, 30.0], range(4))
    assert not one.flat
    assert one.correlation("predictive").policies == 3


# ---- theory by hand


def test_visits_are_shares_and_values_are_their_rewards():
    rng = np.random.default_rng(0)
    moves, reward, policy = rng.dirichlet(np.ones(4), (4, 3)), rng.uniform(size=(4, 3)), np.array([0, 2, 1, 0])
    visits = theory.occupancy(moves, policy, 0.9)
    assert visits.sum() == pytest.approx(1.0)
    value = theory.returns(moves, reward, policy[None], 0.9)[0]
    assert value == pytest.approx(visits @ reward[np.arange(4), policy] / 0.1)


def test_moments_of_a_closed_loop_are_those_of_many_episodes():
    earned, squares = theory.bells(np.array([0.7]), 0.3, 0.9)
    rng, state = np.random.default_rng(0), np.ones(20_000)
    total, power = np.zeros(20_000), np.zeros(20_000)
    for t in range(100):
        total += 0.9**t * np.exp(-(state**2))
        power += 0.1 * 0.9**t * state**2
        state = 0.7 * state + 0.3 * rng.normal(size=20_000)
    assert total.mean() == pytest.approx(earned[0], rel=5e-3)
    assert power.mean() == pytest.approx(squares[0], rel=2e-2)
