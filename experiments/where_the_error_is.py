"""On which held-out rows is the posterior wrong? At walls, where columns stop; early in episodes; anywhere?

    python experiments/where_the_error_is.py offing:pendulum --rows 5000
    python experiments/where_the_error_is.py out/logs/walker2d.npz --rows 200000 --lag

Columns that are cut off, as some simulators cut off speeds, hide how fast things really move. `--lag` gives worlds
the change since the observation before as further columns: what a speed was, positions then tell. Errors are of
the log's own columns either way, in shares of each target's variance.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np

import offing
from offing.data import Log
from offing.data.dataset import runs
from offing.pil import expect
from offing.posterior._kinds import stops
from offing.posterior._space import LARGE
from offing.posterior.models import ensemble

TIMES = (0, 5, 20, 100, 300, 1_000)  # steps of an episode


def lagged(log: Log) -> Log:
    """The log with each observation's change since the one before as further columns; 0 where episodes begin."""
    steps, episode = jax.tree.map(np.asarray, log.data.steps), np.asarray(log.data.episode)
    before = np.concatenate([steps.obs[:1], steps.obs[:-1]])
    first = np.r_[True, episode[1:] != episode[:-1]]
    before[first] = steps.obs[first]
    obs = np.concatenate([steps.obs, steps.obs - before], -1)
    after = np.concatenate([steps.next_obs, steps.next_obs - steps.obs], -1)
    starts = np.asarray(log.data.starts)
    starts = np.concatenate([starts, np.zeros_like(starts)], -1)
    return log._replace(data=log.data._replace(steps=steps._replace(obs=obs, next_obs=after), starts=starts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", nargs="?", default="offing:pendulum")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=8_000)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--width", type=int, default=LARGE["width"])
    parser.add_argument("--depth", type=int, default=LARGE["depth"])
    parser.add_argument("--activation", default=LARGE["activation"])
    parser.add_argument("--batch-size", type=int, default=ensemble.Hypers().batch_size)
    parser.add_argument("--lr", type=float, default=LARGE["lr"])
    parser.add_argument("--prior-scale", type=float, default=0.0)
    parser.add_argument("--lag", action="store_true")
    given = parser.parse_args()
    plain = offing.load(given.log, given.rows, given.seed)
    log = lagged(plain) if given.lag else plain
    parts, _ = offing.data.split(plain.data, given.seed)
    held = offing.data.take(log.data, parts.held)
    hypers = replace(
        ensemble.Hypers(**LARGE),
        updates=given.updates,
        members=given.members,
        elites=given.members,
        width=given.width,
        depth=given.depth,
        activation=given.activation,
        batch_size=given.batch_size,
        lr=given.lr,
        prior_scale=given.prior_scale,
    )
    prepared = ensemble.prepare(log.data, log.task)
    fit = jax.jit(lambda k, h, d, s, a: ensemble.model.fit(k, h, d, s, a, prepared.shape))
    fitted = fit(jax.random.key(given.seed), hypers, log.data, parts, prepared.arrays)
    worlds = ensemble.posterior(fitted, hypers, prepared, log.data, log.task)

    steps, width = jax.tree.map(np.asarray, held.steps), plain.data.steps.obs.shape[-1]
    expected, _ = expect(worlds, worlds.along(held), held.steps)
    own = np.r_[np.arange(width), expected.shape[-1] - 1]  # the log's own columns, and the reward
    mean = np.asarray(expected)[..., own].reshape(worlds.folds, -1, held.rows, width + 1).mean(1)
    target = np.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1)[:, own]
    each = np.mean((mean - target) ** 2, 0) / np.maximum(target.var(0), 1e-12)  # [N, D]
    row = each.mean(-1)
    walls = stops(np.asarray(plain.data.steps.next_obs)[: plain.data.rows])
    at = (steps.obs[:, :width] == walls[0]) | (steps.obs[:, :width] == walls[1])
    note = " with the change since the row before" if given.lag else ""
    print(f"{given.log}, {plain.data.rows:,} rows, seed {given.seed}{note}: {held.rows:,} held-out rows")
    print(f"likelihood {-float(np.mean(fitted.nll)):.3f} nats a row")
    print(f"error {row.mean():.4f} of the variance, median row {np.median(row):.4f}")
    print("columns: " + " ".join(f"{e:.3f}" for e in each.mean(0)) + " (reward last)")
    some = at.any(-1)
    print(f"at a wall: {some.mean():.0%} of rows" + (f", error {row[some].mean():.4f}" if some.any() else ""))
    print(f"elsewhere: error {row[~some].mean():.4f}")
    time = np.concatenate([np.arange(len(run)) for run in runs(np.asarray(held.episode)[: held.rows])])
    for low, high in pairwise(TIMES):
        now = (time >= low) & (time < high)
        if now.any():
            print(f"steps {low} to {high - 1}: {now.mean():.0%} of rows, error {row[now].mean():.4f}")


if __name__ == "__main__":
    main()
