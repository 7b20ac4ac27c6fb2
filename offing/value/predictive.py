"""The posterior predictive: a policy rolled out in every world, from starts of the log (SOReL's value)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..data import behaviour
from ..pil import PIL
from ..posterior.walk import watched
from ..types import Array, Dataset, Key, Policy, Posterior, Seen
from .estimate import ValueEstimate, start_variance
from .support import Support, outside

VISITS = 16  # episodes a world whose way is held against the log


class Rollouts(NamedTuple):
    """Episodes of a policy, K in each of M worlds."""

    returns: Array  # [M, K]  undiscounted
    values: Array  # [M, K]  discounted by the task
    lengths: Array  # [M, K]
    first: Array  # [M, K]  which start it began in
    clipped: Array  # [M, K]  share of its steps whose reward was held to the log's range
    guarded: Array  # [M, K]  share of its steps that left what the log knows; all or none if that ends episodes


def rollouts(
    key: Key, policy: Policy, posterior: Posterior, copies: int, sampled: bool = False, path: bool = False
) -> tuple[Rollouts, Any]:
    """`copies` episodes in every world, one hypothesis each, their starts drawn independently.

    With `path` also where they went: observations, actions and whether the episode was still on, [T, M, K, ...].
    """
    shape = (posterior.members, copies)
    k1, k2 = jax.random.split(key)
    first = jax.random.randint(k1, shape, 0, posterior.starts.shape[0])
    step, task = watched(posterior), posterior.task

    def one(carry: Any, at: tuple[Key, Array]) -> tuple[Any, Any]:
        (seen, memory, alive, sums), (key, t) = carry, at
        k1, k2 = jax.random.split(key)
        action, memory = policy.act(policy.params, memory, seen, k1 if sampled else None)
        (obs, reward, ended), clipped, guarded = step(k2, seen.obs, action)
        earned = jnp.where(alive, reward, 0.0)
        sums = Rollouts(
            sums.returns + earned,
            sums.values + task.discount**t * earned,
            sums.lengths + alive,
            sums.first,
            sums.clipped + (alive & clipped),
            sums.guarded + (alive & guarded),
        )
        row = (seen.obs, action, alive) if path else None
        seen = Seen(obs, action, reward, jnp.zeros(shape))
        return (seen, memory, alive & ~ended, sums), row

    zeros = jnp.zeros(shape)
    obs = jnp.asarray(posterior.starts)[first]
    seen = Seen(obs, jnp.zeros((*shape, task.actions.width)), zeros, jnp.ones(shape))
    sums = Rollouts(zeros, zeros, zeros, first, zeros, zeros)
    times = (jax.random.split(k2, task.horizon), jnp.arange(task.horizon))
    carry = (seen, policy.begin(*shape), jnp.ones(shape, bool), sums)
    (_, _, _, sums), rows = jax.lax.scan(one, carry, times)
    share = jnp.minimum(sums.guarded, 1.0) if posterior.terminates else sums.guarded / sums.lengths
    return sums._replace(clipped=sums.clipped / sums.lengths, guarded=share), rows


class Predictive(NamedTuple):
    """What a policy will earn, discounted and not, and how far its episodes strayed from the log."""

    value: ValueEstimate  # discounted
    returns: ValueEstimate  # undiscounted
    length: float
    support: Support


_rollouts = jax.jit(rollouts, static_argnames=("copies", "sampled", "path"))


def predictive(
    key: Key,
    policy: Policy,
    posterior: Posterior,
    data: Dataset,
    own: Posterior | None = None,
    copies: int = 256,
    sampled: bool = False,
    loss: PIL | None = None,
) -> Predictive:
    """The policy's value in the worlds of `posterior`, and how much of its way the log supports.

    `own` are the worlds it was trained in: what it earns more in them is counted as doubt. `loss` is the
    posterior's: it says how much too small the worlds' spread is, and how much of their error they share (wary
    worlds end where a plan could make much of that, so there it is not counted). `data` is the log;
    `posterior.starts` may be a table that repeats its starts.
    """
    k1, k2, k3 = jax.random.split(key, 3)
    run = lambda key, worlds: jax.tree.map(np.asarray, _rollouts(key, policy, worlds, copies, sampled)[0])
    found = run(k1, posterior)
    trained = None if own is None else run(k2, own)
    logged = behaviour(data, posterior.task).mean
    value, returns = estimates(found, trained, posterior, len(data.starts), logged, loss)
    way: Any = _rollouts(k3, policy, posterior, min(copies, VISITS), sampled, path=True)[1]
    support = Support(
        outside=outside(data, *way),
        clipped=float(np.average(found.clipped, weights=found.lengths)),
        guarded=float(found.guarded.mean()),
    )
    return Predictive(value, returns, float(found.lengths.mean()), support)


def estimates(
    found: Rollouts,
    trained: Rollouts | None,
    posterior: Posterior,
    starts: int,
    logged: float,
    loss: PIL | None,
) -> tuple[ValueEstimate, ValueEstimate]:
    """Value and return that episodes in `posterior` come to; `trained` are episodes in the plan's own worlds.

    `starts` is how many the log has, `logged` what its episodes earned.
    """
    task = posterior.task
    span = (1 - task.discount**task.horizon) / (1 - task.discount) if task.discount < 1 else task.horizon
    low, high = float(posterior.low[-1]), float(posterior.high[-1])

    def one(name: str, steps: float) -> ValueEstimate:
        returns = np.asarray(getattr(found, name))
        median = float(np.median(returns.mean(1)))
        gap = 0.0 if trained is None else float(np.median(np.mean(getattr(trained, name), 1))) - median
        return ValueEstimate(
            returns,
            starts=start_variance(returns, np.asarray(found.first) % starts, starts),
            gap=gap,
            common=0.0 if loss is None or posterior.wary else loss.common,
            widen=1.0 if loss is None else float(np.sqrt(max(1.0, loss.e / max(loss.v, 1e-30)))),
            rare=abs(median - steps / task.horizon * logged) / (returns.shape[1] + 1),
            bounds=(min(low * steps, low), max(high * steps, high)),
        )

    return one("values", span), one("returns", task.horizon)
