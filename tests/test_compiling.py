"""Programs compiled for the machine they run on."""

import jax
import jax.numpy as jnp
import pytest

from offing import compiling


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
