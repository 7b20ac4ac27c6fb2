"""A policy -> its Program: JAX traces what `act` does at one step, and every primitive becomes a plain operation.

Tracing serves every planner, a user's own included, and cannot disagree with `act`: a description written by hand
next to it could. Parameters become constants, what depends on them alone is computed here, and what the action
does not need (a critic's head) is left out.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, BadInput, Box, Discrete, Policy, Seen
from ..value.foreign import Host, inner
from .program import Op, Program
from .tracer import Tracer

Step = Callable[[Array, Array, Array], tuple[Array, Array]]  # obs, reward, state -> action or choice, next state


def trace(policy: Policy, width: int, actions: Box | Discrete, name: str = "the policy") -> Program:
    """What the policy does at one step, without chance, for observations of `width` numbers."""
    if isinstance(inner(policy), Host):
        raise BadInput(
            f"{name}: JAX cannot trace it, so it cannot be exported; it is Python code of somebody's own"
        )
    step, initial = stepper(policy, width, actions)
    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((width,), (), initial.shape)]
    closed = jax.make_jaxpr(step)(*shapes)
    tracer = Tracer(name)
    for var, each in zip(closed.jaxpr.invars, ("obs", "reward", "state"), strict=True):
        tracer.bind(var, tracer.known(each, var.aval))
    action, after = tracer.run(closed.jaxpr, closed.consts)
    choices = actions.n if isinstance(actions, Discrete) else None
    return finished(tracer, action, after, initial, choices)


def stepper(policy: Policy, width: int, actions: Box | Discrete) -> tuple[Step, np.ndarray]:
    """(obs, reward, state) -> action or choice, next state; and the state that an episode begins with.

    The state is memory, last action and a 1, all in one vector; the 1 is 0 before the first step.
    """
    leaves, tree = jax.tree.flatten(policy.memory)
    sizes = [int(np.size(leaf)) for leaf in leaves]
    flat = [np.ravel(np.asarray(leaf, np.float32)) for leaf in leaves]
    initial = np.concatenate([*flat, np.zeros(actions.width + 1, np.float32)]).astype(np.float32)

    def step(obs: Array, reward: Array, state: Array) -> tuple[Array, Array]:
        *parts, last, on = jnp.split(state, np.cumsum([*sizes, actions.width]).tolist())
        kept = [
            part.reshape(np.shape(leaf)).astype(jnp.asarray(leaf).dtype)
            for part, leaf in zip(parts, leaves, strict=True)
        ]
        earned = jnp.where(on[0] > 0, reward, 0.0)  # in a first step nothing has been earned
        seen = Seen(obs, last, earned, 1 - on[0])
        action, memory = policy.act(policy.params, jax.tree.unflatten(tree, kept), seen, None)
        after = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(memory)]
        done = jnp.argmax(action, -1) if isinstance(actions, Discrete) else action
        return done, jnp.concatenate([*after, action.astype(jnp.float32), jnp.ones(1)])

    return step, initial


def finished(tracer: Tracer, action: str, after: str, initial: np.ndarray, choices: int | None) -> Program:
    """The program without what nobody reads; with a state only where the action hangs on it."""
    ops, used = needed(tracer.ops, {action})
    remembers = bool(used & {"state", "reward"})
    if remembers:
        ops, used = needed(tracer.ops, {action, after})
    constants = {name: array for name, array in tracer.constants.items() if name in used}
    inputs = ("obs", "reward", "state") if remembers else ("obs",)
    made = {op.output for op in ops} | set(inputs) | set(constants)
    return Program(
        inputs=inputs,
        ops=tuple(ops),
        action=action,
        next_state=after if remembers else None,
        values={name: value for name, value in tracer.values.items() if name in made},
        constants=constants,
        initial=initial if remembers else np.zeros(0, np.float32),
        choices=choices,
    )


def needed(ops: list[Op], wanted: set[str]) -> tuple[list[Op], set[str]]:
    """The operations that `wanted` hangs on, and all names that they read or make."""
    used, kept = set(wanted), []
    for op in reversed(ops):
        if op.output in used:
            kept.append(op)
            used.update(op.inputs)
    return kept[::-1], used
