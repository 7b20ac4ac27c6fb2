"""A policy, its worlds, its log and its promise -> an Explanation, in the table's own names."""

from __future__ import annotations

import jax
import numpy as np

from ..data import Log
from ..posterior.walk import widths
from ..report.reports import Predicted
from ..types import Discrete, Policy, Posterior
from ..value.episodes import Imagined, imagine
from .explanation import Explanation, Promised, World
from .gather import Logged, importance, logged, some_episodes
from .regions import Region, behaviour_value, brought
from .tree import Tree, fidelity, grow

COPIES = 16  # imagined episodes of each world
DEPTHS = (2, 3, 4)  # of the tree: a deeper one is taken if it says WORTH more
WORTH = 0.05


def promised(report: Predicted) -> Promised:
    """What a run promised."""
    low, high = report.returns.interval
    return Promised(low, report.returns.median, high, report.behaviour.mean, report.returns.terms)


def explained(policy: Policy, judges: Posterior, log: Log, promise: Promised, seed: int = 0) -> Explanation:
    """A policy, explained by a log and by worlds that it was not trained in."""
    rows, task = some_episodes(log.data), judges.task
    past = logged(policy, rows, task)
    episodes = imagine(jax.random.key(seed), policy, judges, COPIES)
    discrete = isinstance(task.actions, Discrete)
    names = log.columns.names or tuple(f"obs[{i}]" for i in range(past.obs.shape[1]))
    acts = log.columns.action_names or tuple(f"action[{i}]" for i in range(past.policy.shape[1]))
    tree, faithful = _tree(past, discrete)
    regions, begun = _regions(tree, names, past, episodes, promise.behaviour)
    shares = zip(acts, past.policy.mean(0).tolist(), past.behaviour.mean(0).tolist(), strict=True)
    return Explanation(
        names=names,
        action_names=acts,
        discrete=discrete,
        importance=tuple(importance(policy, rows, task, past.policy).tolist()),
        shares={name: (policys, logs) for name, policys, logs in shares},
        tree=tree,
        fidelity=faithful,
        regions=regions,
        difference=float(episodes.returns.mean()) - begun,
        promised=promise,
        hangs_on=_hangs_on(episodes, names),
        worlds=_worlds(episodes, np.asarray(widths(judges)[:-1]), names),
        logged=past,
        imagined=episodes,
    )


def _tree(past: Logged, discrete: bool) -> tuple[Tree, float]:
    """A tree grown on half of the episodes, as deep as is worth it, and its fidelity on the other half."""
    odd = past.episode % 2 == 1
    grown_on, other = ~odd, odd if odd.any() else ~odd  # of a single episode both are all of it
    unit, best = _spread(past.policy, discrete), None
    for depth in DEPTHS:
        tree = _scaled(grow(past.obs[grown_on], past.policy[grown_on] / unit, depth), unit)
        right = fidelity(tree, past.obs[other], past.policy[other], discrete)
        if best is None or right > best[1] + WORTH:
            best = (tree, right)
    assert best is not None
    return best


def _spread(action: np.ndarray, discrete: bool) -> np.ndarray:
    return np.ones(action.shape[1]) if discrete else np.maximum(action.std(0), 1e-9)


def _scaled(tree: Tree, unit: np.ndarray) -> Tree:
    """The tree with actions in their own units again."""
    yes, no = (None if side is None else _scaled(side, unit) for side in (tree.yes, tree.no))
    return Tree(tree.action * unit, tree.share, tree.column, tree.at, yes, no)


def _regions(
    tree: Tree, names: tuple[str, ...], past: Logged, episodes: Imagined, behaviour: float
) -> tuple[tuple[Region, ...], float]:
    """The tree's leaves with what each brings, and what the behaviour earns from imagined starts."""
    leaf = tree.leaf_of(episodes.obs.reshape(-1, episodes.obs.shape[-1])).reshape(episodes.alive.shape)
    value = behaviour_value(past, episodes.obs.shape[0], behaviour)
    brings, share, begun = brought(episodes, value, leaf, tree.count)
    at = tree.leaf_of(past.obs)
    means = lambda x: [x[at == i].mean(0) if (at == i).any() else x.mean(0) for i in range(tree.count)]
    each = zip(tree.regions(names), share, means(past.policy), means(past.behaviour), brings, strict=True)
    regions = [Region(words, float(s), policy, log, float(x)) for words, s, policy, log, x in each]
    return tuple(regions), begun


def _hangs_on(episodes: Imagined, names: tuple[str, ...]) -> dict[str, float]:
    ranked = lambda x: np.argsort(np.argsort(x)).astype(float)
    count = np.maximum(episodes.alive.sum(0), 1)[..., None]
    mean = ((episodes.obs * episodes.alive[..., None]).sum(0) / count).reshape(-1, len(names))
    returns, correlation = ranked(episodes.returns.ravel()), {}
    for i, name in enumerate(names):
        flat = np.ptp(mean[:, i]) == 0 or np.ptp(returns) == 0
        correlation[name] = 0.0 if flat else float(np.corrcoef(ranked(mean[:, i]), returns)[0, 1])
    return dict(sorted(correlation.items(), key=lambda item: -abs(item[1])))


def _worlds(episodes: Imagined, width: np.ndarray, names: tuple[str, ...]) -> tuple[World, ...]:
    alive = episodes.alive[..., None]
    course = (episodes.obs * alive).sum((0, 2)) / np.maximum(alive.sum((0, 2)), 1)  # [M, S]
    off = (course - np.median(course, 0)) / width
    values = episodes.returns.mean(1)
    worst = np.abs(off).argmax(1)
    return tuple(World(float(values[m]), names[worst[m]], float(off[m, worst[m]])) for m in np.argsort(values))
