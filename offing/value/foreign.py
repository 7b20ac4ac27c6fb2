"""A policy from anywhere: somebody's function of observations, as a Policy.

Three forms are taken; the names of the parameters tell them apart:

    f(obs) -> actions                                  no parameter is called `state`
    f(obs, state, episode_start) -> actions, state     one is; `episode_start`, `deterministic`: given where named
    x.predict(...)                                     an object with that method, which has one of these forms

obs are [B, S], actions [B] choices or [B, A] amounts in the log's own units. State is None at first steps, then
what came back: arrays [B, ...], which are the policy's memory; None again says that it remembers nothing.

What JAX can trace becomes part of compiled programs; all else is called on the host (`_foreign`).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import cast

import jax
import numpy as np

from ..types import Array, BadInput, BadPolicy, Box, Dataset, Discrete, Memory, Policy, Seen, Task
from ._foreign import Ask, Foreign, Host, Native, arrays, inner, is_host, living, on_host, shapes
from ._given import Label, call_policy, fits, read, refuse, shown
from ._view import alone

__all__ = ["call_policy", "check", "foreign", "is_host", "living", "on_host", "read", "valid", "validate_actions"]

PROBE = 5  # observations that a function is tried on before it is used
ROWS, STARTS = 2_048, 256  # of the log that `check` asks a policy at, at most
AGAIN = 16  # of them that it asks twice
SAME = 1e-3  # of the range: amounts that differ by less are the same


def foreign(thing: object, task: Task, width: int, name: str = "the policy", trace: bool = True) -> Policy:
    """Somebody's function, or object with `predict`, as a Policy for observations of `width` numbers."""
    ask, actions = _asker(thing, name), task.actions
    obs = np.zeros((PROBE, width), np.float32)
    output, state = call_policy(lambda: ask(obs.copy(), None, np.ones(PROBE, bool)), name, obs, quiet=False)
    due = (PROBE,) if isinstance(actions, Discrete) else (PROBE, actions.width)
    shape = call_policy(lambda: np.asarray(output).shape, name, obs)
    if not fits(shape, due, actions):
        raise BadInput(f"{name}: gave shape {shape} for {PROBE} observations, where {due} was expected")
    memory: Memory = ()
    if jax.tree.leaves(state):
        state = arrays(state, name, PROBE)
        after = call_policy(lambda: ask(obs.copy(), state, np.zeros(PROBE, bool)), name, obs)[1]
        arrays(after, name, PROBE, shapes(state))
        memory = jax.tree.map(lambda leaf: np.zeros(leaf.shape[1:], leaf.dtype), state)
    none = np.zeros((), np.float32)  # it has no parameters; pools count their policies by a leaf
    if trace:
        native = Native(ask, name, actions)
        kept = _traced(native, width, memory)
        if kept is not None:
            return Policy(none, kept, native)
    return Policy(none, memory, Host(ask, name, actions))


def _asker(thing: object, name: str) -> Ask:
    """(obs, state, start) -> actions, state, whichever of the three forms it has."""
    function = _named(thing, getattr(thing, "predict", None) or thing)
    if not callable(function) or inspect.isclass(thing):
        what = "class" if inspect.isclass(thing) else type(thing).__name__
        raise BadInput(f"{name}: is a {what}, where a function or an object with a method `predict` was expected")
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # compiled code does not say
        return lambda obs, state, start: (function(obs), None)
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    due = [p.name for p in parameters.values() if p.default is p.empty and p.kind not in free]
    unknown = set(due[1:]) - {"state", "episode_start", "deterministic"}
    if unknown:
        took = f"takes ({', '.join(due)})"
        raise BadInput(f"{name}: {took}, where f(obs) or f(obs, state, episode_start) was expected")
    if "state" not in parameters:
        return lambda obs, state, start: (function(obs), None)

    def ask(obs: Array, state: Memory, start: Array) -> tuple[object, object]:
        more = {"episode_start": start, "deterministic": True}
        output = function(obs, state=state, **{each: more[each] for each in more if each in parameters})
        if not isinstance(output, tuple) or len(output) != 2:
            raise BadPolicy(
                f"{name}: takes a state, and must give actions and a state; it gave {type(output).__name__}"
            )
        return cast(tuple[object, object], output)

    return ask


def _named(thing: object, function: object) -> object:
    """A model that was fitted on a table with names gets one: of bare arrays it would complain at every step."""
    names: Sequence[str] | None = getattr(thing, "feature_names_in_", None)
    if names is None or not callable(function):
        return function

    def by_name(obs: Array) -> object:
        import pandas

        return function(pandas.DataFrame(np.asarray(obs), columns=list(names)))

    return by_name


def _traced(native: Native, width: int, memory: Memory) -> Memory | None:
    """Memory as the traced function has it; None if JAX cannot trace it."""
    one = lambda *shape: np.zeros(shape, np.float32)
    seen = Seen(one(width), one(native.actions.width), one(), one())
    like = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)
    try:
        after = jax.eval_shape(lambda m, s: native((), m, s, None), memory, seen)[1]
        kept = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), after)
        again = jax.eval_shape(lambda m, s: native((), m, s, None), kept, seen)[1]
    except Exception:  # somebody's code may fail in any way where it meets a tracer
        return None
    return kept if like(again) == like(kept) else None


def check(policy: Policy, data: Dataset, task: Task, name: str) -> None:
    """Refuses, in one line, a policy whose actions at rows and starts of the log are not actions of the task."""
    obs, label = _sample(data)
    act = inner(policy)
    if not isinstance(act, Foreign):
        acted = lambda: np.asarray(_best(policy, obs, task.actions))
        return valid(name, obs, call_policy(acted, name, obs), task.actions, label)
    output = call_policy(lambda: act.ask(obs.copy(), None, np.ones(len(obs), bool))[0], name, obs)
    rows = read(output, name, obs, task.actions, label)
    some = np.arange(0, len(obs), max(1, len(obs) // AGAIN))[::-1]  # in another order, among others
    again = np.asarray(_best(policy, obs[some], task.actions))
    wide = 1.0 if isinstance(task.actions, Discrete) else np.subtract(task.actions.high, task.actions.low)
    other = ~(np.abs(again - rows[some]) <= SAME * np.maximum(wide, 1e-6)).all(1)
    if other.any():
        at = int(other.argmax())
        once, twice = (shown(_spoken(row, task.actions)) for row in (rows[some][at], again[at]))
        raise BadPolicy(
            f"{name}: gave {once} for {label(some[at])} {shown(obs[some[at]])}, and {twice} when called again "
            "among others: what it does must follow from its observation alone, not from chance or from company"
        )


def valid(name: str, obs: np.ndarray, action: np.ndarray, actions: Box | Discrete, label: Label) -> None:
    """Refuses action rows [N, A] that are no actions, with the first observation of [N, S] that led to one."""
    if action.shape != (len(obs), actions.width):
        due = (len(obs), actions.width)
        raise BadPolicy(f"{name}: its actions have shape {action.shape} where {due} was expected")
    if isinstance(actions, Box):
        read(action, name, obs, actions, label)
    else:
        chosen = ((action == 0) | (action == 1)).all(1) & (action.sum(1) == 1)
        refuse(name, obs, action, ~chosen, f"is not one of {actions.n} choices", label)


def validate_actions(policy: Policy, obs: Array, action: Array, alive: Array) -> None:
    """Refuses a traced policy that did, on its way [T, M, K, ...], what is no action."""
    act = inner(policy)
    if not isinstance(act, Native):
        return
    went = np.asarray(alive, bool)
    there, did = np.asarray(obs)[went], np.asarray(action)[went]
    label = lambda i: "the imagined observation"
    lost = np.flatnonzero(np.isnan(did).any(1))[:1]
    if len(lost) and not jax.tree.leaves(policy.memory):  # called again, to name what it did
        output = call_policy(lambda: act.ask(there[lost], None, np.ones(1, bool))[0], act.name, there[lost])
        read(output, act.name, there[lost], act.actions, label)
    valid(act.name, there, did, act.actions, label)


def _sample(data: Dataset) -> tuple[np.ndarray, Label]:
    """Rows and starts of the log, evenly taken, and what each is called."""
    rows = np.linspace(0, data.rows - 1, min(ROWS, data.rows)).astype(int)
    starts = np.linspace(0, len(data.starts) - 1, min(STARTS, len(data.starts))).astype(int)
    obs = np.concatenate([np.asarray(data.steps.obs)[rows], np.asarray(data.starts)[starts]]).astype(np.float32)
    names = [f"row {i} of the log," for i in rows] + [f"start {i} of the log," for i in starts]
    return obs, names.__getitem__


def _best(policy: Policy, obs: np.ndarray, actions: Box | Discrete) -> Array:
    return policy.act(policy.params, policy.begin(len(obs)), alone(obs, actions), None)[0]


def _spoken(row: np.ndarray, actions: Box | Discrete) -> np.ndarray:
    return np.asarray(row.argmax()) if isinstance(actions, Discrete) else row
