"""Programs compiled for the machine they run on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing import compiling, progress
from offing.commands.terminal import timings
from offing.progress import Bar, Meter, meter


@pytest.fixture
def on_cpu(monkeypatch):
    monkeypatch.setattr(compiling, "ON_CPU", {"xla_backend_optimization_level": 1, "xla_of_another_version": True})
    monkeypatch.setenv("XLA_FLAGS", "")
    compiling.options.cache_clear()
    yield
    compiling.options.cache_clear()


def test_options_that_this_version_does_not_know_are_left_out(on_cpu):
    assert compiling.options("cpu") == (("xla_backend_optimization_level", 1),)
    assert compiling.options("gpu") == ()


def test_the_users_own_flags_stand(on_cpu, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert compiling.options("cpu") == ()


def test_a_program_gives_the_same_alone_and_inside_another(on_cpu):
    times = []

    def power(x, n):
        times.append(n)
        return x**n

    quick = compiling.compiled(power, static_argnames="n")
    assert quick(jnp.asarray(3.0), n=2) == 9
    assert quick(jnp.asarray(4.0), n=2) == 16
    assert jax.jit(lambda x: quick(x, n=2) + 1)(3.0) == 10
    assert jax.vmap(lambda x: quick(x, n=3))(jnp.arange(3.0)).tolist() == [0, 1, 8]
    assert jax.eval_shape(lambda x: quick(x, n=2), 3.0).shape == ()
    assert len(times) <= 4  # traced once for each kind of use, and not at every call


def test_a_meter_tells_compiling_from_running_and_counts_programs(monkeypatch):
    monkeypatch.setattr(compiling, "MEASURES", [])
    meter.cache_clear()
    bar = Bar(show=False, timings=True)
    bar("fit", 0, 2)
    double = compiling.compiled(lambda x: jax.lax.fori_loop(0, 2_000, lambda i, a: jnp.sin(a @ a), x).sum())
    for done, size in enumerate((48, 64), 1):
        double(np.ones((size, size), np.float32))
        double(np.ones((size, size), np.float32))
        bar("fit", done, 2)
    stage = bar.stages["fit"]
    assert stage.programs == 2  # one for each size, however often it runs
    assert stage.compiling > 0
    assert stage.running > 0
    assert stage.compiling + stage.running + stage.host == pytest.approx(stage.seconds, abs=0.05)
    lines = timings(bar)
    assert lines[0].split() == ["timings", "seconds", "compile", "run", "host", "programs"]
    assert [line.split()[0] for line in lines[1:]] == ["fit", "between", "in"]


def test_parts_of_a_compilation_are_not_counted_twice(monkeypatch):
    one = Meter()
    clock = iter([1.0, 2.0, 5.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    for event, seconds in (("jaxpr_trace", 0.5), ("jaxpr_trace", 1.5), ("backend_compile", 1.0)):
        one.hear(f"/jax/core/compile/{event}_duration", seconds)  # the second began before the first
    assert one.compiling == pytest.approx(2.5)
    assert len(one.programs) == 1
