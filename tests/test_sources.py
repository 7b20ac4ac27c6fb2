"""One log in every format is one log; schemas and their drafts; what is handled and what is refused, by name."""

import json

import h5py
import jax
import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from offing.data import Schema, draft, load, read_schema, sketch
from offing.data.schema import parse, text_of
from offing.types import BadInput, Box, Discrete

LENGTHS = [5, 1, 4, 7]
D4RL = {
    "obs": "observations",
    "action": "actions",
    "reward": "rewards",
    "next_obs": "next_observations",
    "terminated": "terminals",
    "truncated": "timeouts",
}


def columns(discrete=False, lengths=LENGTHS, seed=0):
    """A log of episodes: the second and the last truly end, the others time out."""
    rng = np.random.default_rng(seed)
    rows, last = sum(lengths), np.cumsum(lengths) - 1
    paths = [rng.normal(size=(n + 1, 3)).astype(np.float32) for n in lengths]
    terminated = np.isin(np.arange(rows), last[[1, -1]])
    action = rng.integers(0, 3, rows) if discrete else rng.uniform(-2, 5, (rows, 2)).astype(np.float32)
    return {
        "obs": np.concatenate([path[:-1] for path in paths]),
        "action": action,
        "reward": rng.normal(size=rows).astype(np.float32),
        "next_obs": np.concatenate([path[1:] for path in paths]),
        "terminated": terminated,
        "truncated": np.isin(np.arange(rows), last) & ~terminated,
    }


def schema(discrete=False):
    space = {"actions": "discrete", "n": 3} if discrete else {"actions": "box", "low": (-2, -2), "high": (5, 5)}
    return Schema(**space, horizon=7, discount=0.9)


def flat(given, mark="_"):
    """One column per number."""
    found = {}
    for key, value in given.items():
        value = np.asarray(value)
        parts = {key: value} if value.ndim == 1 else {f"{key}{mark}{i}": part for i, part in enumerate(value.T)}
        found |= {name: np.ascontiguousarray(part) for name, part in parts.items()}
    return found


def write_csv(path, given):
    """Floats with as many digits as tell them apart in float32."""
    parts = flat(given)
    text = lambda value: repr(value.item()) if value.dtype.kind == "b" else str(value)
    lines = [",".join(parts)] + [",".join(map(text, row)) for row in zip(*parts.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")


def write_minari(folder, given, form, discrete, lengths=LENGTHS):
    pytest.importorskip("minari")
    from gymnasium import spaces
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage

    box = spaces.Box(np.float32([-2, -2]), np.float32([5, 5]))
    observations = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    folder.mkdir()
    storage = MinariStorage.new(folder, observations, spaces.Discrete(3) if discrete else box, data_format=form)
    episodes, at = [], 0
    for number, length in enumerate(lengths):
        part = {key: value[at : at + length] for key, value in given.items()}
        episodes.append(
            EpisodeBuffer(
                id=number,
                observations=np.concatenate([part["obs"], part["next_obs"][-1:]]),
                actions=part["action"],
                rewards=part["reward"],
                terminations=part["terminated"],
                truncations=part["truncated"],
                infos={},
            )
        )
        at += length
    storage.update_episodes(episodes)


def write(form, folder, given, discrete=False):
    """The log in a format; where it lies."""
    path = folder / f"log.{form}"
    if form == "npz":
        np.savez(path, **given)
    elif form == "hdf5":
        with h5py.File(path, "w") as file:
            for key, value in given.items():
                file[D4RL[key]] = value
            file["infos/qpos"] = np.zeros((len(given["action"]), 9))
    elif form == "parquet":
        pq.write_table(pa.table(flat(given)), path, row_group_size=4)
    elif form == "lists":
        path = folder / "lists.parquet"
        pq.write_table(pa.table({k: v if v.ndim == 1 else list(v) for k, v in given.items()}), path)
    elif form == "dots":
        path = folder / "dots.parquet"
        pq.write_table(
            pa.table(flat({"observation" if k == "obs" else k: v for k, v in given.items()}, ".")), path
        )
    elif form == "csv":
        write_csv(path, given)
    elif form == "folder":
        path = folder / "parts"
        path.mkdir()
        for i, rows in enumerate((slice(0, 6), slice(6, 7), slice(7, None))):
            pq.write_table(pa.table(flat({k: v[rows] for k, v in given.items()})), path / f"part-{i}.parquet")
    else:
        write_minari(path, given, form.removeprefix("minari-"), discrete)
    return path


FORMATS = [
    "npz",
    "hdf5",
    "parquet",
    "lists",
    "dots",
    "csv",
    "folder",
    "minari-hdf5",
    "minari-arrow",
    "minari-parquet",
]


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_one_log_in_every_format(form, discrete, tmp_path):
    given = columns(discrete)
    direct = load(given, schema=schema(discrete))
    log = load(write(form, tmp_path, given, discrete), schema=schema(discrete))
    jax.tree.map(np.testing.assert_array_equal, log.data, direct.data)
    assert log.task == direct.task
    assert log.fingerprint == direct.fingerprint
    assert log.notes == ()
    assert log.data.starts.shape == (4, 3)
    np.testing.assert_array_equal(np.flatnonzero(log.data.steps.done), [5, 16])  # a time-out is no end
    assert load(tmp_path / log.name, rows=9, seed=2, schema=schema(discrete)).data.rows == 9


@pytest.mark.parametrize("form", ["minari-hdf5", "minari-arrow", "minari-parquet"])
def test_minari_carries_its_space(form, tmp_path):
    where = write(form, tmp_path, columns(), False)
    assert load(where).task.actions == Box((-2.0, -2.0), (5.0, 5.0))
    for name in (f"minari:{where}", f"minari:{where.name}"):
        assert load(name, root=tmp_path).fingerprint == load(where).fingerprint


def test_minari_choices_need_no_schema(tmp_path):
    log = load(write("minari-hdf5", tmp_path, columns(True), True))
    assert log.task.actions == Discrete(3)
    assert log.task.horizon == 7


def edit(folder, **changes):
    path = folder / "metadata.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps({**about, **changes}))


def said(source, **how):
    """The one line with which `source` is refused."""
    with pytest.raises(BadInput) as caught:
        load(source, **how)
    line = str(caught.value)
    assert line.splitlines() == [line]
    return line


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"type": "Dict", "subspaces": {}}, ["nested", "Dict", "flatten"]),
        ({"type": "Tuple", "subspaces": []}, ["nested", "Tuple", "flatten"]),
        ({"type": "Box", "dtype": "uint8", "shape": [64, 64, 3]}, ["images", "encode"]),
        ({"type": "Text"}, ["Text", "encode"]),
        ({"type": "Discrete", "n": 10**9, "start": 0}, ["choices", "encode"]),
        ("nonsense", ["observation_space"]),
    ],
)
def test_minari_observations_that_are_no_vectors(space, words, tmp_path):
    where = write("minari-hdf5", tmp_path, columns(), False)
    edit(where, observation_space=json.dumps(space))
    line = said(where)
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"total_episodes": 5}, ["episode 4", "missing"]),
        ({"total_steps": 3}, ["more rows than it claims"]),
        ({"total_steps": -1}, ["total_steps"]),
        ({"total_episodes": "many"}, ["total_episodes"]),
        ({"data_format": "zarr"}, ["zarr", "hdf5"]),
        ({"action_space": json.dumps({"type": "MultiDiscrete", "nvec": [2, 2]})}, ["actions", "MultiDiscrete"]),
    ],
)
def test_minari_metadata_that_is_wrong(changes, words, tmp_path):
    where = write("minari-hdf5", tmp_path, columns(), False)
    edit(where, **changes)
    line = said(where)
    assert all(word in line for word in words), line


def test_minari_not_there(tmp_path):
    assert "no such dataset" in said("minari:mujoco/none/none-v0", root=tmp_path)
    where = write("minari-hdf5", tmp_path, columns(), False)
    assert "minari:FOLDER" in said(where / "main_data.hdf5")
    assert "leave 'obs' out" in said(where, schema=Schema(obs="observations"))


# Frames.


class Frame:
    """The least that speaks the Arrow protocol."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_what_speaks_arrow_is_a_log():
    given = columns()
    table = pa.table(flat(given))
    same = load(given, schema=schema()).fingerprint
    assert load(table, schema=schema()).fingerprint == same
    assert load(Frame(table), schema=schema()).fingerprint == same
    pandas = pytest.importorskip("pandas")
    assert load(pandas.DataFrame(flat(given)), schema=schema()).fingerprint == same
    assert said(3.0).startswith("float: not a log")


# The schema.


FULL = Schema(
    obs=("a", 'quo"te', "línea\n"),
    action="u",
    reward="r",
    terminated="t",
    truncated="x",
    episode="e",
    step="s",
    next_obs=("b",),
    logp="p",
    actions="box",
    low=(-1.5, 0.0),
    high=1e-05,
    horizon=200,
    discount=0.995,
    starts=((0.0, 1.0, 2.0), (3.0, 4.0, 5e30)),
)


@pytest.mark.parametrize("which", [FULL, Schema(), Schema(actions="discrete", n=4), Schema(obs="\x7f\\")])
def test_a_schema_survives_its_text(which, tmp_path):
    assert parse(text_of(which, ["obs: by\nits name"])) == which
    path = tmp_path / "schema.toml"
    path.write_text(text_of(which))
    assert read_schema(path) == which


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("obs = \n", ["not a schema in TOML", "line 1"]),
        ("colour = 3", ["'colour'", "no such key"]),
        ("obs = 3", ["'obs'", "a column's name"]),
        ("obs = []", ["'obs'"]),
        ('obs = ["a", 3]', ["'obs'"]),
        ('reward = ["a"]', ["'reward'"]),
        ('actions = "both"', ["'actions'", '"discrete" or "box"']),
        ('actions = "box"\nn = 3', ["'n'", "box"]),
        ('actions = "discrete"\nlow = -1', ["'low'", "discrete"]),
        ("n = 2.5", ["'n'", "whole"]),
        ("horizon = true", ["'horizon'"]),
        ("discount = nan", ["'discount'"]),
        ("starts = [[1.0], [1.0, 2.0]]", ["'starts'", "one width"]),
        ('obs = "a"\naction = "a"', ["'action'", "already 'obs'"]),
        ("x = " + "[" * 100_000, ["not a schema"]),
        ("[obs]\na = 1", ["'obs'"]),
    ],
)
def test_schemas_that_are_wrong(text, words, tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    line = said(columns(), schema=path)
    assert line.startswith(str(path))
    assert all(word in line for word in words), line


def test_schema_files_that_cannot_be_read(tmp_path):
    assert "cannot be read" in said(columns(), schema=tmp_path)
    assert "cannot be read" in said(columns(), schema=tmp_path / "none.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in said(columns(), schema=tmp_path / "x.toml")


NAMED = Schema(
    obs=("x", "y", "z"), action=("u", "v"), reward="r", terminated="died", truncated="late", next_obs="after"
)


def renamed():
    given = columns()
    found = dict(zip("xyz", given["obs"].T, strict=True)) | dict(zip("uv", given["action"].T, strict=True))
    return found | {
        "r": given["reward"],
        "died": given["terminated"],
        "late": given["truncated"],
        "after": given["next_obs"],
    }


def test_a_schema_names_columns(tmp_path):
    given = renamed()
    log = load(given, schema=NAMED)
    assert log.fingerprint == load(columns()).fingerprint
    table = pa.table({k: v if v.ndim == 1 else list(v) for k, v in given.items()})
    assert load(table, schema=NAMED).fingerprint == log.fingerprint
    with h5py.File(tmp_path / "log.h5", "w") as file:
        for key, value in given.items():
            file[key] = value
    assert load(tmp_path / "log.h5", schema=NAMED).fingerprint == log.fingerprint
    for source in (given, table, tmp_path / "log.h5"):
        assert "'nothing'" in said(source, schema=Schema(obs="nothing"))


def test_a_name_in_the_schema_wins_over_the_names_habit():
    given = {**columns(), "state": np.ones((17, 2))}
    assert "may be 'obs'" in said(pa.table(flat(given)))
    assert load(given, schema=Schema(obs="obs")).data.steps.obs.shape == (17, 3)
    assert load({**columns(), "done": np.zeros(17)}, schema=Schema(terminated="done")).data.steps.done.sum() == 0


def test_drafts_say_what_they_inferred_and_ask_what_they_cannot():
    found, notes = draft(flat(columns(True)) | {"colour": np.zeros(17)})
    assert found.obs == ("obs_0", "obs_1", "obs_2")
    assert (found.action, found.actions) == ("action", None)
    assert any("choices or amounts" in note for note in notes)
    assert "column 'colour': not used" in notes
    assert any(note.startswith("obs: 3 columns") for note in notes)
    assert parse(text_of(found, notes)) == found
    found, notes = draft(flat(columns()))
    assert not any("choices or amounts" in note for note in notes)


@pytest.mark.parametrize(
    ("names", "expected", "words"),
    [
        ("obs_speed obs_height action reward next_obs_speed next_obs_height",
         {"obs": ("obs_speed", "obs_height"), "next_obs": ("next_obs_speed", "next_obs_height")}, "begin"),
        ("run t x y force a r next_x next_y next_force",
         {"episode": "run", "step": "t", "action": "a", "reward": "r", "obs": ("x", "y", "force"),
          "next_obs": ("next_x", "next_y", "next_force")}, "A guess"),
        ("level action reward done", {"obs": ("level",), "terminated": None, "truncated": None}, "time-outs"),
        ("level outflow reward", {"obs": None, "action": None}, "action: no name speaks for it"),
        ("a control reward level", {"action": None, "obs": None}, "may be one of 'a', 'control', 'level'"),
    ],
)  # fmt: skip
def test_drafts_guess_and_say_so(names, expected, words):
    found, notes = draft({name: np.zeros(4) for name in names.split()})
    for role, columns_ in expected.items():
        assert getattr(found, role) == columns_, role
    assert any(words in note for note in notes), notes
    assert parse(text_of(found, notes)) == found


@pytest.mark.parametrize("form", FORMATS)
def test_a_drafted_schema_reads_its_log(form, tmp_path):
    where = write(form, tmp_path, columns(), False)
    found, notes = sketch(where)
    assert notes
    assert load(where, schema=found).data.rows == 17


@pytest.mark.parametrize("form", ["npz", "hdf5", "parquet", "csv", "folder"])
def test_whole_number_actions_are_a_question(form, tmp_path):
    where = write(form, tmp_path, columns(True))
    line = said(where)
    assert all(word in line for word in ("'action", "choices or amounts", '"discrete"', '"box"')), line
    assert load(where, schema=Schema(actions="discrete")).task.actions == Discrete(3)
    amounts = load(where, schema=Schema(actions="box", low=0, high=2))
    assert amounts.task.actions == Box((0.0,), (2.0,))
    np.testing.assert_array_equal(amounts.data.steps.action[:, 0], columns(True)["action"])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["obs_0", "obs_2"], ["'obs_2'", "none numbered 1"]),
        (["obs_0", "obs.0"], ["there twice"]),
        (["obs_0", "obs"], ["may be 'obs'"]),
        (["obs_0", "observation_0"], ["may be 'obs'"]),
        (["obs_5"], ["'obs_5'", "none numbered 0"]),
        (["position"], ["'obs'", "missing", "'position'"]),
        (["obs", "done"], ["'done'", "true ends or time-outs"]),
    ],
)
def test_names_that_leave_a_doubt(names, words):
    table = pa.table({name: np.zeros(4) for name in [*names, "action", "reward"]})
    line = said(table)
    assert all(word in line for word in words), line


# Rows out of order.


def numbered(given):
    episode = np.repeat(np.arange(4), LENGTHS)
    return {**given, "episode": episode, "step": np.concatenate([np.arange(n) for n in LENGTHS])}


def test_steps_out_of_order_are_sorted_and_interleaved_episodes_put_together():
    given = numbered(columns())
    same = load(columns()).fingerprint
    assert load(given).notes == load(columns()).notes
    order = np.random.default_rng(1).permutation(17)
    log = load({key: value[order] for key, value in given.items()})
    assert log.fingerprint == same
    assert "rows sorted by 'episode' and 'step'" in log.notes
    table = pa.table(flat({key: value[order] for key, value in given.items()}))
    assert load(table).fingerprint == same
    woven = np.lexsort((given["episode"], given["step"]))  # all first steps, then all second steps, ...
    log = load({key: value[woven] for key, value in given.items() if key != "step"})
    assert log.fingerprint == same
    assert any("interleave" in note for note in log.notes)
    line = said({key: value[woven] for key, value in given.items() if key not in ("step", "next_obs")})
    assert "goes on after another" in line


def test_steps_may_count_by_any_stride():
    given = numbered(columns())
    same = load(given).fingerprint
    assert load({**given, "step": given["step"] * 4 + 100}).fingerprint == same
    assert load({**given, "step": given["step"].astype(float)}).fingerprint == same


def test_missing_and_doubled_steps():
    given = numbered(columns())
    gap = {key: np.delete(value, 12, axis=0) for key, value in given.items()}
    line = said(gap)
    assert "'step', row 12: episode 3 goes from step 1 to 3" in line
    twice = {key: np.concatenate([value[:9], value[8:]]) for key, value in given.items()}
    log = load(twice)
    assert log.fingerprint == load(given).fingerprint
    assert "1 rows logged twice: exact copies, dropped" in log.notes
    twice["reward"][9] += 1
    assert "episode 2 has step 2 twice, also in row 8" in said(twice)
    assert "whole number" in said({**given, "step": given["step"] + 0.5})
    assert "whole number" in said({**given, "step": given["step"].astype(str)})


def test_no_next_observation_in_the_log(tmp_path):
    given = columns()
    del given["next_obs"]
    with_it = load(columns(), schema=schema())
    rest = [row for row in range(17) if row not in (4, 9)]  # where episodes timed out
    for form in ("hdf5", "parquet", "csv", "npz"):
        log = load(write(form, tmp_path, given), schema=schema())
        steps = log.data.steps
        assert log.data.rows == 15
        np.testing.assert_array_equal(steps.obs, with_it.data.steps.obs[rest])
        ends = steps.done == 1
        np.testing.assert_array_equal(steps.next_obs[~ends], with_it.data.steps.next_obs[rest][~ends])
        np.testing.assert_array_equal(steps.next_obs[ends], steps.obs[ends])
        words = "2 rows at time-outs", "at 2 ends of episodes the last obs stands in"
        assert any(all(word in note for word in words) for note in log.notes)


def test_a_bag_of_transitions_says_what_it_costs():
    given = flat({key: value for key, value in columns().items() if key not in ("terminated", "truncated")})
    log = load(pa.table(given))
    assert (log.data.episode == -1).all()
    assert any("bag of transitions" in note for note in log.notes)
    named = load(pa.table(given), schema=Schema(starts=((0.0, 0.0, 0.0),)))
    np.testing.assert_array_equal(named.data.starts, [[0, 0, 0]])
    without = {key: value for key, value in given.items() if not key.startswith("next")}
    assert "'next_obs': missing" in said(pa.table(without))


# Kinds.


def table(**changes):
    return pa.table({**flat(columns()), **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward": ["a"] * 17}, ["'reward'", "words", "not numbers"]),
        ({"reward": pa.array(["a"] * 17).dictionary_encode()}, ["'reward'", "words", "a formula"]),
        ({"reward": pa.array([1.0] * 9 + [None] * 8)}, ["'reward', row 9", "empty"]),
        ({"reward": [float(i) if i != 11 else np.nan for i in range(17)]}, ["'reward', row 11", "nan"]),
        ({"obs_0": [1.0] * 16 + [1e300]}, ["'obs', row 16", "beyond"]),
        ({"obs_1": [{"a": 1}] * 17}, ["'obs_1'", "struct", "flatten"]),
        ({"obs_1": [b"a"] * 17}, ["'obs_1'", "binary", "encoder"]),
        ({"obs_1": [[1.0, 2.0]] * 17}, ["'obs_1'", "a list per row"]),
        ({"reward": np.zeros(17, "datetime64[s]")}, ["'reward'", "dates"]),
        ({"episode": ["one"] * 16 + [None]}, ["'episode'", "row 16", "empty"]),
        ({"episode": [0.5] * 17}, ["'episode', row 0", "whole number"]),
        ({"terminated": [2] * 17}, ["'terminated', row 0", "2 where 0 or 1"]),
    ],
)
def test_kinds_of_columns_that_are_refused(changes, words):
    line = said(table(**changes))
    assert all(word in line for word in words), line


def test_kinds_of_columns_that_are_read():
    same = load(table()).data.steps
    for kind in (pa.float64(), pa.float16(), pa.decimal128(20, 10), pa.int64()):
        reward = pa.array(np.arange(17.0)).cast(kind) if kind != pa.float16() else np.arange(17, dtype=np.float16)
        log = load(table(reward=reward))
        np.testing.assert_array_equal(log.data.steps.reward, np.arange(17))
        np.testing.assert_array_equal(log.data.steps.obs, same.obs)
    flags = load(table(terminated=columns()["terminated"].astype(np.int8)))
    np.testing.assert_array_equal(flags.data.steps.done, same.done)
    numbers = load(table(reward=pa.array(np.arange(17.0)).dictionary_encode()))
    np.testing.assert_array_equal(numbers.data.steps.reward, np.arange(17))


def test_lists_of_different_lengths_are_refused_by_row(tmp_path):
    given = {key: value if value.ndim == 1 else list(value) for key, value in columns().items()}
    given["obs"][6] = given["obs"][6][:2]
    assert "'obs', row 6: 2 numbers where rows before have 3" in said(pa.table(given))


def test_a_csv_names_the_cell(tmp_path):
    path = write("csv", tmp_path, columns())
    lines = path.read_text().splitlines()
    for row, cell, words in (
        (3, "abc", ["row 3", "'abc'"]),
        (16, "", ["row 16", "empty"]),
        (9, "nan", ["row 9", "empty"]),
    ):
        cells = lines[row + 1].split(",")
        cells[5] = cell
        path.write_text("\n".join([*lines[: row + 1], ",".join(cells), *lines[row + 2 :]]) + "\n")
        line = said(path)
        assert line.startswith(str(path))
        assert all(word in line for word in ["'reward'", *words]), line


def test_a_csv_may_turn_to_fractions_late(tmp_path, monkeypatch):
    monkeypatch.setattr("offing.data.sources.csv.BLOCK", 256)
    given = flat(columns()) | {"reward": np.r_[np.arange(16), 0.5]}
    text = csv.write_csv(pa.table(given), sink := pa.BufferOutputStream()) or sink.getvalue().to_pybytes().decode()
    path = tmp_path / "log.csv"
    path.write_text(text)
    assert load(path).data.steps.reward[-1] == 0.5


def test_folders_of_files_that_differ(tmp_path):
    where = write("folder", tmp_path, columns())
    table_of = pq.read_table(where / "part-1.parquet")
    pq.write_table(table_of.drop_columns(["reward"]), where / "part-1.parquet")
    assert "part-1.parquet, column 'reward': missing" in said(where)
    (where / "more.csv").write_text("a,b\n")
    assert "one kind" in said(where)
    (tmp_path / "nothing").mkdir()
    assert "unknown kind" in said(tmp_path / "nothing")


def test_d4rl_without_its_columns(tmp_path):
    for key, words in (("reward", ["'reward'", "missing"]), ("obs", ["'obs'", "missing"])):
        given = columns()
        del given[key]
        line = said(write("hdf5", tmp_path, given))
        assert all(word in line for word in words), line
    given = columns()
    del given["truncated"]
    log = load(write("hdf5", tmp_path, given))
    assert any("no column marks time-outs" in note for note in log.notes)
    assert len(log.data.starts) == 2


# Larger than the budget.


@pytest.mark.parametrize("form", ["hdf5", "parquet", "csv", "folder", "minari-hdf5"])
def test_a_log_above_its_budget_is_drawn_by_episode(form, tmp_path):
    given = columns()
    where = write(form, tmp_path, given, False)
    whole = load(where, schema=schema())
    each = 4 * (2 * 3 + 2 * 2 + 3)
    log, again = (load(where, seed=5, schema=schema(), budget=12 * each) for _ in range(2))
    assert log.fingerprint == again.fingerprint
    assert 0 < log.data.rows <= 12
    assert any("drawn with seed 5" in note and "of 4 episodes" in note for note in log.notes), log.notes
    begins = {start.tobytes(): n for start, n in zip(whole.data.starts, LENGTHS, strict=True)}
    sizes = np.bincount(log.data.episode)
    assert [begins[start.tobytes()] for start in log.data.starts] == sizes.tolist()
    rows = {row.tobytes() for row in whole.data.steps.obs}
    assert {row.tobytes() for row in log.data.steps.obs} <= rows
    drawn = {load(where, seed=s, schema=schema(), budget=12 * each).fingerprint for s in range(6)}
    assert len(drawn) > 1
    assert "not even one episode fits" in said(where, schema=schema(), budget=2)


def test_a_bag_above_its_budget_is_drawn_by_row():
    given = {key: value for key, value in columns().items() if key not in ("terminated", "truncated")}
    log = load(pa.table(flat(given)), budget=10 * 52)
    assert log.data.rows == 10
    assert any("10 of 17 rows" in note for note in log.notes)


def test_an_npz_above_its_budget_is_refused(tmp_path):
    line = said(write("npz", tmp_path, columns()), budget=500)
    assert "above the budget of 500 bytes" in line
