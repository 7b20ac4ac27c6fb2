"""Programs that are compiled for the machine they run on.

On a CPU a run at `quick` spent more time in compiling its programs than in running them. Most of that is XLA's
emitters of fused loops and LLVM's later passes, which win nothing there: fits of worlds take as long without them,
and compile in a quarter of the time. On other backends programs are compiled as XLA would.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Generic, ParamSpec, Protocol, TypedDict, TypeVar, Unpack

import jax
from jax.core import Tracer

P = ParamSpec("P")
R = TypeVar("R")

ON_CPU = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}


class Measure(Protocol):
    """Runs a program and waits for what it gives, to know what that takes."""

    def __call__(self, run: Callable[[], R]) -> R: ...


MEASURES: list[Measure] = []  # the process's one, once somebody asks what the time goes to


class Static(TypedDict, total=False):
    """How `jax.jit` takes arguments."""

    static_argnames: str | tuple[str, ...]


class Compiled(Generic[P, R]):
    """A function that is compiled where it is called, and a plain part of a program that it is called in."""

    def __init__(self, function: Callable[P, R], **static: Unpack[Static]):
        self.function, self.static = function, static
        self.plain = jax.jit(function, **static)
        self.programs: dict[str, jax.stages.Wrapped] = {}  # by backend
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        inside = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((args, kwargs)))
        if inside:
            return self.plain(*args, **kwargs)
        if MEASURES:
            return MEASURES[0](lambda: self.program(*args, **kwargs))
        return self.program(*args, **kwargs)

    @property
    def program(self) -> jax.stages.Wrapped:
        """What is compiled for the backend in use."""
        backend = jax.default_backend()
        if backend not in self.programs:
            self.programs[backend] = jax.jit(self.function, compiler_options=dict(options(backend)), **self.static)
        return self.programs[backend]

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Lowered:
        """As `jax.jit` has it."""
        return self.program.lower(*args, **kwargs)

    def shape(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The shapes of what it gives; what is traced to know them serves the program as well."""
        return self.program.eval_shape(*args, **kwargs)  # type: ignore[attr-defined]

    def _cache_size(self) -> int:
        """Programs compiled so far, as `jax.jit` counts them."""
        return self.program._cache_size()  # type: ignore[attr-defined]

    def clear_cache(self) -> None:
        """Forgets them."""
        self.program.clear_cache()  # type: ignore[attr-defined]


def compiled(function: Callable[P, R], **static: Unpack[Static]) -> Compiled[P, R]:
    """`jax.jit` with the options of the backend; inside another program it is a plain part of that."""
    return Compiled(function, **static)


Options = tuple[tuple[str, bool | int], ...]


@cache
def options(backend: str) -> Options:
    """The compiler's options for a backend, as far as this version of XLA knows them and XLA_FLAGS leaves them."""
    mine = {name: value for name, value in ON_CPU.items() if backend == "cpu"}
    own = os.environ.get("XLA_FLAGS", "")
    wanted = tuple((name, value) for name, value in mine.items() if name not in own)
    return wanted if not wanted or _known(wanted) else tuple(each for each in wanted if _known((each,)))


def _known(wanted: Options) -> bool:
    try:
        jax.jit(lambda x: x + 1, compiler_options=dict(wanted)).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
