"""Tasks that nobody coded for: invented here, written as a user would have them, taken through every command."""

import csv
import json

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from offing.__main__ import main


def reservoir(rng, episodes=30, horizon=20):
    """Two numbers seen, an outflow between 0.3 and 7.5, dense reward, no early end."""
    rows = []
    for e in range(episodes):
        level, season = rng.uniform(20, 60), rng.uniform(0, 6)
        for t in range(horizon):
            outflow = rng.uniform(0.3, 7.5)
            after = np.clip(level + 3 * np.sin(season) + 2 - outflow, 0, 80)
            rows.append((e, t, level, season, outflow, outflow - 0.01 * (after - 40) ** 2, after, season + 0.3))
            level, season = after, season + 0.3
    return rows


def counter(rng, episodes=60, horizon=25):
    """Five numbers seen, seven choices, reward only on success, early ends."""
    found = {name: [] for name in ("obs", "action", "reward", "next_obs", "terminated", "episode", "step")}
    for e in range(episodes):
        state = rng.normal(size=5)
        for t in range(horizon):
            choice = int(rng.integers(7))
            after = 0.8 * state + 0.4 * np.cos(choice * np.arange(1, 6))
            won = bool(after[:2].sum() > 1.1)
            for name, value in zip(found, (state, choice, float(won), after, won, e, t), strict=True):
                found[name].append(value)
            state = after
            if won:
                break
    return found


def network(rng, episodes=24, horizon=25, width=60):
    """Sixty numbers seen, three actions of odd ranges, dense reward, early ends."""
    mix = rng.normal(size=(width, width)) / np.sqrt(width)
    push = rng.normal(size=(3, width))
    low, high = np.array([-5.0, 0.0, 100.0]), np.array([0.5, 1e-3, 900.0])
    names = ("observations", "actions", "rewards", "terminals", "timeouts", "next_observations")
    out = {name: [] for name in names}
    for _ in range(episodes):
        state = rng.normal(size=width)
        for t in range(horizon):
            action = rng.uniform(low, high)
            after = 0.7 * state @ mix + (action - low) / (high - low) @ push * 0.3
            over = bool(np.abs(after).max() > 1.7)
            late = t == horizon - 1 and not over
            row = (state, action, -np.square(after).mean(), over, late, after)
            for name, value in zip(names, row, strict=True):
                out[name].append(value)
            state = after
            if over:
                break
    return {name: np.asarray(column) for name, column in out.items()}


def written(kind, folder):
    """The log's file."""
    rng = np.random.default_rng(3)
    if kind == "reservoir.csv":
        path = folder / "water levels.csv"
        names = ["run", "hour", "obs_level", "obs_season", "action", "reward", "next_obs_level", "next_obs_season"]
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([names, *reservoir(rng)])
        return path
    if kind == "counter.parquet":
        path = folder / "counter.parquet"
        found = counter(rng)
        pq.write_table(pa.table({name: pa.array(list(column)) for name, column in found.items()}), path)
        return path
    path = folder / "network.hdf5"
    with h5py.File(path, "w") as file:
        for name, column in network(rng).items():
            file[name] = column
    return path


@pytest.mark.parametrize("kind", ["reservoir.csv", "counter.parquet", "network.hdf5"])
def test_a_log_of_a_task_that_nobody_coded_for_goes_through(kind, tmp_path, capsys):
    path, schema = written(kind, tmp_path), tmp_path / "schema.toml"
    more = []
    if kind != "network.hdf5":  # D4RL's layout says which column is what; tables do not
        assert main(["inspect", str(path), "--write-schema", str(schema)]) == 0
        if kind == "counter.parquet":  # whole-number actions are a question, and the user's to answer
            assert "choices or amounts?" in capsys.readouterr().out
            assert main(["inspect", str(path), "--schema", str(schema)]) == 2
            schema.write_text(schema.read_text() + 'actions = "discrete"\n')
        more = ["--schema", str(schema)]
    assert main(["inspect", str(path), *more, "--out", str(tmp_path / "seen")]) == 0
    out = tmp_path / "out"
    code = main(["sorel", str(path), *more, "--scale", "smoke", "--out", str(out)])
    assert code in (0, 3, 4), capsys.readouterr().err
    told = json.loads((out / "result.json").read_text())
    task = told["policy"]["task"]
    actions = {"reservoir.csv": 1, "counter.parquet": 7, "network.hdf5": 3}[kind]
    space = task["actions"]
    assert (space["choices"] or len(space["low"])) == actions
    assert task["horizon"] == {"reservoir.csv": 20, "counter.parquet": 25, "network.hdf5": 25}[kind]
    assert told["online_samples"] == 0
    if kind == "network.hdf5":  # no range was given, so it is the log's own
        np.testing.assert_allclose(space["low"], [-5, 0, 100], rtol=0.1, atol=0.1)
        np.testing.assert_allclose(space["high"], [0.5, 1e-3, 900], rtol=0.1, atol=0.1)
    earned = told["return"]
    assert all(np.isfinite([earned["median"], *earned["interval"]]))
