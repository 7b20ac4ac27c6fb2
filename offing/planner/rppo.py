"""Recurrent PPO in worlds drawn from a posterior: SOReL's solver (Schulman et al., 2017; Duan et al., 2016).

    J = E[ min(w A, clip(w, 1 - c, 1 + c) A) ] - value_weight * E[(V - G)^2] + entropy * H[pi],   w = pi / pi_old

over segments of episodes, each of which stays in the world it started in. The policy sees its own last action
and reward, and remembers: what it has seen of a world tells it which one it is in (the paper's Bayes-adaptive
policy). A is generalised advantage estimation. The first share `burn_in` of a segment only warms the memory up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..hypers import hypers
from ..nets import Layer, dense, mlp_init
from ..optim import Learner, adam, descend, start
from ..posterior.walk import begin, fixed, redrawn
from ..types import Array, Box, Dataset, Discrete, Key, Planner, Policy, Posterior, Seen, Task
from . import _memory
from ._parts import Scale, place, scale_of, see, unplace

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
    per_step: bool = False  # a new world at every step, as the released code has it; for comparison only

    @property
    def updates(self) -> int:
        return max(1, self.steps // (self.envs * self.segment))


class Net(NamedTuple):
    """One trunk for actor and critic: embedding, core, a hidden layer for each, and what they say."""

    embed: Layer
    core: Any
    heads: Layer  # [2W, W]  the actor's half, then the critic's
    actor: Layer
    critic: Layer
    log_std: Array  # [A]  of continuous actions


class Arena(NamedTuple):
    """Where the policy is trained: N environments that step together. `state` is whatever steps need."""

    reset: Callable[[Key], tuple[Any, Array]]  # -> state, obs [N, S]
    step: Callable[[Key, Any, Array], tuple[Any, Array, Array, Array]]  # -> state, obs, reward, ended


class Where(NamedTuple):
    """The environments between two steps."""

    state: Any
    seen: Seen  # [N, ...]
    memory: Any  # [N, W]
    clock: Array  # [N]  steps taken in this episode


class State(NamedTuple):
    learner: Learner
    scale: Scale
    where: Where
    count: Array  # []  gradient steps so far
    returns: tuple[Array, Array]  # running mean and standard deviation, the critic's units


class Segment(NamedTuple):
    """What one update learns from; every leaf [T, N, ...]."""

    x: Array
    start: Array
    raw: Array  # the action before it is clipped to its box, or the choice as a one-hot row
    logp: Array
    advantage: Array
    target: Array


@dataclass(frozen=True)
class Act:
    """How a policy's parameters are read; static, and equal for equal shapes, so that programs are shared."""

    actions: Box | Discrete

    def __call__(self, params: tuple[Net, Scale], memory: Any, seen: Seen, key: Key | None) -> tuple[Array, Any]:
        net, scale = params
        out, memory = _memory.step(net.core, memory, look(net, scale, seen, self.actions), seen.start)
        said = speak(net, out)[0]
        return place(choose(key, net, said, self.actions), self.actions), memory


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


def choose(key: Key | None, net: Net, said: Array, actions: Box | Discrete) -> Array:
    """An action as the planner handles it: unclipped in units of the box, or one-hot; without a key the best."""
    if isinstance(actions, Discrete):
        index = jnp.argmax(said, -1) if key is None else jax.random.categorical(key, said)
        return jax.nn.one_hot(index, actions.n)
    return said if key is None else said + jnp.exp(net.log_std) * jax.random.normal(key, said.shape)


def log_prob(net: Net, said: Array, raw: Array, actions: Box | Discrete) -> tuple[Array, Array]:
    """Log-probability of an action [...], and the entropy of what was said."""
    if isinstance(actions, Discrete):
        logits = jax.nn.log_softmax(said)
        return jnp.sum(logits * raw, -1), -jnp.sum(jnp.exp(logits) * logits, -1)
    off = (raw - said) * jnp.exp(-net.log_std)
    each = -0.5 * jnp.square(off) - net.log_std - 0.5 * jnp.log(2 * jnp.pi)
    entropy = jnp.sum(net.log_std) + 0.5 * net.log_std.shape[0] * jnp.log(2 * jnp.pi * jnp.e)
    return each.sum(-1), jnp.broadcast_to(entropy, each.shape[:-1])


# ---- the three functions of a planner


def init(key: Key, hypers: Hypers, data: Dataset, posterior: Posterior) -> State:
    """A planner that has seen nothing; what it sees is scaled by the log."""
    return begin_in(key, hypers, scale_of(data), dream(hypers, posterior), posterior.task)


def update(
    key: Key, hypers: Hypers, state: State, data: Dataset, posterior: Posterior
) -> tuple[State, dict[str, Array]]:
    """One segment in the posterior's worlds, and the gradient steps on it."""
    del data
    return update_in(key, hypers, state, dream(hypers, posterior), posterior.task)


def policy(hypers: Hypers, state: State, task: Task) -> Policy:
    """What has been learned so far, as a policy."""
    return Policy((state.learner.params, state.scale), _memory.empty(hypers.core, hypers.width), Act(task.actions))


def blank(hypers: Hypers, width: int, task: Task) -> Policy:
    """A policy of that shape which has learned nothing."""
    net = jax.eval_shape(lambda key: net_init(key, hypers, width, task.actions), jax.random.key(0))
    scale = Scale(jnp.zeros(width), jnp.ones(width), jnp.ones(()))
    params = (jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), net), scale)
    return Policy(params, _memory.empty(hypers.core, hypers.width), Act(task.actions))


planner = Planner(Hypers, init, update, policy, blank)


def dream(hypers: Hypers, posterior: Posterior) -> Arena:
    """The posterior's worlds as an arena: world by world, each with its copies, one hypothesis per episode."""
    members = posterior.members
    copies = max(1, hypers.envs // members)
    inner = (redrawn if hypers.per_step else fixed)(posterior)
    flat = lambda a: a.reshape(members * copies, *a.shape[2:])
    deep = lambda a: a.reshape(members, copies, *a.shape[1:])

    def reset(key: Key) -> tuple[Any, Array]:
        return (), flat(begin(key, posterior, copies))

    def step_(key: Key, obs: Array, action: Array) -> tuple[Any, Array, Array, Array]:
        after, reward, ended = inner(key, deep(obs), deep(action))
        return (), flat(after), flat(reward), flat(ended)

    return Arena(reset, step_)


def begin_in(key: Key, hypers: Hypers, scale: Scale, arena: Arena, task: Task) -> State:
    """A planner at the start of its training in any arena. Clocks differ, so that episodes do not end together."""
    k1, k2, k3 = jax.random.split(key, 3)
    state, obs = arena.reset(k1)
    envs = obs.shape[0]
    net = net_init(k2, hypers, obs.shape[1], task.actions)
    seen = Seen(obs, jnp.zeros((envs, task.actions.width)), jnp.zeros(envs), jnp.ones(envs))
    memory = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (envs, *leaf.shape)), _memory.empty(hypers.core, hypers.width)
    )
    clock = jax.random.randint(k3, (envs,), 0, task.horizon)
    where = Where(state, seen, memory, clock)
    return State(start(net), scale, where, jnp.asarray(0), (jnp.asarray(0.0), jnp.asarray(1.0)))


def net_init(key: Key, hypers: Hypers, width: int, actions: Box | Discrete) -> Net:
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    inputs = width if hypers.core == "none" else width + actions.width + 2
    one = lambda k, i, o, last: mlp_init(k, (i, o), last)[0]
    return Net(
        embed=one(k1, inputs, hypers.width, 1.4),
        core=_memory.core_init(k2, hypers.core, hypers.width),
        heads=one(k3, hypers.width, 2 * hypers.width, 1.4),
        actor=one(k4, hypers.width, actions.width, 0.01),
        critic=one(k5, hypers.width, 1, 1.0),
        log_std=jnp.log(hypers.first_std) * jnp.ones(0 if isinstance(actions, Discrete) else actions.width),
    )


def update_in(key: Key, hypers: Hypers, state: State, arena: Arena, task: Task) -> tuple[State, dict[str, Array]]:
    """One segment in any arena, and what was learned from it."""
    return lesson(key, hypers, state, arena, task)[:2]


def lesson(
    key: Key, hypers: Hypers, state: State, arena: Arena, task: Task
) -> tuple[State, dict[str, Array], dict[str, Array]]:
    """One segment, `epochs` times `minibatches` gradient steps on it, and its rows [T, N, ...]."""
    k1, k2 = jax.random.split(key)
    before = state.where.memory
    where, rows, last = gather(k1, hypers, state, arena, task)
    segment, returns, earned = appraise(hypers, state, rows, last)
    learner, losses = learn(k2, hypers, state, segment, before, task.actions)
    count = state.count + hypers.epochs * hypers.minibatches
    metrics = {"reward": earned, "loss": losses.mean()}
    return State(learner, state.scale, where, count, returns), metrics, rows


def gather(key: Key, hypers: Hypers, state: State, arena: Arena, task: Task) -> tuple[Where, Any, Array]:
    """`segment` steps of the current policy: where that leads, the rows [T, N, ...], and the value there [N]."""
    net, scale = state.learner.params, state.scale

    def one(where: Where, key: Key) -> tuple[Where, Any]:
        k1, k2, k3 = jax.random.split(key, 3)
        x = features(net, scale, where.seen, task.actions)
        out, memory = _memory.step(net.core, where.memory, jnp.tanh(dense(net.embed, x)), where.seen.start)
        said, value = speak(net, out)
        raw = choose(k1, net, said, task.actions)
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
            "logp": log_prob(net, said, raw, task.actions)[0],
            "value": value,
            "reward": reward,
            "ended": ended,
            "late": late,
            "obs": where.seen.obs,  # these three only if somebody asks: a log is made of them
            "action": action,
            "next_obs": obs,
        }
        fresh, first = arena.reset(k3)
        pick = lambda new, old: jnp.where(over.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        seen = Seen(pick(first, obs), action, reward, over.astype(jnp.float32))
        where = Where(jax.tree.map(pick, fresh, inside), seen, memory, jnp.where(over, 0, clock))
        return where, row

    where, rows = jax.lax.scan(one, state.where, jax.random.split(key, hypers.segment))
    x = look(net, scale, where.seen, task.actions)
    last = speak(net, _memory.step(net.core, where.memory, x, where.seen.start)[0])[1]
    return where, rows, last


def appraise(hypers: Hypers, state: State, rows: Any, last: Array) -> tuple[Segment, Any, Array]:
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


def learn(
    key: Key, hypers: Hypers, state: State, segment: Segment, memory: Any, actions: Box | Discrete
) -> tuple[Learner, Array]:
    """Epochs of minibatches, each of some environments' whole segments."""
    envs = segment.logp.shape[1]
    parts = min(hypers.minibatches, envs)
    each = envs // parts
    total = hypers.updates * hypers.epochs * hypers.minibatches

    def one(learner: Learner, at: Any) -> tuple[Learner, Array]:
        part, memory, count = at
        rate = hypers.lr * jnp.maximum(1 - count / total, 0.0)
        learner, value, _ = descend(
            learner, adam(count, rate, eps=1e-5), loss, hypers, part, memory, actions, norm=hypers.norm
        )
        return learner, value

    def epoch(learner: Learner, at: tuple[Key, Array]) -> tuple[Learner, Array]:
        order = jax.random.permutation(at[0], envs)[: each * parts].reshape(parts, each)
        pieces = jax.tree.map(lambda leaf: jnp.moveaxis(leaf[:, order], 1, 0), segment)
        memories = jax.tree.map(lambda leaf: leaf[order], memory)
        return jax.lax.scan(one, learner, (pieces, memories, at[1] + jnp.arange(parts)))

    counts = state.count + hypers.minibatches * jnp.arange(hypers.epochs)
    return jax.lax.scan(epoch, state.learner, (jax.random.split(key, hypers.epochs), counts))


def loss(net: Net, hypers: Hypers, b: Segment, memory: Any, actions: Box | Discrete) -> tuple[Array, None]:
    """PPO's clipped objective on a minibatch of segments, turned round to be descended."""
    out = _memory.sweep(net.core, memory, jnp.tanh(dense(net.embed, b.x)), b.start)
    said, value = speak(net, out)
    logp, entropy = log_prob(net, said, b.raw, actions)
    burn = hypers.burn_in if net.core else 0.0
    warm = (jnp.arange(b.logp.shape[0]) >= burn * b.logp.shape[0]).astype(jnp.float32)[:, None]
    mean = lambda a: jnp.sum(a * warm) / (jnp.sum(warm) * a.shape[1])
    advantage = b.advantage - mean(b.advantage)
    advantage = advantage / (jnp.sqrt(mean(jnp.square(advantage))) + 1e-8)
    ratio = jnp.exp(logp - b.logp)
    clipped = jnp.clip(ratio, 1 - hypers.clip, 1 + hypers.clip)
    gain = mean(jnp.minimum(ratio * advantage, clipped * advantage))
    miss = mean(jnp.square(value - b.target))
    return -gain + hypers.value_weight * miss - hypers.entropy * mean(entropy), None
