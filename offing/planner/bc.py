"""Behaviour cloning: the actor under which the logged actions are likeliest.

pi: E[ -log pi(a | s) ]

What every other planner has to beat. It reads no rewards.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..hypers import hypers
from ..optim import Learner, adam, descend, start
from ..types import Array, Box, Dataset, Discrete, Key, Planner, Policy, Posterior, Task, Transition
from ._parts import Actor, Scale, actor_init, blank_of, hidden, log_prob, minibatch, policy_of, scale_of


@hypers
class Hypers:
    """phi_III. Nets, batches and rate as iql's actor has them."""

    updates: int = 50_000
    batch_size: int = 256
    width: int = 256
    depth: int = 2
    lr: float = 3e-4
    decay: float = 0.0  # of weights


class State(NamedTuple):
    actor: Learner
    scale: Scale
    count: Array  # []  updates so far


def init(key: Key, hypers: Hypers, data: Dataset, posterior: Posterior) -> State:
    """A planner that has seen nothing; what it sees is scaled by the log."""
    actor = actor_init(key, "gaussian", hidden(hypers), data.steps.obs.shape[1], posterior.task.actions)
    return State(start(actor), scale_of(data), jnp.asarray(0))


def update(
    key: Key, hypers: Hypers, state: State, data: Dataset, posterior: Posterior
) -> tuple[State, dict[str, Array]]:
    """One step of the actor on one minibatch."""
    actions = posterior.task.actions
    b = minibatch(key, data, hypers.batch_size, state.scale, actions)
    step = adam(state.count, hypers.lr, hypers.decay)
    actor, loss, _ = descend(state.actor, step, actor_loss, b, actions)
    return State(actor, state.scale, state.count + 1), {"actor": loss}


def actor_loss(actor: Actor, b: Transition, actions: Box | Discrete) -> tuple[Array, None]:
    return -jnp.mean(log_prob(actor, b.obs, b.action, actions)), None


def policy(hypers: Hypers, state: State, task: Task) -> Policy:
    """What has been learned so far, as a policy."""
    return policy_of(state.actor.params, state.scale, "gaussian", task.actions)


def blank(hypers: Hypers, width: int, task: Task) -> Policy:
    """A policy of that shape which has learned nothing."""
    return blank_of("gaussian", hidden(hypers), width, task)


planner = Planner(Hypers, init, update, policy, blank, imagines=False)
