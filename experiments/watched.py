"""Deployments that `offing watch` looks at after every episode: how often it stops, keeps and names.

    python -m experiments.watched out/pendulum [--deployments 500]

The folder is that of `offing sorel offing:pendulum`. The policy acts in a pendulum of this file's own (the same as
the one that was logged): unchanged, and with one thing changed that one column is to be named for. Returns are
those of the first, moved to the mean that each line names.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import offing
from offing.types import Dataset, Seen, Transition
from offing.watch.columns import Scores, scores, surprise
from offing.watch.earning import KEEP, STOP, Earning
from offing.watch.watch import Watch

POOL = 1_000  # episodes of every kind that deployments draw from
STEPS = 200


class Change(NamedTuple):
    """What is no longer as it was logged, and the column to be named for it."""

    column: int = 2  # 0, 1, 2: cosine, sine, speed
    friction: float = 0.0
    gain: float = 1.0  # of the motor
    shaking: float = 0.0  # standard deviation of what chance adds to the speed at every step
    offset: float = 0.0  # of the column's sensor
    scale: float = 1.0  # of what it reads
    noise: float = 0.0  # standard deviation


CHANGES = {
    "friction 0.3": Change(friction=0.3),
    "friction 1": Change(friction=1.0),
    "speed's sensor off by 0.5": Change(offset=0.5),
    "speed's sensor off by 1": Change(offset=1.0),
    "motor at 70%": Change(gain=0.7),
    "motor at 130%": Change(gain=1.3),
    "speed shaken by 0.3 a step": Change(shaking=0.3),
    "speed's sensor reads 80%": Change(scale=0.8),
    "speed's sensor reads 130%": Change(scale=1.3),
    "speed's sensor noisy by 0.5": Change(noise=0.5),
    "cosine's sensor off by 0.2": Change(column=0, offset=0.2),
    "sine's sensor noisy by 0.1": Change(column=1, noise=0.1),
    "sine's sensor reads 80%": Change(column=1, scale=0.8),
}


def episodes(key: Any, policy: Any, change: Change) -> dict[str, np.ndarray]:
    """POOL episodes of the policy in a pendulum with that change."""
    k1, k2, k3, k4 = jax.random.split(key, 4)
    angle = jax.random.uniform(k1, (POOL,), minval=-jnp.pi, maxval=jnp.pi)
    speed = jax.random.uniform(k2, (POOL,), minval=-1.0, maxval=1.0)

    def seen_as(key: Any, angle: Any, speed: Any) -> Any:
        true = jnp.stack([jnp.cos(angle), jnp.sin(angle), speed], -1)
        read = change.scale * true + change.offset + change.noise * jax.random.normal(key, true.shape)
        return jnp.where(jnp.arange(3) == change.column, read, true)

    def one(carry: Any, at: Any) -> Any:
        (angle, speed, obs, memory, last, earned), (t, key) = carry, at
        k1, k2 = jax.random.split(key)
        action, memory = policy.act(policy.params, memory, Seen(obs, last, earned, jnp.full(POOL, t == 0.0)), None)
        push = jnp.clip(action[:, 0], -2, 2)
        turn = jnp.mod(angle + jnp.pi, 2 * jnp.pi) - jnp.pi
        reward = -(turn**2 + 0.1 * speed**2 + 0.001 * push**2)
        pull = 15 * jnp.sin(angle) + 3 * change.gain * push - change.friction * speed
        speed = speed + pull * 0.05 + change.shaking * jax.random.normal(k1, (POOL,))
        speed = jnp.clip(speed, -8, 8)
        angle = angle + speed * 0.05
        after = seen_as(k2, angle, speed)
        row = {"obs": obs, "action": action, "reward": reward, "next_obs": after}
        return (angle, speed, after, memory, action, reward), row

    first = (angle, speed, seen_as(k3, angle, speed), policy.begin(POOL), jnp.zeros((POOL, 1)), jnp.zeros(POOL))
    times = (jnp.arange(STEPS) * 1.0, jax.random.split(k4, STEPS))
    rows = jax.jit(lambda: jax.lax.scan(one, first, times)[1])()
    return {name: np.swapaxes(np.asarray(leaf), 0, 1) for name, leaf in rows.items()}  # [POOL, T, ...]


def scored(watch: Watch, pool: dict[str, np.ndarray]) -> tuple[Scores, np.ndarray]:
    """Scores and starts of the pool's episodes."""
    flat = {name: leaf.reshape(-1, *leaf.shape[2:]) for name, leaf in pool.items()}
    done, episode = np.zeros(POOL * STEPS, np.float32), np.repeat(np.arange(POOL), STEPS)
    parts = (flat[name] for name in ("obs", "action", "reward", "next_obs", "action"))
    steps = Transition(*parts, done=done)
    rows = Dataset(steps, pool["obs"][:, 0], episode, np.asarray(len(episode)))
    return scores(surprise(watch.worlds, rows), episode), pool["obs"][:, 0]


def columns(watch: Watch, pool: dict[str, np.ndarray], count: int, length: int, rng: Any) -> list[str | None]:
    """The column that each deployment named, if any."""
    each, starts = scored(watch, pool)
    named = []
    for _ in range(count):
        watch.columns.reset()
        for i in rng.choice(POOL, length, replace=False):
            watch.columns.take(Scores(*(score[i] for score in each)), starts[i])
        best = watch.columns.named
        named.append(None if best is None else best.column)
    return named


def earnings(
    watch: Watch, returns: np.ndarray, mean: float, count: int, length: int, rng: Any
) -> tuple[float, float]:
    """Shares of deployments that were ever stopped, and kept in the end; looked at after every episode."""
    moved = returns - returns.mean() + mean
    stopped = kept = 0
    for _ in range(count):
        earning = Earning(watch.earning.promise)
        for x in rng.choice(moved, length, replace=False):
            earning.update(x)
            if earning.word == STOP:
                break
        stopped += earning.word == STOP
        kept += earning.word == KEEP
    return stopped / count, kept / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--deployments", type=int, default=500)
    given = parser.parse_args()
    watch = Watch.of(given.folder, offing.load("offing:pendulum"))
    rng, n = np.random.default_rng(0), given.deployments
    plain = episodes(jax.random.key(1), watch.policy, Change())
    returns, promise = plain["reward"].sum(1), watch.earning.promise
    width = promise.high - promise.low
    print(f"promise {promise.low:.1f} ... {promise.high:.1f}; episodes differ by {returns.std():.1f}")
    means = {
        "the promised median": promise.median,
        "the interval's lower end": promise.low,
        "a quarter of the width below the interval": promise.low - width / 4,
        "half of the width below the interval": promise.low - width / 2,
    }
    for what, mean in means.items():
        stopped, kept = earnings(watch, returns, mean, n, 200, rng)
        print(f"true mean at {what}: STOP within 200 episodes in {stopped:.1%}, KEEP in {kept:.1%}")
    for what, change in {"nothing changed": Change(), **CHANGES}.items():
        pool = plain if change == Change() else episodes(jax.random.key(2), watch.policy, change)
        named = columns(watch, pool, n, 50, rng)
        due = watch.columns.names[change.column]
        any_, right = np.mean([x is not None for x in named]), np.mean([x == due for x in named])
        print(f"{what}: an alarm within 50 episodes in {any_:.1%}, {due} named in {right:.1%}")


if __name__ == "__main__":
    main()
