"""Does the learned termination head end episodes when the world would?

    python experiments/learned_ends.py
    python experiments/learned_ends.py --suite gymnasium

Fits a posterior to a log (no environment), then takes policies that made no log and compares the mean length of
their episodes in the posterior's worlds with that in the true environment, which is here to check, afterwards.

The first suite: gymnax's CartPole, the embedded log of random policies, 5,000 rows; random policies of another
seed. The second: gymnasium's tasks, a log of what a learning agent did; the agents of another run, from its first
steps to its last. An agent does not find MountainCar's goal in so short a run, so there the policies push along
the velocity, some more reliably than others. LunarLander needs `pip install gymnasium[box2d]` besides. What has
results is not run again.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import offing
from offing.hypers import asdict
from offing.online import envs, learner, policies
from offing.online.collect import rollout
from offing.online.columns import columns
from offing.online.copies import Copies, copies
from offing.posterior import walk
from offing.posterior.models.ensemble import space as world_space
from offing.report.store import write
from offing.tune.choose import PosteriorChoice, choose_posterior
from offing.types import Array, Discrete, Key

RESULTS = Path(__file__).parent / "results"
Act = Callable[[Key, Any, Array, Any], policies.Acted]  # key, policy, obs, actions


class Case(NamedTuple):
    """A task of gymnasium, how many steps its agents learn for, and how many of them are logged."""

    name: str
    steps: int
    rows: int
    pumped: bool = False  # by policies that push along the velocity, instead of agents that learn


CASES = (
    Case("CartPole-v1", 50_000, 10_000),
    Case("Acrobot-v1", 100_000, 20_000),
    Case("InvertedPendulum-v5", 50_000, 10_000),
    Case("InvertedDoublePendulum-v5", 50_000, 10_000),
    Case("Hopper-v5", 50_000, 20_000),
    Case("LunarLander-v3", 100_000, 20_000),
    Case("MountainCar-v0", 50_000, 10_000, pumped=True),
)
AGENTS = 16  # held-out policies of a run


class Pump(NamedTuple):
    """Pushes along the velocity, and a share of the time anywhere."""

    idle: Array  # []


def pump(key: Key, policy: Pump, obs: Array, actions: Discrete) -> policies.Acted:
    """What a Pump does [..., A], and its log-probability; the last choice is the push in the velocity's sense."""
    k1, k2 = jax.random.split(key)
    idle = jnp.broadcast_to(policy.idle, obs.shape[:-1])
    along = jax.nn.one_hot(jnp.where(obs[..., 1] > 0, actions.n - 1, 0), actions.n)
    other = jax.nn.one_hot(jax.random.randint(k1, obs.shape[:-1], 0, actions.n), actions.n)
    action = jnp.where(jax.random.bernoulli(k2, idle)[..., None], other, along)
    chance = jnp.sum(action * ((1 - idle[..., None]) * along + idle[..., None] / actions.n), -1)
    return {"action": action, "logp": jnp.log(chance)}


def pumped(where: Copies, steps: int, seed: int) -> learner.Learned:
    """A run of pumps, a new one in every episode, from steady to idle ones."""
    draws = np.random.default_rng([seed, 7])
    act = jax.jit(pump, static_argnames="actions")
    fresh = lambda: draws.integers(0, 2**32, where.count, dtype=np.uint32)
    obs = where.reset(np.ones(where.count, bool), fresh())
    idle, rows = draws.uniform(0.0, 1.0, where.count), []
    for t in range(-(-steps // where.count)):
        acted = act(jax.random.fold_in(jax.random.key(seed), t), Pump(jnp.asarray(idle)), obs, where.task.actions)
        out = where.step(np.asarray(acted["action"]))
        outcome = {"reward": out.reward, "next_obs": out.obs, "terminated": out.terminated, "late": out.truncated}
        rows.append({**jax.tree.map(np.asarray, acted), "obs": obs, **outcome})
        over = out.terminated | out.truncated
        idle = np.where(over, draws.uniform(0.0, 1.0, where.count), idle)
        obs = where.reset(over, fresh()) if over.any() else out.obs
    whole = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return learner.Learned(whole, whole["terminated"] | whole["late"], [])


def imagined_lengths(key: Key, posterior: offing.types.Posterior, stack: Any, act: Act, episodes: int) -> Array:
    """Steps until the end, [policies, members, episodes], in the posterior's worlds."""
    step = walk.fixed(posterior)

    def one(key: Key, policy: Any) -> Array:
        k1, k2 = jax.random.split(key)
        flat = lambda obs: obs.reshape(-1, obs.shape[-1])

        def choose(key: Key, obs: Array, t: Array) -> Array:
            keys = jax.random.split(key, flat(obs).shape[0])
            each = jax.vmap(lambda k, o: act(k, policy, o, posterior.task.actions)["action"])
            return each(keys, flat(obs)).reshape(*obs.shape[:-1], -1)

        rows = walk.roll(k2, step, walk.begin(k1, posterior, episodes), choose, posterior.task.horizon)
        return rows["alive"].sum(0)

    return jax.lax.map(lambda at: one(*at), (jax.random.split(key, len(jax.tree.leaves(stack)[0])), stack))


def pure_lengths(key: Key, env: envs.Env, stack: policies.RandomPolicy, episodes: int) -> Array:
    """Steps until the end, [policies, episodes], in a true environment of pure functions."""

    def one(key: Key, policy: policies.RandomPolicy) -> Array:
        rows = rollout(key, env, lambda k, obs, t: policies.act(k, policy, obs, env.task.actions))
        return rows["alive"].sum()

    keys = jax.random.split(key, (stack.noise.shape[0], episodes))
    return jax.vmap(jax.vmap(one, in_axes=(0, None)))(keys, stack)


def held_lengths(key: Key, where: Copies, agents: list[Any], act: Act, seed: int) -> np.ndarray:
    """Steps until the end, [policies, copies], in a true environment that holds its own state."""
    act = jax.jit(act, static_argnames="actions")
    seeds, all_lengths = np.random.default_rng([seed, 6]), []
    for number, agent in enumerate(agents):
        mine = jax.random.fold_in(key, number)
        alive, lengths = np.ones(where.count, bool), np.zeros(where.count, int)
        obs = where.reset(alive, seeds.integers(0, 2**32, where.count, dtype=np.uint32))
        for t in range(where.task.horizon):
            acted = act(jax.random.fold_in(mine, t), agent, obs, where.task.actions)
            out = where.step(np.asarray(acted["action"]))
            over = out.terminated | out.truncated
            lengths, alive = lengths + alive, alive & ~over
            if not alive.any():
                break
            obs = where.reset(over, np.zeros(where.count, np.uint32)) if over.any() else out.obs  # anew, uncounted
        all_lengths.append(lengths)
    return np.stack(all_lengths)


def of_samples(seed: int, rows: int, scale: str, episodes: int) -> dict[str, Any]:
    """One seed of the first suite: what was true, and what the posterior said."""
    env = envs.make("cartpole")
    log = offing.load("offing:cartpole", rows, seed)
    choice = choose_posterior(jax.random.key(seed), log, world_space(scale, log.data.rows), seed)
    k1, k2, k3 = jax.random.split(jax.random.key(1_000 + seed), 3)  # policies that made no log
    stack = policies.random_ensemble(k1, 4, env.task.actions)
    true = np.asarray(jax.jit(lambda k, p: pure_lengths(k, env, p, episodes))(k2, stack))
    return {"seed": seed, "rows": rows, **compared(k3, choice, stack, policies.act, true, scale)}


def of_gymnasium(case: Case, seed: int, scale: str, episodes: int) -> dict[str, Any]:
    """One task and seed of the second suite."""
    name = f"gymnasium:{case.name}"
    with ExitStack() as held:
        where = copies(held, name, 16, case.steps)
        run = pumped if case.pumped else learner.learn
        log = offing.load(columns(run(where, case.steps, seed).episodes(case.rows, seed), where.task))
        if case.pumped:
            agents = [Pump(jnp.asarray(idle)) for idle in np.linspace(0.0, 0.9, AGENTS)]
        else:
            agents = learner.learn(where, case.steps, 1_000 + seed).agents  # of a run that made no log
    choice = choose_posterior(jax.random.key(seed), log, world_space(scale, log.data.rows), seed)
    act = pump if case.pumped else learner.act
    agents = [agents[i] for i in np.linspace(0, len(agents) - 1, AGENTS).round().astype(int)]
    k1, k2 = jax.random.split(jax.random.key(2_000 + seed))
    with ExitStack() as held:
        true = held_lengths(k1, copies(held, name, episodes, 10**9), agents, act, seed)
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *agents)
    logged = np.bincount(log.data.episode)
    case_of = {"task": case.name, "seed": seed, "rows": case.rows, "steps": case.steps}
    about = {"logged": float(logged.mean()), "ended": int(log.data.steps.done.sum()), "episodes": len(logged)}
    return {**case_of, **about, **compared(k2, choice, stack, act, true, scale)}


def compared(
    key: Key, choice: PosteriorChoice, stack: Any, act: Act, lengths: np.ndarray, scale: str
) -> dict[str, Any]:
    """The true mean lengths of the policies beside those in the posterior's worlds, as many episodes of each."""
    posterior, run = choice.picked, jax.jit(imagined_lengths, static_argnums=(3, 4))
    imagined = np.asarray(run(key, posterior, stack, act, max(1, lengths.shape[1] // posterior.members)))
    true, imagined = lengths.mean(1), imagined.mean((1, 2))
    return {
        "scale": scale,
        "policies": len(true),
        "true": float(true.mean()),
        "imagined": float(imagined.mean()),
        "off": float(imagined.mean() / true.mean() - 1),
        "correlation": float(np.corrcoef(true, imagined)[0, 1]),
        "noise_scale": float(np.mean(choice.share)),
        "ends_scale": float(np.mean(posterior.theta.chance.ends)),
        "chosen": {**asdict(choice.points[choice.index]), "pil": choice.pil.total, "word": choice.pil.word},
        "each": {"true": true.round(1).tolist(), "imagined": imagined.round(1).tolist()},
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=("samples", "gymnasium"), default="samples")
    parser.add_argument("--tasks", nargs="+", default=[case.name for case in CASES], help="of --suite gymnasium")
    parser.add_argument("--rows", type=int, default=5_000, help="of --suite samples")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--scale", default="quick")
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    out = given.out or RESULTS / f"learned_ends{'' if given.suite == 'samples' else '_gymnasium'}.json"
    records: list[dict[str, Any]] = json.loads(out.read_text()) if out.exists() else []
    cases = [None] if given.suite == "samples" else [case for case in CASES if case.name in given.tasks]
    print("| task | seed | true length | imagined | off by | over policies: correlation |")
    print("|:--|--:|--:|--:|--:|--:|")
    for case in cases:
        for seed in given.seeds:
            rows, name = (given.rows, None) if case is None else (case.rows, case.name)
            request = {"task": name, "seed": seed, "rows": rows, "scale": given.scale}
            row = next((r for r in records if all(r.get(k) == v for k, v in request.items())), None)
            if row is None and case is None:
                row = of_samples(seed, rows, given.scale, given.episodes)
            elif row is None and case is not None:
                row = of_gymnasium(case, seed, given.scale, given.episodes)
            assert row is not None
            if row not in records:
                records.append(row)
                write(out, (json.dumps(records, indent=1) + "\n").encode())
            lengths = f"{row['true']:.2f} | {row['imagined']:.2f} | {row['off']:+.1%}"
            print(f"| {name or 'cartpole'} | {seed} | {lengths} | {row['correlation']:.3f} |", flush=True)


if __name__ == "__main__":
    main()
