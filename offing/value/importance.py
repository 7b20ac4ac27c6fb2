"""Importance sampling and doubly robust estimates of a policy's value, from whole episodes.

    w_t = prod over k <= t of exp(clip(log pi(a_k) - log beta(a_k), least, most))
    is  = sum over t of discount^t * sum_i w_it r_it / sum_i w_it              per decision, self-normalised
    dr  = mean over starts of V  +  is with  r + discount * (1 - done) * V(s') - Q(s, a)  for r

(Precup et al., 2000; Jiang & Li, 2016; Thomas & Brunskill, 2016; clipping and nets of Fu et al., 2021). Episodes
are as long as they are: one that truly ended stays in the sums with the weight it ended with and earns nothing
more, one that was cut off leaves them. `alive_only` is the public code's way: weights are normalised among the
episodes still going, so how long the behaviour survived counts, and not how long the policy would.

A deterministic policy has no density: it is judged as if its actions were off by a Gaussian of `smoothing` times
their range, or an even draw so often. Spread: a Bayesian bootstrap over episodes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..hypers import hypers, names
from ..types import Array, BadInput, Box, Dataset, Key, Policy, Task
from ._behaviour import clone
from ._critic import Hypers as Critic
from ._critic import fit
from ._follow import Episodes, Way, add_up, episodes, follow_all, weigh
from ._view import Density, below_one, sample_of, view
from .estimate import Estimate, ValueEstimate
from .pool import Training, memoryless, pooled

HEALTH = {  # what estimates by weighted episodes report beside a value
    "effective": "episodes that count, by their weights, on average over the discounted steps",
    "effective_last": "episodes that count at the last step",
    "episodes": "episodes in the log",
    "clipped": "share of the steps' ratios that were clipped",
    "behaviour_nll": "held-out loss of the cloned behaviour, in nats per row (where the log gives no logp)",
}
FEW = 10  # effective episodes below which an estimate is one of a handful of episodes

Weighed = tuple[Array, Array, Array]  # estimates, effective episodes, share of ratios clipped


@hypers
class Hypers(Training):
    """How ratios are made and added up; the rest is the cloned behaviour's."""

    least: float = -6.0  # of a step's log-ratio
    most: float = 2.0
    smoothing: float = 0.1  # of a deterministic policy: share of the range, or of the choices
    normalise: bool = True
    alive_only: bool = False
    sampled: bool = False
    draws: int = 10  # actions drawn at a step where a mean or a density must be guessed from them
    replicates: int = 200


@hypers
class Doubly(Critic, Hypers):
    """As above, with the critics of FQE."""

    unmasked: bool = False  # the public code's form, which pays for what would come after an end


def _omega(key: Key, hypers: Hypers, count: int) -> Array:
    """Weights of episodes [1 + B, E]: all alike, then one row for each replicate."""
    drawn = jax.random.exponential(key, (hypers.replicates, count))
    return jnp.concatenate([jnp.ones((1, count)), drawn])


@compiled
def _plain(key: Key, hypers: Hypers, way: Way, behaviour: Array, log: Episodes, discounts: Array) -> Weighed:
    """Of every policy: estimates [D, 1 + B] at each discount, effective episodes [T], share of ratios clipped."""
    omega = _omega(key, hypers, log.reward.shape[1])

    def one(way: Way) -> Weighed:
        logw, clipped = weigh(hypers, way.logp - behaviour, log.alive)
        estimates, effective = jax.vmap(lambda d: add_up(hypers, logw, log.reward, log, omega, d))(discounts)
        return estimates, effective[0], clipped

    return jax.lax.map(one, way)


@compiled
def _doubly(
    key: Key, hypers: Doubly, way: Way, behaviour: Array, log: Episodes, reward: Array, discount: Array
) -> Weighed:
    """As `_plain`, of DR and in units of value a step; every replicate has the critic of one member."""
    omega = _omega(key, hypers, log.reward.shape[1])
    mask = jnp.ones_like(log.mask) if hypers.unmasked else log.mask
    turn = jnp.arange(hypers.replicates)

    def one(way: Way) -> Weighed:
        logw, clipped = weigh(hypers, way.logp - behaviour, log.alive)

        def dr(q: Array, v_next: Array, v_first: Array) -> tuple[Array, Array]:
            left = (1 - discount) * reward + discount * mask * v_next - q
            moved, effective = add_up(hypers, logw, left, log, omega, discount)
            return omega @ v_first / omega.sum(1) + moved, effective

        whole, effective = dr(way.q.mean(0), way.v_next.mean(0), way.v_first.mean(0))
        each = jax.vmap(dr)(way.q, way.v_next, way.v_first)[0]  # [M, 1 + B]
        mine = each[turn % each.shape[0], 1 + turn]
        return jnp.concatenate([whole[:1], mine])[None], effective, clipped

    return jax.lax.map(one, way)


@pooled(Hypers())
def importance(
    key: Key, pool: Policy, data: Dataset, task: Task, hypers: Hypers, logp: Array | None = None
) -> list[Estimate]:
    """A policy's value and return by importance sampling; `logp` [N] is the behaviour's, cloned if not given."""
    log = episodes(data, task, "importance sampling")
    k1, k2, k3 = jax.random.split(key, 3)
    behaviour, nll, shared = _behaviour(k1, hypers, data, task, logp)
    scale = view(data, task)[1]
    way = follow_all(k2, hypers, pool, log, scale, None, task.actions)
    discounts = jnp.asarray([task.discount, 1.0], jnp.float32)
    sums, effective, clipped = _plain(k3, hypers, way, behaviour[log.row], log, discounts)
    shared += [*_manner(hypers, pool, task), *_span(log, task)]
    estimates = []
    for i, (value, returns) in enumerate(np.asarray(sums, np.float64)):
        health, notes = _health(np.asarray(effective[i]), float(clipped[i]), log, task.discount, nll)
        estimates.append(Estimate(_spread(value), health, (*shared, *notes), _spread(returns)))
    return estimates


@pooled(Doubly())
def doubly_robust(
    key: Key, pool: Policy, data: Dataset, task: Task, hypers: Doubly, logp: Array | None = None
) -> list[Estimate]:
    """A policy's discounted value: FQE's, corrected by importance sampling of what its critics leave.

    For a policy that remembers, the critics are those of the policy without its memory; they then only lower the
    variance, since the correction follows the memory.
    """
    log, shared = (
        episodes(data, task, "the doubly robust estimate"),
        below_one(task, "the doubly robust estimate"),
    )
    sample, (k1, k2, k3, k4) = sample_of(data, task, log.obs[0]), jax.random.split(key, 4)
    scale, discount = sample.scale, sample.discount
    behaviour, nll, more = _behaviour(k1, hypers, data, task, logp)
    shaken = jnp.asarray(hypers.smoothing, jnp.float32)
    plain = memoryless(pool)
    critics = fit(k2, hypers, plain, sample, task.actions, shaken)
    way = follow_all(k3, hypers, pool, log, scale, critics.params, task.actions)
    sums, effective, clipped = _doubly(
        k4, hypers, way, behaviour[log.row], log, sample.rows.reward[log.row], discount
    )
    shared += [*more, *_manner(hypers, pool, task)]
    estimates = []
    for i, (value,) in enumerate(scale.earns(np.asarray(sums, np.float64)) / (1 - task.discount)):
        health, notes = _health(np.asarray(effective[i]), float(clipped[i]), log, task.discount, nll)
        health["critics_left"] = float(critics.left[i])
        estimates.append(Estimate(_spread(value), health, (*shared, *notes)))
    return estimates


def _behaviour(
    key: Key, hypers: Training, data: Dataset, task: Task, logp: Array | None
) -> tuple[Array, float | None, list[str]]:
    """Log-probabilities of the logged actions [N], how well a clone fits where it was needed, and what to say."""
    if logp is None:
        plain = Training(**{name: getattr(hypers, name) for name in names(Training)})  # one program for all
        cloned = clone(key, plain, data, task)
        return (
            cloned.logp,
            cloned.nll,
            ["the log does not say how likely its actions were: the behaviour was cloned"],
        )
    given = np.asarray(logp, np.float32)
    if given.shape != (len(data.episode),):
        raise BadInput(f"logp: shape {given.shape} where one number per row, ({len(data.episode)},), was expected")
    bad = ~np.isfinite(given[: data.rows])
    if bad.any():
        raise BadInput(f"logp, row {int(bad.argmax())}: {given[bad.argmax()]} is not the logarithm of a chance")
    return jnp.asarray(given), None, []


def _manner(hypers: Hypers, pool: Policy, task: Task) -> list[str]:
    """How the policy's density came about."""
    share = f"{float(hypers.smoothing):g}"
    box = isinstance(task.actions, Box)
    if not hypers.sampled:
        off = f"off by a Gaussian of {share} of their range" if box else f"an even draw {share} of the time"
        return [f"the policy is deterministic: judged as if its actions were {off}"]
    if isinstance(pool.act, Density):
        return []
    return [f"the policy does not say how likely it is to act: guessed from {hypers.draws} draws at every step"]


def _span(log: Episodes, task: Task) -> list[str]:
    times = log.reward.shape[0]
    if times >= task.horizon or not np.any(log.mask[-1]):  # or every episode truly ended
        return []
    return [
        f"no logged episode is longer than {times} steps: what {task.horizon} steps earn after that is left out"
    ]


def _health(
    effective: np.ndarray, clipped: float, log: Episodes, discount: float, nll: float | None
) -> tuple[dict[str, float], list[str]]:
    """Effective episodes on average over the discounted steps and at the last one; shares; and what to say."""
    worth = discount ** np.arange(len(effective))
    mean = float(np.sum(worth * effective) / worth.sum())
    health = {
        "effective": mean,
        "effective_last": float(effective[-1]),
        "episodes": float(log.reward.shape[1]),
        "clipped": clipped,
    }
    if nll is not None:
        health["behaviour_nll"] = nll
    few = f"the weights are those of {mean:.1f} of {log.reward.shape[1]} episodes: do not trust the figure"
    return health, [few] if mean < FEW else []


def _spread(estimates: np.ndarray) -> ValueEstimate:
    """An estimate and its replicates [1 + B], as one whose median is the estimate and whose worlds are those."""
    point, replicates = estimates[0], estimates[1:]
    return ValueEstimate((point + replicates - np.median(replicates))[:, None])
