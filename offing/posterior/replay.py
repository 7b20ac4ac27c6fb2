"""Held-out action sequences, replayed in every world: how error and spread grow with the horizon.

From a logged state the worlds take the logged actions for h steps. What happened should look like one more draw:
judged by the error of the worlds' mean against their spread, and by the continuous ranked probability score
(Gneiting & Raftery, 2007) of their h-step predictions, which punishes error and misjudged spread alike.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..types import Array, Dataset, Key, Memory, Posterior
from .walk import Place, fixed

FEWEST = 16  # segments that must still run at a horizon for it to count


class Replay(NamedTuple):
    """Error against spread by horizon, in units of the observations' scale, for each scale of chance tried: 1."""

    scales: np.ndarray  # [K]
    horizons: np.ndarray  # [H]
    error: np.ndarray  # [K, H]  root mean square error of the worlds' mean
    spread: np.ndarray  # [K, H]  root mean variance over worlds and draws
    score: np.ndarray  # [K, H]  continuous ranked probability score
    scale: float  # the one that fits best
    left: np.ndarray  # [K]  share of draws that left the log's range on the way


def segments(held: Dataset, longest: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """First rows of at most `count` logged segments, and how many steps each can run, `longest` at most."""
    steps, rows = held.steps, held.rows
    joined = np.zeros(rows, bool)
    if rows > 1 and held.episode[0] >= 0:
        same = held.episode[1:] == held.episode[:-1]
        joined[:-1] = same & np.all(steps.next_obs[:-1] == steps.obs[1:], -1)
    run = np.ones(rows, int)
    for row in range(rows - 2, -1, -1):
        if joined[row]:
            run[row] = min(run[row + 1] + 1, longest)
    able = np.flatnonzero(run >= min(2, run.max()))
    firsts = np.random.default_rng(seed).permutation(able)
    firsts = firsts[np.argsort(-run[firsts], kind="stable")][: 4 * count]  # long ones, but not one place alone
    firsts = np.random.default_rng(seed + 1).permutation(firsts)[:count]
    return firsts, run[firsts]


@partial(compiled, static_argnames="draws")
def _rerun(
    key: Key, posterior: Posterior, obs: Array, memory: Memory, actions: Array, draws: int
) -> tuple[Array, Array]:
    """Observations [T, M, draws * B, S] of the worlds under logged actions [T, B, A], and whether they left the
    log's range [T, M, draws * B].
    """
    members, step = posterior.members, fixed(posterior)
    spread = lambda leaf: jnp.broadcast_to(
        jnp.tile(leaf, (draws, *[1] * (leaf.ndim - 1))), (members, draws * leaf.shape[0], *leaf.shape[1:])
    )

    def one(place: Place, given: tuple[Key, Array]) -> tuple[Place, tuple[Array, Array]]:
        key, action = given
        place, drawn = step(key, place, spread(action))
        return place, (drawn.next_obs, drawn.out_of_support)

    first = Place(spread(obs), jax.tree.map(spread, memory))
    return jax.lax.scan(one, first, (jax.random.split(key, actions.shape[0]), actions))[1]


def replay(
    key: Key, posterior: Posterior, held: Dataset, longest: int = 64, count: int = 64, draws: int = 2
) -> Replay | None:
    """The curve of error and spread on held-out rows; None without runs of two steps."""
    firsts, run = segments(held, longest, count, seed=0)
    horizons = [
        h for h in (2**i for i in range(11)) if np.sum(run >= h) >= min(FEWEST, len(run)) and h <= run.max()
    ]
    if len(horizons) < 2:
        return None
    last = held.rows - 1
    rows = np.minimum(firsts[:, None] + np.arange(horizons[-1]), last)  # [B, T]
    obs, actions = held.steps.obs[firsts], np.swapaxes(held.steps.action[rows], 0, 1)
    memory = jax.tree.map(lambda leaf: np.asarray(leaf)[firsts], posterior.along(held))
    out, left = (np.asarray(each) for each in _rerun(key, posterior, obs, memory, actions, draws))
    early = (np.arange(left.shape[0])[:, None] < np.tile(run, draws))[:, None]  # [T, 1, draws * B]
    gone = float(np.any(left & early, 0).mean())
    out = np.asarray(out[np.asarray(horizons) - 1], np.float64)  # [H, M, draws * B, S]
    out = out.reshape(*out.shape[:2], draws, len(firsts), -1)
    out = np.moveaxis(out, 3, 1).reshape(len(horizons), len(firsts), -1, out.shape[-1])  # [H, B, M * draws, S]
    width = np.asarray(held.steps.obs, np.float64).std(0)
    width = np.where(width > 0, width, 1.0)
    truth = np.stack([held.steps.next_obs[np.minimum(firsts + h - 1, last)] for h in horizons])  # [H, B, S]
    alive = np.stack([run >= h for h in horizons])[..., None] * np.ones_like(truth)  # [H, B, S]
    drawn, truth = out / width, truth / width
    mean = lambda a: np.sum(a * alive, (1, 2)) / np.sum(alive, (1, 2))
    error = np.sqrt(mean((drawn.mean(2) - truth) ** 2))
    spread = np.sqrt(mean(drawn.var(2, ddof=1)))
    curves = (error[None], spread[None], mean(_crps(drawn, truth))[None])
    return Replay(np.ones(1), np.asarray(horizons), *curves, 1.0, np.array([gone]))


def _crps(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """E|X - y| - E|X - X'| / 2 over the draws' axis, the last but one; fair for few draws."""
    count = draws.shape[2]
    near = np.abs(draws - truth[..., None, :]).mean(2)
    ordered = np.sort(draws, axis=2)
    weight = (2 * np.arange(count) - count + 1)[:, None]
    return near - np.sum(weight * ordered, 2) / (count * (count - 1))
