"""Tables as people have them: one log in several shapes, schemas, formulas, and what is refused by name."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import offing
from benchmarks.damaged import attempt
from offing.data import Schema, behaviour, load, read_schema, sketch
from offing.data.expression import columns_in, compute, parse, terms
from offing.data.schema import text_of

RNG = np.random.default_rng(0)
UNITS, DAYS = 3, 4
HOURS = UNITS * DAYS * 24


def tidy():
    """Rows unit by unit and hour by hour, with a level, a door, a mode, an outdoor temperature and a choice."""
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(UNITS), DAYS * 24)
    hour = np.tile(np.arange(DAYS * 24), UNITS)
    level = np.concatenate([np.cumsum(rng.normal(size=DAYS * 24)) + 20 * u for u in range(UNITS)]).round(3)
    return {
        "machine": np.array(["A", "B", "C"])[unit],
        "time": np.datetime64("2024-01-01T00:00:00") + hour.astype("timedelta64[h]"),
        "level": level,
        "door": np.array(["no", "yes"])[rng.integers(2, size=HOURS)],
        "mode": np.array(["eco", "fast", "idle"])[rng.integers(3, size=HOURS)],
        "fan": np.array(["low", "mid", "high"])[rng.integers(3, size=HOURS)],
        "cost": rng.random(HOURS).round(3),
    }


SCHEMA = Schema(
    unit="machine",
    time="time",
    per="day",
    obs=("level", "door", "mode"),
    action="fan",
    choices={"fan": ("low", "mid", "high")},
    reward="-cost - 0.1 * abs(next(level) - level)",
)


def as_csv(columns, **options):
    sink = io.BytesIO()
    csv.write_csv(pa.table(columns), sink, csv.WriteOptions(**options))
    return sink.getvalue()


def shape(name, tmp_path):
    """One log in another shape: what to load, and the schema for it."""
    columns = tidy()
    if name == "interleaved":
        order = np.lexsort((columns["machine"], columns["time"]))
        return pa.table({key: value[order] for key, value in columns.items()}), SCHEMA
    if name == "wide":
        for word in ("eco", "fast", "idle"):
            columns[f"is_{word}"] = (columns["mode"] == word).astype(float)
        columns["open"] = (columns["door"] == "yes").astype(int)
        return pa.table(columns), Schema(
            **{**{f: getattr(SCHEMA, f) for f in ("unit", "time", "per", "action", "choices", "reward")}},
            obs=("level", "open", "is_eco", "is_fast", "is_idle"),
        )
    if name == "irregular":
        late = np.random.default_rng(1).integers(0, 3_000, HOURS).astype("timedelta64[s]")
        early = {key: value[::5] for key, value in columns.items()}
        early["level"] = early["level"] + 7  # what a later row of the same hour overrules
        both = {key: np.r_[early[key], columns[key]] for key in columns}
        both["time"] = np.r_[early["time"], columns["time"] + np.maximum(late, np.timedelta64(1, "s"))]
        return pa.table(both), Schema(
            **{f: getattr(SCHEMA, f) for f in ("unit", "time", "per", "obs", "action", "choices", "reward")},
            every="1h",
        )
    if name == "gzip":
        path = tmp_path / "log.csv.gz"
        path.write_bytes(gzip.compress(as_csv(columns)))
        return path, SCHEMA
    if name == "semicolon":
        path = tmp_path / "log.csv"
        text = as_csv(columns, delimiter=";").decode().replace(".", ",")
        path.write_text("\ufeff" + text, encoding="utf-8")
        return path, SCHEMA
    if name == "parquet":
        pq.write_table(
            pa.table({**columns, "mode": pa.array(columns["mode"]).dictionary_encode()}), tmp_path / "log.pq"
        )
        return tmp_path / "log.pq", SCHEMA
    if name == "excel":
        book = pytest.importorskip("openpyxl").Workbook()
        book.active.append(list(columns))
        for row in zip(*(value.tolist() for value in columns.values()), strict=True):
            book.active.append(row)
        book.save(tmp_path / "log.xlsx")
        return tmp_path / "log.xlsx", SCHEMA
    if name == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        table = pa.table(columns)
        with duckdb.connect(str(tmp_path / "log.db")) as base:
            base.register("given", table)
            base.execute("create table log as select * from given")
        return f"duckdb:{tmp_path / 'log.db'}?query=select * from log where cost >= 0", SCHEMA
    if name in ("pandas", "polars"):
        return pytest.importorskip(name).DataFrame({key: value.tolist() for key, value in columns.items()}), SCHEMA
    return (
        ({key: value for key, value in columns.items()}, SCHEMA) if name == "dict" else (pa.table(columns), SCHEMA)
    )


SHAPES = (
    "interleaved",
    "wide",
    "irregular",
    "gzip",
    "semicolon",
    "parquet",
    "excel",
    "duckdb",
    "pandas",
    "polars",
)


@pytest.mark.parametrize("name", [*SHAPES, "dict"])
def test_one_log_in_many_shapes_is_one_dataset(name, tmp_path):
    one = load(pa.table(tidy()), schema=SCHEMA)
    given, schema = shape(name, tmp_path)
    other = load(given, schema=schema)
    assert other.fingerprint == one.fingerprint, other.notes
    if name != "wide":
        assert other.columns == one.columns


def test_what_the_numbers_are():
    log, columns = load(pa.table(tidy()), schema=SCHEMA), tidy()
    steps = log.data.steps
    assert log.columns.names == ("level", "door", "mode=eco", "mode=fast", "mode=idle")
    assert log.task.horizon == 24
    assert log.data.rows == HOURS - UNITS  # the last row of each unit has nothing that follows
    np.testing.assert_allclose(steps.obs[:24, 0], columns["level"][:24], rtol=1e-6)
    np.testing.assert_allclose(steps.next_obs[23, 0], columns["level"][24], rtol=1e-6)  # across midnight
    change = np.abs(np.diff(columns["level"][:25]))
    np.testing.assert_allclose(steps.reward[:24], -columns["cost"][:24] - 0.1 * change, rtol=1e-5)
    assert log.columns.decode(steps.action[0])["fan"] == columns["fan"][0]
    row = {"level": 3.0, "door": "yes", "mode": "fast"}
    assert log.columns.encode(row).tolist() == [[3, 1, 0, 1, 0]]


@pytest.mark.parametrize("words", [False, True])
def test_a_category_may_end_where_it_never_was_before(words):
    """States 9 and 10 end an episode: no row begins there."""
    state, then = np.tile([0, 1, 2], 20), np.tile([1, 2, 10], 20)
    then[2::6] = 9
    named = (lambda a: np.array([f"s{i:02d}" for i in a])) if words else np.asarray
    table = {"state": named(state), "next": named(then), "action": np.arange(60) % 2, "reward": np.ones(60)}
    table["terminated"] = np.arange(60) % 3 == 2
    how = {"obs": "state", "next_obs": "next", "categories": "state", "actions": "discrete", "n": 2}
    log = load(pa.table(table), schema=Schema(**how))
    levels = ("s00", "s01", "s02", "s09", "s10") if words else ("0", "1", "2", "9", "10")
    assert log.columns.names == tuple(f"state={level}" for level in levels)
    assert log.data.steps.obs.argmax(1).tolist() == state.tolist()
    assert log.data.steps.next_obs.argmax(1).tolist() == np.searchsorted([0, 1, 2, 9, 10], then).tolist()
    assert np.all(log.data.steps.next_obs.sum(1) == 1)


# The two silent mistakes.


def simple(**more):
    columns = tidy()
    return {"x": columns["level"], "u": columns["cost"], "pay": columns["cost"], **more}


PLAIN = {"obs": "x", "action": "u", "reward": "pay"}


def test_interleaved_units_are_never_one_episode():
    columns = tidy()
    order = np.lexsort((columns["machine"], columns["time"]))
    mixed = {
        key: value[order] for key, value in simple(episode=np.zeros(HOURS, int), who=columns["machine"]).items()
    }
    with pytest.raises(offing.BadInput, match=r"interleaved.*unit = "):
        load(pa.table(mixed), schema=Schema(**PLAIN, episode="episode"))
    times = {**mixed, "when": columns["time"][order]}
    with pytest.raises(offing.BadInput, match=r"has the time of row.*unit = "):
        load(pa.table(times), schema=Schema(**PLAIN, time="when"))
    apart = load(pa.table(mixed), schema=Schema(**PLAIN, unit="who"))
    assert np.abs(apart.data.steps.next_obs - apart.data.steps.obs).max() < 6
    together = load(pa.table(simple(episode=np.zeros(HOURS, int))), schema=Schema(**PLAIN, episode="episode"))
    assert together.data.rows == HOURS


@pytest.mark.parametrize("horizon", [None, 24, 12])
@pytest.mark.parametrize("how", ["episode", "unit"])
def test_inferred_next_observations_leave_episodes_whole(horizon, how):
    columns = simple(ep=np.repeat(np.arange(HOURS // 24), 24))
    log = load(pa.table(columns), schema=Schema(**PLAIN, **{how: "ep"}, horizon=horizon))
    assert log.data.rows == HOURS
    assert log.task.horizon == {None: 24, 24: 24, 12: 12}[horizon]
    assert behaviour(log.data, log.task).episodes == HOURS // 24
    assert any("horizon" in note for note in log.notes) == (horizon is None)
    assert any(f"{HOURS // 24} ends of episodes" in note for note in log.notes)


# Parts of a schema.


def test_lags_differences_and_clocks():
    log = load(pa.table(tidy()), schema=Schema(
        **{f: getattr(SCHEMA, f) for f in ("unit", "time", "per", "action", "choices")},
        obs="level", reward="-cost", lags={"level": 2}, differences={"level": 1}, cyclic={"hour": 24},
        exogenous="level",
    ))  # fmt: skip
    level, obs = tidy()["level"], log.data.steps.obs
    assert log.columns.names == (
        *("level", "sin(hour)", "cos(hour)", "level[t-1]", "level[t-2]", "level-level[t-1]"),
    )
    np.testing.assert_allclose(obs[5], [level[5], np.sin(2 * np.pi * 5 / 24), np.cos(2 * np.pi * 5 / 24), level[4],
                                        level[3], level[5] - level[4]], atol=1e-4)  # fmt: skip
    np.testing.assert_allclose(log.data.steps.next_obs[4], obs[5])
    assert obs[0, 3] == obs[0, 0]  # nothing before the first row of a run
    assert log.columns.exogenous == (True,) * 6
    row = {"level": level[5], "time": "2024-01-01T05:00", "level[t-1]": level[4], "level[t-2]": level[3]}
    np.testing.assert_allclose(log.columns.encode(row)[0], obs[5], atol=1e-4)


def test_empty_cells_are_refused_counted_and_filled():
    columns = tidy()
    level = [None if i in (3, 4, 50) else value for i, value in enumerate(columns["level"].tolist())]
    given = pa.table({**columns, "level": level})
    with pytest.raises(offing.BadInput, match=r"'level' 3 \(rows 3, 4, 50\).*fill = \{level = "):
        load(given, schema=SCHEMA)
    keep = {f: getattr(SCHEMA, f) for f in ("unit", "time", "per", "obs", "action", "choices", "reward")}
    log = load(given, schema=Schema(**keep, fill={"level": "forward"}))
    assert log.data.steps.obs[4, 0] == log.data.steps.obs[2, 0]
    assert any("3 empty cells repeat" in note for note in log.notes)
    with pytest.raises(offing.BadInput, match=r"'level' 1 \(rows 4\)"):
        load(given, schema=Schema(**keep, fill={"level": "forward 1"}))
    log = load(given, schema=Schema(**keep, fill={"level": "drop rows"}))
    assert log.data.rows == HOURS - UNITS - 3 - 2  # and nothing follows on what came before a hole
    log = load(given, schema=Schema(**keep, fill={"level": "indicator"}))
    assert log.columns.names[:2] == ("level", "level missing")
    assert log.data.steps.obs[:6, 1].tolist() == [0, 0, 0, 1, 1, 0]
    empty = log.columns.encode({"level": None, "door": "no", "mode": "eco"})
    assert empty[0, 1] == 1
    assert empty[0, 0] == log.data.steps.obs[3, 0]


def test_actions_of_several_columns_and_of_the_next_row():
    keep = {f: getattr(SCHEMA, f) for f in ("unit", "time", "per", "reward")} | {"obs": ("level", "mode")}
    log = load(pa.table(tidy()), schema=Schema(**keep, action=("fan", "door"), actions="discrete"))
    assert log.task.actions.n == 6
    assert log.columns.decode(log.data.steps.action[7]) == {"fan": tidy()["fan"][7], "door": tidy()["door"][7]}
    late = load(pa.table(tidy()), schema=Schema(**keep, action="fan", action_at="next row"))
    assert late.columns.decode(late.data.steps.action[7]) == {"fan": tidy()["fan"][8]}
    with pytest.raises(offing.BadInput, match=r"'fan'.*'high' is none of its choices"):
        load(pa.table(tidy()), schema=Schema(**keep, action="fan", choices={"fan": ("low", "mid")}))


def test_ends_and_episodes_by_rules():
    keep = {f: getattr(SCHEMA, f) for f in ("unit", "time", "obs", "action", "choices")}
    log = load(pa.table(tidy()), schema=Schema(**keep, reward="-cost", terminated="level > 38"))
    assert log.data.steps.done.sum() == (tidy()["level"] > 38).sum() > 0
    log = load(pa.table(tidy()), schema=Schema(**keep, reward="-cost", window=10))
    assert np.bincount(log.data.episode).max() == log.task.horizon == 10
    log = load(
        pa.table(tidy()), schema=Schema(**keep, reward="-cost", starts_when="mode == 'eco' and door == 'yes'")
    )
    first = np.flatnonzero(np.diff(log.data.episode)) + 1
    assert (log.data.steps.obs[first][:, 1:3] == 1).all(1).mean() > 0.9
    holes = {key: np.delete(value, [30, 31, 32]) for key, value in tidy().items()}
    log = load(pa.table(holes), schema=Schema(**keep, reward="-cost", gap="2h"))
    assert int(log.data.episode[-1]) == UNITS
    assert any("pauses longer than 2h" in note for note in log.notes)


@pytest.mark.parametrize(
    ("form", "cell"), [("%d.%m.%Y %H:%M", "31.01.2024 13:00"), ("%m/%d/%Y %H:%M", "01/31/2024 13:00")]
)
def test_dates_in_national_forms(form, cell):
    times = tidy()["time"].astype(object)
    shifted = [moment.replace(month=1, day=20 + moment.day) for moment in times]
    words = [moment.strftime(form) for moment in shifted]
    log = load(pa.table({**tidy(), "time": words}), schema=SCHEMA)
    assert log.task.horizon == 24
    if "." in form:  # nobody writes the month first with points
        return
    vague = [moment.strftime(form) for moment in times]
    with pytest.raises(offing.BadInput, match="time_format = "):
        load(pa.table({**tidy(), "time": vague}), schema=SCHEMA)


# Formulas.


class Two:
    """A table of two columns, its rows in one run."""

    def numbers(self, name):
        return {"x": np.array([1.0, 2.0, 3.0]), "y": np.array([0.0, np.nan, 5.0])}[name]

    def equals(self, name, word):
        return None

    def after(self, column):
        return np.r_[np.broadcast_to(column, 3)[1:], np.nan]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("x + 2 * x", [3, 6, 9]),
        ("-(x - 1) / 2", [0, -0.5, -1]),
        ("next(x) - x", [1, 1, np.nan]),
        ("if(x > 1, x, -x)", [-1, 2, 3]),
        ("min(x, 2) + max(x, 2) + clip(x, 2, 2)", [5, 6, 7]),
        ("x >= 2 and not x == 3", [0, 1, 0]),
        ("y > 1 or x == 1", [1, np.nan, 1]),
        ("abs(1 - x) * 1e1", [0, 10, 20]),
        ("x - 1 - 1", [-1, 0, 1]),
    ],
)
def test_formulas_over_whole_columns(text, answer):
    np.testing.assert_allclose(compute(parse(text), Two(), "reward"), answer)


def test_what_a_formula_is_made_of():
    node = parse("-cost - 2 * `door open` + abs(next(cost))")
    assert columns_in(node) == ("cost", "door open")
    assert [sign for sign, _ in terms(node)] == [-1.0, -1.0, 1.0]


@pytest.mark.parametrize(
    "bomb",
    ["(" * 1_000, "-" * 900 + "x", "not " * 300 + "x", "9 ** 9 ** 9", "__import__('os')", "x; x", "", "min(x)",
     "x.y(", "'a' + 1", "next(" * 60 + "x" + ")" * 60, "x" * 3_000, "lambda: 1", "x[0]", "`", "1e999999 * x"],
)  # fmt: skip
def test_formula_bombs_are_one_line(bomb):
    keep = {f: getattr(SCHEMA, f) for f in ("unit", "time", "per", "obs", "action", "choices")}
    with pytest.raises(offing.BadInput) as caught:
        load(pa.table({**tidy(), "x": np.arange(HOURS, dtype=float)}), schema=Schema(**keep, reward=bomb))
    assert "\n" not in str(caught.value)


# Messages.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"obs": ("level", "time")}, ["'time'", "dates", "cyclic"]),
        ({"obs": ("level", "colour")}, ["'obs'", "'colour'"]),
        ({"reward": "-price"}, ["'reward'", "'price'"]),
        ({"reward": "mode * 2"}, ["'mode'", "words"]),
        ({"reward": "if(mode == 'turbo', 1, 0)"}, ["'mode'", "never holds 'turbo'"]),
        ({"fill": {"mode": "mean"}}, ["'mode'", "words"]),
        ({"cyclic": {"phase": 3}}, ["'phase'", "hour"]),
        ({"per": "fortnight"}, ["'per'", '"day"']),
        ({"every": "soon"}, ["'every'", "15min"]),
        ({"lags": {"level": 0}}, ["'lags'"]),
        ({"terminated": "cost"}, ["'terminated'", "0 or 1"]),
    ],
)
def test_what_is_wrong_is_said_by_name(changes, words):
    keep = {f: getattr(SCHEMA, f) for f in ("unit", "time", "per", "obs", "action", "choices", "reward")}
    with pytest.raises(offing.BadInput) as caught:
        load(pa.table(tidy()), schema=Schema(**{**keep, **changes}))
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_missing_role_names_the_command_that_drafts(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(as_csv(tidy()))
    with pytest.raises(offing.BadInput, match="--write-schema"):
        load(path)


# Drafts, and the sample.


def test_a_draft_loads_after_one_line_is_edited(tmp_path):
    path = tmp_path / "log.csv"
    columns = tidy()
    order = np.lexsort((columns["machine"], columns["time"]))
    path.write_bytes(as_csv({key: value[order] for key, value in columns.items()}))
    schema, notes = sketch(path)
    text = text_of(schema, notes)
    assert schema.unit == "machine"
    assert schema.time == "time"
    assert schema.choices == {"fan": ("low", "mid", "high")}
    assert schema.reward == "-cost"
    lines = text.splitlines()
    keys = [i for i, line in enumerate(lines) if not line.startswith("#")]
    assert all(lines[i - 1].startswith("#") for i in keys), text  # a reason above every line
    edited = text.replace('reward = "-cost"', 'reward = "-cost - 0.1 * abs(next(level) - level)"')
    (tmp_path / "s.toml").write_text(edited)
    log = load(path, schema=tmp_path / "s.toml")
    same = load(pa.table(columns), schema=SCHEMA)
    np.testing.assert_array_equal(log.data.steps.reward, same.data.steps.reward)
    assert read_schema(tmp_path / "s.toml").obs == ("level", "door", "mode")


def test_a_draft_of_numbered_steps_has_them_as_steps(tmp_path):
    rows = [
        f"{e},{t},{e + 0.5 * t},{'left' if (e + t) % 3 else 'right'},{t % 2}" for e in range(9) for t in range(12)
    ]
    path = tmp_path / "roads.csv"
    path.write_text("\n".join(["episode,step,place,manoeuvre,reward", *rows]))
    schema, notes = sketch(path)
    assert (schema.episode, schema.step, schema.action) == ("episode", "step", None)
    assert schema.obs == ("place", "manoeuvre")
    assert any(note.startswith("obs: ") and "once you have named it as action" in note for note in notes)
    path.write_text(path.read_text().replace("\n3,7,", "\n3,70,"))
    schema, _ = sketch(path)  # it does not count
    assert schema.step is None
    assert "step" in schema.obs


def test_a_draft_of_people_and_sessions(tmp_path):
    hour = lambda i: f"{3 + i // 24:02}/01/2024 {i % 24:02}:30"
    rows = [
        f"{hour(i)};P{p};{i % 7},5;{'ja' if i % 3 else 'nein'};0,{i % 4};{i},25"
        for p in range(3)
        for i in range(72)
    ]
    path = tmp_path / "wards.csv"
    path.write_text("\n".join(["zeit;patient;druck;beatmet;dose;cost", *rows]))
    schema, notes = sketch(path)  # the third to the fifth of January, or of March?
    assert (schema.time, schema.time_format) == ("zeit", None)
    assert any(note.startswith("time_format: '03/01/2024 00:30' may be the day or the month") for note in notes)
    with pytest.raises(offing.BadInput, match=r"'zeit'.*time_format"):
        load(path, schema=schema)
    path.write_text(path.read_text().replace("/01/2024", "/20/2024").replace("05/20", "04/20"))
    schema, _ = sketch(path.with_name("wards.csv"))
    assert (schema.unit, schema.time, schema.action, schema.reward) == ("patient", "zeit", "dose", "-cost")
    rows = [
        f"{s},2024-05-01T10:00:0{i // 2}Z,{'cart' if i % 3 else 'home'},none,{i}.5"
        for s in range(9)
        for i in range(8)
    ]
    rows = [row.replace("none", "10% off") if i % 3 else row for i, row in enumerate(rows)]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join(["session_id,time,page,offer,revenue", *rows]))
    schema, notes = sketch(path)
    assert (schema.episode, schema.time, schema.action) == ("session_id", None, "offer")
    assert schema.choices == {"offer": ("10% off", "none")}  # a choice, and no empty cell
    assert any("'time': not used" in note for note in notes)
    assert load(path, schema=schema).data.rows == 9 * 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x;u;reward;episode\n1,5;0,1;2,5;1\n1,6;0,2;2,5;1\n1.7;0,3;2,5;1\n", ["'x', row 2", "'1.7'", "a comma"]),
        ('x,u,reward,episode\n"1,5",0.1,2.5,1\n"1,6",0.2,2.5,1\n', ["'x', row 0", "decimal comma", "semicolons"]),
        ("x,u,reward,episode\n2024-01-02,0.1,2.5,1\n2024-01-03,0.2,2.5,1\n", ["row 0", "a date", "leave_out"]),
        ("x,u,reward,episode\n1.5,0.1,2.5,1\n1.6,0.2,2.5,1\nhigh,0.2,2.5,1\n", ["'x', row 2", "'high'"]),
    ],
)  # fmt: skip
def test_cells_that_are_no_numbers_are_one_line_that_says_what_to_write(text, words, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(text)
    schema = Schema(obs="x", action="u", reward="reward", episode="episode", actions="box")
    with pytest.raises(offing.BadInput) as caught:
        load(path, schema=schema)
    assert all(word in str(caught.value) for word in words), caught.value


def test_the_cold_store_is_as_its_simulator():
    import jax

    from offing.online import coldstore
    from offing.online.envs import make

    log = load("offing:coldstore")
    assert log.columns.names == (*coldstore.COLUMNS, "sin(hour)", "cos(hour)")
    assert tuple(log.columns.action[0].levels) == coldstore.CHOICES
    schema, _ = sketch("offing:coldstore")
    assert schema.obs == ("temp", "setpoint", "outdoor", "price", "door", "product", "alarm")
    assert set(schema.exogenous or ()) == {"setpoint", "outdoor", "price", "door", "product", "hour"}
    env = make("offing:coldstore")

    def day(key):
        state, _ = env.reset(key)

        def hour(carry, key):
            choice = jax.nn.one_hot(coldstore.operator(jax.random.fold_in(key, 7), carry), 3)
            state, obs, reward, _ = env.step(key, carry, choice)
            return state, (obs, reward)

        _, (seen, earned) = jax.lax.scan(hour, state, jax.random.split(jax.random.fold_in(key, 9), 24))
        return earned.sum(), seen

    returns, seen = jax.jit(jax.vmap(day))(jax.random.split(jax.random.key(0), 400))
    logged = behaviour(log.data, log.task)
    error = 4 * np.hypot(logged.stderr, float(returns.std()) / 20)
    assert abs(float(returns.mean()) - logged.mean) < error + 1.0
    spread = np.asarray(log.data.steps.obs).std(0)
    np.testing.assert_allclose(
        np.asarray(seen).mean((0, 1)), np.asarray(log.data.steps.next_obs).mean(0), atol=0.35 * spread.max()
    )


@pytest.mark.parametrize("first", [0, 40, 80])
def test_damaged_tables_are_one_line(first, tmp_path):
    for seed in range(first, first + 40):  # the benchmark runs thousands
        result = attempt(seed, tmp_path, weighed=False)
        assert result.outcome in ("loaded", "refused")
        assert result.seconds < 10
