"""Randomised-prior Gaussian ensemble: a log in, a stack of worlds out (Osband et al., 2018; Chua et al., 2018).

World m predicts y, the change of state and the reward, in units of the log's own scale:

    y | x ~ N(linear * B x + f_m(x) + prior_scale * gain * p_m(x), exp(xi_m(x))),    p_m drawn at random and frozen

    loss_m = E_i w_m(i) sum_d [ (y_d + jitter * e_m(i) - mean_d)^2 / exp((1 - beta) * xi_d)    to the mean
                                + xi_d + (y_d + ... - mean_d)^2 / exp(xi_d) ]                to the variance
             + clamp * sum_d (xi_max - xi_min)  +  ridge / rows * |f_m|^2

with B the least-squares map of the fold's rows, a prior mean from which the nets need learn only what bends; xi
softly clamped; where a column of the state stops at a wall (`stops`) the mean may lie beyond it at no cost, and
is read no further than the wall; w_m the weights of a Bayesian bootstrap over episodes, and e_m a fixed draw of
target noise. The two halves of the likelihood are kept apart: the variance reads the mean's features and does not
shape them, or else rows that are hard to fit are called noise and left alone (Seitzer et al., 2022). With
linear f and p, jitter at the noise's size and ridge at the prior's precision, the members are exact draws
from the conjugate posterior; the tests hold them to `linear.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Split, ranges
from ..hypers import hypers
from ..nets import Layer, cross_entropy, dense, hidden, hidden_half, mlp, mlp_init, student_nll
from ..optim import Adam, Learner, adam, cosine, descend, start
from ..types import Array, Dataset, Key, Posterior, Task
from ._head import Batch, head_loss, residual
from ._known import Known, gain_of, learned_from, least_squares, measure, stops
from ._levels import levels
from ._world import Theta, World, ending, gaussian

ROUNDS = 20  # how often a member is compared with its best so far
CHUNK = 50  # updates whose minibatches are gathered at once: keeps random numbers and gathers off the hot path
UNROLL = {"gpu": 10}  # updates to a turn of the loop: fewer launches on a GPU, only longer compilation elsewhere
HALF = {"gpu": True}  # where gradients of hidden layers are kept in bfloat16
BLOCK = 8_192  # rows that priors are read on at once: all of a long log, for all members, would not fit a GPU
ROOM = 0.1  # widths of the log's range by which a state may leave it
ENDS = (64, 64)  # hidden sizes of the termination head


@hypers
class Hypers:
    """phi_I, the model, and phi_II, the inference. Sizes and rates: the paper's table for Brax and D4RL."""

    width: int = 200
    depth: int = 3
    activation: str = "relu"
    batch_size: int = 256
    updates: int = 20_000
    lr: float = 1e-3
    rates: tuple[float, ...] = (1.0,)  # times lr that `choose_posterior` tries, before all else
    span: float = 1.0  # members' own rates lie between lr / span and lr * span
    final_lr: float = 0.1  # of lr, at the end of the cosine
    decay: float = 2.5e-5
    clamp: float = 0.01
    beta: float = 1.0  # 0: rows count by their likelihood; 1: every row counts alike
    floor: float = 0.01  # least standard deviation, relative to the target's
    linear: float = 1.0  # weight of the least-squares map that the nets start from: 0 as in the paper
    members: int = 10  # worlds per fold
    elites: int = 8  # of them kept, by held-out likelihood
    folds: int = 2  # disjoint sets of episodes: one to plan in, one to judge in
    own: float = 1.0  # share of a member's initial weights that is its own: 1 as in the paper, 0 all start alike
    shared: float = 0.0  # share of a minibatch's rows that all members see: 0 none, 1 all
    prior_scale: float = 0.0
    bootstrap: float = 0.0  # 0: all episodes count alike; 1: Bayesian bootstrap over episodes
    jitter: float = 0.0  # target noise, relative to the target's scale
    ridge: float = 0.0  # prior precision of the trained weights


TRAINED = ("net", "low", "high", "ends")


class Fitted(NamedTuple):
    """What one fit leaves behind: its elite worlds, and how they came about."""

    theta: Theta  # [F * elites, ...]
    nll: Array  # [F, members]  held-out negative log-likelihood of each member at its best
    best: Array  # [F, members]  the round it was best in, from 0 to ROUNDS - 1
    curve: Array  # [ROUNDS]  mean held-out negative log-likelihood


def geared(params: Any, gain: Array | float) -> Any:
    """The trained parts with the means that the net says in units of `gain` [S + 1]."""
    *rest, last = params["net"]
    means = jnp.ones(last.bias.shape[0] // 2)  # as many log-variances follow, in their own units
    gains = jnp.concatenate([means * gain, means])
    return {**params, "net": (*rest, Layer(last.weight * gains[:, None], last.bias * gains))}


def loss(
    params: Any, theta: Theta, hypers: Hypers, b: Batch, rows: Array, gain: Array | float = 1.0
) -> tuple[Array, None]:
    """One member's loss on its own minibatch; `params` are the trained parts of `theta`, in units of `gain`."""
    theta = theta._replace(**geared(params, gain))
    through = hidden_half if HALF.get(jax.default_backend()) else hidden
    features = through(theta.net, b.x, hypers.activation)
    total = head_loss(theta.net[-1], theta.low, theta.high, features, b, hypers.beta, theta.floor)
    total += hypers.clamp * jnp.sum(theta.high - theta.low)
    total += hypers.ridge / rows * sum(jnp.sum(jnp.square(layer.weight)) for layer in theta.net)
    if theta.ends:
        total += jnp.mean(b.weight * cross_entropy(ending(theta, b.x, b.next_obs), b.done))
    return total, None


def score(params: Any, theta: Theta, hypers: Hypers, b: Batch) -> Array:
    """Held-out negative log-likelihood of one member, in nats a row, over the rows that `weight` marks: of change
    and reward, and of ends [2].

    That of change and reward has Student's tails. A row that no world foretells, a collision or a crash, costs
    a Gaussian thousands of nats: a few of them alone would say when to stop, and that is at once.
    """
    theta = theta._replace(**params)
    mean, logvar = gaussian(theta, b.x, hypers.activation)
    of = lambda each: jnp.sum(b.weight * each) / jnp.sum(b.weight)
    told = of(student_nll(jnp.zeros(()), logvar, residual(b, mean)).sum(-1))
    ends = of(cross_entropy(ending(theta, b.x, b.next_obs), b.done)) if theta.ends else jnp.zeros(())
    return jnp.stack([told, ends])


def init(key: Key, common: Key, hypers: Hypers, widths: tuple[int, int], known: Known, terminates: bool) -> Theta:
    """One world before training: its net says nothing yet, so at first the prior speaks alone.

    Initial weights are the member's own in part and its fold's in part. What members differ by at random in
    their first weights is not belief about the world; with `own` below 1 the spread comes from priors and data.
    """
    obs, action = widths
    out = obs + 1
    sizes = (obs + action, *[hypers.width] * hypers.depth)
    k1, k2, k3 = jax.random.split(key, 3)
    mine, ours = (mlp_init(k, (*sizes, 2 * out), last=0.0) for k in (k1, common))
    blend = lambda m, o: hypers.own * m + jnp.sqrt(1 - jnp.square(hypers.own)) * o
    floor = 2 * jnp.log(jnp.asarray(hypers.floor))
    net = jax.tree.map(blend, mine, ours)
    spread = jnp.clip(jnp.log(known.left), floor, 0.0)  # the variance that the linear map leaves
    return Theta(
        net=(*net[:-1], Layer(net[-1].weight, jnp.concatenate([jnp.zeros(out), spread]))),
        low=jnp.full(out, floor),
        high=jnp.full(out, 0.5),
        ends=mlp_init(k3, (2 * obs + action, *ENDS, 1), last=0.1) if terminates else (),
        linear=known.linear,
        prior=mlp_init(k2, (*sizes, out)),
        prior_scale=hypers.prior_scale * gain_of(known),
        floor=floor,
        scale=known.scale,
        walls=known.walls,
    )


def paces(key: Key, span: float | Array, members: int) -> Array:
    """Members' own shares of the learning rate [M]: one from each of as many equal parts of 1 / span to span."""
    place = jnp.arange(members) + jax.random.uniform(key, (members,))
    return jnp.power(span, 2 * place / members - 1)


def fit(key: Key, hypers: Hypers, data: Dataset, split: Split, terminates: bool, at_walls: bool = False) -> Fitted:
    """The ensemble for one setting. Pure: `vmap` it over settings, seeds and splits.

    `terminates` and `at_walls` say whether anything in the log ends, or stands at a wall: what is not there
    costs nothing.
    """
    steps = data.steps
    x = jnp.concatenate([steps.obs, steps.action], -1)  # [N, S + A]
    y = jnp.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1)  # [N, S + 1]
    ended = (steps.next_obs, steps.done) if terminates else (jnp.zeros((x.shape[0], 0)),) * 2
    after, done = map(jnp.asarray, ended)
    rows = Batch(x, y, jnp.ones(x.shape[0]), after, done, held=jnp.zeros((x.shape[0], 0)))
    widths = (steps.obs.shape[-1], steps.action.shape[-1])
    unit = jnp.where(data.episode >= 0, data.episode, jnp.arange(x.shape[0]))  # what the bootstrap weighs

    def member(
        key: Key, pace: Array, common: Key, index: Array, size: Array, known: Known
    ) -> tuple[Theta, Array, Array, Array]:
        k1, k2, k3 = jax.random.split(key, 3)
        k4, k5 = jax.random.split(k2)
        theta = init(k1, common, hypers, widths, known, terminates)
        view = _view(k5, hypers, theta, rows, unit)
        if at_walls:
            at_low, at_high = (steps.next_obs == wall for wall in theta.walls)
            sides = at_high.astype(jnp.float32) - at_low.astype(jnp.float32)
            view = view._replace(held=jnp.pad(sides, ((0, 0), (0, 1))))
        valid = jax.tree.map(lambda leaf: leaf[split.valid], view)
        count = jnp.arange(split.valid.shape[0]) < split.valid_size
        valid = valid._replace(weight=count.astype(jnp.float32))
        noisy = view.y + hypers.jitter * jax.random.normal(k4, view.y.shape)
        keys = (k3, jax.random.fold_in(common, 1))
        gain = gain_of(known) * jnp.sqrt(1 + jnp.square(hypers.prior_scale))
        paced = replace(hypers, lr=hypers.lr * pace)
        params, nll, best, curve = _train(keys, paced, theta, view._replace(y=noisy), valid, index, size, gain)
        return theta._replace(**params), nll, best, curve

    # Walls are the log's, as its range is: a fold that met one only twice would run through it.
    walls = stops(jnp.asarray(steps.next_obs), learned_from(split, x.shape[0]))

    def fold(key: Key, index: Array, size: Array) -> tuple[Theta, Array, Array, Array]:
        common, key = jax.random.split(key)
        scale = measure(x, y, index, size)
        linear, left = least_squares(x, y, scale, index, size, jnp.asarray(hypers.linear))
        known = Known(scale, linear, left, walls)
        pace = paces(jax.random.fold_in(common, 2), hypers.span, hypers.members)
        each = jax.vmap(member, in_axes=(0, 0, None, None, None, None))
        return each(jax.random.split(key, hypers.members), pace, common, index, size, known)

    keys = jax.random.split(key, hypers.folds)
    theta, nll, best, curve = jax.vmap(fold)(keys, jnp.asarray(split.train), jnp.asarray(split.sizes))
    order = jnp.argsort(nll, axis=1)[:, : hypers.elites]  # [F, elites]
    pick = jax.vmap(lambda leaf, index: leaf[index])
    theta = jax.tree.map(lambda leaf: pick(leaf, order).reshape(-1, *leaf.shape[2:]), theta)
    return Fitted(theta, nll, best, curve.mean((0, 1)))


def _view(key: Key, hypers: Hypers, theta: Theta, rows: Batch, unit: Array) -> Batch:
    """Every row as one member sees it. The frozen prior is read here, once, and not at every update."""
    scale = theta.scale
    x = (rows.x - scale.in_mean) / scale.in_std
    y = (rows.y - scale.out_mean) / scale.out_std - dense(theta.linear, x)
    prior = lambda x: mlp(theta.prior, x, hypers.activation)
    y = y - theta.prior_scale * (prior(x) if len(x) <= BLOCK else jax.lax.map(prior, x, batch_size=BLOCK))
    weight = 1 - hypers.bootstrap + hypers.bootstrap * jax.random.exponential(key, unit.shape)[unit]
    return rows._replace(x=x, y=y, weight=weight)


def _train(
    keys: tuple[Key, Key],
    hypers: Hypers,
    theta: Theta,
    view: Batch,
    valid: Batch,
    rows: Array,
    size: Array,
    gain: Array,
) -> tuple[Any, Array, Array, Array]:
    """The member's trained parts at their best held-out round, that score, that round, and all scores.

    `keys` are its own and its fold's: which minibatches it sees alone, and which all members see. Means are
    learned in units of `gain`, what there is left for the net to say: in units of the whole target a step of
    the optimiser would overshoot, where the linear map already says nearly all.
    """
    params = {name: getattr(theta, name) for name in TRAINED}
    per_round = -(-hypers.updates // ROUNDS)
    chunk = next(c for c in range(min(CHUNK, per_round), 0, -1) if per_round % c == 0)

    def update(learner: Learner, at: tuple[Batch, Adam]) -> tuple[Learner, None]:
        return descend(learner, at[1], loss, theta, hypers, at[0], size, gain)[0], None

    def many(learner: Learner, at: tuple[Key, Key, Array]) -> tuple[Learner, None]:
        key, common, count = at
        shape = (chunk, hypers.batch_size)
        mine, ours = (jax.random.randint(k, shape, 0, size) for k in (key, common))
        index = rows[jnp.where(jnp.arange(hypers.batch_size) < hypers.shared * hypers.batch_size, ours, mine)]
        counts = count + jnp.arange(chunk)
        rates = adam(counts, cosine(counts, hypers.lr, hypers.updates, hypers.final_lr), hypers.decay)
        batches = jax.tree.map(lambda leaf: leaf[index], view)
        # A copy of the inputs for each setting: were they shared, XLA would lay out the first layer of all
        # settings as one product and transpose it at every update.
        batches = batches._replace(x=batches.x + 0 * hypers.lr)
        return jax.lax.scan(
            update, learner, (batches, rates), unroll=min(UNROLL.get(jax.default_backend(), 1), chunk)
        )

    def round_(carry: Any, at: tuple[Key, Key, Array]) -> tuple[Any, Array]:
        learner, kept, lowest, best = carry
        key, common, number = at
        counts = number * per_round + jnp.arange(0, per_round, chunk)
        mine, ours = (jax.random.split(k, per_round // chunk) for k in (key, common))
        learner, _ = jax.lax.scan(many, learner, (mine, ours, counts))
        nll = score(geared(learner.params, gain), theta, hypers, valid)
        better = nll < lowest  # [2]  ends have a net of their own, which may be at its best in another round
        kept = {
            name: jax.tree.map(partial(jnp.where, better[int(name == "ends")]), learner.params[name], old)
            for name, old in kept.items()
        }
        return (learner, kept, jnp.minimum(nll, lowest), jnp.where(better[0], number, best)), nll.sum()

    first = (start(params), params, jnp.full(2, jnp.inf), jnp.asarray(0))
    mine, ours = (jax.random.split(k, ROUNDS) for k in keys)
    rounds = (mine, ours, jnp.arange(ROUNDS))
    (_, kept, lowest, best), curve = jax.lax.scan(round_, first, rounds)
    return geared(kept, gain), lowest.sum(), best, curve


def posterior(fitted: Fitted, hypers: Hypers, data: Dataset, task: Task, noise_scale: float = 1.0) -> Posterior:
    """The fitted worlds as a Posterior, with the starts and the range that the log supports."""
    theta = fitted.theta
    if not np.any(np.asarray(theta.prior_scale)):
        theta = theta._replace(prior=())  # silent priors would be computed at every step of every rollout
    few = levels(data)
    if few.size:
        theta = theta._replace(levels=jnp.broadcast_to(few, (theta.floor.shape[0], *few.shape)))
    low, high = ranges(data)
    return Posterior(
        theta=theta,
        starts=jnp.asarray(data.starts),
        low=jnp.asarray(low),
        high=jnp.asarray(high),
        noise_scale=jnp.asarray(noise_scale, jnp.float32),
        predict=World(hypers.activation),
        task=task,
        folds=hypers.folds,
        terminates=bool(theta.ends) or task.done is not None,
        room=jnp.asarray(ROOM, jnp.float32),
    )
