"""True environments as pure functions of arrays, in the log's own terms."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..types import Array, BadInput, Box, Discrete, Key, Task

GYMNAX = {"pendulum": "Pendulum-v1", "cartpole": "CartPole-v1"}
BRAX = {"halfcheetah": "positional", "hopper": "generalized", "walker2d": "generalized"}  # and their physics
OWN = ("coldstore",)  # simulators of our own, as offing:NAME
PACKAGES = {
    "offing": (),
    "gymnax": ("gymnax",),
    "brax": ("brax", "mujoco"),
    "gymnasium": ("gymnasium", "mujoco"),
}  # what steps
NAMES = f"{', '.join(sorted(GYMNAX))}, {', '.join(f'brax-{name}' for name in BRAX)}, gymnax:ID and gymnasium:ID"
NAMES = f"{', '.join(f'offing:{name}' for name in OWN)}, {NAMES}"


class Env(NamedTuple):
    """A true environment without auto-reset: its steps say when it truly ended, its task how long it may run."""

    reset: Callable[[Key], tuple[Any, Array]]  # state, obs
    step: Callable[[Key, Any, Array], tuple[Any, Array, Array, Array]]  # state, obs, reward, terminated
    task: Task


class Held(NamedTuple):
    """Copies of an environment that hold their own state: gymnasium's."""

    copies: list[Any]
    actions: Box | Discrete
    place: Callable[[np.ndarray], Any]  # an action row in the environment's own terms
    width: int  # of its observations
    horizon: int | None  # None: it sets itself no limit


def source(name: str) -> tuple[str, str] | None:
    """The package that a name means and its name there, if any: `brax-hopper` is ("brax", "hopper").

    A name that both gymnax and gymnasium have is gymnax's, unless `gymnasium:` stands before it.
    """
    package, _, rest = name.partition(":")
    if package in PACKAGES and rest:
        return package, GYMNAX.get(rest, rest) if package == "gymnax" else rest
    if name in GYMNAX:
        return "gymnax", GYMNAX[name]
    if name.startswith("brax-"):
        return "brax", name.removeprefix("brax-")
    packages = [each for each in ("gymnax", "gymnasium") if importlib.util.find_spec(each)]
    if not packages:
        need("gymnax")
    return next(((each, name) for each in packages if name in _ids(each)), None)


def need(package: str) -> None:
    """Refuses, in one line, if the package is not installed."""
    if importlib.util.find_spec(package) is None:
        raise BadInput(f"{package} is not installed; true environments need the extra: pip install 'offing[envs]'")


def versions(name: str) -> dict[str, str]:
    """Of what steps the environment of that name: true returns change with it."""
    package, _ = source(name) or ("", "")
    installed = [each for each in PACKAGES.get(package, ()) if importlib.util.find_spec(each)]
    return {each: importlib.metadata.version(each) for each in installed}


def make(name: str) -> Env:
    """The environment of that name, of gymnax (`pendulum`, `cartpole`, `Acrobot-v1`) or brax (`brax-hopper`).

    The same name gives the same functions again, so that compiled programs are shared.
    """
    known = source(name)
    if known is None:
        raise BadInput(f"{name}: no such environment; there are {', '.join(sorted(GYMNAX))}")
    package, inner = known
    if package == "offing":
        return _own(name, inner)
    if package == "gymnasium":
        raise BadInput(f"{name}: gymnasium's environments are no pure functions; they can be played, nothing else")
    need(package)
    if package == "brax" and inner not in BRAX:
        raise BadInput(f"{name}: no such environment; there are {', '.join(f'brax-{each}' for each in BRAX)}")
    if package == "gymnax" and inner not in _ids(package):
        raise BadInput(f"{name}: gymnax has no such environment; {', '.join(GYMNAX.values())} are two that it has")
    return _brax(inner) if package == "brax" else _gymnax(inner)


def hold(stack: contextlib.ExitStack, name: str, copies: int) -> Held:
    """That many copies of a gymnasium environment, until the stack is left."""
    need("gymnasium")
    import gymnasium
    from gymnasium import spaces

    inner = name.removeprefix("gymnasium:")
    try:
        with _quiet():
            made = [stack.enter_context(gymnasium.make(inner, disable_env_checker=True)) for _ in range(copies)]
    except (gymnasium.error.Error, ImportError) as error:
        raise BadInput(f"{name}: gymnasium cannot make it: {' '.join(str(error).split())}") from error
    space, seen, spec = made[0].action_space, made[0].observation_space, made[0].spec
    actions: Box | Discrete
    if isinstance(space, spaces.Discrete):
        actions, first = Discrete(int(space.n)), int(space.start)
        place = lambda row: first + int(row.argmax())
    elif isinstance(space, spaces.Box):
        actions = box(name, space.low, space.high, space.shape)
        place = lambda row: np.clip(row, space.low, space.high).astype(space.dtype)
    else:
        raise BadInput(f"{name}: takes {space}; only flat vectors and choices can be played")
    if not isinstance(seen, spaces.Box):
        raise BadInput(f"{name}: observations are {seen}; only flat vectors can be played")
    return Held(made, actions, place, flat(name, seen.shape), spec.max_episode_steps if spec else None)


def box(name: str, low: Any, high: Any, shape: tuple[int, ...]) -> Box:
    """The edges of a flat box of actions, however the environment's package writes them."""
    if len(shape) != 1:
        raise BadInput(f"{name}: actions have shape {shape}; only flat vectors and choices can be played")
    low, high = (np.broadcast_to(np.asarray(edge, float), shape) for edge in (low, high))
    return Box(tuple(map(float, low)), tuple(map(float, high)))


def flat(name: str, shape: tuple[int, ...]) -> int:
    """How many numbers an observation has; it must be one flat vector."""
    if len(shape) != 1:
        raise BadInput(f"{name}: observations have shape {shape}; only flat vectors can be played")
    return shape[0]


def _ids(package: str) -> Any:
    """Names of the environments that the package knows."""
    if package == "gymnax":
        import gymnax

        return gymnax.registered_envs
    import gymnasium

    return gymnasium.registry


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """While an environment is made: advice on packages goes to no terminal, nor to a file in the user's folder."""
    mujoco: Any = importlib.import_module("mujoco") if importlib.util.find_spec("mujoco") else None
    before = mujoco and mujoco.get_mju_user_warning()
    if mujoco:
        mujoco.set_mju_user_warning(lambda _: None)
    try:
        with contextlib.redirect_stdout(None), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if mujoco:
            mujoco.set_mju_user_warning(before)


@cache
def _own(name: str, inner: str) -> Env:
    if inner not in OWN:
        raise BadInput(f"{name}: no such environment; there are {', '.join(f'offing:{each}' for each in OWN)}")
    return import_module(f".{inner}", __package__).make()


@cache
def _gymnax(name: str) -> Env:
    import gymnax
    from gymnax.environments import spaces

    try:
        env, params = gymnax.make(name)
    except OSError as error:  # one of them fetches its data
        raise BadInput(f"{name}: gymnax cannot make it here: {error}") from error
    space = env.action_space(params)
    actions: Box | Discrete
    if isinstance(space, spaces.Discrete):
        actions = Discrete(int(space.n))
    else:
        actions = box(name, space.low, space.high, space.shape)

    def reset(key: Key) -> tuple[Any, Array]:
        obs, state = env.reset_env(key, params)
        return state, jnp.asarray(obs, jnp.float32)

    def step(key: Key, state: Any, action: Array) -> tuple[Any, Array, Array, Array]:
        if isinstance(actions, Discrete):
            given = jnp.argmax(action)
        else:
            given = jnp.clip(action, jnp.array(actions.low), jnp.array(actions.high))
        obs, state, reward, ended, _ = env.step_env(key, state, given, params)
        return state, jnp.asarray(obs, jnp.float32), jnp.float32(reward), jnp.asarray(ended, bool)

    flat(name, jax.eval_shape(reset, jax.random.key(0))[1].shape)
    return Env(reset, step, Task(int(params.max_steps_in_episode), 0.99, actions))


@cache
def _brax(name: str) -> Env:
    with _quiet():
        from brax.envs import get_environment

        env = get_environment(name, backend=BRAX[name])
    width = int(env.action_size)

    def reset(key: Key) -> tuple[Any, Array]:
        state = env.reset(key)
        return state, jnp.asarray(state.obs)

    def step(key: Key, state: Any, action: Array) -> tuple[Any, Array, Array, Array]:
        del key
        fresh = jax.tree.map(lambda leaf: leaf, state)  # brax writes into the state's own dictionaries
        state = env.step(fresh, jnp.clip(action, -1.0, 1.0))
        return state, jnp.asarray(state.obs), state.reward, state.done > 0.5

    return Env(reset, step, Task(1000, 0.998, Box((-1.0,) * width, (1.0,) * width)))
