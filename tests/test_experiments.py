"""The pure parts of the experiments, and the way of Brax pools through them, at toy size."""

import json
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from imagined import fitted

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))

import abreast
import gather
import judge_policies
import judged
import pools
import tuned_offline
import value_against_rows
import where_the_error_is

import offing
from offing.hypers import asdict
from offing.online.play import Played
from offing.pil import PIL
from offing.planner import space
from offing.posterior.models import linear
from offing.report.store import save_columns
from offing.types import Box, Discrete, Policy, Seen, Task
from offing.value.estimators import fqe

NAMES = ["a", "b", "c", "d"]
TRUTH = {
    "task": "t",
    "pool": "p",
    "policies": NAMES,
    "value": [0.0, 10.0, 20.0, 40.0],
    "endless": [0.0, 20.0, 40.0, 80.0],
    "return": [0.0, 1.0, 2.0, 4.0],
}


def said(method="predictive", median=(4.0, 10.0, 16.0, 50.0), half=5.0, **more):
    value = {
        "median": list(median),
        "interval": [[m - half, m + half] for m in median],
        "range": [[m - 1.0, m + 1.0] for m in median],
        "epistemic": [1.0] * 4,
    }
    health = {name: [0.5] * 4 for name in judged.SHOWN[method]}
    here = {"task": "t", "pool": "p", "rows": 7, "seed": 0, "policies": NAMES, "method": method}
    return {**here, "value": value, "return": None, "health": health, "seconds": 2.0, **more}


def test_figures_are_shares_of_the_range_of_truths():
    found = judged.figures(said(), TRUTH)
    assert found["error"] == pytest.approx((4 + 0 + 4 + 10) / 4 / 40)
    assert found["raw"] == pytest.approx(4.5)
    assert found["bias"] == pytest.approx((4 + 0 - 4 + 10) / 4 / 40)
    assert found["spearman"] == pytest.approx(1.0)
    assert found["regret"] == 0.0
    assert found["chance"] == pytest.approx((40 - 17.5) / 40)
    assert found["inside"] == [True, True, True, False]
    assert found["inside_range"] == [False, True, False, False]
    assert found["width"] == pytest.approx(10 / 40)


def test_a_method_without_a_horizon_is_held_against_the_truth_without_one():
    exact = said("fqe", TRUTH["endless"])
    assert judged.figures(exact, TRUTH)["error"] == 0.0
    assert judged.figures(exact, TRUTH, against="value")["error"] == pytest.approx((0 + 10 + 20 + 40) / 4 / 40)
    assert judged.quantity("is", "value") == "value"
    assert judged.quantity("predictive", "return") == "return"


def test_the_policy_that_sorel_chose_is_held_against_its_own_truth():
    here, truth = {"pool": "sorel-none", "rows": 7}, {**TRUTH, "pool": "sorel-none"}
    records = [said(**here), said("fqe", [4.0, 10.0, 16.0, 50.0], **here)]
    plans = [{"task": "t", "rows": 7, "seed": s, "core": c, "chosen": 2} for s in (0, 1) for c in ("none", "gru")]
    (line,) = judged.own(records, [truth], plans)
    assert line.endswith("chosen: off by predictive 4.0, fqe 24.0")  # of 20, and of 40 without a time limit
    assert judged.own(records, [], plans) == []


def test_what_is_not_finite_is_left_out_and_counted():
    found = judged.figures(said(median=(0.0, np.nan, 20.0, 40.0)), TRUTH)
    assert (found["left_out"], found["error"], len(found["inside"])) == (1, 0.0, 3)


def test_a_record_finds_the_truth_of_its_own_pool():
    other = {**TRUTH, "policies": NAMES[::-1]}
    assert judged.truth_of(said(), [other, TRUTH]) is TRUTH
    assert judged.truth_of(said(), [other]) is None


def test_logs_are_averaged_and_what_is_inside_is_counted_together():
    found = judged.pooled([said(), said(median=TRUTH["value"], seed=1)], [TRUTH])
    assert (found["logs"], len(found["inside"]), sum(found["inside"])) == (2, 8, 7)
    assert found["error"] == pytest.approx(4.5 / 40 / 2)
    assert judged.pooled([said()], []) == {}


def test_the_account_says_what_is_reached_and_what_is_not():
    far = said("fqe", (80.0, 0.0, 80.0, 0.0))
    told = "\n".join(judged.account([said(median=TRUTH["value"]), far], [TRUTH]))
    assert "due 0.25 at most: reached" in told
    assert "due 0.9 at least: reached" in told
    assert "due 85% to 97%: NOT reached" in told  # all inside is too much
    near = said("fqe", TRUTH["endless"])
    assert "due 0.25 at most: NOT reached" in "\n".join(judged.account([said(), near], [TRUTH]))
    assert judged.account([said()], [TRUTH]) == ["nothing has been both judged and played yet"]


def test_policies_that_the_log_supports_are_told_from_the_others():
    record = said()
    record["health"]["guarded"] = [0.0, 0.0, 0.9, 0.9]
    one, other = judged.split([record], [TRUTH])
    assert "at most 5%" in one
    assert "2 judgements, error 0.050, interval covers 100%" in one  # 4 and 0 of 40
    assert "more than 5%" in other
    assert "2 judgements, error 0.175, interval covers 50%" in other  # 4 and 10, the last outside


def test_the_table_has_a_row_for_each_method():
    told = judged.table([said("fqe", TRUTH["endless"]), said()], [TRUTH])
    rows = [line for line in told.splitlines() if line.startswith("| t |")]
    assert [row.split("|")[4].strip() for row in rows] == ["predictive", "fqe"]


# ---- pools


def test_a_swung_pendulum_is_pumped_below_and_held_above():
    gains = jnp.array([1.0, 12.0, 3.0, 0.9])
    obs = jnp.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.5], [-1.0, 0.0, -0.5], [0.999, 0.04, 0.0]])
    torque = np.asarray(pools.swing(gains, obs))[:, 0]
    assert torque[0] == 0.0
    assert torque[1] == 2.0
    assert torque[2] == -2.0
    assert -0.6 < torque[3] < -0.4  # 12 times an angle of 0.04


def test_a_leaning_pole_is_followed():
    gains = jnp.array([0.0, 0.0, 1.0, 0.0])
    acted = pools.lean(gains, jnp.array([[0.0, 0.0, 0.1, 0.0], [9.0, 9.0, -0.1, 9.0]]))
    assert np.asarray(acted).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("task", "actions"),
    [("pendulum", Box((-2.0,), (2.0,))), ("cartpole", Discrete(2))],
    ids=["amounts", "choices"],
)
def test_a_pool_comes_back_from_disk_and_acts_alike(tmp_path, task, actions):
    given = Task(10, 0.9, actions)
    made = []
    for name in ("online-3", "shaken-0.5", "hand-0", "iql-1"):
        empty = pools.blank(name, task, given)
        params = pools.shaken(
            jax.random.key(1),
            jax.tree.map(
                lambda leaf: leaf + jnp.arange(leaf.size, dtype=float).reshape(leaf.shape) / (leaf.size + 1),
                empty.params,
            ),
            1.0,
        )
        made.append(pools.Member(name, Policy(params, (), empty.act)))
    pools.keep(tmp_path / "pool.npz", made)
    found = pools.fetch(tmp_path / "pool.npz", task, given)
    assert [member.name for member in found] == [member.name for member in made]
    width = pools.WIDTH[task]
    seen = Seen(
        jax.random.normal(jax.random.key(2), (5, width)), jnp.zeros((5, actions.width)), *[jnp.zeros(5)] * 2
    )
    act = jax.jit(lambda policy: policy.act(policy.params, (), seen, None)[0])
    for one, other in zip(made, found, strict=True):
        assert np.array_equal(act(one.policy), act(other.policy))
        assert act(one.policy).shape == (5, actions.width)


def test_weights_that_are_shaken_by_nothing_stay():
    net = {"a": jnp.arange(6.0), "b": jnp.ones(3)}
    assert jax.tree.all(
        jax.tree.map(lambda x, y: bool((x == y).all()), pools.shaken(jax.random.key(0), net, 0.0), net)
    )
    off = pools.shaken(jax.random.key(0), {"a": jax.random.normal(jax.random.key(1), (4_000,))}, 0.5)["a"]
    assert abs(float(jnp.std(off)) - np.sqrt(1.25)) < 0.05


# ---- Brax pools, from what other experiments left


def hopping(path, rows=240):
    """A log of three observations and two amounts, in episodes of 20."""
    rng = np.random.default_rng(0)
    obs, action = rng.normal(size=(rows, 3)), rng.uniform(-1, 1, (rows, 2))
    last = np.arange(rows) % 20 == 19
    columns = {
        "obs": obs.astype(np.float32),
        "action": action.astype(np.float32),
        "reward": obs[:, 0].astype(np.float32),
        "terminated": last & (np.arange(rows) % 40 == 39),
        "truncated": last & (np.arange(rows) % 40 == 19),
        "final_obs": rng.normal(size=(rows // 20, 3)).astype(np.float32),
        "horizon": np.int64(20),
        "discount": np.float64(0.9),
        "action_low": -np.ones(2, np.float32),
        "action_high": np.ones(2, np.float32),
    }
    save_columns(path, columns)


def linear_worlds(log, seed, scale, work):
    """Four worlds of straight lines in two folds, instead of an ensemble that takes minutes to fit."""
    ones = np.ones(4)
    worlds = fitted(linear.model, jax.random.key(seed), linear.Hypers(noise=0.1, members=4), log.data, log.task)
    return Namespace(pil=PIL(ones, ones, ones, ones, ones, ones, 2), share=ones), replace(worlds, folds=2)


def test_brax_pools_are_judged_without_a_simulator(tmp_path, monkeypatch, capsys):
    hopping(tmp_path / "hopper.npz")
    task, at = Task(20, 0.9, Box((-1.0, -1.0), (1.0, 1.0))), {"task": "hopper", "rows": 240, "seed": 0}
    swept = {"suite": "brax", **at, "planner": "iql", "settings": [asdict(s) for s in space("iql", "smoke")]}
    plan = space("rppo", "smoke", core="linear")[0]
    planned = {"suite": "brax", **at, "core": "linear", "scale": "smoke", "settings": [asdict(plan)]}
    iql = tuned_offline.offing.get_planner("iql")
    blank = [iql.blank(s, 3, task) for s in space("iql", "smoke")]
    tuned_offline.keep(tmp_path, swept, blank)
    value_against_rows.keep(tmp_path, planned, [value_against_rows.rppo.blank(plan, 3, task)])
    (tmp_path / "sweeps.json").write_text(json.dumps([swept, {**swept, "task": "walker2d"}]))
    (tmp_path / "plans.json").write_text(json.dumps([planned]))
    monkeypatch.setattr(tuned_offline, "worlds_of", linear_worlds)
    tiny = {"fqe": fqe.Hypers(width=4, depth=1, updates=40, members=2, batch_size=8)}
    monkeypatch.setitem(judge_policies.SUITES["brax"], "settings", tiny)
    given = Namespace(
        logs=tmp_path,
        policies=tmp_path,
        sweeps=tmp_path / "sweeps.json",
        plans=tmp_path / "plans.json",
        methods=("predictive", "fqe"),
        scale="smoke",
        work=tmp_path / "work",
        copies=4,
        preset=None,
    )
    out = tmp_path / "judged.json"
    judge_policies.judge("brax", "hopper", 240, 0, given, out)
    records = json.loads(out.read_text())
    assert [(r["pool"], r["method"]) for r in records] == [
        (pool, method) for pool in ("iql", "sorel-linear") for method in given.methods
    ]
    assert records[0]["worlds"] == 4
    assert records[0]["return"] is not None
    assert records[1]["return"] is None
    assert len(records[2]["value"]["median"]) == 1
    before = capsys.readouterr().out
    judge_policies.judge("brax", "hopper", 240, 0, given, out)
    assert before
    assert not capsys.readouterr().out  # what is finished is not done again
    truths = [
        {
            "task": "hopper",
            "pool": r["pool"],
            "policies": r["policies"],
            **{what: list(np.arange(len(r["policies"]), dtype=float)) for what in ("value", "endless", "return")},
        }
        for r in records[::2]
    ]
    assert judged.table(records, truths).count("| hopper | iql |") == 3  # two values and a return
    assert "| hopper | sorel" not in judged.table(records, truths)  # one policy is no pool


def test_kept_policies_are_scored_anew_and_are_then_to_be_played(tmp_path, monkeypatch):
    hopping(tmp_path / "hopper.npz")
    log = offing.load(tmp_path / "hopper.npz", 240, 0)
    settings = list(space("iql", "smoke"))
    record = {"suite": "brax", "task": "hopper", "rows": 240, "seed": 0, "planner": "iql", "realised": [1.0, 2.0]}
    record["settings"] = [asdict(s) for s in settings]
    iql = offing.planner.get("iql")
    blank = [iql.blank(s, 3, log.task) for s in settings]
    worse = jax.tree.map(lambda leaf: leaf + 0.7, blank[1].params)  # pushes on, where the blank one stands still

    def worlds_of(log, seed, scale, work):
        found, worlds = linear_worlds(log, seed, scale, work)
        return Namespace(
            pil=found.pil,
            share=found.share,
            scores=[found.pil],
            nll=[0.0],
            points=[Namespace(prior_scale=0.0, bootstrap=0.0)],
            index=0,
        ), worlds

    monkeypatch.setattr(tuned_offline, "worlds_of", worlds_of)
    given = Namespace(scale="smoke", work=tmp_path)
    tuned_offline.score(record, [blank[0], replace(blank[1], params=worse)], log, given)
    assert "realised" not in record
    assert record["predicted"][0] != record["predicted"][1]
    assert record["chosen"] == int(np.argmax(record["predicted"]))
    assert all(
        low <= said <= high for said, (low, high) in zip(record["predicted"], record["intervals"], strict=True)
    )


def test_the_default_of_a_sweep_is_one_policy_for_each_seed():
    hypers = offing.planner.get("iql").Hypers()
    settings = [asdict(replace(hypers, beta=beta)) for beta in (hypers.beta, 2 * hypers.beta) for _ in range(3)]
    assert tuned_offline.usual({"planner": "iql", "settings": settings}) == [0, 1, 2]
    assert tuned_offline.usual({"planner": "iql", "settings": [*settings[3:], settings[3] | {"beta": 99.0}]}) == []


# ---- the online baseline beside an offline choice


def test_what_a_bandit_needs_to_match_an_offline_choice():
    played = [Played(np.full(3, float(i)), np.zeros(3), np.full(3, 5)) for i in range(30)]
    found = tuned_offline.against_ucb(played, 29)
    assert found["20"]["needed"] is None  # the best is among a random twenty two times of three
    assert found["20"]["reaches"] < 29
    assert found["30"]["needed"] == pytest.approx(150, abs=5)
    assert tuned_offline.matched(found) == f"never / {found['30']['needed']:,.0f}"
    assert tuned_offline.matched({}) == "–"


# ---- parts side by side

PART = """
import json, sys
argv = [a for a in sys.argv[1:] if a != "--quiet"]
at = dict(zip(argv[::2], argv[1::2]))
if at["--task"] == "breaks":
    raise SystemExit(3)
json.dump([{"task": at["--task"], "asked": at["--level"]}], open(at["--out"], "w"))
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """An experiment that finds what it was asked."""
    path = tmp_path / "part.py"
    path.write_text(PART)
    monkeypatch.setattr(sys, "argv", [str(path), "--level", "9"])
    return path


def test_parts_are_put_together_and_leave_nothing_behind(tmp_path, script):
    out = tmp_path / "out.json"
    out.write_text(json.dumps([{"task": "there", "asked": "1"}]))
    abreast.abreast([["--task", "a"], ["--task", "b"], ["--task", "c"]], out, 2)
    found = json.loads(out.read_text())
    assert found[0]["task"] == "there"
    assert sorted(r["task"] for r in found[1:]) == ["a", "b", "c"]
    assert {r["asked"] for r in found[1:]} == {"9"}  # what the whole was asked
    assert {path.name for path in tmp_path.iterdir()} == {"out.json", "part.py"}


def test_a_part_that_fails_is_named_and_what_is_finished_is_kept(tmp_path, script):
    out = tmp_path / "out.json"
    with pytest.raises(SystemExit, match="breaks: failed"):
        abreast.abreast([["--task", "a"], ["--task", "breaks"], ["--task", "never"]], out, 1)
    assert [r["task"] for r in json.loads(out.read_text())] == ["a"]


def test_a_part_is_asked_for_what_its_log_lacks():
    logs = [("t", 100, 0), ("t", 100, 1), ("u", 100, 0)]
    there = [{"task": "t", "rows": 100, "seed": 0, "method": method} for method in ("predictive", "fqe")]
    there.append({"task": "t", "rows": 100, "seed": 1, "method": "predictive"})
    found = judge_policies.lacking(logs, ("predictive", "fqe"), there)
    asked = [(part[1], part[3], part[part.index("--methods") + 1 :]) for part in found]
    assert asked == [("t", "100:1", ["fqe"]), ("u", "100:0", ["predictive", "fqe"])]


def test_a_lagged_log_says_what_changed_and_nothing_at_the_start_of_an_episode():
    plain = offing.load("offing:cartpole", 200)
    log = where_the_error_is.lagged(plain)
    obs, after = log.data.steps.obs, log.data.steps.next_obs
    episode = np.asarray(log.data.episode)
    first = np.r_[True, episode[1:] != episode[:-1]]
    np.testing.assert_array_equal(obs[:, :4], plain.data.steps.obs)
    assert not obs[first, 4:].any()
    np.testing.assert_array_equal(
        after[:-1][~first[1:]], obs[1:][~first[1:]]
    )  # one step's end is the next's start
    assert log.data.starts.shape[1] == 8


def test_where_the_error_is_tells_walls_from_the_rest(monkeypatch, capsys):
    log = offing.load("offing:pendulum", 400)
    held = offing.data.take(log.data, offing.data.split(log.data, 0)[0].held).steps.obs
    ends = [edge(log.data.steps.next_obs[:, 2]) for edge in (np.min, np.max)]
    share = np.isin(held[:, 2], ends).mean()  # its speed is held at 8; angles' sines and cosines are not
    assert share > 0
    asked = ["x", "offing:pendulum", "--rows", "400", "--updates", "40", "--members", "2", "--width", "8"]
    for lag in ([], ["--lag"]):
        monkeypatch.setattr(sys, "argv", [*asked, "--depth", "1", *lag])
        where_the_error_is.main()
        said = capsys.readouterr().out
        assert f"at a wall: {share:.0%} of rows" in said
        assert "steps 20 to 99" in said


def test_a_sweep_of_several_seeds_is_also_correlated_by_setting():
    swept = {"task": "hopper", "planner": "iql", "seed": 0, "seeds": [0, 1] * 3}
    swept |= {"settings": [{"beta": beta} for beta in (1.0, 1.0, 3.0, 3.0, 9.0, 9.0)]}
    swept |= {"predicted": [1.0, 3.0, 4.0, 4.0, 9.0, 3.0], "realised": [5.0, 5.0, 0.0, 20.0, 12.0, 18.0]}
    once = {**swept, "seeds": [0] * 6}
    (line,) = tuned_offline.by_setting([swept, once])  # means 2, 4, 6 against 5, 10, 15
    assert "hopper, iql, seed 0: means of 3 settings, r 1.00" in line


def test_gathered_records_take_the_place_of_those_they_do_anew():
    there = [{"task": "hopper", "seed": 0, "x": 1}, {"task": "hopper", "seed": 1, "x": 2}]
    more = [{"task": "walker2d", "seed": 0, "x": 3}, {"task": "hopper", "seed": 0, "x": 4}]
    found = gather.placed(there, more, ("task", "seed"), ())
    assert [record["x"] for record in found] == [4, 2, 3]


def test_a_pool_that_is_judged_anew_leaves_nothing_of_the_old_one():
    there = [
        {"pool": p, "method": m, "x": x} for p, m, x in (("iql", "fqe", 1), ("iql", "is", 2), ("bc", "is", 3))
    ]
    found = gather.placed(there, [{"pool": "iql", "method": "fqe", "x": 4}], ("pool",), ("method",))
    assert [record["x"] for record in found] == [4, 3]
