"""The product, as the suite uses it: the only file here that imports `offing`, and its public surface alone.

`plan` is the command `offing sorel` and the files that it leaves; `judge` is `offing.evaluate`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .play import Mind
from .tasks import Act, Choices, Task

LEVELS = (0.5, 0.9, 0.99)
Given = Mapping[str, Any]  # a log by columns, as `offing.load` takes it
Numbers = dict[str, Any]  # what goes into a record: numbers, words, and lists and dicts of them


class Promise(NamedTuple):
    """What an estimator says that a policy earns."""

    median: float
    intervals: dict[str, tuple[float, ...]]  # low and high, by level
    terms: Numbers  # what the interval is made of


class Planned(NamedTuple):
    """What `offing sorel` said, and its policy."""

    verdict: str
    reasons: list[str]
    promise: Promise  # of the return, undiscounted
    value: Promise  # discounted
    behaviour: Numbers
    worlds: Numbers  # E, V and chance, per column where the result has them
    mind: Mind
    seconds: float


class Judged(NamedTuple):
    """What `offing evaluate` said of one policy by one method."""

    value: Promise  # discounted
    returned: Promise | None  # undiscounted, where the method has it


def versions() -> dict[str, str]:
    """Of what a record depends on."""
    import platform

    import jax

    import offing

    device = jax.devices()[0].device_kind
    return {
        "offing": offing.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": device,
    }


def plan(log: Given, task: Task, scale: str, seed: int, out: Path) -> Planned:
    """`offing sorel` on a log; its result is read from what it left in `out`."""
    from offing.__main__ import main

    out.mkdir(parents=True, exist_ok=True)
    file = out / "log.npz"
    if not file.exists():
        arrays: dict[str, Any] = {name: np.asarray(column) for name, column in log.items()}
        np.savez(file, **arrays)
    code = main(["sorel", str(file), "--scale", scale, "--seed", str(seed), "--out", str(out / "sorel")])
    if code not in (0, 3, 4):
        raise RuntimeError(f"offing sorel ended with exit code {code}")
    said = json.loads((out / "sorel" / "result.json").read_text())
    return Planned(
        verdict=said["verdict"]["word"],
        reasons=list(said["verdict"]["reasons"]),
        promise=_saved(out / "sorel", said, "return"),
        value=_saved(out / "sorel", said, "value"),
        behaviour=said["behaviour"],
        worlds={"pil": said.get("pil"), "support": said.get("support"), "calibration": said.get("calibration")},
        mind=_mind(out / "sorel", task),
        seconds=float(said.get("seconds", 0.0)),
    )


def _saved(folder: Path, said: Numbers, name: str) -> Promise:
    """A promise as the result has it; other levels than its own are read off its episodes and terms."""
    found = said[name]
    terms = {key: value for key, value in found.items() if isinstance(value, (int, float))}
    own = {f"{found['level']:g}": tuple(found["interval"])}
    more = found.get("intervals") or _rebuilt(folder, said, name)
    intervals = {key: tuple(ends) for key, ends in more.items()} | own
    return Promise(found["median"], {f"{level:g}": intervals[f"{level:g}"] for level in LEVELS}, terms)


def _rebuilt(folder: Path, said: Numbers, name: str) -> dict[str, tuple[float, float]]:
    """Intervals at all levels, from an estimate that is put together again out of what was saved."""
    import offing

    found = said[name]
    with np.load(folder / said["episodes"]) as kept:
        returns = kept[name]
    fields = set(offing.ValueEstimate._fields) - {"returns", "bounds"}
    parts = {field: found[field] for field in fields & set(found)} | {"starts": found.get("starts", 0.0) ** 2}
    bare = offing.ValueEstimate(returns, **parts)
    low, high = bare.interval(found["level"])
    held = [found["interval"][0] > low + 1e-6 * abs(low), found["interval"][1] < high - 1e-6 * abs(high)]
    bounds = (found["interval"][0] if held[0] else -np.inf, found["interval"][1] if held[1] else np.inf)
    whole = bare._replace(bounds=bounds)
    return {f"{level:g}": whole.interval(level) for level in LEVELS}


def _mind(folder: Path, task: Task) -> Mind:
    """The policy that a run left, as one that is asked step by step for many episodes."""
    import jax
    import jax.numpy as jnp

    import offing

    policy, _ = offing.load_policy(folder)
    acts = jax.jit(jax.vmap(lambda memory, seen: policy.act(policy.params, memory, seen, None)))
    width = task.actions.width

    def act(obs: np.ndarray, reward: np.ndarray, memory: Any) -> tuple[np.ndarray, Any]:
        n = len(obs)
        if memory is None:
            memory = (policy.begin(n), jnp.zeros((n, width)), jnp.ones(n))
        state, before, start = memory
        seen = offing.Seen(jnp.asarray(obs), before, jnp.asarray(reward, jnp.float32), start)
        action, state = acts(state, seen)
        done = np.asarray(action)
        choice = done.argmax(1) if isinstance(task.actions, Choices) else done
        return choice, (state, action, jnp.zeros(n))

    return Mind(act)


def judge(log: Given, policies: Mapping[str, Act], scale: str, seed: int) -> dict[str, dict[str, Judged]]:
    """`offing evaluate` by the posterior and FQE: what each policy earns, by policy and method."""
    import jax

    import offing
    from offing.value.foreign import foreign

    loaded = offing.load(dict(log))
    width = np.shape(log["obs"])[1]
    theirs = {name: foreign(act, loaded.task, width, name, trace=False) for name, act in policies.items()}
    if next(iter(inspect.signature(offing.evaluate).parameters)) == "log":
        door: Any = offing.evaluate
        found: Any = door(loaded, theirs, methods=("predictive", "fqe"), scale=scale, seed=seed)
    else:
        models = offing.space(scale, loaded.data.rows)
        key = jax.random.key(seed)
        found = offing.evaluate(key, loaded, models, theirs, ("predictive", "fqe"), seed, scale)
    return {
        name: {
            method: Judged(_promise(one.estimate), None if one.returns is None else _promise(one.returns))
            for method, one in methods.items()
        }
        for name, methods in found.estimates.items()
    }


def _promise(estimate: Any) -> Promise:
    """An estimate of the product's as numbers."""
    parts = estimate._asdict() if hasattr(estimate, "_asdict") else vars(estimate)
    terms = {name: float(value) for name, value in parts.items() if np.ndim(value) == 0}
    intervals = {f"{level:g}": tuple(map(float, estimate.interval(level))) for level in LEVELS}
    return Promise(float(estimate.median), intervals, terms)
