"""The ensemble's worlds as arrays and JSON, and back; no pickle."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..nets import Layer
from ..types import Array, BadInput, Posterior, Saved
from . import _history, _init
from ._forest import NODES, ROWS, TREES, Forest
from ._history import EPISODE
from ._kinds import Kinds, Targets, Values
from ._known import Known, Scale
from ._world import Chance, Expect, Paid, Support, Theta, World

EDGES = ("starts", "low", "high", "going")  # arrays of a posterior beside its worlds
OTHER = "the worlds' arrays are damaged or of another version"
LATER = {"settled"}  # kinds that worlds saved by earlier commits of this version do not have


class Rest(NamedTuple):
    """What a posterior has beside its worlds."""

    starts: Array
    low: Array
    high: Array
    going: Array
    folds: int


class _Shape(NamedTuple):
    """What of a setting shapes a net."""

    width: int
    depth: int
    floor: float = 0.01
    prior_scale: float = 0.0
    init_diversity: float = 1.0


def save(posterior: Posterior) -> Saved:
    """The worlds' arrays in the order of their tree, and what that tree is made of."""
    theta, expect = posterior.theta, posterior.moments
    assert isinstance(theta, Theta)
    assert isinstance(expect, Expect)
    world, net = expect.world, theta.state.net
    arrays = {f"theta.{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(theta))}
    arrays |= {name: np.asarray(getattr(posterior, name)) for name in EDGES}
    rest = {
        "activation": world.activation,
        "kinds": world.kinds._asdict(),
        "width": int(net[0].bias.shape[-1]),
        "depth": len(net) - 1,
        "inputs": int(theta.scale.in_mean.shape[-1]),
        "actions": posterior.task.actions.width,
        "priors": bool(theta.state.prior),
        "trees": bool(theta.forest),
        "table": [int(part.z.shape[1]) for part in (theta.chance, theta.chance.last)],
        "members": posterior.members,
        "folds": posterior.folds,
    }
    return Saved(arrays, rest)


def load(saved: Saved) -> tuple[Theta, World, Rest]:
    """What `save` kept; BadInput if arrays are missing or of another shape."""
    rest, arrays = saved.rest, saved.arrays
    if not {*Kinds._fields} - LATER <= rest["kinds"].keys() or "trees" not in rest:
        raise BadInput(OTHER)
    pairs = lambda name: tuple((each[0], each[1]) for each in rest["kinds"][name])
    named = {name: pairs(name) for name in ("gates", "choices", "clocks")}
    lists = ("whole", "logs", "exogenous", "still", "derived")
    listed = {name: tuple(rest["kinds"][name]) for name in lists}
    listed["groups"] = tuple(tuple(group) for group in rest["kinds"]["groups"])
    kinds = Kinds(**{**rest["kinds"], **named, **listed})
    shape = jax.eval_shape(lambda: _blank(rest, kinds))
    leaves, tree = jax.tree.flatten(shape)
    stored = [arrays.get(f"theta.{i}") for i in range(len(leaves))]
    for leaf, array in zip(leaves, stored, strict=True):
        if array is None or tuple(array.shape) != tuple(leaf.shape):
            raise BadInput(OTHER)
    theta = jax.tree.unflatten(tree, [np.asarray(array) for array in stored])
    edges = (np.asarray(arrays[name]) for name in EDGES)
    return theta, World(rest["activation"], kinds), Rest(*edges, folds=int(rest["folds"]))


def _blank(rest: dict[str, Any], kinds: Kinds) -> Theta:
    """Worlds of that shape, of no content."""
    width, inputs = kinds.width, rest["inputs"]
    zeros = jnp.zeros
    linear = lambda i, o: Known(Layer(zeros((o, i)), zeros(o)), zeros(o))
    values = Values(
        zeros((2, width)),
        zeros(len(kinds.gates)),
        zeros((len(kinds.choices), _most(kinds))),
        zeros(width),
        zeros((2, width)),
        zeros((len(kinds.clocks), 2, max((n for _, n in kinds.clocks), default=0))),
    )
    remembers = kinds.history == EPISODE
    step = _history.Innovate(
        Layer(zeros((width + 1, width + rest["actions"])), zeros(width + 1)),
        *(zeros(width + rest["actions"]),) * 2,
        *(zeros(width + 1),) * 2,
    )
    ready = _init.Ready(zeros((1, 0)), values, Targets(*(zeros((1, 0)),) * 4), step if remembers else ())
    scale = Scale(zeros(inputs), zeros(inputs), zeros(width + 1), zeros(width + 1))
    known = (linear(inputs + len(kinds.leads), width), linear(inputs + width + 1 + len(kinds.logs), 1))
    key = jax.random.key(0)
    theta = _init.init(key, key, _Shape(rest["width"], rest["depth"]), kinds, scale, known, ready)
    if not rest["priors"]:
        theta = theta._replace(state=theta.state._replace(prior=()), reward=theta.reward._replace(prior=()))
    paid = kinds.of_reward().ways
    table, last = rest["table"]
    places = zeros((table, kinds.of_state().ways + paid))
    ending = Paid(zeros((last, 1)), *(zeros((last, paid)),) * 2)
    chance = Chance(zeros((table, width + 1)), places, places, zeros(width + 1), zeros(()), ending)
    trees = Forest(zeros((TREES, NODES, 4)), zeros((TREES, NODES, 2)), zeros((TREES, ROWS)))
    theta = theta._replace(
        forest=trees if rest["trees"] else (),
        chance=chance,
        support=Support(zeros(width + 1), zeros(width + 1), zeros(()), zeros((2, 2))),
    )
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (rest["members"], *leaf.shape)), theta)


def _most(kinds: Kinds) -> int:
    return max((n for _, n in kinds.choices), default=0)
