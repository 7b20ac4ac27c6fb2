"""What policies truly earn: return, discounted value, and the value of episodes without a time limit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from offing.online import envs
from offing.online.play import Played, play, play_pool, rollouts
from offing.types import Array, Key, Policy, Task
from offing.value.pool import kinds

from ..parts import Numbers

BEYOND = {"gymnax": 1_500, "brax": 3_000}  # steps after which nothing of a discounted value is left
SEED = 1_000


class Earned(NamedTuple):
    """Every policy's episodes, and its mean value where no limit of time ends one; NaN where there is a limit."""

    played: list[Played]
    endless: np.ndarray  # [P]

    def columns(self) -> Numbers:
        """Means and their standard errors, policy by policy."""
        each = {
            "return": [one.returns for one in self.played],
            "value": [one.values for one in self.played],
            "length": [one.lengths for one in self.played],
        }
        means = {name: [float(np.mean(column)) for column in columns] for name, columns in each.items()}
        errors = {f"{name}_stderr": [_stderr(column) for column in columns] for name, columns in each.items()}
        episodes = len(self.played[0].returns)
        return {**means, **errors, "endless": self.endless.tolist(), "episodes": episodes}


def _stderr(column: np.ndarray) -> float:
    return float(np.std(column, ddof=1, dtype=float) / np.sqrt(len(column))) if len(column) > 1 else 0.0


def earn(policies: Sequence[Policy], task: Task, env: str, episodes: int, seed: int = SEED) -> Earned:
    """Plays every policy; those of one shape in one program, where the environment is one."""
    package = (envs.source(env) or ("", ""))[0]
    if package == "gymnasium":  # its limit is far beyond what its discount reaches
        played = [play(policy, task, env, episodes, seed) for policy in policies]
        return Earned(played, np.array([np.mean(one.values) for one in played]))
    played, endless = {}, {}
    for index in kinds(policies):
        same = [policies[i] for i in index]
        played.update(zip(index, play_pool(same, task, env, episodes, seed), strict=True))
        far = _further(same, task, endless_env(env, BEYOND.get(package, task.horizon)), episodes, seed)
        endless.update(zip(index, far, strict=True))
    order = range(len(policies))
    return Earned([played[i] for i in order], np.array([endless[i] for i in order]))


@cache
def endless_env(name: str, steps: int) -> envs.Env:
    """The environment without its time limit, for `steps` steps."""
    env = envs.make(name)

    def step(key: Key, state: Any, action: Array) -> Any:
        return env.step(key, state.replace(time=0) if hasattr(state, "time") else state, action)

    return envs.Env(env.reset, step, env.task._replace(horizon=steps))


def _further(policies: Sequence[Policy], task: Task, env: envs.Env, episodes: int, seed: int) -> np.ndarray:
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(seed), i))(jnp.arange(episodes))
    pool = jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)
    return np.asarray(_values(keys, pool, task.discount, env)).mean(1)


def _pool_values(keys: Key, pool: Policy, discount: Any, env: envs.Env) -> Array:
    return jax.vmap(lambda policy: rollouts(keys, policy, discount, env, False)[1])(pool)


_values = jax.jit(_pool_values, static_argnames="env")
