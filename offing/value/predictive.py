"""The posterior predictive: a policy rolled out in every world, from starts of the log (SOReL's value)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..data import behaviour
from ..data.extremes import beyond
from ..pil import PIL
from ..posterior.walk import Place, fixed, memories, steps_worth
from ..types import Array, Dataset, Key, Memory, Policy, Posterior, Seen, Task
from ._foreign import is_host, living
from .checks import Checks, check
from .estimate import Errors, ValueEstimate, corrected, start_variance
from .foreign import validate_actions
from .support import Support, outside

COMMON = 2.0  # times a plan's use of errors of its own worlds that its use of shared ones may be, at most
VISITS = 16  # episodes a world whose way is held against the log
TOGETHER = 64  # episodes a world that a program plays: more are played by calling it again


class Rollouts(NamedTuple):
    """Episodes of a policy, K in each of M worlds."""

    returns: Array  # [M, K]  undiscounted
    values: Array  # [M, K]  discounted by the task
    lengths: Array  # [M, K]
    first: Array  # [M, K]  which start it began in
    clipped: Array  # [M, K]  share of its steps whose reward was held to the log's range
    guarded: Array  # [M, K]  share of its steps that left what the log knows; all or none if that ends episodes
    steps_left: Array  # [M, K]  of unknown worth: what ended episodes had left, or those beyond the log
    worth_left: Array  # [M, K]  the same, discounted
    paid_left: Array  # [M, K]  what these are counted as: those of ended episodes as nothing
    valued_left: Array  # [M, K]  the same, discounted


class Walk(NamedTuple):
    """Episodes between two steps."""

    seen: Seen
    memory: Memory  # of the worlds [M, K, ...]
    alive: Array  # [M, K]
    sums: Rollouts


def rollouts(
    key: Key, policy: Policy, posterior: Posterior, copies: int, sampled: bool = False, path: bool = False
) -> tuple[Rollouts, Any]:
    """`copies` episodes in every world, one hypothesis each, their starts drawn independently.

    With `path` also where the first VISITS of each world went: observations, actions and whether the episode was
    still on, [T, M, VISITS, ...].
    """

    def one(carry: Any, at: tuple[Key, Array]) -> tuple[Any, Any]:
        (walk, memory), (key, t) = carry, at
        k1, k2 = jax.random.split(key)
        action, memory = policy.act(policy.params, memory, walk.seen, k1 if sampled else None)
        row = _few(walk.seen.obs, action, walk.alive) if path else None
        return (moved(k2, posterior, walk, action, t), memory), row

    walk, keys = begun(key, posterior, copies)
    carry = (walk, policy.begin(*walk.alive.shape))
    (walk, _), rows = jax.lax.scan(one, carry, (keys, jnp.arange(len(keys))))
    return ended(posterior, walk), rows


def _few(obs: Array, action: Array, alive: Array) -> tuple[Array, Array, Array]:
    return obs[:, :VISITS], action[:, :VISITS], alive[:, :VISITS]


def begun(key: Key, posterior: Posterior, copies: int) -> tuple[Walk, Key]:
    """Episodes before their first step, and a key for each step."""
    shape, task = (posterior.members, copies), posterior.task
    k1, k2 = jax.random.split(key)
    first = jax.random.randint(k1, shape, 0, posterior.starts.shape[0])
    zeros = jnp.zeros(shape)
    obs = jnp.asarray(posterior.starts)[first]
    seen = Seen(obs, jnp.zeros((*shape, task.actions.width)), zeros, jnp.ones(shape))
    sums = Rollouts(zeros, zeros, zeros, first, *(zeros,) * 6)
    walk = Walk(seen, memories(posterior, copies), jnp.ones(shape, bool), sums)
    return walk, jax.random.split(k2, task.horizon)


def moved(key: Key, posterior: Posterior, walk: Walk, action: Array, t: Array | int) -> Walk:
    """Every episode one step on, by the world that it is in."""
    seen, memory, alive, sums = walk
    place, drawn = fixed(posterior)(key, Place(seen.obs, memory), action)
    reward, clipped, guarded = drawn.reward, drawn.clipped, drawn.out_of_support
    earned, task = jnp.where(alive, reward, 0.0), posterior.task
    now, left = task.discount**t, alive & guarded
    if posterior.terminates:
        steps, worth, paid = task.horizon - 1 - t, steps_worth(task.discount, task.horizon - 1 - t), 0.0
        worth = task.discount ** (t + 1) * worth
    else:
        steps, worth, paid = 1, now, earned
    sums = Rollouts(
        sums.returns + earned,
        sums.values + now * earned,
        sums.lengths + alive,
        sums.first,
        sums.clipped + (alive & clipped),
        sums.guarded + left,
        sums.steps_left + left * steps,
        sums.worth_left + left * worth,
        sums.paid_left + left * paid,
        sums.valued_left + left * now * paid,
    )
    seen = Seen(place.obs, action, reward, jnp.zeros(alive.shape))
    return Walk(seen, place.memory, alive & ~drawn.terminated, sums)


def ended(posterior: Posterior, walk: Walk) -> Rollouts:
    """What came of the episodes; steps as shares of their length."""
    sums = walk.sums
    share = jnp.minimum(sums.guarded, 1.0) if posterior.terminates else sums.guarded / sums.lengths
    return sums._replace(clipped=sums.clipped / sums.lengths, guarded=share)


_rollouts = compiled(rollouts, static_argnames=("copies", "sampled", "path"))
_begun = compiled(begun, static_argnames="copies")
_moved = compiled(moved)


def hosted(
    key: Key, policy: Policy, posterior: Posterior, copies: int, path: bool = False
) -> tuple[Rollouts, Any]:
    """As `rollouts`, of a policy that only the host can ask: once a step, for all episodes of all worlds."""
    walk, keys = _begun(key, posterior, copies)
    memory, rows = policy.begin(*walk.alive.shape), []
    for t, k in enumerate(jax.vmap(lambda key: jax.random.split(key)[1])(keys)):
        alive = np.asarray(walk.alive)
        if not alive.any():
            break
        seen = walk.seen._replace(obs=living(walk.seen.obs, alive))
        action, memory = policy.act(policy.params, memory, seen, None)
        if path:
            rows.append(tuple(np.array(part) for part in _few(seen.obs, action, alive)))  # and not all of it
        walk = _moved(k, posterior, walk, action, t)
    return ended(posterior, walk), tuple(np.stack(each) for each in zip(*rows, strict=True))


def rolled(
    key: Key, policy: Policy, posterior: Posterior, copies: int, sampled: bool = False, path: bool = False
) -> tuple[Rollouts, Any]:
    """`rollouts`, compiled where the policy can be."""
    if is_host(policy):
        return hosted(key, policy, posterior, copies, path)
    return _rollouts(key, policy, posterior, copies, sampled, path)


def played(
    key: Key, policy: Policy, posterior: Posterior, copies: int, sampled: bool = False
) -> tuple[Rollouts, tuple[Array, Array, Array]]:
    """`copies` episodes in every world, on the host, and where the first few went.

    One program serves however many: it is called again for each TOGETHER of them.
    """
    parts = [copies] if is_host(policy) else [min(TOGETHER, copies - i) for i in range(0, copies, TOGETHER)]
    each = [rolled(jax.random.fold_in(key, i), policy, posterior, n, sampled, True) for i, n in enumerate(parts)]
    sums = jax.tree.map(lambda *leaves: np.concatenate(leaves, 1), *(one for one, _ in each))
    return sums, each[0][1]


def prepare(key: Key, policy: Policy, posterior: Posterior, copies: int) -> None:
    """Compiles what `played` will run for policies of that kind."""
    if not is_host(policy):
        _rollouts.lower(key, policy, posterior, min(TOGETHER, copies), False, True).compile()


class Predictive(NamedTuple):
    """What a policy will earn, discounted and not, and how far its episodes strayed from the log."""

    value: ValueEstimate  # discounted
    returns: ValueEstimate  # undiscounted
    length: float
    support: Support
    checks: Checks | None = None  # how predictions of this kind have held where they could be checked
    ends: bool = True  # whether an episode that leaves what the log knows is over, and all that may follow counted


def predictive(
    key: Key,
    policy: Policy,
    posterior: Posterior,
    data: Dataset,
    own: Posterior | None = None,
    copies: int = 256,
    loss: PIL | None = None,
    past: Past | None = None,
) -> Predictive:
    """The policy's value in the worlds of `posterior`, and how much of its way the log supports.

    `own` are the worlds it was trained in: what it earns more in them is counted as doubt. `loss` is the
    posterior's: it says how much of their error worlds share. `past` says how predictions of the log's own
    behaviour have held; without it, single steps say how much too small the worlds' spread is. `data` is the log;
    `posterior.starts` may be a table that repeats its starts.
    """
    k1, k2 = jax.random.split(key)
    imagined, way = played(k1, policy, posterior, copies)
    trained = None if own is None else played(k2, policy, own, copies)[0]
    value, returns = estimates(imagined, trained, posterior, known_of(data, posterior.task, loss, past))
    validate_actions(policy, *way)
    support = Support(
        outside=outside(data, *way),
        clipped=float(np.average(imagined.clipped, weights=imagined.lengths)),
        guarded=float(imagined.guarded.mean()),
    )
    checks = None if past is None else past.checks
    return Predictive(value, returns, float(imagined.lengths.mean()), support, checks, posterior.terminates)


class Paid(NamedTuple):
    """Least and most that a step of the log earned: inside episodes, and as the last of one."""

    low: float
    high: float
    last_low: float
    last_high: float
    beyond: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)  # from these to the true least and most

    def bounds(self, steps: float, terminates: bool) -> tuple[float, float]:
        """Least and most that an episode of so many steps can add up to; a shorter one, where episodes can end."""
        rest = max(steps - 1, 0.0)
        below, above, last_below, last_above = self.beyond
        last_low, last_high = self.last_low + last_below, self.last_high + last_above
        low, high = (self.low + below) * rest + last_low, (self.high + above) * rest + last_high
        return (min(low, last_low), max(high, last_high)) if terminates else (low, high)


def paid(data: Dataset, task: Task) -> Paid:
    """What steps of a log earned. What is paid once, as an episode ends, is not paid at every step."""
    rows = data.rows
    reward, episode = np.asarray(data.steps.reward, np.float64)[:rows], np.asarray(data.episode)[:rows]
    last = np.asarray(data.steps.done)[:rows] > 0
    if episode[0] >= 0:
        first = np.r_[True, episode[1:] != episode[:-1]]
        begins = np.maximum.accumulate(np.where(first, np.arange(rows), 0))
        last |= np.arange(rows) - begins + 1 >= task.horizon
    inside = reward[~last] if (~last).any() else reward
    further = (*beyond(inside), *beyond(reward))  # an episode may also end as any step went
    return Paid(float(inside.min()), float(inside.max()), float(reward.min()), float(reward.max()), further)


class Past(NamedTuple):
    """How predictions of the log's own behaviour have held, and what they were off by."""

    checks: Checks
    errors: Errors | None = None  # of the worlds that judge
    own: Errors | None = None  # of those that a plan was trained in


class Known(NamedTuple):
    """What is known beside imagined episodes."""

    starts: int  # that the log has
    logged: float  # what its episodes earned
    paid: Paid
    loss: PIL | None
    past: Past


def known_of(data: Dataset, task: Task, loss: PIL | None = None, past: Past | None = None) -> Known:
    """What the log knows beside imagined episodes; where nothing of the past is known, single steps say it."""
    return Known(
        len(data.starts), behaviour(data, task).mean, paid(data, task), loss, past or Past(check((), loss))
    )


def estimates(
    episodes: Rollouts, trained: Rollouts | None, posterior: Posterior, known: Known
) -> tuple[ValueEstimate, ValueEstimate]:
    """Value and return that episodes in `posterior` come to; `trained` are episodes in the plan's own worlds."""
    task, (checks, errors, own) = posterior.task, known.past

    def bare(rolled: Rollouts, name: str, errors: Errors | None, bounds: tuple[float, float]) -> ValueEstimate:
        plain = ValueEstimate(np.clip(np.asarray(getattr(rolled, name)), *bounds), bounds=bounds)
        return plain if errors is None else corrected(plain, getattr(errors, name), errors.folds)

    def one(name: str, left: Array, got: Array, steps: float) -> ValueEstimate:
        bounds = known.paid.bounds(steps, posterior.terminates)  # no episode adds up to more, whatever worlds say
        held = bare(episodes, name, errors, bounds)
        unknown, counted = (float(np.mean(np.asarray(each))) for each in (left, got))
        gap, widen = 0.0, checks.factor
        if trained is not None:
            inside = bare(trained, name, own, bounds)
            gap = inside.median - held.median
            widen = checks.including(gap / max(np.sqrt(held.spread + inside.spread), 1e-12))
        return held._replace(
            starts=start_variance(held.returns, np.asarray(episodes.first) % known.starts, known.starts),
            gap=gap,
            common=0.0 if known.loss is None else min(known.loss.common, COMMON),
            widen=widen,
            rare=abs(held.median - steps / task.horizon * known.logged) / (held.returns.shape[1] + 1),
            less=min(known.paid.low * unknown - counted, 0.0),
            more=max(known.paid.high * unknown - counted, 0.0),
        )

    span = float(steps_worth(task.discount, task.horizon))
    values = one("values", episodes.worth_left, episodes.valued_left, span)
    return values, one("returns", episodes.steps_left, episodes.paid_left, task.horizon)
