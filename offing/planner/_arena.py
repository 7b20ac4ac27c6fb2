"""Where a recurrent policy is trained: environments that step together, and segments of its way through them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp

from ..nets import dense
from ..optim import Learner
from ..posterior.walk import Place, begin, fixed, lost_beyond, redrawn, steps_worth
from ..types import Array, Key, Posterior, Seen, Task
from . import _memory
from ._memory import Memory
from ._parts import Scale, place
from ._recurrent import Net, choose, distribution, features, log_prob, look, speak

Inside = TypeVar("Inside")  # whatever the steps of environments need


class Arena(NamedTuple, Generic[Inside]):
    """Where the policy is trained: N environments that step together. `state` is whatever steps need."""

    reset: Callable[[Key], tuple[Inside, Array]]  # -> state, obs [N, S]
    step: Callable[[Key, Inside, Array], tuple[Inside, Array, Array, Array]]  # -> state, obs, reward, ended


Rows = Mapping[str, Array]  # of a segment, by name [T, N, ...]


class Where(NamedTuple, Generic[Inside]):
    """The environments between two steps."""

    state: Inside
    seen: Seen  # [N, ...]
    memory: Memory  # [N, W]
    clock: Array  # [N]  steps taken in this episode
    guided: Memory = ()  # [N, W]  what the guide remembers, where there is one


class Guide(NamedTuple):
    """A policy that is there already, and what else a plan that has one keeps."""

    net: Net
    states: Array  # [K, S]  along logged episodes, where imagined ones may begin
    earned: Array  # [M]  running mean of a step's reward in every world


class State(NamedTuple):
    learner: Learner[Net]
    scale: Scale
    where: Where
    count: Array  # []  gradient steps so far
    returns: tuple[Array, Array]  # running mean and standard deviation, the critic's units
    guide: Guide | tuple[()] = ()  # that the policy may begin at and be held near


class Sizes(Protocol):
    """Hyperparameters that say how many environments step, and for how long."""

    @property
    def envs(self) -> int: ...

    @property
    def segment(self) -> int: ...  # steps between updates

    @property
    def per_step(self) -> bool: ...  # a new world at every step


def dream(hypers: Sizes, posterior: Posterior) -> Arena[Place]:
    """The posterior's worlds as an arena: world by world, each with its copies, one hypothesis per episode.

    An episode that ends since it left the log pays at once what a whole one might have cost.
    """
    lost = lost_beyond(posterior) * steps_worth(posterior.task.discount, posterior.task.horizon - 1)
    members = posterior.members
    copies = max(1, hypers.envs // members)
    inner = (redrawn if hypers.per_step else fixed)(posterior)
    flat = lambda tree: jax.tree.map(lambda a: a.reshape(members * copies, *a.shape[2:]), tree)
    deep = lambda tree: jax.tree.map(lambda a: a.reshape(members, copies, *a.shape[1:]), tree)

    def reset(key: Key) -> tuple[Place, Array]:
        state = flat(begin(key, posterior, copies))
        return state, state.obs

    def step_(key: Key, state: Place, action: Array) -> tuple[Place, Array, Array, Array]:
        after, drawn = inner(key, deep(state), deep(action))
        reward = drawn.reward + lost * (drawn.out_of_support & drawn.terminated)
        return flat(after), *flat((drawn.next_obs, reward, drawn.terminated))

    return Arena(reset, step_)


def begun_along(arena: Arena[Inside], states: Array, share: float | Array) -> Arena[Inside]:
    """The arena with that share of its episodes begun at the states given, drawn evenly."""

    def reset(key: Key) -> tuple[Inside, Array]:
        k1, k2, k3 = jax.random.split(key, 3)
        inside, obs = arena.reset(k1)
        other = states[jax.random.randint(k2, obs.shape[:1], 0, states.shape[0])]
        obs = jnp.where(jax.random.bernoulli(k3, share, obs.shape[:1])[:, None], other, obs)
        return inside._replace(obs=obs) if isinstance(inside, Place) else inside, obs

    return arena._replace(reset=reset)


def gather(key: Key, hypers: Sizes, state: State, arena: Arena, task: Task) -> tuple[Where, Rows, Array]:
    """`segment` steps of the current policy: where that leads, the rows [T, N, ...], and the value there [N]."""
    net, scale = state.learner.params, state.scale
    guide = state.guide.net if isinstance(state.guide, Guide) else None

    def one(where: Where, key: Key) -> tuple[Where, dict[str, Array]]:
        k1, k2, k3 = jax.random.split(key, 3)
        x = features(net, scale, where.seen, task.actions)
        out, memory = _memory.step(net.core, where.memory, jnp.tanh(dense(net.embed, x)), where.seen.start)
        head, value = speak(net, out)
        raw = choose(k1, net, head, task.actions)
        action = place(raw, task.actions)
        inside = where.state if where.state else where.seen.obs
        inside, obs, reward, ended = arena.step(k2, inside, action)
        clock = where.clock + 1
        late = (clock >= task.horizon) & ~ended
        over = late | ended
        row = {
            "x": x,
            "start": where.seen.start,
            "raw": raw,
            "logp": log_prob(net, head, raw, task.actions)[0],
            "value": value,
            "reward": reward,
            "ended": ended,
            "late": late,
            "obs": where.seen.obs,  # these three only if somebody asks: a log is made of them
            "action": action,
            "next_obs": obs,
        }
        recalled = where.guided
        if guide is not None:
            inputs = jnp.tanh(dense(guide.embed, x))
            out, recalled = _memory.step(guide.core, where.guided, inputs, where.seen.start)
            row["guide"] = distribution(guide, speak(guide, out)[0])
        fresh, first = arena.reset(k3)
        pick = lambda new, old: jnp.where(over.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        seen = Seen(pick(first, obs), action, reward, over.astype(jnp.float32))
        where = Where(jax.tree.map(pick, fresh, inside), seen, memory, jnp.where(over, 0, clock), recalled)
        return where, row

    where, rows = jax.lax.scan(one, state.where, jax.random.split(key, hypers.segment))
    x = look(net, scale, where.seen, task.actions)
    last = speak(net, _memory.step(net.core, where.memory, x, where.seen.start)[0])[1]
    return where, rows, last
