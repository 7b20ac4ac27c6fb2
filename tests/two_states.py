"""A problem of two states and two actions, solved by hand, and policies that say how likely they act."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from offing.types import Dataset, Discrete, Policy, Task, Transition

MOVES = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]]])  # [state, action, next]
REWARDS = np.array([[1.0, 0.0], [-1.0, 2.0]])
FIRST = np.array([2 / 3, 1 / 3])  # of the starts
EYE = np.eye(2, dtype=np.float32)
DISCOUNT = 0.8
TASK = Task(horizon=60, discount=DISCOUNT, actions=Discrete(2))
SHY = np.array([[0.3, 0.7], [0.8, 0.2]])
BOLD = np.array([[0.8, 0.2], [0.3, 0.7]])


@dataclass(frozen=True)
class Act:
    """Reads a table of chances [state, action]."""

    def __call__(self, params, memory, seen, key):
        chances = seen.obs @ params
        index = jnp.argmax(chances, -1) if key is None else jax.random.categorical(key, jnp.log(chances))
        return jax.nn.one_hot(index, 2), memory

    def logp(self, params, memory, seen, action):
        return jnp.log(jnp.sum((seen.obs @ params) * action, -1))


@dataclass(frozen=True)
class Silent:
    """The same, without saying how likely it acts."""

    def __call__(self, params, memory, seen, key):
        return Act()(params, memory, seen, key)


def policy(table, act=Act()) -> Policy:  # noqa: B008
    return Policy(jnp.asarray(table, jnp.float32), (), act)


def solved(table, discount=DISCOUNT, first=FIRST, rewards=REWARDS):
    """Value of a table of chances by linear solve: V [2], Q [2, 2], and the mean over starts."""
    chain, reward = np.einsum("sa,sat->st", table, MOVES), (table * rewards).sum(1)
    v = np.linalg.solve(np.eye(2) - discount * chain, reward)
    return v, rewards + discount * MOVES @ v, float(first @ v)


def occupancy(table, discount=DISCOUNT):
    """Normalised discounted visits [state, action]."""
    chain = np.einsum("sa,sat->st", table, MOVES)
    return (1 - discount) * np.linalg.solve(np.eye(2) - discount * chain.T, FIRST)[:, None] * table


def every_transition() -> Dataset:
    """A bag of transitions in which every outcome stands as often as it is likely: 40 rows, ten of each pair."""
    rows = [(s, a, t) for s in (0, 1) for a in (0, 1) for t in (0, 1) for _ in range(round(10 * MOVES[s, a, t]))]
    s, a, t = np.array(rows).T
    steps = Transition(EYE[s], EYE[a], REWARDS[s, a].astype(np.float32), EYE[t], EYE[a], np.zeros(40, np.float32))
    return Dataset(steps, EYE[[0, 0, 1]], np.full(40, -1, np.int32), np.asarray(40, np.int32))


def played(table, episodes, length, seed) -> tuple[Dataset, np.ndarray]:
    """Episodes of a table of chances, all of one length, and the log of each action's chance [N]."""
    rng = np.random.default_rng(seed)
    s = (rng.random(episodes) < FIRST[1]).astype(int)
    rows = []
    for _ in range(length):
        a = (rng.random(episodes) < table[s, 1]).astype(int)
        t = (rng.random(episodes) < MOVES[s, a, 1]).astype(int)
        rows.append((s, a, t))
        s = t
    s, a, t = (np.stack(part, 1).ravel() for part in zip(*rows, strict=True))
    n = episodes * length
    steps = Transition(EYE[s], EYE[a], REWARDS[s, a].astype(np.float32), EYE[t], EYE[a], np.zeros(n, np.float32))
    episode = np.repeat(np.arange(episodes, dtype=np.int32), length)
    data = Dataset(steps, EYE[s.reshape(episodes, length)[:, 0]], episode, np.asarray(n, np.int32))
    return data, np.log(table[s, a]).astype(np.float32)


def finite(table, length, discount):
    """What a table of chances earns in `length` steps."""
    chain, reward, at, total = np.einsum("sa,sat->st", table, MOVES), (table * REWARDS).sum(1), FIRST, 0.0
    for t in range(length):
        total += discount**t * at @ reward
        at = at @ chain
    return float(total)


def ending() -> Dataset:
    """The same shapes, where every step earns 1 and leads to the same state, and a quarter of them end."""
    done = (np.arange(40) // 2 % 4 == 0).astype(np.float32)  # alike for both actions
    obs, action = EYE[np.zeros(40, int)], EYE[np.arange(40) % 2]
    steps = Transition(obs, action, np.ones(40, np.float32), obs, action, done)
    return Dataset(steps, obs[:3], np.full(40, -1, np.int32), np.asarray(40, np.int32))
