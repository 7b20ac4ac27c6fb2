"""On which held-out rows is the posterior wrong? The pendulum at 5,000 rows: the share of E at the speed limit.

python experiments/where_the_error_is.py --seed 0
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import jax
import numpy as np

import offing
from offing.pil import FLOOR
from offing.posterior import ensemble, spaces

LIMIT = 7.999  # of the angular velocity, the third observation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    log = offing.load("offing:pendulum", given.rows, given.seed)
    parts, _ = offing.split(log.data, given.seed)
    held = offing.take(log.data, parts.held)
    hypers = replace(spaces.DEEP, updates=4_000, decay=1e-4)
    fit = jax.jit(lambda key, hypers, data, parts: ensemble.fit(key, hypers, data, parts, False, True))
    fitted = fit(jax.random.key(given.seed), hypers, log.data, parts)
    worlds = ensemble.posterior(fitted, hypers, log.data, log.task)
    steps = held.steps
    said = jax.vmap(worlds.predict, (0, None, None))(worlds.theta, steps.obs, steps.action).mean
    mean = np.asarray(said).reshape(worlds.folds, -1, held.rows, said.shape[-1]).mean(1)
    outcome = np.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1)
    error = np.sum((mean - outcome) ** 2 / outcome.var(0), -1) / (2 * FLOOR**2)  # [F, N]
    limit = np.abs(steps.next_obs[:, 2]) > LIMIT
    print(f"{limit.mean():.1%} of {held.rows} held-out rows are at the limit")
    for fold, e in enumerate(error):
        share, rest = e[limit].sum() / e.sum(), e[~limit].mean()
        print(f"fold {fold}: E {e.mean():.3g}, {share:.0%} of it at the limit, {rest:.3g} without those rows")


if __name__ == "__main__":
    main()
