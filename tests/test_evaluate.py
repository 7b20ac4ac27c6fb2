"""Policies judged side by side, tiny: what methods say, what the log's own behaviour earned, what is not known."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imagined import fitted
from kept import Kept

import offing
from offing.__main__ import main
from offing.data import split
from offing.planner import rppo
from offing.posterior.models import linear
from offing.posterior.models.ensemble import space as world_space
from offing.posterior.replay import Replay
from offing.report import evaluation as report
from offing.report import evaluation_figures as drawn
from offing.report import evaluation_words as words
from offing.report.evaluation import Evaluation, evaluation_of
from offing.report.evaluation_page import evaluation_page
from offing.report.evaluation_parts import Facts, LawReport, WidthReport
from offing.report.evaluation_store import summary, with_page
from offing.report.evaluation_words import more
from offing.tune import evaluate as assess
from offing.tune.candidates import pad_starts
from offing.tune.choose import CROSSED, UNSEEN, cross
from offing.tune.evaluate import evaluate
from offing.tune.judge import acts_like, judge_all, logged, packed, unpacked
from offing.tune.more_data import SHARES, thinned
from offing.tune.plans import EvaluationPlan
from offing.tune.run import Run
from offing.types import BadInput, Box, Dataset, Policy, Task, Transition
from offing.value import estimators
from offing.value.backtest import EPISODES, Backtest, Block, backtest, cut
from offing.value.compare import compare
from offing.value.estimate import ValueEstimate
from offing.value.foreign import foreign
from offing.value.horizon import horizon
from offing.value.law import Law, fit, needed
from offing.value.left_out import LeftOut
from offing.value.many import rolled_all
from offing.value.predictive import rolled

MODELS = world_space("smoke")[:2]
KEY = jax.random.key(0)
FACTS = Facts(
    data="a log",
    fingerprint="f",
    run="r",
    rows=300,
    seed=0,
    scale="smoke",
    version="0",
    device="cpu",
    jax="0",
    seconds=1.0,
)


def lean(params, memory, seen, key):
    """Right where a weighted sum of what is seen is above 0, else left."""
    return jax.nn.one_hot((seen.obs @ params > 0).astype(int), 2), memory


@pytest.fixture(scope="module")
def log():
    log = offing.load("offing:cartpole", 300)
    return log._replace(task=log.task._replace(horizon=30))


@pytest.fixture(scope="module")
def policies(log):
    recalls = rppo.blank(rppo.Hypers(core="gru", width=4), 4, log.task)
    return {"lean": Policy(jnp.array([0.0, 0.1, 1.0, 0.5]), (), lean), "recalls": recalls}


@pytest.fixture(scope="module")
def found(log, policies):
    asked = {"plan": EvaluationPlan(scale="smoke", copies=4), "run": Run(Kept())}
    return evaluate(KEY, log, MODELS, policies, **asked), asked


@pytest.fixture(scope="module")
def kept():
    """A cache of its own: what is kept under a name there is of other policies and methods."""
    return Run(Kept())


@pytest.fixture(scope="module")
def told(found):
    return evaluation_of(found[0], FACTS)


# ---- who says what


def test_every_method_that_can_judge_a_policy_does_and_the_others_say_why(found):
    result = found[0]
    assert set(result.estimates["lean"]) == set(estimators.methods())
    assert set(result.estimates["recalls"]) == {"predictive", "is", "dr"}
    assert result.left_out["lean"] == {}
    assert set(result.left_out["recalls"]) == {"fqe", "dualdice"}
    assert "remembers" in result.left_out["recalls"]["fqe"].reason
    for judged in result.estimates.values():
        ours = judged["predictive"]
        assert ours.returns is not None
        assert ours.estimate.members == result.worlds.members  # all folds: it was trained in none of them
        assert result.worlds.folds == 2  # of 18 episodes a quarter is too few to tell what a fold is off by
        assert judged["is"].returns is not None
    assert result.estimates["lean"]["fqe"].returns is None


def test_a_memory_may_be_emptied_if_that_is_asked_for(log, policies, found):
    jury = judge_all(KEY, log, policies, ["fqe"], "smoke", forget=True)
    assert jury.left_out == {"lean": {}, "recalls": {}}
    assert "another policy" in jury.estimates["recalls"]["fqe"].notes[0]
    assert "another policy" not in jury.estimates["lean"]["fqe"].notes[0]


def test_a_bag_of_transitions_gets_what_can_read_it(log, policies, found):
    loose = log._replace(data=log.data._replace(episode=np.full_like(log.data.episode, -1)))
    lean_alone = {"lean": policies["lean"]}
    jury = judge_all(KEY, loose, lean_alone, ["is", "fqe", "dr"], "smoke")
    assert set(jury.estimates["lean"]) == {"fqe"}
    assert set(jury.left_out["lean"]) == {"is", "dr"}
    assert "bag of transitions" in jury.left_out["lean"]["is"].reason
    seen = np.zeros((2, log.data.rows), bool)
    with pytest.raises(BadInput, match="bag of transitions"):
        backtest(KEY, found[0].worlds, loose.data, seen)


def test_what_was_kept_is_not_done_again_and_gives_the_same(found, log, policies):
    result, asked = found
    before = asked["run"].cache.puts
    again = evaluate(KEY, log, MODELS, policies, **asked)
    assert asked["run"].cache.puts == before
    assert evaluation_of(again, FACTS).to_json() == evaluation_of(result, FACTS).to_json()


def test_a_judgement_survives_the_cache(found):
    for judged in found[0].estimates["lean"].values():
        back = unpacked(packed(judged))
        assert (back.health, back.notes) == (judged.health, judged.notes)
        for one, other in ((back.estimate, judged.estimate), (back.returns, judged.returns)):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                np.testing.assert_array_equal(one.returns, other.returns)
                assert one.interval(0.8) == other.interval(0.8)


def test_what_the_log_says_of_its_actions_goes_to_those_who_weigh_by_it(log):
    says = log._replace(logp=np.zeros(len(log.data.episode), np.float32))
    assert list(logged("is", says)) == list(logged("dr", says)) == ["logp"]
    assert logged("fqe", says) == logged("is", log) == {}


def test_policies_are_told_apart_by_what_they_do(log, policies):
    other = replace(policies["lean"], params=-policies["lean"].params)
    assert acts_like(policies["lean"], log) != acts_like(other, log)
    assert acts_like(policies["lean"], log) == acts_like(replace(other, params=2 * policies["lean"].params), log)


def test_unknown_methods_are_refused(log, policies):
    with pytest.raises(BadInput, match="crystal ball: no such method"):
        evaluate(KEY, log, MODELS, policies, EvaluationPlan(methods=["crystal ball"]))


# ---- on paper


def test_the_json_has_what_was_promised(told):
    plain = told.to_json()
    json.dumps(plain, allow_nan=False)
    assert Evaluation.of_json(plain).to_json() == plain
    assert plain["online_samples"] == 0
    for methods in plain["estimates"].values():
        for one in methods.values():
            assert set(one) >= {"median", "interval", "level", "health", "return"}
            assert one["interval"][0] <= one["median"] <= one["interval"][1]
    assert {"backtest", "horizon", "more_data", "checks", "comparison"} <= set(plain)
    assert plain["more_data"]["extrapolation"] is True
    points = [point["rows"] for point in plain["more_data"]["points"]]
    assert [round(rows / points[-1], 3) for rows in points] == [*SHARES, 1.0]


def test_rows_of_the_table_are_every_policy_by_every_method(told):
    rows = told.rows_of()
    assert [(row.policy, row.method) for row in rows] == [
        (p, m) for p, each in told.estimates.items() for m in each
    ]
    assert all(row.value_low <= row.value <= row.value_high for row in rows)
    pytest.importorskip("pandas")
    frame = told.to_frame()
    assert len(frame) == len(rows)
    assert {"policy", "method", "value", "returns", "agrees"} <= set(frame.columns)


def test_page_and_terminal_say_the_same(told, tmp_path):
    page, lines = evaluation_page(told), "\n".join(summary(told, tmp_path))
    assert page.left_out == {}
    for method in estimators.names():
        sentence = told.estimates["lean"][method].explained
        assert sentence in lines
        assert sentence.replace("'", "&#39;") in page.html
    assert "left out; it judges what acts on the observation alone" in lines
    assert "By extrapolation" in lines
    assert "By extrapolation" in page.html
    assert "Compared world by world" in lines
    assert told.comparison.sentences()[0] in page.html
    assert "<script" not in page.html
    for check in told.checks:
        assert (f"{check.question} {check.sentence}" in lines) == (not check.passed)


@pytest.mark.parametrize(
    ("rows", "between", "said"),
    [
        (
            41_234.0,
            [9_000.0, 91_000.0],
            ["about 40,000 more rows", "from 8,000 to 90,000", "±5 for mine (it is ±10)"],
        ),
        (41_234.0, [900.0, None], ["about 40,000", "from 0 on, without end,"]),
        (41_234.0, [None, None], ["from 40,000 on"]),
        (None, [5_000.0, None], ["no number of rows", "at best 4,000 more would"]),
        (None, [None, None], ["no number of rows like these gives"]),
        (800.0, [500.0, 900.0], ["already has rows enough"]),
    ],
)
def test_more_rows_are_asked_for_in_words(told, rows, between, said):
    width = WidthReport((), LawReport(1.0, 0.0), 10.0, 5.0, rows, tuple(between))
    report = replace(told.more_data, widths={"mine": width})
    text = more(replace(told, rows=1_000, more_data=report), "mine")
    assert all(part in text for part in said), text


def test_the_command(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n\ndef push(obs):\n    return (obs[:, 2] > 0).astype(int)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = ["evaluate", "offing:cartpole", "--rows", "300", "--scale", "smoke", "--out", "out"]
    assert main([*asked, "--policy", "mine:push", "--policy", "mine:push"]) == 2
    assert "twice" in capsys.readouterr().err
    asked += ["--policy", "mine:push", "--methods", "fqe"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "online samples used: 0" in shown
    told = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert set(told["estimates"]["mine:push"]) == {"predictive", "fqe"}
    assert (tmp_path / "out" / "evaluation.html").exists()
    assert main(asked) == 0
    assert "already finished" in capsys.readouterr().err
    assert main([*asked, "--level", "2"]) == 2
    monkeypatch.setattr(assess, "more_data", broken)
    monkeypatch.setattr(drawn, "past", broken)
    assert main([*asked, "--fresh"]) == 0
    assert WHY in capsys.readouterr().out
    told = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert told["more_data"] == {"left_out": WHY}
    assert told["figures_left_out"] == {"the picture past": WHY}


# ---- what is added may fail


def broken(*_, **__):
    raise OverflowError("(34, 'Numerical result out of range')")


WHY = "it failed with OverflowError: (34, 'Numerical result out of range')"


@pytest.mark.parametrize(
    ("module", "name", "lost"),
    [
        (assess, "more_data", "more_data"),
        (assess, "backtested", "backtest"),
        (assess, "_horizon", "horizon"),
        (assess, "inspect", "consistent"),
        (assess, "rules", "one_rule"),
        (assess, "predicted", "predicted"),
        (estimators.get("fqe"), "estimate", "fqe"),
    ],
)
def test_an_addition_that_fails_leaves_the_estimates(module, name, lost, log, policies, monkeypatch, kept):
    if module is estimators.get("fqe"):
        torn = replace(module, estimate=broken)
        whole = estimators.get
        monkeypatch.setattr(estimators, "get", lambda n: torn if n == "fqe" else whole(n))
        kept.cache.kept.pop("judged-fqe")
    else:
        monkeypatch.setattr(module, name, broken)
    some = {"lean": policies["lean"]}
    plan = EvaluationPlan(methods=["predictive", "fqe"], scale="smoke", copies=4)
    result = evaluation_of(assess.evaluate(KEY, log, MODELS, some, plan, run=kept), FACTS)
    result, page = with_page(result)
    ours = result.estimates["lean"]["predictive"]
    assert np.isfinite([ours.median, *ours.interval]).all()
    lines = "\n".join(summary(result, Path()))
    if lost == "fqe":
        assert set(result.estimates["lean"]) == {"predictive"}
        assert result.left_out["lean"] == {"fqe": WHY}
        assert f"FQE: left out; {WHY}." in lines
    elif lost in ("more_data", "backtest", "horizon"):
        assert getattr(result, lost) == LeftOut(WHY)
        assert result.to_json()[lost] == {"left_out": WHY}
    else:
        assert result.checks_left_out[lost] == f"what it rests on was left out: {WHY}"
    for text in (lines, page.replace("&#39;", "'")):
        assert WHY in text
    assert Evaluation.of_json(result.to_json()).to_json() == result.to_json()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *((report, name) for name in ("checks", "explained", "faults", "compare", "_conformal", "_more", "apart")),
        *((drawn, name) for name in ("policies", "methods", "past", "far", "loss", "width")),
        *((words, name) for name in ("past", "more", "cautions")),
    ],
)
def test_what_a_report_adds_may_fail_too(module, name, found, monkeypatch):
    monkeypatch.setattr(module, name, broken)
    result, page = with_page(evaluation_of(found[0], FACTS))
    plain = result.to_json()
    json.dumps(plain, allow_nan=False)
    assert Evaluation.of_json(plain).to_json() == plain
    assert (
        result.estimates["lean"]["predictive"].median == found[0].estimates["lean"]["predictive"].estimate.median
    )
    lines = summary(result, Path())
    if name not in ("faults", "apart", "_conformal"):  # these say nothing by themselves
        assert any("OverflowError" in line for line in lines), lines
        assert name == "cautions" or "OverflowError" in page  # the page shows checks, and no sentence of them
    assert "lean will earn about" in page


def warped(plain, numbers):
    """The JSON with every number that is not whole replaced."""
    if isinstance(plain, dict):
        return {name: warped(item, numbers) for name, item in plain.items()}
    if isinstance(plain, list):
        return [warped(item, numbers) for item in plain]
    return next(numbers) if isinstance(plain, float) else plain


ODD = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, 1e9, None, 0.5]) | st.floats(-1e6, 1e6)


@settings(max_examples=12, deadline=None, database=None)
@given(odd=st.lists(ODD, min_size=1, max_size=9))
def test_pages_and_sentences_are_made_whatever_the_numbers(told, odd):
    """Flat, rising, zero, huge, missing: no figure and no sentence fails."""
    result = Evaluation.of_json(warped(told.to_json(), itertools.cycle(odd)))
    result, page = with_page(result)
    assert result.figures_left_out == {}
    assert "lean will earn about" in page
    assert not any("it failed" in line for line in summary(result, Path()))
    json.dumps(result.to_json(), allow_nan=False)


def one_world(returns, **more):
    return ValueEstimate(np.asarray(returns, float), **more)


@settings(max_examples=60, deadline=None, database=None)
@given(
    st.lists(st.sampled_from([0.0, 1.0, 1e300, -1e300, np.nan, np.inf, 1e-300]), min_size=2, max_size=6),
    st.sampled_from([(1, 1), (1, 3), (3, 1), (4, 2)]),
)
def test_policies_are_compared_whatever_their_returns(numbers, shape):
    each = itertools.cycle(numbers)
    returns = {
        name: one_world(np.array([next(each) for _ in range(shape[0] * shape[1])]).reshape(shape))
        for name in "abc"
    }
    found = compare(returns, 5)
    assert sorted(found.order) == ["a", "b", "c"]
    assert len(found.differences) == 3
    assert all(sentence.endswith(".") for sentence in found.sentences())


def test_differences_that_all_worlds_agree_on_are_beyond_doubt():
    rng = np.random.default_rng(0)
    world = 100 * rng.standard_normal((10, 1))  # what a world says of all policies alike
    noise = lambda: rng.standard_normal((10, 64))
    returns = {
        "good": one_world(world + 5 + noise()),
        "twin": one_world(world + 5 + noise()),
        "bad": one_world(world + noise()),
    }
    found = compare(returns, 100)
    assert found.order[-1] == "bad"
    assert found.beaten("good") == found.beaten("twin") == ["bad"]  # though their intervals overlap by far
    assert returns["good"].interval(0.9)[0] < returns["bad"].interval(0.9)[1]
    first = found.order[0]
    other = found.order[1]
    assert (
        found.sentences()[0] == f"{first} earns more than bad beyond doubt, and is indistinguishable from {other}."
    )
    assert compare({"good": returns["good"]}, 100) is None


def test_worlds_of_another_kind_stand_beside(log, policies, kept):
    some = {"lean": policies["lean"]}
    plan = EvaluationPlan(methods=["predictive"], scale="smoke", copies=4, judges=["neighbours"])
    found = assess.evaluate(KEY, log, MODELS, some, plan, run=kept)
    assert list(found.estimates["lean"]) == ["predictive", "neighbours"]
    told = evaluation_of(found, FACTS)
    one = told.estimates["lean"]["neighbours"]
    assert one.returns is not None
    assert np.isfinite([one.median, *one.interval]).all()
    assert one.explained.startswith("The worlds of neighbours say")
    with pytest.raises(BadInput, match="oracle: no such model"):
        assess.evaluate(KEY, log, MODELS, some, EvaluationPlan(methods=["predictive"], judges=["oracle"]))


# ---- many policies


def test_many_policies_are_judged_as_each_alone(log, found):
    """Nets of one kind in one program, and functions of the host side by side."""
    worlds = pad_starts(found[0].worlds)
    nets = [Policy(jnp.array(w), (), lean) for w in ([0.0, 0.1, 1.0, 0.5], [0.0, 0.0, -1.0, 0.0])]
    host = [
        foreign(lambda obs, s=s: (np.asarray(obs)[:, 2] * s > 0).astype(int), log.task, 4, f"host{s}")
        for s in (1, -1)
    ]
    traced = [foreign(lambda obs: (obs[:, 3] > 0) * 1, log.task, 4, "traced")]
    pool = [nets[0], host[0], traced[0], nets[1], host[1]]
    together = rolled_all(KEY, pool, worlds, 5, way=True)
    for policy, journey in zip(pool, together, strict=True):
        alone = rolled(KEY, policy, worlds, 5)[0]
        for name in ("returns", "values", "lengths", "first"):
            mine, theirs = getattr(journey.rollouts, name), np.asarray(getattr(alone, name))
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
        assert journey.way.obs.shape[1:] == (worlds.members, 5, 4)
        assert journey.way.alive[0].all()


# ---- closed forms


def test_the_law_is_found_and_read_off_beyond_what_was_seen():
    rows = np.array([1_000.0, 2_000.0, 4_000.0, 8_000.0])
    law = fit(rows, 3e4 / rows)
    assert law.slope == pytest.approx(3e4, rel=1e-3)
    assert law.rows(1.0) == pytest.approx(3e4, rel=1e-3)
    law = fit(rows, 3e4 / rows + 2.0)
    assert (law.slope, law.floor) == (pytest.approx(3e4, rel=0.05), pytest.approx(2.0, rel=0.05))
    assert law.rows(1.9) == np.inf
    assert Law(10.0, 1.0).at(5.0) == 3.0


def test_rows_needed_come_with_what_else_is_compatible():
    rows = np.array([1_000.0, 2_000.0, 4_000.0])
    y = 1e4 / rows
    drawn = np.concatenate([np.tile(y, (50, 1)), np.tile(2 * y, (45, 1)), np.tile(np.full(3, 9.0), (5, 1))])
    found = needed(rows, y, drawn, share=0.25)
    assert (found.rows, found.low) == (pytest.approx(16e3, rel=1e-3), pytest.approx(16e3, rel=1e-3))
    assert found.high == pytest.approx(16e3, rel=1e-3)  # twice as much everywhere falls alike
    steep = needed(rows, 1e7 / rows**2, np.tile(1e7 / rows**2, (9, 1)), share=0.25)
    assert (steep.rows, steep.high) == (pytest.approx(16e3, rel=1e-3), pytest.approx(16e3, rel=1e-3))  # the law
    assert steep.low == pytest.approx(8e3, rel=1e-3)  # what was seen
    assert needed(rows, y, drawn, share=0.25, level=0.99).high > 1e5  # some have a floor
    assert needed(rows, y, drawn, share=2.0).rows < 4_000


WIDTHS = st.one_of(
    st.just([1.0, 1.0, 0.9995]),  # as it once came out at 2,850, 5,700 and 11,400 rows, and overflowed
    st.lists(
        st.sampled_from([0.0, 1e-300, 1.0, 1 - 1e-12, 1 + 1e-12, 1e300, np.inf]) | st.floats(0, 1e6),
        min_size=1,
        max_size=5,
    ),
)


@settings(max_examples=300, deadline=None, database=None)
@given(widths=WIDTHS, share=st.sampled_from([1e-300, 1e-4, 0.25, 0.999999, 1.0, 2.0]))
def test_rows_needed_are_a_number_or_infinite_whatever_the_widths(widths, share):
    """Flat, rising, falling, zero, huge, and of one size alone: never an error, never nan, never below zero."""
    rows = 2_850.0 * 2.0 ** np.arange(len(widths))
    found = needed(rows, np.array(widths), np.tile(widths, (5, 1)), share)
    assert all(number >= 0 for number in found)
    assert found.low <= found.high


def test_the_horizon_ends_where_error_outgrows_spread():
    steps = np.array([1, 2, 4, 8])
    curve = lambda error, spread: Replay(
        np.array([0.5]), steps, np.array([error]), np.array([spread]), None, 0.5, None
    )  # type: ignore[arg-type]
    good = horizon(curve([1.0, 2, 4, 8], [1.0, 2, 4, 8]), 10)
    assert (good.trusted, good.last, good.share) == (8, 8, 0.8)
    late = horizon(curve([1.0, 2, 4, 8], [1.0, 2, 4, 4]), 10)
    assert (late.trusted, late.last) == (4, 4)
    timid = horizon(curve([1.0, 2, 4, 8], [3.0, 6, 4, 8]), 10)  # over-dispersed first: wide, and not wrong
    assert (timid.trusted, timid.last, timid.agree.tolist()) == (8, 8, [False, False, True, True])
    assert horizon(curve([2.0, 2, 4, 8], [1.0, 2, 4, 8]), 10).trusted == 0
    assert horizon(None, 10) is None


def test_blocks_are_in_order_and_none_is_thin():
    assert cut([3]) == []
    assert [block.tolist() for block in cut([3, 5, 7])] == [[3, 5, 7]]
    blocks = cut(range(0, 90, 2))
    assert np.concatenate(blocks).tolist() == list(range(0, 90, 2))
    assert min(map(len, blocks)) >= 4
    assert sum(map(len, cut(range(5_000)))) == EPISODES


def test_logs_of_enough_episodes_are_judged_by_crossed_folds(found, log):
    choice = found[0].posterior
    assert cross(choice, log, 0) is choice
    longer = offing.load("offing:cartpole", 2_000)
    whole = cross(choice, longer, 0).whole
    assert len(whole.sizes) == CROSSED
    assert whole.sizes.min() > 0.6 * longer.data.rows
    episode = np.asarray(longer.data.episode)
    for rows, size in zip(whole.train, whole.sizes, strict=True):
        assert len(np.unique(np.delete(episode, rows[:size]))) >= UNSEEN


def test_fewer_rows_are_whole_episodes_of_the_same_folds(log):
    parts = split(log.data, 0)[0]
    before: list[set[int]] = [set(), set()]
    for share in SHARES:
        thin = thinned(log.data, parts, share, seed=0)
        assert thin.train.shape == parts.train.shape
        for fold, size in enumerate(thin.sizes):
            rows = set(thin.train[fold, :size].tolist())
            assert len(rows) == size == max(2, round(share * parts.sizes[fold]))
            assert before[fold] <= rows <= set(parts.train[fold, : parts.sizes[fold]].tolist())
            before[fold] = rows
            kept, whole = (
                np.bincount(np.asarray(log.data.episode)[list(r)]) for r in (rows, range(log.data.rows))
            )
            assert np.sum((kept > 0) & (kept < whole[: len(kept)])) <= 1  # the last one is cut


# ---- the log's own behaviour, where the world is known


def pushed(seed=0, steps=12, episodes=48):
    """s' = 0.9 s + u + noise pays s; whoever drove pushed up in the first half of the log and down in the rest."""
    rng = np.random.default_rng(seed)
    mean = np.where(np.arange(episodes) < episodes // 2, 0.6, -0.6)[:, None, None]
    action = (mean + 0.1 * rng.standard_normal((episodes, steps, 1))).astype(np.float32)
    obs = np.zeros((episodes, steps + 1, 1), np.float32)
    obs[:, 0] = 0.3 * rng.standard_normal((episodes, 1))
    for t in range(steps):
        obs[:, t + 1] = 0.9 * obs[:, t] + action[:, t] + 0.05 * rng.standard_normal((episodes, 1))
    flat = lambda a: a.reshape(-1, 1)
    now = flat(obs[:, :-1])
    rows = Transition(now, flat(action), now[:, 0], flat(obs[:, 1:]), flat(action), np.zeros(len(now), np.float32))
    data = Dataset(rows, obs[:, 0], np.repeat(np.arange(episodes), steps), np.asarray(len(now), np.int32))
    task = Task(steps, 0.95, Box((-1.0,), (1.0,)))
    return data, task, fitted(linear.model, jax.random.key(3), linear.Hypers(noise=0.05, members=8), data, task)


@pytest.fixture(scope="module")
def drifting():
    return pushed()


def test_behaviours_that_follow_each_other_are_foretold_one_by_one(drifting):
    data, _, worlds = drifting
    found = backtest(KEY, worlds, data, np.zeros((1, data.rows), bool))
    assert [block.first for block in found.blocks] == sorted(block.first for block in found.blocks)
    up, down = found.blocks[0], found.blocks[-1]
    assert up.logged > 15 > 0 > -15 > down.logged
    for block in (up, down):  # a clone of both together would push nowhere
        assert block.predicted.median == pytest.approx(block.logged, abs=4.0)
    assert found.held
    assert found.conformal.policies == len(found.blocks) == 10
    assert np.isfinite(found.conformal.factor)
    few = Backtest(found.blocks[:5], 0.9)
    assert few.conformal.factor == np.inf
    assert "too few" in few.conformal.note


def test_promises_are_checked_as_they_are_made():
    """Every world says too much of whatever is asked: corrected they are right, as they are far off."""
    rng = np.random.default_rng(0)
    offsets, blocks = 5 + rng.normal(size=8), []
    for number in range(12):
        logged = float(rng.normal(10, 1))
        says = ValueEstimate((logged + offsets + 0.1 * rng.normal(size=8))[:, None], 0.01)
        blocks.append(Block(0, number, number, 4, logged, says, logged, says))
    known = Backtest(tuple(blocks), 0.9, 1, 48)
    plain, corrected = (np.abs(known.scores(correct=correct)) for correct in (False, True))
    assert plain.min() > 2
    assert np.sqrt(np.mean(corrected**2)) < 2
    assert known.conformal.factor < plain.min()  # of corrected estimates, as those are that it is for


def test_worlds_that_pay_the_other_way_are_found_out(drifting):
    data, _, worlds = drifting
    contrary = data._replace(steps=data.steps._replace(reward=-data.steps.reward))
    found = backtest(KEY, worlds, contrary, np.zeros((1, data.rows), bool))
    assert found.inside <= 1  # a stretch that earned next to nothing is the same either way
    assert not found.held


def test_episodes_that_every_world_saw_prove_nothing(drifting):
    data, _, worlds = drifting
    with pytest.raises(BadInput, match="too few"):
        backtest(KEY, worlds, data, np.ones((1, data.rows), bool))


def test_an_episode_that_was_cut_is_foretold_to_where_it_was_cut(drifting):
    data, task, worlds = drifting
    longer = replace(worlds, task=task._replace(horizon=24))
    found = backtest(KEY, longer, data, np.zeros((1, data.rows), bool))
    assert found.blocks[0].predicted.median == pytest.approx(found.blocks[0].logged, abs=4.0)
