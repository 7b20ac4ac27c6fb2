"""What planners that learn from rows share: scales, actors, critics, minibatches, targets.

Inside a planner observations are centred, continuous actions lie in [-1, 1], rewards are in units of their size
in the log, and a choice among n is a row of n. Critics of choices are linear in that row, so that a row of
probabilities gives the expected value exactly: what is written for continuous actions serves choices as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..nets import Layer, Net, mlp_init, tower
from ..optim import Learner
from ..types import Array, Box, Dataset, Discrete, Key, Policy, Seen, Task, Transition

LOG_STD = (-5.0, 2.0)  # of Gaussians, squashed or not
Weights = TypeVar("Weights")
SHARE = 0.3  # of log n: two choices are then held at 0.95 and 0.05


class Scale(NamedTuple):
    """Centre and width of what a policy sees, and the size of rewards, from the log; not trained."""

    mean: Array  # [S]
    std: Array  # [S]
    reward: Array  # []


def scale_of(data: Dataset) -> Scale:
    """The scale of the rows in use."""
    steps, used = data.steps, (jnp.arange(data.steps.reward.shape[0]) < data.size)[:, None]
    mean = jnp.sum(steps.obs * used, 0) / data.size
    std = jnp.sqrt(jnp.sum(jnp.square(steps.obs - mean) * used, 0) / data.size)
    reward = jnp.sqrt(jnp.sum(jnp.square(steps.reward * used[:, 0])) / data.size)
    return Scale(mean, jnp.where(std > 1e-6 * (1 + jnp.abs(mean)), std, 1.0), jnp.maximum(reward, 1e-6))


def see(scale: Scale, obs: Array) -> Array:
    """Observations as a planner reads them."""
    return jnp.clip((obs - scale.mean) / scale.std, -10, 10)


def place(raw: Array, actions: Box | Discrete) -> Array:
    """An action in the log's own units, inside its box."""
    if isinstance(actions, Discrete):
        return raw
    low, high = jnp.array(actions.low), jnp.array(actions.high)
    return jnp.clip((low + high) / 2 + (high - low) / 2 * jnp.clip(raw, -1, 1), low, high)  # rounding included


def unplace(action: Array, actions: Box | Discrete) -> Array:
    """An action in units of its box."""
    if isinstance(actions, Discrete):
        return action
    low, high = jnp.array(actions.low), jnp.array(actions.high)
    return (action - (low + high) / 2) / jnp.maximum((high - low) / 2, 1e-6)


def inner(steps: Transition, scale: Scale, actions: Box | Discrete) -> Transition:
    """Rows of a log or of a world, as planners read them."""
    return Transition(
        see(scale, steps.obs),
        unplace(steps.action, actions),
        steps.reward / scale.reward,
        see(scale, steps.next_obs),
        unplace(steps.next_action, actions),
        steps.done.astype(jnp.float32),
    )


def minibatch(key: Key, data: Dataset, size: int, scale: Scale, actions: Box | Discrete) -> Transition:
    """`size` rows of the log, drawn with replacement."""
    return taken(data, drawn(key, data, (size,)), scale, actions)


def drawn(key: Key, data: Dataset, shape: tuple[int, ...]) -> Array:
    """Numbers of rows in use; even up to one part in 2^32 / rows, for a third of what `randint` costs."""
    return (jax.random.bits(key, shape) % jnp.asarray(data.size, jnp.uint32)).astype(jnp.int32)


def taken(data: Dataset, rows: Array, scale: Scale, actions: Box | Discrete) -> Transition:
    """Those rows, as planners read them."""
    return inner(jax.tree.map(lambda leaf: jnp.asarray(leaf)[rows], data.steps), scale, actions)


class Sized(Protocol):
    """Hyperparameters that say how large nets are."""

    @property
    def width(self) -> int: ...

    @property
    def depth(self) -> int: ...


def hidden(hypers: Sized) -> tuple[int, ...]:
    """The sizes of a setting's hidden layers."""
    return (hypers.width,) * hypers.depth


# ---- actors


class Actor(NamedTuple):
    """Layers that say means or logits, and standard deviations where those are the same everywhere."""

    layers: tuple[Layer, ...]
    log_std: Array  # [A], or [0] where there are none


@dataclass(frozen=True)
class Act:
    """How an actor's parameters are read; static, and equal for equal shapes, so that programs are shared.

    `kind`: `plain` (no spread), `gaussian` (one spread for all states), `squashed` (a spread for every state).
    """

    actions: Box | Discrete
    kind: str

    def __call__(
        self, params: tuple[Actor, Scale], memory: tuple[()], seen: Seen, key: Key | None
    ) -> tuple[Array, tuple[()]]:
        actor, scale = params
        out = tower(actor.layers, see(scale, seen.obs), half=False)  # a policy does the same on every device
        if isinstance(self.actions, Discrete):
            index = jnp.argmax(out, -1) if key is None else jax.random.categorical(key, out)
            return jax.nn.one_hot(index, self.actions.n), memory
        if self.kind == "squashed":
            mean, log_std = jnp.split(out, 2, -1)
            raw = mean if key is None else mean + spread(log_std) * jax.random.normal(key, mean.shape)
            return place(jnp.tanh(raw), self.actions), memory
        raw = jnp.tanh(out)
        if key is not None and self.kind == "gaussian":
            raw = raw + spread(actor.log_std) * jax.random.normal(key, raw.shape)
        return place(raw, self.actions), memory


def actor_init(key: Key, kind: str, sizes: Sequence[int], width: int, actions: Box | Discrete) -> Actor:
    """An actor with hidden layers of those sizes, for observations of that width."""
    boxed = isinstance(actions, Box)
    outputs = actions.width * (2 if kind == "squashed" and boxed else 1)
    log_std = jnp.zeros(actions.width if kind == "gaussian" and boxed else 0)
    return Actor(mlp_init(key, (width, *sizes, outputs), last=0.1), log_std)


def policy_of(actor: Actor, scale: Scale, kind: str, actions: Box | Discrete) -> Policy:
    """The actor as a policy without memory."""
    return Policy((actor, scale), (), Act(actions, kind))


def blank_of(kind: str, sizes: Sequence[int], width: int, task: Task) -> Policy:
    """A policy of that shape which has learned nothing."""
    actor = jax.eval_shape(lambda key: actor_init(key, kind, sizes, width, task.actions), jax.random.key(0))
    actor = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), actor)
    scale = Scale(np.zeros(width, np.float32), np.ones(width, np.float32), np.ones((), np.float32))
    return policy_of(actor, scale, kind, task.actions)


class Acting(Protocol):
    """The state of a planner whose policies are an actor alone."""

    @property
    def actor(self) -> Learner[Actor]: ...

    @property
    def scale(self) -> Scale: ...


def policies_of(
    kind: str,
) -> tuple[Callable[[Sized, Acting, Task], Policy], Callable[[Sized, int, Task], Policy]]:
    """`policy` and `blank` of a planner whose state has an `actor` of that kind and a `scale`."""

    def policy(hypers: Sized, state: Acting, task: Task) -> Policy:
        """What has been learned so far, as a policy."""
        del hypers
        return policy_of(state.actor.params, state.scale, kind, task.actions)

    def blank(hypers: Sized, width: int, task: Task) -> Policy:
        """A policy of that shape which has learned nothing."""
        return blank_of(kind, hidden(hypers), width, task)

    return policy, blank


def best(actor: Actor, obs: Array, actions: Box | Discrete) -> Array:
    """What a plain or Gaussian actor thinks best, so that gradients pass: a mean, or probabilities."""
    out = tower(actor.layers, obs)
    return jax.nn.softmax(out) if isinstance(actions, Discrete) else jnp.tanh(out)


def log_prob(actor: Actor, obs: Array, action: Array, actions: Box | Discrete) -> Array:
    """Log-probability of an action under a Gaussian actor, or of a choice: [...]."""
    out = tower(actor.layers, obs)
    if isinstance(actions, Discrete):
        return jnp.sum(jax.nn.log_softmax(out) * action, -1)
    std = spread(actor.log_std)  # bounded: a log that always does the same would have none
    off = (action - jnp.tanh(out)) / std
    return jnp.sum(-0.5 * jnp.square(off) - jnp.log(std) - 0.5 * jnp.log(2 * jnp.pi), -1)


def squashed(
    key: Key, actor: Actor, obs: Array, actions: Box | Discrete, draws: tuple[int, ...] = ()
) -> tuple[Array, Array]:
    """An action drawn so that gradients pass, and its log-probability; `draws` are leading axes, of Box only.

    Of choices: their probabilities, and the expected log-probability. With critics that are linear in the row,
    whatever is averaged over draws for continuous actions is then exact for choices.
    """
    out = tower(actor.layers, obs)
    if isinstance(actions, Discrete):
        logits = jax.nn.log_softmax(out)
        return jnp.exp(logits), jnp.sum(jnp.exp(logits) * logits, -1)
    mean, log_std = jnp.split(out, 2, -1)
    std = spread(log_std)
    noise = jax.random.normal(key, (*draws, *mean.shape))
    raw = mean + std * noise
    each = -0.5 * jnp.square(noise) - jnp.log(std) - 0.5 * jnp.log(2 * jnp.pi)
    slope = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))  # log of tanh's derivative
    return jnp.tanh(raw), jnp.sum(each - slope, -1)


def calm(actions: Box | Discrete) -> float:
    """The entropy that a squashed actor is held to: -A of a box [-1, 1]^A (Haarnoja et al., 2018), and of choices
    `SHARE` of what it can be at most: little, since here nothing is explored and values are of what is drawn.
    """
    return SHARE * math.log(actions.n) if isinstance(actions, Discrete) else -float(actions.width)


def spread(log_std: Array) -> Array:
    """A standard deviation from what a net says, within bounds."""
    return jnp.exp(jnp.clip(log_std, *LOG_STD))


# ---- critics


def critics_init(key: Key, count: int, sizes: Sequence[int], width: int, actions: Box | Discrete) -> Net:
    """`count` critics, their layers stacked [N, ...]."""
    inputs, outputs = (width, actions.n) if isinstance(actions, Discrete) else (width + actions.width, 1)
    return jax.vmap(lambda k: mlp_init(k, (inputs, *sizes, outputs)))(jax.random.split(key, count))


def critics(params: Net, obs: Array, action: Array, actions: Box | Discrete, normed: bool = False) -> Array:
    """What every critic says of an action [N, ...]; of probabilities, the expectation."""
    if isinstance(actions, Discrete):
        return jnp.sum(choices(params, obs, normed) * action, -1)
    x = jnp.concatenate([obs, action], -1)
    return jax.vmap(tower, (0, None, None))(params, x, normed)[..., 0]


def choices(params: Net, obs: Array, normed: bool = False) -> Array:
    """What every critic says of every choice [N, ..., n]."""
    return jax.vmap(tower, (0, None, None))(params, obs, normed)


def least(params: Net, obs: Array, action: Array, actions: Box | Discrete, normed: bool = False) -> Array:
    """The least that any critic says of an action [...]; of probabilities, what it is on average over draws."""
    if isinstance(actions, Discrete):
        return jnp.sum(choices(params, obs, normed).min(0) * action, -1)
    return critics(params, obs, action, actions, normed).min(0)


def follow(slow: Weights, fast: Weights, rate: float | Array) -> Weights:
    """Target weights that move towards the trained ones by that share."""
    return jax.tree.map(lambda s, f: s + rate * (f - s), slow, fast)
