"""What a foreign policy does in the log, computed once and kept: its actions by all that it had seen until then.

Estimators that read the log alone ask a policy nowhere else, and some of them a hundred thousand times over. A row
is found by 64 bits of hash of the observation, or where a policy remembers, of its episode's observations so far
(two of ten million rows are alike by chance with a probability of 3e-6). Elsewhere the action is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..data.dataset import laid_out
from ..types import Array, Dataset, Key, Memory, Policy, Seen, Task
from ._foreign import is_foreign, on_host
from ._view import alone

BLOCK = 65_536  # observations that a policy acts at, at once
PROBES = 4  # rows that may share the first half of a hash
SALTS = np.array([0x9E3779B9, 0x85EBCA6B], np.uint32)


Hash = Array | tuple[()]  # of an episode so far [..., 2]


class Kept(NamedTuple):
    """Actions by the hash of what was seen, in order of its first half."""

    first: Array  # [N]
    second: Array  # [N]
    action: Array  # [N, A]


@dataclass(frozen=True)
class Table:
    """Acts as the table says; memory is the hash of the episode so far, or ()."""

    def __call__(self, params: Kept, memory: Hash, seen: Seen, key: Key | None) -> tuple[Array, Hash]:
        del key
        lead = seen.obs.shape[:-1]
        remembers = not isinstance(memory, tuple)
        before = (
            jnp.where(seen.start[..., None] > 0, 0, memory) if remembers else jnp.zeros((*lead, 2), jnp.uint32)
        )
        now = chained(before, seen.obs)
        at = jnp.searchsorted(params.first, now[..., 0])[..., None] + jnp.arange(PROBES)
        at = jnp.minimum(at, params.first.shape[0] - 1)
        hit = (params.first[at] == now[..., :1]) & (params.second[at] == now[..., 1:])
        action = params.action[jnp.take_along_axis(at, hit.argmax(-1)[..., None], -1)[..., 0]]
        return jnp.where(hit.any(-1)[..., None], action, jnp.nan), now if remembers else memory


def mixed(h: Array) -> Array:
    """Every bit of 32 spread over all (the last steps of MurmurHash3)."""
    h = (h ^ (h >> 16)) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> 13)) * np.uint32(0xC2B2AE35)
    return h ^ (h >> 16)


@compiled
def chained(before: Array, obs: Array) -> Array:
    """Hash [..., 2] of an observation [..., S] that came after what `before` is the hash of."""
    bits = jax.lax.bitcast_convert_type(jnp.asarray(obs, jnp.float32), jnp.uint32)[..., None]  # [..., S, 1]
    place = jnp.arange(1, bits.shape[-2] + 1, dtype=jnp.uint32)[:, None] * SALTS
    return mixed(jnp.sum(mixed(bits ^ mixed(place)), -2, dtype=jnp.uint32) + mixed(before ^ SALTS))


def on_log(policy: Policy, data: Dataset, task: Task) -> Policy:
    """A foreign policy as a table of what it does at all rows of the log; any other as it is."""
    if not is_foreign(policy):
        return policy
    policy = on_host(policy)
    rows, remembers = data.rows, bool(jax.tree.leaves(policy.memory))
    parts = (data.steps.obs[:rows], data.steps.next_obs[:rows], data.starts)
    seen = np.concatenate([np.asarray(part, np.float32) for part in parts])
    keys, first = _once(np.asarray(chained(np.zeros((len(seen), 2), np.uint32), seen)))
    parts = [(keys, _alone(policy, seen[first], task))]
    if remembers and np.asarray(data.episode)[0] >= 0:
        parts += _along(policy, data, task)
    keys, actions = (np.concatenate(each) for each in zip(*parts, strict=True))
    keys, first = _once(keys)
    kept = Kept(*(jnp.asarray(each) for each in (keys[:, 0], keys[:, 1], actions[first])))
    return Policy(kept, np.zeros(2, np.uint32) if remembers else (), Table())


def _once(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keys [N, 2] without repetition and in order, and where each stood first."""
    whole = (keys[:, 0].astype(np.uint64) << np.uint64(32)) | keys[:, 1]
    first = np.unique(whole, return_index=True)[1]
    return keys[first], first


def _alone(policy: Policy, obs: np.ndarray, task: Task) -> np.ndarray:
    """What it does at observations [N, S] as if each were the first of an episode [N, A]."""
    parts = [obs[i : i + BLOCK] for i in range(0, len(obs), BLOCK)]
    act = lambda part: policy.act(policy.params, policy.begin(len(part)), alone(part, task.actions), None)[0]
    return np.concatenate([np.asarray(act(part)) for part in parts])


def _along(policy: Policy, data: Dataset, task: Task) -> list[tuple[np.ndarray, np.ndarray]]:
    """Hashes and actions along all logged episodes at once: at every step, and at what came after it."""
    row, _ = laid_out(np.asarray(data.episode)[: data.rows], task.horizon)
    obs, after = (np.asarray(each, np.float32) for each in (data.steps.obs, data.steps.next_obs))
    kept: list[tuple[np.ndarray, np.ndarray]] = []

    def act(memory: Memory, before: np.ndarray, there: np.ndarray, start: bool) -> tuple[Memory, np.ndarray]:
        seen = alone(there, task.actions)._replace(start=np.full(len(there), start, np.float32))
        action, memory = policy.act(policy.params, memory, seen, None)
        kept.append((np.asarray(chained(before, there)), np.asarray(action)))
        return memory, kept[-1][0]

    memory, before = policy.begin(row.shape[1]), np.zeros((row.shape[1], 2), np.uint32)
    for t, at in enumerate(row):
        memory, before = act(memory, before, obs[at], t == 0)
        act(memory, before, after[at], False)
    return kept
