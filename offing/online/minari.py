"""A log as a Minari dataset, written by the `minari` package itself; whole or not at all."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..types import BadInput
from . import envs

ID = re.compile(r"[\w.-]+-v\d+")


def check(path: Path) -> None:
    """Refuses, in one line, if no dataset could be written there."""
    for package in ("minari", "gymnasium"):
        if importlib.util.find_spec(package) is None:
            raise BadInput(f"{path}: {package} is not installed; Minari datasets need the extra: offing[envs]")
    if path.exists():
        raise BadInput(f"{path}: is there already; a Minari dataset is a folder of its own, give another name")


def save_minari(path: Path, columns: dict[str, np.ndarray], kind: str, policy: str | None = None) -> None:
    """The folder appears whole or not at all: written aside, then moved into place.

    Log-probabilities are in `infos` under `logp`, one per action. The horizon is in the environment's
    specification; a discount has no place in the format.
    """
    check(path)
    from minari.dataset.minari_storage import MinariStorage

    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        (aside / "data").mkdir(parents=True)
        seen, done = _spaces(columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice to authors of public datasets
            storage = MinariStorage.new(aside / "data", seen, done, _spec(kind, int(columns["horizon"])), "hdf5")
            storage.update_episodes(_buffers(columns))
            name = path.name if ID.fullmatch(path.name) else f"{re.sub(r'[^a-zA-Z0-9_.-]', '-', path.name)}-v0"
            who = f"offing collect {kind}" + (f" --policy {policy}" if policy else "")
            storage.update_metadata(
                {"dataset_id": name, "minari_version": version("minari"), "algorithm_name": who}
            )
        os.rename(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _spaces(columns: dict[str, np.ndarray]) -> tuple[Any, Any]:
    """Observation and action space, in gymnasium's terms."""
    from gymnasium import spaces

    seen = spaces.Box(-np.inf, np.inf, columns["obs"].shape[1:], np.float32)
    if "n_actions" in columns:
        return seen, spaces.Discrete(int(columns["n_actions"]))
    return seen, spaces.Box(columns["action_low"], columns["action_high"], dtype=np.float32)


def _spec(kind: str, horizon: int) -> Any:
    """The environment's specification: gymnasium's own, or one of that name with how long episodes may be."""
    from gymnasium.envs.registration import EnvSpec, spec

    package, name = envs.source(kind) or ("offing", kind)
    if package != "gymnasium":
        return EnvSpec(f"{package}/{name}", entry_point=f"{package}:{name}", max_episode_steps=horizon)
    own = spec(name.rpartition(":")[2])
    own.max_episode_steps = horizon
    try:
        own.to_json()
    except (TypeError, ValueError):  # it names a class of this very process, which no file can hold
        return EnvSpec(own.id, entry_point=str(own.entry_point), max_episode_steps=horizon)
    return own


def _buffers(columns: dict[str, Any]) -> Any:
    """The log's episodes, as Minari takes them: observations one longer than the rest."""
    from minari.data_collector import EpisodeBuffer

    ends = np.flatnonzero(columns["terminated"] | columns["truncated"])
    action: Any = columns["action"].astype(np.int64) if "n_actions" in columns else columns["action"]
    for number, (begin, end) in enumerate(zip(np.r_[0, ends[:-1] + 1], ends + 1, strict=True)):
        rows = slice(begin, end)
        seen: Any = np.concatenate([columns["obs"][rows], columns["final_obs"][number : number + 1]])
        yield EpisodeBuffer(
            id=number,
            observations=seen,
            actions=action[rows],
            rewards=columns["reward"][rows],
            terminations=columns["terminated"][rows],
            truncations=columns["truncated"][rows],
            infos={"logp": columns["logp"][rows]} if "logp" in columns else {},
        )
