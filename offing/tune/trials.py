"""Planners' settings in, policies and what they are worth out: TOReL's sweep (the paper's Algorithm 2).

A trial is one setting of one planner with one seed. Settings of one structure train under one program, and what
they learned is rolled out in that same program, in worlds that their planner has not seen: those of the second
fold, or all where a planner looks at none. With halving, all trials train for a quarter of their updates, the
better half for another quarter, and the best quarter to the end; a trial goes on from where it stopped, so that
whoever survives learns what it would have learned alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Generic, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Log
from ..pil import PIL
from ..planner import train
from ..types import Dataset, H, Key, Params, Planner, Policy, Posterior, S
from ..value.estimate import ValueEstimate
from ..value.predictive import Known, Rollouts, estimates, known_of, rollouts
from .candidates import pad_starts
from .plans import TRIALS, TrialPlan
from .run import ALONE, Run
from .search import Search, part, seek
from .sweep import sweep

RUNGS = (0.25, 0.5, 1.0)  # of a trial's updates, at which half of the trials stop
MOST = 64  # settings under one vmap: their nets are small


class Contender(NamedTuple, Generic[H]):
    """A planner by name, and the settings of it to try: all of them, or those that a search asks for."""

    name: str
    planner: Planner
    settings: tuple[H, ...] = ()
    search: Search[H] | None = None
    tries: int = 0  # settings that the search may try
    batch: int = 8  # of them at a time


class Trial(NamedTuple, Generic[H]):
    """What one setting with one seed came to."""

    planner: str
    setting: H
    seed: int
    returns: ValueEstimate  # in worlds that its planner has not seen, undiscounted
    value: ValueEstimate  # the same, discounted
    policy: Policy
    share: float = 1.0  # of its updates that it was given
    rival: ValueEstimate | None = None  # another estimator's word, if that is to choose

    @property
    def estimate(self) -> ValueEstimate:
        """What it is chosen by."""
        return self.returns if self.rival is None else self.rival

    @property
    def score(self) -> float:
        """What trials are ranked by; whoever diverged comes last."""
        return self.estimate.median if np.isfinite(self.estimate.median) else -np.inf


class Entry(NamedTuple, Generic[H, S]):
    """A trial on its way: a tree, so that entries of one structure are swept together."""

    setting: H
    seed: np.int32 | tuple[()]  # (): all trials share one
    state: S | tuple[()]  # of its planner; () before the first update


class Ran(NamedTuple, Generic[Params, S]):
    """What a stretch of training came to."""

    params: Params
    state: S | tuple[()]
    rollouts: Rollouts


def seek_all(contenders: Sequence[Contender], attempt: Callable[..., list[Trial]], run: Run) -> list[Trial]:
    """The trials of all contenders: those with a search are asked batch after batch, the rest go together.

    `attempt(contenders, run)` trains and scores.
    """
    plain = [contender for contender in contenders if contender.search is None]
    trials = attempt(plain, run) if plain else []
    for contender in contenders:
        if contender.search is None:
            continue

        def score(requested: list[H], contender: Contender = contender) -> list[float]:
            more = attempt([contender._replace(settings=tuple(requested))], part(run, requested))
            trials.extend(more)
            return [float(np.mean([t.score for t in more if t.setting == setting])) for setting in requested]

        seek(contender.search, score, contender.tries, contender.batch)
    return trials


def try_all(
    key: Key,
    log: Log,
    contenders: Sequence[Contender],
    worlds: Posterior,
    loss: PIL | None = None,
    plan: TrialPlan = TRIALS,
    run: Run = ALONE,
) -> list[Trial]:
    """Every setting of every contender, as often as planned, trained and scored; in order, seed by seed."""
    plans = [(c, setting, seed) for c in contenders for setting in c.settings for seed in range(plan.seeds)]
    several, data = plan.seeds > 1, log.data
    entries = [Entry(setting, np.int32(seed) if several else (), ()) for _, setting, seed in plans]
    args = jax.device_put((key, data._replace(starts=np.zeros((0, 1))), pad_starts(worlds.fold(0))))
    judges = {
        i: jax.device_put(pad_starts(held_out_worlds(i, worlds))) for i in {c.planner.imagines for c in contenders}
    }
    trials: list[Any] = [None] * len(plans)
    known = known_of(data, log.task, loss)
    alive, begin = list(range(len(plans))), 0.0
    for end in RUNGS if plan.halve else (1.0,):
        for contender in contenders:
            mine = [i for i in alive if plans[i][0] is contender]
            if not mine:
                continue
            judge = judges[contender.planner.imagines]
            work = _stretch(contender.planner, begin, end, plan.copies)
            what = contender.name if not plan.halve else f"{contender.name} to {end:.0%}"
            ran = sweep(
                what,
                work,
                [entries[i] for i in mine],
                *args,
                judge,
                bytes_each=_bytes(contender, data, judge, plan.copies),
                most=MOST,
                run=run,
            )
            for i, one in zip(mine, ran, strict=True):
                entries[i] = entries[i]._replace(state=one.state)
                trials[i] = _trial(plans[i], one, end, judge, data, known)
        order = sorted(alive, key=lambda i: -trials[i].score)
        alive, begin = sorted(order[: -(-len(order) // 2)]), end
    return trials


def held_out_worlds(imagines: bool, worlds: Posterior) -> Posterior:
    """The worlds that a planner has not seen: those of the second fold, or all where it `imagines` in none."""
    return worlds.fold(1) if imagines else worlds


def _trial(
    plan: tuple[Contender, H, int], ran: Ran, share: float, held: Posterior, data: Dataset, known: Known
) -> Trial:
    contender, setting, seed = plan
    value, returns = estimates(ran.rollouts, None, held, known)
    blank = contender.planner.blank(setting, data.steps.obs.shape[1], held.task)
    policy = replace(blank, params=jax.tree.map(jnp.asarray, ran.params))
    return Trial(contender.name, setting, seed, returns, value, policy, share)


def _bytes(contender: Contender, data: Dataset, judge: Posterior, copies: int) -> int:
    """Memory that one setting takes: its state, what an update makes of it, and its episodes."""
    init = lambda key, data, own: contender.planner.init(key, contender.settings[0], data, own)
    state = jax.eval_shape(init, jax.random.key(0), data, judge)
    kept = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    return 3 * kept + judge.members * copies * 4 * 1024


@cache
def _stretch(planner: Planner, begin: float, end: float, copies: int) -> Callable[..., Ran]:
    """Training from one share of the updates to another; one function each, so that programs are found again."""

    def run(entry: Entry, key: Key, data: Dataset, own: Posterior, held: Posterior) -> Ran:
        hypers = entry.setting
        key = key if isinstance(entry.seed, tuple) else jax.random.fold_in(key, entry.seed)
        first, judging, key = jax.random.split(key, 3)
        state = entry.state or planner.init(first, hypers, data, own)  # () is no state

        span = jnp.arange(round(begin * hypers.updates), max(1, round(end * hypers.updates)))
        keys = jax.vmap(lambda count: jax.random.fold_in(key, count))(span)
        state, _ = train(keys, hypers, planner, state, data, own)
        policy = planner.policy(hypers, state, own.task)
        imagined = rollouts(judging, policy, held, copies)[0]
        return Ran(policy.params, state if end < 1 else (), imagined)

    return run
