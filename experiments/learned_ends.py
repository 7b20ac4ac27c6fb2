"""Does the learned termination head end episodes when the world would? CartPole, random policies, 5,000 rows.

    python experiments/learned_ends.py

Fits a posterior to the embedded log (no environment), then draws policies that the log never saw and compares
the mean length of their episodes in the posterior's worlds with that in the true environment. The true
environment is here to check, afterwards; nothing fitted has seen it.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import jax
import numpy as np

import offing
from offing.online import collect, envs
from offing.posterior import walk
from offing.report.store import write
from offing.types import Array, Key

RESULTS = Path(__file__).parent / "results" / "learned_ends.json"


def true_lengths(key: Key, env: envs.Env, policies: collect.RandomPolicy, episodes: int) -> Array:
    """Steps until the end, [policies, episodes], in the true environment."""

    def one(key: Key, policy: collect.RandomPolicy) -> Array:
        rows = collect.rollout(key, env, lambda k, obs, t: collect.act(k, policy, obs, env.task.actions))
        return rows["alive"].sum()

    keys = jax.random.split(key, (policies.noise.shape[0], episodes))
    return jax.vmap(jax.vmap(one, in_axes=(0, None)))(keys, policies)


def imagined_lengths(
    key: Key, posterior: offing.Posterior, policies: collect.RandomPolicy, episodes: int
) -> Array:
    """Steps until the end, [policies, members, episodes], in the posterior's worlds."""
    step = walk.fixed(posterior)

    def one(key: Key, policy: collect.RandomPolicy) -> Array:
        k1, k2 = jax.random.split(key)
        flat = lambda obs: obs.reshape(-1, obs.shape[-1])

        def act(key: Key, obs: Array, t: Array) -> Array:
            keys = jax.random.split(key, flat(obs).shape[0])
            choose = jax.vmap(lambda k, o: collect.act(k, policy, o, posterior.task.actions))
            return choose(keys, flat(obs)).reshape(*obs.shape[:-1], -1)

        rows = walk.roll(k2, step, walk.begin(k1, posterior, episodes), act, posterior.task.horizon)
        return rows["alive"].sum(0)

    return jax.lax.map(lambda at: one(*at), (jax.random.split(key, policies.noise.shape[0]), policies))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--scale", default="quick")
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    env = envs.make("cartpole")
    found = []
    print("| seed | true length | imagined | off by | over policies: correlation |\n|--:|--:|--:|--:|--:|")
    for seed in given.seeds:
        log = offing.load("offing:cartpole", given.rows, seed)
        choice = offing.choose_posterior(jax.random.key(seed), log, offing.space(given.scale), seed)
        k1, k2, k3 = jax.random.split(jax.random.key(1_000 + seed), 3)  # policies that made no log
        policies = collect.random_ensemble(k1, env)
        true = np.asarray(jax.jit(lambda k, p: true_lengths(k, env, p, given.episodes))(k2, policies)).mean(1)
        run = jax.jit(imagined_lengths, static_argnums=3)
        imagined = np.asarray(run(k3, choice.picked, policies, max(1, given.episodes // choice.picked.members)))
        imagined = imagined.mean((1, 2))
        row = {
            "seed": seed,
            "rows": given.rows,
            "scale": given.scale,
            "policies": len(true),
            "true": float(true.mean()),
            "imagined": float(imagined.mean()),
            "off": float(imagined.mean() / true.mean() - 1),
            "correlation": float(np.corrcoef(true, imagined)[0, 1]),
            "device": jax.devices()[0].device_kind,
            "jax": jax.__version__,
            "python": platform.python_version(),
        }
        found.append(row)
        lengths = f"{row['true']:.2f} | {row['imagined']:.2f} | {row['off']:+.1%}"
        print(f"| {seed} | {lengths} | {row['correlation']:.3f} |", flush=True)
    write(given.out, (json.dumps(found, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
