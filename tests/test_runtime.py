"""offing-runtime where there is nothing but numpy: it plays CartPole over a pipe, as the policy itself does."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.runtime import CHILD, RUNTIME, decision, environment, fallen, moved, over_a_pipe
from offing.data.columns import ActionColumn, Column, Columns
from offing.ship.export import shipped, write_shipment
from offing.types import Discrete, Policy, Seen

EPISODES, STEPS = 200, 60
TABLE = Columns(
    tuple(map(Column, ("x", "speed", "angle", "turn"))), (ActionColumn("push", levels=("left", "right")),), True
)


def steady(params, memory, seen, key):
    """A controller that remembers: it leans on where the cart was."""
    del key
    before = jnp.where(seen.start[..., None] > 0, seen.obs[..., :1], memory)
    kept = 0.9 * before + 0.1 * seen.obs[..., :1]
    lean = seen.obs @ params[0] + 0.05 * kept[..., 0] + 0.0 * seen.reward
    return jax.nn.one_hot((lean > 0).astype(int), 2), kept


POLICY = Policy((jnp.array([0.02, 0.1, 1.0, 0.6]),), jnp.zeros(1), steady)


def starts():
    return np.random.default_rng(3).uniform(-0.15, 0.15, (EPISODES, 4))


@pytest.fixture
def alone(tmp_path):
    """A policy's process in a virtual environment that has numpy and the runtime, and no other package."""
    return [str(environment(tmp_path / "venv")), "-I", "-c", CHILD, str(tmp_path)]


def test_it_earns_what_the_policy_earns(alone, tmp_path):
    write_shipment(shipped(POLICY, 4, Discrete(2), TABLE, {}, "steady"), "numpy", tmp_path)
    act = jax.jit(lambda memory, seen: POLICY.act(POLICY.params, memory, seen, None))
    state, memory, alive, due = starts(), POLICY.begin(EPISODES), np.ones(EPISODES, bool), np.zeros(EPISODES)
    for t in range(STEPS):
        first = jnp.full(EPISODES, float(t == 0))
        seen = Seen(jnp.asarray(state, jnp.float32), jnp.zeros((EPISODES, 2)), jnp.ones(EPISODES), first)
        action, memory = act(memory, seen)
        due += alive
        state = moved(state, np.asarray(action).argmax(1) == 1)
        alive &= ~fallen(state)
    got = over_a_pipe(alone, starts(), ["x", "speed", "angle", "turn"], STEPS)
    np.testing.assert_array_equal(got, due)
    assert 20 < due.mean() <= STEPS


def test_it_is_small_and_quick_to_import():
    lines = sum(len(file.read_text().splitlines()) for file in (RUNTIME / "offing_runtime").glob("*.py"))
    assert lines < 300
    code = "import numpy, time; a = time.perf_counter(); import offing_runtime; print(time.perf_counter() - a)"
    took = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=RUNTIME, capture_output=True, text=True, check=True
        )
        took.append(float(done.stdout))
    assert min(took) < 0.15


def test_a_decision_of_a_small_net_is_quick(tmp_path):
    assert decision(environment(tmp_path / "venv"), tmp_path) < 300  # 100 on a core of its own; tests share theirs
