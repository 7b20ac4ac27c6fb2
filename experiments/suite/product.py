"""The product, as the suite uses it: the only file here that imports `offing`, and its public surface alone.

`plan` is `offing.sorel`, or where that still takes a key, the command `offing sorel` and the files that it leaves;
`judge` is `offing.evaluate`.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .play import Mind
from .tasks import Act, Choices, Task

LEVELS = (0.5, 0.9, 0.99)
METHODS = ("predictive", "fqe")
Given = Mapping[str, Any]  # a log by columns, as `offing.load` takes it
Numbers = dict[str, Any]  # what goes into a record: numbers, words, and lists and dicts of them


class Promise(NamedTuple):
    """What an estimator says that a policy earns."""

    median: float
    intervals: dict[str, tuple[float, ...]]  # low and high, by level
    terms: Numbers  # what the interval is made of


class Candidate(NamedTuple):
    """One policy that could have been handed over."""

    name: str
    promise: Promise  # of the return
    lower: float  # what it earns in the worst worlds, which the choice goes by
    chosen: bool
    mind: Mind
    word: Numbers  # what each world says of it, and how far it is from the log: what a rule of choice may go by


class Planned(NamedTuple):
    """What `offing sorel` reported, and its policy."""

    verdict: str
    reasons: list[str]
    promise: Promise  # of the return, undiscounted
    value: Promise  # discounted
    behaviour: Numbers
    worlds: Numbers  # E, V and chance, per column where the result has them
    mind: Mind
    seconds: float
    field: tuple[Candidate, ...] = ()  # all that competed, where that can be had


class Estimate(NamedTuple):
    """What `offing evaluate` gives for one policy by one method."""

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
    """What `offing sorel` makes of a log; it keeps its files in `out`, and goes on from there."""
    import offing

    out.mkdir(parents=True, exist_ok=True)
    if _is_door(offing.sorel):
        return _through_the_door(offing.load(dict(log)), scale, seed, out)
    return _by_command(log, task, scale, seed, out)


def _is_door(function: Any) -> bool:
    """Whether this is the function that takes a log and returns a result that can say all; it once took a key."""
    return next(iter(inspect.signature(function).parameters)) == "log"


def _through_the_door(log: Any, scale: str, seed: int, out: Path) -> Planned:
    import offing

    door: Any = offing.sorel
    result, behind = _heard(
        "offing.door.sorel", "run_sorel", lambda: door(log, scale=scale, seed=seed, out=out / "sorel")
    )
    report = result.to_json()
    promise = _at_its_level(report["return"])
    promise = promise._replace(intervals={f"{level:g}": tuple(result.interval(level)) for level in LEVELS})
    return Planned(
        verdict=str(result.verdict),
        reasons=list(result.reasons),
        promise=promise,
        value=_at_its_level(report["value"]),
        behaviour=report["behaviour"],
        worlds=_worlds(report),
        mind=_asked(result.policy),
        seconds=float(result.seconds),
        field=() if behind is None else _field(behind, result.policy),
    )


def _asked(actor: Any) -> Mind:
    return Mind(lambda obs, reward, state: actor.predict(obs, state, reward=reward))


def _field(behind: Any, actor: Any) -> tuple[Candidate, ...]:
    """All that competed, each as one that can be played; `actor` is the chosen one, in the log's own units."""
    every = behind.policy.field
    if every is None:
        return ()
    return tuple(
        Candidate(
            one.name,
            _promise(one.promise),
            float(one.lower),
            i == every.index,
            _asked(replace(actor, policy=one.policy)),
            _word(one),
        )
        for i, one in enumerate(every.candidates)
    )


def _word(one: Any) -> Numbers:
    """What held-out worlds say of a candidate, world by world, before any choice is made of it."""
    promise = one.promise
    returns = np.asarray(promise.returns, np.float64)
    return {
        "distance": float(one.distance),
        "worlds": returns.mean(1).tolist(),
        "errors": np.asarray(promise.errors, np.float64).tolist(),
        "stderrs": (returns.std(1, ddof=1) / np.sqrt(returns.shape[1])).tolist(),
        "bounds": [float(end) for end in promise.bounds],
        "terms": {name: float(part) for name, part in promise.terms.items()},
        **{name: float(getattr(promise, name)) for name in ("less", "more", "noise", "slope", "deviation")},
    }


def _at_its_level(saved: Numbers) -> Promise:
    """A promise at its own level, with all numbers and terms that stand beside it."""
    terms = {name: part for name, part in saved.items() if name != "worlds" and _small(part)}
    return Promise(saved["median"], {f"{saved['level']:g}": tuple(saved["interval"])}, terms)


def _small(part: Any) -> bool:
    return isinstance(part, (int, float, dict))


def _worlds(report: Numbers) -> Numbers:
    """What a result says of its worlds: the loss of information by column, the support, and what calibrates it."""
    wanted = ("pil", "support", "calibration", "evidence", "checks", "columns_predicted", "guaranteed")
    return {name: report[name] for name in wanted if report.get(name) is not None}


def _by_command(log: Given, task: Task, scale: str, seed: int, out: Path) -> Planned:
    from offing.__main__ import main

    file, folder = out / "log.npz", out / "sorel"
    if not file.exists():
        arrays: dict[str, Any] = {name: np.asarray(column) for name, column in log.items()}
        np.savez(file, **arrays)
    code = main(["sorel", str(file), "--scale", scale, "--seed", str(seed), "--out", str(folder)])
    if code not in (0, 3, 4):
        raise RuntimeError(f"offing sorel ended with exit code {code}")
    report = json.loads((folder / "result.json").read_text())
    return Planned(
        verdict=report["verdict"]["word"],
        reasons=list(report["verdict"]["reasons"]),
        promise=_saved(folder, report, "return"),
        value=_saved(folder, report, "value"),
        behaviour=report["behaviour"],
        worlds=_worlds(report),
        mind=_mind(folder, task),
        seconds=float(report.get("seconds", 0.0)),
    )


def _saved(folder: Path, report: Numbers, name: str) -> Promise:
    """A promise as the result has it; other levels than its own are read off its episodes and terms."""
    saved = report[name]
    terms = {key: value for key, value in saved.items() if isinstance(value, (int, float))}
    its_own = {f"{saved['level']:g}": tuple(saved["interval"])}
    more = saved.get("intervals") or _rebuilt(folder, report, name)
    intervals = {key: tuple(ends) for key, ends in more.items()} | its_own
    return Promise(saved["median"], {f"{level:g}": intervals[f"{level:g}"] for level in LEVELS}, terms)


def _rebuilt(folder: Path, report: Numbers, name: str) -> dict[str, tuple[float, float]]:
    """Intervals at all levels, from an estimate that is put together again out of what was saved."""
    import offing

    saved = report[name]
    with np.load(folder / report["episodes"]) as kept:
        returns = kept[name]
    fields = set(offing.ValueEstimate._fields) - {"returns", "bounds"}
    parts = {field: saved[field] for field in fields & set(saved)} | {"starts": saved.get("starts", 0.0) ** 2}
    bare = offing.ValueEstimate(returns, **parts)
    low, high = bare.interval(saved["level"])
    held = [saved["interval"][0] > low + 1e-6 * abs(low), saved["interval"][1] < high - 1e-6 * abs(high)]
    bounds = (saved["interval"][0] if held[0] else -np.inf, saved["interval"][1] if held[1] else np.inf)
    whole = bare._replace(bounds=bounds)
    return {f"{level:g}": whole.interval(level) for level in LEVELS}


def _mind(folder: Path, task: Task) -> Mind:
    """The policy that a run left, as one that is asked step by step for many episodes."""
    import jax
    import jax.numpy as jnp

    import offing
    from offing.report.results import load_policy

    policy, _ = load_policy(folder)
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


class Worlds(NamedTuple):
    """What learned worlds make of a log that they have not seen."""

    unexplained: (
        np.ndarray
    )  # [S + 1]  of each column's change, and of the reward, the share that they do not predict
    before: np.ndarray  # [T, M, E, S]  imagined rows: fresh episodes' starts, under their own actions
    after: np.ndarray
    alive: np.ndarray  # [T, M, E]  whether the imagined episode and the logged one still go on


def worlds(log: Given, fresh: Given, scale: str, seed: int) -> Worlds:
    """Worlds of `offing posterior` against a fresh log: one step, and whole episodes under its actions."""
    import jax
    import jax.numpy as jnp

    import offing
    from offing.data.dataset import laid_out
    from offing.pil import evidence
    from offing.posterior.walk import Place, fixed, memories

    door: Any = offing.posterior
    learned = door(offing.load(dict(log)), scale=scale, seed=seed).worlds
    data = offing.load(dict(fresh)).data
    rows, ours = laid_out(np.asarray(data.episode)[: data.rows], learned.task.horizon)  # [T, E]
    action = jnp.asarray(np.asarray(data.steps.action)[rows])
    shape = (learned.members, rows.shape[1])

    def step(carry: Any, at: Any) -> Any:
        (place, on), (key, action, ours) = carry, at
        new, drawn = fixed(learned)(key, place, jnp.broadcast_to(action, (*shape, action.shape[-1])))
        return (new, on & ~drawn.terminated), (place.obs, new.obs, on & ours)

    starts = jnp.broadcast_to(jnp.asarray(np.asarray(data.steps.obs)[rows[0]]), (*shape, data.steps.obs.shape[1]))
    first = (Place(starts, memories(learned, shape[1])), jnp.ones(shape, bool))
    keys = jax.random.split(jax.random.key(seed), len(rows))
    went = jax.jit(lambda: jax.lax.scan(step, first, (keys, action, jnp.asarray(ours)))[1])()
    return Worlds(evidence(learned, data).plain, *(np.asarray(part) for part in went))


def judge(log: Given, policies: Mapping[str, Act], scale: str, seed: int) -> dict[str, dict[str, Estimate]]:
    """`offing evaluate` by the posterior and FQE: what each policy earns, by policy and method."""
    import jax

    import offing

    loaded, width = offing.load(dict(log)), np.shape(log["obs"])[1]
    door: Any = offing.evaluate
    if _is_door(door):
        named = {name: _plain(act) for name, act in policies.items()}
        result, evaluated = _heard(
            "offing.tune.evaluate",
            "evaluate",
            lambda: door(loaded, named, scale=scale, seed=seed, methods=METHODS),
        )
        if evaluated is None:
            return _written(result.to_json()["estimates"])
    else:
        from offing.value.foreign import foreign

        theirs = {name: foreign(_plain(act), loaded.task, width, name) for name, act in policies.items()}
        evaluated = door(
            jax.random.key(seed), loaded, offing.space(scale, loaded.data.rows), theirs, METHODS, seed, scale
        )
    return {
        name: {
            method: Estimate(_promise(one.estimate), None if one.returns is None else _promise(one.returns))
            for method, one in methods.items()
        }
        for name, methods in evaluated.estimates.items()
    }


def _plain(act: Act) -> Act:
    """A policy that only the host can ask: numbers in and out are numpy's."""
    return lambda obs: np.asarray(act(np.asarray(obs)))


def _heard(module: str, name: str, call: Callable[[], Any]) -> tuple[Any, Any]:
    """What a call gave, and what the named part behind it returned meanwhile; None if that was not asked.

    The door's result has intervals at one level and the chosen policy alone; the part behind it has estimates,
    which know all levels, and all candidates.
    """
    parts: Any = importlib.import_module(module)
    plain, heard = getattr(parts, name), []

    def listening(*given: Any, **named: Any) -> Any:
        heard.append(plain(*given, **named))
        return heard[-1]

    setattr(parts, name, listening)
    try:
        result = call()
    finally:
        setattr(parts, name, plain)
    return result, heard[-1] if heard else None


def _written(estimates: Numbers) -> dict[str, dict[str, Estimate]]:
    """Estimates as an evaluation's JSON has them: at one level alone."""

    def promise(one: Numbers) -> Promise:
        return Promise(one["median"], {f"{one['level']:g}": tuple(one["interval"])}, {})

    return {
        name: {
            method: Estimate(promise(one), promise(one["return"]) if one.get("return") else None)
            for method, one in methods.items()
        }
        for name, methods in estimates.items()
    }


def _promise(estimate: Any) -> Promise:
    """An estimate of the product's as numbers."""
    parts = estimate._asdict() if hasattr(estimate, "_asdict") else vars(estimate)
    terms = {name: float(value) for name, value in parts.items() if np.ndim(value) == 0}
    intervals = {f"{level:g}": tuple(map(float, estimate.interval(level))) for level in LEVELS}
    return Promise(float(estimate.median), intervals, terms)
