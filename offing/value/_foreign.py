"""What a foreign policy acts by: somebody's function, called on the host or traced by JAX.

On the host it is called between two steps, once for all episodes, and never by a callback from inside a program.
A callback that computes with JAX can wait for ever for the threads that its own program occupies: six queued
rollouts with three eager `jax.numpy` layers in it never ended on two cores (jax 0.10.2). And what it raises comes
out as a traceback of the compiler's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, BadPolicy, Box, Discrete, Key, Memory, Policy, Seen, Tree
from ._given import EDGE, call_policy, read


class Ask(Protocol):
    """Somebody's function: obs [B, S], its state or None, start [B] -> actions and state, as it pleases."""

    def __call__(self, obs: Array, state: Memory, start: Array, /) -> tuple[object, object]: ...


Wrapped = Callable[..., object]  # what a policy acts by, perhaps around another such


@dataclass(frozen=True, eq=False)
class Foreign:
    """Somebody's function, as what a Policy acts by; it is deterministic, and is used for nothing but that."""

    ask: Ask
    name: str
    actions: Box | Discrete


class Host(Foreign):
    """One that is called on the host; every action is validated."""

    def __call__(self, params: Tree, memory: Memory, seen: Seen, key: Key | None) -> tuple[np.ndarray, Memory]:
        del params, key
        try:
            obs = np.asarray(seen.obs, np.float32)
        except jax.errors.TracerArrayConversionError:
            raise TypeError(f"{self.name}: JAX cannot trace it, so no compiled program can hold it") from None
        lead = obs.shape[:-1]
        flat = lambda leaf: np.asarray(leaf).reshape(-1, *np.shape(leaf)[len(lead) :])
        fresh = np.broadcast_to(np.asarray(seen.start) > 0, lead).reshape(-1)
        answers = self._answers(flat(obs), jax.tree.map(flat, memory), fresh)
        return jax.tree.map(lambda leaf: leaf.reshape(*lead, *leaf.shape[1:]), answers)

    def _answers(self, obs: np.ndarray, state: Memory, fresh: np.ndarray) -> tuple[np.ndarray, Memory]:
        if not jax.tree.leaves(state) or fresh.all():
            return self._call(obs, None, fresh, state)
        if not fresh.any():
            return self._call(obs, state, fresh, state)
        begun, going = (
            self._call(obs, *at, state) for at in ((None, np.ones_like(fresh)), (state, np.zeros_like(fresh)))
        )
        pick = lambda new, old: np.where(fresh.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        return jax.tree.map(pick, begun, going)

    def _call(self, obs: np.ndarray, state: Memory, start: np.ndarray, like: Memory) -> tuple[np.ndarray, Memory]:
        output, after = call_policy(lambda: self.ask(obs.copy(), state, start), self.name, obs)
        rows = read(output, self.name, obs, self.actions, lambda i: f"observation {i} of {len(obs)},")
        if not jax.tree.leaves(like):
            return rows, ()
        return rows, arrays(after, self.name, len(obs), shapes(like))


class Native(Foreign):
    """One that JAX traces; observation by observation, so that none can depend on its company.

    What is no action is passed on as it is, a choice as NaN: `validate_actions` finds it.
    """

    def __call__(self, params: Tree, memory: Memory, seen: Seen, key: Key | None) -> tuple[Array, Memory]:
        del params, key
        lead = seen.obs.shape[:-1]
        flat = lambda leaf: jnp.reshape(leaf, (-1, *jnp.shape(leaf)[len(lead) :]))
        start = jnp.broadcast_to(seen.start, lead)
        action, memory = jax.vmap(self._one)(flat(seen.obs), flat(start), jax.tree.map(flat, memory))
        shaped = lambda leaf: leaf.reshape(*lead, *leaf.shape[1:])
        return shaped(action), jax.tree.map(shaped, memory)

    def _one(self, obs: Array, start: Array, memory: Memory) -> tuple[Array, Memory]:
        call = lambda state, first: jax.tree.map(jnp.asarray, self.ask(obs[None], state, jnp.full(1, first)))
        action, state = call(None, True)
        if not jax.tree.leaves(memory):
            return self._row(jnp.ravel(jnp.asarray(action))), memory
        going = call(jax.tree.map(lambda leaf: leaf[None], memory), False)
        action, state = jax.tree.map(lambda new, old: jnp.where(start > 0, new, old), (action, state), going)
        return self._row(jnp.ravel(action)), jax.tree.map(lambda leaf: leaf[0], state)

    def _row(self, given: Array) -> Array:
        if isinstance(self.actions, Discrete):
            known = (given == jnp.round(given)) & (given >= 0) & (given < self.actions.n)
            return jnp.where(known[0], jax.nn.one_hot(given[0].astype(int), self.actions.n), jnp.nan)
        low, high = jnp.array(self.actions.low), jnp.array(self.actions.high)
        held = jnp.clip(given, low, high)
        return jnp.where(jnp.abs(given - held) <= EDGE * (high - low), held, given)


def inner(policy: Policy) -> Wrapped:
    """What a policy acts by, without what is wrapped around it."""
    act: Wrapped = policy.act
    while (within := getattr(act, "act", None)) is not None:
        act = within
    return act


Shapes = tuple[Hashable, list[tuple[int, ...]]]  # of a state: its structure, and rows of its leaves


def is_foreign(policy: Policy) -> bool:
    return isinstance(inner(policy), Foreign)


def is_host(policy: Policy) -> bool:
    """Whether only the host can ask it: no compiled program may hold it."""
    return isinstance(inner(policy), Host)


def on_host(policy: Policy) -> Policy:
    """The same policy, called on the host, where every action is validated; one that is not foreign as it is."""

    def turned(act: Wrapped) -> Wrapped:
        if isinstance(act, Native):
            return Host(act.ask, act.name, act.actions)
        within = getattr(act, "act", None)
        return act if within is None else replace(act, act=turned(within))  # type: ignore[type-var]

    return replace(policy, act=turned(policy.act)) if is_foreign(policy) else policy


def living(obs: Array, alive: Array) -> np.ndarray:
    """Observations [..., S] in which episodes that are over stand where one that goes on does."""
    obs, alive = np.asarray(obs), np.asarray(alive)
    return np.where(alive[..., None], obs, obs[alive][0])


def shapes(tree: object) -> Shapes:
    return jax.tree.structure(tree), [np.shape(leaf)[1:] for leaf in jax.tree.leaves(tree)]


def arrays(state: object, name: str, rows: int, like: Shapes | None = None) -> Memory:
    """A state as arrays, one row per observation; BadPolicy if it is anything else, or another than before."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
    if not all(leaf.dtype.kind in "biuf" and leaf.shape[:1] == (rows,) for leaf in leaves):
        gave = ", ".join(f"{leaf.dtype} {leaf.shape}" for leaf in leaves)
        due = f"its state must be arrays of numbers with one row for each of the {rows} observations"
        raise BadPolicy(f"{name}: {due}; it gave {gave}")
    if like is not None and shapes(state) != like:
        raise BadPolicy(f"{name}: its state changed its shape from one step to the next; it must keep it")
    return jax.tree.unflatten(jax.tree.structure(state), leaves)
