"""Conservative Q-learning, CQL(H), over squashed SAC with two critics (Kumar et al., 2020).

Q:  E[ (r + discount * (1 - done) min Qbar(s', a') - Q(s, a))^2 ]
    + conservative * E[ log sum_a exp Q(s, a) - Q(s, a_logged) ],   a' ~ pi(s')
pi: E[ temperature * log pi(a | s) - min Q(s, a) ],  a ~ pi(s)

The sum over choices is exact. Over a box it is an average of exp Q(s, a) / p(a) over actions drawn with density p:
`draws` each of even ones, of pi(s) and of pi(s'). No entropy in the critics' target, as in the authors' code. The
temperature holds the actor at the entropy `calm`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

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
    choices,
    critics,
    critics_init,
    follow,
    hidden,
    minibatch,
    policies_of,
    scale_of,
    squashed,
)
from ._sizes import BRIEF, LARGE, SMALL, TINY, WHOLE, Sizes


@hypers
class Hypers(Sizes):
    """phi_III. Defaults: the paper's for locomotion (Kumar et al., 2020, appendix F), its weight fixed at 5."""

    depth: int = 3
    draws: int = 10  # of each kind of rival; choices need none
    lr: float = 3e-4
    actor_pace: float = 0.1  # the actor's rate, in units of the critics'
    discount: float = 0.99
    polyak: float = 0.005
    conservative: float = 5.0


class State(NamedTuple):
    actor: Learner[Actor]
    critic: Learner[Net]
    temperature: Learner[Array]  # [] log of the temperature
    slow: Net  # the critics' target weights
    scale: Scale
    count: Array  # []  updates so far


class Rivals(NamedTuple):
    """Actions of a box that the logged ones are held against, and how likely each was to be drawn."""

    action: Array  # [D, B, A]
    logp: Array  # [D, B]


def init(key: Key, hypers: Hypers, data: Dataset, posterior: Posterior) -> State:
    """A planner that has seen nothing; what it sees is scaled by the log."""
    k1, k2 = jax.random.split(key)
    actions, width, sizes = posterior.task.actions, data.steps.obs.shape[1], hidden(hypers)
    critic = critics_init(k2, 2, sizes, width, actions)
    actor = actor_init(k1, "squashed", sizes, width, actions)
    return State(start(actor), start(critic), start(jnp.zeros(())), critic, scale_of(data), jnp.asarray(0))


def update(
    key: Key, hypers: Hypers, state: State, data: Dataset, posterior: Posterior
) -> tuple[State, dict[str, Array]]:
    """One step of temperature, actor and critics on one minibatch."""
    actions = posterior.task.actions
    k1, k2, k3, k4 = jax.random.split(key, 4)
    b = minibatch(k1, data, hypers.batch_size, state.scale, actions)
    step, slower = adam(state.count, hypers.lr), adam(state.count, hypers.actor_pace * hypers.lr)
    aim = targets(k2, hypers, state, b, actions)
    against = None if isinstance(actions, Discrete) else rivals(k3, hypers.draws, state.actor.params, b, actions)
    critic, q_loss, gap = descend(state.critic, step, critic_loss, hypers, b, aim, against, actions)
    temperature = jnp.exp(state.temperature.params)
    actor, pi_loss, logp = descend(state.actor, slower, actor_loss, k4, b, critic.params, temperature, actions)
    warmer, _, _ = descend(state.temperature, slower, temperature_loss, logp, actions)
    slow = follow(state.slow, critic.params, hypers.polyak)
    metrics = {"critic": q_loss, "gap": gap, "actor": pi_loss, "temperature": temperature, "q": aim.mean()}
    return State(actor, critic, warmer, slow, state.scale, state.count + 1), metrics


def targets(key: Key, hypers: Hypers, state: State, b: Transition, actions: Box | Discrete) -> Array:
    """What the critics should say of the rows: [B]."""
    action, _ = squashed(key, state.actor.params, b.next_obs, actions)
    q = critics(state.slow, b.next_obs, action, actions).min(0)
    return b.reward + hypers.discount * (1 - b.done) * q


def rivals(key: Key, draws: int, actor: Actor, b: Transition, actions: Box) -> Rivals:
    """`draws` even actions, as many of the actor's at the rows' states, and as many at the next ones."""
    k1, k2, k3 = jax.random.split(key, 3)
    shape = (draws, *b.action.shape)
    even = jax.random.uniform(k1, shape, minval=-1, maxval=1)
    here, logp = squashed(k2, actor, b.obs, actions, (draws,))
    there, logp_there = squashed(k3, actor, b.next_obs, actions, (draws,))
    flat = jnp.full(shape[:-1], -actions.width * math.log(2.0))
    return Rivals(jnp.concatenate([even, here, there]), jnp.concatenate([flat, logp, logp_there]))


def critic_loss(
    params: Net, hypers: Hypers, b: Transition, aim: Array, against: Rivals | None, actions: Box | Discrete
) -> tuple[Array, Array]:
    """The error of the values and the conservative term; also how far rivals are above logged actions."""
    if against is None:
        values = choices(params, b.obs)  # [2, B, n]
        q, soft = jnp.sum(values * b.action, -1), jax.nn.logsumexp(values, -1)
    else:
        q = critics(params, b.obs, b.action, actions)
        obs = jnp.broadcast_to(b.obs, (*against.logp.shape, b.obs.shape[-1]))
        values = critics(params, obs, against.action, actions)  # [2, D, B]
        soft = jax.nn.logsumexp(values - against.logp, 1) - math.log(len(against.logp))
    gap = jnp.mean((soft - q).sum(0))
    return jnp.mean(jnp.square(q - aim).sum(0)) + hypers.conservative * gap, gap


def actor_loss(
    actor: Actor, key: Key, b: Transition, critic: Net, temperature: Array, actions: Box | Discrete
) -> tuple[Array, Array]:
    """Worth much and not too sure; also its mean log-probability."""
    action, logp = squashed(key, actor, b.obs, actions)
    q = critics(critic, b.obs, action, actions).min(0)
    return jnp.mean(temperature * logp - q), logp.mean()


def temperature_loss(log_temperature: Array, logp: Array, actions: Box | Discrete) -> tuple[Array, None]:
    """Warmer where the actor is surer than `calm`."""
    return -log_temperature * (logp + calm(actions)), None


policy, blank = policies_of("squashed")


planner = Planner(
    name="cql",
    words="conservative Q-learning: actions that were not logged are worth less",
    Hypers=Hypers,
    init=init,
    update=update,
    policy=policy,
    blank=blank,
    reports=("critic", "gap", "actor", "temperature", "q"),
    spaces={
        "smoke": lambda: grid(Hypers(**TINY, draws=2), conservative=(0.5, 5.0)),
        "quick": lambda: grid(Hypers(**BRIEF, draws=4, actor_pace=0.3), conservative=(0.5, 5.0)),
        "standard": lambda: grid(Hypers(**SMALL, draws=4, actor_pace=0.3), conservative=(0.1, 0.5, 2.0, 5.0)),
        "large": lambda: grid(Hypers(**LARGE), conservative=(0.5, 5.0)),
        # the weights that the authors' code names for locomotion (Kumar et al., 2020)
        "paper": lambda: grid(Hypers(**WHOLE), conservative=(5.0, 10.0)),
    },
    imagines=False,
    candidate=("standard",),
)
