"""Inspection: what it says of logs whose making is known, its numbers, its page and its command."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import offing
from offing.__main__ import main
from offing.data import behaviour, broken
from offing.data.facts import Copies, Facts
from offing.data.inspect import SAMPLE, inspect
from offing.report import inspection
from offing.report.inspection_figures import pictures
from offing.report.jsonable import from_json, to_json

VOID = {"meta", "br", "path", "use"}
WIDTH = 4


def roll(act, episodes=60, steps=60, seed=0):
    """A damped linear system, driven by `act(episode, states, key)`; all episodes step together."""
    key = np.random.default_rng(seed)
    inner = key.normal(size=(WIDTH, WIDTH)) * 0.3 - 1.2 * np.eye(WIDTH)
    outer = key.normal(size=(1, WIDTH))
    obs = np.zeros((episodes, steps + 1, WIDTH), np.float32)
    action = np.zeros((episodes, steps, 1), np.float32)
    obs[:, 0] = key.normal(size=(episodes, WIDTH))
    for t in range(steps):
        action[:, t] = np.clip(act(np.arange(episodes), obs[:, t], key), -1, 1)
        noise = 0.05 * key.normal(size=(episodes, WIDTH))
        obs[:, t + 1] = obs[:, t] + 0.1 * (obs[:, t] @ inner + action[:, t] @ outer) + noise
    flat = lambda a: a.reshape(episodes * steps, -1)
    return {
        "obs": flat(obs[:, :-1]),
        "action": flat(action),
        "reward": -(flat(obs[:, :-1]) ** 2).sum(1),
        "next_obs": flat(obs[:, 1:]),
        "episode": np.repeat(np.arange(episodes), steps),
        "action_low": -1.0,
        "action_high": 1.0,
        "horizon": steps,
    }


GAINS = np.random.default_rng(5).normal(size=(60, WIDTH, 1))


def driven(which, noise=0.0):
    """Each episode by the controller that `which` names for it."""

    def act(episode, obs, key):
        mean = np.einsum("es,esa->ea", obs, GAINS[which(episode)])
        return np.tanh(2 * mean) + noise * key.normal(size=mean.shape)

    return act


ONE = driven(lambda e: 0 * e)
EXPERT = driven(lambda e: 0 * e, 0.05)
TWO = driven(lambda e: e % 2)
MANY = driven(lambda e: e, 0.2)
NOISY = driven(lambda e: 0 * e, 0.7)
UNIFORM = lambda e, obs, key: key.uniform(-1, 1, (len(e), 1))
BANG = lambda e, obs, key: np.sign(obs @ GAINS[0])


def chosen(log, epsilon=0.0, second=None):
    """The log with two choices instead of an amount, taken by the sign of what a controller says."""
    key = np.random.default_rng(3)
    choice = (log["obs"] @ GAINS[0])[:, 0] > 0
    if second is not None:
        choice = np.where(log["episode"] % 2, (log["obs"] @ GAINS[second])[:, 0] > 0, choice)
    choice = choice ^ (key.random(len(choice)) < epsilon)
    rest = {name: column for name, column in log.items() if not name.startswith("action")}
    return {**rest, "action": choice.astype(int), "n_actions": 2}


def bag(rows, **more):
    key = np.random.default_rng(1)
    obs = key.normal(size=(rows, 3))
    columns = {"obs": obs, "action": key.uniform(-1, 1, rows), "reward": key.normal(size=rows)}
    return {**columns, "next_obs": obs + 0.1, **more}


LOGS = {
    "one controller": (lambda: roll(ONE), "TOReL", "all but settles the action"),
    "an expert with small noise": (
        lambda: roll(EXPERT),
        "TOReL",
        "all but settles the action|under 6%",
    ),
    "two controllers": (lambda: roll(TWO), "TOReL", "2 controllers that take turns"),
    "bang-bang": (lambda: roll(BANG), "TOReL", "all but settles the action"),
    "many controllers": (lambda: roll(MANY), "SOReL", "episodes differ in how they act"),
    "one with much noise": (lambda: roll(NOISY), "SOReL", "episodes act alike on the whole"),
    "uniform": (lambda: roll(UNIFORM), "SOReL", "the state explains"),
    "choices by one": (lambda: chosen(roll(UNIFORM)), "TOReL", "predicts 9\\d%"),
    "choices by two": (lambda: chosen(roll(UNIFORM), second=2), "TOReL", "2 controllers that take turns"),
    "choices with chance": (lambda: chosen(roll(UNIFORM), 0.3), "SOReL", "predicts 6\\d% of the choices"),
    "few episodes": (lambda: roll(UNIFORM, 20), "TOReL", "1,200 rows in 20 episodes; from 25 on"),
    "few rows": (lambda: roll(UNIFORM, 30, 20), "TOReL", "takes 1,000 or more"),
    "a bag": (lambda: bag(2000), "TOReL", "no episodes"),
    "one episode": (lambda: roll(UNIFORM, 1, 500), "neither yet", "1 episode; with one episode"),
    "two rows": (lambda: bag(2), "neither yet", "2 rows; at least 100"),
    "two rows, two episodes": (lambda: bag(2, episode=np.arange(2)), "neither yet", "2 rows in 2 episodes"),
    "broken": (lambda: bag(2000, episode=np.arange(2000) // 50), "neither yet", "100% of the steps inside"),
    "one action": (lambda: roll(lambda e, obs, key: np.ones((len(e), 1))), "TOReL", "always the same"),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_answer_suits_how_the_log_was_made(name):
    make, system, why = LOGS[name]
    facts = inspect(offing.load(make()))
    assert facts.answer.system == system, facts.answer
    assert re.search(why, " ".join(facts.answer.reasons)), facts.answer
    assert from_json(Facts, json.loads(json.dumps(to_json(facts), allow_nan=False))) == facts
    read(inspection.page(facts))
    assert len(list(inspection.printed(facts))) == 4  # of a log that is no table
    assert inspection.summary(facts)


@pytest.mark.parametrize("name", ["offing:pendulum", "offing:cartpole"])
def test_the_samples_are_diverse(name):
    facts = inspect(offing.load(name))
    assert facts.answer.system == "SOReL"
    assert all("? Yes: " in reason for reason in facts.answer.reasons)


def warnings_of(log):
    return " ".join(inspect(offing.load(log)).answer.warnings)


def test_what_is_odd_is_told():
    log = roll(UNIFORM)
    assert "drift" not in warnings_of(log)
    flat = {**log, "obs": log["obs"].copy(), "next_obs": log["next_obs"].copy()}
    for name in ("obs", "next_obs"):
        flat[name][:, 0] = 3.0
        flat[name][:, 1] = flat[name][:, 1] > 0
        flat[name][:, 2] = np.minimum(flat[name][:, 2], 0.2)
    told = warnings_of({**flat, "reward": np.ones(len(log["reward"]))})
    assert "obs[0]: constant" in told
    assert "obs[1]: few values" in told
    assert "obs[2]: stops" in told
    assert "every reward is the same: all policies earn alike" in told
    assert "no episode ended by itself" in told
    moved = np.linspace(0, 3, len(log["obs"]))[:, None].astype(np.float32)
    assert "observations drift" in warnings_of(
        {**log, "obs": log["obs"] + moved, "next_obs": log["next_obs"] + moved}
    )
    assert "range was used" in warnings_of({**log, "action_low": -10.0, "action_high": 10.0})
    assert "cut short" in warnings_of({**log, "horizon": 1000})
    assert "never taken: 2, 3" in warnings_of({**chosen(log, 0.3), "n_actions": 4})


def test_copies_of_rows_and_of_episodes_are_counted():
    log = roll(UNIFORM, 40)
    double = {n: np.concatenate([c, c + 100 * (n == "episode")]) if np.ndim(c) else c for n, c in log.items()}
    facts = inspect(offing.load(double))
    assert facts.copies == Copies(0.5, 0.5, 40, 0)
    assert "40 episodes are copies" in " ".join(facts.answer.warnings)
    nudged = {**double, "reward": double["reward"] + np.float32(1e-5) * (double["episode"] >= 100)}
    facts = inspect(offing.load(nudged))
    assert facts.copies.exact < 0.05
    assert facts.copies.near > 0.45
    assert inspect(offing.load(log)).copies == Copies(0.0, 0.0, 0, 0)


@pytest.mark.parametrize("name", ["offing:pendulum", "offing:cartpole"])
def test_numbers_agree_with_plain_loops(name, monkeypatch):
    log = offing.load(name, 3000, 1)
    whole = inspect(log)
    monkeypatch.setattr("offing.data._glance.CELLS", 100)  # many chunks, the same numbers
    facts = inspect(log)
    data, episodes = log.data, facts.episodes
    assert episodes is not None
    rows = slice(0, data.rows)
    episode, reward = np.asarray(data.episode)[rows], np.asarray(data.steps.reward, np.float64)[rows]
    units = [np.flatnonzero(episode == e) for e in np.unique(episode)]
    assert episodes.count == len(units)
    assert np.isclose(episodes.returns.mean, np.mean([reward[u].sum() for u in units]))
    weighed = [np.sum(reward[u] * log.task.discount ** np.arange(len(u))) for u in units]
    assert np.isclose(episodes.discounted.std, np.std(weighed))
    assert episodes.lengths.max == max(map(len, units))
    assert episodes.terminated == sum(data.steps.done[u[-1]] > 0 for u in units)
    assert episodes.terminated + episodes.at_horizon + episodes.cut == episodes.count
    assert sum(episodes.returns.histogram.counts) == episodes.count
    assert episodes.whole_returns is not None
    assert np.isclose(episodes.whole_returns.mean, behaviour(data, log.task).mean)
    assert facts.broken == broken(data) == 0
    obs = np.asarray(data.steps.obs, np.float64)[rows]
    for i, column in enumerate(facts.observations):
        assert np.isclose(column.mean, obs[:, i].mean())
        assert np.isclose(column.std, obs[:, i].std())
        assert np.isclose(column.median, np.median(obs[:, i]))
        assert column.min == min(obs[:, i].min(), data.steps.next_obs[rows, i].min())
    assert facts.drift is None  # episodes were drawn in random order
    assert facts.answer == whole.answer


def test_far_from_zero_nothing_is_lost():
    log = roll(UNIFORM)
    facts = inspect(offing.load({**log, "reward": 1e6 + np.arange(len(log["reward"])) % 2}))
    assert np.isclose(facts.rewards.std, 0.5)


def test_more_rows_than_are_drawn():
    rows = SAMPLE + 5000
    facts = inspect(offing.load(bag(rows)))
    assert facts.rows == rows
    assert abs(facts.rewards.median) < 0.05
    assert inspect(offing.load(bag(rows))) == facts


class Reader(HTMLParser):
    """Tags and text; every tag that opens also closes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(text):
    reader = Reader(text)
    assert reader.open == []
    assert "http" not in text
    assert "@import" not in text
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    return reader


def test_the_page_is_made_from_the_json_alone_and_escapes():
    plain = json.loads(json.dumps(to_json(inspect(offing.load("offing:cartpole", 1000)))))
    evil = "<script>alert('x')</script> & {{ 1 }}"
    plain |= {"data": evil, "notes": [evil], "names": [evil] * 4}
    plain["answer"]["warnings"] = [evil]
    facts = from_json(Facts, plain)
    made = inspection.page(facts)
    reader = read(made)
    assert "&lt;script&gt;" in made
    assert reader.tags.count("svg") == len(pictures(facts)) >= 9
    assert "online samples used: 0" in reader.text
    assert made == inspection.page(facts)
    assert "prefers-color-scheme: dark" in made  # the report's own style


def test_many_columns_stay_readable():
    facts = inspect(
        offing.load(bag(400, obs=np.random.default_rng(0).normal(size=(400, 300)), next_obs=np.zeros((400, 300))))
    )
    assert "100 more are in inspect.json" in read(inspection.page(facts)).text
    log = {**bag(2000), "action": np.random.default_rng(0).integers(0, 300, 2000), "n_actions": 300}
    facts = inspect(offing.load(log))
    assert facts.actions.predicted < 0.1


def test_the_command(tmp_path, capsys):
    out = tmp_path / "a" / "b"
    assert main(["inspect", "offing:pendulum", "--rows", "6000", "--seed", "1", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "SOReL or TOReL? SOReL." in shown
    assert "obs[2]" in shown
    assert "online samples used: 0" in shown
    assert "\x1b" not in shown
    assert {file.name for file in out.iterdir()} == {"inspect.json", "inspect.html"}
    facts = from_json(Facts, json.loads((out / "inspect.json").read_text()))
    assert facts == inspect(offing.load("offing:pendulum", 6000, 1), 1)
    assert (out / "inspect.html").read_text() == inspection.page(facts)


@pytest.mark.parametrize("arguments", [["nowhere.npz"], ["offing:nothing"], ["offing:pendulum", "--rows", "1"]])
def test_bad_input_is_one_line(arguments, tmp_path, capsys):
    assert main(["inspect", *arguments, "--out", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("offing: ")
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert not (tmp_path / "out").exists()


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["inspect", "offing:cartpole", "--rows", "1500"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert "action=1" in capsys.readouterr().out
