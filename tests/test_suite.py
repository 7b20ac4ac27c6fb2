"""The suite: tasks step, logs are what their seed says, the split is as drawn, figures add up."""

import numpy as np
import pytest

from experiments.suite import logs, runner
from experiments.suite.__main__ import main
from experiments.suite.imagined import imagined
from experiments.suite.jobs import Job, listed, write
from experiments.suite.play import mixed, remembers_nothing, returns, seen, tidy, truth
from experiments.suite.policies import Reading, disturbed, pool, rolled
from experiments.suite.product import Worlds
from experiments.suite.table import (
    Share,
    evaluate_figures,
    flips,
    imagined_figures,
    latest,
    read,
    sorel_figures,
    stopped,
)
from experiments.suite.tasks import EVERY, FIRST, KINDS, LATER, SEALED, TASKS, Choices, draw_split, half
from experiments.suite.words import PAID, compact, printed

NAMES = [task.name for task in EVERY]


@pytest.fixture(scope="module")
def pools():
    return {task.name: pool(task) for task in EVERY}


@pytest.mark.parametrize("name", NAMES)
def test_a_task_steps_many_episodes_with_the_shapes_that_it_says(name, pools):
    task, n = TASKS[name], 7
    rng = np.random.default_rng(0)
    state = task.start(rng, n)
    wild = list(pools[name].policies.values())[:1]
    for _ in range(task.horizon + 3):  # an episode that has ended may be stepped on
        obs = seen(task, state)
        assert obs.shape == (n, len(task.columns))
        assert np.isfinite(obs).all()
        state, reward, ended = task.step(state, mixed(task, wild, np.zeros(n, int), obs, 0.5, rng), rng)
        assert reward.shape == ended.shape == (n,)
        assert ended.dtype == bool
        assert np.isfinite(reward).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_pool_has_twelve_policies_and_more_of_spread_quality(name, pools):
    task, mine = TASKS[name], pools[name]
    assert len(mine.policies) >= 12
    earned = np.array(list(mine.earned.values()))
    assert (np.diff(earned) >= 0).all()
    assert len(np.unique(np.round((earned - earned[0]) / np.ptp(earned), 2))) >= 5
    obs = logs.log_of(task, mine, 400, 0).obs
    for policy in mine.policies.values():
        action = tidy(task, policy(obs))
        assert np.array_equal(action, tidy(task, policy(obs)))
        assert np.allclose(action[3:5], tidy(task, policy(obs[3:5])))  # it depends on no other row
        if isinstance(task.actions, Choices):
            assert set(action.tolist()) <= set(range(task.actions.n))


@pytest.mark.parametrize("name", NAMES)
def test_a_log_is_what_its_seed_says_and_joins_up(name, pools):
    task, mine = TASKS[name], pools[name]
    one, same, other = (logs.log_of(task, mine, 600, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(one.obs, other.obs)
    assert len(one.reward) == 600
    inside = one.episode[1:] == one.episode[:-1]
    assert np.array_equal(one.next_obs[:-1][inside], one.obs[1:][inside])
    assert not (one.terminated & one.truncated).any()
    assert ((one.terminated | one.truncated)[:-1] == ~inside).all()
    assert len(np.unique(one.behaviour)) > 1


def test_every_kind_has_a_task_and_no_task_a_kind_that_nobody_knows():
    assert {kind for task in EVERY for kind in task.kinds} == set(KINDS)
    assert len(EVERY) >= 18
    assert all(30 <= task.horizon <= 240 for task in EVERY)
    widths = {len(task.columns) for task in EVERY}
    assert {min(widths), max(widths)} == {2, 60}


def test_kinds_hold_in_the_logs(pools):
    columns = {
        name: logs.log_of(TASKS[name], pools[name], 4000, 0) for name in ("coldstore", "tank", "pricing", "ferry")
    }
    door = columns["coldstore"].obs[:, TASKS["coldstore"].columns.index("door")]
    assert 0.05 < door.mean() < 0.11
    level, pressure, *_, pump = columns["tank"].obs.T
    assert np.allclose(pressure, 101.3 + 9.81 * level, rtol=1e-5)
    assert np.ptp(pump) == 0
    visitors = columns["pricing"].obs[:, 1]
    assert np.quantile(visitors, 0.99) > 1000 * max(np.quantile(visitors, 0.01), 1) / 10
    assert columns["ferry"].terminated.mean() == 0  # its goal was never seen


def test_the_split_is_as_drawn():
    assert draw_split() == SEALED
    assert len(half("sealed")) == len(FIRST) - len(half("sealed")) == 9
    assert set(half("open")) >= {task.name for task in LATER}  # what came after the draw is open
    assert set(half("open")) | set(half("sealed")) == set(TASKS)


def test_behaviours_are_never_the_best_alone(pools):
    for task in EVERY:
        names = pools[task.name].behaviours(task)
        assert len(names) >= 3
        best = list(pools[task.name].policies)[-1]
        assert best not in names or "clone solves" in task.kinds


def test_the_classics_are_gymnasiums():
    gymnasium = pytest.importorskip("gymnasium")
    for name, theirs in (
        ("mountaincar", "MountainCarContinuous-v0"),
        ("cartpole_blind", "CartPole-v1"),
        ("acrobot", "Acrobot-v1"),
    ):
        task, env = TASKS[name], gymnasium.make(theirs).unwrapped
        env.reset(seed=0)
        keys = {
            "mountaincar": ("position", "velocity"),
            "cartpole_blind": ("position", "speed", "angle", "turning"),
        }
        rng = np.random.default_rng(1)
        state = {k: v for k, v in task.start(rng, 1).items()}
        order = keys.get(name, ("one", "two", "turning_1", "turning_2"))
        env.state = np.array([state[k][0] for k in order])
        for _ in range(25):
            action = (
                rng.integers(task.actions.n, size=1)
                if isinstance(task.actions, Choices)
                else rng.uniform(-1, 1, (1, 1))
            )
            _, reward, ended, *_ = env.step(int(action[0]) if action.ndim == 1 else action[0])
            state, mine, mine_ended = task.step(state, action, rng)
            assert np.allclose([state[k][0] for k in order], env.state, atol=1e-5), name
            assert mine[0] == pytest.approx(float(reward), abs=1e-6)
            assert bool(mine_ended[0]) == bool(ended)
            if ended:
                break


def test_truths_count_what_comes_before_the_end_alone():
    task = TASKS["tank"]
    off = remembers_nothing(task.constant(0))
    earned, valued, lasted = returns(task, off, 50, np.random.default_rng(0))
    assert (lasted < task.horizon).all()
    assert np.allclose(earned, 0.5 * lasted - 40)  # half a point a step, and 40 once
    assert (valued > earned).all()
    one, two = truth(task, off, 50, 0), truth(task, off, 50, 0)
    assert one == two


def test_what_is_disturbed_stays_itself_in_the_other_cells():
    task = TASKS["inventory"]
    reading = Reading(*(np.array(x, float) for x in (np.zeros(5), np.zeros(5), np.ones(5))))
    obs = np.random.default_rng(0).normal(size=(2000, 5))
    wild = disturbed(task, task.constant(4), 0.3, reading, 3)(obs)
    assert 0.15 < np.mean(wild != 4) < 0.35
    assert np.abs(np.bincount(rolled(task, reading, 1)(obs), minlength=5) / 2000 - 0.2).max() < 0.06


def test_controls_spoil_what_they_say(pools):
    task, mine = TASKS["inventory"], pools["inventory"]
    plain = logs.log_of(task, mine, 600, 0)
    flipped, rewards, after, one = (logs.log_of(task, mine, 600, 0, c) for c in logs.CONTROLS["sorel"])
    assert np.array_equal(np.abs(flipped.reward), np.abs(plain.reward))
    assert 0.2 < np.mean(flipped.reward != plain.reward) < 0.8
    assert np.array_equal(np.sort(rewards.reward), np.sort(plain.reward))
    assert not np.array_equal(after.next_obs, plain.next_obs)
    assert np.array_equal(after.obs, plain.obs)
    assert len(np.unique(one.behaviour)) == 1


def test_jobs_are_listed_longest_first_and_records_are_written_whole(tmp_path):
    jobs = listed(("tank", "windfarm"), ("sorel", "evaluate"), (4000, 20000), (0, 1), "quick")
    assert len(jobs) == 16
    assert jobs[0].task == "windfarm"
    assert jobs[0].rows == 20000
    assert len({job.name for job in jobs}) == 16
    write(runner.record_path(tmp_path, jobs[0]), {"half": "open", "x": np.float32(1)})
    assert [path.name for path in tmp_path.iterdir()] == [f"{jobs[0].name}.json"]
    assert main(["run", "--half", "open", "--tasks", "glucose", "--out", str(tmp_path)]) == 2  # it is sealed


def plan(verdict="GO", earned=10.0, log=5.0, seed=0, wide=3.0):
    intervals = {level: [10 - k * wide, 10 + k * wide] for level, k in (("0.5", 0.4), ("0.9", 1), ("0.99", 1.5))}
    return {
        **Job("sorel", "tank", 4000, seed, "quick")._asdict(),
        "half": "open",
        "commit": "abc",
        "verdict": verdict,
        "promise": {"median": 10.0, "intervals": intervals, "terms": {}},
        "realised": {"mean": earned, "stderr": 0.5},
        "log": {"mean": log, "stderr": 0.5},
        "seconds": 60.0,
        "worlds": {"pil": 1.0},
    }


def test_figures_of_plans():
    records = [
        plan(),
        plan("GO", 4.0, seed=1),
        plan("NO-GO", 5.5, seed=2),
        plan("NOT-ENOUGH-EVIDENCE", 12.0, seed=3),
    ]
    f = sorel_figures(records)
    assert f.go_where_better == Share(1, 2)  # two truly beat the log, one of them was GO
    assert f.wrong_go == Share(1, 2)
    assert f.no_go_right == Share(1, 1)
    assert [f.covered[level] for level in ("0.5", "0.9", "0.99")] == [Share(1, 4), Share(2, 4), Share(3, 4)]
    assert f.too_high == Share(2, 4)
    assert f.same_over_seeds == Share(0, 1)
    assert Share(0, 20).interval[1] == pytest.approx(0.1684, abs=1e-3)


def test_what_stopped_a_run_and_what_a_larger_scale_turned():
    why = ["Is the log sound? Yes: 0%.", "Is it narrow enough? No: 80%."]
    large = {**plan("NOT-ENOUGH-EVIDENCE"), "scale": "large", "reasons": why}
    assert stopped([plan(), large]) == {"Is it narrow enough?": 1}
    share, turned = flips([plan(), plan(seed=1), large, {**plan(seed=1), "scale": "large"}])
    assert share == Share(1, 2)
    assert turned == [large]
    assert "good and not GO at large: 1 of 2" in printed(
        [plan(), plan(seed=1), large, {**plan(seed=1), "scale": "large"}]
    )


def test_figures_of_estimates_and_what_is_printed_and_kept(tmp_path):
    def said(value, wide):
        return {
            "median": value,
            "intervals": {k: [value - wide, value + wide] for k in ("0.5", "0.9", "0.99")},
            "terms": {"a": 1},
        }

    policies = {
        str(i): {
            "truth": {"mean": 2.0 * i, "discounted": float(i)},
            "predictive": {"value": said(i + 0.1, 0.2), "return": said(2 * i + 1.0, 0.5)},
            "fqe": {"value": said(4.0 - i, 0.1), "return": None},
        }
        for i in range(5)
    }
    record = {**plan(), "what": "evaluate", "policies": policies}
    f = evaluate_figures([record])
    assert f.error == pytest.approx(0.1 / 4)
    assert f.fqe_error == pytest.approx(np.mean([4, 2, 0, 2, 4]) / 4)
    assert f.ratio == pytest.approx(0.025 / 0.6)
    assert (f.spearman, f.fqe_spearman) == (pytest.approx(1), pytest.approx(-1))
    assert f.covered["0.9"] == Share(5, 5)
    assert f.fqe_covered["0.9"] == Share(1, 5)
    assert f.width == pytest.approx(0.1)
    assert f.return_covered["0.9"] == Share(0, 5)
    write(tmp_path / "one" / "a.json", plan())
    write(tmp_path / "one" / "b.json", record)
    out = tmp_path / "all.json"
    assert main(["gather", "--records", str(tmp_path / "one"), "--out", str(out)]) == 0
    kept = read([out])
    assert len(kept) == 2
    assert "worlds" not in kept[0]
    assert evaluate_figures([r for r in kept if r["what"] == "evaluate"]).error == pytest.approx(f.error)
    assert compact(record)["policies"]["0"]["predictive"]["value"].keys() == {"median", "intervals"}
    assert "terms" in record["policies"]["0"]["predictive"]["value"]  # what was given stays as it was
    text = printed([*kept, {**kept[0], "commit": "older", "at": "", "half": "sealed"}])
    assert "sealed runs at older (, quick): 1" in text
    again = [{**plan("NO-GO"), "at": "2"}, {**plan(), "at": "1", "commit": "older"}]
    assert [r["verdict"] for r in latest(again)] == ["NO-GO"]  # the last run of a job counts, all are kept
    assert "GO where the plan truly beats the log by two standard errors: 1 of 1" in text
    assert "0.04 of it" in text


def test_imagined_rows_are_held_against_logged_ones(pools):
    task, mine = TASKS["tank"], pools["tank"]
    log, fresh = (logs.log_of(task, mine, 1200, seed) for seed in (0, 1000))
    rain, width = task.columns.index("rain"), len(task.columns)
    before = np.zeros((2, 3, 4, width))
    after = before.copy()
    after[0, :, :2, rain] = 1.0
    alive = np.ones((2, 3, 4), bool)
    alive[1, :, 2:] = False  # 12 rows and 6 are left, of which 6 rain
    record = imagined(task, log, fresh, Worlds(np.linspace(0, 0.6, width + 1), before, after, alive))
    assert record["reward_unexplained"] == pytest.approx(0.6)
    assert record["coins"].keys() == {"rain"}
    assert record["coins"]["rain"]["imagined"] == pytest.approx(1 / 3)
    assert record["coins"]["rain"]["log"] == pytest.approx(log.next_obs[:, rain].mean())
    assert record["jumps"] == {}


def test_what_jumps_is_counted_and_measured(pools):
    task, mine = TASKS["boiler"], pools["boiler"]
    log, fresh = (logs.log_of(task, mine, 1200, seed) for seed in (0, 1000))
    stands = np.tile(log.obs[:1], (2, 1, 1, 1))
    leaps = stands.copy()
    leaps[0, ..., task.columns.index("setpoint")] += 20.0
    record = imagined(task, log, fresh, Worlds(np.zeros(4), stands, leaps, np.ones((2, 1, 1), bool)))
    seen = record["jumps"]["setpoint"]
    assert seen["imagined"] == {"often": 0.5, "far": pytest.approx(20.0)}
    assert 0.005 < seen["log"]["often"] < 0.05  # a new set-point in 2% of steps, which may be the old one
    assert 10 <= seen["log"]["far"] <= 20


def test_figures_of_worlds_are_means_over_tasks():
    def of(task, share):
        jumps = {"c": {"log": {"often": 0.1, "far": 2.0}, "fresh": {"often": 0.1, "far": 2.0}}}
        jumps["c"]["imagined"] = {"often": 0.2, "far": 1.0}
        coins = {"d": {"log": 0.1, "fresh": 0.1, "imagined": 0.11}}
        more = {"reward_unexplained": share, "unexplained": {"c": 0.5}, "coins": coins, "jumps": jumps}
        return {**plan(), "what": "worlds", "task": task, **more}

    f = imagined_figures([of("tank", 0.1), of("pricing", 0.02), of("pricing", 0.04), of("battery", 0.01)], PAID)
    assert f.unexplained == pytest.approx((0.03 + 0.01) / 2)  # the tank does not pay for what comes
    assert f.runs == 4
    assert f.coins == pytest.approx([1.1] * 4)
    assert (f.often, f.far) == (pytest.approx([2.0] * 4), pytest.approx([0.5] * 4))
    assert "(under 0.01 asked)" in printed([of("battery", 0.01)])
