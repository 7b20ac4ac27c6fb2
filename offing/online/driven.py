"""Episodes driven from the host: of policies that it alone can ask, of environments that hold their own state."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, Key, Policy, Seen
from ..value.foreign import is_host, living
from . import envs


def split(keys: Key) -> Key:
    """Keys of the start, of the policy and of the steps [3, C]."""
    return jnp.moveaxis(jax.vmap(lambda key: jax.random.split(key, 3))(keys), 1, 0)


def act(keys: Key, policy: Policy, memory: Any, seen: Seen, t: Array, sampled: bool) -> tuple[Array, Any]:
    """Actions [C, A] and memory of that many episodes, each with its own key, at step t."""

    def one(key: Key, memory: Any, seen: Seen) -> tuple[Array, Any]:
        return policy.act(policy.params, memory, seen, jax.random.fold_in(key, t) if sampled else None)

    action, memory = jax.vmap(one)(keys, memory, seen)
    return jnp.asarray(action, jnp.float32), memory


_act = jax.jit(act, static_argnames="sampled")


def driven(keys: Key, policy: Policy, discount: float, env: envs.Env) -> tuple[np.ndarray, ...]:
    """As `rollouts`, of a policy that only the host can ask: once a step, for all episodes."""
    start, _, steps = split(keys)
    state, obs = _reset(start, env)
    copies = len(keys)
    action, reward = np.zeros((copies, env.task.actions.width), np.float32), np.zeros(copies, np.float32)
    memory, alive = policy.begin(copies), np.ones(copies, bool)
    returns, values, lengths = np.zeros(copies), np.zeros(copies), np.zeros(copies, int)
    for t in range(env.task.horizon):
        seen = Seen(living(obs, alive), action, reward, np.full(copies, t == 0, np.float32))
        action, memory = policy.act(policy.params, memory, seen, None)
        state, obs, reward, ended = _step(steps, state, action, t, env)
        earned = np.where(alive, np.asarray(reward, float), 0.0)
        returns, values, lengths = returns + earned, values + discount**t * earned, lengths + alive
        alive = alive & ~np.asarray(ended)
        if not alive.any():
            break
    return returns, values, lengths


@partial(jax.jit, static_argnames="env")
def _reset(keys: Key, env: envs.Env) -> tuple[Any, Array]:
    return jax.vmap(env.reset)(keys)


@partial(jax.jit, static_argnames="env")
def _step(keys: Key, state: Any, action: Array, t: Array | int, env: envs.Env) -> tuple[Any, Array, Array, Array]:
    now = jax.vmap(jax.random.fold_in, (0, None))(keys, t)
    return jax.vmap(env.step)(now, state, action)


def stepped(
    keys: Key, policy: Policy, discount: float, held: envs.Held, horizon: int, sampled: bool
) -> tuple[np.ndarray, ...]:
    """As `rollouts`, through environments that hold their own state."""
    start, acts, _ = split(keys)
    copies, seeds = len(held.copies), np.asarray(jax.vmap(jax.random.bits)(start)).tolist()
    begun = [env.reset(seed=seed)[0] for env, seed in zip(held.copies, seeds, strict=True)]
    obs, memory, alive = np.stack(begun).astype(np.float32), policy.begin(copies), np.ones(copies, bool)
    action: Array = np.zeros((copies, held.actions.width), np.float32)
    reward = np.zeros(copies, np.float32)
    returns, values, lengths = np.zeros(copies), np.zeros(copies), np.zeros(copies, int)
    for t in range(horizon):
        seen = Seen(obs.copy(), action, reward.copy(), np.full(copies, t == 0, np.float32))
        if is_host(policy):
            action, memory = policy.act(policy.params, memory, seen._replace(obs=living(obs, alive)), None)
        else:
            action, memory = _act(acts, policy, memory, seen, t, sampled)
        rows = np.asarray(action)
        for i in np.flatnonzero(alive):
            obs[i], reward[i], ended, cut, _ = held.copies[i].step(held.place(rows[i]))
            returns[i] += reward[i]
            values[i] += discount**t * reward[i]
            lengths[i] += 1
            alive[i] = not (ended or cut)
        if not alive.any():
            break
    return returns, values, lengths
