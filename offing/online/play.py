"""A policy's true returns, beside the interval that was predicted for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, BadInput, Box, Discrete, Key, Policy, Progress, Seen, Task
from ..value.foreign import is_host, on_host
from ..value.policies import described, same_actions
from . import envs
from .driven import act, driven, split, stepped

TOGETHER = {"offing": 256, "gymnax": 256, "brax": 128, "gymnasium": 32}  # episodes that are played at once


class Played(NamedTuple):
    """What a policy earned, episode by episode, where, and under which seed."""

    returns: np.ndarray  # [E]  undiscounted
    values: np.ndarray  # [E]  discounted as the task says
    lengths: np.ndarray  # [E]
    env: str = ""
    seed: int = 0


DISCOUNT = 0.99  # of the reported value, where neither a log nor an environment says
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
    origin, policy = _source(name), on_host(policy)
    keys, parts = _keys(seed, episodes), []
    with ExitStack() as stack:
        size = _evenly(episodes, TOGETHER[origin[0]])
        if origin[0] == "gymnasium":
            run = _stepped(policy, task, envs.hold(stack, name, size), sampled, name)
        else:
            run = _compiled(policy, task, name, sampled)
        for chunk in _chunks(episodes, size):
            parts.append(jax.tree.map(np.asarray, run(keys[chunk])))
            if progress:
                progress("play", min(len(parts) * size, episodes), episodes)
    return Played(*(np.concatenate(column)[:episodes] for column in zip(*parts, strict=True)), env=name, seed=seed)


def play_pool(policies: Sequence[Policy], task: Task, name: str, episodes: int, seed: int = 0) -> list[Played]:
    """As `play`, of policies that differ in their parameters alone, in a JAX environment: all in one program."""
    env = _fitting(policies[0], task, name)
    pool = jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)
    rollouts = jax.tree.map(np.asarray, _pool_rollouts(_keys(seed, episodes), pool, task.discount, env))
    return [Played(*(column[i] for column in rollouts), env=name, seed=seed) for i in range(len(policies))]


def task_of(name: str) -> tuple[Task, int]:
    """The task of an environment, as a policy that has no log is played in it, and its observations' width."""
    if _source(name)[0] != "gymnasium":
        env = envs.make(name)
        return env.task, jax.eval_shape(env.reset, jax.random.key(0))[1].shape[0]
    with ExitStack() as stack:
        held = envs.hold(stack, name, 1)
    if held.horizon is None:
        raise BadInput(f"{name}: its episodes have no time limit, and a policy without a log knows none")
    return Task(held.horizon, DISCOUNT, held.actions), held.width


def summary(played: Played, predicted: dict[str, Any] | None = None) -> dict[str, Any]:
    """What DIR/play.json says; `predicted` has the `interval` [low, high] of the return, its `level` and `median`.

    `inside` says whether the mean return, undiscounted, fell into it.
    """
    returns, values, lengths = played.returns, played.values, played.lengths
    report: dict[str, Any] = {
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
        report |= {"predicted": kept, "inside": low <= report["return"]["mean"] <= high}
    return report


def check(policy: Policy, task: Task, name: str, actions: Box | Discrete, width: int) -> None:
    """Refuses, in one line, an environment whose observations or actions are not those of the policy's log."""
    theirs, ours = described(actions), described(task.actions)
    if type(actions) is not type(task.actions) or actions.width != task.actions.width:
        raise BadInput(f"{name}: takes {theirs}, the policy's log has {ours}")
    if not same_actions(actions, task.actions):
        why = "the ranges must be the same: action_low and action_high give a log its range"
        raise BadInput(f"{name}: takes {theirs}, the policy's log has {ours}; {why}")
    seen = Seen(*(np.zeros(shape, np.float32) for shape in (width, actions.width, (), ())))
    if is_host(policy):
        return  # it was tried when it was made, for observations and actions of that many numbers
    try:
        acted, _ = jax.eval_shape(lambda p, s: p.act(p.params, p.memory, s, None), policy, seen)
    except (TypeError, ValueError, IndexError) as error:
        why = str(error).strip().partition("\n")[0]
        raise BadInput(f"{name}: its observations, {width} numbers, do not fit the policy: {why}") from error
    if acted.shape != (actions.width,):
        raise BadInput(f"{name}: takes {theirs}, the policy's actions have shape {acted.shape}")


def rollouts(keys: Key, policy: Policy, discount: Array, env: envs.Env, sampled: bool) -> tuple[Array, ...]:
    """Returns, discounted returns and lengths [C] of one episode per key, side by side until the last one ends."""
    start, acts, steps = split(keys)
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


_rollouts = jax.jit(rollouts, static_argnames=("env", "sampled"))


@partial(jax.jit, static_argnames="env")
def _pool_rollouts(keys: Key, pool: Policy, discount: Array, env: envs.Env) -> tuple[Array, ...]:
    """As `rollouts`, of each policy of a pool: [P, C]."""
    return jax.vmap(lambda policy: rollouts(keys, policy, discount, env, False))(pool)


def _compiled(policy: Policy, task: Task, name: str, sampled: bool) -> Run:
    """Episodes in a JAX environment: one program for all of a chunk."""
    env = _fitting(policy, task, name)
    if is_host(policy):
        return lambda keys: driven(keys, policy, task.discount, env)
    return lambda keys: _rollouts(keys, policy, task.discount, env, sampled)


def _fitting(policy: Policy, task: Task, name: str) -> envs.Env:
    """The JAX environment of that name, which the policy fits."""
    env = envs.make(name)
    width = jax.eval_shape(env.reset, jax.random.key(0))[1].shape[0]
    check(policy, task, name, env.task.actions, width)
    return env


def _keys(seed: int, episodes: int) -> Key:
    """One key for each episode, whatever their number."""
    return jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(jnp.arange(episodes))


def _stepped(policy: Policy, task: Task, held: envs.Held, sampled: bool, name: str) -> Run:
    """Episodes in a gymnasium environment: its copies take turns, the policy sees them all at once."""
    check(policy, task, name, held.actions, held.width)
    horizon = held.horizon or task.horizon
    return lambda keys: stepped(keys, policy, task.discount, held, horizon, sampled)


def _source(name: str) -> tuple[str, str]:
    origin = envs.source(name)
    if origin is None:
        raise BadInput(f"{name}: no such environment; there are {envs.NAMES}")
    return origin


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
