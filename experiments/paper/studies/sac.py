"""Soft actor-critic in a true environment (Haarnoja et al., 2018), for logs in the way that D4RL's were made.

    Q:   (r + discount (1 - done) [min_k Qbar_k(s', a') - alpha log pi(a' | s')] - Q)^2
    pi:  alpha log pi(a | s) - min_k Q_k(s, a)
    alpha:  -log alpha (log pi(a | s) + target),   target = -|A|

Two critics and an actor of 256-256 each, one update a step, as there. It may see the truth: it makes logs, and
nothing is tuned by it. Actions inside are in half-widths of their box.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from offing.nets import Net, mlp, mlp_init
from offing.online.copies import Copies
from offing.online.policies import Acted, uniform
from offing.optim import Learner, adam, descend, start
from offing.types import Array, Box, Discrete, Key

DISCOUNT, TRACK, BATCH, RANDOM, LR = 0.99, 0.005, 256, 10_000, 3e-4
LOG_STD = (-5.0, 2.0)


class Agent(NamedTuple):
    """All that learns."""

    actor: Learner[Net]
    critics: Learner[Net]  # every leaf [2, ...]
    targets: Net
    alpha: Learner[Array]  # its logarithm
    count: Array


class Rows(NamedTuple):
    """Steps of the run."""

    obs: Array
    action: Array
    reward: Array
    next_obs: Array
    done: Array


def begin(key: Key, width: int, actions: int, hidden: tuple[int, ...]) -> Agent:
    """An agent that knows nothing."""
    k1, k2 = jax.random.split(key)
    critic = lambda key: mlp_init(key, (width + actions, *hidden, 1))
    critics = jax.vmap(critic)(jax.random.split(k2, 2))
    actor = mlp_init(k1, (width, *hidden, 2 * actions))
    return Agent(start(actor), start(critics), critics, start(jnp.zeros(())), jnp.asarray(0))


def act(key: Key, actor: Net, obs: Array) -> tuple[Array, Array]:
    """Actions [..., A] within -1 and 1, drawn, and the logarithm of their density [...]."""
    mean, log_std = jnp.split(mlp(actor, obs, "relu"), 2, -1)
    log_std = jnp.clip(log_std, *LOG_STD)
    noise = jax.random.normal(key, mean.shape)
    raw = mean + jnp.exp(log_std) * noise
    plain = -0.5 * jnp.square(noise) - log_std - 0.5 * jnp.log(2 * jnp.pi)
    squash = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))  # log(1 - tanh^2)
    return jnp.tanh(raw), jnp.sum(plain - squash, -1)


def values(critics: Net, obs: Array, action: Array) -> Array:
    """[2, B]."""
    x = jnp.concatenate([obs, action], -1)
    return jax.vmap(lambda net: mlp(net, x, "relu")[..., 0])(critics)


def update(key: Key, agent: Agent, rows: Rows) -> Agent:
    """One gradient step of everything on a minibatch."""
    k1, k2 = jax.random.split(key)
    alpha, step = jnp.exp(agent.alpha.params), adam(agent.count, LR)
    following, logp = act(k1, agent.actor.params, rows.next_obs)
    soft = values(agent.targets, rows.next_obs, following).min(0) - alpha * logp
    target = rows.reward + DISCOUNT * (1 - rows.done) * soft

    def critic_loss(critics: Net) -> tuple[Array, tuple[()]]:
        return jnp.sum(jnp.mean(jnp.square(values(critics, rows.obs, rows.action) - target), 1)), ()

    def actor_loss(actor: Net) -> tuple[Array, Array]:
        action, logp = act(k2, actor, rows.obs)
        return jnp.mean(alpha * logp - values(critics.params, rows.obs, action).min(0)), logp.mean()

    critics, _, _ = descend(agent.critics, step, critic_loss)
    actor, _, logp = descend(agent.actor, step, actor_loss)
    wanted = -rows.action.shape[-1]
    alpha_loss = lambda log_alpha: (-log_alpha * (logp + wanted), ())
    log_alpha, _, _ = descend(agent.alpha, step, alpha_loss)
    targets = jax.tree.map(lambda old, new: old + TRACK * (new - old), agent.targets, critics.params)
    return Agent(actor, critics, targets, log_alpha, agent.count + 1)


@partial(jax.jit, static_argnames=("times", "size"))
def learn(key: Key, agent: Agent, rows: Rows, used: Array, times: int, size: int) -> Agent:
    """So many updates on minibatches of the rows in use."""

    def one(agent: Agent, key: Key) -> tuple[Agent, None]:
        k1, k2 = jax.random.split(key)
        index = jax.random.randint(k1, (size,), 0, used)
        return update(k2, agent, jax.tree.map(lambda leaf: leaf[index], rows)), None

    return jax.lax.scan(one, agent, jax.random.split(key, times))[0]


@partial(jax.jit, donate_argnums=(0,))
def put(rows: Rows, more: Rows, at: Array) -> Rows:
    """The rows with some more among them, from there on."""
    return jax.tree.map(lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, at, 0), rows, more)


_act = jax.jit(act)


class Course(NamedTuple):
    """A whole run: every step, where episodes were over, and the actor at every checkpoint."""

    whole: dict[str, np.ndarray]  # [T, N, ...]
    over: np.ndarray  # [T, N]
    actors: list[Net]
    at: list[int]  # steps taken by then


def train(
    where: Copies,
    steps: int,
    seed: int,
    checkpoints: int = 40,
    hidden: tuple[int, ...] = (256, 256),
    random: int = RANDOM,
    report: Callable[[int], None] = lambda _: None,
) -> Course:
    """A run of that many steps in the copies, with as many updates once the `random` first ones are over."""
    actions = where.task.actions
    assert isinstance(actions, Box)
    low, high = np.array(actions.low), np.array(actions.high)
    key, rng = jax.random.key(seed), np.random.default_rng([seed, 11])
    agent = begin(jax.random.fold_in(key, 0), where.width, actions.width, hidden)
    count, turns = where.count, -(-steps // where.count)
    drawn = lambda: rng.integers(0, 2**32, count, dtype=np.uint32)
    blank = lambda *shape: jnp.zeros((turns * count, *shape))
    rows = Rows(blank(where.width), blank(actions.width), blank(), blank(where.width), blank())
    obs, parts, actors, at = where.reset(np.ones(count, bool), drawn()), [], [], []
    for t in range(turns):
        k1, k2 = jax.random.split(jax.random.fold_in(key, t + 1))
        if t * count < random:
            action = np.asarray(uniform(k1, Box((-1.0,) * actions.width, (1.0,) * actions.width), count))
        else:
            action = np.asarray(_act(k1, agent.actor.params, obs)[0])
        out = where.step((low + high) / 2 + (high - low) / 2 * action)
        over = out.terminated | out.truncated
        parts.append((obs, action, out.reward, out.obs, out.terminated, over))
        more = Rows(*(jnp.asarray(part, jnp.float32) for part in parts[-1][:5]))
        rows = put(rows, more, jnp.asarray(t * count))
        obs = where.reset(over, drawn()) if over.any() else out.obs
        if t * count >= random:
            agent = learn(k2, agent, rows, jnp.asarray((t + 1) * count), count, BATCH)
        if len(actors) < checkpoints * (t + 1) // turns:
            actors.append(jax.tree.map(np.asarray, agent.actor.params))
            at.append((t + 1) * count)
            report((t + 1) * count)
    names = ("obs", "action", "reward", "next_obs", "terminated")
    whole = {name: np.stack([part[i] for part in parts]) for i, name in enumerate(names)}
    whole["action"] = ((low + high) / 2 + (high - low) / 2 * whole["action"]).astype(np.float32)
    return Course(whole, np.stack([part[5] for part in parts]), actors, at)


def player(actor: Net, actions: Box | Discrete) -> Callable[..., tuple[Acted, tuple[()]]]:
    """The actor as who acts in `offing.online.collect.episodes`: it draws, as D4RL's policies do."""
    assert isinstance(actions, Box)
    low, high = jnp.array(actions.low), jnp.array(actions.high)
    half = (high - low) / 2

    @jax.jit
    def draw(keys: Key, obs: Array) -> Acted:
        action, logp = jax.vmap(lambda key, row: act(key, actor, row))(keys, obs)
        return {"action": (low + high) / 2 + half * action, "logp": logp - jnp.sum(jnp.log(half))}

    def acts(memory: tuple[()], keys: Key, start: np.ndarray, obs: np.ndarray) -> tuple[Acted, tuple[()]]:
        del start
        return draw(keys, obs), memory

    return acts
