"""Worlds made by hand: what they expect is written down, and chance about it is Gaussian."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from offing.data import Split
from offing.types import Dataset, Drawn, Moments, Posterior, Task, WorldModel

Say = Callable[[Any, Any, Any], Moments]  # theta, obs, action -> what is expected


@dataclass(frozen=True)
class Expected:
    """The moments of such worlds."""

    say: Say

    def __call__(self, theta, memory, obs, action, after=None, ended=None):
        return self.say(theta, obs, action)


@dataclass(frozen=True)
class Sampled:
    """Draws of such worlds, held to a range as learned ones are."""

    say: Say
    task: Task
    low: tuple[float, ...]
    high: tuple[float, ...]
    noise: float = 0.0  # of the variance
    margin: float = np.inf  # widths of the range by which a state may leave it
    terminates: bool = False

    def __call__(self, key, theta, memory, obs, action):
        k1, k2 = jax.random.split(key)
        said, low, high = self.say(theta, obs, action), jnp.asarray(self.low), jnp.asarray(self.high)
        mean = said.mean.at[..., -1].set(jnp.clip(said.mean[..., -1], low[-1], high[-1]))
        y = mean + np.sqrt(self.noise) * said.std * jax.random.normal(k1, mean.shape)
        after = held = obs + y[..., :-1]
        if np.isfinite(self.margin):
            room = self.margin * (high - low)
            held = jnp.clip(after, (low - room)[:-1], (high + room)[:-1])
        out = jnp.any(held != after, -1)
        ended = jax.random.bernoulli(k2, said.terminated)
        if self.task.done is not None:
            ended = self.task.done(obs, action, held)
        reward = jnp.where(out, low[-1], y[..., -1])
        clipped = mean[..., -1] != said.mean[..., -1]
        return Drawn(held, reward, ended | (out & self.terminates), out, clipped), memory


def worlds(
    say: Say, theta: Any, starts: Any, low: Any, high: Any, task: Task, folds: int = 1, **rest
) -> Posterior:
    """A posterior of such worlds; `rest` is `Sampled`'s."""
    tuples = (tuple(np.asarray(edge, float).tolist()) for edge in (low, high))
    sample = Sampled(say, task, *tuples, **rest)
    return Posterior(
        theta=theta,
        starts=jnp.asarray(starts, jnp.float32),
        low=jnp.asarray(low, jnp.float32),
        high=jnp.asarray(high, jnp.float32),
        sample=sample,
        task=task,
        moments=Expected(say),
        folds=folds,
        terminates=sample.terminates,
    )


def changed(posterior: Posterior, **rest) -> Posterior:
    """Such a posterior with other settings of its draws, and of its own where they have the same name."""
    sample = posterior.sample
    assert isinstance(sample, Sampled)
    own = {name: value for name, value in rest.items() if name in ("task", "terminates")}
    own |= {name: jnp.asarray(rest[name], jnp.float32) for name in ("low", "high") if name in rest}
    drawn = {
        name: tuple(np.asarray(v, float).tolist()) if name in ("low", "high") else v for name, v in rest.items()
    }
    if "say" in rest:
        own["moments"] = Expected(rest["say"])
    return replace(posterior, sample=replace(sample, **drawn), **own)


def everything(rows: int, folds: int = 1) -> Split:
    """All rows to every fold, to learn from and to validate by."""
    every = np.arange(rows, dtype=np.int32)
    sizes = np.full(folds, rows, np.int32)
    return Split(np.stack([every] * folds), sizes, every, np.asarray(rows, np.int32), np.zeros(0, np.int32))


def fitted(model: WorldModel, key: jax.Array, hypers: Any, data: Dataset, task: Task) -> Posterior:
    """A model's worlds in one fold, fitted to all rows in use."""
    hypers, prepared = replace(hypers, folds=1), model.prepare(data, task)
    run = jax.jit(
        lambda key, hypers, data, parts, arrays: model.fit(key, hypers, data, parts, arrays, prepared.shape)
    )
    found = run(key, hypers, data, everything(data.rows), prepared.arrays)
    return model.posterior(found, hypers, prepared, data, task)
