"""Ways to step through a posterior: one hypothesis per episode, or a new one at every step.

Worlds are laid out [members, copies]: the copies of a world step together, as one batched product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..types import Array, Drawn, Key, Moments, Posterior

DRAWS = 16  # of a step, where a world has no moments of its own


class Place(NamedTuple):
    """Where episodes are: what is seen, and what their worlds remember."""

    obs: Array  # [M, C, S]
    memory: Any  # [M, C, ...]


WorldStep = Callable[[Key, Place, Array], tuple[Place, Drawn]]


def steps_worth(discount: float, steps: Array | int) -> Array | float:
    """What so many steps are worth that each earn 1."""
    return (1 - discount**steps) / (1 - discount) if discount < 1 else steps


def lost_beyond(posterior: Posterior) -> Array | float:
    """What a step costs at worst that an episode no longer takes since it left the log; 0 or below.

    Where episodes can end, one that leaves the log is over. Where every step costs something, that would pay: a
    plan would run out of the log to save what staying costs.
    """
    if posterior.going is None or not posterior.terminates:
        return 0.0
    return jnp.minimum(jnp.asarray(posterior.going), 0.0)


def memories(posterior: Posterior, copies: int) -> Any:
    """The memory of episodes before their first step [M, copies, ...]."""
    one = jax.vmap(posterior.begin)(posterior.theta)
    return jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf[:, None], (leaf.shape[0], copies, *leaf.shape[1:])), one
    )


def begin(key: Key, posterior: Posterior, copies: int) -> Place:
    """Starts of episodes: logged ones, drawn independently for every world and copy."""
    index = jax.random.randint(key, (posterior.members, copies), 0, posterior.starts.shape[0])
    return Place(jnp.asarray(posterior.starts)[index], memories(posterior, copies))


def fixed(posterior: Posterior) -> WorldStep:
    """Every world steps its own copies: (key, place, action [M, C, A]); one hypothesis per episode."""

    def step(key: Key, place: Place, action: Array) -> tuple[Place, Drawn]:
        keys = jax.random.split(key, posterior.members)
        drawn, memory = jax.vmap(posterior.sample)(keys, posterior.theta, place.memory, place.obs, action)
        return Place(drawn.next_obs, memory), drawn

    return step


def redrawn(posterior: Posterior) -> WorldStep:
    """As `fixed`, but copies change worlds at every step (the released code's way)."""
    inner = fixed(posterior)

    def step(key: Key, place: Place, action: Array) -> tuple[Place, Drawn]:
        k1, k2 = jax.random.split(key)
        members, copies = place.obs.shape[:2]
        order = jax.random.permutation(k1, members * copies)
        back = jnp.argsort(order)

        def moved(order: Array, tree: Any) -> Any:
            flat = lambda leaf: leaf.reshape(members * copies, *leaf.shape[2:])[order].reshape(leaf.shape)
            return jax.tree.map(flat, tree)

        return moved(back, inner(k2, moved(order, place), moved(order, action)))

    return step


def expected(posterior: Posterior, place: Place, action: Array) -> Moments:
    """What all worlds expect of every step [M, M, C, ...], whichever world it is taken in."""
    ask = posterior.moments or _drawn_moments(posterior)
    return jax.vmap(ask, (0, None, None, None))(posterior.theta, place.memory, place.obs, action)


def moments_of(posterior: Posterior) -> Callable[..., Moments]:
    """The posterior's own moments, or what draws come to where it has none."""
    return posterior.moments or _drawn_moments(posterior)


def _drawn_moments(posterior: Posterior) -> Callable[..., Moments]:
    def ask(
        theta: Any, memory: Any, obs: Array, action: Array, after: Array | None = None, ended: Array | None = None
    ) -> Moments:
        del after, ended
        keys = jax.random.split(jax.random.key(0), DRAWS)
        drawn = jax.vmap(lambda key: posterior.sample(key, theta, memory, obs, action)[0])(keys)
        y = jnp.concatenate([drawn.next_obs - obs, drawn.reward[..., None]], -1)
        return Moments(y.mean(0), y.std(0), drawn.terminated.mean(0))

    return ask


def penalised(posterior: Posterior, coefficient: float | Array, raw: bool = False) -> WorldStep:
    """As `fixed`, and a step costs `coefficient` times what the least certain world doubts of it (MOPO).

        reward - coefficient * max_m |std_m(obs, action)|         (Yu et al., 2020)

    over change of state and reward. `raw` takes both in the log's own units, as the paper does: a coefficient
    then means one thing for one choice of units. Otherwise standard deviations are in widths of the log's ranges
    and the cost is in widths of the rewards', so that it does not matter what a column is measured in.
    """
    units = jnp.ones(()) if raw else widths(posterior)
    price = coefficient * (1.0 if raw else units[-1])
    inner = fixed(posterior)

    def step(key: Key, place: Place, action: Array) -> tuple[Place, Drawn]:
        every = expected(posterior, place, action)
        doubt = jnp.sqrt(jnp.sum(jnp.square(every.std / units), -1)).max(0)  # [M, C]
        after, drawn = inner(key, place, action)
        return after, drawn._replace(reward=drawn.reward - price * doubt)

    return step


def halting(posterior: Posterior, threshold: float | Array, offset: float | Array) -> WorldStep:
    """As `fixed`, and an episode halts where two worlds are further apart than `threshold` (MOReL).

    The step that halts earns the least that was ever logged, plus `offset`, once, and is the last (Kidambi et al.,
    2020). So where every step costs something, an `offset` that is small beside what a whole episode costs makes
    halting worth it.
    """
    inner = fixed(posterior)

    def step(key: Key, place: Place, action: Array) -> tuple[Place, Drawn]:
        halted = disagreement(posterior, expected(posterior, place, action).mean) > threshold
        after, drawn = inner(key, place, action)
        reward = jnp.where(halted, jnp.asarray(posterior.low)[-1] + offset, drawn.reward)
        return after, drawn._replace(reward=reward, terminated=drawn.terminated | halted)

    return step


def disagreement(posterior: Posterior, mean: Array) -> Array:
    """How far apart the two worlds that differ most are, by their predictions of a step mean [M, ..., D]: [...].

    In widths of the log's ranges.
    """
    mean = mean / widths(posterior)
    return jnp.sqrt(jnp.sum(jnp.square(mean[:, None] - mean), -1)).max((0, 1))


def widths(posterior: Posterior) -> Array:
    """Of the log's ranges of state and reward [S + 1]; 1 where a column is constant."""
    width = posterior.high - posterior.low  # on the host where they are there: it is no program of its own
    return width + (width == 0)


def roll(
    key: Key, step: WorldStep, place: Place, act: Callable[[Key, Array, Array], Array], steps: int
) -> dict[str, Array]:
    """`steps` steps from a place under act(key, obs, t): obs, reward, done and alive [T, M, C, ...]."""

    def one(carry: Any, at: Any) -> Any:
        (place, alive), (key, t) = carry, at
        k1, k2 = jax.random.split(key)
        place, drawn = step(k2, place, act(k1, place.obs, t))
        row = {"obs": drawn.next_obs, "reward": drawn.reward, "done": drawn.terminated, "alive": alive}
        return (place, alive & ~drawn.terminated), row

    times = (jax.random.split(key, steps), jnp.arange(steps))
    return jax.lax.scan(one, (place, jnp.ones(place.obs.shape[:-1], bool)), times)[1]
