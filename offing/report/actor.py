"""A policy as you use it: rows of the log's own columns and units in, actions in the log's own units out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ..data.columns import Columns, Rows, is_plain, plain_columns
from ..types import Array, BadInput, Discrete, Key, Policy, Seen, Task
from .results import load_with_columns

NO_REWARD = "this policy remembers, and its input has the last step's reward: give predict(reward=...)"


class State(NamedTuple):
    """What `predict` hands back for its next call: the policy's memory, and what it did last."""

    memory: object
    action: Array  # [N, A]


@dataclass(frozen=True, repr=False)
class Actor:
    """A policy that says what to do: `action, state = actor.predict(obs, state)`."""

    policy: Policy
    task: Task
    width: int  # numbers of an observation
    columns: Columns = field(default_factory=Columns)
    name: str = ""

    def __repr__(self) -> str:
        space = self.task.actions
        acts = f"one of {space.n} choices" if isinstance(space, Discrete) else f"{space.width} amounts"
        memory = "remembers" if self.remembers else "acts on the observation alone"
        return f"<policy {self.name}: {self.width} numbers in, {acts} out; it {memory}>"

    @property
    def remembers(self) -> bool:
        """Whether what it does depends on earlier steps of the episode."""
        return bool(jax.tree.leaves(self.policy.memory))

    @cached_property
    def names(self) -> Columns:
        """The log's columns, or where it was plain arrays, their places."""
        return self.columns if self.columns.obs else plain_columns(self.width, self.task.actions)

    def predict(
        self,
        obs: Rows,
        state: State | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = True,
        reward: ArrayLike | None = None,
        key: Key | None = None,
    ) -> tuple[object, State]:
        """The action for one observation or a batch, and the state for the next call.

        `obs` is an array, or rows of the table: a dict, a list of them, a DataFrame. Arrays give arrays, choices
        as whole numbers; rows of a table give the table's own names and words. `state` is what the last call gave
        back; without it, and wherever `episode_start` is true, an episode begins. `reward` is what the last action
        earned, for a policy that remembers. Unless `deterministic`, actions are drawn, by `key` if it is given.
        """
        single = _is_single(obs)
        rows = self.names.encode(obs)
        state = self._begin(len(rows)) if state is None else state
        if len(state.action) != len(rows):
            raise BadInput(f"predict: the state is of {len(state.action)} episodes, {len(rows)} observations came")
        begins = np.asarray(False if episode_start is None else episode_start, bool) | (state.memory is None)
        start = np.broadcast_to(begins, len(rows)).astype(np.float32)
        if reward is None and self.remembers and not start.all():
            warnings.warn(NO_REWARD, stacklevel=2)
        earned = np.broadcast_to(np.asarray(0.0 if reward is None else reward, np.float32), len(rows))
        if self.remembers and not np.isfinite(earned[start == 0]).all():
            raise BadInput("reward: not a finite number; give what the last action earned")
        memory = self.policy.begin(len(rows)) if state.memory is None else state.memory
        going = (1 - start)[:, None]
        seen = Seen(
            jnp.asarray(rows),
            jnp.asarray(state.action * going),
            jnp.asarray(np.where(start > 0, 0, earned)),
            start,
        )
        if not deterministic and key is None:
            key = jax.random.key(int(np.random.SeedSequence().generate_state(1)[0]))
        action, memory = self._act(self.policy.params, memory, seen, None if deterministic else key)
        return self._decoded(np.asarray(action), single, is_plain(obs)), State(memory, np.asarray(action))

    def _begin(self, count: int) -> State:
        return State(None, np.zeros((count, self.task.actions.width), np.float32))

    @cached_property
    def _act(self) -> Callable[..., tuple[Array, object]]:
        return jax.jit(self.policy.act)

    def _decoded(self, action: np.ndarray, single: bool, plain: bool) -> object:
        if not plain:
            return self.names.decode(action[0] if single else action)
        plain_actions = action.argmax(-1) if isinstance(self.task.actions, Discrete) else action
        return plain_actions[0] if single else plain_actions


def _is_single(obs: Rows) -> bool:
    """Whether one observation was given, and not a batch of them."""
    if is_plain(obs):
        return np.ndim(np.asarray(obs)) == 1
    return isinstance(obs, dict) and all(np.ndim(np.asarray(cell)) == 0 for cell in obs.values())


def load_actor(folder: str | os.PathLike[str]) -> Actor:
    """The policy that `sorel` or `torel` left in a folder, as `result.policy` was."""
    policy, task, width, columns = load_with_columns(folder)
    return Actor(policy, task, width, columns, os.fspath(folder))
