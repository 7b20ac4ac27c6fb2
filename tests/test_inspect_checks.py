"""What an inspection tests a log for: each check on a log that has the fault, and on one that has not."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from test_inspect import MANY, NOISY, UNIFORM, chosen, roll

import offing
from offing.data import Schema, read_schema
from offing.data.inspect import inspect
from offing.data.sources.sample import FOLDER
from offing.report.inspection import lines, page, tables

EPISODES, STEPS = 30, 50


def plain(act=UNIFORM, seed=0):
    return roll(act, EPISODES, STEPS, seed)


def facts_of(log, **how):
    return inspect(offing.load(log, **how))


def warned(facts, text):
    return any(text in warning for warning in facts.answer.warnings)


# Whose action moves a step.


def shifted(log, rows):
    """The log with every action so many rows later; what falls off an episode's edge repeats."""
    action = log["action"].reshape(EPISODES, STEPS, -1)
    place = np.clip(np.arange(STEPS) - rows, 0, STEPS - 1)
    return {**log, "action": action[:, place].reshape(EPISODES * STEPS, -1)}


@pytest.mark.parametrize("act", [UNIFORM, MANY, NOISY], ids=["uniform", "many", "noisy"])
@pytest.mark.parametrize(("rows", "word"), [(0, "aligned"), (1, "late"), (-1, "early")])
def test_an_action_that_stands_in_another_row(act, rows, word):
    facts = facts_of(shifted(plain(act), rows))
    assert facts.alignment is not None
    assert facts.alignment.word == word, facts.alignment
    assert warned(facts, "a row too late") == (word == "late")
    assert warned(facts, "follow the next observation") == (word == "early")
    if word == "late":
        assert warned(facts, 'action_at = "next row"')


def test_choices_are_aligned_too():
    log = chosen(plain(), 0.3)  # its choices moved nothing
    facts = facts_of(log)
    assert facts.alignment is not None
    assert facts.alignment.word == "unknown"
    for name in ("offing:coldstore", "offing:pendulum", "offing:cartpole"):
        line = facts_of(name, rows=4_000).alignment
        assert line is not None
        assert line.word == "aligned"


# Rewards.


def test_a_reward_that_leaks_the_future():
    log = plain()
    facts = facts_of(log)
    assert facts.leak is not None
    assert not facts.leak.ahead
    assert facts.leak.step > 0.9
    after = np.roll(log["next_obs"], -1, 0)  # what the next step leads to
    leaky = facts_of({**log, "reward": log["reward"] + 3 * after[:, 0]})
    assert leaky.leak is not None
    assert leaky.leak.ahead
    assert warned(leaky, "rewards know what comes later")
    assert not warned(facts, "rewards know")


def test_an_outcome_written_into_every_row():
    log = plain()
    outcome = np.random.default_rng(0).normal(size=EPISODES)[log["episode"]]
    assert warned(facts_of({**log, "reward": outcome}), "every row of an episode has the same reward")
    assert not warned(facts_of(log), "every row of an episode")


def test_a_column_that_is_the_reward():
    log = plain()
    assert warned(facts_of({**log, "reward": 5 - 2 * log["obs"][:, 1]}), "obs[1]: is the reward itself")


@pytest.mark.parametrize("name", ["offing:pendulum", "offing:cartpole", "offing:coldstore"])
def test_the_samples_have_none_of_the_faults(name):
    facts = facts_of(name, rows=4_000)
    for fault in (
        "too late",
        "follow the next",
        "rewards know",
        "reward itself",
        "clock goes back",
        "interleaved",
    ):
        assert not warned(facts, fault)
    assert facts.jumps is not None
    assert not facts.jumps.interleaved


# Behaviour.


def test_constant_behaviour():
    log = plain(lambda e, obs, key: np.broadcast_to(np.sin(e)[:, None], (len(e), 1)))
    facts = facts_of(log)
    assert facts.actions.unchanging == 1
    assert warned(facts, "in 100% of the episodes the action never changes")
    assert facts_of(plain()).actions.unchanging == 0
    still = facts_of(plain(lambda e, obs, key: np.ones((len(e), 1))))
    assert still.actions.still
    assert "always the same" in " ".join(still.answer.reasons)


def test_actions_by_parts_of_the_state():
    facts = facts_of("offing:coldstore")
    met = {part.name: part for part in facts.acted_in}
    assert "temp" in met
    assert all(np.isclose(sum(shares), 1) for shares in met["temp"].shares)
    cold, warm = met["temp"].shares[0], met["temp"].shares[-1]
    assert cold[0] > 0.6 > 0.2 > warm[0]  # low while it is cold
    assert sum(met["temp"].rows) == facts.rows


# Exogenous columns.


def test_what_no_action_changes():
    facts = facts_of("offing:coldstore")
    untouched = {effect.name for effect in facts.effects if effect.exogenous}
    assert untouched == set(facts.exogenous)
    schema = read_schema(Path(str(FOLDER / "coldstore.toml")))
    wrong = offing.load("offing:coldstore", schema=Schema(**{**vars(schema), "exogenous": ("temp", "price")}))
    facts = inspect(wrong)
    assert warned(facts, "temp: the schema says that no action changes it")
    assert warned(facts, "no action seems to change it")


# Tables: units, clocks, copies, gaps, reward parts.

SCHEMA = Schema(
    unit="machine", time="when", window=24, obs=("x", "y"), action="u", actions="box", reward="-abs(x) - 0.1 * u"
)


def table(units=3, steps=400, hour=3600):
    """Machines that drift towards 0 and are pushed, interleaved by time."""
    rng = np.random.default_rng(0)
    x, y, u = np.zeros((3, steps, units))
    x[0] = np.arange(units) * 4.0
    for t in range(steps):
        u[t] = rng.uniform(-1, 1, units)
        if t + 1 < steps:
            x[t + 1] = 0.9 * x[t] + 0.4 * np.arange(units) + u[t] + 0.1 * rng.normal(size=units)
            y[t + 1] = 0.8 * y[t] + rng.normal(size=units)
    when = np.datetime64("2024-01-01T00:00:00") + np.arange(steps).repeat(units) * np.timedelta64(hour, "s")
    name = np.tile([f"m{i}" for i in range(units)], steps)
    return {"when": when, "machine": name, "x": x.ravel(), "y": y.ravel(), "u": u.ravel()}


def test_units_gaps_lengths_and_reward_parts():
    columns = table()
    kept = np.delete(np.arange(1200), np.arange(600, 615))  # five hours of all machines
    facts = inspect(offing.load(pa.table({key: value[kept] for key, value in columns.items()}), schema=SCHEMA))
    assert [(unit.name, unit.rows) for unit in facts.units] == [("m0", 395), ("m1", 395), ("m2", 395)]
    assert facts.clock is not None
    assert (facts.clock.usual, facts.clock.gaps, facts.clock.longest) == (3600, 3, 6 * 3600)
    assert [part.text for part in facts.reward_parts] == ["-abs(x)", "-0.1 * u"]
    assert np.isclose(sum(part.mean for part in facts.reward_parts), facts.rewards.mean, atol=1e-4)
    shown = dict(lines(facts))
    assert shown["gaps"].startswith("3, the longest 6 h")
    assert "m0, m1, m2" in shown["units"]
    assert {"Units", "What the reward adds up"} <= set(tables(facts))
    assert "cannot be checked: next observations were inferred" in shown["steps that do not follow"]
    assert any(reason.startswith("Is the log consistent") and "cannot be checked" in reason
               for reason in facts.answer.reasons)  # fmt: skip
    assert page(facts).count("<svg") == 14


def test_clocks_that_go_back_and_rows_logged_twice():
    columns = table()
    order = np.arange(1200)
    order[300:330] = order[300:330][::-1]
    swapped = {key: value[order] for key, value in columns.items()}
    facts = inspect(offing.load(pa.table(swapped), schema=SCHEMA))
    assert facts.clock is not None
    assert facts.clock.backwards == 27
    assert warned(facts, "the clock goes back 27 times")
    twice = {key: np.r_[value[:60], value[30:]] for key, value in columns.items()}
    facts = inspect(offing.load(pa.table(twice), schema=SCHEMA))
    assert facts.copies.dropped == 30
    assert warned(facts, "30 rows were copies of the row before")


def test_drift_is_by_time_and_not_by_unit():
    columns = table()
    facts = inspect(
        offing.load(pa.table(columns), schema=SCHEMA)
    )  # units stand far apart, and one after the other
    assert facts.drift is not None
    assert facts.drift.by == "time"
    assert not warned(facts, "drift")
    moving = {**columns, "y": columns["y"] + np.linspace(0, 6, 1200)}
    facts = inspect(offing.load(pa.table(moving), schema=SCHEMA))
    assert warned(facts, "observations drift: y by")
    assert facts.drift is not None
    assert facts.drift.lines[1].name == "y"


def test_interleaved_units_are_named_whatever_the_log_says():
    columns = table(units=2)
    mixed = {key: columns[key] for key in ("x", "y", "u")} | {"episode": np.arange(800) // 100}
    mixed["x"] = mixed["x"] + 40 * (np.arange(800) % 2)
    mixed["y"] = mixed["y"] * 0.1
    keep = {"obs": ("x", "y"), "action": "u", "actions": "box", "reward": "-abs(x)", "episode": "episode"}
    with pytest.raises(offing.BadInput, match="interleaved"):
        offing.load(pa.table(mixed), schema=Schema(**keep))
    facts = inspect(offing.load(pa.table(mixed), schema=Schema(**keep, unit="none")))  # a user who insists
    assert facts.jumps is not None
    assert facts.jumps.interleaved
    assert facts.answer.system == "neither yet"
    assert 'unit = "COLUMN"' in " ".join(facts.answer.reasons)


def test_a_sensor_that_fails_now_and_then_is_a_jump():
    columns = table()
    x = columns["x"].copy()
    x[::150] += 500
    facts = inspect(offing.load(pa.table({**columns, "x": x}), schema=SCHEMA))
    assert facts.jumps is not None
    assert facts.jumps.worst == "x"
    assert warned(facts, "more than ten times the usual one, x most of all")


def test_of_a_category_an_action_moves_all_levels_or_none():
    """Which words come rarely hides that an action moves them; and a clock's two parts are one clock."""
    rng = np.random.default_rng(0)
    mode, action, words = 0, rng.integers(0, 2, 1_200), np.array(["eco", "fast", "off"])
    seen = []
    for a in action:
        seen.append(mode)
        mode = int(a) if rng.random() < 0.5 else 2 if rng.random() < 0.02 else mode
    hour = np.arange(1_200) % 24
    table = {"mode": words[seen], "hour": hour, "action": action, "reward": rng.random(1_200), "episode": hour * 0}
    table["episode"] = np.arange(1_200) // 48
    schema = offing.Schema(obs=("mode", "hour"), actions="discrete", n=2, cyclic={"hour": 24.0})
    found = {e.name: e.share for e in offing.inspect(offing.load(table, schema=schema)).facts.effects}
    assert len({found[f"mode={word}"] for word in words}) == 1
    assert found["mode=off"] > 0.05
    assert found["sin(hour)"] == found["cos(hour)"] < 0.005


def test_a_clock_and_a_set_point_stop_at_no_wall():
    rng, rows = np.random.default_rng(0), EPISODES * STEPS
    episode, t = np.arange(rows) // STEPS, np.arange(rows) % STEPS
    hour, target = (t + 7 * episode) % 48, np.repeat(rng.choice(np.linspace(0, 1, 12), EPISODES), STEPS)
    action = rng.uniform(-1, 1, rows)
    place = np.zeros(rows)
    for i in range(rows - 1):
        place[i + 1] = np.clip(place[i] + 0.4 * action[i], -1, 1) if t[i + 1] else rng.uniform(-1, 1)
    obs = np.stack([place, hour, target], 1)
    led = np.where((t == STEPS - 1)[:, None], obs, np.roll(obs, -1, 0))
    led[:, 1] = (hour + 1) % 48
    facts = facts_of({"obs": obs, "next_obs": led, "action": action, "reward": action, "episode": episode})
    rails = [warning for warning in facts.answer.warnings if "rail" in warning]
    assert len(rails) == 1
    assert rails[0].startswith("obs[0]: ")
