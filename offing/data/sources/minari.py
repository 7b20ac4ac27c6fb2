"""Minari datasets from their folder, in any of its storages; neither Minari nor an environment is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from ...types import BadInput
from ..dataset import Log
from ..schema import Schema
from . import Request, Source
from ._rows import MOST, Batch, Rows, collect
from ._tables import column_numbers

LONGEST = 16 * 2**20  # bytes of metadata
ONE_HOT = 256  # choices of a discrete observation, at most
ROLES = ("obs", "action", "reward", "terminated", "truncated", "episode", "next_obs")
FORMATS = ("hdf5", "arrow", "parquet")
Episode = dict[str, np.ndarray]  # observations one longer than the rest


def folder_of(name: str, root: Path | None) -> Path:
    """The folder of a dataset by its path or by its id under `root`, the place where Minari keeps its datasets."""
    root = root or Path.home() / ".minari" / "datasets"
    for base in (Path(name), root / name):
        for folder in (base, base / "data"):
            if (folder / "metadata.json").is_file():
                return folder
    raise BadInput(f"minari:{name}: no such dataset, neither as a folder nor in {root}; download it first")


def read_minari(folder: Path, name: str, schema: Schema, request: Request) -> Log:
    """The log in a dataset's folder. Spaces come from its metadata, and its horizon if the environment had one."""
    try:
        return collect(_rows(folder, name, schema), schema, request)
    except BadInput:
        raise
    except Exception as error:  # a damaged file may fail in any of a dozen ways
        raise BadInput(f"{name}: damaged or not a Minari dataset ({type(error).__name__})") from None


def _rows(folder: Path, name: str, schema: Schema) -> Rows:
    if schema.roles:
        raise BadInput(
            f"{name}: a Minari dataset names its own columns; leave '{schema.roles[0]}' out of the schema"
        )
    about = _metadata(folder, name)
    form = about.get("data_format") or "hdf5"  # older ones had no other
    episodes, total = (_count(about, key, name) for key in ("total_episodes", "total_steps"))
    if form not in FORMATS:
        raise BadInput(f"{name}: data_format {str(form)[:40]!r}; {', '.join(FORMATS)} are read")
    choices = _observations(_space(about, "observation_space", name), name)
    notes: list[str] = []
    if choices:
        notes.append(f"observations are one of {choices} choices: read as {choices} columns of 0 and 1")
    settings, start = _settings(about, name, schema, notes)
    pieces = _hdf5 if form == "hdf5" else _arrow
    roles = (*ROLES, "logp") if form == "hdf5" and _says_logp(folder, episodes, notes) else ROLES

    def read(roles: tuple[str, ...]) -> Iterator[Batch]:
        for number, episode in enumerate(pieces(folder, name, episodes, form)):
            if len(np.atleast_1d(episode["rewards"])) == 0:
                continue
            where = f"{name}, episode {number}"
            batch = _transitions(episode, number, where, choices, start)
            yield Batch({role: batch[role] for role in roles}, where, 0)

    return Rows(name, roles, read, total, settings, notes)


def _metadata(folder: Path, name: str) -> dict[str, Any]:
    path = folder / "metadata.json"
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
    try:
        metadata = json.loads(content) if len(content) <= LONGEST else None
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise BadInput(f"{name}, metadata.json: damaged or not JSON")
    return metadata


def _count(about: dict[str, Any], key: str, name: str) -> int:
    value = about.get(key)
    if not isinstance(value, int) or not 0 <= value <= MOST:
        raise BadInput(f"{name}, metadata.json, '{key}': {str(value)[:40]} where a count was expected")
    return value


def _space(about: dict[str, Any], key: str, name: str) -> dict[str, Any]:
    """A space as Minari writes it, a dict inside a string."""
    text = about.get(key)
    try:
        space = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        space = None
    if not isinstance(space, dict) or not isinstance(space.get("type"), str):
        raise BadInput(f"{name}, metadata.json, '{key}': missing or not a space that Minari writes")
    return space


def _observations(space: dict[str, Any], name: str) -> int:
    """Checks that observations are vectors; for discrete ones, how many choices there are."""
    kind, shape = space["type"], space.get("shape", [])
    if kind in ("Dict", "Tuple"):
        raise BadInput(
            f"{name}, observations: nested ({kind}); flatten them to one vector per step, with "
            "gymnasium.wrappers.FlattenObservation when logging, and save the dataset again"
        )
    if kind == "Box" and len(shape) > 1:
        what = "images" if space.get("dtype") == "uint8" else f"arrays of shape {tuple(shape)}"
        raise BadInput(f"{name}, observations: {what}; encode or flatten each into one vector and save them again")
    if kind == "Discrete":
        n = space.get("n")
        if not isinstance(n, int) or not 1 <= n <= ONE_HOT or space.get("start", 0) != 0:
            raise BadInput(
                f"{name}, observations: one of {n} choices; encode each as a vector and save them again"
            )
        return n
    if kind not in ("Box", "MultiBinary", "MultiDiscrete"):
        raise BadInput(
            f"{name}, observations: {kind[:40]}; encode each as a vector of numbers and save them again"
        )
    return 0


def _settings(about: dict[str, Any], name: str, schema: Schema, notes: list[str]) -> tuple[dict[str, Any], int]:
    """What the metadata says of the task, and the number of the first choice."""
    space, settings = _space(about, "action_space", name), {}
    start = 0
    if space["type"] == "Discrete":
        n, start = space.get("n"), space.get("start", 0)
        if not isinstance(n, int) or not isinstance(start, int):
            raise BadInput(f"{name}, metadata.json, 'action_space': a damaged Discrete space")
        if schema.discrete is not False:
            settings["n_actions"] = n
    elif space["type"] == "Box":
        if len(space.get("shape", [])) > 1:
            raise BadInput(
                f"{name}, actions: shape {tuple(space['shape'])}; one flat vector per step was expected"
            )
        for key, edge in (("action_low", space.get("low")), ("action_high", space.get("high"))):
            edge = np.asarray(edge)
            if edge.dtype.kind in "fiub" and np.isfinite(edge).all():
                if not schema.discrete:
                    settings[key] = np.atleast_1d(edge)
            else:
                notes.append(f"{key}: the space has no bound")
    else:
        raise BadInput(
            f"{name}, actions: {space['type'][:40]}; one choice or one vector of amounts per step is read"
        )
    spec = about.get("env_spec")
    try:
        steps = json.loads(spec).get("max_episode_steps") if isinstance(spec, str) else None
    except (ValueError, AttributeError, RecursionError):
        steps = None
    if isinstance(steps, int) and steps > 0:
        settings["horizon"] = steps
    return settings, start


def _transitions(episode: Episode, number: int, where: str, choices: int, start: int) -> dict[str, np.ndarray]:
    """One episode's rows: each observation but the last, and each but the first as the next one."""
    rows = len(episode["rewards"])
    obs, action = episode["observations"], episode["actions"]
    for key, length in (
        ("observations", rows + 1),
        ("actions", rows),
        ("terminations", rows),
        ("truncations", rows),
    ):
        if episode[key].ndim == 0 or len(episode[key]) != length:
            raise BadInput(f"{where}, '{key}': {len(np.atleast_1d(episode[key]))} where {length} were expected")
    if choices:
        obs = obs.reshape(rows + 1, -1)[:, 0]
        bad = ~np.isin(obs, np.arange(choices))
        if bad.any():
            raise BadInput(f"{where}, 'observations': {obs[bad][0]} is not one of the choices 0 to {choices - 1}")
        obs = np.eye(choices, dtype=np.float32)[obs.astype(int)]
    obs = obs[:, None] if obs.ndim == 1 else obs
    if obs.ndim > 2:
        raise BadInput(f"{where}, 'observations': shape {obs.shape}; encode or flatten each into one vector")
    logp = {"logp": episode["logp"]} if "logp" in episode else {}
    return {
        **logp,
        "obs": obs[:-1],
        "action": action - start if start else action,
        "reward": episode["rewards"],
        "terminated": episode["terminations"],
        "truncated": episode["truncations"],
        "episode": np.full(rows, number, np.int64),
        "next_obs": obs[1:],
    }


KEYS = ("observations", "actions", "rewards", "terminations", "truncations")
LOGP = "infos/logp"  # one number per action, as `offing collect` writes it


def _says_logp(folder: Path, episodes: int, notes: list[str]) -> bool:
    """Whether every episode says how likely its actions were."""
    with h5py.File(folder / "main_data.hdf5", "r") as file:
        for number in range(episodes):
            group = file.get(f"episode_{number}")
            if isinstance(group, h5py.Group) and _fits(group):
                continue
            if number:
                notes.append(f"{LOGP}: not used, since episode {number} lacks one number per action")
            return False
    return episodes > 0


def _fits(group: h5py.Group) -> bool:
    logp, rewards = group.get(LOGP), group.get("rewards")
    if not isinstance(logp, h5py.Dataset) or not isinstance(rewards, h5py.Dataset):
        return False
    return logp.dtype.kind == "f" and logp.shape == rewards.shape


def _hdf5(folder: Path, name: str, episodes: int, form: str) -> Iterator[Episode]:
    del form
    with h5py.File(folder / "main_data.hdf5", "r") as file:
        for number in range(episodes):
            group = file.get(f"episode_{number}")
            if not isinstance(group, h5py.Group):
                raise BadInput(f"{name}, episode {number}: missing, and the metadata counts {episodes}")
            episode = {}
            for key in KEYS:
                item = group.get(key)
                if not isinstance(item, h5py.Dataset) or item.shape is None or item.dtype.kind not in "fiub":
                    raise BadInput(f"{name}, episode {number}, '{key}': missing or not plain numbers")
                if (item.size or 0) > MOST or item.is_virtual or item.external:
                    raise BadInput(f"{name}, episode {number}, '{key}': claims {item.shape}, which is too large")
                episode[key] = item[()]
            if _fits(group):
                episode["logp"] = group[LOGP][()]  # type: ignore[index]
            yield episode


def _arrow(folder: Path, name: str, episodes: int, form: str) -> Iterator[Episode]:
    """Arrow and Parquet: a folder per episode, whose rows are one more than its steps; the last is padding."""
    for number in range(episodes):
        parts = sorted((folder / str(number)).glob(f"*.{form}"))
        if not parts:
            raise BadInput(f"{name}, episode {number}: missing, and the metadata counts {episodes}")
        tables = []
        for path in parts:
            if form == "parquet":
                with pq.ParquetFile(path) as file:
                    tables.append(file.read())
            else:
                with pa.memory_map(str(path)) as source:
                    tables.append(ipc.open_file(source).read_all())
        table = pa.concat_tables(tables).combine_chunks()
        where = f"{name}, episode {number}"
        for key in KEYS:
            if key not in table.column_names:
                raise BadInput(f"{where}, '{key}': missing")
        if table.num_rows == 0:
            raise BadInput(f"{where}: empty")
        episode = {}
        for key in KEYS:
            column = table.column(key)
            column = column if key == "observations" else column.slice(0, table.num_rows - 1)
            episode[key] = column_numbers(column, key, where)
        yield episode


def _is_dataset(given: object) -> bool:
    return isinstance(given, Path) and any((base / "metadata.json").is_file() for base in (given, given / "data"))


def _load(request: Request) -> Log:
    schema = request.schema or Schema()
    if isinstance(request.what, str):
        folder = folder_of(request.what, request.root)
    else:
        (base,) = request.paths
        folder = base if (base / "metadata.json").is_file() else base / "data"
    return read_minari(folder, request.name, schema, request)


source = Source(
    "minari:ID or the folder of a Minari dataset", _load, prefix="minari:", takes=_is_dataset, whole=True
)
