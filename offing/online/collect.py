"""Logs from the true environment, for samples, tests and experiments: who acts where, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, BadInput, Key, Progress
from . import envs, learner, scripted
from .columns import columns, pieces, taken
from .copies import Copies, copies
from .policies import ENSEMBLE, TURN, Acted, RandomPolicy, act_clipped, random_ensemble, turns
from .replay import full_replay

KINDS = {
    "gymnax-pendulum-random": "pendulum",
    "gymnax-cartpole-random": "cartpole",
    "brax-halfcheetah-full-replay": "brax-halfcheetah",
    "brax-hopper-full-replay": "brax-hopper",
    "brax-walker2d-full-replay": "brax-walker2d",
}
TOGETHER = 16  # episodes that are under way at once
Player = Callable[[Any, Key, np.ndarray, np.ndarray], tuple[Acted, Any]]  # memory, keys, start, obs: all [N]


def collect(
    kind: str,
    rows: int,
    seed: int,
    progress: Progress | None = None,
    policy: str | None = None,
    steps: int | None = None,
    noise: float = 0.0,
    horizon: int | None = None,
) -> dict[str, np.ndarray]:
    """Columns of a log of `rows` steps, as `offing.load` reads them; the last episode is cut to fit.

    `kind` is one of KINDS, or any environment by its name; there `policy` says who acts: `random`, `trained` for
    `steps` steps, or a function as MODULE:FUNCTION with `noise` on it. `horizon` cuts episodes.
    """
    if rows < 2:
        raise BadInput(f"{rows} rows: a log needs at least 2")
    requested = {"--policy": policy, "--steps": steps, "--noise": noise or None, "--horizon": horizon}
    if kind in KINDS:
        given = [flag for flag, value in requested.items() if value is not None]
        if given:
            raise BadInput(f"{kind}: is made in one way only; {given[0]} belongs to environments by name")
        return _named(kind, rows, seed, progress)
    policy = policy or "random"
    _check(kind, rows, seed, policy, steps, noise)
    script = None if policy in ("random", "trained") else scripted.imported(policy)
    with ExitStack() as stack:
        where = copies(stack, kind, TOGETHER, max(rows, steps or 0), horizon)
        if policy == "trained":
            logged = learner.learn(where, steps or rows, seed, progress).episodes(rows, seed)
        elif script is None:
            logged = episodes(*_random(where, seed), where, rows, seed, progress)
        else:
            logged = episodes(_scripted(script, policy, noise, where), (), where, rows, seed, progress)
    return columns(logged, where.task)


def _check(kind: str, rows: int, seed: int, policy: str, steps: int | None, noise: float) -> None:
    """Refuses, in one line, what cannot be collected in an environment by name."""
    if envs.source(kind) is None:
        raise BadInput(f"{kind}: no such kind of log; there are {', '.join(sorted(KINDS))}, and {envs.NAMES}")
    if seed < 0:
        raise BadInput(f"--seed {seed}: 0 or more")
    if steps is not None and (policy != "trained" or steps < rows):
        raise BadInput(f"--steps {steps}: of a trained policy, and at least the {rows} rows that are kept of them")
    if not 0 <= noise <= 1 or (noise and policy in ("random", "trained")):
        raise BadInput(f"--noise {noise:g}: a share from 0 to 1, on what a function of yours does")


def episodes(
    player: Player, memory: Any, where: Copies, rows: int, seed: int, progress: Progress | None = None
) -> list[dict[str, np.ndarray]]:
    """Episodes in the order in which they began, until they make `rows` steps.

    Each has a number, which alone decides its start and its chances; so the log does not depend on how many are
    under way at once.
    """
    count = where.count
    number, clock, free = np.arange(count), np.zeros(count, np.int32), count
    lengths: dict[int, int] = {}
    complete, first, reported = 0, 0, 0  # rows of the episodes before `first`, all of which are over
    key, taken_steps = jax.random.key(seed), []
    obs = where.reset(np.ones(count, bool), _seeds(seed, number))
    while complete + int(clock[number == first].sum()) < rows:
        acted, memory = player(memory, _keys(key, number, clock), clock == 0, obs)
        acted = jax.tree.map(np.asarray, acted)
        out = where.step(acted["action"])
        over = out.terminated | out.truncated
        row = {"obs": obs, **acted, "reward": out.reward, "next_obs": out.obs, "terminated": out.terminated}
        taken_steps.append({**row, "number": number, "over": over})
        obs, clock, number = out.obs, clock + 1, number.copy()
        for i in np.flatnonzero(over):
            lengths[int(number[i])] = int(clock[i])
            number[i], free = free, free + 1
        if over.any():
            obs, clock = where.reset(over, _seeds(seed, number)), np.where(over, 0, clock)
        while first in lengths:
            complete, first = complete + lengths.pop(first), first + 1
        reported = _report(progress, reported, complete, rows)
    _report(progress, reported, rows, rows)
    whole = {name: np.stack([step[name] for step in taken_steps]) for name in taken_steps[0]}  # [T, N, ...]
    order = sorted(pieces(whole["over"]), key=lambda part: whole["number"][part.begin, part.env])
    return taken(whole, order, rows)


def _report(progress: Progress | None, before: int, now: int, rows: int) -> int:
    """Reports progress at every twentieth part; the rows that were last reported."""
    now = min(now, rows)
    if 20 * now // rows == 20 * before // rows:
        return before
    if progress:
        progress("collect", now, rows)
    return now


def _random(where: Copies, seed: int) -> tuple[Player, Any]:
    """The ensemble of random policies as a player; its memory is whose turn it is."""
    policies = random_ensemble(jax.random.fold_in(jax.random.key(seed), 1), where.width, where.task.actions)

    def player(who: Any, keys: Key, start: np.ndarray, obs: np.ndarray) -> tuple[Acted, Any]:
        return _turns(keys, policies, who, start, obs, where.task.actions)

    return player, jnp.zeros(where.count, int)


def _scripted(script: scripted.Script, name: str, noise: float, where: Copies) -> Player:
    def player(memory: Any, keys: Key, start: np.ndarray, obs: np.ndarray) -> tuple[Acted, Any]:
        del start
        rows = scripted.called(script, name, obs, where.task.actions)
        return scripted.noisy(keys, rows, noise, where.task.actions), memory

    return player


_turns = jax.jit(turns, static_argnames="actions")


@jax.jit
def _keys(key: Key, number: Array, clock: Array) -> Key:
    fold = jax.random.fold_in
    return jax.vmap(lambda n, t: fold(fold(key, n), t))(number, clock)


def _seeds(seed: int, number: np.ndarray) -> np.ndarray:
    return np.array([np.random.SeedSequence([seed, int(n)]).generate_state(1)[0] for n in number], np.uint32)


# ---- the kinds that the embedded samples and the experiments were made by


def _named(kind: str, rows: int, seed: int, progress: Progress | None) -> dict[str, np.ndarray]:
    """One of KINDS: the ensemble in a pure environment, episodes side by side in one program, or a full replay."""
    env = envs.make(KINDS[kind])
    if kind.endswith("-full-replay"):
        return full_replay(env, rows, seed, progress)
    first, rest = jax.random.split(jax.random.key(seed))
    width = jax.eval_shape(env.reset, first)[1].shape[0]
    policies = random_ensemble(first, width, env.task.actions)
    run = jax.jit(lambda key: random_episodes(key, env, policies, 64))
    logged: list[dict[str, np.ndarray]] = []
    count, batch = 0, 0
    while count < rows:
        out = jax.tree.map(np.asarray, run(jax.random.fold_in(rest, batch)))
        for e in range(64):
            length = min(int(out["alive"][e].sum()), rows - count)
            if length:
                logged.append({name: column[e, :length] for name, column in out.items()})
                count += length
        batch += 1
        if progress:
            progress("collect", min(count, rows), rows)
    return columns(logged, env.task)


def random_episodes(key: Key, env: envs.Env, policies: RandomPolicy, count: int) -> dict[str, Array]:
    """That many episodes [E, T, ...], in each of which the policies take turns of about 1 / TURN steps."""

    def one(key: Key) -> dict[str, Array]:
        k1, k2 = jax.random.split(key)
        steps = env.task.horizon
        turn = jnp.cumsum(jax.random.bernoulli(k1, TURN, (steps,)))
        whose = jax.random.randint(jax.random.fold_in(k1, 1), (steps,), 0, ENSEMBLE)[turn]

        def policy(key: Key, obs: Array, t: Array) -> Acted:
            return act_clipped(key, jax.tree.map(lambda leaf: leaf[whose[t]], policies), obs, env.task.actions)

        return rollout(k2, env, policy)

    return jax.vmap(one)(jax.random.split(key, count))


def rollout(key: Key, env: envs.Env, policy: Callable[[Key, Array, Array], Acted]) -> dict[str, Array]:
    """One episode of the task's horizon under `policy(key, obs, t)`: columns [T, ...], and where it is `alive`."""
    start, key = jax.random.split(key)
    state, obs = env.reset(start)

    def step(carry: Any, at: tuple[Key, Array]) -> tuple[Any, dict[str, Array]]:
        (state, obs, alive), (key, t) = carry, at
        k1, k2 = jax.random.split(key)
        acted = policy(k1, obs, t)
        state, after, reward, ended = env.step(k2, state, acted["action"])
        row = {"obs": obs, **acted, "reward": reward, "next_obs": after, "terminated": ended, "alive": alive}
        return (state, after, alive & ~ended), row

    times = (jax.random.split(key, env.task.horizon), jnp.arange(env.task.horizon))
    return jax.lax.scan(step, (state, obs, jnp.array(True)), times)[1]
