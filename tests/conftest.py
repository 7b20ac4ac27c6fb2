"""The tests' machine: the CPU unless told otherwise, quick compilation, and a cache that outlives a run."""

import os
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "jax"))
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")  # nobody reads where a program's parts come from
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
# Tiny shapes: compiling is the cost, and most of that is XLA's newer emitters of fused loops. Flags that XLA does
# not know are fatal, so that one is for the version that knows it.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    + (
        " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
        if version("jaxlib").startswith("0.10.")
        else ""
    ),
)

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def _forget():
    """Programs of one file are of no use to the next: without this a worker grows to several gigabytes."""
    yield
    jax.clear_caches()


# Files of the longest runs begin first: the last ones to begin leave a core idle otherwise.
LONGEST = (
    "test_evaluate", "test_commands", "test_docs", "test_torel", "test_controls", "test_unseen", "test_health",
    "test_posterior", "test_paper", "test_own_table", "test_properties", "test_models", "test_kinds",
    "test_exogenous", "test_candidates", "test_pil", "test_planner", "test_damaged", "test_tables",
    "test_experiments", "test_registry", "test_systems", "test_foreign", "test_inspect", "test_play",
)  # fmt: skip
# Whole runs, and nets in compiled programs, of what other files run too: to see which lines they run takes a fifth
# of their time.
WHOLE = (
    "test_unseen", "test_own_table", "test_controls", "test_health", "test_experiments", "test_docs",
    "test_posterior", "test_pil", "test_exogenous", "test_dream", "test_probes", "test_sacn", "test_losses",
    "test_paper",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Tests of WHOLE, and what is set up for them, without a look at the lines that they run."""
    measure = item.config.pluginmanager.getplugin("_cov")
    measure = None if measure is None or item.path.stem not in WHOLE else measure.cov_controller
    if measure is None:
        return (yield)
    measure.pause()
    try:
        return (yield)
    finally:
        measure.resume()
