"""The readers of version 0.1's records, and the script that asks where worlds are wrong."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))

import where_the_error_is

import offing
from experiments.former import judged
from experiments.former import torel as tuned_offline
from experiments.former.__main__ import main
from offing.hypers import asdict

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


def test_the_default_of_a_sweep_is_one_policy_for_each_seed():
    hypers = offing.planner.get("iql").Hypers()
    settings = [asdict(replace(hypers, beta=beta)) for beta in (hypers.beta, 2 * hypers.beta) for _ in range(3)]
    assert tuned_offline.usual({"planner": "iql", "settings": settings}) == [0, 1, 2]
    assert tuned_offline.usual({"planner": "iql", "settings": [*settings[3:], settings[3] | {"beta": 99.0}]}) == []


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


@pytest.mark.parametrize("what", ["sorel brax", "torel gymnax", "judged random", "posterior"])
def test_tables_of_version_one_are_printed_from_its_records(what, capsys):
    assert main(what.split()) == 0
    printed = capsys.readouterr().out
    assert printed.count("|") > 100
    assert "nan" not in printed
