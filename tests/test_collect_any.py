"""Logs from any environment: who acts, how episodes end, exact log-probabilities, and both formats."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from offing.__main__ import main
from offing.data import load
from offing.online import collect as module
from offing.online import learner, policies, scripted
from offing.online.collect import collect
from offing.online.columns import pieces
from offing.online.copies import copies
from offing.types import BadInput, Box, Discrete, Task

pytest.importorskip("gymnax")
gymnasium = pytest.importorskip("gymnasium")

WIDE = Box((-1.0, 2.0), (3.0, 2.5))
CARTPOLE, PENDULUM = "gymnasium:CartPole-v1", "gymnasium:Pendulum-v1"
HERE = "test_collect_any"
SMALL = replace(learner.LEARNER, segment=16, epochs=1, minibatches=2, width=8)


class Clock(gymnasium.Env):
    """Shows how many steps it took and its seed's last digit; ends at step 3 if that is even, at 5 if it is 1.

    Its time limit is 5: it then says that it ended and that it was cut off, both.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(3, start=7)

    def reset(self, *, seed=None, options=None):
        self.seen = np.array([0.0, seed % 10])
        return self.seen.copy(), {}

    def step(self, action):
        assert action in (7, 8, 9)
        self.seen[0] += 1
        ended = self.seen[0] >= 3 if self.seen[1] % 2 == 0 else self.seen[0] >= 5 and self.seen[1] == 1
        return self.seen.copy(), float(action - 7), bool(ended), False, {}


class Boundless(Clock):
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))


class Still(Clock):
    """Shows 4 and its seed's last digit, whatever is done."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0] * [0, 1] + [4, 0], {}

    def step(self, action):
        seen, *rest = super().step(action)
        return seen * [0, 1] + [4, 0], *rest


ENVS = {"Clock": (Clock, 5), "Endless": (Clock, None), "Boundless": (Boundless, 5), "Still": (Still, 5)}
for name, (entry, limit) in ENVS.items():
    gymnasium.register(f"offing/{name}-v0", entry_point=entry, max_episode_steps=limit)
CLOCK = "gymnasium:offing/Clock-v0"


def push(obs):
    """To where the pole leans."""
    return (obs[:, 2] > 0).astype(int)


def damp(obs):
    return -np.clip(obs[:, 2], -2, 2)


def second(obs):
    return np.where(obs[:, 0] == 1, 2, 0)


def wrong_shape(obs):
    return np.zeros((len(obs), 3))


def not_a_number(obs):
    return np.where(obs[:, 0] >= 2, np.nan, 0.0)


def too_high(obs):
    return np.where(obs[:, 0] >= 2, 3, 0)


def failing(obs):
    raise ZeroDivisionError("of my own\nmaking")


number = 7


# ---- how episodes end


@pytest.fixture(scope="module")
def clocked():
    return collect(CLOCK, 211, 0, policy=f"{HERE}:second")


def test_ends_and_time_outs_are_told_apart(clocked):
    log = load(clocked)
    digit, ended = clocked["obs"][:, 1], clocked["terminated"]
    assert log.task == Task(5, 0.99, Discrete(3))
    assert set(np.unique(digit)) >= {0, 1, 3}
    np.testing.assert_array_equal(
        ended, np.where(digit % 2 == 0, clocked["obs"][:, 0] == 2, (clocked["obs"][:, 0] == 4) & (digit == 1))
    )
    late = (clocked["obs"][:, 0] == 4) & (digit % 2 == 1) & (digit != 1)
    np.testing.assert_array_equal(clocked["truncated"][:-1], late[:-1])
    assert late.sum() > 3
    ends = np.flatnonzero(ended | clocked["truncated"])
    np.testing.assert_array_equal(clocked["final_obs"], clocked["obs"][ends] + [1, 0])
    np.testing.assert_array_equal(clocked["reward"], np.where(clocked["obs"][:, 0] == 1, 2, 0))
    np.testing.assert_array_equal(clocked["action"], clocked["reward"])
    assert (clocked["logp"] == 0).all()


def test_a_horizon_cuts_episodes():
    columns = collect(CLOCK, 20, 0, policy=f"{HERE}:second", horizon=2)
    assert not columns["terminated"].any()
    np.testing.assert_array_equal(np.flatnonzero(columns["truncated"]), np.arange(1, 20, 2))
    assert columns["horizon"] == 2
    assert collect("gymnasium:offing/Endless-v0", 20, 0, policy=f"{HERE}:second", horizon=7)["horizon"] == 7


@pytest.mark.parametrize(("kind", "policy"), [(CLOCK, "random"), ("gymnax:CartPole-v1", f"{HERE}:push")])
def test_a_log_does_not_depend_on_how_many_are_under_way(monkeypatch, kind, policy):
    one = collect(kind, 60, 3, policy=policy, horizon=5)
    monkeypatch.setattr(module, "TOGETHER", 1)
    two = collect(kind, 60, 3, policy=policy, horizon=5)
    for name, column in one.items():
        np.testing.assert_allclose(two[name], column, rtol=1e-5, atol=1e-6, err_msg=name)


def test_pieces_are_episodes():
    over = np.array([[0, 1], [1, 0], [0, 1]], bool)
    found = [(part.env, part.begin, part.end, part.whole) for part in pieces(over)]
    assert found == [(0, 0, 1, True), (0, 2, 2, False), (1, 0, 0, True), (1, 1, 2, True)]


# ---- who acts


@pytest.mark.parametrize("kind", [CARTPOLE, PENDULUM, "gymnax:Pendulum-v1"])
def test_random_policies_anywhere(kind):
    columns = collect(kind, 230, 0, policy="random")
    again, other = collect(kind, 230, 0), collect(kind, 230, 1)
    assert all(np.array_equal(columns[name], again[name]) for name in columns)
    assert not np.array_equal(columns["action"], other["action"])
    log = load(columns)
    assert log.data.rows == 230
    assert np.unique(columns["action"]).size > 1
    assert columns["logp"].shape == (230,)
    if kind == CARTPOLE:
        after, done = log.data.steps.next_obs, log.data.steps.done
        np.testing.assert_array_equal(done == 1, (abs(after[:, 0]) > 2.4) | (abs(after[:, 2]) > np.deg2rad(12)))
        assert done.sum() > 3
    else:
        assert not log.data.steps.done.any()
        assert abs(columns["action"]).max() <= 2


@pytest.mark.parametrize("kind", [CARTPOLE, "gymnax:Pendulum-v1"])
def test_a_trained_policy_anywhere(monkeypatch, kind):
    monkeypatch.setattr(learner, "LEARNER", SMALL)
    columns, again = (collect(kind, 150, 0, policy="trained", steps=400, horizon=30) for _ in range(2))
    assert all(np.array_equal(columns[name], again[name]) for name in columns)
    log = load(columns)
    assert log.data.rows == 150
    assert log.task.horizon == 30
    assert np.bincount(log.data.episode).max() <= 30
    assert np.isfinite(columns["logp"]).all()


def test_a_run_learns_and_is_thinned_by_episode(monkeypatch):
    """The agent is paid for the last choice: it must come to take it, and the log show it before and after."""
    monkeypatch.setattr(learner, "LEARNER", replace(SMALL, envs=16, epochs=8, lr=1e-2))
    with ExitStack() as stack:
        run = learner.learn(copies(stack, CLOCK, 16, 10**4), 4000, 0)
    early, late = run.whole["reward"][:16].mean(), run.whole["reward"][-16:].mean()
    assert early < 1.3 < 1.7 < late
    episodes = run.episodes(500, 0)
    lengths = [len(e["obs"]) for e in episodes]
    assert sum(lengths) == 500
    assert all(e["obs"][0, 0] == 0 for e in episodes)  # none is torn from its middle
    assert set(lengths[:-1]) <= {3, 5}
    paid = np.concatenate([e["reward"] for e in episodes])
    assert paid[:100].mean() + 0.3 < paid[-100:].mean()


def test_what_stands_still_is_not_made_loud():
    """Else an agent that never saw a column move is thrown by the least error of a model in it."""
    with ExitStack() as stack:
        where = copies(stack, "gymnasium:offing/Still-v0", 4, 10**4)
        scale = learner._warm(jax.random.key(0), where, np.random.default_rng(0))
    assert scale.mean[0] == 4
    assert scale.std[0] == 1
    assert 1 < scale.std[1] < 5


def test_a_script_and_its_noise(clocked):
    columns = collect(CARTPOLE, 400, 0, policy=f"{HERE}:push", noise=0.5)
    scripted_too = columns["action"] == push(columns["obs"])
    np.testing.assert_allclose(np.exp(columns["logp"]), np.where(scripted_too, 0.75, 0.25), rtol=1e-6)
    assert 0.65 < scripted_too.mean() < 0.85
    quiet, loud = (collect(PENDULUM, 210, 0, policy=f"{HERE}:damp", noise=noise) for noise in (0.0, 0.3))
    assert "logp" not in quiet
    np.testing.assert_allclose(quiet["action"][:, 0], damp(quiet["obs"]), atol=1e-6)
    mean, said = damp(loud["obs"]), loud["action"][:, 0]
    mass = norm.cdf((2 - mean) / 0.6) - norm.cdf((-2 - mean) / 0.6)
    np.testing.assert_allclose(loud["logp"], norm.logpdf(said, mean, 0.6) - np.log(mass), rtol=1e-3, atol=1e-3)


# ---- log-probabilities


def density(draw, inside):
    """That mean of 1 / p over the draws is the volume: exactly when p integrates to one over what is drawn."""
    acted = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 20_000))
    assert inside(acted["action"]).all()
    return np.exp(-np.asarray(acted["logp"], np.float64)).mean()


def test_amounts_of_random_policies_have_that_density():
    inside = lambda a: ((a >= jnp.array(WIDE.low)) & (a <= jnp.array(WIDE.high))).all(1)
    mean = jnp.array([0.9, -0.2])
    assert density(lambda key: policies.around(key, mean, 0.8, WIDE), inside) == pytest.approx(2.0, rel=0.03)


def test_amounts_of_an_agent_have_that_density():
    net = learner.rppo.net_init(jax.random.key(1), SMALL, 3, WIDE)
    agent = (net, learner.rppo.Scale(jnp.zeros(3), jnp.ones(3), jnp.ones(())))
    obs = jnp.array([0.3, -0.2, 1.0])
    said = learner.rppo.speak(net, learner.rppo.look(net, agent[1], learner.Seen(obs, obs, obs, obs), WIDE))[0]
    acted = jax.vmap(lambda key: learner.act(key, agent, obs, WIDE))(jax.random.split(jax.random.key(0), 200))
    low, high = np.array(WIDE.low), np.array(WIDE.high)
    below = lambda a: norm.cdf(np.arctanh((2 * a - low - high) / (high - low)), said, 0.6)  # of each amount
    action = np.asarray(acted["action"], np.float64)
    kept = (abs((2 * action - low - high) / (high - low)) < 0.99).all(1)
    slope = (below(action + 1e-4) - below(action - 1e-4)) / 2e-4
    np.testing.assert_allclose(np.exp(acted["logp"])[kept], slope.prod(1)[kept], rtol=1e-2)
    assert kept.sum() > 100


def test_choices_have_that_probability():
    policy = policies.random_policy(jax.random.key(4), 2, Discrete(3))
    acts = jax.vmap(lambda key: policies.act(key, policy, jnp.array([0.5, -1.0]), Discrete(3)))
    acted = acts(jax.random.split(jax.random.key(0), 4000))
    often, chance = np.asarray(acted["action"]).mean(0), np.exp(acted["logp"])
    for i in range(3):
        assert chance[acted["action"][:, i] == 1] == pytest.approx(often[i], abs=0.03)


# ---- what is refused

REFUSED = [
    (
        CLOCK,
        {"policy": f"{HERE}:wrong_shape"},
        r"gave shape \(\d+, 3\) where \(\d+,\) was expected, first at \[0, ",
    ),
    (
        CLOCK,
        {"policy": f"{HERE}:not_a_number"},
        r"gave nan for the observation \[2, \d\], which is not one of the",
    ),
    (
        CLOCK,
        {"policy": f"{HERE}:too_high"},
        r"gave 3 for the observation \[2, \d\], which is not one of .* 0 to 2",
    ),
    (
        CLOCK,
        {"policy": f"{HERE}:failing"},
        r"failed, given .* the first \[0, \d\]: ZeroDivisionError: of my own making",
    ),
    (PENDULUM, {"policy": f"{HERE}:wrong_shape"}, r"gave shape \(\d+, 3\) where \(\d+, 1\) was expected"),
    (CLOCK, {"policy": f"{HERE}:nonesuch"}, "cannot be imported: AttributeError"),
    (CLOCK, {"policy": "no_such_module:f"}, "cannot be imported: ModuleNotFoundError"),
    (CLOCK, {"policy": f"{HERE}:number"}, "is a int, not a function"),
    (CLOCK, {"policy": "best"}, "^best: no such policy; give random, trained, or a function as MODULE:FUNCTION$"),
    (CLOCK, {"policy": "trained", "steps": 5}, "^--steps 5: "),
    (CLOCK, {"steps": 50}, "^--steps 50: "),
    (CLOCK, {"noise": 0.1}, "^--noise 0.1: "),
    (CLOCK, {"policy": f"{HERE}:second", "noise": 1.5}, "^--noise 1.5: "),
    (CLOCK, {"horizon": 0}, "^a horizon of 0: "),
    ("gymnasium:offing/Endless-v0", {}, "its episodes have no time limit"),
    ("gymnasium:offing/Boundless-v0", {}, "the range of its actions has no end"),
    ("gymnasium:Nonesuch-v3", {}, "^gymnasium:Nonesuch-v3: gymnasium cannot make it: "),
    ("gymnasium:FrozenLake-v1", {}, "observations are Discrete"),
]


@pytest.mark.parametrize(("kind", "more", "why"), REFUSED)
def test_what_cannot_be_collected_is_refused_in_a_line(kind, more, why):
    with pytest.raises(BadInput, match=why) as caught:
        collect(kind, 12, 0, **more)
    assert "\n" not in str(caught.value)


def test_a_seed_below_zero_is_refused():
    with pytest.raises(BadInput, match=r"^--seed -1: "):
        collect(CLOCK, 12, -1)


def test_amounts_out_of_range_are_refused():
    obs = np.array([[0.0, 0.0], [1.0, 2.0]], np.float32)
    with pytest.raises(BadInput, match=r"^f: gave \[3, 9\] for the observation \[1, 2\], which is not within "):
        scripted.called(lambda obs: np.array([[3, 2], [3, 9]]), "f", obs, WIDE)
    rows = scripted.called(lambda obs: [[3.00000001, 2], [-1, 2.5]], "f", obs, WIDE)
    np.testing.assert_array_equal(rows, np.float32([[3, 2], [-1, 2.5]]))


# ---- on disk


def test_both_formats_hold_the_same_log(tmp_path, capsys):
    minari = pytest.importorskip("minari")
    for kind in (CARTPOLE, "gymnax:Pendulum-v1"):
        ask = ["collect", kind, "--rows", "230", "--seed", "2", "--out"]
        path, folder = tmp_path / "log.npz", tmp_path / f"random-{kind[:6]}"
        assert main([*ask, str(path)]) == main([*ask, str(folder)]) == 0
        assert "230 rows" in capsys.readouterr().out
        ours, theirs = load(path), load(folder)
        assert ours.fingerprint == theirs.fingerprint
        assert ours.task == theirs.task
        dataset = minari.MinariDataset(folder / "data")
        assert dataset.total_steps == 230
        assert dataset.id == f"{folder.name}-v0"
        assert dataset.env_spec.max_episode_steps == ours.task.horizon
        episodes = list(dataset.iterate_episodes())
        ends = np.array([e.terminations[-1] for e in episodes])
        np.testing.assert_array_equal(ends, [not e.truncations[-1] for e in episodes])
        assert ends.sum() == ours.data.steps.done.sum()
        with np.load(path) as columns:
            np.testing.assert_array_equal(np.concatenate([e.infos["logp"] for e in episodes]), columns["logp"])
            np.testing.assert_array_equal(theirs.logp, columns["logp"])
        assert main([*ask, str(folder)]) == 2  # nothing is overwritten
        assert "is there already" in capsys.readouterr().err
    assert "gymnax/Pendulum-v1" in json.loads((folder / "data" / "metadata.json").read_text())["env_spec"]
    assert not [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_what_is_interrupted_leaves_nothing(tmp_path, monkeypatch, clocked):
    minari = pytest.importorskip("minari.dataset.minari_storage")
    from offing.online.minari import save_minari

    def killed(*_):
        assert (tmp_path / "log").exists() is False
        assert len(list(tmp_path.iterdir())) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(minari.MinariStorage, "update_metadata", killed)
    with pytest.raises(KeyboardInterrupt):
        save_minari(tmp_path / "log", clocked, CLOCK)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "more", [("--out", "log.txt"), ("--out", "log.npz", "--format", "minari"), ("--out", "x", "--format", "npz")]
)
def test_the_name_must_fit_the_format(tmp_path, monkeypatch, capsys, more):
    monkeypatch.chdir(tmp_path)
    assert main(["collect", CLOCK, "--rows", "20", *more]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert list(Path().iterdir()) == []
