"""Imagine, then learn: soft actor-critic with N critics on rows of the log and rows of a posterior's worlds.

    repeat:  every rollout takes `segment` steps in its world; the rows go into a ring of `retain` such refreshes
             `every` gradient steps on minibatches of which `share` is logged and the rest from the ring

Rollouts start at logged states, keep their hypothesis, and start anew where their episode ends or after `length`
steps: so every row of the ring is a step that was taken, and `length` may be traced. What kind of world they walk
through is all that mopo, morel and combo differ by, and combo's critics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from ..hypers import hypers
from ..posterior.walk import Place, WorldStep, memories
from ..types import Array, Box, Dataset, Discrete, Key, Policy, Posterior, Seen, Task, Transition
from . import sacn
from ._parts import Act, Scale, drawn, inner, taken


@hypers
class Hypers:
    """phi_III. Defaults: TOReL's released code for MOPO and MOReL, with fewer steps."""

    steps: int = 50_000  # gradient steps in all: what `updates` is to a planner that has no worlds
    every: int = 1_000  # of them between two refreshes of what is imagined
    envs: int = 50_000  # rollouts side by side
    segment: int = 5  # steps that each of them takes at a refresh
    retain: int = 5  # refreshes that are kept
    batch_size: int = 256
    width: int = 256
    depth: int = 3
    critics: int = 10
    length: float = 5.0  # steps after which a rollout starts anew
    share: float = 0.05  # of a minibatch that is logged
    lr: float = 1e-4
    discount: float = 0.99
    polyak: float = 0.005

    @property
    def updates(self) -> int:
        return max(1, self.steps // self.every)


class Where(NamedTuple):
    """The rollouts between two steps, world by world."""

    place: Place  # obs [M, C, S], and what worlds remember
    clock: Array  # [M, C]  steps since the logged state that it started at


class Ring(NamedTuple):
    """The last refreshes, as planners read them: (obs, action, next_obs, reward, done) in one row."""

    rows: Array  # [retain, R, 2S + A + 2]
    turn: Array  # []  refreshes so far


Surveyed = TypeVar("Surveyed")  # what a survey of the log found


class State(NamedTuple, Generic[Surveyed]):
    sac: sacn.State
    where: Where
    ring: Ring
    known: Surveyed


REPORTS = (*sacn.REPORTS, "imagined", "ended")
Dreams = TypeVar("Dreams", bound=Hypers)
World = Callable[[Dreams, Posterior, Surveyed], WorldStep]  # -> how rollouts step
Survey = Callable[[Key, Dataset, Posterior], Surveyed]


def nothing(key: Key, data: Dataset, posterior: Posterior) -> tuple[()]:
    """The survey of worlds that need none."""
    return ()


class Functions(NamedTuple, Generic[Dreams, Surveyed]):
    """Of a planner that learns in worlds."""

    init: Callable[[Key, Dreams, Dataset, Posterior], State[Surveyed]]
    update: Callable[[Key, Dreams, State[Surveyed], Dataset, Posterior], tuple[State[Surveyed], dict[str, Array]]]
    policy: Callable[[Dreams, State[Surveyed], Task], Policy]
    blank: Callable[[Dreams, int, Task], Policy]


def dreaming(
    world: World[Dreams, Surveyed],
    survey: Survey[Surveyed] = nothing,
    critic_loss: sacn.Loss = sacn.critic_loss,
) -> Functions[Dreams, Surveyed]:
    """The functions of a planner that learns in such worlds, with these critics.

    One call of `update` is a refresh and `every` gradient steps.
    """

    def init(key: Key, hypers: Dreams, data: Dataset, posterior: Posterior) -> State[Surveyed]:
        """A planner that has seen nothing and imagined nothing."""
        k1, k2, k3 = jax.random.split(key, 3)
        return State(
            sacn.init(k1, hypers, data, posterior),
            begin(k2, hypers, data, posterior),
            empty(hypers, data, posterior.members),
            survey(k3, data, posterior),
        )

    def update(
        key: Key, hypers: Dreams, state: State[Surveyed], data: Dataset, posterior: Posterior
    ) -> tuple[State[Surveyed], dict[str, Array]]:
        """One refresh of what is imagined, and the gradient steps until the next."""
        k1, k2, k3 = jax.random.split(key, 3)
        actions = posterior.task.actions
        where, rows = imagine(k1, hypers, state, data, world(hypers, posterior, state.known), actions)
        ring = write(state.ring, rows)
        batches = mixed(k2, hypers, ring, data, state.sac.scale, actions)
        sac, metrics = lesson(k3, hypers, state.sac, batches, actions, critic_loss)
        metrics |= {"imagined": rows[:, -2].mean() * sac.scale.reward, "ended": rows[:, -1].mean()}
        return State(sac, where, ring, state.known), metrics

    def policy(hypers: Dreams, state: State[Surveyed], task: Task) -> Policy:
        """What has been learned so far, as a policy."""
        return sacn.policy(hypers, state.sac, task)

    return Functions(init, update, policy, sacn.blank)


# ---- imagine


def begin(key: Key, hypers: Hypers, data: Dataset, posterior: Posterior) -> Where:
    """As many rollouts in every world, at logged states, of which worlds remember nothing yet."""
    shape = (posterior.members, max(1, hypers.envs // posterior.members))
    return Where(Place(states(key, data, shape), memories(posterior, shape[1])), jnp.zeros(shape))


def states(key: Key, data: Dataset, shape: tuple[int, ...]) -> Array:
    """Logged states [*shape, S]."""
    return jnp.asarray(data.steps.obs)[drawn(key, data, shape)]


def imagine(
    key: Key, hypers: Hypers, state: State, data: Dataset, step: WorldStep, actions: Box | Discrete
) -> tuple[Where, Array]:
    """`segment` steps of every rollout under the policy: where that leads, and the rows [R, F].

    No row comes after an end: where an episode ends, the next step is the first of another.
    """
    act, params, scale = Act(actions, "squashed"), (state.sac.actor.params, state.sac.scale), state.sac.scale
    zeros = jnp.zeros(state.where.clock.shape)

    def one(where: Where, key: Key) -> tuple[Where, Array]:
        k1, k2, k3 = jax.random.split(key, 3)
        obs = where.place.obs
        seen = Seen(obs, jnp.zeros((*zeros.shape, actions.width)), zeros, zeros)
        action = act(params, (), seen, k1)[0]
        place, drawn = step(k2, where.place, action)
        steps = Transition(obs, action, drawn.reward, drawn.next_obs, action, drawn.terminated)
        row = pack(inner(steps, scale, actions))
        clock = where.clock + 1
        over = drawn.terminated | (clock >= hypers.length)
        fresh = Place(states(k3, data, zeros.shape), jax.tree.map(jnp.zeros_like, place.memory))
        pick = lambda new, old: jnp.where(over.reshape(*over.shape, *[1] * (new.ndim - 2)), new, old)
        return Where(jax.tree.map(pick, fresh, place), jnp.where(over, 0.0, clock)), row

    where, rows = jax.lax.scan(one, state.where, jax.random.split(key, hypers.segment))
    return where, rows.reshape(-1, rows.shape[-1])


# ---- the ring


def empty(hypers: Hypers, data: Dataset, members: int) -> Ring:
    """A ring that nothing was written to."""
    obs, action = data.steps.obs.shape[1], data.steps.action.shape[1]
    each = hypers.segment * members * max(1, hypers.envs // members)
    return Ring(jnp.zeros((hypers.retain, each, 2 * obs + action + 2)), jnp.asarray(0))


def write(ring: Ring, rows: Array) -> Ring:
    """The ring with these rows in the place of its oldest refresh."""
    slot = ring.turn % ring.rows.shape[0]
    return Ring(jax.lax.dynamic_update_index_in_dim(ring.rows, rows, slot, 0), ring.turn + 1)


def pick(key: Key, ring: Ring, shape: tuple[int, ...]) -> Array:
    """Rows of the refreshes that the ring holds [*shape, F]; never a row that nothing was written to."""
    retain, each, width = ring.rows.shape
    held = jnp.minimum(ring.turn, retain) * each
    return ring.rows.reshape(-1, width)[jax.random.randint(key, shape, 0, held)]


def pack(steps: Transition) -> Array:
    """Transitions as rows of numbers [..., F], so that a minibatch is one gather; next actions are not kept."""
    parts = (steps.obs, steps.action, steps.next_obs, steps.reward[..., None], steps.done[..., None])
    return jnp.concatenate(parts, -1)


def unpack(rows: Array, width: int) -> Transition:
    """The transitions that `pack` made rows of; `width` is the observations'."""
    obs, action, next_obs = jnp.split(rows[..., :-2], (width, rows.shape[-1] - 2 - width), -1)
    return Transition(obs, action, rows[..., -2], next_obs, action, rows[..., -1])


# ---- what is learned from


def mixed(key: Key, hypers: Hypers, ring: Ring, data: Dataset, scale: Scale, actions: Box | Discrete) -> Array:
    """The minibatches of `every` gradient steps [every, B, F], gathered at once: logged rows first."""
    k1, k2 = jax.random.split(key)
    shape = (hypers.every, hypers.batch_size)
    real = pack(taken(data, drawn(k1, data, shape), scale, actions))
    return jnp.where(logged(hypers)[:, None], real, pick(k2, ring, shape))


def logged(hypers: Hypers) -> Array:
    """Which rows of a minibatch are from the log [B]."""
    return jnp.arange(hypers.batch_size) < hypers.share * hypers.batch_size


def lesson(
    key: Key, hypers: Hypers, sac: sacn.State, batches: Array, actions: Box | Discrete, critic_loss: sacn.Loss
) -> tuple[sacn.State, dict[str, Array]]:
    """One gradient step on each of the minibatches [every, B, F], and the means of what they report."""
    width = sac.scale.mean.shape[0]

    def one(sac: sacn.State, at: tuple[Key, Array]) -> tuple[sacn.State, dict[str, Array]]:
        return sacn.learn(at[0], hypers, sac, unpack(at[1], width), actions, critic_loss)

    sac, metrics = jax.lax.scan(one, sac, (jax.random.split(key, len(batches)), batches))
    return sac, jax.tree.map(jnp.mean, metrics)
