"""TOReL as a whole, tiny: trials are what they would be alone, the ranking says what it cannot tell apart."""

import json
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kept import Kept

import offing
from offing import planner as planners
from offing.__main__ import main
from offing.planner import iql, space
from offing.posterior._space import SMALL
from offing.posterior.models.ensemble import Hypers
from offing.report.jsonable import to_json
from offing.report.ranking import tried_policy
from offing.report.ranking_page import order
from offing.report.results import load_policy
from offing.tune import systems
from offing.tune.plans import TrialPlan
from offing.tune.run import Run
from offing.tune.search import Search
from offing.tune.systems import chosen, overlapping
from offing.tune.trials import RUNGS, Contender, Trial, try_all
from offing.types import Seen
from offing.value import estimators
from offing.value.estimate import Estimate, ValueEstimate
from offing.value.estimator import Estimator

MODELS = [
    replace(Hypers(**SMALL), width=16, updates=60, members=3, elites=2, init_diversity=own, rates=(1.0,))
    for own in (0.1, 1.0)
]
SETTINGS = tuple(
    iql.Hypers(updates=8, batch_size=16, width=8, depth=1, lr=1e-2, beta=beta) for beta in (0.5, 1.0, 3.0, 10.0)
)
DREAMERS = ["combo", "mopo", "morel", "rppo"]  # the planners that look into worlds
CONTENDER = Contender("iql", iql.planner, SETTINGS)
PLAN = TrialPlan(copies=4)


@pytest.fixture(scope="module")
def log():
    return offing.load("offing:cartpole", 400)


@pytest.fixture(scope="module")
def found(log):
    cache = Kept()
    return systems.torel(jax.random.key(0), log, MODELS, [CONTENDER], plan=PLAN, run=Run(cache)), cache


def trials_of(found, log, **more):
    return try_all(jax.random.key(5), log, [CONTENDER], found[0].worlds, plan=TrialPlan(copies=4, **more))


def test_it_ranks_and_does_not_promise(found):
    result, _ = found
    assert (result.system, result.promise) == ("torel", "ranking")
    assert result.trials[result.index].score == max(trial.score for trial in result.trials)
    assert [trial.setting for trial in result.trials] == list(SETTINGS)
    assert result.saved == 0
    assert not hasattr(result, "verdict")


def test_what_was_kept_is_not_done_again_and_gives_the_same(found, log):
    result, cache = found
    before = cache.puts
    again = systems.torel(jax.random.key(0), log, MODELS, [CONTENDER], plan=PLAN, run=Run(cache))
    assert cache.puts == before
    assert [t.score for t in again.trials] == [t.score for t in result.trials]


def test_whoever_survives_halving_learned_what_it_would_have_learned_alone(found, log):
    whole = trials_of(found, log)
    halved = trials_of(found, log, halve=True)
    shares = [trial.share for trial in halved]
    assert sorted(shares) == [RUNGS[0], RUNGS[0], RUNGS[1], 1.0]
    best = shares.index(1.0)
    for one, other in zip(*(jax.tree.leaves(t[best].policy.params) for t in (whole, halved)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    stopped = shares.index(RUNGS[0])
    first = [np.asarray(t[stopped].policy.params[0].layers[0].weight) for t in (whole, halved)]
    assert np.abs(first[0] - first[1]).max() > 1e-4  # it did stop


def test_worlds_that_a_planner_saw_do_not_judge_it_and_all_judge_one_that_saw_none(found, log):
    worlds = found[0].worlds
    assert trials_of(found, log)[0].returns.returns.shape[0] == worlds.members
    looks = CONTENDER._replace(planner=replace(iql.planner, imagines=True), settings=SETTINGS[:1])
    mine = try_all(jax.random.key(5), log, [looks], worlds, plan=PLAN)[0]
    assert mine.returns.returns.shape[0] == worlds.members // 2
    fooled = jax.tree.map(lambda leaf: jnp.asarray(leaf).at[: worlds.members // 2].multiply(3.0), worlds.theta)
    again = try_all(jax.random.key(5), log, [looks], replace(worlds, theta=fooled), plan=PLAN)[0]
    np.testing.assert_array_equal(mine.returns.returns, again.returns.returns)
    assert [name for name in planners.names() if planners.get(name).imagines] == DREAMERS


def test_seeds_are_one_more_axis(found, log):
    trials = trials_of(found, log, seeds=2)
    assert [(t.setting, t.seed) for t in trials] == [(s, k) for s in SETTINGS for k in (0, 1)]
    first, second = (jax.tree.leaves(t.policy.params)[0] for t in trials[:2])
    assert not np.array_equal(first, second)


def trial(score, setting=SETTINGS[0], seed=0, share=1.0, spread=1.0) -> Trial:
    returns = ValueEstimate(np.full((3, 4), score) + spread * np.arange(-1, 2)[:, None])
    return Trial("iql", setting, seed, returns, returns, None, share)  # type: ignore[arg-type]


def test_a_setting_is_chosen_by_the_mean_of_its_seeds_and_stopped_ones_are_not():
    lucky = [trial(10.0, SETTINGS[0], 0), trial(0.0, SETTINGS[0], 1)]
    steady = [trial(6.0, SETTINGS[1], 0), trial(7.0, SETTINGS[1], 1)]
    assert chosen([*lucky, *steady]) == 3
    assert chosen([trial(10.0, share=0.25), trial(1.0, SETTINGS[1])]) == 1


def test_a_trial_that_diverged_comes_last_wherever_it_stands():
    lost = trial(np.nan, SETTINGS[2])
    assert lost.score == -np.inf
    assert chosen([lost, trial(-5.0), trial(-7.0, SETTINGS[1])]) == 1
    told = [tried_policy(t, 0.9, 0.0) for t in (lost, trial(-5.0), trial(0.0, SETTINGS[1]))]
    assert told[0].score is None
    assert order(SimpleNamespace(trials=told)) == [2, 1, 0]
    json.dumps(to_json(told), allow_nan=False)


def test_what_cannot_be_told_apart_is_named():
    trials = [trial(10.0), trial(9.9, SETTINGS[1]), trial(-90.0, SETTINGS[2]), trial(10.0, seed=1)]
    assert overlapping(trials, 0) == (1,)  # the far one is not, nor is the same setting with another seed


def test_the_command_ranks_several_planners_and_its_policy_plays(tmp_path, capsys):
    out = tmp_path / "out"
    asked = ["torel", "offing:cartpole", "--rows", "400", "--planner", "iql", "--planner", "bc"]
    asked += ["--space", "smoke", "--scale", "smoke", "--out", str(out)]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    told = json.loads((out / "result.json").read_text())
    assert told["promise"] == "ranking"
    assert told["online_samples"] == 0
    assert {t["planner"] for t in told["trials"]} == {"iql", "bc"}
    assert len(told["trials"]) == len(space("iql", "smoke")) + len(space("bc", "smoke"))
    assert set(told["trials"][0]) >= {"planner", "setting", "seed", "score", "interval", "seconds"}
    assert all(0 <= i < len(told["trials"]) for i in (told["chosen"], *told["indistinguishable"]))
    assert "verdict" not in told
    assert "GO" not in shown.replace("offing", "")
    assert "chosen" in shown
    assert "does not promise" in shown
    policy, task = load_policy(out)
    seen = Seen(np.zeros((7, 4)), np.zeros((7, 2)), np.zeros(7), np.ones(7))
    action, _ = policy.act(policy.params, policy.begin(7), seen, None)
    assert action.shape == (7, 2)
    assert task.horizon == 500
    page = (out / "report.html").read_text()
    assert "never says GO" in page
    assert "<script" not in page
    assert main(asked) == 0  # already finished
    assert "already finished" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--planner", "nope"], "no such planner"),
        (["--planner", "iql", "--space", "huge"], "no such scale"),
        (["--planner", "iql", "--planner", "iql"], "twice"),
        (["--planner", "iql", "--seeds", "0"], "at least 1"),
        (["--planner", "iql", "--level", "2"], "between 0 and 1"),
    ],
)
def test_bad_requests_get_one_line_and_nothing_is_written(more, told, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["torel", "offing:cartpole", "--rows", "400", "--out", str(out), *more]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert told in lines[0]
    assert not out.exists()


def test_another_estimator_may_choose(found, log, monkeypatch):
    """Ranked by somebody else's word: the worst by the worlds comes first if that says so."""

    def contrary(key, policies, data, task):
        worth = [ValueEstimate(np.full((2, 3), float(i))) for i in range(len(policies))]
        return [Estimate(estimate, {}, ()) for estimate in worth]

    part = Estimator("contrary", "a contrary estimate", contrary, {}, {})
    monkeypatch.setattr(estimators, "methods", lambda: ("predictive", "contrary"))
    monkeypatch.setattr(estimators, "get", lambda name: part)
    cache = found[1]
    result = systems.torel(
        jax.random.key(0), log, MODELS, [CONTENDER], plan=TrialPlan(copies=4, select="contrary"), run=Run(cache)
    )
    assert result.index == len(SETTINGS) - 1
    assert [t.score for t in result.trials] == [0.0, 1.0, 2.0, 3.0]
    assert [t.returns.median for t in result.trials] == [t.score for t in found[0].trials]
    with pytest.raises(offing.BadInput, match="no such estimator"):
        systems.torel(
            jax.random.key(0), log, MODELS, [CONTENDER], plan=TrialPlan(select="crystal ball"), run=Run(cache)
        )


def test_a_search_is_asked_batch_after_batch_and_goes_on_where_it_was(found, log):
    asked, told = [], []
    rest = list(SETTINGS)

    def ask(count):
        taken = [rest.pop(0) for _ in range(min(count, len(rest)))]
        asked.append(len(taken))
        return taken

    search = Search("mine", ask, lambda settings, scores: told.extend(zip(settings, scores, strict=True)))
    contender = Contender("iql", iql.planner, (), search, tries=3, batch=2)
    result = systems.torel(jax.random.key(0), log, MODELS, [contender], plan=PLAN, run=Run(found[1]))
    assert asked[:2] == [2, 1]
    assert [setting for setting, _ in told] == list(SETTINGS[:3])
    np.testing.assert_allclose([score for _, score in told], [t.score for t in found[0].trials[:3]], rtol=1e-5)
    assert len(result.trials) == 3


def test_a_space_from_a_file_is_drawn_from(tmp_path, capsys):
    path, out = tmp_path / "space.toml", tmp_path / "out"
    path.write_text(
        'planner = "iql"\n[base]\nupdates = 4\nbatch_size = 16\nwidth = 8\ndepth = 1\n'
        "[axes]\nbeta = {low = 0.1, high = 10.0, log = true}\n"
    )
    asked = ["torel", "offing:cartpole", "--rows", "400", "--scale", "smoke", "--out", str(out)]
    assert main([*asked, "--planner", "bc", "--space", str(path), "--search", "random"]) == 2
    assert "is a space of iql" in capsys.readouterr().err
    assert main([*asked, "--planner", "iql", "--space", str(path)]) == 2
    assert "a range has no grid" in capsys.readouterr().err
    asked += ["--planner", "iql", "--space", str(path), "--search", "random", "--tries", "3"]
    assert main(asked) == 0
    told = json.loads((out / "result.json").read_text())
    assert len({trial["setting"]["beta"] for trial in told["trials"]}) == 3
