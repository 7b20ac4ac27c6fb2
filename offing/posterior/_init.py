"""Worlds of the ensemble before they are trained."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..nets import Layer, mlps_init, scaled_last
from ..types import Array, Key
from ._history import Innovate
from ._kinds import Block, Kinds, Targets, Values
from ._known import Known, Scale, gain_of
from ._masks import masked, masks
from ._world import Net, Theta

ENDS = (64, 64)  # hidden sizes of the net of ends


class Ready(NamedTuple):
    """What a log says before any net is trained, beside its rows."""

    past: Array  # [N, P]  what worlds remember at every row, and columns that they also read as they are
    values: Values
    targets: Targets
    innovate: Innovate | tuple[()]


class Drawn(NamedTuple):
    """The layers of one net as they were drawn, all LeCun-normal."""

    net: tuple[Layer, ...]
    common: tuple[Layer, ...]  # the same for all members of a fold
    prior: tuple[Layer, ...]
    extra: tuple[Layer, ...]


def init(
    key: Key, common: Key, hypers: Any, kinds: Kinds, scale: Scale, known: tuple[Known, ...], ready: Ready
) -> Theta:
    """One world before training: its nets say nothing yet, so at first the priors speak alone."""
    inside = scale.in_mean.shape[-1]
    read = inside + len(kinds.leads)
    blocks = ((kinds.of_state(), read), (kinds.of_reward(), inside + kinds.width + 1 + len(kinds.logs)))
    first = [(width, *[hypers.width] * hypers.depth) for _, width in blocks]
    nets = [(*sizes, 2 * block.width) for sizes, (block, _) in zip(first, blocks, strict=True)]
    priors = [(*sizes, block.width) for sizes, (block, _) in zip(first, blocks, strict=True)]
    extras = [(hypers.width, block.extras) for block, _ in blocks]
    own = mlps_init(key, [*nets, *priors, *extras, (inside + kinds.width, *ENDS, 1)])
    drawn = [Drawn(*each) for each in zip(own[:2], mlps_init(common, nets), own[2:4], own[4:6], strict=True)]
    if kinds.parted:
        mask = masks(kinds, read, hypers.width, hypers.depth)
        last = mask.net[-1][: kinds.width]
        drawn[0] = drawn[0]._replace(prior=masked(drawn[0].prior, (*mask.net[:-1], last)))
    return Theta(
        state=net_init(hypers, blocks[0][0], drawn[0], known[0]),
        reward=net_init(hypers, blocks[1][0], drawn[1], known[1]),
        ends=scaled_last(own[6], 0.1) if kinds.terminates else (),
        scale=scale,
        values=Values(*(jnp.asarray(leaf) for leaf in ready.values)),
        chance=(),  # type: ignore[arg-type]  # what the log says of chance and support comes once worlds are there
        support=(),  # type: ignore[arg-type]
        innovate=ready.innovate,
    )


def net_init(hypers: Any, block: Block, drawn: Drawn, known: Known) -> Net:
    """One net. Initial weights are the member's own in part and its fold's in part.

    What members differ by at random in their first weights is not belief about the world; with `init_diversity`
    below 1 the spread comes from priors and data.
    """
    out, own = block.width, hypers.init_diversity
    mix = lambda mine, ours: own * mine + jnp.sqrt(1 - jnp.square(own)) * ours
    net = jax.tree.map(mix, drawn.net[:-1], drawn.common[:-1])
    floor = 2 * jnp.log(jnp.asarray(hypers.floor))
    spread = jnp.clip(jnp.log(known.left), floor, 0.0)  # the variance that the linear map leaves
    last = Layer(jnp.zeros_like(drawn.net[-1].weight), jnp.concatenate([jnp.zeros(out), spread]))
    return Net(
        net=(*net, last),
        extra=scaled_last(drawn.extra, 0.1)[0] if block.extras else (),
        low=jnp.full(out, floor),
        high=jnp.full(out, 0.5),
        linear=known.linear,
        prior=drawn.prior,
        prior_scale=hypers.prior_scale * gain_of(known),
        floor=floor,
    )
