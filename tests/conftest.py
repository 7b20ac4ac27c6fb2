"""The tests' machine: the CPU unless told otherwise, quick compilation, and a cache that outlives a run."""

import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # tiny shapes: compiling is the cost

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def _forget():
    """Programs of one file are of no use to the next: without this a worker grows to several gigabytes."""
    yield
    jax.clear_caches()
