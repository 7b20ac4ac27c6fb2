"""Soft actor-critic with N critics, of which the least counts (An, Moon, Kim & Song, 2021).

y = r + discount * (1 - done) (min_n Qbar_n(s', a') - temperature * log pi(a' | s')),   a' ~ pi(s')
Q:  E[ sum_n (Q_n(s, a) - y)^2 ]
pi: E[ temperature * log pi(a | s) - min_n Q_n(s, a) ],   a ~ pi(s)
temperature: so that the entropy of pi is `calm`, -|A| in a box
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from ..hypers import grid, hypers
from ..nets import Net
from ..optim import Learner, adam, descend, start
from ..types import Array, Box, Dataset, Discrete, Key, Planner, Posterior, Transition
from ._parts import (
    Actor,
    Scale,
    actor_init,
    calm,
    critics,
    critics_init,
    follow,
    hidden,
    least,
    minibatch,
    policies_of,
    scale_of,
    squashed,
)
from ._sizes import BRIEF, LARGE, SMALL, TINY, WHOLE, Sizes


@hypers
class Hypers(Sizes):
    """phi_III. Defaults: the paper's for HalfCheetah (An et al., 2021)."""

    depth: int = 3
    critics: int = 10
    lr: float = 3e-4
    discount: float = 0.99
    polyak: float = 0.005


class Soft(Protocol):
    """Hyperparameters of soft actor-critic with several critics, wherever its rows come from."""

    @property
    def width(self) -> int: ...

    @property
    def depth(self) -> int: ...

    @property
    def critics(self) -> int: ...

    @property
    def lr(self) -> float: ...

    @property
    def discount(self) -> float: ...

    @property
    def polyak(self) -> float: ...


REPORTS = ("critic", "actor", "q", "temperature", "entropy")


class State(NamedTuple):
    actor: Learner[Actor]
    critic: Learner[Net]
    slow: Net  # the critics' target weights
    temperature: Learner[Array]  # its logarithm
    scale: Scale
    count: Array  # []  gradient steps so far


Loss = Callable[..., tuple[Array, Array]]  # (critics, hypers, minibatch, target, actions) -> loss, values [N, B]


def init(key: Key, hypers: Soft, data: Dataset, posterior: Posterior) -> State:
    """A planner that has seen nothing; what it sees is scaled by the log."""
    k1, k2 = jax.random.split(key)
    actions, width, sizes = posterior.task.actions, data.steps.obs.shape[1], hidden(hypers)
    critic = critics_init(k1, hypers.critics, sizes, width, actions)
    actor = actor_init(k2, "squashed", sizes, width, actions)
    return State(start(actor), start(critic), critic, start(jnp.zeros(())), scale_of(data), jnp.asarray(0))


def update(
    key: Key, hypers: Hypers, state: State, data: Dataset, posterior: Posterior
) -> tuple[State, dict[str, Array]]:
    """One step of critics, actor and temperature on one minibatch."""
    actions = posterior.task.actions
    k1, k2 = jax.random.split(key)
    b = minibatch(k1, data, hypers.batch_size, state.scale, actions)
    return learn(k2, hypers, state, b, actions, critic_loss)


def learn(
    key: Key, hypers: Soft, state: State, b: Transition, actions: Box | Discrete, critic_loss: Loss
) -> tuple[State, dict[str, Array]]:
    """One step of critics, actor and temperature on rows from anywhere."""
    k1, k2 = jax.random.split(key)
    step, temperature = adam(state.count, hypers.lr), jnp.exp(state.temperature.params)
    target = backup(k1, hypers, state, b, temperature, actions)
    critic, q_loss, q = descend(state.critic, step, critic_loss, hypers, b, target, actions)
    actor, pi_loss, logp = descend(state.actor, step, actor_loss, k2, b, critic.params, temperature, actions)
    cooler, _, _ = descend(state.temperature, step, temperature_loss, logp, actions)
    slow = follow(state.slow, critic.params, hypers.polyak)
    metrics = {
        "critic": q_loss,
        "actor": pi_loss,
        "q": q.mean(),
        "temperature": temperature,
        "entropy": -logp.mean(),
    }
    return State(actor, critic, slow, cooler, state.scale, state.count + 1), metrics


def backup(
    key: Key, hypers: Soft, state: State, b: Transition, temperature: Array, actions: Box | Discrete
) -> Array:
    """What the rows' actions turn out to be worth [B]: y above."""
    action, logp = squashed(key, state.actor.params, b.next_obs, actions)
    after = least(state.slow, b.next_obs, action, actions) - temperature * logp
    return b.reward + hypers.discount * (1 - b.done) * after


def critic_loss(
    params: Net, hypers: Soft, b: Transition, target: Array, actions: Box | Discrete
) -> tuple[Array, Array]:
    """Squared errors of all critics; also what they say [N, B]."""
    q = critics(params, b.obs, b.action, actions)
    return jnp.mean(jnp.square(q - target).sum(0)), q


def actor_loss(
    actor: Actor, key: Key, b: Transition, critic: Net, temperature: Array, actions: Box | Discrete
) -> tuple[Array, Array]:
    """What the policy's own actions lose; also their log-probabilities [B]."""
    action, logp = squashed(key, actor, b.obs, actions)
    return jnp.mean(temperature * logp - least(critic, b.obs, action, actions)), logp


def temperature_loss(log_temperature: Array, logp: Array, actions: Box | Discrete) -> tuple[Array, None]:
    """Downhill, temperature rises while the policy's entropy is below what is held to."""
    return -log_temperature * jnp.mean(logp + calm(actions)), None


policy, blank = policies_of("squashed")


planner = Planner(
    name="sacn",
    words="soft actor-critic with many critics, of which the least counts",
    Hypers=Hypers,
    init=init,
    update=update,
    policy=policy,
    blank=blank,
    reports=REPORTS,
    spaces={
        "smoke": lambda: grid(Hypers(**TINY, critics=2), lr=(1e-3, 3e-3)),
        "quick": lambda: grid(Hypers(**BRIEF, critics=10), polyak=(0.005, 0.02)),
        "standard": lambda: grid(Hypers(**SMALL, critics=10), polyak=(0.005, 0.02), discount=(0.97, 0.99)),
        "large": lambda: grid(Hypers(**LARGE), polyak=(0.005, 0.01)),
        # rates of targets around the paper's: its own axis, the number of critics, is shape
        "paper": lambda: grid(Hypers(**WHOLE), polyak=(0.0025, 0.005, 0.01)),
    },
    imagines=False,
)
