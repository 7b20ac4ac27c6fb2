"""TD3 on a log (Fujimoto, van Hoof & Meger, 2018): all of rebrac and td3bc but their actors' losses.

Q:  E[ (r + discount * (1 - done) (min Qbar(s', a') - toll |a' - a'_logged|^2) - Q(s, a))^2 ],
    a' = pibar(s') + noise, both clipped

One update is two steps of the critics, each on rows of its own, and then one of the actor and one of the targets,
so that no step hangs on a counter. The noise is of Box only: a row of probabilities is smooth as it is.
The toll asks for the action that was logged next. Where an episode was cut off there is none, and none is known of
a log without episodes: there is no toll there. Where it ended there is nothing to come at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..hypers import hypers
from ..nets import Net
from ..optim import Learner, adam, descend, start
from ..types import Array, Box, Dataset, Discrete, Key, Posterior, Transition
from ._parts import (
    Actor,
    Scale,
    actor_init,
    best,
    critics,
    critics_init,
    drawn,
    follow,
    hidden,
    policies_of,
    scale_of,
    taken,
)
from ._sizes import Sizes

REPORTS = ("critic", "actor", "q")


@hypers
class Hypers(Sizes):
    """What TD3 has of hyperparameters; `updates` are the actor's, and the critics take two steps each time."""

    lr: float = 3e-4
    discount: float = 0.99
    polyak: float = 0.005
    noise: float = 0.2  # of target actions, in halves of their range
    noise_clip: float = 0.5


class State(NamedTuple):
    actor: Learner[Actor]
    critic: Learner[Net]
    slow: tuple[Actor, Net]  # target weights of both
    scale: Scale
    count: Array  # []  updates so far


def init(key: Key, hypers: Hypers, data: Dataset, posterior: Posterior) -> State:
    """A planner that has seen nothing; what it sees is scaled by the log."""
    k1, k2 = jax.random.split(key)
    actions, width, sizes = posterior.task.actions, data.steps.obs.shape[1], hidden(hypers)
    actor = actor_init(k1, "plain", sizes, width, actions)
    critic = critics_init(k2, 2, sizes, width, actions)
    return State(start(actor), start(critic), (actor, critic), scale_of(data), jnp.asarray(0))


def update(
    key: Key,
    hypers: Hypers,
    state: State,
    data: Dataset,
    posterior: Posterior,
    actor_loss: Callable[..., tuple[Array, None]],
    toll: float | Array | None = None,
    normed: bool = False,
) -> tuple[State, dict[str, Array]]:
    """Two steps of the critics, one of the actor and one of the targets."""
    k1, k2 = jax.random.split(key)
    actions = posterior.task.actions
    rows = drawn(k1, data, (2, hypers.batch_size))
    both = taken(data, rows, state.scale, actions)  # [2, B, ...]
    each = None if toll is None else toll * known(data, rows)
    # the slow nets do not move between the two steps, so they are evaluated once
    aims = targets(k2, hypers, state.slow, both, each, actions, normed)  # [2, B]
    critic, (first, b) = state.critic, (jax.tree.map(lambda leaf, i=i: leaf[i], both) for i in range(2))
    critic, _, _ = descend(critic, adam(2 * state.count, hypers.lr), critic_loss, first, aims[0], actions, normed)
    critic, q_loss, _ = descend(
        critic, adam(2 * state.count + 1, hypers.lr), critic_loss, b, aims[1], actions, normed
    )
    step = adam(state.count, hypers.lr)
    actor, pi_loss, _ = descend(state.actor, step, actor_loss, hypers, b, critic.params, actions)
    slow = follow(state.slow, (actor.params, critic.params), hypers.polyak)
    metrics = {"critic": q_loss, "actor": pi_loss, "q": aims.mean()}
    return State(actor, critic, slow, state.scale, state.count + 1), metrics


def known(data: Dataset, rows: Array) -> Array:
    """1 where the log says what was done next, 0 where an episode ends or the log does not say."""
    episode, after = jnp.asarray(data.episode), jnp.minimum(rows + 1, data.size - 1)
    same = (episode[rows] == episode[after]) & (episode[rows] >= 0) & (after > rows)
    return same.astype(jnp.float32)


def targets(
    key: Key,
    hypers: Hypers,
    slow: tuple[Actor, Net],
    b: Transition,
    toll: Array | None,
    actions: Box | Discrete,
    normed: bool = False,
) -> Array:
    """What the critics should say of the rows."""
    actor, critic = slow
    action = best(actor, b.next_obs, actions)
    if isinstance(actions, Box):
        noise = hypers.noise * jax.random.normal(key, action.shape)
        action = jnp.clip(action + jnp.clip(noise, -hypers.noise_clip, hypers.noise_clip), -1, 1)
    q = critics(critic, b.next_obs, action, actions, normed).min(0)
    if toll is not None:
        q = q - toll * away(action, b.next_action)
    return b.reward + hypers.discount * (1 - b.done) * q


def away(action: Array, logged: Array) -> Array:
    """The squared distance of two actions, or of probabilities from a choice."""
    return jnp.sum(jnp.square(action - logged), -1)


def unlike(action: Array, logged: Array, actions: Box | Discrete) -> Array:
    """How far an actor is from what was logged: the squared distance, or of choices the cross-entropy.

    Of probabilities a squared distance would do as well, but its slope is gone once they are near 0 and 1: an
    actor that was sure of the wrong choice early stays so.
    """
    return -jnp.sum(logged * jnp.log(action + 1e-8), -1) if isinstance(actions, Discrete) else away(action, logged)


def critic_loss(
    params: Net, b: Transition, aim: Array, actions: Box | Discrete, normed: bool = False
) -> tuple[Array, None]:
    q = critics(params, b.obs, b.action, actions, normed)
    return jnp.mean(jnp.square(q - aim).sum(0)), None


policy, blank = policies_of("plain")
