"""offing-runtime where there is nothing but numpy: it plays CartPole over a pipe, as the policy itself does."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing.data.columns import ActionColumn, Column, Columns
from offing.ship.export import shipped, write_shipment
from offing.types import Discrete, Policy, Seen

RUNTIME = Path(__file__).parents[1] / "runtime"
EPISODES, STEPS = 200, 60
TABLE = Columns(
    tuple(map(Column, ("x", "speed", "angle", "turn"))), (ActionColumn("push", levels=("left", "right")),), True
)
CHILD = """
import sys
import numpy, offing_runtime
known = {"numpy", "offing_runtime", *sys.stdlib_module_names}
assert not [name for name in sys.modules if name.split(".")[0] not in known and not name.startswith("_")]
import json
policy, state = offing_runtime.load(sys.argv[1]), None
for line in sys.stdin:
    told = json.loads(line)
    action, state = policy.predict(told["row"], None if told["start"] else state, told["reward"])
    print(json.dumps(action), flush=True)
"""


def steady(params, memory, seen, key):
    """A controller that remembers: it leans on where the cart was."""
    del key
    before = jnp.where(seen.start[..., None] > 0, seen.obs[..., :1], memory)
    kept = 0.9 * before + 0.1 * seen.obs[..., :1]
    lean = seen.obs @ params[0] + 0.05 * kept[..., 0] + 0.0 * seen.reward
    return jax.nn.one_hot((lean > 0).astype(int), 2), kept


POLICY = Policy((jnp.array([0.02, 0.1, 1.0, 0.6]),), jnp.zeros(1), steady)


def moved(state, right):
    """One step of the cart and its pole (Barto, Sutton & Anderson, 1983) [N, 4]."""
    x, speed, angle, turn = state.T
    force, cos, sin = np.where(right, 10.0, -10.0), np.cos(angle), np.sin(angle)
    push = (force + 0.05 * turn**2 * sin) / 1.1
    spin = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    pull = push - 0.05 * spin * cos / 1.1
    return np.stack([x + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turn, turn + 0.02 * spin], -1)


def fallen(state):
    return (np.abs(state[:, 0]) > 2.4) | (np.abs(state[:, 2]) > 0.2095)


def starts():
    return np.random.default_rng(3).uniform(-0.15, 0.15, (EPISODES, 4))


@pytest.fixture
def alone(tmp_path):
    """A Python that finds numpy and the runtime, and no other package."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for each in Path(np.__file__).parents[1].glob("numpy*"):
        (packages / each.name).symlink_to(each)
    (packages / "offing_runtime").symlink_to(RUNTIME / "offing_runtime")
    child = f"import sys; sys.path.append({str(packages)!r})\n{CHILD}"
    return [sys.executable, "-I", "-S", "-c", child, str(tmp_path)]


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
    got = np.zeros(EPISODES)
    with subprocess.Popen(alone, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        for episode, first in enumerate(starts()):
            state = first[None]
            for t in range(STEPS):
                row = dict(zip(("x", "speed", "angle", "turn"), state[0].tolist(), strict=True))
                child.stdin.write(json.dumps({"row": row, "start": t == 0, "reward": 1.0}) + "\n")
                child.stdin.flush()
                push = json.loads(child.stdout.readline())["push"]
                got[episode] += 1
                state = moved(state, np.array([push == "right"]))
                if fallen(state)[0]:
                    break
        child.stdin.close()
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
