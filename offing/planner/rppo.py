"""Recurrent PPO in worlds drawn from a posterior: SOReL's solver (Schulman et al., 2017; Duan et al., 2016).

    J = E[ min(w A, clip(w, 1 - c, 1 + c) A) ] - value_weight * E[(V - G)^2] + entropy * H[pi],   w = pi / pi_old

over segments of episodes, each of which stays in the world it started in. The policy sees its own last action
and reward, and remembers: what it has seen of a world tells it which one it is in (the paper's Bayes-adaptive
policy). A is generalised advantage estimation. The first share `burn_in` of a segment only warms the memory up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp

from ..hypers import draw, grid, groups
from ..optim import start
from ..types import Array, Dataset, Key, Planner, Policy, Posterior, Seen, Task
from . import _memory
from ._arena import Arena, Guide, Rows, State, Where, begun_along, dream, gather
from ._episodes import states_along
from ._parts import Scale, place, scale_of, unplace
from ._ppo import Hypers, Segment, advised, appraise, learn, loss
from ._recurrent import (
    Act,
    Net,
    blank,
    choose,
    features,
    log_prob,
    look,
    net_init,
    policy_of,
    speak,
)

__all__ = [  # what else trains a recurrent policy, online too, builds with
    "Act",
    "Arena",
    "Hypers",
    "Net",
    "Scale",
    "Segment",
    "State",
    "Where",
    "appraise",
    "begin_in",
    "blank",
    "choose",
    "dream",
    "features",
    "gather",
    "learn",
    "lesson",
    "log_prob",
    "look",
    "loss",
    "net_init",
    "place",
    "planner",
    "speak",
    "unplace",
]

STATES = 1_024  # along logged episodes, where imagined ones may begin
SHARP = 1.0  # how much more often those of an episode that earned a standard deviation more
FRESH = 100  # imagined steps for every logged one, before a plan is asked whether it still gains
BRIEFEST = 2_000_000  # steps that are planned however few rows there are
LEAST_STD = 0.2  # of actions, for a plan that begins at a clone: it has to try something


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
    return policy_of(state.learner.params, state.scale, hypers, task)


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


def update_in(key: Key, hypers: Hypers, state: State, arena: Arena, task: Task) -> tuple[State, dict[str, Array]]:
    """One segment in any arena, and what was learned from it."""
    return lesson(key, hypers, state, arena, task)[:2]


def lesson(
    key: Key, hypers: Hypers, state: State, arena: Arena, task: Task
) -> tuple[State, dict[str, Array], Rows]:
    """One segment, `epochs` times `minibatches` gradient steps on it, and its rows [T, N, ...]."""
    k1, k2 = jax.random.split(key)
    before = state.where.memory
    where, rows, last = gather(k1, hypers, state, arena, task)
    segment, returns, earned = appraise(hypers, state, rows, last)
    segment, guide = advised(hypers, state.guide, segment, rows)
    learner, losses = learn(k2, hypers, state, segment, before, task.actions)
    count = state.count + hypers.epochs * hypers.minibatches
    metrics = {"reward": earned, "loss": losses.mean()}
    return State(learner, state.scale, where, count, returns, guide), metrics, rows


# ---- beginning at, or held near, a policy that is there already


def guided(net: Net) -> Planner:
    """The planner with a guide: a clone of the behaviour, or a plan that is to go on.

    It begins there if `begun`, is held near it by `near`, and begins some of its episodes `along` logged ones.
    """

    def init_(key: Key, hypers: Hypers, data: Dataset, posterior: Posterior) -> State:
        """A planner that begins at its guide or at nets of its own."""
        k1, k2 = jax.random.split(key)
        states = states_along(k2, data, STATES, SHARP)
        arena = begun_along(dream(hypers, posterior), states, hypers.along)
        state = begin_in(k1, hypers, scale_of(data), arena, posterior.task)
        bold = net._replace(log_std=jnp.maximum(net.log_std, jnp.log(LEAST_STD)))
        first = jax.tree.map(lambda a, b: jnp.where(hypers.begun > 0.5, a, b), bold, state.learner.params)
        guide = Guide(bold, states, jnp.zeros(posterior.members))
        where = state.where._replace(guided=state.where.memory)
        return state._replace(learner=start(first), where=where, guide=guide)

    def update_(
        key: Key, hypers: Hypers, state: State, data: Dataset, posterior: Posterior
    ) -> tuple[State, dict[str, Array]]:
        """One segment, some of whose episodes begin along logged ones, and the gradient steps on it."""
        del data
        states = state.guide.states if isinstance(state.guide, Guide) else jnp.zeros((0, 0))
        arena = begun_along(dream(hypers, posterior), states, hypers.along)
        return update_in(key, hypers, state, arena, posterior.task)

    return replace(planner, init=init_, update=update_)


def variants(settings: Sequence[Hypers]) -> list[Hypers]:
    """The settings as they are, and for every shape among them: begun at the guide, held near it loosely and
    tightly with more weight on bad worlds, and begun along the log with nets of its own.
    """
    widened = list(settings)
    for group in groups(settings):
        base = max(group.settings, key=lambda s: (s.discount, -s.lr))
        begun = replace(base, begun=1.0, along=0.25)
        widened += [begun, replace(begun, near=0.1), replace(begun, near=1.0, risk=0.5), replace(base, along=0.5)]
    return list(dict.fromkeys(widened))


def label(setting: Hypers) -> str:
    """What a setting is called among candidates."""
    if setting.near:
        return "rppo held near the clone"
    if setting.begun:
        return "rppo begun at the clone"
    return "rppo begun along the log" if setting.along else "rppo"


def paced(hypers: Hypers, rows: int) -> Hypers:
    """The setting for a log of so many rows: a short log supports no long plan; one that still gains goes on."""
    return replace(hypers, steps=min(hypers.steps, max(BRIEFEST, FRESH * rows)))


# ---- settings


# The paper's final settings, task by task (its table of BAMDP solvers); the core is its GRU.
PAPER = {
    "cartpole": Hypers(
        envs=4, segment=128, steps=500_000, epochs=4, minibatches=4, width=64, core="gru", entropy=0.01
    ),
    "pendulum": Hypers(core="gru"),
    "halfcheetah": Hypers(envs=512, steps=50_000_000, width=256, core="gru"),
    "hopper": Hypers(
        envs=512,
        segment=32,
        steps=50_000_000,
        epochs=2,
        minibatches=8,
        width=256,
        core="gru",
        discount=0.998,
        trace=0.8,
        clip=0.3,
        entropy=0.001,
        norm=1.0,
    ),
    "walker2d": Hypers(
        envs=512,
        steps=50_000_000,
        epochs=4,
        minibatches=8,
        width=256,
        core="gru",
        discount=0.995,
        entropy=0.001,
    ),
}

# The ranges that its sweep draws from; those of shapes are left to the base setting, one program for all.
SWEEP: dict[str, tuple[float, ...]] = {
    "lr": (1e-4, 3e-4),
    "discount": (0.99, 0.995, 0.998),
    "trace": (0.8, 0.9, 0.95),
    "clip": (0.2, 0.3),
    "entropy": (0.0, 0.001, 0.01),
    "norm": (0.5, 1.0),
}

# For tasks of a few dimensions on a CPU: small nets, many short segments, a bold rate that is annealed.
SMALL = Hypers(
    envs=64, segment=64, steps=300_000, epochs=4, minibatches=4, width=64, lr=1e-3, entropy=0.003, first_std=0.6
)
TINY = replace(SMALL, envs=8, segment=8, steps=512, epochs=1, minibatches=2, width=8)
# For tasks of the size of Brax's on a GPU.
LARGE = Hypers(envs=512, segment=64, steps=20_000_000, epochs=4, minibatches=8, width=256, first_std=0.6)


planner = Planner(
    name="rppo",
    words="recurrent PPO in the posterior's worlds: SOReL's own solver",
    Hypers=Hypers,
    init=init,
    update=update,
    policy=policy,
    blank=blank,
    reports=("reward", "loss"),
    spaces={
        "smoke": lambda: grid(TINY, lr=(1e-3, 3e-3)),
        "quick": lambda: grid(SMALL, lr=(1e-3, 3e-3), discount=(0.97, 0.99)),
        "standard": lambda: grid(
            replace(SMALL, steps=600_000), core=("linear", "none"), lr=(1e-3, 3e-3), discount=(0.97, 0.99)
        ),
        # Discounts up to the paper's for Hopper: at 0.99 a fall after 300 steps costs next to nothing. At half of
        # the steps plans still improve.
        "large": lambda: grid(
            replace(LARGE, steps=12_000_000, width=128),
            core=("linear", "none"),
            lr=(3e-4, 1e-3),
            discount=(0.99, 0.995, 0.998),
        ),
        "paper": lambda: list(dict.fromkeys(draw(0, LARGE, 24, **SWEEP)))[:16],
    },
    remembers=True,
    label=label,
    candidate=("smoke", "quick", "standard", "large", "paper"),
    paced=paced,
)
