"""Settings in, results out: one compiled program per static group, run in chunks whose results are kept.

On a GPU a chunk is as many settings as fit, under one `vmap`. On a CPU it is one setting, since there `vmap`
over settings costs rather than pays. Where chunks run is the engine's business. The result of every setting goes
to the cache by itself, so that a killed sweep goes on where it was, on any engine and in chunks of any width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from typing import Any

import jax

from ..hypers import groups, stack
from .engine import Chunk, widest
from .engine import program as _program
from .run import ALONE, Run

WIDEST = 18  # settings under one vmap: beyond this an H200 gains little, and compile and memory grow


def chunks(
    settings: Sequence[Any],
    bytes_each: int = 0,
    most: int = WIDEST,
    width: Callable[[int, int, int], int] | None = None,
    left: Collection[int] | None = None,
) -> list[list[Chunk]]:
    """The settings (or those `left`, by their places) by static group, each group in chunks of equal width.

    The width is that of the whole group, whatever is left of it: a resumed sweep runs the same programs.
    """
    by_group = []
    for group in groups(settings):
        todo = [i for i in group.index if left is None or i in left]
        if not todo:
            continue
        count = len(group.index)
        wide = width(count, bytes_each, most) if width else widest(min(count, most), bytes_each)
        places = [tuple(todo[i : i + wide]) for i in range(0, len(todo), wide)]
        by_group.append([Chunk(place, tuple(settings[i] for i in place), wide) for place in places])
    return by_group


def sweep(
    what: str,
    work: Callable[..., Any],
    settings: Sequence[Any],
    *args: Any,
    bytes_each: int = 0,
    most: int = WIDEST,
    run: Run = ALONE,
) -> list[Any]:
    """`work(setting, *args)` for every setting, as numpy; each static group is compiled once."""
    run.tell(what, 0, len(settings))
    shapes = _shapes(work, settings, args)
    results = [_recall(run, f"{what}-{i}-1", shape) for i, shape in enumerate(shapes)]
    left = {i for i, result in enumerate(results) if result is None}
    finished = len(settings) - len(left)
    if finished:
        run.tell(what, finished, len(settings))
    if not left:
        return results
    with run.engine.session():
        grouped = chunks(settings, bytes_each, most, run.engine.width, left)
        with closing(run.engine.run(work, grouped, args)) as coming:
            for chunk, leaves in coming:
                for place, i in enumerate(chunk.index):
                    results[i] = jax.tree.unflatten(
                        jax.tree.structure(shapes[i]), [leaf[place] for leaf in leaves]
                    )
                    run.put(f"{what}-{i}-1", [leaf[place : place + 1] for leaf in leaves])
                finished += len(chunk.index)
                run.tell(what, finished, len(settings))
    return results


def _shapes(work: Callable[..., Any], settings: Sequence[Any], args: tuple[Any, ...]) -> list[Any]:
    """The shape of every setting's result: a tree of [1, ...]. Chunks of one setting share this trace."""
    shapes: list[Any] = [None] * len(settings)
    for group in groups(settings):
        shape = _program(work, len(args)).shape(stack(group.settings[:1]), *args)
        for i in group.index:
            shapes[i] = shape
    return shapes


def _recall(run: Run, name: str, shape: Any) -> Any:
    """A result from the cache, or None if there is none of that shape."""
    leaves = run.get(name)
    if leaves is None:
        return None
    wanted = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(shape)]
    if [(leaf.shape, leaf.dtype) for leaf in leaves] != wanted:
        return None
    return jax.tree.unflatten(jax.tree.structure(shape), [leaf[0] for leaf in leaves])
