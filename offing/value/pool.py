"""Pools of policies that are judged together, and the sizes and rates that all estimators share.

A pool is a Policy whose every leaf has a leading axis [P]. Policies of one pool see the same minibatches, first
weights and random numbers, so that what tells them apart is what they do; and one alone is judged as in a pool.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, cast, overload

import jax
import jax.numpy as jnp
import numpy as np

from ..hypers import hypers
from ..types import Array, BadInput, Dataset, Key, Params, Policy, Remembered, Seen, Task
from ._table import on_log as on_log
from ._view import alone as alone
from .estimate import Estimate

CHUNK = 50  # updates whose minibatches are gathered at once, as in `posterior.ensemble`
ROUNDS = 40  # how often a training is looked at


@hypers
class Training:
    """Sizes and rates that Fu et al. (2021) use for every net of every estimator, with fewer updates."""

    width: int = 256
    depth: int = 2
    batch_size: int = 256
    updates: int = 50_000
    lr: float = 3e-4
    decay: float = 1e-5

    @property
    def per_round(self) -> int:
        return -(-self.updates // ROUNDS)

    def sizes(self, inputs: int, outputs: int = 1) -> tuple[int, ...]:
        """Widths of a net's layers, from what it reads to what it says."""
        return (inputs, *[self.width] * self.depth, outputs)

    @property
    def chunk(self) -> int:
        return next(c for c in range(min(CHUNK, self.per_round), 0, -1) if self.per_round % c == 0)


# ---- pools


class Pooled(Protocol):
    """One signature for all: a policy in, an Estimate out; policies in, as many out, in their order."""

    @overload
    def __call__(
        self, key: Key, policy: Policy, data: Dataset, task: Task, hypers: Training | None = None, **more: Array
    ) -> Estimate: ...

    @overload
    def __call__(
        self,
        key: Key,
        policy: Sequence[Policy],
        data: Dataset,
        task: Task,
        hypers: Training | None = None,
        **more: Array,
    ) -> list[Estimate]: ...


def pooled(default: Training) -> Callable[[Callable[..., list[Estimate]]], Pooled]:
    """Makes an estimator of stacked pools take one policy or many; one program for those of one structure."""

    def wrap(estimator: Callable[..., list[Estimate]]) -> Pooled:
        def judge(
            key: Key,
            policy: Policy | Sequence[Policy],
            data: Dataset,
            task: Task,
            hypers: Training | None = None,
            **more: Array,
        ) -> Estimate | list[Estimate]:
            hypers = default if hypers is None else hypers
            policies = [policy] if isinstance(policy, Policy) else list(policy)
            policies = [on_log(each, data, task) for each in policies]
            if not policies:
                raise BadInput("no policy to judge: the pool is empty")
            by_place: dict[int, Estimate] = {}
            for index in kinds(policies):
                pool = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[policies[i] for i in index])
                by_place.update(zip(index, estimator(key, pool, data, task, hypers, **more), strict=True))
            estimates = [by_place[i] for i in range(len(policies))]
            return estimates[0] if isinstance(policy, Policy) else estimates

        judge.__doc__, judge.__name__ = estimator.__doc__, estimator.__name__
        return cast(Pooled, judge)

    return wrap


def policies_in(pool: Policy) -> int:
    """How many policies a pool stacks."""
    return jax.tree.leaves(pool)[0].shape[0]


def kinds(policies: Sequence[Policy]) -> list[list[int]]:
    """Places of the policies that one program can hold together: one `act`, parameters of one shape."""
    groups: dict[Hashable, list[int]] = {}
    for i, policy in enumerate(policies):
        leaves, structure = jax.tree.flatten(policy)
        groups.setdefault((structure, tuple(np.shape(leaf) for leaf in leaves)), []).append(i)
    return list(groups.values())


def remembers(policy: Policy) -> bool:
    """Whether what the policy does depends on more than the observation."""
    return bool(jax.tree.leaves(policy.memory))


@dataclass(frozen=True)
class Forgets(Generic[Params, Remembered]):
    """A policy's act, at every step as if the episode had just begun."""

    act: Callable[[Params, Remembered, Seen, Key | None], tuple[Array, Remembered]]

    def __call__(
        self, params: tuple[Params, Remembered], memory: tuple[()], seen: Seen, key: Key | None
    ) -> tuple[Array, tuple[()]]:
        inner, first = params
        lead = seen.obs.shape[:-1]
        blank = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*lead, *jnp.shape(leaf))), first)
        now = Seen(seen.obs, jnp.zeros_like(seen.action), jnp.zeros(lead), jnp.ones(lead))
        return self.act(inner, blank, now, key)[0], memory


def memoryless(policy: Policy) -> Policy:
    """The policy with its memory emptied before every step: the paper's way to put it before FQE."""
    return Policy((policy.params, policy.memory), (), Forgets(policy.act)) if remembers(policy) else policy


def only_memoryless(policy: Policy, name: str) -> None:
    """Refuses a policy whose value a function of observation and action alone cannot hold."""
    if remembers(policy):
        raise BadInput(
            f"{name} judges policies that act on the observation alone, and this one remembers: use importance "
            "sampling or the posterior, or judge memoryless(policy), which is another policy"
        )
