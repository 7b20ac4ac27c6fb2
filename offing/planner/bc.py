"""Behaviour cloning: the actor under which the logged actions are likeliest.

pi: E[ -exp(sharp z) log pi(a | s) ],   z: what the episode earned, in standard deviations of episodes

What every other planner has to beat. At `sharp` 0 it reads no rewards.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..hypers import grid, hypers
from ..optim import Learner, adam, descend, start
from ..types import Array, Box, Dataset, Discrete, Key, Planner, Posterior, Transition
from ._episodes import worth
from ._parts import Actor, Scale, actor_init, drawn, hidden, log_prob, policies_of, scale_of, taken
from ._sizes import BRIEF, LARGE, SMALL, TINY, WHOLE, Sizes, paced


@hypers
class Hypers(Sizes):
    """phi_III. Nets, batches and rate as iql's actor has them."""

    lr: float = 3e-4
    decay: float = 0.0  # of weights
    sharp: float = 0.0  # how much more a step counts whose episode earned a standard deviation more


class State(NamedTuple):
    actor: Learner[Actor]
    scale: Scale
    worth: Array  # [N]  of the episode that a row is of
    count: Array  # []  updates so far


def init(key: Key, hypers: Hypers, data: Dataset, posterior: Posterior) -> State:
    """A planner that has seen nothing; what it sees is scaled by the log."""
    actor = actor_init(key, "gaussian", hidden(hypers), data.steps.obs.shape[1], posterior.task.actions)
    return State(start(actor), scale_of(data), worth(data), jnp.asarray(0))


def update(
    key: Key, hypers: Hypers, state: State, data: Dataset, posterior: Posterior
) -> tuple[State, dict[str, Array]]:
    """One step of the actor on one minibatch."""
    actions = posterior.task.actions
    rows = drawn(key, data, (hypers.batch_size,))
    b = taken(data, rows, state.scale, actions)
    weight = jnp.exp(hypers.sharp * state.worth[rows])
    step = adam(state.count, hypers.lr, hypers.decay)
    actor, loss, _ = descend(state.actor, step, actor_loss, b, weight / weight.mean(), actions)
    return State(actor, state.scale, state.worth, state.count + 1), {"actor": loss}


def actor_loss(actor: Actor, b: Transition, weight: Array, actions: Box | Discrete) -> tuple[Array, None]:
    return -jnp.mean(weight * log_prob(actor, b.obs, b.action, actions)), None


policy, blank = policies_of("gaussian")


planner = Planner(
    name="bc",
    words="a clone of the logged behaviour, of all of it or more so of what earned more",
    Hypers=Hypers,
    init=init,
    update=update,
    policy=policy,
    blank=blank,
    reports=("actor",),
    spaces={
        "smoke": lambda: grid(Hypers(**TINY), lr=(1e-3, 3e-3)),
        "quick": lambda: grid(Hypers(**BRIEF), sharp=(0.0, 2.0)),
        "standard": lambda: [
            *grid(Hypers(**SMALL), lr=(3e-4, 1e-3), decay=(0.0, 0.01)),
            *grid(Hypers(**SMALL), sharp=(1.0, 3.0)),
        ],
        "large": lambda: grid(Hypers(**LARGE), sharp=(0.0, 1.0, 3.0)),
        # there is no grid; rates around the default
        "paper": lambda: grid(Hypers(**WHOLE), lr=(1e-4, 3e-4, 1e-3)),
    },
    imagines=False,
    label=lambda setting: "clone weighted by return" if setting.sharp else "clone",
    candidate=("smoke", "quick", "standard", "large"),
    paced=paced,
)
