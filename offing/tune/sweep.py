"""Settings in, results out: one compiled program per static group, run in chunks whose results are kept.

On a GPU a chunk is as many settings as fit, under one `vmap`. On a CPU it is one setting, since there `vmap`
over settings costs rather than pays. Where chunks run is the engine's business. The result of every setting goes
to the shelf by itself, so that a killed sweep goes on where it was, on any engine and in chunks of any width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from ..hypers import groups, stack
from ..types import Progress
from .engine import Chunk, Engine, here, widest
from .engine import program as _program

WIDEST = 18  # settings under one vmap: beyond this an H200 gains little, and compile and memory grow


class Shelf(Protocol):
    """Where finished results are kept: arrays by name. `offing.report.store.Folder` is one."""

    def get(self, name: str) -> list[np.ndarray] | None: ...

    def put(self, name: str, arrays: Sequence[np.ndarray]) -> None: ...


class Drawer(NamedTuple):
    """A part of a shelf: for sweeps of the same name over other settings, such as the batches of a search."""

    shelf: Shelf
    name: str

    def get(self, name: str) -> list[np.ndarray] | None:
        return self.shelf.get(f"{self.name}-{name}")

    def put(self, name: str, arrays: Sequence[np.ndarray]) -> None:
        self.shelf.put(f"{self.name}-{name}", arrays)


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
    found = []
    for group in groups(settings):
        todo = [i for i in group.index if left is None or i in left]
        if not todo:
            continue
        count = len(group.index)
        wide = width(count, bytes_each, most) if width else widest(min(count, most), bytes_each)
        places = [tuple(todo[i : i + wide]) for i in range(0, len(todo), wide)]
        found.append([Chunk(place, tuple(settings[i] for i in place), wide) for place in places])
    return found


def sweep(
    what: str,
    run: Callable[..., Any],
    settings: Sequence[Any],
    *args: Any,
    bytes_each: int = 0,
    most: int = WIDEST,
    shelf: Shelf | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> list[Any]:
    """`run(setting, *args)` for every setting, as numpy; each static group is compiled once."""
    tell = progress or (lambda *_: None)
    tell(what, 0, len(settings))
    shapes = _shapes(run, settings, args)
    results = [_recall(shelf, f"{what}-{i}-1", shape) for i, shape in enumerate(shapes)]
    left = {i for i, result in enumerate(results) if result is None}
    finished = len(settings) - len(left)
    if finished:
        tell(what, finished, len(settings))
    if not left:
        return results
    engine = engine or here
    with engine.session():
        grouped = chunks(settings, bytes_each, most, engine.width, left)
        with closing(engine.run(run, grouped, args)) as coming:
            for chunk, leaves in coming:
                for place, i in enumerate(chunk.index):
                    results[i] = jax.tree.unflatten(
                        jax.tree.structure(shapes[i]), [leaf[place] for leaf in leaves]
                    )
                    if shelf is not None:
                        shelf.put(f"{what}-{i}-1", [leaf[place : place + 1] for leaf in leaves])
                finished += len(chunk.index)
                tell(what, finished, len(settings))
    return results


def _shapes(run: Callable[..., Any], settings: Sequence[Any], args: tuple[Any, ...]) -> list[Any]:
    """The shape of every setting's result: a tree of [1, ...]. Chunks of one setting share this trace."""
    shapes: list[Any] = [None] * len(settings)
    for group in groups(settings):
        shape = jax.eval_shape(_program(run, len(args)), stack(group.settings[:1]), *args)
        for i in group.index:
            shapes[i] = shape
    return shapes


def _recall(shelf: Shelf | None, name: str, shape: Any) -> Any:
    """A result from the shelf, or None if there is none of that shape."""
    leaves = shelf.get(name) if shelf is not None else None
    if leaves is None:
        return None
    wanted = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(shape)]
    if [(leaf.shape, leaf.dtype) for leaf in leaves] != wanted:
        return None
    return jax.tree.unflatten(jax.tree.structure(shape), [leaf[0] for leaf in leaves])
