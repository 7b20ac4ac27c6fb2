"""How much of the learned variance is chance? Held-out action sequences, replayed in every world, tell.

From a logged state the worlds take the logged actions for h steps, with their variance scaled by 0 to 1. A
scale fits when the truth h steps on looks like one more draw: judged by the continuous ranked probability
score (Gneiting & Raftery, 2007) of the worlds' h-step predictions, which punishes error and misjudged spread
alike. Variance that is really model error shrinks this fit as h grows; variance that is chance improves it. And no
scale fits that drives the worlds out of the log's range, where what is replayed never went: a variance that rare
collisions taught would shake every step, and over a whole episode nothing stays where it belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, Dataset, Key, Posterior
from .walk import watched

SCALES = (0.0, 0.25, 0.5, 0.75, 1.0)
STRAY = 0.02  # of the draws may leave the log's range that did not without noise
FEWEST = 16  # segments that must still run at a horizon for it to count


class Replay(NamedTuple):
    """Error against spread by horizon, for each noise scale, in units of the observations' scale."""

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


@jax.jit(static_argnames=("draws",))
def _rerun(
    key: Key, posterior: Posterior, scales: Array, obs: Array, actions: Array, draws: int
) -> tuple[Array, Array]:
    """Observations [K, T, M, draws * B, S] of the worlds under logged actions [T, B, A], and whether they left the
    log's range [K, T, M, draws * B].
    """
    members = posterior.members
    first = jnp.broadcast_to(jnp.tile(obs, (draws, 1)), (members, draws * obs.shape[0], obs.shape[1]))

    def at(scale: Array) -> tuple[Array, Array]:
        step = watched(replace(posterior, noise_scale=scale))

        def one(obs: Array, given: tuple[Key, Array]) -> tuple[Array, tuple[Array, Array]]:
            key, action = given
            action = jnp.broadcast_to(jnp.tile(action, (draws, 1)), (*obs.shape[:2], action.shape[-1]))
            (after, _, _), _, left = step(key, obs, action)
            return after, (after, left)

        return jax.lax.scan(one, first, (jax.random.split(key, actions.shape[0]), actions))[1]

    return jax.lax.map(at, scales)


def replay(
    key: Key,
    posterior: Posterior,
    held: Dataset,
    longest: int = 64,
    count: int = 64,
    draws: int = 2,
    tried: Sequence[float] = SCALES,
) -> Replay | None:
    """The curve of error and spread on held-out rows, and the scale that fits; None without runs of two steps."""
    firsts, run = segments(held, longest, count, seed=0)
    horizons = [
        h for h in (2**i for i in range(11)) if np.sum(run >= h) >= min(FEWEST, len(run)) and h <= run.max()
    ]
    if len(horizons) < 2:
        return None
    last = held.rows - 1
    rows = np.minimum(firsts[:, None] + np.arange(horizons[-1]), last)  # [B, T]
    obs, actions = held.steps.obs[firsts], np.swapaxes(held.steps.action[rows], 0, 1)
    scales = np.asarray(tried, np.float32)
    out, left = (np.asarray(each) for each in _rerun(key, posterior, scales, obs, actions, draws))
    early = (np.arange(left.shape[1])[:, None] < np.tile(run, draws))[:, None]  # [T, 1, draws * B]
    left = np.any(left & early, 1).mean((1, 2))  # [K]
    out = np.asarray(out[:, np.asarray(horizons) - 1], np.float64)  # [K, H, M, draws * B, S]
    out = out.reshape(*out.shape[:3], draws, len(firsts), -1)
    out = np.moveaxis(out, 4, 2).reshape(len(scales), len(horizons), len(firsts), -1, out.shape[-1])
    width = np.asarray(held.steps.obs, np.float64).std(0)
    width = np.where(width > 0, width, 1.0)
    truth = np.stack([held.steps.next_obs[np.minimum(firsts + h - 1, last)] for h in horizons])  # [H, B, S]
    alive = np.stack([run >= h for h in horizons])[..., None] * np.ones_like(truth)  # [H, B, S]
    draws_, truth = out / width, (truth / width)[None]
    mean = lambda a: np.sum(a * alive, (2, 3)) / np.sum(alive, (1, 2))
    error = np.sqrt(mean((draws_.mean(3) - truth) ** 2))
    spread = np.sqrt(mean(draws_.var(3, ddof=1)))
    score = mean(_crps(draws_, truth))
    fit = np.log(np.maximum(score, 1e-12)).mean(1)
    best = int(np.argmin(np.where(left <= left.min() + STRAY, fit, np.inf)))
    return Replay(scales, np.asarray(horizons), error, spread, score, float(scales[best]), left)


def _crps(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """E|X - y| - E|X - X'| / 2 over the draws' axis, the last but one; fair for few draws."""
    count = draws.shape[3]
    near = np.abs(draws - truth[..., None, :]).mean(3)
    ordered = np.sort(draws, axis=3)
    weight = (2 * np.arange(count) - count + 1)[:, None]
    return near - np.sum(weight * ordered, 3) / (count * (count - 1))
