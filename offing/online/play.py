"""A policy's true returns, beside the interval that was predicted for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, BadInput, Box, Discrete, Key, Policy, Progress, Seen, Task
from . import envs

TOGETHER = {"gymnax": 256, "brax": 128, "gymnasium": 32}  # episodes that are played at once


class Played(NamedTuple):
    """What a policy earned, episode by episode, where, and under which seed."""

    returns: np.ndarray  # [E]  undiscounted
    values: np.ndarray  # [E]  discounted as the task says
    lengths: np.ndarray  # [E]
    env: str = ""
    seed: int = 0


Run = Callable[[Key], Any]  # keys [C] -> returns, values, lengths, each [C]


def play(
    policy: Policy,
    task: Task,
    name: str,
    episodes: int,
    seed: int = 0,
    sampled: bool = False,
    progress: Progress | None = None,
) -> Played:
    """Plays whole episodes in the true environment of that name, as long as it lets them run.

    The policy does what it thinks best, or samples. More episodes under the same seed begin with the same ones.
    """
    if episodes < 1:
        raise BadInput(f"{episodes} episodes: play at least 1")
    found = envs.source(name)
    if found is None:
        raise BadInput(f"{name}: no such environment; there are {envs.NAMES}")
    keys = jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(jnp.arange(episodes))
    parts = []
    with ExitStack() as stack:
        size = _evenly(episodes, TOGETHER[found[0]])
        if found[0] == "gymnasium":
            run = _stepped(policy, task, envs.hold(stack, name, size), sampled, name)
        else:
            run = _compiled(policy, task, name, sampled)
        for chunk in _chunks(episodes, size):
            parts.append(jax.tree.map(np.asarray, run(keys[chunk])))
            if progress:
                progress("play", min(len(parts) * size, episodes), episodes)
    return Played(*(np.concatenate(column)[:episodes] for column in zip(*parts, strict=True)), env=name, seed=seed)


def summary(played: Played, predicted: dict[str, Any] | None = None) -> dict[str, Any]:
    """What DIR/play.json says; `predicted` has the `interval` [low, high] of the return, its `level` and `median`.

    `inside` says whether the mean return, undiscounted, fell into it.
    """
    returns, values, lengths = played.returns, played.values, played.lengths
    said: dict[str, Any] = {
        "env": played.env,
        "episodes": len(returns),
        "return": {**_mean(returns), "min": float(returns.min()), "max": float(returns.max())},
        "value": _mean(values),
        "length": {"mean": float(lengths.mean())},
        "seed": played.seed,
        "versions": envs.versions(played.env),
    }
    if predicted is not None:
        low, high = map(float, predicted["interval"])
        kept = {"interval": [low, high], "level": float(predicted["level"]), "median": float(predicted["median"])}
        said |= {"predicted": kept, "inside": low <= said["return"]["mean"] <= high}
    return said


def check(policy: Policy, task: Task, name: str, actions: Box | Discrete, width: int) -> None:
    """Refuses, in one line, an environment whose observations or actions are not those of the policy's log."""
    theirs, ours = _described(actions), _described(task.actions)
    if type(actions) is not type(task.actions) or actions.width != task.actions.width:
        raise BadInput(f"{name}: takes {theirs}, the policy's log has {ours}")
    if isinstance(actions, Box) and not np.allclose(actions, task.actions, rtol=1e-4, atol=1e-6):
        why = "the ranges must be the same: action_low and action_high give a log its range"
        raise BadInput(f"{name}: takes {theirs}, the policy's log has {ours}; {why}")
    seen = Seen(*(np.zeros(shape, np.float32) for shape in (width, actions.width, (), ())))
    try:
        acted, _ = jax.eval_shape(lambda p, s: p.act(p.params, p.memory, s, None), policy, seen)
    except (TypeError, ValueError, IndexError) as error:
        why = str(error).strip().partition("\n")[0]
        raise BadInput(f"{name}: its observations, {width} numbers, do not fit the policy: {why}") from error
    if acted.shape != (actions.width,):
        raise BadInput(f"{name}: takes {theirs}, the policy's actions have shape {acted.shape}")


def rollouts(keys: Key, policy: Policy, discount: Array, env: envs.Env, sampled: bool) -> tuple[Array, ...]:
    """Returns, discounted returns and lengths [C] of one episode per key, side by side until the last one ends."""
    start, acts, steps = _split(keys)
    state, obs = jax.vmap(env.reset)(start)
    copies = len(keys)
    zeros = jnp.zeros(copies)
    seen = Seen(obs, jnp.zeros((copies, env.task.actions.width)), zeros, jnp.ones(copies))

    def going(carry: Any) -> Array:
        return (carry[0] < env.task.horizon) & carry[1].any()

    def step(carry: Any) -> Any:
        t, alive, state, memory, seen, (returns, values, lengths) = carry
        action, memory = act(acts, policy, memory, seen, t, sampled)
        now = jax.vmap(jax.random.fold_in, (0, None))(steps, t)
        state, obs, reward, ended = jax.vmap(env.step)(now, state, action)
        earned = jnp.where(alive, reward, 0.0)  # what is beyond an end may be anything
        tally = returns + earned, values + discount**t * earned, lengths + alive
        return t + 1, alive & ~ended, state, memory, Seen(obs, action, reward, zeros), tally

    tally = zeros, zeros, jnp.zeros(copies, int)
    begun = jnp.array(0), jnp.ones(copies, bool), state, policy.begin(copies), seen, tally
    return jax.lax.while_loop(going, step, begun)[-1]


def act(keys: Key, policy: Policy, memory: Any, seen: Seen, t: Array, sampled: bool) -> tuple[Array, Any]:
    """Actions [C, A] and memory of that many episodes, each with its own key, at step t."""

    def one(key: Key, memory: Any, seen: Seen) -> tuple[Array, Any]:
        return policy.act(policy.params, memory, seen, jax.random.fold_in(key, t) if sampled else None)

    action, memory = jax.vmap(one)(keys, memory, seen)
    return jnp.asarray(action, jnp.float32), memory


_rollouts = jax.jit(rollouts, static_argnames=("env", "sampled"))
_act = jax.jit(act, static_argnames="sampled")


def _compiled(policy: Policy, task: Task, name: str, sampled: bool) -> Run:
    """Episodes in a JAX environment: one program for all of a chunk."""
    env = envs.make(name)
    width = jax.eval_shape(env.reset, jax.random.key(0))[1].shape[0]
    check(policy, task, name, env.task.actions, width)
    return lambda keys: _rollouts(keys, policy, task.discount, env, sampled)


def _stepped(policy: Policy, task: Task, held: envs.Held, sampled: bool, name: str) -> Run:
    """Episodes in a gymnasium environment: its copies take turns, the policy sees them all at once."""
    check(policy, task, name, held.actions, held.width)
    horizon = held.horizon or task.horizon
    return lambda keys: _loop(keys, policy, task.discount, held, horizon, sampled)


def _loop(
    keys: Key, policy: Policy, discount: float, held: envs.Held, horizon: int, sampled: bool
) -> tuple[np.ndarray, ...]:
    """As `rollouts`, through environments that hold their own state."""
    start, acts, _ = _split(keys)
    copies, seeds = len(held.copies), np.asarray(jax.vmap(jax.random.bits)(start)).tolist()
    begun = [env.reset(seed=seed)[0] for env, seed in zip(held.copies, seeds, strict=True)]
    obs, memory, alive = np.stack(begun).astype(np.float32), policy.begin(copies), np.ones(copies, bool)
    action: Array = np.zeros((copies, held.actions.width), np.float32)
    reward = np.zeros(copies, np.float32)
    returns, values, lengths = np.zeros(copies), np.zeros(copies), np.zeros(copies, int)
    for t in range(horizon):
        seen = Seen(obs.copy(), action, reward.copy(), np.full(copies, t == 0, np.float32))
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


def _split(keys: Key) -> Key:
    """Keys of the start, of the policy and of the steps [3, C]."""
    return jnp.moveaxis(jax.vmap(lambda key: jax.random.split(key, 3))(keys), 1, 0)


def _evenly(episodes: int, most: int) -> int:
    """The size of chunks, all alike and no larger than `most`, that leaves the fewest over."""
    return math.ceil(episodes / math.ceil(episodes / most))


def _chunks(episodes: int, size: int) -> Iterator[np.ndarray]:
    """Indices of one chunk after another, all of one size: the last ones repeat where they run out."""
    for begin in range(0, episodes, size):
        yield np.minimum(np.arange(begin, begin + size), episodes - 1)


def _mean(numbers: np.ndarray) -> dict[str, float | None]:
    """Mean and its standard error, which one number does not have."""
    stderr = float(numbers.std(ddof=1, dtype=float)) / math.sqrt(len(numbers)) if len(numbers) > 1 else None
    return {"mean": float(numbers.mean(dtype=float)), "stderr": stderr}


def _described(actions: Box | Discrete) -> str:
    """Actions in words: `2 choices`, `1 amounts in [-2, 2]`."""
    if isinstance(actions, Discrete):
        return f"{actions.n} choices"
    edges = [f"[{low:g}, {high:g}]" for low, high in zip(actions.low, actions.high, strict=True)]
    alike = len(set(edges)) == 1
    return f"{actions.width} amounts in {edges[0] if alike else ' x '.join(edges)}"
