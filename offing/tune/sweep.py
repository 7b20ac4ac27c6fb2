"""Settings in, results out: one compiled program per static group, run in chunks that are kept.

On a GPU a chunk is as many settings as fit, under one `vmap`. On a CPU it is one setting, since there `vmap`
over settings costs rather than pays, and as many chunks run side by side as there are cores. Finished chunks
go to the shelf, so that a killed sweep goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from ..hypers import groups, stack
from ..types import Progress

WIDEST = 18  # settings under one vmap: beyond this an H200 gains little, and compile and memory grow


class Shelf(Protocol):
    """Where finished chunks are kept: arrays by name. `offing.report.store.Folder` is one."""

    def get(self, name: str) -> list[np.ndarray] | None: ...

    def put(self, name: str, arrays: Sequence[np.ndarray]) -> None: ...


class Chunk(NamedTuple):
    """Settings of one structure that run together, and where they stand in the list; padded to `width`."""

    index: tuple[int, ...]
    settings: tuple[Any, ...]
    width: int


def chunks(settings: Sequence[Any], bytes_each: int = 0) -> list[list[Chunk]]:
    """The settings by static group, each group in chunks of equal width."""
    found = []
    for group in groups(settings):
        width = widest(len(group.index), bytes_each)
        places = range(0, len(group.index), width)
        found.append([Chunk(group.index[i : i + width], group.settings[i : i + width], width) for i in places])
    return found


def widest(count: int, bytes_each: int = 0) -> int:
    """How many of `count` settings one program should run at once on this device, its memory considered."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        return 1
    memory = (device.memory_stats() or {}).get("bytes_limit", 8 << 30)
    return max(1, min(count, WIDEST, int(0.5 * memory // max(bytes_each, 1))))


@cache
def _program(run: Callable[..., Any], fixed: int) -> Callable[..., Any]:
    return jax.jit(jax.vmap(run, in_axes=(0, *[None] * fixed)))


def sweep(
    what: str,
    run: Callable[..., Any],
    settings: Sequence[Any],
    *args: Any,
    bytes_each: int = 0,
    shelf: Shelf | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """`run(setting, *args)` for every setting, as numpy; each static group is compiled once."""
    results: list[Any] = [None] * len(settings)
    finished = 0
    program = _program(run, len(args))  # here, since threads that ask a cold cache at once each make their own

    def work(chunk: Chunk) -> tuple[Chunk, list[np.ndarray]]:
        name = f"{what}-{chunk.index[0]}-{len(chunk.index)}"
        leaves = shelf.get(name) if shelf is not None else None
        if leaves is None:
            padded = [*chunk.settings, *[chunk.settings[-1]] * (chunk.width - len(chunk.settings))]
            out = program(stack(padded), *args)
            leaves = [np.asarray(leaf)[: len(chunk.index)] for leaf in jax.tree.leaves(out)]
            if shelf is not None:
                shelf.put(name, leaves)
        return chunk, leaves

    if progress:
        progress(what, 0, len(settings))
    grouped = chunks(settings, bytes_each)
    shapes = {
        jax.tree.structure(group[0].settings[0]): jax.tree.structure(
            jax.eval_shape(run, group[0].settings[0], *args)
        )
        for group in grouped
    }
    first, rest = [group[0] for group in grouped], [chunk for group in grouped for chunk in group[1:]]
    workers = (os.cpu_count() or 1) if jax.default_backend() == "cpu" else 1
    with ThreadPoolExecutor(workers) as pool:
        for batch in (first, rest):  # the first chunks compile, side by side; the rest find programs ready
            tasks = [pool.submit(work, chunk) for chunk in batch]
            try:
                for task in as_completed(tasks):
                    chunk, leaves = task.result()
                    shape = shapes[jax.tree.structure(chunk.settings[0])]
                    for place, i in enumerate(chunk.index):
                        results[i] = jax.tree.unflatten(shape, [leaf[place] for leaf in leaves])
                    finished += len(chunk.index)
                    if progress:
                        progress(what, finished, len(settings))
            except BaseException:
                for task in tasks:
                    task.cancel()
                raise
    return results
