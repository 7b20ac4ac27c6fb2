"""Settings in, results out: one compiled program per static group, run in chunks whose results are kept.

On a GPU a chunk is as many settings as fit, under one `vmap`. On a CPU it is one setting, since there `vmap`
over settings costs rather than pays. Where chunks run is the engine's business. The result of every setting goes
to the cache by itself, so that a killed sweep goes on where it was, on any engine and in chunks of any width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax

from ..hypers import groups, stack
from .engine import Chunk, Work, widest
from .engine import program as _program
from .run import ALONE, Run

WIDEST = 18  # settings under one vmap: beyond this an H200 gains little, and compile and memory grow


def chunks(
    settings: Sequence[object],
    bytes_each: int = 0,
    most: int = WIDEST,
    width: Callable[[int, int, int], int] | None = None,
    left: Collection[int] | None = None,
    abreast: int = 0,
) -> list[list[Chunk]]:
    """The settings (or those `left`, by their places) by static group, each group in chunks of equal width.

    The width is that of the whole group, whatever is left of it: a resumed sweep runs the same programs. Sweeps of
    one structure and of unlike lengths run one program if their chunks hold as many settings `abreast`.
    """
    by_group = []
    for group in groups(settings):
        todo = [i for i in group.index if left is None or i in left]
        if not todo:
            continue
        count = abreast or len(group.index)
        wide = width(count, bytes_each, most) if width else widest(min(count, most), bytes_each)
        places = [tuple(todo[i : i + wide]) for i in range(0, len(todo), wide)]
        by_group.append([Chunk(place, tuple(settings[i] for i in place), wide) for place in places])
    return by_group


class Limits(NamedTuple):
    """What decides how wide chunks are: the memory that a setting takes, and how many a chunk holds at most, or is
    to hold.
    """

    bytes_each: int = 0
    most: int = WIDEST
    abreast: int = 0  # 0: as many as there are


class Sweep(NamedTuple):
    """One of several sweeps that run side by side: its name, its function and its settings."""

    what: str
    work: Work
    settings: Sequence[object]


@partial(jax.tree_util.register_dataclass, data_fields=["setting"], meta_fields=["number"])
@dataclass(frozen=True)
class _Job:
    """A setting, and which of several works is to be done with it: structure, so that they never share a chunk.

    The work itself is no structure: a worker gets a copy of it with every chunk, and would trace each anew.
    """

    setting: object
    number: int


@cache
def _performing(works: tuple[Work, ...]) -> Work:
    return lambda job, *args: works[job.number](job.setting, *args)


def sweep(
    what: str,
    work: Work,
    settings: Sequence[object],
    *args: object,
    bytes_each: int = 0,
    most: int = WIDEST,
    abreast: int = 0,
    run: Run = ALONE,
) -> list[Any]:
    """`work(setting, *args)` for every setting, as numpy; each static group is compiled once."""
    return _swept([Sweep(what, work, settings)], work, settings, args, run, Limits(bytes_each, most, abreast))


def sweeps(parts: Sequence[Sweep], *args: object, run: Run = ALONE) -> list[list[Any]]:
    """Several sweeps over the same arguments at once: none waits for another's program to be compiled."""
    jobs = [_Job(setting, number) for number, part in enumerate(parts) for setting in part.settings]
    work = _performing(tuple(part.work for part in parts))
    results = iter(_swept(parts, work, jobs, args, run, Limits()))
    return [[next(results) for _ in part.settings] for part in parts]


def ahead(
    what: str, work: Work, settings: Sequence[object], *args: object, run: Run = ALONE
) -> Callable[[], object]:
    """Begins to compile what that sweep will need, if anything; call what it gives to wait for that.

    A failure is not this one's to report: the sweep meets it again.
    """
    make = run.engine.ahead
    left = [i for i in range(len(settings)) if run.get(f"{what}-{i}-1") is None]
    if make is None or not left:
        return lambda: None
    beside = ThreadPoolExecutor(1)
    coming = beside.submit(make, work, chunks(settings, width=run.engine.width, left=left), args)
    beside.shutdown(wait=False)
    return coming.exception


def _swept(
    parts: Sequence[Sweep],
    work: Work,
    settings: Sequence[object],
    args: tuple[object, ...],
    run: Run,
    limits: Limits,
) -> list[Any]:
    """The results of all settings, those of the first part first; each part reports its own progress."""
    owner = [(part, i) for part in parts for i in range(len(part.settings))]
    finished = dict.fromkeys((part.what for part in parts), 0)
    for part in parts:
        run.tell(part.what, 0, len(part.settings))
    shapes = _shapes(work, settings, args)
    results = [_recall(run, f"{part.what}-{i}-1", shape) for (part, i), shape in zip(owner, shapes, strict=True)]
    left = {i for i, result in enumerate(results) if result is None}
    for place, (part, _) in enumerate(owner):
        finished[part.what] += place not in left
    for part in parts if len(left) < len(results) else ():
        run.tell(part.what, finished[part.what], len(part.settings))
    if not left:
        return results
    with run.engine.session():
        grouped = chunks(settings, limits.bytes_each, limits.most, run.engine.width, left, limits.abreast)
        with closing(run.engine.run(work, grouped, args)) as coming:
            for chunk, leaves in coming:
                part = owner[chunk.index[0]][0]
                for place, i in enumerate(chunk.index):
                    each = [leaf[place] for leaf in leaves]
                    results[i] = jax.tree.unflatten(jax.tree.structure(shapes[i]), each)
                    run.put(f"{part.what}-{owner[i][1]}-1", [leaf[place : place + 1] for leaf in leaves])
                finished[part.what] += len(chunk.index)
                run.tell(part.what, finished[part.what], len(part.settings))
    return results


def _shapes(work: Work, settings: Sequence[object], args: tuple[object, ...]) -> list[Any]:
    """The shape of every setting's result: a tree of [1, ...]. Chunks of one setting share this trace."""
    shapes: list[Any] = [None] * len(settings)
    for group in groups(settings):
        shape = _program(work, len(args)).shape(stack(group.settings[:1]), *args)
        for i in group.index:
            shapes[i] = shape
    return shapes


def _recall(run: Run, name: str, shape: object) -> object:
    """A result from the cache, or None if there is none of that shape."""
    leaves = run.get(name)
    if leaves is None:
        return None
    wanted = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(shape)]
    if [(leaf.shape, leaf.dtype) for leaf in leaves] != wanted:
        return None
    return jax.tree.unflatten(jax.tree.structure(shape), [leaf[0] for leaf in leaves])
