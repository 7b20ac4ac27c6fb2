"""Planners that learn from rows, on tiny logs of which the answer is known.

States are one-hot rows. One log of choices holds several problems side by side, one log of amounts two, and a
third is a walk through a small world whose true values are solved for: each planner is compiled twice.
"""

from functools import cache

import imagined as by_hand
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing import planner as planners
from offing.planner._parts import critics, see
from offing.types import Box, Dataset, Discrete, Moments, Posterior, Seen, Task, Transition

STATES, CHOICES, ROWS, DISCOUNT = 7, 3, 1680, 0.9
SIZES = {"updates": 700, "batch_size": 64, "width": 32, "depth": 2}
RATES = {"lr": 3e-3, "discount": DISCOUNT, "polyak": 0.05}
SETTINGS = {
    "bc": {"lr": 3e-3},
    "iql": {**RATES, "expectile": 0.9, "beta": 10.0},
    "rebrac": {**RATES, "actor_bc": 0.2, "critic_bc": 0.01},
    "td3bc": {**RATES, "alpha": 2.0},
    "cql": {**RATES, "actor_pace": 1.0, "conservative": 0.2, "draws": 4},
}
VALUED = [name for name in SETTINGS if name != "bc"]
ONE, FIRST, SECOND, ARMS, CROSSING, DOOR, _ = range(STATES)
NEVER = 2  # of the choices in ARMS, CROSSING and DOOR: the log has none


def log_of(rows: list[tuple], actions) -> Dataset:
    """A log of (state, action, reward, next state or None), repeated until it has ROWS rows."""
    states, acts, rewards, nexts = zip(*rows, strict=True)
    over = np.array([n is None for n in nexts])
    after = np.array([s if n is None else n for s, n in zip(states, nexts, strict=True)])
    eye = np.eye(STATES, dtype=np.float32)
    taken = np.eye(CHOICES)[list(acts)] if isinstance(actions, Discrete) else np.array(acts)[:, None]
    taken = taken.astype(np.float32)
    steps = Transition(
        eye[list(states)], taken, np.array(rewards, np.float32), eye[after], taken, over.astype(np.float32)
    )
    many = np.arange(ROWS) % len(rows)
    steps = jax.tree.map(lambda leaf: leaf[many], steps)
    return Dataset(steps, eye[:1], np.full(ROWS, -1, np.int32), np.asarray(ROWS, np.int32))


def posterior_of(actions) -> Posterior:
    edge = np.ones(STATES + 1)
    still = lambda theta, obs, action: Moments(obs, obs, obs[..., 0])
    return by_hand.worlds(still, np.zeros(1), np.eye(STATES), -edge, edge, Task(9, DISCOUNT, actions))


@cache
def program(name: str, actions):
    """(setting, log) -> choices or amounts in every state, and what the critics say of every choice there."""
    planner, posterior = planners.get(name), posterior_of(actions)

    @jax.jit
    def run(hypers, data):
        k1, k2 = jax.random.split(jax.random.key(0))
        state = planner.init(k1, hypers, data, posterior)
        one = lambda state, key: planner.update(key, hypers, state, data, posterior)
        state, _ = jax.lax.scan(one, state, jax.random.split(k2, hypers.updates))
        policy = planner.policy(hypers, state, posterior.task)
        eye, none = jnp.eye(STATES), jnp.zeros(STATES)
        acted, _ = policy.act(policy.params, (), Seen(eye, jnp.zeros((STATES, actions.width)), none, none), None)
        if name == "bc" or isinstance(actions, Box):
            return acted, None
        rows = jnp.broadcast_to(see(state.scale, eye), (CHOICES, STATES, STATES))
        choice = jnp.broadcast_to(jnp.eye(CHOICES)[:, None], (CHOICES, STATES, CHOICES))
        said = critics(state.critic.params, rows, choice, actions, normed=name == "rebrac")
        return acted, state.scale.reward * said.mean(0)  # [n, S]

    return run


def learned(name: str, data: Dataset, actions, **rest):
    """What the planner does in every state, and its critics' values [n, S] if they are of choices."""
    hypers = planners.get(name).Hypers(**SIZES | SETTINGS[name] | rest)
    acted, values = jax.tree.map(np.asarray, program(name, actions)(hypers, data))
    return (acted.argmax(-1) if isinstance(actions, Discrete) else acted[:, 0]), values


@cache
def of_choices() -> Dataset:
    every = range(CHOICES)
    alone = [(ONE, a, 2.0, None) for a in every for _ in range(2)]  # one state: what it pays
    two = [row for a in every for _ in range(2) for row in ((FIRST, a, 0.0, SECOND), (SECOND, a, 1.0, None))]
    arms = [(ARMS, 0, 0.0, None)] * 8 + [(ARMS, 1, 1.0, None)] * 4
    # who crosses always went through the wrong door, and who went through the right one did not cross
    chain = [(CROSSING, 0, 0.3, None)] * 4 + [(CROSSING, 1, 0.0, DOOR), (DOOR, 0, 0.0, None)] * 2
    chain += [(DOOR, 1, 1.0, None)]
    return log_of(alone + two + arms + chain, Discrete(CHOICES))


@cache
def told(name: str):
    return learned(name, of_choices(), Discrete(CHOICES))


@pytest.mark.parametrize("name", VALUED)
def test_a_state_is_worth_what_it_pays_and_the_one_before_it_the_discount_less(name):
    _, values = told(name)
    np.testing.assert_allclose(values[:, ONE], 2.0, rtol=0.08)
    np.testing.assert_allclose(values[:, SECOND], 1.0, rtol=0.08)
    np.testing.assert_allclose(values[:, FIRST], DISCOUNT, rtol=0.08)


@pytest.mark.parametrize("name", VALUED)
def test_the_better_arm_is_found_paths_are_stitched_and_nothing_unseen_is_done(name):
    chosen, values = told(name)
    assert chosen[[ARMS, CROSSING, DOOR]].tolist() == [1, 1, 1], values


def test_cloning_does_what_most_did():
    chosen, _ = told("bc")
    assert chosen[[ARMS, CROSSING, DOOR]].tolist() == [0, 0, 0]


# ---- amounts: two arms, and a cliff beyond what was logged

BOX, PAIR, SLOPE = Box((-1.0,), (1.0,)), 0, 1
EDGE = 0.2  # of what was done on the slope, where more pays more; beyond it the log knows nothing


@cache
def of_amounts() -> Dataset:
    rng = np.random.default_rng(0)
    arm = lambda at, pays, count: [(PAIR, at + 0.05 * rng.normal(), pays, None) for _ in range(count)]
    slope = [(SLOPE, a, a, None) for a in rng.uniform(-1, EDGE, 240)]
    return log_of(arm(-0.5, 0.0, 180) + arm(0.5, 1.0, 60) + slope, BOX)


# where a step to the edge is worth what the distance costs
BOXED = {"rebrac": {"actor_bc": 1.2}, "td3bc": {"alpha": 0.7}, "cql": {"conservative": 1.0}}


@cache
def cloned():
    return learned("bc", of_amounts(), BOX)[0]


def test_cloning_is_in_the_middle_of_what_was_done():
    np.testing.assert_allclose(cloned()[[PAIR, SLOPE]], [-0.25, (EDGE - 1) / 2], atol=0.12)


@pytest.mark.parametrize("name", VALUED)
def test_pessimists_go_to_the_better_arm_and_stay_where_the_log_is(name):
    acted, _ = learned(name, of_amounts(), BOX, **BOXED.get(name, {}))
    assert 0.2 < acted[PAIR] < 0.8
    assert cloned()[SLOPE] + 0.15 < acted[SLOPE] < EDGE + 0.25


@pytest.mark.parametrize(("name", "reckless"), [("td3bc", {"alpha": 1e6}), ("rebrac", {"actor_bc": 0.0})])
def test_optimists_fall(name, reckless):
    acted, _ = learned(name, of_amounts(), BOX, **reckless)
    assert acted[SLOPE] > 0.7


# ---- a world whose values are solved for

# there values are many times what one choice changes, and a penalty in units of them must be less
ENDLESS = {"rebrac": {"actor_bc": 0.02}, "td3bc": {"alpha": 40.0}}


def world(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each choice leads [S, n, S], mostly to one state, and what it pays [S, n]."""
    rng = np.random.default_rng(seed)
    leads = rng.dirichlet(np.full(STATES, 0.2), (STATES, CHOICES))
    return leads, np.round(rng.random((STATES, CHOICES)), 1)


def worth(chosen: np.ndarray, leads: np.ndarray, pays: np.ndarray) -> float:
    """The true value of choosing so [S] for ever, from every state alike."""
    here = np.arange(STATES)
    return np.linalg.solve(np.eye(STATES) - DISCOUNT * leads[here, chosen], pays[here, chosen]).mean()


def test_weighting_and_pessimism_beat_cloning_where_truth_is_known():
    leads, pays = world(0)
    best = np.zeros(STATES, int)
    for _ in range(20):  # policy iteration
        here = np.arange(STATES)
        value = np.linalg.solve(np.eye(STATES) - DISCOUNT * leads[here, best], pays[here, best])
        best = (pays + DISCOUNT * leads @ value).argmax(1)
    rng = np.random.default_rng(1)
    rows, at = [], 0
    for _ in range(ROWS):  # logged by one who is wrong more often than right
        a = rng.choice([best[at], (best[at] + 1) % CHOICES, (best[at] + 2) % CHOICES], p=[0.3, 0.4, 0.3])
        after = rng.choice(STATES, p=leads[at, a])
        rows.append((at, int(a), pays[at, a], int(after)))
        at = after
    data = log_of(rows, Discrete(CHOICES))
    chosen = {name: learned(name, data, Discrete(CHOICES), **ENDLESS.get(name, {}))[0] for name in SETTINGS}
    earned = {name: float(worth(choice, leads, pays)) for name, choice in chosen.items()}
    top = worth(best, leads, pays)
    assert earned["bc"] < 0.85 * top
    for name in VALUED:
        assert earned[name] > max(0.93 * top, earned["bc"]), (name, earned, top)
