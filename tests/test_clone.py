"""The log's behaviour as it is replayed in worlds: by a clone, and with each logged episode's own chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing.types import Box, Dataset, Discrete, Task, Transition
from offing.value._clone import Hypers, Row, act, clone

TINY = Hypers(width=16, depth=1, updates=200, batch_size=64, lr=1e-2)
ROWS, HALF = 400, 200
KINDS = [Box((-2.0, 0.0), (2.0, 5.0)), Discrete(3)]


def behaved(actions: Box | Discrete):
    """A controller that follows what it sees, and one time in four does anything; in the other half it turns."""
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(ROWS, 2)).astype(np.float32)
    wild, turned = rng.random(ROWS) < 0.25, np.arange(ROWS) >= HALF
    lean = np.where(turned, -obs[:, 0], obs[:, 0])
    if isinstance(actions, Discrete):
        choice = np.where(wild, rng.integers(0, 3, ROWS), np.clip(np.round(lean) + 1, 0, 2)).astype(int)
        action = np.eye(3, dtype=np.float32)[choice]
    else:
        low, high = np.array(actions.low), np.array(actions.high)
        plain = np.clip(0.5 + 0.2 * lean[:, None] * np.array([1.0, -1.0]), 0.0, 1.0)
        action = low + (high - low) * np.where(wild[:, None], rng.random((ROWS, 2)), plain)
    steps = Transition(obs, action.astype(np.float32), np.zeros(ROWS), obs, action, np.zeros(ROWS))
    data = Dataset(steps, obs[:1], np.arange(ROWS) // 20, np.asarray(ROWS, np.int32))
    return data, clone(
        jax.random.key(0), TINY, data, Task(20, 0.9, actions), [np.arange(HALF), np.arange(HALF, ROWS)]
    )


@pytest.mark.parametrize("actions", KINDS, ids=["box", "choices"])
def test_where_it_is_as_it_was_what_was_done_is_done(actions):
    """And that whatever the clone holds of it, a wild action as well as a plain one."""
    data, cloned = behaved(actions)
    obs, action = jnp.asarray(data.steps.obs), jnp.asarray(data.steps.action)
    for key in range(3):
        again = act(
            jax.random.key(key), cloned, (jnp.arange(ROWS) >= HALF).astype(int), obs, Row(obs, action), actions
        )
        np.testing.assert_allclose(again, action, atol=2e-3)


@pytest.mark.parametrize("actions", KINDS, ids=["box", "choices"])
def test_elsewhere_it_does_what_its_part_of_the_log_does_there(actions):
    """Plain where the logged action was plain, wild where it was wild, and the other way in the other part."""
    data, cloned = behaved(actions)
    rows = Row(jnp.asarray(data.steps.obs[:HALF]), jnp.asarray(data.steps.action[:HALF]))
    wherever = lambda x: jnp.tile(jnp.array([x, 0.0], jnp.float32), (HALF, 1))
    answer = lambda x, part: np.asarray(
        act(jax.random.key(1), cloned, jnp.full(HALF, part), wherever(x), rows, actions)
    )
    size = lambda a: a @ np.arange(a.shape[1]) if isinstance(actions, Discrete) else a[:, 0]
    forward, turned = (size(answer(1.5, part)) - size(answer(-1.5, part)) for part in (0, 1))
    assert forward.mean() > 0.3
    assert turned.mean() < -0.3
    assert np.std(size(answer(1.5, 0))) > 0.1  # chance is that of the rows: one in four is wild
