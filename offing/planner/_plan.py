"""The one training loop: update, and now and then ask a judge; what the judge liked best is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..types import Array, Dataset, Key, Planner, Policy, Posterior

UNROLL = {"gpu": 5}  # updates to a turn of the loop: fewer launches on a GPU, only longer compilation elsewhere
Judge = Callable[[Key, Policy], tuple[Array, Array]]  # -> its value in worlds it was trained in, and in others


def turns(hypers: Any) -> int:
    """How many of a setting's updates go into one turn of a loop; one where an update is a loop of its own."""
    return 1 if hasattr(hypers, "every") else UNROLL.get(jax.default_backend(), 1)


class Planned(NamedTuple):
    """What one setting came to."""

    params: Any  # of the policy, at its best round
    best: Array  # []  which round that was
    own: Array  # [R]  value in the worlds it was trained in, round by round
    held: Array  # [R]  value in worlds it was not: what the rounds are chosen by
    metrics: dict[str, Array]  # [R] means of a round's updates


def plan(
    key: Key, hypers: Any, planner: Planner, data: Dataset, posterior: Posterior, judge: Judge, rounds: int
) -> Planned:
    """Trains in `posterior` and keeps the round whose policy was worth most in the judge's held-out worlds.

    A plan that goes on too long learns its own worlds' errors: their value keeps rising and that of held-out
    worlds does not. Pure: `vmap` it over settings and seeds.
    """
    rounds = min(rounds, hypers.updates)
    first, key = jax.random.split(key)
    state = planner.init(first, hypers, data, posterior)

    def one(state: Any, key: Key) -> tuple[Any, dict[str, Array]]:
        return planner.update(key, hypers, state, data, posterior)

    def round_(carry: Any, at: tuple[Key, Array]) -> tuple[Any, Any]:
        state, kept, highest, best = carry
        key, number = at
        k1, k2 = jax.random.split(key)
        state, metrics = jax.lax.scan(one, state, jax.random.split(k1, -(-hypers.updates // rounds)))
        policy = planner.policy(hypers, state, posterior.task)
        own, held = judge(k2, policy)
        better = held > highest
        kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), policy.params, kept)
        carry = (state, kept, jnp.maximum(held, highest), jnp.where(better, number, best))
        return carry, (own, held, jax.tree.map(jnp.mean, metrics))

    params = planner.policy(hypers, state, posterior.task).params
    carry = (state, params, jnp.asarray(-jnp.inf), jnp.asarray(0))
    times = (jax.random.split(key, rounds), jnp.arange(rounds))
    (_, kept, _, best), (own, held, metrics) = jax.lax.scan(round_, carry, times)
    return Planned(kept, best, own, held, metrics)
