"""Logs larger than memory: kept on disk as they would be in memory, and stood for by samples of whole episodes."""

import gc
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_sources import columns, flat, schema, write

import offing
from offing import data as rooms
from offing.data import Schema, fewer, inspect, large, load
from offing.data.sources import _large, row_bytes
from offing.door import common
from offing.types import BadInput

ROOT = Path(__file__).parents[1]
LENGTHS = [5, 1, 4, 7, 3, 3, 9, 2, 6, 4, 8, 5]


@pytest.fixture
def tiny(monkeypatch):
    """A machine for which a few rows are many."""
    monkeypatch.setattr(rooms, "BUDGET", 40 * 52)
    monkeypatch.setattr(_large, "PIECE", 10)


def mapped(array):
    """Whether an array lies in a file."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def same(one, other):
    assert one.fingerprint == other.fingerprint
    assert one.task == other.task
    assert one.notes == other.notes
    jax.tree.map(np.testing.assert_array_equal, one.data, other.data)
    assert one.columns == other.columns


@pytest.mark.parametrize("form", ["hdf5", "parquet", "csv", "folder", "minari-hdf5"])
@pytest.mark.parametrize("discrete", [False, True])
def test_on_disk_a_log_is_what_it_is_in_memory(form, discrete, tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(rooms, "BUDGET", 12 * 52)
    monkeypatch.setattr(_large, "PIECE", 5)
    where = write(form, tmp_path, columns(discrete), discrete)
    memory = load(where, schema=schema(discrete), budget=2**30)
    disk = load(where, schema=schema(discrete))
    assert all(mapped(leaf) for leaf in (*disk.data.steps, disk.data.episode))
    assert not any(mapped(leaf) for leaf in memory.data.steps)
    same(disk, memory)


def log_of(lengths=LENGTHS, seed=3, **more):
    return columns(False, lengths, seed) | more


CASES = {
    "next observations are the next rows'": ({"next_obs": None}, Schema(actions="box")),
    "episodes by number": (
        {"episode": np.repeat(np.arange(12)[::-1], LENGTHS), "truncated": None, "next_obs": None},
        Schema(actions="box", low=-5, high=5, horizon=9),
    ),
    "rows of an episode in any order": (
        {
            "episode": np.repeat(np.arange(12), LENGTHS),
            "step": np.concatenate([np.arange(n)[::-1] for n in LENGTHS]),
            "terminated": None,
            "truncated": None,
        },
        Schema(actions="box"),
    ),
    "a bag": ({"terminated": None, "truncated": None}, Schema(actions="box", horizon=5)),
    "choices that nobody counted": (
        {"action": np.r_[np.zeros(56, int), 2], "next_obs": None},
        Schema(actions="discrete"),
    ),
    "columns that never change": (
        {
            "obs": np.repeat(np.array([[1.0, 2.0, 3.0]]), 57, 0) * [[1, 0, 1]]
            + np.arange(57)[:, None] // 30 * [[1, 0, 0]]
        },
        Schema(actions="box"),
    ),
    "chances of actions": ({"logp": np.linspace(-3, -1, 57, dtype=np.float32)}, Schema(actions="box")),
}


@pytest.mark.parametrize("case", CASES)
def test_what_pieces_are_asked_for_is_answered_for_all(case, tmp_path, tiny):
    more, shape = CASES[case]
    given = {key: value for key, value in log_of(**more).items() if value is not None}
    pq.write_table(pa.table(flat(given)), tmp_path / "log.parquet")
    memory = load(tmp_path / "log.parquet", schema=shape, budget=2**30)
    disk = load(tmp_path / "log.parquet", schema=shape)
    assert mapped(disk.data.steps.obs)
    if case == "a bag":
        assert mapped(disk.data.starts)
    same(disk, memory)
    if memory.logp is not None:
        np.testing.assert_array_equal(disk.logp, memory.logp)


def test_an_arrow_file_is_read_as_a_table_that_is_mapped(tmp_path, tiny):
    table = pa.table(flat(log_of()))
    with pa.ipc.new_file(tmp_path / "log.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    given = pa.ipc.open_file(pa.memory_map(str(tmp_path / "log.arrow"))).read_all()
    disk = load(given, schema=schema())
    assert mapped(disk.data.steps.obs)
    same(disk, load(table, schema=schema(), budget=2**30))


def test_a_log_that_fits_stays_in_memory(tmp_path, monkeypatch):
    where = write("parquet", tmp_path, log_of())
    each = row_bytes(3, 2)
    monkeypatch.setattr(rooms, "BUDGET", 57 * each)
    assert not mapped(load(where, schema=schema()).data.steps.obs)
    monkeypatch.setattr(rooms, "BUDGET", 57 * each - 1)
    assert mapped(load(where, schema=schema()).data.steps.obs)


def test_episodes_that_are_scattered_are_drawn(tmp_path, tiny):
    given = log_of(episode=np.arange(57) % 12, step=np.arange(57) // 12)
    given = {key: value for key, value in given.items() if key not in ("terminated", "truncated")}
    pq.write_table(pa.table(flat(given)), tmp_path / "log.parquet")
    log = load(tmp_path / "log.parquet", schema=Schema(actions="box", horizon=9))
    assert not mapped(log.data.steps.obs)
    assert any("larger than the budget" in note and "of 12 episodes" in note for note in log.notes)


def test_a_bad_row_is_named_by_its_place_in_the_file(tmp_path, tiny):
    given = log_of()
    given["action"][51] = 9.0
    where = write("parquet", tmp_path, given)
    with pytest.raises(BadInput, match="row 51: 9 is outside"):
        load(where, schema=schema())
    given["reward"][40] = np.nan
    with pytest.raises(BadInput, match="'reward', row 40"):
        load(write("parquet", tmp_path, given), schema=schema())


def test_too_little_room_is_said_in_a_line(tmp_path, tiny, monkeypatch):
    where = write("parquet", tmp_path, log_of())
    space = namedtuple("Space", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda where: space(10_000, 9_000, 1_000))
    with pytest.raises(
        BadInput, match=r"takes 2.96 kB, too much for memory, and on disk .* has 1 kB left; set TMPDIR"
    ):
        load(where, schema=schema())
    monkeypatch.undo()
    monkeypatch.setattr(rooms, "BUDGET", 8 * 52)
    with pytest.raises(BadInput, match="its longest episode takes 468 bytes of memory, and 416 bytes is the most"):
        load(where, schema=schema())
    monkeypatch.setattr(rooms, "BUDGET", 40 * 52)

    def full(self, part):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_large.tempfile, "TemporaryFile", lambda: type("Full", (), {"write": full})())
    with pytest.raises(BadInput, match=r"the log cannot be kept there \(No space left on device\)"):
        load(where, schema=schema())

    def out_of_memory(*given):
        raise MemoryError("Unable to allocate 9 GiB")

    monkeypatch.setattr(_large.tempfile, "TemporaryFile", out_of_memory)
    with pytest.raises(
        BadInput, match=r"not enough memory for this log \(Unable to allocate 9 GiB\); give budget"
    ):
        load(where, schema=schema())


def files():
    """Files without a name that this process maps."""
    return {line.split()[-2] for line in Path("/proc/self/maps").read_text().splitlines() if "(deleted)" in line}


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux says which files are mapped")
def test_when_the_log_is_gone_so_are_its_files(tmp_path, tiny, monkeypatch):
    before = files()
    monkeypatch.setattr(_large.tempfile, "tempdir", str(tmp_path))
    where = write("parquet", tmp_path, log_of())
    names = set(tmp_path.iterdir())
    log = load(where, schema=schema())
    assert len(files() - before) >= 7
    assert set(tmp_path.iterdir()) == names  # none has a name that anything could be left under
    del log
    gc.collect()
    assert files() == before


# Samples.


def episodic(lengths=LENGTHS):
    return load(log_of(lengths), schema=schema())


def test_a_sample_is_of_whole_episodes_in_the_order_of_the_log():
    log = episodic([3] * 40)
    some = large.draw(log, 45, 1)
    assert some.data.rows == 45 == len(some.data.episode)
    np.testing.assert_array_equal(some.data.episode, np.repeat(np.arange(15), 3))
    places = {row.tobytes(): i for i, row in enumerate(log.data.steps.obs)}
    at = np.array([places[row.tobytes()] for row in some.data.steps.obs])
    assert (np.diff(at) > 0).all()
    assert (at.reshape(15, 3) % 3 == np.arange(3)).all()
    np.testing.assert_array_equal(some.data.starts, log.data.starts[at[::3] // 3])
    np.testing.assert_array_equal(some.data.steps.next_obs, log.data.steps.next_obs[at])
    assert large.draw(log, 45, 1).fingerprint == some.fingerprint
    assert len({large.draw(log, 45, s).fingerprint for s in range(4)}) == 4


def test_a_sample_of_few_long_episodes_takes_the_first_steps_of_ten():
    log = episodic([30, 2, *[30] * 18])
    some = large.draw(log, 101, 0)
    sizes = np.bincount(some.data.episode)
    assert (len(sizes), sizes.sum()) == (10, 101)
    assert sizes[sizes > 2].max() - sizes[sizes > 2].min() <= 1
    last = np.r_[np.diff(some.data.episode) > 0, True] & (some.data.steps.done == 0)
    np.testing.assert_array_equal(some.data.steps.next_action[last], some.data.steps.action[last])
    np.testing.assert_array_equal(large.draw(log, 572, 0).data.steps.obs, log.data.steps.obs)  # all of them


def test_a_sample_of_a_bag_is_of_rows():
    given = {key: value for key, value in log_of().items() if key not in ("terminated", "truncated")}
    log = load(given, schema=Schema(actions="box", horizon=5))
    some = large.draw(log, 20, 0)
    assert len(np.unique(some.data.steps.obs, axis=0)) == some.data.rows == 20
    assert (some.data.episode == -1).all()
    np.testing.assert_array_equal(some.data.starts, some.data.steps.obs)
    with pytest.raises(BadInput, match="60 rows asked for; it has 57"):
        large.draw(log, 60, 0)


def test_rows_of_a_large_log_are_those_alone(monkeypatch):
    log = episodic()
    assert len(fewer(log, 20, 0).data.episode) == 57
    monkeypatch.setattr(large, "LARGE", 100)
    some = fewer(log, 20, 0)
    assert len(some.data.episode) == some.data.rows == 20
    assert fewer(log, None, 0) is log
    assert fewer(log, some.data.rows, 0).fingerprint == some.fingerprint  # as a report's rows are loaded again


def test_a_large_log_is_inspected_by_a_sample():
    log = load("offing:pendulum")
    plain = inspect.inspect(log)
    assert plain.rows == 20_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect, "WHOLE", 2**19)
        patch.setattr(inspect, "LOOK", 6_000)
        part = inspect.inspect(log)
    assert part.rows == 6_000
    sample = "a sample drawn with seed 0 stands for it: 6000 of 20000 rows, of 30 of 100 episodes"
    assert part.notes[0] == f"larger than 524 kB, so that {sample}"
    assert part.answer.system == plain.answer.system
    assert part.drift is not None


def test_a_large_log_is_fitted_by_as_many_rows_as_its_worlds_can_visit(monkeypatch):
    log = load("offing:pendulum")
    whole = offing.posterior(log, "smoke", progress=False)
    assert (whole.rows, whole.fingerprint) == (20_000, log.fingerprint)
    monkeypatch.setattr(large, "LARGE", 2**19)
    monkeypatch.setattr(common, "LEAST", 4_000)
    part = offing.posterior(log, "smoke", progress=False)
    assert part.rows == 10_240  # 2 folds, 40 updates, 128 rows each
    assert any("10240 of 20000 rows" in note for note in part.notes)
    assert part.fingerprint == fewer(log, part.rows, 0).fingerprint  # what explains it loads again


def test_the_benchmark_prints_a_line():
    import json

    run = [sys.executable, "-m", "benchmarks.large", "--rows", "3000", "--parts", "inspect"]
    result = json.loads(subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert (result["rows"], result["inspected"]) == (3_000, result["loaded"])
    assert result["load"]["peak_gb"] > 0 < result["inspect"]["seconds"]
