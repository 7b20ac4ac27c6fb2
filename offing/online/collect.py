"""Logs from the true environment, for samples, tests and experiments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..nets import mlp, mlp_init
from ..types import Array, BadInput, Box, Discrete, Key, Progress, Task
from . import envs

KINDS = {"gymnax-pendulum-random": "pendulum", "gymnax-cartpole-random": "cartpole"}
HIDDEN = (64, 64)
ENSEMBLE = 64  # policies that take turns within an episode
TURN = 0.05  # chance that another policy takes over at a step


class RandomPolicy(NamedTuple):
    """A policy nobody trained: a net drawn at random, and how much it strays from what the net says."""

    net: Any
    noise: Array


def random_policy(key: Key, obs_width: int, task: Task) -> RandomPolicy:
    """One member of the ensemble of randomly initialised policies (the paper's Gymnax logs)."""
    k1, k2, k3 = jax.random.split(key, 3)
    gain = jnp.exp(jax.random.uniform(k1, minval=-1.0, maxval=2.0))  # from timid to bang-bang
    net = mlp_init(k2, (obs_width, *HIDDEN, task.actions.width), last=gain)
    return RandomPolicy(net, jax.random.uniform(k3, minval=0.1, maxval=1.0))


def act(key: Key, policy: RandomPolicy, obs: Array, actions: Box | Discrete) -> Array:
    """The policy's action row: a sampled choice, or its mean and noise squeezed into the box."""
    out = mlp(policy.net, obs, "tanh")
    if isinstance(actions, Discrete):
        return jax.nn.one_hot(jax.random.categorical(key, out / policy.noise), actions.n)
    low, high = jnp.array(actions.low), jnp.array(actions.high)
    squeezed = jnp.tanh(out) + policy.noise * jax.random.normal(key, out.shape)
    return jnp.clip((low + high) / 2 + (high - low) / 2 * squeezed, low, high)


def rollout(key: Key, env: envs.Env, policy: Callable[[Key, Array, Array], Array]) -> dict[str, Array]:
    """One episode of the task's horizon under `policy(key, obs, t)`: columns [T, ...], and where it is `alive`."""
    start, key = jax.random.split(key)
    state, obs = env.reset(start)

    def step(carry: Any, at: tuple[Key, Array]) -> tuple[Any, dict[str, Array]]:
        (state, obs, alive), (key, t) = carry, at
        k1, k2 = jax.random.split(key)
        action = policy(k1, obs, t)
        state, after, reward, ended = env.step(k2, state, action)
        row = {
            "obs": obs,
            "action": action,
            "reward": reward,
            "next_obs": after,
            "terminated": ended,
            "alive": alive,
        }
        return (state, after, alive & ~ended), row

    times = (jax.random.split(key, env.task.horizon), jnp.arange(env.task.horizon))
    return jax.lax.scan(step, (state, obs, jnp.array(True)), times)[1]


def random_ensemble(key: Key, env: envs.Env) -> RandomPolicy:
    """An ensemble of random policies, stacked."""
    width = jax.eval_shape(env.reset, key)[1].shape[0]
    return jax.vmap(lambda k: random_policy(k, width, env.task))(jax.random.split(key, ENSEMBLE))


def random_episodes(key: Key, env: envs.Env, policies: RandomPolicy, episodes: int) -> dict[str, Array]:
    """That many episodes [E, T, ...], in each of which the policies take turns of about 1 / TURN steps."""

    def one(key: Key) -> dict[str, Array]:
        k1, k2 = jax.random.split(key)
        steps = env.task.horizon
        turns = jnp.cumsum(jax.random.bernoulli(k1, TURN, (steps,)))
        whose = jax.random.randint(jax.random.fold_in(k1, 1), (steps,), 0, ENSEMBLE)[turns]

        def policy(key: Key, obs: Array, t: Array) -> Array:
            return act(key, jax.tree.map(lambda leaf: leaf[whose[t]], policies), obs, env.task.actions)

        return rollout(k2, env, policy)

    return jax.vmap(one)(jax.random.split(key, episodes))


def collect(kind: str, rows: int, seed: int, progress: Progress | None = None) -> dict[str, np.ndarray]:
    """Columns of a log of `rows` steps, as `offing.load` reads them; the last episode is cut to fit."""
    if kind not in KINDS:
        raise BadInput(f"{kind}: no such kind of log; there are {', '.join(sorted(KINDS))}")
    if rows < 2:
        raise BadInput(f"{rows} rows: a log needs at least 2")
    env = envs.make(KINDS[kind])
    first, rest = jax.random.split(jax.random.key(seed))
    policies = random_ensemble(first, env)
    run = jax.jit(lambda key: random_episodes(key, env, policies, 64))
    found: list[dict[str, np.ndarray]] = []
    count, batch = 0, 0
    while count < rows:
        out = jax.tree.map(np.asarray, run(jax.random.fold_in(rest, batch)))
        for e in range(64):
            length = min(int(out["alive"][e].sum()), rows - count)
            if length:
                found.append({name: column[e, :length] for name, column in out.items()})
                count += length
        batch += 1
        if progress:
            progress("collect", min(count, rows), rows)
    return _columns(found, env.task)


def _columns(episodes: list[dict[str, np.ndarray]], task: Task) -> dict[str, np.ndarray]:
    """Episodes as one set of columns: last observations apart, time-outs where nothing ended."""
    whole = {
        name: np.concatenate([e[name] for e in episodes]) for name in ("obs", "action", "reward", "terminated")
    }
    ends = np.cumsum([len(e["obs"]) for e in episodes]) - 1
    truncated = np.zeros(len(whole["obs"]), bool)
    truncated[ends] = ~whole["terminated"][ends]
    columns = {
        **whole,
        "truncated": truncated,
        "final_obs": np.stack([e["next_obs"][-1] for e in episodes]),
        "horizon": np.int64(task.horizon),
        "discount": np.float64(task.discount),
    }
    if isinstance(task.actions, Discrete):
        columns["action"] = whole["action"].argmax(1).astype(np.int8)
        columns["n_actions"] = np.int64(task.actions.n)
    else:
        columns["action_low"] = np.array(task.actions.low, np.float32)
        columns["action_high"] = np.array(task.actions.high, np.float32)
    return columns
