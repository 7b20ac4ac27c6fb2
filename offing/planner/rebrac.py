"""ReBRAC: TD3 held to the log twice, by its actor and by its critics (Tarasov et al., 2023).

Q:  E[ (r + discount * (1 - done) (min Qbar(s', a') - critic_bc |a' - a'_logged|^2) - Q(s, a))^2 ]
pi: E[ actor_bc |pi(s) - a|^2 - min Q(s, pi(s)) / mean|Q| ]

The critics have LayerNorm. Rewards are in units of their size in the log, and so is what `critic_bc` is held
against. Smoothing, order of steps, ends of episodes, and nearness of choices: `_td3`.
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
    """phi_III. Defaults: the paper's for locomotion (Tarasov et al., 2023, appendix B)."""

    batch_size: int = 1024
    depth: int = 3
    lr: float = 1e-3
    actor_bc: float = 0.003
    critic_bc: float = 0.001


def update(
    key: Key, hypers: Hypers, state: _td3.State, data: Dataset, posterior: Posterior
) -> tuple[_td3.State, dict[str, Array]]:
    """Two steps of the critics and one of the actor."""
    return _td3.update(key, hypers, state, data, posterior, actor_loss, hypers.critic_bc, normed=True)


def actor_loss(
    actor: Actor, hypers: Hypers, b: Transition, critic: Net, actions: Box | Discrete
) -> tuple[Array, None]:
    """Near what was logged, and worth much; worth counts in units of its size."""
    action = best(actor, b.obs, actions)
    q = critics(critic, b.obs, action, actions, normed=True).min(0)
    size = jax.lax.stop_gradient(jnp.maximum(jnp.abs(q).mean(), 1e-6))
    return jnp.mean(hypers.actor_bc * _td3.unlike(action, b.action, actions) - q / size), None


planner = Planner(
    name="rebrac",
    words="TD3 whose actor and critics are both held to the log",
    Hypers=Hypers,
    init=_td3.init,
    update=update,
    policy=_td3.policy,
    blank=_td3.blank,
    imagines=False,
    spaces={
        "smoke": lambda: grid(Hypers(**TINY), actor_bc=(0.01, 0.1)),
        "quick": lambda: grid(Hypers(**BRIEF), critic_bc=(0.01,), actor_bc=(0.03, 0.3)),
        "standard": lambda: grid(Hypers(**SMALL), critic_bc=(0.0, 0.01, 0.1), actor_bc=(0.003, 0.03, 0.1, 0.3)),
        "large": lambda: grid(Hypers(**LARGE), critic_bc=(0.001, 0.01), actor_bc=(0.003, 0.03, 0.1)),
        # the paper's table of grids
        "paper": lambda: grid(
            Hypers(**WHOLE),
            critic_bc=(0.0, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.1),
            actor_bc=(5e-4, 1e-3, 2e-3, 3e-3, 0.03, 0.1, 0.3, 1.0),
        ),
    },
    reports=_td3.REPORTS,
    candidate=("quick", "standard", "large"),
    paced=paced,
)
