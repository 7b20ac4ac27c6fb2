"""Randomised-prior ensemble: a log in, a stack of worlds out (Osband et al., 2018; Chua et al., 2018).

World m has one net for the change of state y and one for the reward, which also reads where the step led, each

    y | x ~ N(linear * B x + f_m(x) + prior_scale * gain * p_m(x), exp(xi_m(x))),    p_m drawn at random and frozen

    loss_m = E_i w_m(i) sum_d [ (y_d + jitter * e_m(i) - mean_d)^2 / exp((1 - beta) * xi_d)    to the mean
                                + xi_d + (y_d + ... - mean_d)^2 / exp(xi_d) ]                to the variance
             + clamp * sum_d (xi_max - xi_min)  +  ridge / rows * |f_m|^2

in units of the log's own scale, with B the least-squares map of the fold's rows, a prior mean from which the nets
need learn only what bends; xi softly clamped; where a column of the state stops at a wall the mean may lie beyond
it at no cost, and is read no further than the wall; w_m the weights of a Bayesian bootstrap over episodes, so that
worlds differ by what other episodes would have changed; and e_m a fixed draw of target noise. x is seen through a
lens of the member's own, each input larger or smaller by a factor drawn at random, so that where few rows agree
with several explanations members do not all take the same one. The two halves of the likelihood are kept apart:
the variance reads the mean's features and does not shape them, or else rows that are hard to fit are called noise
and left alone (Seitzer et al., 2022). Outputs that take few values, or stand at one, have logits beside
(`_kinds`). With linear f and p, jitter at the noise's size and ridge at the prior's precision,
the members are exact draws from the conjugate posterior; the tests hold them to `linear.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from ...data import Split, ranges
from ...data.extremes import earned, of_going
from ...hypers import hypers
from ...types import Dataset, Fitted, Key, Posterior, Prepared, Task, WorldModel
from .. import _history, _keep, _magnitude, _space
from .._calibrate import calibrate
from .._derived import derived
from .._exogenous import untouched
from .._fit import fit_folds
from .._history import EPISODE, NONE
from .._init import Ready
from .._kinds import Kinds, Targets, Values, kinds_of
from .._settled import settled
from .._tells import past_tells
from .._words import described
from .._world import Chance, Expect, Paid, Recall, Sample, Support, Theta, World, natural

PAIR = 2  # members that are fitted at once where settings run one by one
MARGIN = 0.1  # widths of the log's range by which a state may leave it


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
    init_diversity: float = 1.0  # share of a member's initial weights that is its own: 1 as in the paper
    shared: float = 0.0  # share of a minibatch's rows that all members see: 0 none, 1 all
    prior_scale: float = 0.0
    bootstrap: float = 1.0  # 0: all episodes count alike; 1: Bayesian bootstrap over episodes
    jitter: float = 0.0  # target noise, relative to the target's scale
    ridge: float = 0.0  # prior precision of the trained weights
    lens: float = 0.0  # how unlike members see the sizes of inputs: deviation of their logarithm; 0 all alike
    block: float = 0.0  # which of the blocks that members are fitted in: its draws are its own


def prepare(data: Dataset, task: Task, history: str | None = None) -> Prepared:
    """The kinds of the columns, and every row in terms of them; with `history` None the log says what it takes."""
    logs, unit = _magnitude.by_magnitude(data)
    data = _magnitude.read(data, logs, unit)
    step = _history.innovate(data)
    memory = _history.recall(data, step)
    features = np.asarray(_history.features(memory, np.asarray(data.steps.obs, np.float32)))
    if history is None:
        history = EPISODE if past_tells(data, features) else NONE
    kinds, values, targets = kinds_of(data, history, logs, unit, untouched(data, task.exogenous))
    kinds = kinds._replace(derived=derived(data, kinds), settled=history == NONE and settled(data))
    past = features if history == EPISODE else features[:, :0]
    if logs:
        past = np.concatenate([past, np.asarray(_magnitude.raw(logs, unit, np.asarray(data.steps.obs)))], 1)
    return Prepared(kinds, Ready(past, values, targets, step if history == EPISODE else ()))


def fit(key: Key, hypers: Hypers, data: Dataset, split: Split, arrays: Ready, shape: Kinds) -> Fitted:
    """The ensemble for one setting. Pure: `vmap` it over settings, seeds and splits."""
    return fit_folds(key, hypers, _magnitude.read(data, shape.logs, arrays.values.unit), split, arrays, shape)


def blocks(setting: Hypers) -> list[Hypers]:
    """The setting in blocks of PAIR members, each with its part of the members' own rates.

    Whatever its number of members, it then is as many runs of one program.
    """
    size = min(PAIR, setting.members)
    count = -(-setting.members // size)
    rate = lambda block: setting.lr * setting.span ** ((2 * block + 1) / count - 1)
    return [
        replace(setting, members=size, elites=size, lr=rate(b), span=setting.span ** (1 / count), block=float(b))
        for b in range(count)
    ]


def join(setting: Hypers, fitted: Sequence[Fitted]) -> Fitted:
    """The ensemble of a setting whose blocks were fitted by themselves: the best of all their members."""
    nll = np.concatenate([each.nll for each in fitted], 1)  # [F, M]
    best = np.argsort(np.concatenate([np.sort(each.nll, 1) for each in fitted], 1), 1)[:, : setting.elites]
    fold = np.arange(len(nll))[:, None]

    def together(*leaves: np.ndarray) -> np.ndarray:
        every = np.concatenate(
            [leaf.reshape(len(nll), len(leaf) // len(nll), *leaf.shape[1:]) for leaf in leaves], 1
        )
        return every[fold, best].reshape(best.size, *every.shape[2:])

    return Fitted(jax.tree.map(together, *(each.theta for each in fitted)), nll)


def posterior(fitted: Fitted, hypers: Hypers, prepared: Prepared, data: Dataset, task: Task) -> Posterior:
    """The fitted worlds as a Posterior, with starts and the range that the log supports; not yet calibrated."""
    theta: Theta = jax.tree.map(np.asarray, fitted.theta)  # on the host, where cutting and joining is no program
    silent = not np.any(np.asarray(theta.state.prior_scale))
    if silent:  # would be computed at every step of every rollout
        theta = theta._replace(state=theta.state._replace(prior=()), reward=theta.reward._replace(prior=()))
    members, kinds = theta.state.floor.shape[0], prepared.shape
    assert isinstance(kinds, Kinds)
    low, high = ranges(data)
    within = ranges(_magnitude.read(data, kinds.logs, theta.values.unit[0]))
    paid = kinds.of_reward().ways
    ways = kinds.of_state().ways + paid
    every = lambda leaf: np.broadcast_to(leaf, (members, *np.shape(leaf)))
    none = Chance(
        np.zeros((1, kinds.width + 1), np.float32),
        np.zeros((1, ways), np.float32),
        np.ones((1, ways), np.float32),
        np.ones(kinds.width + 1, np.float32),
        np.ones((), np.float32),
        Paid(np.zeros((1, 1), np.float32), np.zeros((1, paid), np.float32), np.ones((1, paid), np.float32)),
    )
    theta = theta._replace(
        chance=jax.tree.map(every, none),
        support=jax.tree.map(
            every, Support(*within, np.asarray(MARGIN, np.float32), earned(data).astype(np.float32))
        ),
    )
    world = World(hypers.activation, kinds)
    return assemble(theta, world, _keep.Rest(data.starts, low, high, of_going(data).min(), hypers.folds), task)


def assemble(theta: Theta, world: World, rest: _keep.Rest, task: Task) -> Posterior:
    """A posterior of the ensemble's kind."""
    terminates = bool(theta.ends) or task.done is not None
    remembers = world.kinds.history == EPISODE
    return Posterior(
        theta=theta,
        starts=np.asarray(rest.starts),
        low=np.asarray(rest.low),
        high=np.asarray(rest.high),
        going=np.asarray(rest.going, np.float32),
        sample=Sample(world, task, terminates),
        task=task,
        moments=Expect(world, task),
        begin=world.begin,
        recall=Recall(world) if remembers else None,
        natural=natural if world.kinds.logs else None,
        folds=rest.folds,
        terminates=terminates,
        derived=world.kinds.derived,
    )


def save(posterior: Posterior) -> Any:
    """The worlds as arrays, and what shapes them as JSON."""
    return _keep.save(posterior)


def load(saved: Any, task: Task) -> Posterior:
    """What `save` kept, as a posterior again."""
    theta, world, rest = _keep.load(saved)
    return assemble(theta, world, rest, task)


space = _space.space(Hypers)
model = WorldModel(
    "ensemble", Hypers, space, prepare, fit, posterior, save, load, calibrate, blocks, join, described
)

__all__ = ["Hypers", "Kinds", "Targets", "Values", "fit", "model", "posterior", "prepare"]
