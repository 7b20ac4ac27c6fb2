"""Proximal policy optimisation on segments of episodes: hyperparameters, advantages, loss, gradient steps."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..hypers import hypers
from ..nets import dense
from ..optim import Learner, adam, descend
from ..types import Array, Box, Discrete, Key
from . import _memory
from ._arena import Guide, Rows, State
from ._memory import Memory
from ._recurrent import Net, distribution, divergence, log_prob, speak

FORGET = 0.9  # of the running scale of returns, at every update


@hypers
class Hypers:
    """phi_III. Defaults: the paper's for Pendulum, with a core that is parallel in time."""

    envs: int = 128
    segment: int = 64  # steps between updates
    steps: int = 1_000_000  # in all worlds together
    epochs: int = 8
    minibatches: int = 16
    width: int = 128
    core: str = "linear"  # none, gru, linear
    lr: float = 3e-4
    discount: float = 0.99
    trace: float = 0.95  # lambda of the advantages
    clip: float = 0.2
    entropy: float = 0.003
    value_weight: float = 0.5
    norm: float = 0.5  # longest gradient
    burn_in: float = 0.25
    first_std: float = 1.0  # of the actions, in half-widths of their box
    begun: float = 0.0  # 1: it begins at its guide, 0: at nets of its own
    near: float = 0.0  # what a nat of KL from its guide costs; this and the next two only where there is a guide
    along: float = 0.0  # share of episodes that begin at states along logged ones, the successful more often
    risk: float = 0.0  # how much more a world counts in which a step earns a standard deviation less
    per_step: bool = False  # a new world at every step, as the released code has it; for comparison only

    @property
    def updates(self) -> int:
        return max(1, self.steps // (self.envs * self.segment))


class Segment(NamedTuple):
    """What one update learns from; every leaf [T, N, ...]."""

    x: Array
    start: Array
    raw: Array  # the action before it is clipped to its box, or the choice as a one-hot row
    logp: Array
    advantage: Array
    target: Array
    guide: Array | tuple[()] = ()  # what the guide would do
    weight: Array | tuple[()] = ()  # of the world that it is in


def appraise(hypers: Hypers, state: State, rows: Rows, last: Array) -> tuple[Segment, tuple[Array, Array], Array]:
    """Generalised advantages of the rows, and the scale of returns. At time-outs the value stands for the rest."""
    mean, std = state.returns
    value = rows["value"] * std + mean
    after = jnp.concatenate([value[1:], (last * std + mean)[None]])
    after = jnp.where(rows["late"], value, jnp.where(rows["ended"], 0.0, after))
    delta = rows["reward"] + hypers.discount * after - value
    keep = hypers.discount * hypers.trace * (1.0 - (rows["late"] | rows["ended"]))

    def back(total: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        total = at[0] + at[1] * total
        return total, total

    advantage = jax.lax.scan(back, jnp.zeros_like(last), (delta, keep), reverse=True)[1]
    target = value + advantage
    forget = jnp.where(state.count == 0, 0.0, FORGET)
    mean_ = forget * mean + (1 - forget) * target.mean()
    std_ = jnp.maximum(forget * std + (1 - forget) * target.std(), 1e-4)
    segment = Segment(rows["x"], rows["start"], rows["raw"], rows["logp"], advantage, (target - mean_) / std_)
    return segment, (mean_, std_), rows["reward"].mean()


def advised(
    hypers: Hypers, guide: Guide | tuple[()], segment: Segment, rows: Rows
) -> tuple[Segment, Guide | tuple[()]]:
    """The segment with what the guide would have done and what its worlds count; as it is where there is none.

    Worlds in which steps earn less than in others count more, the more so the larger `risk`: exp(-risk z), the
    weights of an entropic risk over worlds.
    """
    if not isinstance(guide, Guide):
        return segment, guide
    members = guide.earned.shape[0]
    earned = rows["reward"].mean(0).reshape(members, -1).mean(1)
    earned = FORGET * guide.earned + (1 - FORGET) * earned
    odds = jnp.exp(-hypers.risk * (earned - earned.mean()) / (earned.std() + 1e-8))
    weight = jnp.repeat(odds / odds.mean(), segment.logp.shape[1] // members)
    weight = jnp.broadcast_to(weight, segment.logp.shape)
    return segment._replace(guide=rows["guide"], weight=weight), guide._replace(earned=earned)


def learn(
    key: Key, hypers: Hypers, state: State, segment: Segment, memory: Memory, actions: Box | Discrete
) -> tuple[Learner[Net], Array]:
    """Epochs of minibatches, each of some environments' whole segments."""
    envs = segment.logp.shape[1]
    parts = min(hypers.minibatches, envs)
    each = envs // parts
    total = hypers.updates * hypers.epochs * hypers.minibatches

    def one(learner: Learner[Net], at: tuple[Segment, Memory, Array]) -> tuple[Learner[Net], Array]:
        part, memory, count = at
        rate = hypers.lr * jnp.maximum(1 - count / total, 0.0)
        learner, value, _ = descend(
            learner, adam(count, rate, eps=1e-5, norm=hypers.norm), loss, hypers, part, memory, actions
        )
        return learner, value

    def epoch(learner: Learner[Net], at: tuple[Key, Array]) -> tuple[Learner[Net], Array]:
        order = jax.random.permutation(at[0], envs)[: each * parts].reshape(parts, each)
        pieces = jax.tree.map(lambda leaf: jnp.moveaxis(leaf[:, order], 1, 0), segment)
        memories = jax.tree.map(lambda leaf: leaf[order], memory)
        return jax.lax.scan(one, learner, (pieces, memories, at[1] + jnp.arange(parts)))

    counts = state.count + hypers.minibatches * jnp.arange(hypers.epochs)
    return jax.lax.scan(epoch, state.learner, (jax.random.split(key, hypers.epochs), counts))


def loss(net: Net, hypers: Hypers, b: Segment, memory: Memory, actions: Box | Discrete) -> tuple[Array, None]:
    """PPO's clipped objective on a minibatch of segments, turned round to be descended."""
    out = _memory.sweep(net.core, memory, jnp.tanh(dense(net.embed, b.x)), b.start)
    head, value = speak(net, out)
    logp, entropy = log_prob(net, head, b.raw, actions)
    burn = hypers.burn_in if net.core else 0.0
    warm = (jnp.arange(b.logp.shape[0]) >= burn * b.logp.shape[0]).astype(jnp.float32)[:, None]
    mean = lambda a: jnp.sum(a * warm) / (jnp.sum(warm) * a.shape[1])
    advantage = b.advantage - mean(b.advantage)
    advantage = advantage / (jnp.sqrt(mean(jnp.square(advantage))) + 1e-8)
    ratio = jnp.exp(logp - b.logp)
    clipped = jnp.clip(ratio, 1 - hypers.clip, 1 + hypers.clip)
    each = jnp.minimum(ratio * advantage, clipped * advantage)
    miss = mean(jnp.square(value - b.target))
    if isinstance(b.guide, tuple):
        return -mean(each) + hypers.value_weight * miss - hypers.entropy * mean(entropy), None
    far = divergence(b.guide, distribution(net, head), actions)
    gain = mean(each * b.weight) - hypers.near * mean(far)
    return -gain + hypers.value_weight * miss - hypers.entropy * mean(entropy), None
