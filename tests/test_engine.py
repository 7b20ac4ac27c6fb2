"""Where chunks run: here, over devices, on Ray with a node lost; the same numbers everywhere, and what is kept."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from imagined import fitted

import offing
from offing.hypers import grid, hypers
from offing.planner import get as planner_of
from offing.posterior.models import linear
from offing.posterior.models.ensemble import space as world_space
from offing.tune import _ray, engine, systems
from offing.tune import sweep as sweeping
from offing.tune.candidates import _planner
from offing.tune.portfolio import portfolio
from offing.tune.run import Run
from offing.tune.sweep import sweep
from offing.types import BadInput, Box, Dataset, Task, Transition

PATH = os.pathsep.join(str(path) for path in (Path(__file__).parents[1], Path(__file__).parent))


@hypers
class Setting:
    lr: float = 0.1
    width: int = 3


SETTINGS = grid(Setting(), lr=(0.1, 0.2, 0.3), width=(3, 5))  # two groups, interleaved


def run(setting, key, x):
    """A few flops that every part of the input moves."""
    noise = jax.random.normal(key, (setting.width,))
    return {"noise": setting.lr * noise, "sum": jnp.tanh(setting.lr * x @ x.T).sum(0)}


def args():
    return jax.random.key(3), np.linspace(-1, 1, 28, dtype=np.float32).reshape(4, 7)


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(np.testing.assert_array_equal, a, b)


class Kept(dict):
    """A cache in memory."""

    def put(self, name, arrays):
        self[name] = list(arrays)


def spied(found):
    """The engine of this process, and which chunks it was given."""

    def watched(run, groups, args):
        for chunk, leaves in engine.here.run(run, groups, args):
            found.append((chunk.index, chunk.width))
            yield chunk, leaves

    return engine.here._replace(run=watched)


# ---- this process, and what is kept


def test_here_is_each_setting_alone():
    alone = [jax.jit(run)(setting, *args()) for setting in SETTINGS]
    same(sweep("t", run, SETTINGS, *args()), jax.tree.map(np.asarray, alone))
    assert len({float(one["sum"][0]) for one in alone}) == 3


def test_a_killed_sweep_goes_on_in_chunks_of_another_width(monkeypatch):
    whole, cache = sweep("t", run, SETTINGS, *args()), Kept()

    def killed(what, done, count):
        if done >= 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(sweeping, "widest", lambda count, bytes_each=0: 2)
    with pytest.raises(KeyboardInterrupt):
        sweep("t", run, SETTINGS, *args(), run=Run(cache, killed))
    done = sorted(int(name.split("-")[1]) for name in cache)
    assert done in ([0, 2], [1, 3])  # the first chunk of either group
    monkeypatch.setattr(sweeping, "widest", lambda count, bytes_each=0: 3)
    found, told = [], []
    again = sweep("t", run, SETTINGS, *args(), run=Run(cache, lambda *a: told.append(a[1]), spied(found)))
    for one, other in zip(again, whole, strict=True):  # another width is another program: to rounding
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), one, other)
    assert sorted(i for index, _ in found for i in index) == sorted({*range(6)} - {*done})
    assert {width for _, width in found} == {3}  # that of the whole group, whatever is left of it
    assert told in ([0, 2, 3, 6], [0, 2, 5, 6])
    found.clear()
    same(sweep("t", run, SETTINGS, *args(), run=Run(cache, engine=spied(found))), again)
    assert found == []


def test_what_is_kept_of_another_shape_is_not_taken():
    cache, found = Kept(), []
    sweep("t", run, SETTINGS[:3], *args(), run=Run(cache))
    cache["t-0-1"] = cache["t-0-1"][:1]
    cache["t-1-1"] = [leaf.astype(np.float64) for leaf in cache["t-1-1"]]
    again = sweep("t", run, SETTINGS[:3], *args(), run=Run(cache, engine=spied(found)))
    same(again, sweep("t", run, SETTINGS[:3], *args()))
    assert sorted(index for index, _ in found) == [(0,), (1,)]


def test_parts_of_a_cache_do_not_share():
    cache = Kept()
    one, two = Run(cache).part("one"), Run(cache).part("two")
    first = sweep("t", run, [Setting(lr=1.0)], *args(), run=one)
    second = sweep("t", run, [Setting(lr=2.0)], *args(), run=two)
    np.testing.assert_allclose(second[0]["noise"], 2 * first[0]["noise"], rtol=1e-6)
    assert sorted(cache) == ["one-t-0-1", "two-t-0-1"]
    same(sweep("t", run, [Setting(lr=9.0)], *args(), run=one), first)  # a name is all that is looked at


def test_after_a_failure_what_runs_is_given_and_nothing_begins():
    failed, began = threading.Event(), []
    done = (engine.Chunk((1,), (), 1), [])

    def fails():
        failed.set()
        raise RuntimeError("no")

    def runs():
        failed.wait(10)
        time.sleep(0.05)
        return done

    late = lambda: began.append(1) or runs()
    found = []
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(each) for each in (runs, fails, late, late, late)]
        with pytest.raises(RuntimeError, match="no"):
            list(map(found.append, engine._gather(tasks)))
    assert done in found
    assert len(began) <= 1  # the one that the free thread took up before it was told


def test_most_bounds_what_one_device_takes(monkeypatch):
    monkeypatch.setattr(engine, "memory", lambda: 1000)
    assert engine.widest(50, 10) == 50
    assert engine.widest(50, 25) == 20  # half of the memory
    assert engine.widest(50, 10_000) == 1
    settings = [Setting(lr=i) for i in range(50)]
    assert [c.width for c in sweeping.chunks(settings)[0]] == [18, 18, 18]
    assert [c.width for c in sweeping.chunks(settings, most=64)[0]] == [50]
    few = [sweeping.chunks(settings[:count], abreast=4)[0] for count in (1, 3, 4, 9)]
    assert [[c.width for c in group] for group in few] == [[4], [4], [4], [4, 4, 4]]  # one program for all of them
    assert [len(c.settings) for c in few[-1]] == [4, 4, 1]
    monkeypatch.setattr(engine, "memory", lambda: 0)
    assert [c.width for c in sweeping.chunks(settings[:3], abreast=4)[0]] == [1, 1, 1]  # on a CPU one by one
    monkeypatch.setattr(jax, "local_device_count", lambda: 4)
    monkeypatch.setattr(engine, "memory", lambda: 1000)
    assert engine.devices.width(50, 10, 18) == 52
    assert engine.devices.width(500, 10, 18) == 72
    assert engine.devices.width(3, 10, 18) == 4


# ---- over devices


DEVICES = """
import jax, numpy as np
from offing.tune import engine
from offing.tune.portfolio import portfolio
from offing.tune.run import Run
from offing.tune.sweep import sweep
from test_engine import SETTINGS, Setting, args, run, same

assert jax.local_device_count() == 4
here, over = (sweep("t", run, SETTINGS, *args(), run=Run(engine=engine.get(name))) for name in ("here", "devices"))
same(here, over)
which = lambda setting, x: jax.lax.axis_index("settings") + 0 * x  # known where the axis is cut, and only there
one = engine.devices.run(which, [[engine.Chunk((0, 1, 2, 3, 4, 5, 6), (Setting(),) * 7, 8)]], (np.int32(0),))
assert [leaf.tolist() for leaf in next(one)[1]] == [[0, 0, 1, 1, 2, 2, 3]]
print("the same on four")
"""


def test_over_four_devices_the_numbers_are_the_same():
    flags = "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"
    there = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": PATH}
    told = subprocess.run([sys.executable, "-c", DEVICES], env=there, capture_output=True, text=True)
    assert told.stdout == "the same on four\n", told.stderr


def sorel(on, progress=None):
    """A tiny run of SOReL on an engine: worlds, fitted twice, clones and plans."""
    log = offing.load("offing:cartpole", 300)
    tried = portfolio("smoke", log.task.actions, ["rppo"], core="linear")
    return systems.sorel(
        jax.random.key(0), log, world_space("smoke"), tried, copies=8, run=Run(progress=progress, engine=on)
    )


def told(result):
    """All that a run came to, in numbers."""
    choice = result.posterior
    return {
        "worlds": jax.tree.map(np.asarray, result.worlds.theta),
        "pil": (choice.index, choice.nll, choice.pil),
        "field": [(row.name, row.median, row.lower, row.distance) for row in result.policy.field.rows()],
        "policy": jax.tree.map(np.asarray, result.picked.params),
        "returns": result.predicted.returns.returns,
    }


SOREL = """
import jax
import numpy as np
from offing.tune import engine
from test_engine import sorel, told

assert jax.local_device_count() == 2
given = []

def spied(run, groups, args):
    for chunk, leaves in engine.devices.run(run, groups, args):
        given.append(chunk.width)
        yield chunk, leaves

here, over = told(sorel(engine.here)), told(sorel(engine.devices._replace(run=spied)))
assert len(given) >= 4 and set(given) == {2}, given  # worlds, twice, and both planners: two settings at a time
assert here["pil"][0] == over["pil"][0]
assert [row[0] for row in here["field"]] == [row[0] for row in over["field"]]
near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-2)
near(here["pil"][1], over["pil"][1])  # cut over devices it is another program: to rounding
near([row[1:] for row in here["field"]], [row[1:] for row in over["field"]])
near(here["returns"].mean(), over["returns"].mean())
print("the same on two")
"""


def test_over_two_devices_sorel_is_the_same():
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    there = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": PATH}
    run = subprocess.run([sys.executable, "-c", SOREL], env=there, capture_output=True, text=True)
    assert run.stdout == "the same on two\n", run.stderr


# ---- which engine


def test_an_engine_is_found_by_its_name():
    assert engine.get("here") is engine.here
    assert engine.get("devices") is engine.devices
    with pytest.raises(BadInput, match="moon: no such engine; there are here, devices, ray"):
        engine.get("moon")


def test_ray_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadInput, match=r"ray is not installed; pip install 'offing\[ray\]'"):
        engine.get("ray")


def test_what_travels_comes_back_as_it_was():
    key = jax.random.split(jax.random.key(5, impl="rbg"), 3)
    tree = {"key": key, "x": jnp.arange(4.0), "rest": (np.int32(2), 0.5)}
    packed = _ray.pack(tree)
    assert not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(packed))
    back = _ray.unpack(packed)
    assert back["key"].dtype == key.dtype
    same(jax.random.normal(back["key"][1]), jax.random.normal(key[1]))
    same((back["x"], back["rest"]), (np.asarray(tree["x"]), tree["rest"]))


# ---- Ray: two nodes on this machine


needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed (the extra `ray`)")


@contextmanager
def two_nodes():
    """A cluster of two nodes of one core each, this process connected to it; and the node that may be lost."""
    import ray
    from ray.cluster_utils import Cluster

    quick = {"health_check_period_ms": 500, "health_check_failure_threshold": 3}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": quick})
    try:
        lost = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster, lost
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", PATH)  # workers find this module
        patch.setenv("RAY_worker_niceness", "0")  # else workers wait for whatever else the machine does
        with two_nodes() as nodes:
            yield nodes


@needs_ray
def test_on_ray_the_numbers_are_the_same(cluster):
    cache, told = Kept(), []
    found = sweep("t", run, SETTINGS, *args(), run=Run(cache, lambda *a: told.append(a[1]), engine.get("ray")))
    same(found, sweep("t", run, SETTINGS, *args()))
    assert told == [0, 1, 2, 3, 4, 5, 6]
    assert all(leaf.flags.owndata or leaf.base.flags.owndata for leaf in jax.tree.leaves(found[0]))
    seen = []
    same(sweep("t", run, SETTINGS, *args(), run=Run(cache, engine=spied(seen))), found)
    assert seen == []  # what Ray did, another engine takes up


def worlds():
    """A tiny log and a posterior of it."""
    rows = 23
    x = np.random.default_rng(1).normal(size=(rows, 5)).astype(np.float32)
    obs, action = x[:, :3], np.tanh(x[:, 3:])
    steps = Transition(obs, action, obs[:, 0], obs + 0.1, action, np.zeros(rows, np.float32))
    data = Dataset(steps, obs[:5], np.zeros(rows, np.int32), np.asarray(rows))
    task = Task(5, 0.9, Box((-1.0, -1.0), (1.0, 1.0)))
    return data, fitted(linear.model, jax.random.key(1), linear.Hypers(noise=0.5, members=2), data, task)


@needs_ray
def test_a_planner_on_ray_learns_the_same(cluster):
    data, posterior = worlds()
    planner = planner_of("iql")
    setting = planner.Hypers(updates=2, batch_size=5, width=3, depth=1)
    shared = (jax.random.key(2), data, posterior, posterior)
    here = sweep("plan", _planner(planner), [setting], *shared)
    same(sweep("plan", _planner(planner), [setting], *shared, run=Run(engine=engine.get("ray"))), here)
    assert here[0].held.shape == (2,)


def fails(setting, x):
    raise BadInput("a worker says no")


@needs_ray
def test_what_a_worker_cannot_do_is_said_in_one_line(cluster):
    import ray

    @hypers
    class Local:
        lr: float = 0.1
        width: int = 3

    with pytest.raises(BadInput) as told:
        sweep("t", run, [Local()], *args(), run=Run(engine=engine.get("ray")))
    assert str(told.value) == "Local: workers cannot import it; define it in a module, not a script"
    groups = sweeping.chunks([Setting()])
    with pytest.raises(BadInput) as told:
        next(engine.get("ray").run(fails, groups, (np.float32(1),)))
    assert str(told.value) == "a worker says no"
    assert ray.is_initialized()  # it was up before, so it is left up


def serving():
    """The processes of Ray's workers that run a chunk."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cmdline").read_text().startswith("ray::_serve"):
                yield int(place.name)
        except OSError:
            continue  # it is over


@needs_ray
def test_sorel_on_two_workers_is_the_same_even_where_some_are_killed(cluster):
    """A worker is killed while it fits worlds, and another while it plans."""
    dead, strikes = [], []

    def strike(what):
        until = time.monotonic() + 200
        while time.monotonic() < until:
            for worker in serving():
                os.kill(worker, signal.SIGKILL)
                dead.append(what)
                return
            time.sleep(0.01)

    def begin(what, done, count):
        if what in ("fit", "plan") and done == 0:
            strikes.append(threading.Thread(target=strike, args=(what,)))
            strikes[-1].start()

    there = told(sorel(engine.get("ray"), begin))
    assert dead == ["fit", "plan"]
    same(there, told(sorel(engine.here)))


def paused(path, seconds):
    """`run` as above that writes down where and when it ran, and takes a while."""

    def note(lr):
        for word, rest in (("begin", seconds), ("end", 0)):
            with open(path, "a") as file:
                file.write(f"{word} {os.getppid()} {os.getpid()} {float(lr):.3f}\n")
            time.sleep(rest)
        return np.float32(lr)

    def slow(setting, key, x):
        lr = jax.pure_callback(note, jax.ShapeDtypeStruct((), jnp.float32), setting.lr, vmap_method="sequential")
        return run(replace(setting, lr=lr), key, x)

    return slow


@needs_ray
def test_a_node_is_lost_and_the_numbers_are_the_same(cluster, tmp_path):
    nodes, lost = cluster
    raylet = str(lost.all_processes["raylet"][0].process.pid)  # the parent of the node's workers
    notes, settings, dead = tmp_path / "notes", grid(Setting(), lr=np.linspace(0.1, 0.8, 8).tolist()), []
    notes.touch()

    def there(word):
        lines = [line.split() for line in notes.read_text().splitlines()]
        return [(worker, lr) for said, where, worker, lr in lines if (said, where) == (word, raylet)]

    def kill(what, done, count):
        if done != 1:
            return
        while not (busy := [each for each in there("begin") if each not in there("end")]):
            time.sleep(0.01)
        os.kill(int(busy[0][0]), signal.SIGKILL)  # a machine that goes takes its workers with it
        nodes.remove_node(lost, allow_graceful=False)
        dead.extend(busy)

    found = sweep("t", paused(notes, 0.5), settings, *args(), run=Run(progress=kill, engine=engine.get("ray")))
    same(found, sweep("t", run, settings, *args()))
    assert len(dead) == 1
    begun = [line.split()[-1] for line in notes.read_text().splitlines() if line.startswith("begin")]
    assert dead[0] not in there("end")
    assert begun.count(dead[0][1]) > 1  # the chunk that was lost, and run again
