"""An agent that learns in any true environment, and all that it did: feed-forward PPO, stepped on the host.

The nets, the advantages and the gradient steps are `rppo`'s. Amounts are squashed into their box and not
clipped, so that what was done has a density:

    u | s ~ N(m(s), d^2),    action = centre + half * tanh(u),
    log p = log N(u; m, d^2) - log [half * (1 - tanh(u)^2)]
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..optim import start
from ..planner import rppo
from ..types import Array, Box, Discrete, Key, Progress, Seen
from .columns import pieces, taken
from .copies import Copies
from .policies import Acted, uniform

LEARNER = rppo.Hypers(
    envs=16,
    segment=128,
    epochs=8,
    minibatches=4,
    width=64,
    core="none",
    lr=1e-3,
    discount=0.99,
    entropy=0.01,
    first_std=0.6,
)
WARM = 128  # random steps that the scale of observations is taken from; they are not logged
STILL = 1e-3  # a column that varies by less than this stands still
Params = tuple[rppo.Net, rppo.Scale]


class Learned(NamedTuple):
    """A run: every step of it, where episodes were over, and what the agent was after each update."""

    whole: dict[str, np.ndarray]  # [T, N, ...]
    over: np.ndarray  # [T, N]
    agents: list[Params]

    def episodes(self, rows: int, seed: int) -> list[dict[str, np.ndarray]]:
        """`rows` rows of the run in the order in which episodes ended; which, if not all, is drawn by the seed."""
        runs = list(pieces(self.over))
        order = np.random.default_rng([seed, 5]).permutation(len(runs))
        drawn = sorted((runs[i] for i in order), key=lambda part: not part.whole)
        before = np.cumsum([0, *(part.rows for part in drawn[:-1])])
        kept = [part for part, count in zip(drawn, before, strict=True) if count < rows]
        return taken(self.whole, sorted(kept, key=lambda part: (part.end, part.env)), rows)


def act(key: Key, agent: Params, obs: Array, actions: Box | Discrete) -> Acted:
    """What the agent does [..., A], and its log-probability; beside it what a lesson needs."""
    net, units = agent
    blank = jnp.zeros(obs.shape[:-1])
    seen = Seen(obs, blank, blank, blank)  # a policy without memory looks at the observation alone
    outputs, value = rppo.speak(net, rppo.look(net, units, seen, actions))
    raw = rppo.choose(key, net, outputs, actions)
    logp, _ = rppo.log_prob(net, outputs, raw, actions)
    lesson = {"x": rppo.features(net, units, seen, actions), "raw": raw, "raw_logp": logp, "value": value}
    if isinstance(actions, Discrete):
        return {**lesson, "action": raw, "logp": jnp.minimum(logp, 0.0)}  # by rounding it may exceed 0
    low, high = jnp.array(actions.low), jnp.array(actions.high)
    half = (high - low) / 2
    flat = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))  # log(1 - tanh^2), where tanh itself rounds to 1
    action = jnp.clip((low + high) / 2 + half * jnp.tanh(raw), low, high)
    return {**lesson, "action": action, "logp": logp - jnp.sum(jnp.log(half) + flat, -1)}


def learn(where: Copies, steps: int, seed: int, progress: Progress | None = None) -> Learned:
    """A run of at least that many steps in the copies, from an agent that knows nothing."""
    hypers = replace(LEARNER, envs=where.count, steps=steps)
    k1, k2, k3 = jax.random.split(jax.random.key(seed), 3)
    seeds = np.random.default_rng([seed, 4])
    units = _warm(k1, where, seeds)
    net = rppo.net_init(k2, hypers, where.width, where.task.actions)
    state = rppo.State(start(net), units, _nowhere(), jnp.asarray(0), (jnp.asarray(0.0), jnp.asarray(1.0)))
    obs = where.reset(np.ones(where.count, bool), _drawn(seeds, where.count))
    segments, agents = [], []
    updates = -(-steps // (hypers.envs * hypers.segment))
    for i in range(updates):
        k4, k5 = jax.random.split(jax.random.fold_in(k3, i))
        rows, obs = _segment(k4, hypers, (state.learner.params, units), where, obs, seeds)
        last = _act(k5, (state.learner.params, units), obs, where.task.actions)["value"]
        state = _lesson(k5, hypers, state, {name: rows[name] for name in LESSON}, last, where.task.actions)
        agents.append((state.learner.params, units))
        segments.append({name: rows[name] for name in LOGGED})
        if progress:
            progress("collect", min((i + 1) * hypers.envs * hypers.segment, steps), steps)
    whole = {name: np.concatenate([part[name] for part in segments]) for name in LOGGED}  # [T, N, ...]
    return Learned(whole, whole["terminated"] | whole["late"], agents)


LOGGED = ("obs", "action", "logp", "reward", "next_obs", "terminated", "late")
LESSON = ("x", "start", "raw", "raw_logp", "value", "reward", "terminated", "late")


def _warm(key: Key, where: Copies, seeds: np.random.Generator) -> rppo.Scale:
    """The scale of observations and rewards under random actions."""
    obs, reward = [where.reset(np.ones(where.count, bool), _drawn(seeds, where.count))], []
    every = jax.vmap(lambda k: uniform(k, where.task.actions, where.count))(jax.random.split(key, WARM))
    for action in np.asarray(every):
        out = where.step(action)
        obs.append(out.obs)
        reward.append(out.reward)
        over = out.terminated | out.truncated
        if over.any():
            where.reset(over, _drawn(seeds, where.count))
    seen = np.stack(obs).reshape(-1, where.width)
    std = seen.std(0)
    width = np.where(std > STILL, std, 1.0)  # what random actions do not move keeps its units: no trifle is loud
    return rppo.Scale(*map(jnp.asarray, (seen.mean(0), width, max(np.std(reward), STILL))))


def _segment(
    key: Key, hypers: rppo.Hypers, agent: Params, where: Copies, obs: np.ndarray, seeds: np.random.Generator
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows [T, N, ...] of the agent as it is, and what is seen after them."""
    rows, begun = [], np.zeros(where.count, np.float32)
    for t in range(hypers.segment):
        acted = jax.tree.map(np.asarray, _act(jax.random.fold_in(key, t), agent, obs, where.task.actions))
        out = where.step(acted["action"])
        over = out.terminated | out.truncated
        rows.append(
            {
                **acted,
                "obs": obs,
                "start": begun,
                "reward": out.reward,
                "next_obs": out.obs,
                "terminated": out.terminated,
                "late": out.truncated,
            }
        )
        begun = over.astype(np.float32)
        obs = where.reset(over, _drawn(seeds, where.count)) if over.any() else out.obs
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}, obs


@partial(jax.jit, static_argnames="actions")
def _lesson(
    key: Key, hypers: rppo.Hypers, state: rppo.State, rows: Any, last: Array, actions: Box | Discrete
) -> rppo.State:
    rows = {**rows, "logp": rows["raw_logp"], "ended": rows["terminated"]}
    segment, returns, _ = rppo.appraise(hypers, state, rows, last)
    learner, _ = rppo.learn(key, hypers, state, segment, (), actions)
    return state._replace(learner=learner, returns=returns, count=state.count + hypers.epochs * hypers.minibatches)


_act = jax.jit(act, static_argnames="actions")


def _nowhere() -> rppo.Where:
    """The environments are outside: the state of the learner knows nothing of them."""
    return rppo.Where((), Seen(*[jnp.zeros(0)] * 4), (), jnp.zeros(0))


def _drawn(seeds: np.random.Generator, count: int) -> np.ndarray:
    return seeds.integers(0, 2**32, count, dtype=np.uint32)
