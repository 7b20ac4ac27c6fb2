"""The nets that rppo and its clone share: what a policy sees, how it remembers, and what it says of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ..nets import Layer, dense, mlps_init, scaled_last
from ..types import Array, Box, Discrete, Key, Policy, Seen, Task
from . import _memory
from ._memory import Core, Memory
from ._parts import Scale, place, see, unplace


class Sizes(Protocol):
    """Hyperparameters that say what shape a net has."""

    @property
    def width(self) -> int: ...

    @property
    def core(self) -> str: ...  # none, gru, linear

    @property
    def first_std(self) -> float: ...  # of the actions, in half-widths of their box


class Net(NamedTuple):
    """One trunk for actor and critic: embedding, core, a hidden layer for each, and what they say."""

    embed: Layer
    core: Core
    heads: Layer  # [2W, W]  the actor's half, then the critic's
    actor: Layer
    critic: Layer
    log_std: Array  # [A]  of continuous actions


@dataclass(frozen=True)
class Act:
    """How a policy's parameters are read; static, and equal for equal shapes, so that programs are shared."""

    actions: Box | Discrete

    def __call__(
        self, params: tuple[Net, Scale], memory: Memory, seen: Seen, key: Key | None
    ) -> tuple[Array, Memory]:
        net, scale = params
        out, memory = _memory.step(net.core, memory, look(net, scale, seen, self.actions), seen.start)
        head = speak(net, out)[0]
        return place(choose(key, net, head, self.actions), self.actions), memory


def look(net: Net, scale: Scale, seen: Seen, actions: Box | Discrete) -> Array:
    """What is seen, as the core reads it [..., W]; a policy without memory sees the observation alone."""
    return jnp.tanh(dense(net.embed, features(net, scale, seen, actions)))


def features(net: Net, scale: Scale, seen: Seen, actions: Box | Discrete) -> Array:
    obs = see(scale, seen.obs)
    if not net.core:
        return obs
    start = seen.start[..., None]
    action = unplace(seen.action, actions) * (1 - start)  # what an episode before did or earned is of no concern
    reward = jnp.clip(seen.reward / scale.reward, -10, 10)[..., None] * (1 - start)
    return jnp.concatenate([obs, action, reward, start], -1)


def speak(net: Net, out: Array) -> tuple[Array, Array]:
    """What actor and critic make of the core's output: means or logits [..., A], and the value [...]."""
    actor, critic = jnp.split(jnp.tanh(dense(net.heads, out)), 2, -1)
    return dense(net.actor, actor), dense(net.critic, critic)[..., 0]


def choose(key: Key | None, net: Net, head: Array, actions: Box | Discrete) -> Array:
    """An action as the planner handles it: unclipped in units of the box, or one-hot; without a key the best."""
    if isinstance(actions, Discrete):
        index = jnp.argmax(head, -1) if key is None else jax.random.categorical(key, head)
        return jax.nn.one_hot(index, actions.n)
    return head if key is None else head + jnp.exp(net.log_std) * jax.random.normal(key, head.shape)


def log_prob(net: Net, head: Array, raw: Array, actions: Box | Discrete) -> tuple[Array, Array]:
    """Log-probability of an action [...], and the entropy of its distribution."""
    if isinstance(actions, Discrete):
        logits = jax.nn.log_softmax(head)
        return jnp.sum(logits * raw, -1), -jnp.sum(jnp.exp(logits) * logits, -1)
    off = (raw - head) * jnp.exp(-net.log_std)
    each = -0.5 * jnp.square(off) - net.log_std - 0.5 * jnp.log(2 * jnp.pi)
    entropy = jnp.sum(net.log_std) + 0.5 * net.log_std.shape[0] * jnp.log(2 * jnp.pi * jnp.e)
    return each.sum(-1), jnp.broadcast_to(entropy, each.shape[:-1])


def distribution(net: Net, head: Array) -> Array:
    """All that tells one distribution of actions from another: log-probabilities, or means and log-deviations."""
    if not net.log_std.shape[0]:
        return jax.nn.log_softmax(head)
    return jnp.concatenate([head, jnp.broadcast_to(net.log_std, head.shape)], -1)


def divergence(one: Array, other: Array, actions: Box | Discrete) -> Array:
    """KL[one || other] of what `distribution` gives [..., D]: [...]."""
    if isinstance(actions, Discrete):
        return jnp.sum(jnp.exp(one) * (one - other), -1)
    (m1, s1), (m2, s2) = jnp.split(one, 2, -1), jnp.split(other, 2, -1)
    return jnp.sum(s2 - s1 + 0.5 * (jnp.exp(2 * (s1 - s2)) + jnp.square((m1 - m2) * jnp.exp(-s2)) - 1), -1)


def net_init(key: Key, hypers: Sizes, width: int, actions: Box | Discrete) -> Net:
    k1, k2 = jax.random.split(key)
    inputs, hidden = width if hypers.core == "none" else width + actions.width + 2, hypers.width
    shapes = ((inputs, hidden), (hidden, 2 * hidden), (hidden, actions.width), (hidden, 1))
    layers = [
        scaled_last(net, last)[0] for net, last in zip(mlps_init(k1, shapes), (1.4, 1.4, 0.01, 1.0), strict=True)
    ]
    embed, heads, actor, critic = layers
    return Net(
        embed=embed,
        core=_memory.core_init(k2, hypers.core, hypers.width),
        heads=heads,
        actor=actor,
        critic=critic,
        log_std=jnp.log(hypers.first_std) * jnp.ones(0 if isinstance(actions, Discrete) else actions.width),
    )


def policy_of(net: Net, scale: Scale, hypers: Sizes, task: Task) -> Policy:
    """The net as a policy."""
    return Policy((net, scale), _memory.empty(hypers.core, hypers.width), Act(task.actions))


def blank(hypers: Sizes, width: int, task: Task) -> Policy:
    """A policy of that shape which has learned nothing."""
    net = jax.eval_shape(lambda key: net_init(key, hypers, width, task.actions), jax.random.key(0))
    scale = Scale(np.zeros(width, np.float32), np.ones(width, np.float32), np.ones((), np.float32))
    return policy_of(jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), net), scale, hypers, task)
