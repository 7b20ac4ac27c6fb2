"""Implicit Q-learning (Kostrikov, Nair & Levine, 2021).

V:  E[ |tau - 1(u < 0)| u^2 ],  u = min Qbar(s, a) - V(s)
Q:  E[ (r + discount * (1 - done) V(s') - Q(s, a))^2 ]
pi: E[ exp(beta u) log pi(a | s) ],  weights of at most `most`
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..hypers import grid, hypers
from ..nets import Net, mlp_init, tower
from ..optim import Learner, adam, cosine, descend, start
from ..types import Array, Box, Dataset, Discrete, Key, Planner, Posterior, Transition
from ._parts import (
    Actor,
    Scale,
    actor_init,
    critics,
    critics_init,
    follow,
    hidden,
    log_prob,
    minibatch,
    policies_of,
    scale_of,
)
from ._sizes import BRIEF, LARGE, SMALL, TINY, WHOLE, Sizes, paced


@hypers
class Hypers(Sizes):
    """phi_III. Defaults: the paper's for locomotion (Kostrikov et al., 2021, appendix B)."""

    lr: float = 3e-4
    discount: float = 0.99
    polyak: float = 0.005
    expectile: float = 0.7
    beta: float = 3.0
    most: float = 100.0


class State(NamedTuple):
    actor: Learner[Actor]
    value: Learner[Net]
    critic: Learner[Net]
    slow: Net  # the critics' target weights
    scale: Scale
    count: Array  # []  updates so far


def init(key: Key, hypers: Hypers, data: Dataset, posterior: Posterior) -> State:
    """A planner that has seen nothing; what it sees is scaled by the log."""
    k1, k2, k3 = jax.random.split(key, 3)
    actions, width, sizes = posterior.task.actions, data.steps.obs.shape[1], hidden(hypers)
    critic = critics_init(k3, 2, sizes, width, actions)
    return State(
        start(actor_init(k1, "gaussian", sizes, width, actions)),
        start(mlp_init(k2, (width, *sizes, 1))),
        start(critic),
        critic,
        scale_of(data),
        jnp.asarray(0),
    )


def update(
    key: Key, hypers: Hypers, state: State, data: Dataset, posterior: Posterior
) -> tuple[State, dict[str, Array]]:
    """One step of value, critics and actor on one minibatch."""
    actions = posterior.task.actions
    b = minibatch(key, data, hypers.batch_size, state.scale, actions)
    step = adam(state.count, hypers.lr)
    slower = adam(state.count, cosine(state.count, hypers.lr, hypers.updates, 0.0))
    q = critics(state.slow, b.obs, b.action, actions).min(0)
    value, v_loss, u = descend(state.value, step, value_loss, hypers, b, q)
    critic, q_loss, _ = descend(state.critic, step, critic_loss, hypers, b, value.params, actions)
    actor, pi_loss, _ = descend(state.actor, slower, actor_loss, hypers, b, u, actions)
    slow = follow(state.slow, critic.params, hypers.polyak)
    metrics = {"value": v_loss, "critic": q_loss, "actor": pi_loss, "q": q.mean()}
    return State(actor, value, critic, slow, state.scale, state.count + 1), metrics


def value_loss(net: Net, hypers: Hypers, b: Transition, q: Array) -> tuple[Array, Array]:
    """The expectile of the critics' values over logged actions; also how much better each action was: [B]."""
    u = q - tower(net, b.obs)[..., 0]
    weight = jnp.abs(hypers.expectile - (u < 0))
    return jnp.mean(weight * jnp.square(u)), u


def critic_loss(
    params: Net, hypers: Hypers, b: Transition, value: Net, actions: Box | Discrete
) -> tuple[Array, None]:
    target = b.reward + hypers.discount * (1 - b.done) * tower(value, b.next_obs)[..., 0]
    q = critics(params, b.obs, b.action, actions)
    return jnp.mean(jnp.square(q - target).sum(0)), None


def actor_loss(
    actor: Actor, hypers: Hypers, b: Transition, u: Array, actions: Box | Discrete
) -> tuple[Array, None]:
    """Cloning, weighted by how much better than its state's value an action was."""
    weight = jnp.minimum(jnp.exp(hypers.beta * u), hypers.most)
    return -jnp.mean(weight * log_prob(actor, b.obs, b.action, actions)), None


policy, blank = policies_of("gaussian")


planner = Planner(
    name="iql",
    words="implicit Q-learning: a clone weighted by how much better than usual an action was",
    Hypers=Hypers,
    init=init,
    update=update,
    policy=policy,
    blank=blank,
    reports=("value", "critic", "actor", "q"),
    spaces={
        "smoke": lambda: grid(Hypers(**TINY), expectile=(0.7, 0.9)),
        "quick": lambda: grid(Hypers(**BRIEF), beta=(3.0, 30.0), expectile=(0.9,)),
        "standard": lambda: grid(Hypers(**SMALL), beta=(3.0, 10.0, 30.0), expectile=(0.7, 0.9)),
        "large": lambda: grid(Hypers(**LARGE), beta=(3.0, 10.0), expectile=(0.7, 0.9)),
        # the paper's table of grids
        "paper": lambda: grid(Hypers(**WHOLE), beta=(0.5, 3.0, 10.0), expectile=(0.5, 0.7, 0.9)),
    },
    imagines=False,
    candidate=("quick", "standard", "large"),
    paced=paced,
)
