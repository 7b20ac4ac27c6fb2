"""Policies that nobody trained, and the exact log-probability of what they do.

Amounts are drawn from a Gaussian that is cut to their box and scaled up again, so that the density is a plain one:

    x | s ~ N(m(s), d^2) given -1 <= x <= 1,    action = centre + half * x,
    log p = log N(x; m, d^2) - log [F((1 - m) / d) - F((-1 - m) / d)] - log half,    F the normal's
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from ..nets import Layer, mlp
from ..types import Array, Box, Discrete, Key

HIDDEN = (64, 64)
ENSEMBLE = 64  # policies that take turns within an episode
TURN = 0.05  # chance that another policy takes over at a step
Acted = dict[str, Array]  # `action`, and `logp` where it is exact


class RandomPolicy(NamedTuple):
    """A policy nobody trained: a net drawn at random, and how much it strays from what the net says."""

    net: Any
    noise: Array


def random_policy(key: Key, width: int, actions: Box | Discrete) -> RandomPolicy:
    """One member of the ensemble of randomly initialised policies (the paper's Gymnax logs)."""
    k1, k2, k3 = jax.random.split(key, 3)
    gain = jnp.exp(jax.random.uniform(k1, minval=-1.0, maxval=2.0))  # from timid to bang-bang
    net = _drawn(k2, (width, *HIDDEN, actions.width), gain)
    return RandomPolicy(net, jax.random.uniform(k3, minval=0.1, maxval=1.0))


def _drawn(key: Key, sizes: tuple[int, ...], last: Array) -> tuple[Layer, ...]:
    """A net layer by layer, as the embedded samples' policies were drawn; the last layer scaled by `last`."""
    normal = jax.nn.initializers.lecun_normal()
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    layers = [Layer(normal(k, (i, o)).T, jnp.zeros(o)) for k, i, o in shapes]
    return (*layers[:-1], Layer(layers[-1].weight * last, layers[-1].bias))


def random_ensemble(key: Key, width: int, actions: Box | Discrete) -> RandomPolicy:
    """An ensemble of random policies, stacked, for observations of that many numbers."""
    return jax.vmap(lambda k: random_policy(k, width, actions))(jax.random.split(key, ENSEMBLE))


def act(key: Key, policy: RandomPolicy, obs: Array, actions: Box | Discrete) -> Acted:
    """What the policy does: a sampled choice, or an amount from a Gaussian cut to the box."""
    out = mlp(policy.net, obs, "tanh")
    if isinstance(actions, Discrete):
        index = jax.random.categorical(key, out / policy.noise)
        logp = jnp.minimum(jax.nn.log_softmax(out / policy.noise)[index], 0.0)  # by rounding it may exceed 0
        return {"action": jax.nn.one_hot(index, actions.n), "logp": logp}
    return around(key, jnp.tanh(out), policy.noise, actions)


def act_clipped(key: Key, policy: RandomPolicy, obs: Array, actions: Box | Discrete) -> Acted:
    """As `act`, but amounts are clipped to the box, as in the embedded samples.

    What is clipped has no density: a part of the draws lies on the edge itself. So there is no `logp`.
    """
    if isinstance(actions, Discrete):
        return act(key, policy, obs, actions)
    out = mlp(policy.net, obs, "tanh")
    low, high = jnp.array(actions.low), jnp.array(actions.high)
    squeezed = jnp.tanh(out) + policy.noise * jax.random.normal(key, out.shape)
    return {"action": jnp.clip((low + high) / 2 + (high - low) / 2 * squeezed, low, high)}


def around(key: Key, mean: Array, std: Array | float, actions: Box) -> Acted:
    """An amount near `mean` [..., A], which is in units of the box's half-widths, from -1 to 1; so is `std`."""
    low, high = jnp.array(actions.low), jnp.array(actions.high)
    half = (high - low) / 2
    under, over = (-1 - mean) / std, (1 - mean) / std
    drawn = jax.random.truncated_normal(key, under, over, mean.shape)
    inside = norm.logpdf(drawn) - jnp.log(std) - jnp.log(norm.cdf(over) - norm.cdf(under))
    action = (low + high) / 2 + half * (mean + std * drawn)
    return {"action": jnp.clip(action, low, high), "logp": jnp.sum(inside - jnp.log(half), -1)}


def uniform(key: Key, actions: Box | Discrete, count: int) -> Array:
    """That many actions [N, A], each as likely as any other."""
    if isinstance(actions, Discrete):
        return jax.nn.one_hot(jax.random.randint(key, (count,), 0, actions.n), actions.n)
    low, high = (jnp.array(edge) for edge in actions)
    return jax.random.uniform(key, (count, actions.width), minval=low, maxval=high)


def turns(
    keys: Key, policies: RandomPolicy, who: Array, start: Array, obs: Array, actions: Box | Discrete
) -> tuple[Acted, Array]:
    """What the ensemble does in episodes [N], each with its key of this step, and whose turn it is."""

    def one(key: Key, who: Array, start: Array, obs: Array) -> tuple[Acted, Array]:
        k1, k2, k3 = jax.random.split(key, 3)
        other = jax.random.randint(k1, (), 0, ENSEMBLE)
        who = jnp.where(start | jax.random.bernoulli(k2, TURN), other, who)
        return act(k3, jax.tree.map(lambda leaf: leaf[who], policies), obs, actions), who

    return jax.vmap(one)(keys, who, start, obs)
