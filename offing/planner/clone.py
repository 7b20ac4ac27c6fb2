"""A clone of the behaviour that remembers: rppo's nets, taught along runs of logged steps.

pi: E[ -exp(sharp z) log pi(a_t | s_1, a_1, r_1, ..., s_t) ],   z: what the episode earned, standardised

Its policies have the shape of rppo's, so that a plan can begin there and be held near it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..hypers import grid, hypers
from ..nets import dense
from ..optim import Learner, adam, descend, start
from ..types import Array, Box, Dataset, Discrete, Key, Planner, Policy, Posterior, Seen, Task
from . import _memory
from ._episodes import begins, windows, worth
from ._parts import Scale, scale_of, unplace
from ._recurrent import Net, blank, features, log_prob, net_init, policy_of, speak
from ._sizes import worth as updates_worth

LOG_STD = (-3.0, 1.0)  # a log that always does the same would have none
LEAST = 5_000  # updates that are made however few rows there are


@hypers
class Hypers:
    """phi_III. Sizes as rppo's for tasks of a few dimensions."""

    updates: int = 2_000
    runs: int = 64  # runs of steps in a minibatch
    segment: int = 16  # steps of a run
    width: int = 64
    core: str = "linear"  # none, gru, linear
    lr: float = 1e-3
    sharp: float = 0.0  # how much more a step counts whose episode earned a standard deviation more
    first_std: float = 0.6


class State(NamedTuple):
    learner: Learner[Net]
    scale: Scale
    worth: Array  # [N]  of the episode that a row is of
    count: Array  # []  updates so far


def init(key: Key, hypers: Hypers, data: Dataset, posterior: Posterior) -> State:
    """A planner that has seen nothing; what it sees is scaled by the log."""
    net = net_init(key, hypers, data.steps.obs.shape[1], posterior.task.actions)
    return State(start(net), scale_of(data), worth(data), jnp.asarray(0))


def update(
    key: Key, hypers: Hypers, state: State, data: Dataset, posterior: Posterior
) -> tuple[State, dict[str, Array]]:
    """One step of the net on runs of logged steps."""
    actions = posterior.task.actions
    rows, inside = windows(key, data, hypers.runs, hypers.segment)
    steps = jax.tree.map(jnp.asarray, data.steps)
    before = jnp.maximum(rows - 1, 0)
    seen = Seen(steps.obs[rows], steps.action[before], steps.reward[before], begins(data, rows))
    weight = inside * jnp.exp(hypers.sharp * state.worth[rows])
    logged = unplace(steps.action[rows], actions)
    x = features(state.learner.params, state.scale, seen, actions)
    memory = jnp.zeros((hypers.runs, hypers.width))
    step = adam(state.count, hypers.lr * (1 - state.count / hypers.updates))
    learner, value, _ = descend(state.learner, step, loss, x, seen.start, memory, logged, weight, actions)
    return state._replace(learner=learner, count=state.count + 1), {"actor": value}


def loss(
    net: Net, x: Array, begun: Array, memory: Array, logged: Array, weight: Array, actions: Box | Discrete
) -> tuple[Array, None]:
    """How unlikely the logged actions [T, N, A] are, by weight [T, N]."""
    head = speak(net, _memory.sweep(net.core, memory, jnp.tanh(dense(net.embed, x)), begun))[0]
    bounded = net._replace(log_std=jnp.clip(net.log_std, *LOG_STD))
    logp = log_prob(bounded, head, logged, actions)[0]
    return -jnp.sum(weight * logp) / jnp.maximum(jnp.sum(weight), 1e-6), None


def policy(hypers: Hypers, state: State, task: Task) -> Policy:
    """What has been learned so far, as a policy."""
    return policy_of(state.learner.params, state.scale, hypers, task)


def paced(hypers: Hypers, rows: int) -> Hypers:
    """The setting for a log of so many rows, as other planners that learn from rows have it."""
    most = updates_worth(rows, hypers.runs * hypers.segment, LEAST)
    return replace(hypers, updates=min(hypers.updates, most))


planner = Planner(
    name="clone",
    words="a clone of the logged behaviour that remembers, of all of it or more so of what earned more",
    Hypers=Hypers,
    init=init,
    update=update,
    policy=policy,
    blank=blank,
    imagines=False,
    spaces={
        "smoke": lambda: grid(Hypers(updates=4, runs=8, segment=4, width=8), sharp=(0.0, 2.0)),
        "quick": lambda: grid(Hypers(), sharp=(0.0, 2.0)),
        "standard": lambda: grid(Hypers(updates=5_000), sharp=(0.0, 1.0, 3.0)),
        "large": lambda: grid(Hypers(updates=20_000, runs=256, width=128), sharp=(0.0, 1.0, 3.0)),
        "paper": lambda: grid(Hypers(updates=50_000, runs=256, width=256), sharp=(0.0, 1.0, 3.0)),
    },
    reports=("actor",),
    remembers=True,
    label=lambda setting: "clone with memory" + (", weighted by return" if setting.sharp else ""),
    candidate=("quick", "standard", "large"),
    paced=paced,
)
