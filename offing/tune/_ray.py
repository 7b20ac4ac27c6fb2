"""Chunks on a Ray cluster: what they share is stored once, a chunk is a task, a lost worker's chunk runs again.

A worker keeps what it has compiled and what the chunks share for as long as it serves the same sweep. On GPUs
Ray ends a worker after each task, so that its memory is free for the next; there a compilation cache helps, if
one is set and the nodes share it.
"""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import options
from ..types import BadInput
from .engine import Coming, Engine, Groups, Work, first_first, fitting, memory, stacked

RETRIES = 5  # times that a chunk may lose its worker; one that kills every worker must end
# What decides numbers, and where compiled programs are kept: a worker takes it over from here.
SHARED = (
    "jax_platforms",
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_enable_x64",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_default_matmul_precision",
)


def engine() -> Engine:
    """The engine, if Ray is installed."""
    _library()
    return Engine("ray", _run, _width, _session)


def _library() -> Any:
    try:
        import ray
    except ImportError:
        raise BadInput("ray is not installed; pip install 'offing[ray]'") from None
    return ray


@contextmanager
def _session() -> Iterator[None]:
    """Ray if it is up; else the cluster that Ray finds by its own rules; else one on this machine, meanwhile."""
    ray = _library()
    if ray.is_initialized():
        yield
        return
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "os.fork")  # JAX's; what Ray forks becomes another program at once
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise BadInput(f"ray: cannot be reached ({str(error).splitlines()[0]})") from None
    try:
        yield
    finally:
        ray.shutdown()


def _run(work: Work, groups: Groups, args: tuple[Any, ...]) -> Coming:
    """Every chunk as a task; results in the order in which they come."""
    with _session():
        ray = _library()
        task = ray.remote(_serve).options(max_retries=RETRIES, **_needs())
        config = {name: getattr(jax.config, name) for name in SHARED if hasattr(jax.config, name)}
        machine = Machine(config, options("cpu"))
        shared = [ray.put(work), ray.put(pack(args))]  # a list: Ray passes references on, not contents
        pending = {task.remote(machine, shared, chunk.stacked): chunk for chunk in first_first(groups)}
        try:
            while pending:
                ready = ray.wait(list(pending), num_returns=1)[0][0]
                chunk = pending.pop(ready)
                yield chunk, [leaf.copy() for leaf in chunk.leaves(_fetch(ready))]  # Ray's memory goes with Ray
        finally:
            for left in pending:
                ray.cancel(left)


def _fetch(reference: Any) -> list[np.ndarray]:
    """What a task came to; what it raised is raised as it was."""
    ray = _library()
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if "No module named" in (reason := str(error.cause).partition("\n")[0]):
            raise BadInput(f"ray: a worker misses something it has to import ({reason})") from None
        raise error.cause from None


def _needs() -> dict[str, int]:
    """A GPU a chunk if the cluster has any and this process was not told to stay on the CPU; else a core."""
    gpus = _library().cluster_resources().get("GPU", 0)
    return {"num_gpus": 1} if gpus and getattr(jax.config, "jax_platforms", "") != "cpu" else {"num_cpus": 1}


def _width(count: int, bytes_each: int, most: int) -> int:
    with _session():
        if "num_gpus" not in _needs():
            return 1
        return fitting(min(count, most), bytes_each, _memory(_library().get_runtime_context().gcs_address))


@cache
def _memory(cluster: str) -> int:
    """Bytes of a GPU of the cluster, as one of its workers sees it."""
    del cluster  # only what the answer is remembered by
    ray = _library()
    return ray.get(ray.remote(memory).options(num_gpus=1).remote())


# ---- what travels


@dataclasses.dataclass(frozen=True)
class Packed:
    """A typed PRNG key on its way."""

    kind: str
    data: np.ndarray


def pack(tree: Any) -> Any:
    """The tree with its arrays as numpy, and its keys as numbers."""

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return Packed(str(jax.random.key_impl(leaf)), np.asarray(jax.random.key_data(leaf)))
        return np.asarray(leaf)

    return jax.tree.map(one, tree)


def unpack(tree: Any) -> Any:
    """The tree as it was, before `pack`."""

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, Packed):
            return leaf
        return jax.random.wrap_key_data(jnp.asarray(leaf.data), impl=leaf.kind)

    return jax.tree.map(one, tree)


# ---- in a worker


_served: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}  # the latest sweep alone


class Machine(NamedTuple):
    """What decides numbers beside the work itself, as the process has it that asks."""

    config: dict[str, Any]  # of JAX
    on_cpu: tuple[tuple[str, bool | int], ...]  # the compiler's options there


def _serve(machine: Machine, shared: list[Any], settings: Any) -> list[np.ndarray]:
    """The leaves of what one chunk comes to: [width, ...] each."""
    name = shared[0].hex()
    if name not in _served:
        for setting, value in machine.config.items():  # before the first array
            if getattr(jax.config, setting, value) != value:
                jax.config.update(setting, value)
        _served.clear()
        run, args = _library().get(shared)
        quickly = dict(machine.on_cpu) if jax.default_backend() == "cpu" else None
        work_on = jax.jit(stacked(run, len(args)), compiler_options=quickly)
        _served[name] = (work_on, jax.device_put(unpack(args)))
    for leaf in jax.tree.leaves(settings):
        if dataclasses.is_dataclass(leaf):  # it came by value, and this process does not know it as a tree
            raise BadInput(f"{type(leaf).__name__}: workers cannot import it; define it in a module, not a script")
    work_on, args = _served[name]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(work_on(settings, *args))]
