"""Logs from the true environment, for samples, tests and experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..nets import mlp, mlp_init
from ..planner import rppo
from ..types import Array, BadInput, Box, Discrete, Key, Progress, Task
from . import envs

KINDS = {
    "gymnax-pendulum-random": "pendulum",
    "gymnax-cartpole-random": "cartpole",
    "brax-halfcheetah-full-replay": "brax-halfcheetah",
    "brax-hopper-full-replay": "brax-hopper",
    "brax-walker2d-full-replay": "brax-walker2d",
}
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
    if kind.endswith("-full-replay"):
        return full_replay(env, rows, seed, progress)
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


# ---- everything that a learning agent did, from its first stumbles to its best (the paper's Brax logs)

LEARNER = rppo.Hypers(
    envs=64,
    segment=128,
    epochs=8,
    minibatches=8,
    width=256,
    core="none",
    lr=3e-4,
    discount=0.99,
    entropy=0.0,
    first_std=0.6,
)
POOL = 256  # starts that episodes begin in: resetting a simulator inside every step would cost more than the step
WARM = 128  # random steps that the scale of observations is taken from


def arena(env: envs.Env, pool: Any, count: int) -> rppo.Arena:
    """That many copies of a true environment as a planner's arena; episodes begin in a state of the pool."""

    def reset(key: Key) -> tuple[Any, Array]:
        index = jax.random.randint(key, (count,), 0, POOL)
        return jax.tree.map(lambda leaf: leaf[index], pool)

    def step(key: Key, state: Any, action: Array) -> tuple[Any, Array, Array, Array]:
        return jax.vmap(env.step)(jax.random.split(key, count), state, action)

    return rppo.Arena(reset, step)


def full_replay(env: envs.Env, rows: int, seed: int, progress: Progress | None = None) -> dict[str, np.ndarray]:
    """Columns of all that an online run of feed-forward PPO of `rows` steps saw and did."""
    hypers = replace(LEARNER, steps=rows)
    k1, k2, k3 = jax.random.split(jax.random.key(seed), 3)
    pool = jax.jit(jax.vmap(env.reset))(jax.random.split(k1, POOL))
    begin = jax.jit(lambda key, pool: _begin(key, env, hypers, arena(env, pool, hypers.envs)))
    learn = jax.jit(
        lambda key, state, pool: rppo.lesson(key, hypers, state, arena(env, pool, hypers.envs), env.task)
    )
    state = begin(k2, pool)
    found: list[dict[str, np.ndarray]] = []
    updates = -(-rows // (hypers.envs * hypers.segment))
    for i in range(updates):
        state, _, out = learn(jax.random.fold_in(k3, i), state, pool)
        kept = {name: np.asarray(out[name]) for name in ("obs", "action", "reward", "next_obs", "ended", "late")}
        found.append(kept)
        if progress:
            progress("collect", min((i + 1) * hypers.envs * hypers.segment, rows), rows)
    whole = {name: np.concatenate([part[name] for part in found]) for name in found[0]}  # [T, N, ...]
    return _columns(_episodes(whole, rows), env.task)


def _begin(key: Key, env: envs.Env, hypers: rppo.Hypers, where: rppo.Arena) -> rppo.State:
    """A learner whose scale of observations comes from random actions."""
    k1, k2, k3 = jax.random.split(key, 3)
    state, first = where.reset(k1)
    low, high = (jnp.array(edge) for edge in env.task.actions)

    def one(state: Any, key: Key) -> tuple[Any, tuple[Array, Array]]:
        a, b = jax.random.split(key)
        action = jax.random.uniform(a, (hypers.envs, env.task.actions.width), minval=low, maxval=high)
        state, obs, reward, _ = where.step(b, state, action)
        return state, (obs, reward)

    _, (obs, reward) = jax.lax.scan(one, state, jax.random.split(k2, WARM))
    seen = jnp.concatenate([first[None], obs]).reshape(-1, first.shape[-1])
    scale = rppo.Scale(seen.mean(0), jnp.maximum(seen.std(0), 1e-3), jnp.maximum(reward.std(), 1e-3))
    return rppo.begin_in(k3, hypers, scale, where, env.task)


def _episodes(whole: dict[str, np.ndarray], rows: int) -> list[dict[str, np.ndarray]]:
    """The columns [T, N, ...] as episodes in the order in which they ended, at most `rows` rows together."""
    over = whole["ended"] | whole["late"]
    over[-1] = True
    pieces = []
    for env in range(over.shape[1]):
        ends = np.flatnonzero(over[:, env])
        for begin, end in zip(np.r_[0, ends[:-1] + 1], ends, strict=True):
            pieces.append((end, env, begin))
    found, count = [], 0
    for end, env, begin in sorted(pieces):
        end = min(end, begin + rows - count - 1)
        part = {name: whole[name][begin : end + 1, env] for name in ("obs", "action", "reward", "next_obs")}
        found.append({**part, "terminated": whole["ended"][begin : end + 1, env]})
        count += end - begin + 1
        if count >= rows:
            break
    return found


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
