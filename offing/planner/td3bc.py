"""TD3+BC: TD3 whose actor is also held to the log (Fujimoto & Gu, 2021).

Q:  E[ (r + discount * (1 - done) min Qbar(s', a') - Q(s, a))^2 ]
pi: E[ |pi(s) - a|^2 / A - lambda Q_1(s, pi(s)) ],  lambda = alpha / mean|Q_1(s, pi(s))|

lambda is not differentiated. The square is a mean over an action's A numbers, as the authors' code has it.
Smoothing, the order of steps, and nearness of choices: `_td3`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..hypers import grid, hypers
from ..nets import Net
from ..types import Array, Box, Dataset, Discrete, Key, Planner, Posterior, Transition
from . import _td3
from ._parts import Actor, best, critics
from ._sizes import BRIEF, LARGE, SMALL, TINY, WHOLE, paced


@hypers
class Hypers(_td3.Hypers):
    """phi_III. Defaults: the paper's (Fujimoto & Gu, 2021, table 3)."""

    alpha: float = 2.5


def update(
    key: Key, hypers: Hypers, state: _td3.State, data: Dataset, posterior: Posterior
) -> tuple[_td3.State, dict[str, Array]]:
    """Two steps of the critics and one of the actor."""
    return _td3.update(key, hypers, state, data, posterior, actor_loss)


def actor_loss(
    actor: Actor, hypers: Hypers, b: Transition, critic: Net, actions: Box | Discrete
) -> tuple[Array, None]:
    """Near what was logged, and worth much to the first critic, `alpha` times as much in units of its size."""
    action = best(actor, b.obs, actions)
    first = jax.tree.map(lambda leaf: leaf[:1], critic)
    q = critics(first, b.obs, action, actions)[0]
    size = jax.lax.stop_gradient(jnp.maximum(jnp.abs(q).mean(), 1e-6))
    parts = 1 if isinstance(actions, Discrete) else actions.width
    near = jnp.mean(_td3.unlike(action, b.action, actions)) / parts
    return near - hypers.alpha / size * q.mean(), None


planner = Planner(
    name="td3bc",
    words="TD3 whose actor is also held to the log",
    Hypers=Hypers,
    init=_td3.init,
    update=update,
    policy=_td3.policy,
    blank=_td3.blank,
    reports=_td3.REPORTS,
    spaces={
        "smoke": lambda: grid(Hypers(**TINY), alpha=(1.0, 2.5)),
        "quick": lambda: grid(Hypers(**BRIEF), alpha=(2.5, 40.0)),
        "standard": lambda: grid(Hypers(**SMALL), alpha=(2.5, 10.0, 40.0, 160.0)),
        "large": lambda: grid(Hypers(**LARGE), alpha=(2.5, 10.0)),
        # the weights that Fujimoto & Gu (2021) compare
        "paper": lambda: grid(Hypers(**WHOLE), alpha=(1.0, 2.0, 2.5, 3.0, 4.0)),
    },
    imagines=False,
    candidate=("large",),
    paced=paced,
)
