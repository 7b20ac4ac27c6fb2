"""The record of a part: numbers, and all that they rest on; one JSON file, written whole or not at all."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from offing.report.store import read_json, write_json
from offing.types import Json

from .library import ROOT, tree_of
from .parts import Numbers, Part, Place

RECORDS = Path(__file__).parent / "records"
FIELDS = (
    "study", "part", "phase", "settings", "numbers", "tree", "changed", "commit", "versions", "device", "cores",
    "seeds", "seconds", "core_seconds",
)  # fmt: skip
PACKAGES = ("offing", "jax", "numpy", "scipy", "scikit-learn", "gymnax", "brax", "gymnasium", "mujoco")
DIGITS = 7  # of a number in a record: more is rounding of single precision


def git(*words: str) -> str:
    """What git prints, or nothing where there is none."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def state() -> dict[str, Json]:
    """The state of the library: its tree's hash, the commit, and whether files differ from it (None: no git)."""
    commit, tree = git("rev-parse", "HEAD"), tree_of(ROOT / "offing")
    return {
        "tree": tree,
        "changed": git("rev-parse", "HEAD:offing") != tree if commit else None,
        "commit": commit or os.environ.get("PAPER_COMMIT", "unknown"),
    }


def versions() -> dict[str, Json]:
    """Of Python and of the packages that numbers may depend on."""
    installed: dict[str, Json] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


class Took(NamedTuple):
    """What a part took: by the clock, and of all cores together, which other work does not lengthen."""

    seconds: float
    core_seconds: float


def record_of(part: Part, numbers: Numbers, took: Took) -> Numbers:
    """The record that a finished part leaves."""
    seeds = part.settings.get("seeds", part.settings.get("seed"))
    return {
        "study": part.study,
        "part": part.name,
        "phase": part.phase,
        "settings": dict(part.settings),
        "numbers": plain(numbers),
        **state(),
        "versions": versions(),
        "device": jax.devices()[0].device_kind,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "seeds": seeds,
        "seconds": round(took.seconds, 1),
        "core_seconds": round(took.core_seconds, 1),
    }


def plain(thing: object) -> Json:
    """Anything made of numbers and words as JSON: arrays as lists, what is not finite as null, few digits."""
    if isinstance(thing, dict):
        return {str(name): plain(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [plain(value) for value in thing]
    if isinstance(thing, np.ndarray | jax.Array):
        return plain(np.asarray(thing).tolist())
    if isinstance(thing, np.generic):
        return plain(thing.item())
    if isinstance(thing, float):
        return float(f"{thing:.{DIGITS}g}") if np.isfinite(thing) else None
    if thing is None or isinstance(thing, bool | int | str):
        return thing
    raise TypeError(f"{type(thing).__name__}: no number and no word")


def status(part: Part, place: Place, tree: str) -> str:
    """Whether a part is `done`, `stale` (of other settings or another state of the library) or `open`."""
    record = read_json(place.record_of(part.id))
    if not isinstance(record, dict):
        return "open"
    same = record["settings"] == plain(dict(part.settings)) and record["tree"] == tree
    return "done" if same else "stale"


def save(part: Part, place: Place, numbers: Numbers, took: Took) -> None:
    """Writes the record: from now on the part is done."""
    write_json(place.record_of(part.id), record_of(part, numbers, took))


def every(folder: Path) -> dict[str, Numbers]:
    """All records of a folder by the ids of their parts."""
    paths: Iterable[Path] = sorted(folder.glob("*/*.json"))
    records = {f"{path.parent.name}/{path.stem}": read_json(path) for path in paths}
    return {name: record for name, record in records.items() if isinstance(record, dict)}
