"""Damaged logs: each is refused in one line that says where, or read for what it is; nothing else happens."""

import gc
import io
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from offing.data import load, split
from offing.types import BadInput

ROWS, BAD = 23, 17  # rows of the log, and the row that is damaged


def sound():
    """A log with nothing wrong: two episodes, of which the first truly ends."""
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(ROWS, 3))
    ends = np.arange(ROWS) == 10
    return {
        "obs": obs,
        "action": rng.uniform(-1, 1, (ROWS, 2)),
        "reward": rng.normal(size=ROWS),
        "next_obs": obs + 0.1,
        "terminated": ends,
        "truncated": np.arange(ROWS) == ROWS - 1,
        "action_low": -np.ones(2),
        "action_high": np.ones(2),
        "horizon": np.int64(20),
        "discount": np.float64(0.9),
    }


def choices():
    """The same with one of three choices for an action."""
    given = {k: v for k, v in sound().items() if not k.startswith("action_")}
    return {**given, "action": np.arange(ROWS) % 3, "n_actions": 3}


def spoilt(column, value, row=BAD, given=sound):
    """`given()` with one number of one row replaced, and of the next: the first of the two is to be named."""
    columns = given()
    columns[column] = np.array(columns[column], copy=True)
    for at in (row, row + 1):
        if columns[column].ndim == 2:
            columns[column][at, -1] = value
        else:
            columns[column][at] = value
    return columns


def without(*names, given=sound, **more):
    return {**{k: v for k, v in given().items() if k not in names}, **more}


def shorter(column):
    return {**sound(), column: sound()[column][:-1]}


def said(source):
    """The one line with which `source` is refused."""
    with pytest.raises(BadInput) as caught:
        load(source)
    line = str(caught.value)
    assert line
    assert line.splitlines() == [line]
    return line


def ids(*, at=None, value=0):
    """Episode numbers that agree with `sound()`, one of them changed."""
    found = np.repeat([4, 9], [11, ROWS - 11])
    if at is not None:
        found[at] = value
    return found


NUMBERS = ("obs", "action", "reward", "next_obs")
ROW = f"row {BAD}:"

TABLE = {
    **{
        f"{value} in {column}": (
            lambda c=column, v=value: spoilt(c, v),
            [f"'{column}'", ROW, f"{value}", "not finite"],
        )
        for column in NUMBERS
        for value in (np.nan, np.inf, -np.inf)
    },
    **{
        f"{value} in {column}": (
            lambda c=column, v=value: spoilt(c, v),
            [f"'{column}'", ROW, f"{value}", "beyond"],
        )
        for column in ("obs", "reward", "next_obs")
        for value in (1e30, -1e30)
    },
    "the least int64 in reward": (
        lambda: without(reward=np.where(np.arange(ROWS) == BAD, np.iinfo(np.int64).min, 0)),
        ["'reward'", ROW, "beyond"],
    ),
    "nan in starts": (lambda: without(starts=[[0, 0, 0], [0, np.nan, 0]]), ["'starts'", "row 1:", "nan"]),
    "nan in final_obs": (
        lambda: without("next_obs", final_obs=[[0, 0, 0], [0, np.nan, 0]]),
        ["'final_obs'", "row 1:", "nan"],
    ),
    "nan in a flag": (
        lambda: without(terminated=np.where(np.arange(ROWS) >= BAD, np.nan, 0)),
        ["'terminated'", ROW],
    ),
    # shapes
    **{
        f"{c} a row short": (lambda c=c: shorter(c), [f"'{c}'", f"{ROWS - 1} rows", f"{ROWS}"])
        for c in NUMBERS[1:]
    },
    "obs a row short": (lambda: shorter("obs"), [f"{ROWS} rows", f"'obs' has {ROWS - 1}"]),
    "terminated a row short": (lambda: shorter("terminated"), ["'terminated'", f"{ROWS - 1} rows"]),
    "truncated a row short": (lambda: shorter("truncated"), ["'truncated'", f"{ROWS - 1} rows"]),
    "episode a row short": (lambda: without(episode=ids()[:-1]), ["'episode'", "one whole number per row"]),
    "obs of three axes": (lambda: without(obs=np.zeros((ROWS, 3, 1))), ["'obs'", f"({ROWS}, 3, 1)"]),
    "obs of no width": (lambda: without(obs=np.zeros((ROWS, 0))), ["'obs'", f"({ROWS}, 0)"]),
    "obs a number": (lambda: without(obs=1.0), ["'obs'", "single number"]),
    "next_obs of another width": (
        lambda: without(next_obs=np.zeros((ROWS, 4))),
        ["'next_obs'", f"({ROWS}, 4)"],
    ),
    "next_obs of three axes": (lambda: without(next_obs=np.zeros((ROWS, 3, 1))), ["'next_obs'", "3, 1)"]),
    "action of three axes": (lambda: without(action=np.zeros((ROWS, 2, 1))), ["'action'", f"({ROWS}, 2, 1)"]),
    "action of no width": (lambda: without(action=np.zeros((ROWS, 0))), ["'action'", f"({ROWS}, 0)"]),
    "reward of two columns": (lambda: without(reward=np.zeros((ROWS, 2))), ["'reward'", f"({ROWS}, 2)"]),
    "terminated of two columns": (lambda: without(terminated=np.zeros((ROWS, 2))), ["'terminated'", "2)"]),
    "one final_obs too few": (
        lambda: without("next_obs", final_obs=np.zeros((1, 3))),
        ["'final_obs'", "(2, 3)"],
    ),
    "starts of another width": (lambda: without(starts=np.zeros((2, 4))), ["'starts'", "(2, 4)"]),
    "no starts at all": (lambda: without(starts=np.zeros((0, 3))), ["'starts'", "(0, 3)"]),
    "action_low for three actions": (
        lambda: without(action_low=-np.ones(3)),
        ["'action_low'", "3 numbers for 2"],
    ),
    "rows of different lengths": (lambda: without(obs=[[1.0, 2.0], [3.0]]), ["'obs'", "different lengths"]),
    "episodes of different lengths": (
        lambda: without(episode=[[1, 2], [3]]),
        ["'episode'", "different lengths"],
    ),
    "bounds of different lengths": (
        lambda: without(action_low=[[1, 2], [3]]),
        ["'action_low'", "different lengths"],
    ),
    "horizon of different lengths": (
        lambda: without(horizon=[[1, 2], [3]]),
        ["'horizon'", "different lengths"],
    ),
    # columns
    **{f"no {c}": (lambda c=c: without(c), [f"'{c}'", "missing"]) for c in NUMBERS},
    "nothing at all": (lambda: {}, ["'obs'", "missing", "nothing"]),
    "final_obs without episodes": (
        lambda: without("next_obs", "terminated", "truncated", final_obs=np.zeros((2, 3))),
        ["'next_obs'", "missing"],
    ),
    "done": (
        lambda: without("terminated", done=sound()["terminated"]),
        ["'done'", "'terminated' or 'truncated'"],
    ),
    "dones": (
        lambda: without("terminated", dones=sound()["terminated"]),
        ["'dones'", "'terminated' or 'truncated'"],
    ),
    "a column twice": (lambda: without(observations=sound()["obs"]), ["'observations'", "twice", "'obs'"]),
    "no rows": (lambda: {k: v[:0] for k, v in sound().items() if np.ndim(v)}, ["empty"]),
    "one row": (lambda: {k: v[:1] if len(np.shape(v)) else v for k, v in sound().items()}, ["one row"]),
    # kinds
    "strings for numbers": (lambda: without(reward=["1.0"] * ROWS), ["'reward'", "not numbers"]),
    "strings for flags": (lambda: without(terminated=["no"] * ROWS), ["'terminated'", "not numbers"]),
    "strings for episodes": (lambda: without(episode=["a"] * ROWS), ["'episode'", "whole number"]),
    "floats for episodes": (lambda: without(episode=ids() + 0.5), ["'episode'", "whole number"]),
    "objects": (lambda: without(obs=np.array([{}] * ROWS)), ["'obs'", "object", "not numbers"]),
    "complex numbers": (
        lambda: without(reward=np.zeros(ROWS, complex)),
        ["'reward'", "complex", "not numbers"],
    ),
    "dates": (lambda: without(reward=np.zeros(ROWS, "datetime64[s]")), ["'reward'", "not numbers"]),
    "a flag of 2": (
        lambda: without(terminated=np.where(np.arange(ROWS) == BAD, 2, 0)),
        ["'terminated'", ROW, "2 where 0 or 1"],
    ),
    "a flag of a half": (
        lambda: without(truncated=np.where(np.arange(ROWS) == BAD, 0.5, 0)),
        ["'truncated'", ROW, "0.5 where 0 or 1"],
    ),
    # actions
    "whole numbers unexplained": (lambda: without("n_actions", given=choices), ["'action'", "n_actions"]),
    "yes or no unexplained": (lambda: without(action=np.zeros(ROWS, bool)), ["'action'", "n_actions"]),
    "a choice too high": (
        lambda: spoilt("action", 3, given=choices),
        ["'action'", ROW, "3 is not one of", "0 to 2"],
    ),
    "a choice below 0": (lambda: spoilt("action", -1, given=choices), ["'action'", ROW, "-1 is not one of"]),
    "half a choice": (
        lambda: {**choices(), "action": np.where(np.arange(ROWS) == BAD, 0.5, 1.0)},
        ["'action'", ROW, "0.5 is not one of"],
    ),
    "two choices a row": (lambda: {**choices(), "action": np.zeros((ROWS, 2))}, ["'action'", f"({ROWS}, 2)"]),
    "one choice": (
        lambda: {**choices(), "action": np.zeros(ROWS), "n_actions": 1},
        ["'n_actions'", "1 is not within"],
    ),
    "no choice": (lambda: {**choices(), "n_actions": 0}, ["'n_actions'", "0 is not within"]),
    "choices without number": (lambda: {**choices(), "n_actions": 10**9}, ["'n_actions'", "not within"]),
    "two and a half choices": (lambda: {**choices(), "n_actions": 2.5}, ["'n_actions'", "2.5", "whole"]),
    "action above its bound": (lambda: spoilt("action", 1.5), ["'action'", ROW, "1.5 is outside [-1, 1]"]),
    "action below its bound": (lambda: spoilt("action", -1.5), ["'action'", ROW, "-1.5 is outside [-1, 1]"]),
    "a wide action above its bound": (
        lambda: without(action=np.full((ROWS, 64), 3.0), action_low=-1.0, action_high=1.0),
        ["'action'", "row 0:", "3 is outside [-1, 1]"],
    ),
    "bounds the wrong way round": (lambda: without(action_low=1.0, action_high=-1.0), ["'action'", "row 0:"]),
    "a bound of nan": (lambda: without(action_low=np.array([-1, np.nan])), ["'action_low'", "row 1:", "nan"]),
    "a bound in words": (lambda: without(action_high="one"), ["'action_high'", "not numbers"]),
    # episodes
    "episodes that take turns": (
        lambda: without("terminated", "truncated", episode=ids(at=BAD, value=4)),
        ["'episode'", ROW, "episode 4 goes on"],
    ),
    "an episode after its end": (
        lambda: without("terminated", episode=ids(), terminated=np.arange(ROWS) == 13),
        ["'episode'", "row 13:", "episode 9 goes on after its end"],
    ),
    # settings
    "horizon 0": (lambda: without(horizon=0), ["'horizon'", "0 is not within"]),
    "horizon below 0": (lambda: without(horizon=-3), ["'horizon'", "-3 is not within"]),
    "horizon beyond all bounds": (lambda: without(horizon=1e30), ["'horizon'", "1e+30 is not within"]),
    "horizon not whole": (lambda: without(horizon=2.5), ["'horizon'", "2.5", "whole"]),
    "horizon nan": (lambda: without(horizon=np.nan), ["'horizon'", "one number"]),
    "horizon in words": (lambda: without(horizon="long"), ["'horizon'", "one number"]),
    "two horizons": (lambda: without(horizon=[10, 20]), ["'horizon'", "one number"]),
    "discount above 1": (lambda: without(discount=1.01), ["'discount'", "1.01 is not within"]),
    "discount below 0": (lambda: without(discount=-0.1), ["'discount'", "-0.1 is not within"]),
    "discount inf": (lambda: without(discount=np.inf), ["'discount'", "one number"]),
}
UNSAVEABLE = {name for name in TABLE if "different lengths" in name or name in ("objects",)}


def test_the_undamaged_logs_are_read():
    assert load(sound()).notes == ()
    assert load(choices()).notes == ()
    assert load(without("terminated", "truncated", episode=ids())).data.episode.tolist() == [0] * 11 + [1] * 12


@pytest.mark.parametrize("damage", TABLE)
def test_damaged_arrays_are_refused_in_one_line(damage):
    make, words = TABLE[damage]
    line = said(make())
    assert line.startswith("arrays")
    for word in words:
        assert word in line


@pytest.mark.parametrize("damage", sorted(set(TABLE) - UNSAVEABLE))
def test_damaged_files_are_refused_with_their_name(damage, tmp_path):
    make, words = TABLE[damage]
    path = tmp_path / "log.npz"
    np.savez(path, **make())
    line = said(path)
    assert line.startswith(str(path))
    for word in words:
        assert word in line


def test_one_episode_is_read_but_cannot_be_split():
    log = load(without("terminated", terminated=np.zeros(ROWS, bool)))
    with pytest.raises(BadInput, match="one episode") as caught:
        split(log.data, 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "notes"),
    [
        (lambda: without(reward=np.ones(ROWS)), ("column 'reward': constant",)),
        (lambda: without(obs=sound()["obs"] * [1, 0, 1]), ("column 'obs'[1]: constant",)),
        (
            lambda: without(action=np.zeros((ROWS, 2))),
            ("column 'action'[0]: constant", "column 'action'[1]: constant"),
        ),
    ],
)
def test_constant_columns_are_allowed_and_said(damage, notes):
    assert load(damage()).notes == notes


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [np.float16, np.float64, np.longdouble, np.int8, np.uint16])
def test_every_kind_of_number_is_read_without_a_murmur(kind):
    log = load(without(obs=np.arange(ROWS * 3).reshape(ROWS, 3).astype(kind)))
    np.testing.assert_array_equal(log.data.steps.obs.ravel(), np.arange(ROWS * 3))


# Files.


def archive(save=np.savez):
    buffer = io.BytesIO()
    save(buffer, **sound())
    return buffer.getvalue()


def npy():
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


def other_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("obs", "1 2 3")
        file.writestr("read\nme.txt", "hello")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["damaged"]),
        (b"obs,action,reward\n1,2,3\n", ["damaged or not an .npz"]),
        (b"PK\x03\x04", ["damaged"]),
        (b"\x80\x04\x95", ["damaged or not an .npz"]),
        (npy(), ["not an .npz archive"]),
        (other_zip(), ["'action'", "missing"]),
    ],
    ids=["empty", "text", "signature", "pickle", "npy", "zip"],
)
def test_files_that_only_look_like_npz(content, words, tmp_path):
    path = tmp_path / "log.npz"
    path.write_bytes(content)
    line = said(path)
    assert line.startswith(str(path))
    for word in words:
        assert word in line


def test_python_objects_are_refused_not_loaded(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, **without(reward=np.array([None] * ROWS)))
    line = said(path)
    assert line.startswith(f"{path}, column 'reward': ")
    assert "pickle" in line


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_cut_short(save, tmp_path):
    whole, path = archive(save), tmp_path / "log.npz"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in [*range(0, len(whole), 97), len(whole) - 1]:
            path.write_bytes(whole[:size])
            assert said(path).startswith(str(path))
        gc.collect()
    assert [str(w.message) for w in caught if w.category is ResourceWarning] == []  # none is left open


@pytest.mark.filterwarnings("ignore::UserWarning")  # zipfile's own, on names that a flip made alike
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_with_a_bit_flipped(save, tmp_path):
    whole, path = archive(save), tmp_path / "log.npz"
    same = load(sound()).fingerprint
    directory = whole.index(b"PK\x01\x02")
    bits = [*range(0, 8 * len(whole), 61), *range(8 * directory, 8 * len(whole), 13)]
    refused = 0
    for bit in bits:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            log = load(path)
        except BadInput as error:  # any other exception fails the test
            line = str(error)
            assert line.startswith(str(path))
            assert line.splitlines() == [line]
            refused += 1
        else:  # the flip fell where nothing is read, or renamed a column, which is said
            assert log.fingerprint == same or log.notes, bit
    assert refused > len(bits) // 3


def test_a_locked_archive_is_refused(tmp_path):
    whole, path = bytearray(archive()), tmp_path / "log.npz"
    whole[whole.index(b"PK\x01\x02") + 8] |= 1  # the flag that says the first member is encrypted
    path.write_bytes(whole)
    assert said(path).startswith(f"{path}, column 'obs': ")


def test_paths_that_lead_nowhere(tmp_path):
    missing, folder, other = tmp_path / "none.npz", tmp_path / "folder.npz", tmp_path / "log.txt"
    folder.mkdir()
    other.write_text("obs,action\n")
    assert said(missing) == f"{missing}: no such file"
    assert said(folder).startswith(f"{folder}: cannot be read")
    assert said(tmp_path).startswith(f"{tmp_path}: unknown kind of file")
    assert said(other).startswith(f"{other}: unknown kind of file")
    assert "offing:pendulum" in said(other)


@pytest.mark.parametrize("name", ["offing:nonesuch", "offing:", "offing:../samples/pendulum", "offing:PENDULUM"])
def test_samples_that_are_not_there(name):
    line = said(name)
    assert line.startswith(f"{name}: no such sample")
    assert "offing:cartpole, offing:coldstore, offing:pendulum" in line


def test_names_with_a_line_break_still_make_one_line():
    line = said({"o\nbs": 1})
    assert "'o\\nbs'" in line


def test_a_file_is_named_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("log.npz", **spoilt("reward", np.nan))
    assert said("log.npz").startswith(f"log.npz, column 'reward', {ROW}")
    assert said(Path("log.npz")).startswith(f"log.npz, column 'reward', {ROW}")
