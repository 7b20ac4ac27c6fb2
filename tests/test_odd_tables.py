"""Tables that nobody coded for: what a draft says of them, what is refused and how, and what is not lost."""

import datetime
import gzip
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from offing.data import Schema, load, sketch
from offing.data.expression import compute, parse
from offing.data.table import cells as table_cells
from offing.data.table.cells import Cells, Rows
from offing.data.table.compact import compact, expanded, joined
from offing.types import BadInput


def heating(rows=200):
    """Three boilers as a German export writes them."""
    rng, began = np.random.default_rng(0), datetime.datetime(2026, 11, 17, 8, 15)
    lines = ["Zeitstempel;Kessel;Vorlauf [°C];Stufe;Gas m³;Störung"]
    for i in range(rows):
        stamp = (began + datetime.timedelta(minutes=15 * i)).strftime("%d.%m.%Y %H:%M")
        for boiler in (1, 2, 3):
            warm, gas = (f"{x:.1f}".replace(".", ",") for x in (60 + rng.normal(), rng.random()))
            step, odd = rng.choice(["aus", "Stufe 1"]), "ja" if rng.random() < 0.1 else "nein"
            lines.append(f"{stamp};Kessel {boiler};{warm};{step};{gas};{odd}")
    return "\r\n".join(lines)


def test_a_german_export_in_windows_letters(tmp_path):
    path = tmp_path / "heizwerk.csv"
    path.write_bytes(heating().encode("cp1252"))
    schema, notes = sketch(path)
    assert (schema.time, schema.unit, schema.per) == ("Zeitstempel", "Kessel", "day")  # a date by its cells
    assert schema.yes_no == ("Störung",)
    for word in ("semicolons", "comma stands before decimals", "Windows-1252"):
        assert any(note.startswith("file: ") and word in note for note in notes)
    schema = Schema(unit="Kessel", time="Zeitstempel", obs="Vorlauf [°C]", action="Stufe", reward="-`Gas m³`")
    log = load(path, schema=schema)
    assert log.data.rows == 3 * 200
    assert 50 < log.data.steps.obs.mean() < 70
    assert any("Windows-1252" in note for note in log.notes)


def test_a_bad_cell_beside_decimal_commas_is_named_itself(tmp_path):
    path = tmp_path / "heizwerk.csv"
    lines = heating(40_000).split("\r\n")  # more than one block
    cells = lines[90_000].split(";")
    lines[90_000] = ";".join([*cells[:2], "6o,5", *cells[3:]])
    path.write_text("\n".join(lines))
    schema = Schema(unit="Kessel", time="Zeitstempel", obs="Vorlauf [°C]", action="Stufe", reward="-`Gas m³`")
    with pytest.raises(BadInput, match=r"'Vorlauf \[°C\]', row 89999: '6o,5' is not a number"):
        load(path, schema=schema)


def icu(ends=True):
    rng, lines = np.random.default_rng(0), ["patient_id,charttime,pressure,lactate,drug,died"]
    for patient in range(20):
        for hour in range(12):
            died = int(ends and hour == 11 and patient % 4 == 0)
            lactate = "" if hour < 2 or rng.random() < 0.5 else f"{rng.random():.1f}"
            drug = rng.choice(["none", "fluids"])
            lines.append(f"P{patient},2150-01-01 {hour:02}:00,{70 + rng.normal():.0f},{lactate},{drug},{died}")
    return "\n".join(lines)


def test_ends_and_values_that_are_missing_from_the_start(tmp_path):
    path = tmp_path / "icu.csv"
    path.write_text(icu())
    schema, notes = sketch(path)
    assert (schema.unit, schema.terminated, schema.fill) == ("patient_id", "died", {"lactate": "indicator"})
    assert any("'lactate'" in note and "before any value" in note for note in notes)  # nothing to repeat there
    known = dict(unit="patient_id", time="charttime", obs="pressure", action="drug", terminated="died")
    ended = load(path, schema=Schema(**known, reward="-abs(pressure - 70)"))
    assert ended.data.steps.done.sum() == 5
    lost = load(path, schema=Schema(**known, reward="-abs(next(pressure) - 70)"))
    assert lost.data.steps.done.sum() == 0
    assert any("5 true ends are lost" in note for note in lost.notes)


def test_prices_with_a_sign_are_no_categories(tmp_path):
    path = tmp_path / "shop.csv"
    rows = [f"1/{d + 13}/2025,{p},${4 + d}.5,{d % 3}" for d in range(15) for p in ("mug", "pen")]
    path.write_text("\n".join(["date,product,price,sold", *rows]))
    schema, notes = sketch(path)
    assert schema.categories is None
    assert "price" not in schema.names("obs")
    assert any("'$4.5' is a number with a sign" in note for note in notes)
    with pytest.raises(BadInput, match=r"'price': '\$4.5' is a number with a sign"):
        load(path, schema=Schema(unit="product", time="date", obs="sold", action="price", reward="2 * sold"))
    with pytest.raises(BadInput, match=r"'price', row 0: '\$4.5' is a number with a sign"):
        load(path, schema=Schema(unit="product", time="date", obs="price", action="sold", n=3, reward="-sold * 2"))


def test_two_rows_of_names(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Plant A", None, "Control"])
    sheet.append(["temp", "flow", "valve"])
    for i in range(30):
        sheet.append([i * 1.5, i, i % 2])
    book.save(tmp_path / "plant.xlsx")
    with pytest.raises(BadInput, match="column 2 of the first row has no name"):
        sketch(tmp_path / "plant.xlsx")  # otherwise columns to the right would take their neighbours' names
    path = tmp_path / "units.csv"
    path.write_text(
        "\n".join(["temp,flow,valve,cost", "[°C],[l],[-],[EUR]", *(f"{i}.5,{i},{i % 2},1" for i in range(30))])
    )
    schema, notes = sketch(path)
    assert schema.action is None
    assert any("'temp': not used; most cells are numbers, and '[°C]' is not" in note for note in notes)
    with pytest.raises(BadInput, match=r"'valve'.*'\[-\]' is not a number"):
        load(path, schema=Schema(unit="none", window=9, obs="flow", action="valve", categories="flow", reward="1"))


def test_times_with_a_zone_say_so(tmp_path):
    path = tmp_path / "turbines.parquet"
    stamps = [datetime.datetime(2026, 3, 28) + datetime.timedelta(hours=i) for i in range(48)]
    words = pa.DictionaryArray.from_arrays(np.arange(48) % 2, ["full", "part", "never"])
    table = {"ts": pa.array(stamps, pa.timestamp("ms", "Europe/Berlin")), "mode": words, "wind": np.arange(48.0)}
    pq.write_table(pa.table({**table, "power": np.arange(48.0) % 5}), path)
    log = load(path, schema=Schema(time="ts", per="day", obs="wind", action="mode", reward="power"))
    assert any("has a zone (Europe/Berlin)" in note for note in log.notes)
    assert log.columns.action[0].levels == ("full", "part")  # what no row holds is no choice
    _, notes = sketch(path)
    assert any(note.startswith("time: ") and "Europe/Berlin" in note for note in notes)


def test_an_action_that_is_still_in_the_observation_says_what_to_do():
    with pytest.raises(BadInput, match="'a' is already 'obs'; take it out of one"):
        Schema(obs=("a", "b"), action="a")


def test_drafts_of_odd_columns(tmp_path):
    path = tmp_path / "log.csv"
    rows = [f"2024-01-01 00:{i // 60:02}:{i % 60:02},word{i},low,{i % 7}" for i in range(3_000)]
    path.write_text("\n".join(["time,mode,fan,temp", *rows]))
    schema, _ = sketch(path)  # an action of thousands of words would take gigabytes to look at
    assert schema.action is None
    path.write_text("time,temp,temp\n2024-01-01,1,2\n2024-01-02,2,3\n")
    with pytest.raises(BadInput, match="'temp': there twice"):
        sketch(path)


def test_bars_between_cells_and_names_without_end(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time|temp|u|cost\n" + "".join(f"{i}|{i % 7}.5|{i % 2}|1.5\n" for i in range(40)))
    log = load(path, schema=Schema(time="time", window=9, obs="temp", action="u", n=2, reward="-cost"))
    assert any("separated by bars" in note for note in log.notes)
    path.write_text("x" * 90_000 + ",y\n1,2\n2,3\n")
    with pytest.raises(BadInput, match=r"^.{400,1300}$"):
        load(path, schema=Schema(obs="y", action="x" * 90_000, reward="1 * y"))


def test_quotes_and_letters_that_go_wrong_late(tmp_path):
    path = tmp_path / "log.csv"
    sound = "".join(f"{i},{i % 7}.5,a,{i % 3}\n" for i in range(150_000))  # more than one block
    known = Schema(time="time", window=50, obs=("temp", "mode"), action="u", n=3, reward="2 * temp")
    for tail, words in (
        (b'150000,"1.5,a,1\n', "row 150000: a quotation mark is opened and not closed"),
        (b"150000,1.5,\xff,1\n", "'mode', row 150000: .* is not UTF-8"),
        (b"150000,1.5\n", "row 150000 has 2 cells where the header has 4"),
        (b"150000,abc,a,1\n", "'temp', row 150000: 'abc' is not a number"),
    ):
        path.write_bytes(b"time,temp,mode,u\n" + sound.encode() + tail)
        with pytest.raises(BadInput, match=words):
            load(path, schema=known)
    path.write_bytes(b"time,temp,mode,u\n" + bytes(range(128, 256)) * 40)
    with pytest.raises(BadInput, match="neither UTF-8 nor Windows-1252"):
        load(path, schema=known)


@pytest.mark.parametrize("ending", ["csv.gz", "zip", "parquet"])
def test_what_unpacks_to_far_more_is_refused_unread(ending, tmp_path):
    path, block = tmp_path / f"bomb.{ending}", b"0,0,1,0\n" * 2**17
    if ending == "csv.gz":
        with gzip.open(path, "wb") as file:
            for _ in range(100):
                file.write(block)
    elif ending == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("log.csv", block * 100)
    else:
        pq.write_table(pa.table({name: np.zeros(10**7, np.float32) for name in "abcd"}), path)
    for work in (sketch, load):
        with pytest.raises(BadInput, match=r"that unpack to .*; unpack it yourself"):
            work(path)


def test_cells_are_stored_short_and_come_back_as_they_were():
    rng = np.random.default_rng(0)
    columns = [
        rng.integers(-100, 100, 500).astype(float),
        rng.normal(size=500).round(2),
        rng.normal(size=500),
        rng.normal(size=500).astype(np.float32).astype(np.float64),
        np.full(500, np.nan),
        np.array([0.0, -0.0, np.nan, 126, -127, 1e300, np.inf, -np.inf, 5e-324, 2.0**31, -(2.0**31)]),
        np.array([0.0, -0.0, np.nan, 0.1, -12.7]),
    ]
    for column in columns:
        stored, scale = compact(column, "number")
        np.testing.assert_array_equal(expanded(stored, scale, "number"), column)
        cell = Cells("number", stored, scale=scale)
        np.testing.assert_array_equal(np.signbit(cell.array), np.signbit(column))
        np.testing.assert_array_equal(cell.empty, np.isnan(column))
    assert compact(columns[0], "number")[0].dtype == np.int8
    assert compact(columns[1], "number")[0].dtype == np.int16
    every, scale = joined([compact(column, "number") for column in columns], "number")
    np.testing.assert_array_equal(expanded(every, scale, "number"), np.concatenate(columns))
    decimals = [columns[0], columns[1], columns[4], columns[6]]
    every, scale = joined([compact(column, "number") for column in decimals], "number")
    assert every.dtype == np.int16
    np.testing.assert_array_equal(expanded(every, scale, "number"), np.concatenate(decimals))
    never = np.iinfo(np.int64).min
    for moments in (np.array([0, 10**6, never, -(10**15)]), np.array([1, never, 10**17])):
        stored, scale = compact(moments, "time")
        np.testing.assert_array_equal(expanded(stored, scale, "time"), moments)


def test_formulas_over_blocks_of_rows_are_formulas_over_all(monkeypatch):
    rng = np.random.default_rng(0)
    last = rng.random(100) < 0.1
    last[-1] = True
    cells = {"x": Cells("number", rng.normal(size=100)), "w": Cells("word", rng.integers(-1, 2, 100), ("a", "b"))}
    rows = Rows(cells, np.zeros(100, int), None, np.arange(100), last)
    monkeypatch.setattr(table_cells, "BLOCK", 7)
    for text in (
        "x",
        "next(next(x)) - x",
        "if(next(w) == 'a', next(x), 1)",
        "max(x, next(next(next(x)))) * 2",
        "3",
    ):
        node = parse(text)
        whole = np.broadcast_to(compute(node, rows, "reward"), (100,))
        np.testing.assert_array_equal(rows.computed(node, "reward"), whole)
