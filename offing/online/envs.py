"""True environments as pure functions of arrays, in the log's own terms."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from ..types import Array, BadInput, Box, Discrete, Key, Task

GYMNAX = {"pendulum": "Pendulum-v1", "cartpole": "CartPole-v1"}


class Env(NamedTuple):
    """A true environment without auto-reset: its steps say when it truly ended, its task how long it may run."""

    reset: Callable[[Key], tuple[Any, Array]]  # state, obs
    step: Callable[[Key, Any, Array], tuple[Any, Array, Array, Array]]  # state, obs, reward, terminated
    task: Task


def make(name: str) -> Env:
    """The gymnax environment of that short name (`pendulum`, `cartpole`)."""
    if name not in GYMNAX:
        raise BadInput(f"{name}: no such environment; there are {', '.join(sorted(GYMNAX))}")
    if importlib.util.find_spec("gymnax") is None:
        raise BadInput("gymnax is not installed; collecting needs the extra: pip install 'offing[envs]'")
    import gymnax
    from gymnax.environments import spaces

    env, params = gymnax.make(GYMNAX[name])
    space = env.action_space(params)
    actions: Box | Discrete
    if isinstance(space, spaces.Discrete):
        actions = Discrete(int(space.n))
    else:
        low, high = (jnp.broadcast_to(jnp.asarray(edge), space.shape) for edge in (space.low, space.high))
        actions = Box(tuple(map(float, low)), tuple(map(float, high)))

    def step(key: Key, state: Any, action: Array) -> tuple[Any, Array, Array, Array]:
        given = jnp.argmax(action) if isinstance(actions, Discrete) else action
        obs, state, reward, _, _ = env.step_env(key, state, given, params)
        return state, obs, jnp.float32(reward), env.is_terminated(state, params)

    def reset(key: Key) -> tuple[Any, Array]:
        obs, state = env.reset_env(key, params)
        return state, obs

    return Env(reset, step, Task(int(params.max_steps_in_episode), 0.99, actions))
