"""Many policies in the same worlds, rolled out together: from the same starts and by the same chance.

Policies of one kind (one `act`, parameters of one shape) are one compiled program. Somebody's functions, of which
no two are of one kind, go step by step side by side: a step of all their episodes in all worlds is one program,
and between two steps each function is called once, for all its episodes that go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..pil import PIL
from ..types import Array, Dataset, Key, Policy, Posterior
from ._foreign import is_foreign, is_host, living
from .foreign import validate_actions
from .pool import kinds
from .predictive import VISITS, Predictive, Rollouts, Walk, begun, ended, estimates, known_of, moved, rollouts
from .support import Support, known, outside

T = TypeVar("T")
MOST = 64 * 2**20  # numbers that the paths of one program's policies may take


class Way(NamedTuple):
    """Where episodes went, and what was done there."""

    obs: Array  # [T, M, K, S]
    action: Array  # [T, M, K, A]
    alive: Array  # [T, M, K]


class Journey(NamedTuple):
    """One policy's episodes: what came of them, and the way of the first few; None if it was not asked for."""

    rollouts: Rollouts
    way: Way | None


def rolled_all(
    key: Key,
    policies: Sequence[Policy],
    posterior: Posterior,
    copies: int,
    sampled: bool = False,
    way: bool = False,
) -> list[Journey]:
    """`copies` episodes of every policy in every world; with `way` also where the first few of them went."""
    foreign = [i for i, policy in enumerate(policies) if is_foreign(policy)]
    journeys: dict[int, Journey] = {}
    if foreign:
        stepped = side_by_side(key, [policies[i] for i in foreign], posterior, copies, way)
        journeys.update(zip(foreign, stepped, strict=True))
    own = [i for i in range(len(policies)) if i not in journeys]
    for group in kinds([policies[i] for i in own]):
        index = [own[i] for i in group]
        for some in _parted(index, posterior, copies):
            pooled = _pooled(key, [policies[i] for i in some], posterior, copies, sampled, way)
            journeys.update(zip(some, pooled, strict=True))
    return [journeys[i] for i in range(len(policies))]


def _parted(index: list[int], posterior: Posterior, copies: int) -> list[list[int]]:
    """The policies of one kind in parts whose paths fit."""
    width = posterior.starts.shape[1] + posterior.task.actions.width + 1
    each = posterior.task.horizon * posterior.members * min(copies, VISITS) * width
    step = max(1, MOST // each)
    return [index[i : i + step] for i in range(0, len(index), step)]


@partial(compiled, static_argnames=("copies", "sampled", "path"))
def _together(
    key: Key, pool: Policy, posterior: Posterior, copies: int, sampled: bool, path: bool
) -> tuple[Rollouts, tuple[Array, Array, Array] | None]:
    return jax.vmap(lambda policy: rollouts(key, policy, posterior, copies, sampled, path))(pool)


def _pooled(
    key: Key, policies: Sequence[Policy], posterior: Posterior, copies: int, sampled: bool, way: bool
) -> list[Journey]:
    pool = jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)
    sums, rows = _host(_together(key, pool, posterior, copies, sampled, way))
    ways: list[Way | None] = [None] * len(policies)
    if rows is not None:
        ways = [Way(*(part[i] for part in rows)) for i in range(len(policies))]
    return [Journey(jax.tree.map(lambda leaf, i=i: leaf[i], sums), ways[i]) for i in range(len(policies))]


def _host(tree: T) -> T:
    return jax.tree.map(np.asarray, tree)


# ---- somebody's functions


_begun = compiled(begun, static_argnames="copies")
_moved = compiled(jax.vmap(moved, in_axes=(None, None, 0, 0, None)))
_acted = compiled(lambda policy, memory, seen: policy.act(policy.params, memory, seen, None))
_ended = compiled(jax.vmap(ended, in_axes=(None, 0)))


def side_by_side(
    key: Key, policies: Sequence[Policy], posterior: Posterior, copies: int, way: bool = False
) -> list[Journey]:
    """Episodes of functions that no program can hold together; where half are over, the others go on alone."""
    first, keys = _begun(key, posterior, copies)
    going = list(range(len(policies)))
    walk = _stacked(first, len(going))
    memory = [policy.begin(*first.alive.shape) for policy in policies]
    done: dict[int, Walk] = {}
    rows: list[list[Way]] = [[] for _ in policies]
    for t, k in enumerate(jax.vmap(lambda key: jax.random.split(key)[1])(keys)):
        alive = np.asarray(walk.alive)  # [P, M, K]
        still = [place for place in range(len(going)) if alive[place].any()]
        if not still:
            break
        if 2 * len(still) <= len(going):
            done.update({going[place]: _at(walk, place) for place in range(len(going)) if place not in still})
            walk, going = jax.tree.map(lambda leaf, s=still: leaf[np.array(s)], walk), [going[i] for i in still]
            alive, still = alive[still], list(range(len(still)))
        seen = _host(walk.seen)
        actions = np.zeros((*alive.shape, posterior.task.actions.width), np.float32)
        for place in still:
            i = going[place]
            mine = jax.tree.map(lambda leaf, p=place: leaf[p], seen)
            mine = mine._replace(obs=living(mine.obs, alive[place]))
            act = policies[i].act if is_host(policies[i]) else None
            if act is not None:
                actions[place], memory[i] = act(policies[i].params, memory[i], mine, None)
            else:
                action, memory[i] = _acted(policies[i], memory[i], mine)
                actions[place] = np.asarray(action)
            if way:
                few = lambda part: part[:, :VISITS].copy()
                rows[i].append(Way(few(mine.obs), few(actions[place]), few(alive[place])))
        walk = _moved(k, posterior, walk, actions, t)
    done.update({i: _at(walk, place) for place, i in enumerate(going)})
    ends = _host(
        _ended(posterior, jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(done.get, range(len(done)))))
    )
    ways = [Way(*(np.stack(part) for part in zip(*mine, strict=True))) if way else None for mine in rows]
    return [Journey(jax.tree.map(lambda leaf, i=i: leaf[i], ends), ways[i]) for i in range(len(policies))]


def _stacked(walk: Walk, count: int) -> Walk:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), walk)


def _at(walk: Walk, place: int) -> Walk:
    return jax.tree.map(lambda leaf: leaf[place], walk)


# ---- what they are worth


def predictive_all(
    key: Key,
    policies: Sequence[Policy],
    posterior: Posterior,
    data: Dataset,
    copies: int = 256,
    sampled: bool = False,
    loss: PIL | None = None,
) -> list[Predictive]:
    """Every policy's value in the worlds of `posterior`, in none of which it was trained (as `predictive`)."""
    k1 = jax.random.split(key, 3)[0]
    journeys = rolled_all(k1, policies, posterior, copies, sampled, way=True)
    beside, ground = known_of(data, posterior.task, loss), known(data)
    predictions = []
    for policy, journey in zip(policies, journeys, strict=True):
        sums, way = journey
        assert way is not None
        validate_actions(policy, *way)
        value, returns = estimates(sums, None, posterior, beside)
        support = Support(
            outside=outside(ground, *way),
            clipped=float(np.average(sums.clipped, weights=sums.lengths)),
            guarded=float(np.mean(sums.guarded)),
        )
        length = float(np.mean(sums.lengths))
        predictions.append(Predictive(value, returns, length, support, None, posterior.terminates))
    return predictions
