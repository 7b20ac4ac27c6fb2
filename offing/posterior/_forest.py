"""What an end earned, by the ends that were like it: trees, where they tell it better than nets do.

Ends of episodes are few, one an episode, and what tells a good one from a bad one is often a threshold or two:
slow enough, close enough, in time. Thirty rows teach a net little of that, and trees more. So every world also has
a few trees, grown on the ends that its fold learned from, by weights of its own (a Bayesian bootstrap). A tree and
a leaf say which ends were alike, and what one of those earned, drawn at random, is what an imagined end earns: its
chance has the log's own values, and worlds differ as other ends would have made them.

Trees or nets: asked is what they say of ends that neither learned from, by the continuous ranked probability score
(Gneiting & Raftery, 2007). The nets' chance is that of these very ends, which is to their advantage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..types import Array, Dataset, Key, Memory, Posterior, Tree

TREES = 8  # of a world
ROWS = 512  # ends that a tree is grown on, at most
NODES = 2 * ROWS - 1  # of a tree, at most
DEPTH = 10
TRIED = 0.5  # share of the columns that are tried at a branch
FEWEST = 8  # ends that a fold must have learned from, and as many that it did not see
DRAWS = 32  # of every world, by which trees and nets are compared


Earns = Callable[..., Array]  # (key, theta, memory, obs, action, after) -> reward of steps that ended


class Forest(NamedTuple):
    """The trees of one world."""

    nodes: Array  # [T, NODES, 4]  which column, up to which value left, and which node is left and right
    leaves: Array  # [T, NODES, 2]  first of the rows in a leaf, and how many
    earned: Array  # [T, ROWS]  what they earned


def draw(key: Key, forest: Forest, x: Array) -> Array:
    """What ends at x [..., X] earn: each by a tree and a row of its leaf, drawn at random."""
    k1, k2 = jax.random.split(key)
    nodes = jnp.asarray(forest.nodes)
    tree = jax.random.randint(k1, x.shape[:-1], 0, nodes.shape[0])

    def down(node: Array, _: None) -> tuple[Array, None]:
        column, value, left, right = jnp.moveaxis(nodes[tree, node], -1, 0)
        mine = jnp.take_along_axis(x, column.astype(jnp.int32)[..., None], -1)[..., 0]
        return jnp.where(mine <= value, left, right).astype(jnp.int32), None

    node, _ = jax.lax.scan(down, jnp.zeros(tree.shape, jnp.int32), None, length=DEPTH)
    first, count = jnp.moveaxis(jnp.asarray(forest.leaves)[tree, node], -1, 0)
    at = first + jnp.floor(count * jax.random.uniform(k2, tree.shape))
    return jnp.asarray(forest.earned)[tree, at.astype(jnp.int32)]


def reads(obs: Array, action: Array, after: Array) -> Array:
    """What the trees read [..., X]: the step, and where it led."""
    return jnp.concatenate([obs, action, after], -1)


# ---- growing


class Ends(NamedTuple):
    """Rows that ended their episodes."""

    obs: np.ndarray  # [E, S]
    action: np.ndarray
    after: np.ndarray
    earned: np.ndarray  # [E]
    index: np.ndarray  # [E]  where they stand in the log

    @classmethod
    def of(cls, data: Dataset) -> Ends:
        """The ends in use, ROWS of them at most, evenly taken."""
        index = np.flatnonzero(np.asarray(data.steps.done)[: data.rows] > 0)
        index = index[np.unique(np.linspace(0, len(index) - 1, min(len(index), ROWS)).astype(int))]
        at = lambda leaf: np.asarray(leaf)[index]
        steps = data.steps
        return cls(at(steps.obs), at(steps.action), at(steps.next_obs), at(steps.reward), index)

    @property
    def x(self) -> np.ndarray:
        return np.concatenate([self.obs, self.action, self.after], 1).astype(np.float32)


def grown(ends: Ends, rng: np.random.Generator) -> Forest:
    """The trees of one world: all by the same weights, and each with columns of its own at every branch."""
    from sklearn.tree import DecisionTreeRegressor

    nodes, leaves = np.zeros((TREES, NODES, 4), np.float32), np.zeros((TREES, NODES, 2), np.float32)
    earned, x, weight = np.zeros((TREES, ROWS), np.float32), ends.x, rng.exponential(size=len(ends.earned))
    for t in range(TREES):
        model = DecisionTreeRegressor(
            max_depth=DEPTH, max_features=TRIED, random_state=int(rng.integers(1 << 31))
        ).fit(x, ends.earned, sample_weight=weight)
        tree = model.tree_
        place, count = np.arange(tree.node_count), tree.node_count
        leaf = tree.children_left < 0
        nodes[t, :count, 0] = np.where(leaf, 0, tree.feature)
        nodes[t, :count, 1] = np.where(leaf, np.inf, tree.threshold)
        nodes[t, :count, 2] = np.where(leaf, place, tree.children_left)
        nodes[t, :count, 3] = np.where(leaf, place, tree.children_right)
        where = model.apply(x)
        order = np.argsort(where, kind="stable")
        leaves[t, :count, 1] = np.bincount(where, minlength=count)
        leaves[t, :count, 0] = np.cumsum(leaves[t, :count, 1]) - leaves[t, :count, 1]
        earned[t, : len(x)] = ends.earned[order]
    return Forest(nodes, leaves, earned)


@compiled
def _by_trees(key: Key, forest: Forest, x: Array) -> Array:
    ask = lambda key, forest: jax.vmap(lambda k: draw(k, forest, x))(jax.random.split(key, DRAWS))
    return jax.vmap(ask)(jax.random.split(key, forest.nodes.shape[0]), forest)  # [M, DRAWS, E]


@partial(compiled, static_argnames="earns")
def _by_nets(keys: Key, theta: Tree, earns: Earns, rows: tuple[Memory, Array, Array, Array]) -> Array:
    ask = lambda key, theta: jax.vmap(lambda k: earns(k, theta, *rows))(jax.random.split(key, DRAWS))
    return jax.vmap(ask)(keys, theta)


def crps(drawn: np.ndarray, truth: np.ndarray) -> float:
    """Continuous ranked probability score of draws [K, E], mean over what came [E]."""
    ordered, count = np.sort(drawn.astype(np.float64), 0), len(drawn)
    weight = (2 * np.arange(1, count + 1) - count - 1)[:, None] / count**2
    return float(np.mean(np.mean(np.abs(ordered - truth), 0) - np.sum(weight * ordered, 0)))


def with_trees(
    posterior: Posterior, seen: Sequence[Dataset], unseen: Sequence[Dataset], earns: Earns
) -> Posterior:
    """The worlds with trees for what ends earn, where these tell more of ends that a fold has not seen.

    `seen` and `unseen` are rows that each fold has learned from and has not; `earns` is what nets say of an end.
    """
    known, fresh = [Ends.of(rows) for rows in seen], [Ends.of(rows) for rows in unseen]
    every = np.concatenate([ends.earned for ends in known])
    if min(len(ends.earned) for ends in (*known, *fresh)) < FEWEST or np.ptp(every) == 0:
        return posterior
    key, scores, forests = jax.random.key(0), [], []
    for f, (learned, ends, rows) in enumerate(zip(known, fresh, unseen, strict=True)):
        fold = posterior.fold(f)
        each = [grown(learned, np.random.default_rng([f, m])) for m in range(fold.members)]
        forest = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
        forests.append(forest)
        drawn = _by_trees(key, forest, _same(ends.x))
        nets = _by_nets(jax.random.split(key, fold.members), fold.theta, earns, _rows(fold, rows, ends))
        count = len(ends.earned)
        scores.append([crps(np.asarray(a)[..., :count].reshape(-1, count), ends.earned) for a in (drawn, nets)])
    trees, nets = np.mean(scores, 0)
    if not trees < nets:
        return posterior
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *forests)
    return replace(posterior, theta=posterior.theta._replace(forest=joined))


def _same(a: np.ndarray) -> np.ndarray:
    """The same number of rows for every log, so that programs are shared."""
    return np.resize(a, (ROWS, *a.shape[1:]))


def _rows(fold: Posterior, data: Dataset, ends: Ends) -> tuple[Memory, Array, Array, Array]:
    """What the nets are asked about: memory, observation, action and next observation of the ends."""
    memory = jax.tree.map(lambda leaf: _same(np.asarray(leaf)[ends.index]), fold.along(data))
    return memory, _same(ends.obs), _same(ends.action), _same(ends.after)
