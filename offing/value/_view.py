"""The log in units of order one, what policies do in it, and how likely they were to do what was done."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from ..types import Array, BadInput, Box, Dataset, Discrete, Key, Memory, Policy, Seen, Task, Tree

Amount = TypeVar("Amount", float, np.ndarray)


class Scale(NamedTuple):
    """Centre and width of observations and rewards, from the rows in use (Fu et al., 2021)."""

    mean: np.ndarray  # [S]
    std: np.ndarray  # [S]
    reward_mean: float  # 0 if anything ends: a shift would pay for staying
    reward_std: float
    low: float  # least and most reward a step, in those units; an episode that ended earns none
    high: float

    def earns(self, value: Amount) -> Amount:
        """Reward a step in the log's own units."""
        return value * self.reward_std + self.reward_mean


class Rows(NamedTuple):
    """The log as nets read it; all rows, of which the first `size` are in use."""

    x: Array  # [N, S + A]
    next_obs: Array  # [N, S]  in the log's own units, as policies read them
    reward: Array  # [N]
    mask: Array  # [N]  0 where the episode truly ended


class Sample(NamedTuple):
    """A log as estimators learn from it: rows in units of order one, starts, and what is drawn together."""

    rows: Rows
    scale: Scale
    starts: Array  # [E, S]
    unit: Array  # [N]  the episode of a row, or the row itself where there are none
    size: Array  # []  rows in use
    discount: Array  # []


def sample_of(data: Dataset, task: Task, starts: Array | None = None) -> Sample:
    """The log as estimators learn from it; from `starts` if others than the log's own."""
    rows, scale = view(data, task)
    first = jnp.asarray(data.starts if starts is None else starts)
    return Sample(rows, scale, first, units(data), jnp.asarray(data.size), jnp.asarray(task.discount, jnp.float32))


def view(data: Dataset, task: Task) -> tuple[Rows, Scale]:
    """The rows in units of order one, and those units."""
    rows, steps = data.rows, data.steps
    obs, reward = np.asarray(steps.obs)[:rows], np.asarray(steps.reward, np.float64)[:rows]
    ends = bool(np.any(np.asarray(steps.done)[:rows]))
    mean, std = obs.mean(0), obs.std(0)
    centre = 0.0 if ends else float(reward.mean())
    flat = reward.std() <= 1e-6 * (1 + abs(reward.mean()))
    width = float(np.sqrt(np.mean((reward - centre) ** 2))) if flat else float(reward.std())
    width = width if width > 1e-12 else 1.0
    low, high = (reward.min() - centre) / width, (reward.max() - centre) / width
    if ends:
        low, high = min(low, 0.0), max(high, 0.0)
    std = np.where(std > 1e-5, std, 1.0).astype(np.float32)
    scale = Scale(mean.astype(np.float32), std, centre, width, float(low), float(high))
    scaled = ((np.asarray(steps.reward) - centre) / width).astype(np.float32)
    x = enter(scale, task.actions, jnp.asarray(steps.obs), jnp.asarray(steps.action))
    return Rows(x, jnp.asarray(steps.next_obs), jnp.asarray(scaled), 1.0 - jnp.asarray(steps.done)), scale


def enter(scale: Scale, actions: Box | Discrete, obs: Array, action: Array) -> Array:
    """What a net reads of an observation and an action [..., S + A]."""
    return jnp.concatenate([(obs - scale.mean) / scale.std, unit(action, actions)], -1)


def unit(action: Array, actions: Box | Discrete) -> Array:
    """An action in half-widths of its box, from -1 to 1; a choice as it is."""
    if isinstance(actions, Discrete):
        return action
    low, high = jnp.array(actions.low), jnp.array(actions.high)
    return (action - (low + high) / 2) / half(actions)


def half(actions: Box) -> Array:
    """Half the width of the box, per dimension."""
    return jnp.maximum((jnp.array(actions.high) - jnp.array(actions.low)) / 2, 1e-6)


def units(data: Dataset) -> np.ndarray:
    """What is drawn together when the log is drawn again [N]: an episode, or a row where there are none."""
    episode = np.asarray(data.episode)
    return np.where(episode >= 0, episode, np.arange(len(episode))).astype(np.int32)


def below_one(task: Task, name: str) -> list[str]:
    """What to say of an endless discounted value; BadInput where there is none."""
    if task.discount >= 1:
        raise BadInput(f"{name} needs a discount below 1, and the task's is {task.discount}: give it another")
    beyond = task.discount**task.horizon
    note = f"discounted by {task.discount:g} without end: {name} knows no horizon and no undiscounted return"
    if beyond > 0.01:
        note += f"; up to {beyond:.0%} of the value lies beyond the task's {task.horizon} steps"
    return [note]


# ---- what policies do


@runtime_checkable
class Density(Protocol):
    """An `act` that can also say how likely it was to do what was done, in the log's own units."""

    def logp(self, params: Tree, memory: Memory, seen: Seen, action: Array) -> Array: ...


def alone(obs: Array, actions: Box | Discrete) -> Seen:
    """An observation [..., S] with nothing before it."""
    lead = obs.shape[:-1]
    return Seen(obs, jnp.zeros((*lead, actions.width)), jnp.zeros(lead), jnp.ones(lead))


def choose(key: Key | None, policy: Policy, obs: Array, actions: Box | Discrete) -> Array:
    """What a policy without memory does [..., A]; without a key, what it thinks best."""
    return policy.act(policy.params, policy.memory, alone(obs, actions), key)[0]


class Drawing(Protocol):
    """Hyperparameters that say how a policy's actions are drawn."""

    @property
    def draws(self) -> int: ...

    @property
    def sampled(self) -> bool: ...

    @property
    def smoothing(self) -> float: ...


def draws(
    key: Key, policy: Policy, memory: Memory, seen: Seen, actions: Box | Discrete, hypers: Drawing
) -> tuple[Array, Array]:
    """What the policy does, `hypers.draws` times over [D, ..., A]: as it is, and as it is judged.

    One that is not sampled does the same every time, and is judged as if its hand shook (`smooth`).
    """
    k1, k2 = jax.random.split(key)
    keys = jax.random.split(k1, hypers.draws)
    if hypers.sampled:
        done = jax.vmap(lambda k: policy.act(policy.params, memory, seen, k)[0])(keys)
        return done, done
    best = policy.act(policy.params, memory, seen, None)[0]
    shaken = jax.vmap(lambda k: smooth(k, best, actions, hypers.smoothing))(jax.random.split(k2, hypers.draws))
    return best[None], shaken


def smooth(key: Key, action: Array, actions: Box | Discrete, smoothing: Array | float) -> Array:
    """The action off by a Gaussian of `smoothing` times its range, inside it; or, so often, any choice."""
    k1, k2 = jax.random.split(key)
    if isinstance(actions, Discrete):
        other = jax.nn.one_hot(jax.random.randint(k1, action.shape[:-1], 0, actions.n), actions.n)
        return jnp.where(jax.random.bernoulli(k2, smoothing, action.shape[:-1])[..., None], other, action)
    centre, width = unit(action, actions), 2 * smoothing
    off = jax.random.truncated_normal(k1, (-1 - centre) / width, (1 - centre) / width, action.shape)
    return action + off * width * half(actions)


def log_density(drawn: Array, action: Array, actions: Box | Discrete, smoothing: Array | float) -> Array:
    """Log-density [...] of an action under a policy that was drawn from D times [D, ..., A].

    Choices: their frequency, mixed with `smoothing` of an even draw. Continuous: a Gaussian of the draws' mean
    and spread, widened by `smoothing` of the range and cut off at the box; in the log's own units.
    """
    if isinstance(actions, Discrete):
        chosen = jnp.sum(drawn.mean(0) * action, -1)
        return jnp.log((1 - smoothing) * chosen + smoothing / actions.n)
    points = unit(drawn, actions)
    centre = points.mean(0)
    width = jnp.sqrt(jnp.var(points, 0) + jnp.square(2 * smoothing))
    inside = norm.cdf((1 - centre) / width) - norm.cdf((-1 - centre) / width)
    each = norm.logpdf(unit(action, actions), centre, width) - jnp.log(jnp.maximum(inside, 1e-6))
    return jnp.sum(each - jnp.log(half(actions)), -1)
