"""Where chunks of a sweep run: in this process, over all local devices, or on a Ray cluster.

An engine takes a function, chunks of settings and what all of them share, and gives every chunk back with the
leaves of its results as soon as they are there. What is kept and what is reported is the sweep's business. Chunks
of one width give the same numbers wherever they run on like machines; other widths are other programs and differ
by rounding.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from functools import cache, update_wrapper
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from ..compiling import Compiled, compiled
from ..hypers import stack
from ..types import BadInput, Tree

Work = Callable[..., Any]  # (setting, *args) -> a tree of arrays
HEAVY = 8  # programs at once that each hold much memory, at most


class Chunk(NamedTuple):
    """Settings of one structure that run together, and where they stand in the list; padded to `width`."""

    index: tuple[int, ...]
    settings: tuple[Any, ...]
    width: int

    @property
    def stacked(self) -> Any:
        """One setting whose leaves are arrays [width, ...]."""
        return stack([*self.settings, *[self.settings[-1]] * (self.width - len(self.settings))])

    def leaves(self, out: Any) -> list[np.ndarray]:
        """What a program made of the chunk, without the padding: [count, ...] each."""
        return [np.asarray(leaf)[: len(self.index)] for leaf in jax.tree.leaves(out)]


Groups = Sequence[Sequence[Chunk]]  # chunks by static structure
Done = tuple[Chunk, list[np.ndarray]]
Coming = Generator[Done, None, None]


class Engine(NamedTuple):
    """A place for chunks to run: `run(work, chunks by group, args)`."""

    name: str
    run: Callable[[Work, Groups, tuple[Any, ...]], Coming]
    # (settings, bytes of each, most a device should take) -> settings in a chunk; None: as for one device here
    width: Callable[[int, int, int], int] | None = None
    session: Callable[[], AbstractContextManager[Any]] = nullcontext  # several sweeps may share one
    ahead: Callable[[Work, Groups, tuple[Any, ...]], None] | None = None  # makes programs that are needed later


def memory() -> int:
    """Bytes of the device that programs run on by default; 0 on a CPU, where settings go one by one."""
    device = jax.local_devices()[0]
    return 0 if device.platform == "cpu" else (device.memory_stats() or {}).get("bytes_limit", 8 << 30)


def cores() -> int:
    """CPU cores that this process may use, which on a shared machine are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(heavy: bool = False) -> int:
    """How many programs run at once: on a CPU one on every core, elsewhere one. HEAVY at most, if they are."""
    able = cores() if jax.default_backend() == "cpu" else 1
    return min(able, HEAVY) if heavy else able


def widest(count: int, bytes_each: int = 0) -> int:
    """How many of `count` settings one program should run at once on this device, its memory considered."""
    return fitting(count, bytes_each, memory())


def fitting(count: int, bytes_each: int, space: int) -> int:
    """How many of `count` settings fit into half of the space, and at least one."""
    return max(1, min(count, int(0.5 * space // max(bytes_each, 1))))


def stacked(work: Work, fixed: int) -> Work:
    """The function over a stack of settings; the `fixed` arguments after them are shared.

    A stack of one needs no `vmap`, which would take each loop in it apart once more, and none of its loops could
    end early. So it is on every engine: with it, and without, the last digits differ.
    """

    def over(settings: Tree, *args: Tree) -> Tree:
        if all(leaf.shape[0] == 1 for leaf in jax.tree.leaves(settings)):
            out = work(jax.tree.map(lambda leaf: leaf[0], settings), *args)
            return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], out)
        return jax.vmap(work, in_axes=(0, *[None] * fixed))(settings, *args)

    return update_wrapper(over, work)


@cache
def program(work: Work, fixed: int) -> Compiled[..., Any]:
    """The same, compiled."""
    return compiled(stacked(work, fixed))


def first_first(groups: Groups) -> list[Chunk]:
    """The first chunk of every group, then all others: what must be compiled comes early."""
    return [group[0] for group in groups] + [chunk for group in groups for chunk in group[1:]]


# ---- this process


def _run_here(work: Work, groups: Groups, args: tuple[Any, ...]) -> Coming:
    """On a CPU as many chunks side by side as there are cores, elsewhere one after the other.

    Programs are compiled side by side everywhere, and a chunk begins once its own is there.
    """
    work_on = program(work, len(args))
    make = lambda group: work_on.lower(group[0].stacked, *args).compile()

    def one(chunk: Chunk, made: Future[Any]) -> Done:
        made.result()
        return chunk, chunk.leaves(work_on(chunk.stacked, *args))

    with ThreadPoolExecutor(cores()) as makers, ThreadPoolExecutor(side_by_side()) as pool:
        made = {chunk.index: task for group in groups for task in [makers.submit(make, group)] for chunk in group}
        tasks = [pool.submit(one, chunk, made[chunk.index]) for chunk in first_first(groups)]
        try:
            for batch in (tasks[: len(groups)], tasks[len(groups) :]):  # what is first is given first
                yield from _gather(batch, tasks)
        finally:
            _stop([*made.values(), *tasks])


def _ahead_here(work: Work, groups: Groups, args: tuple[Any, ...]) -> None:
    """Compiles what these chunks will need, side by side where programs run one by one and leave cores idle."""
    work_on = program(work, len(args))
    make = lambda group: work_on.lower(group[0].stacked, *args).compile()
    with ThreadPoolExecutor(len(groups) if side_by_side() == 1 else 1) as makers:
        for _ in makers.map(make, groups):
            pass


def _gather(tasks: Sequence[Future[Done]], others: Sequence[Future[Done]] = ()) -> Coming:
    """Results as they come. After a failure nothing new begins, of `others` neither; what runs is still given, and
    then it is raised.
    """
    failure: Exception | None = None
    try:
        for task in as_completed(tasks):
            if task.cancelled():
                continue
            if (error := task.exception()) is None:
                yield task.result()
            elif not isinstance(error, Exception):
                raise error
            elif failure is None:
                failure = error
                _stop([*tasks, *others])
    finally:
        _stop(tasks)
    if failure is not None:
        raise failure


def _stop(tasks: Sequence[Future[Any]]) -> None:
    for task in tasks:
        task.cancel()


# ---- all local devices


def _over_devices(work: Work, groups: Groups, args: tuple[Any, ...]) -> Coming:
    """Chunk after chunk, each cut along its settings into as many parts as there are devices."""
    mesh = Mesh(np.asarray(jax.local_devices()), ("settings",))
    work_on = _cut(work, len(args), mesh)
    args = jax.device_put(args, NamedSharding(mesh, P()))
    apart = NamedSharding(mesh, P("settings"))
    for chunk in first_first(groups):
        yield chunk, chunk.leaves(work_on(jax.device_put(chunk.stacked, apart), *args))


@cache
def _cut(work: Work, fixed: int, mesh: Mesh) -> Callable[..., Any]:
    """The program of which every device runs its own settings, without a word to the others."""
    specs = (P("settings"), *[P()] * fixed)
    return compiled(
        jax.shard_map(stacked(work, fixed), mesh=mesh, in_specs=specs, out_specs=P("settings"), check_vma=False)
    )


def _width_over_devices(count: int, bytes_each: int, most: int) -> int:
    devices = jax.local_device_count()
    return devices * widest(min(-(-count // devices), most), bytes_each)


# ---- which


here = Engine("here", _run_here, ahead=_ahead_here)
devices = Engine("devices", _over_devices, _width_over_devices)
NAMES = ("here", "devices", "ray")


def get(name: str) -> Engine:
    """The engine of that name; BadInput if there is none, or if its package is not installed."""
    if name == "ray":
        from ._ray import engine

        return engine()
    engines = {each.name: each for each in (here, devices)}
    if name not in engines:
        raise BadInput(f"{name}: no such engine; there are {', '.join(NAMES)}")
    return engines[name]
