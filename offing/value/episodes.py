"""Episodes of a policy, step by step: imagined in every world, and what it would have done in logged ones."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..types import Array, Dataset, Key, Memory, Policy, Posterior, Seen, Task, Transition
from ._foreign import is_host, living
from ._table import on_log
from .predictive import Walk, begun, moved

BLOCK = 1024  # rows of a log are padded to a multiple of this, so that one program serves logs of many sizes


class Imagined(NamedTuple):
    """Episodes of a policy, K in each of M worlds: what it saw, did and earned, and where that led."""

    obs: np.ndarray  # [T, M, K, S]
    action: np.ndarray  # [T, M, K, A]
    reward: np.ndarray  # [T, M, K]
    next_obs: np.ndarray  # [T, M, K, S]
    ended: np.ndarray  # [T, M, K]  whether the episode ended with this step
    alive: np.ndarray  # [T, M, K]  whether it was still on before it

    @property
    def returns(self) -> np.ndarray:
        """[M, K], undiscounted."""
        return np.sum(self.reward * self.alive, 0)

    def as_log(self) -> Dataset:
        """All their steps as rows of a log, episode after episode, world by world."""
        order = lambda leaf: np.moveaxis(leaf, 0, 2)
        on = order(self.alive)  # [M, K, T]
        rows = Transition(
            *(order(leaf)[on] for leaf in (self.obs, self.action, self.reward, self.next_obs, self.action)),
            done=order(self.ended)[on].astype(np.float32),
        )
        number = np.arange(on.shape[0] * on.shape[1], dtype=np.int32).reshape(on.shape[:2])
        episode = np.broadcast_to(number[..., None], on.shape)[on]
        return Dataset(rows, self.obs[0].reshape(-1, self.obs.shape[-1]), episode, np.asarray(len(episode)))


def imagine(key: Key, policy: Policy, posterior: Posterior, copies: int) -> Imagined:
    """`copies` episodes of the policy in every world: those that `predictive.rollouts` draws by the same key."""
    if not is_host(policy):
        return Imagined(*map(np.asarray, _scanned(key, policy, posterior, copies)))
    walk, keys = _begun(key, posterior, copies)
    memory, steps = policy.begin(*walk.alive.shape), []
    for t, k in enumerate(keys):
        if not np.asarray(walk.alive).any():
            steps.append(steps[-1]._replace(alive=np.zeros_like(steps[-1].alive)))
            continue
        seen = walk.seen._replace(obs=living(walk.seen.obs, walk.alive))
        action, memory = policy.act(policy.params, memory, seen, None)
        walk, step = _stepped(k, posterior, walk, action, t)
        steps.append(Imagined(*map(np.asarray, step)))
    return Imagined(*(np.stack(leaves) for leaves in zip(*steps, strict=True)))


def _step(key: Key, posterior: Posterior, walk: Walk, action: Array, t: Array | int) -> tuple[Walk, Imagined]:
    after = moved(jax.random.split(key)[1], posterior, walk, action, t)
    led = (after.seen.reward, after.seen.obs, walk.alive & ~after.alive)
    return after, Imagined(walk.seen.obs, action, *led, walk.alive)  # type: ignore[arg-type]


_begun = compiled(begun, static_argnames="copies")
_stepped = compiled(_step)


def _scan(key: Key, policy: Policy, posterior: Posterior, copies: int) -> Imagined:
    def one(carry: tuple[Walk, Memory], at: tuple[Key, Array]) -> tuple[tuple[Walk, Memory], Imagined]:
        (walk, memory), (key, t) = carry, at
        action, memory = policy.act(policy.params, memory, walk.seen, None)
        walk, step = _step(key, posterior, walk, action, t)
        return (walk, memory), step

    walk, keys = begun(key, posterior, copies)
    carry = (walk, policy.begin(*walk.alive.shape))
    return jax.lax.scan(one, carry, (keys, jnp.arange(len(keys))))[1]


_scanned = compiled(_scan, static_argnames="copies")


def acted(policy: Policy, data: Dataset, task: Task) -> np.ndarray:
    """What the policy does at every row of a log [N, A], having done before what was done there."""
    policy, rows = on_log(policy, data, task), data.rows
    episode = np.asarray(data.episode)[:rows]
    first = np.r_[True, (episode[1:] != episode[:-1]) | (episode[1:] < 0)]
    at = np.arange(-(-rows // BLOCK) * BLOCK).clip(max=rows - 1)
    leaf = lambda array: np.asarray(array)[:rows][at].astype(np.float32)
    steps = data.steps
    return np.asarray(_acted(policy, leaf(steps.obs), leaf(steps.action), leaf(steps.reward), leaf(first)))[:rows]


@compiled
def _acted(policy: Policy, obs: Array, action: Array, reward: Array, start: Array) -> Array:
    def one(memory: Memory, at: tuple[Array, ...]) -> tuple[Memory, Array]:
        did, memory = policy.act(policy.params, memory, Seen(*at), None)
        return memory, did

    before = lambda leaf: jnp.concatenate([jnp.zeros_like(leaf[:1]), leaf[:-1]])
    on = 1 - start
    seen = (obs, before(action) * on[:, None], before(reward) * on, start)
    return jax.lax.scan(one, policy.begin(), seen)[1]
