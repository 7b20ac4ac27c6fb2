"""Policies of spread quality, made to judge judges by: poor, middling and expert, none of them by worlds.

They may have seen the true environment, since they are not what is on trial. Four kinds, a task at a time:

    online    one run of PPO in the true environment, looked at from its first update to its last
    shaken    the best of those, its weights off by more and more
    hand      controllers that somebody wrote, their gains varied
    offline   cloning, IQL and ReBRAC on a log that is used for nothing else
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import offing
from offing import planner as planners
from offing.online import learner
from offing.online.collect import collect
from offing.online.copies import copies
from offing.planner import rppo
from offing.report.store import pack, unpack, write
from offing.types import Array, Box, Dataset, Discrete, Key, Memory, Planner, Policy, Posterior, Seen, Task, Tree

from .hands import GAINS, Hand, hands

OWN_LOG = 99  # seed of the log that the offline policies learn from
SEED = 7
STEPS = {"pendulum": 160_000, "cartpole": 25_000}  # of the online run
TOGETHER = {"pendulum": 16, "cartpole": 4}  # episodes that it learns from at once: few, where it learns in no time
WIDTH = {"pendulum": 3, "cartpole": 4}  # of the observations
LOOKS = 12
SHAKES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0)  # in standard deviations of each layer's weights
OFFLINE: dict[str, list[dict[str, float]]] = {
    "bc": [{}],
    "iql": [{"beta": 3.0, "expectile": 0.7}, {"beta": 10.0, "expectile": 0.9}, {"beta": 30.0, "expectile": 0.9}],
    "rebrac": [{"actor_bc": bc, "critic_bc": 0.01} for bc in (0.003, 0.03, 0.1, 0.3)],
}
SMALL = {"updates": 3_000, "width": 64, "depth": 2, "batch_size": 256, "lr": 1e-3}


class Member(NamedTuple):
    """A policy of a pool, and where it comes from."""

    name: str
    policy: Policy


@dataclass(frozen=True)
class Agent:
    """How the online learner's parameters are read: amounts are squashed into their box, as it learned them."""

    actions: Box | Discrete

    def __call__(self, params: Any, memory: Memory, seen: Seen, key: Key | None) -> tuple[Array, Memory]:
        net, units = params
        raw = rppo.choose(key, net, rppo.speak(net, rppo.look(net, units, seen, self.actions))[0], self.actions)
        if isinstance(self.actions, Discrete):
            return raw, memory
        low, high = (jnp.array(edge) for edge in self.actions)
        return (low + high) / 2 + (high - low) / 2 * jnp.tanh(raw), memory


def make(task: str) -> list[Member]:
    """The pool of a task, each kind after the other."""
    log = offing.load(collect(f"gymnax-{task}-random", 20_000, OWN_LOG))
    written = [Member(f"hand-{i}", policy) for i, policy in enumerate(hands(task))]
    return [*online(task), *written, *offline(log.data, log.task)]


def online(task: str) -> list[Member]:
    """Checkpoints of a run, and the last of them with its weights shaken."""
    with ExitStack() as stack:
        run = learner.learn(copies(stack, task, TOGETHER[task], STEPS[task]), STEPS[task], SEED)
        act = Agent(copies(stack, task, 1, 1_000).task.actions)
    first = max(1, len(run.agents) // 16)  # an agent that has hardly begun to learn is like any other
    looks = np.unique(np.geomspace(first, len(run.agents), LOOKS).round().astype(int)) - 1
    members = [Member(f"online-{i + 1}", Policy(run.agents[i], (), act)) for i in looks]
    best = run.agents[-1]
    for i, by in enumerate(SHAKES):
        net = shaken(jax.random.key(i), best[0], by)
        members.append(Member(f"shaken-{by:g}", Policy((net, best[1]), (), act)))
    return members


def shaken(key: Key, net: Tree, by: float) -> Tree:
    """The weights with noise of `by` times each leaf's own standard deviation."""
    leaves, structure = jax.tree.flatten(net)
    keys = jax.random.split(key, len(leaves))
    off = [
        leaf + by * jnp.std(leaf) * jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, off)


def setting_of(name: str) -> tuple[Planner, Any]:
    """The planner and the setting that an offline member's name means."""
    planner, _, place = name.partition("-")
    found = planners.get(planner)
    return found, found.Hypers(**SMALL, **OFFLINE[planner][int(place)])


def _never(*_: object) -> Any:
    """The worlds of planners that look at none."""
    raise AssertionError("asked")


def offline(data: Dataset, task: Task) -> list[Member]:
    """What planners learn from rows alone, at a few settings each."""
    blank = np.zeros(data.steps.obs.shape[1] + 1, np.float32)
    nowhere = Posterior((), data.starts, blank, blank, _never, task)
    members = []
    for name in (f"{planner}-{i}" for planner, settings in OFFLINE.items() for i in range(len(settings))):
        planner, hypers = setting_of(name)
        state = _train(jax.random.key(SEED), hypers, data, nowhere, planner)
        members.append(Member(name, planner.policy(hypers, state, task)))
    return members


@partial(jax.jit, static_argnames="planner")
def _train(key: Key, hypers: Any, data: Dataset, worlds: Posterior, planner: Planner) -> Tree:
    first, rest = jax.random.split(key)
    state = planner.init(first, hypers, data, worlds)
    one = lambda state, k: (planner.update(k, hypers, state, data, worlds)[0], None)
    return jax.lax.scan(one, state, jax.random.split(rest, hypers.updates))[0]


# ---- on disk


def keep(path: Path, pool: Sequence[Member]) -> None:
    """The parameters of a pool by name, so that it can be judged and played elsewhere."""
    leaves = {
        f"{member.name}|{j}": np.asarray(leaf, np.float32)
        for member in pool
        for j, leaf in enumerate(jax.tree.leaves(member.policy.params))
    }
    write(path, pack(leaves))


def fetch(path: Path, task: str, given: Task) -> list[Member]:
    """The pool that `keep` left there, in its order."""
    arrays, members = unpack(path), []
    for name in dict.fromkeys(each.split("|")[0] for each in arrays):
        empty = blank(name, task, given)
        structure = jax.tree.structure(empty.params)
        leaves = [jnp.asarray(arrays[f"{name}|{j}"]) for j in range(structure.num_leaves)]
        members.append(Member(name, replace(empty, params=jax.tree.unflatten(structure, leaves))))
    return members


def blank(name: str, task: str, given: Task) -> Policy:
    """A policy of that kind's shape which has learned nothing."""
    kind = name.split("-")[0]
    if kind == "hand":
        return Policy(jnp.zeros(len(GAINS[task][0])), (), Hand(task))
    if kind in OFFLINE:
        planner, hypers = setting_of(name)
        return planner.blank(hypers, WIDTH[task], given)
    empty = rppo.blank(learner.LEARNER, WIDTH[task], given)
    return replace(empty, act=Agent(given.actions))
