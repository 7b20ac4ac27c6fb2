"""What rows that worlds have not seen say of them: which rows those are, how much is chance, and how certain
ends are.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Split, take
from ..pil import evenly
from ..posterior.replay import Replay, replay
from ..posterior.walk import sharpened
from ..types import Array, Dataset, Key, Posterior

CERTAINTIES = (1.0, 0.3, 0.1, 0.03, 0.01)  # how sure ends may be, from as likely as worlds say to certain
MANY = 32_768  # held-out rows that are asked about ends, which may be few
ENDS = 3  # ends among held-out rows, fewer than which say nothing of it


def unseen(data: Dataset, parts: Split) -> list[Dataset]:
    """For each fold, the rows that its worlds had no part in: those held out, and those of the other folds."""
    trained = [train[:size] for train, size in zip(parts.train, parts.sizes, strict=True)]
    others = [[rows for g, rows in enumerate(trained) if g != f] for f in range(len(trained))]
    return [take(data, np.sort(np.concatenate([parts.held, *rest]))) for rest in others]


def certain(posterior: Posterior, held: Dataset) -> Posterior:
    """The posterior with ends as certain as held-out rows say: of CERTAINTIES, the likeliest.

    Its worlds are asked as they will be, of where they themselves think that a step leads. Where ends lie on a
    sharp edge, certainty fits; where what ends an episode is not seen (how long something stood still, what the
    ground is like), chances do.
    """
    rows = evenly(held, MANY)
    done = np.asarray(held.steps.done, np.float64)[rows]
    if posterior.task.done is not None or done.sum() < ENDS:
        return posterior
    chance = _ends(posterior, held.steps.obs[rows], held.steps.action[rows])
    loss = []
    for scale in CERTAINTIES:
        sure = np.clip(np.asarray(sharpened(chance, scale), np.float64), 1e-6, 1 - 1e-6)
        loss.append(-np.mean(np.log(np.where(done > 0.5, sure, 1 - sure))))
    return replace(posterior, ends_scale=jnp.asarray(CERTAINTIES[int(np.argmin(loss))], jnp.float32))


@jax.jit
def _ends(posterior: Posterior, obs: Array, action: Array) -> Array:
    """What every world thinks of a step's being the last [M, N]."""
    return jax.vmap(posterior.predict, in_axes=(0, None, None))(posterior.theta, obs, action).done


def with_scale(posterior: Posterior, key: Key, held: Dataset) -> tuple[Posterior, Replay | None]:
    """The posterior with the noise scale that fits its replay of held-out rows, and that replay."""
    curve = replay(jax.random.fold_in(key, 1), posterior, held)
    scale = 1.0 if curve is None else curve.scale
    return replace(posterior, noise_scale=jnp.asarray(scale, jnp.float32)), curve
