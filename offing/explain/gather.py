"""The numbers of an explanation: the policy and the behaviour over the log's states, and imagined episodes."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..data.dataset import runs
from ..posterior.walk import memories, moments_of, widths
from ..types import Array, Dataset, Key, Policy, Posterior, Seen
from ..value.predictive import rolled

ROWS = 4_096  # of the log, in whole episodes, that the policy is asked at
COPIES = 16  # imagined episodes of each world


class Logged(NamedTuple):
    """Rows of the log, in whole episodes, and what the policy would have done at each."""

    obs: np.ndarray  # [N, S]
    behaviour: np.ndarray  # [N, A]
    policy: np.ndarray  # [N, A]
    reward: np.ndarray  # [N]
    episode: np.ndarray  # [N]
    time: np.ndarray  # [N]


class Imagined(NamedTuple):
    """Episodes of the policy in every world; rewards are each world's own expectations."""

    obs: np.ndarray  # [T, M, K, S]
    action: np.ndarray  # [T, M, K, A]
    reward: np.ndarray  # [T, M, K]
    alive: np.ndarray  # [T, M, K]

    @property
    def returns(self) -> np.ndarray:
        """[M, K], undiscounted."""
        return (self.reward * self.alive).sum(0)


@jax.jit
def _along(policy: Policy, obs: Array, action: Array, reward: Array, start: Array) -> Array:
    def one(memory: Array, at: tuple[Array, ...]) -> tuple[Array, Array]:
        did, memory = policy.act(policy.params, memory, Seen(*at), None)
        return memory, did

    before = lambda x: jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]])
    keep = 1 - start
    seen = (obs, before(action) * keep[:, None], before(reward) * keep, start)
    return jax.lax.scan(one, policy.begin(), seen)[1]


def logged(policy: Policy, data: Dataset) -> Logged:
    """What the policy would have done along logged episodes, after what was done before."""
    rows, episode = data.rows, np.asarray(data.episode)[: data.rows]
    if episode[0] < 0:
        units = [np.array([row]) for row in np.linspace(0, rows - 1, min(ROWS, rows)).astype(int)]
    else:
        units = runs(episode)
    order, taken, count = np.random.default_rng(0).permutation(len(units)), [], 0
    for i in order:
        taken.append(units[i])
        count += len(units[i])
        if count >= ROWS:
            break
    at = np.concatenate(taken)
    first = np.concatenate([np.arange(len(unit)) for unit in taken])
    obs, action, reward = (np.asarray(leaf)[at].astype(np.float32) for leaf in data.steps[:3])
    which = np.concatenate([np.full(len(unit), i) for i, unit in enumerate(taken)])
    did = _along(policy, obs, action, reward, (first == 0).astype(np.float32))
    return Logged(obs, action, np.asarray(did), reward, which, first)


def imagined(key: Key, policy: Policy, posterior: Posterior) -> Imagined:
    """COPIES episodes of the policy in every world."""
    obs, action, alive = (np.asarray(part) for part in rolled(key, policy, posterior, COPIES, path=True)[1])
    return Imagined(obs, action, np.asarray(_rewards(posterior, obs, action, alive)), alive.astype(bool))


@jax.jit
def _rewards(posterior: Posterior, obs: Array, action: Array, alive: Array) -> Array:
    """What each world expects its own episodes' steps to earn [T, M, K], given where they led."""
    ask, memory = moments_of(posterior), memories(posterior, obs.shape[2])
    over = (alive[:-1] > 0) & ~(alive[1:] > 0)
    told = jax.vmap(jax.vmap(ask), (None, None, 0, 0, 0, 0))(
        posterior.theta, memory, obs[:-1], action[:-1], obs[1:], over.astype(jnp.float32)
    )
    last = jax.vmap(ask)(posterior.theta, memory, obs[-1], action[-1])  # where it led is not known
    reward = jnp.concatenate([told.mean[..., -1], last.mean[None, ..., -1]])
    return jnp.clip(reward, jnp.asarray(posterior.low)[-1], jnp.asarray(posterior.high)[-1])


def importance(policy: Policy, found: Logged) -> np.ndarray:
    """How much actions change if a column is shuffled among rows [S]; the largest is 1."""
    rng = np.random.default_rng(1)
    start = (found.time == 0).astype(np.float32)
    spread = np.maximum(found.policy.std(0), 1e-9)
    change = []
    for column in range(found.obs.shape[1]):
        mixed = found.obs.copy()
        mixed[:, column] = rng.permutation(mixed[:, column])
        did = np.asarray(_along(policy, mixed, found.behaviour, found.reward, start))
        change.append(float(np.mean(np.abs(did - found.policy) / spread)))
    return np.array(change) / max(max(change), 1e-9)


def scale(posterior: Posterior) -> np.ndarray:
    """Widths of the log's columns [S]."""
    return np.asarray(widths(posterior))[:-1]
