"""The one training loop: update, and now and then ask a judge; what the judge liked best is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp

from ..types import Array, BadInput, Dataset, H, Key, Params, Planner, Policy, Posterior, S

PARTED = 2  # rounds without a gain in held-out worlds, while training worlds gain, after which a plan stops
FLAT = 3  # rounds without a gain in either
Judge = Callable[[Key, Policy], tuple[Array, Array]]  # -> its value in worlds it was trained in, and in others
Metrics = dict[str, Array]
Curves = tuple[Array, Array, Metrics]  # value in training worlds and in others, and what updates reported [R]


class Trains(Protocol):
    """Hyperparameters that say how long to train."""

    @property
    def updates(self) -> int: ...


Lasting = TypeVar("Lasting", bound=Trains)


class Planned(NamedTuple, Generic[Params]):
    """What one setting came to."""

    params: Params  # of the policy, at its best round
    best: Array  # []  which round that was
    own: Array  # [R]  value in the worlds it was trained in, round by round
    held: Array  # [R]  value in worlds it was not: what the rounds are chosen by
    metrics: Metrics  # [R] means of a round's updates


class Rounds(NamedTuple, Generic[S, Params]):
    """A plan between two rounds."""

    state: S
    kept: Params  # the policy's parameters, at its best round
    highest: Array  # []  what that was worth
    best: Array  # []  which it was


def train(
    keys: Key, hypers: H, planner: Planner[H, S], state: S, data: Dataset, posterior: Posterior
) -> tuple[S, Metrics]:
    """One update with each of the keys: the state after them, and what they report [U]."""

    def one(state: S, key: Key) -> tuple[S, Metrics]:
        return planner.update(key, hypers, state, data, posterior)

    return jax.lax.scan(one, state, keys)


def plan(
    key: Key,
    hypers: Lasting,
    planner: Planner[Lasting, S],
    data: Dataset,
    posterior: Posterior,
    judge: Judge,
    rounds: int,
    stops: bool = False,
) -> Planned:
    """Trains in `posterior` and keeps the round whose policy was worth most in the judge's held-out worlds.

    A plan that goes on too long learns its training worlds' errors: their value keeps rising and that of held-out
    worlds does not. With `stops` it then ends; rounds that were spared are nan. Pure: `vmap` it over settings.
    """
    rounds = min(rounds, hypers.updates)
    first, key = jax.random.split(key)
    state = planner.init(first, hypers, data, posterior)
    each = -(-hypers.updates // rounds)

    def round_(carry: Rounds, at: tuple[Key, Array]) -> tuple[Rounds, Curves]:
        key, number = at
        k1, k2 = jax.random.split(key)
        state, metrics = train(jax.random.split(k1, each), hypers, planner, carry.state, data, posterior)
        if stops and set(metrics) != set(planner.reports):
            raise BadInput(
                f"planner {planner.name}: it reports {', '.join(metrics)}, and its `reports` say otherwise"
            )
        policy = planner.policy(hypers, state, posterior.task)
        own, held = judge(k2, policy)
        better = held > carry.highest
        kept = jax.tree.map(lambda new, old: jnp.where(better, new, old), policy.params, carry.kept)
        best = jnp.where(better, number, carry.best)
        carry = Rounds(state, kept, jnp.maximum(held, carry.highest), best)
        return carry, (own, held, jax.tree.map(jnp.mean, metrics))

    params = planner.policy(hypers, state, posterior.task).params
    carry = Rounds(state, params, jnp.asarray(-jnp.inf), jnp.asarray(0))
    times = (jax.random.split(key, rounds), jnp.arange(rounds))
    run = partial(until_parted, reports=planner.reports) if stops else jax.lax.scan
    carry, (own, held, metrics) = run(round_, carry, times)
    return Planned(carry.kept, carry.best, own, held, metrics)


def until_parted(
    round_: Callable[[Rounds, tuple[Key, Array]], tuple[Rounds, Curves]],
    carry: Rounds,
    times: tuple[Key, Array],
    reports: Sequence[str],
) -> tuple[Rounds, Curves]:
    """As `scan`, but it ends where held-out worlds have stopped gaining; what was not run is nan.

    Half of the rounds are always run: the learning rate falls towards the end, and early rounds say little.
    """
    rounds = times[1].shape[0]
    none = jnp.full(rounds, jnp.nan)
    metrics: Metrics = dict.fromkeys(reports, none)
    curves: Curves = (none, none, metrics)  # their shapes are known: a trace to ask takes as long as the program

    def on(at: tuple[Rounds, Curves, Array]) -> Array:
        carry, (own, _, _), number = at
        since = number - 1 - carry.best
        gained = own[jnp.maximum(number - 1, 0)] > own[carry.best]
        over = ((since >= PARTED) & gained) | (since >= FLAT)
        return (number < rounds) & ~(over & (number >= rounds // 2))

    def one(at: tuple[Rounds, Curves, Array]) -> tuple[Rounds, Curves, Array]:
        carry, curves, number = at
        carry, row = round_(carry, (times[0][number], number))
        return carry, jax.tree.map(lambda all_, new: all_.at[number].set(new), curves, row), number + 1

    carry, curves, _ = jax.lax.while_loop(on, one, (carry, curves, jnp.asarray(0)))
    return carry, curves
