"""Results on disk: arrays and JSON, no pickle, whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import hypers
from ..pil import PIL
from ..posterior import models
from ..posterior.replay import Replay
from ..tune.choose import PosteriorChoice
from ..types import BadInput, Box, Discrete, Posterior, Saved, Task, WorldModel

RESULT = "posterior.json"
WORK = ".work"


def write(path: Path, content: bytes) -> None:
    """The file appears whole or not at all, even if the machine stops: written aside, then moved into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(aside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def read(path: Path) -> str | None:
    """A text that was written here before, or None if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def save_columns(path: Path, columns: dict[str, np.ndarray]) -> None:
    """A log as an `.npz` file that `offing.load` reads."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **columns)  # type: ignore[arg-type]
    write(path, buffer.getvalue())


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays by name, as the content of an `.npz` file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an `.npz` file; ValueError if it is damaged, OSError if it is not there."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (KeyError, zipfile.BadZipFile) as error:
        raise ValueError(str(error)) from error


def keep(out: Path, kind: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Writes arrays under a name that their content gives them, and says it."""
    content = pack(arrays)
    name = f"{kind}-{hashlib.sha256(content).hexdigest()[:12]}.npz"
    write(out / name, content)
    return name


def drop_others(out: Path, kind: str, name: str) -> None:
    """Removes what earlier runs kept of that kind."""
    for old in out.glob(f"{kind}-*.npz"):
        if old.name != name:
            old.unlink(missing_ok=True)


def read_json(path: Path) -> dict[str, Any] | None:
    """What a result says, or None if there is none."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise BadInput(f"{path}: damaged; remove it to run again") from None


def write_json(path: Path, told: Mapping[str, Any]) -> None:
    write(path, (json.dumps(told, indent=1) + "\n").encode())


class Folder:
    """A cache on disk: finished chunks of one run, known by what the run was asked."""

    def __init__(self, out: Path, identity: str):
        self.path = out / WORK / identity

    def get(self, name: str) -> list[np.ndarray] | None:
        try:
            found = unpack(self.path / f"{name}.npz")
            return [found[f"a{i}"] for i in range(len(found))]
        except (OSError, ValueError, KeyError):
            return None  # not there, or left unreadable by a crash: do it again

    def put(self, name: str, arrays: Sequence[np.ndarray]) -> None:
        write(self.path / f"{name}.npz", pack({f"a{i}": array for i, array in enumerate(arrays)}))

    def clear(self) -> None:
        """Removes the chunks of this run, and of any other in the same place: the result stands without them."""
        for file in sorted(self.path.parent.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
        if self.path.parent.is_dir():
            self.path.parent.rmdir()


def identity(fingerprint: str, seed: int, settings: Sequence[Any], version: str, *more: Any) -> str:
    """What makes two runs the same one: the log, the seed, the settings, the version, and what else was asked."""
    asked = json.dumps([fingerprint, seed, [hypers.asdict(s) for s in settings], version, *more], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def finished(out: Path) -> dict[str, Any] | None:
    """The result in a folder, or None if there is none."""
    return read_json(out / RESULT)


def save_posterior(out: Path, choice: PosteriorChoice, facts: dict[str, Any]) -> dict[str, Any]:
    """Writes the arrays, then `posterior.json`, which names them: a result exists once the JSON does."""
    posterior = choice.picked
    saved = choice.model.save(posterior)
    arrays = keep(out, "posterior", saved.arrays)
    task = posterior.task
    space = actions_dict(task.actions)
    result = {
        **facts,
        "settings": [
            {**hypers.asdict(point), "nll": nll, **pil_dict(score, task)}
            for point, nll, score in zip(choice.points, choice.nll, choice.scores, strict=True)
        ],
        "chosen": choice.index,
        "reference": choice.reference,
        "pil": pil_dict(choice.pil, task, whole=True),
        "noise_scale": float(np.mean(choice.share)),
        "chance": choice.share.tolist(),
        "replay": replay_dict(choice.replay),
        "notes": list(choice.notes),
        "world": {
            "arrays": arrays,
            "model": choice.model.name,
            "rest": saved.rest,
            "folds": posterior.folds,
            "members": posterior.members,
            "task": {"horizon": task.horizon, "discount": task.discount, "actions": space},
        },
        "online_samples": 0,
    }
    write_json(out / RESULT, result)
    drop_others(out, "posterior", arrays)
    return result


def pil_dict(score: PIL, task: Task, whole: bool = False) -> dict[str, Any]:
    """A PIL as JSON: sums, and with `whole` each output's numbers too."""
    sums = {
        "error": score.e,
        "spread": score.v,
        "noise": float(np.mean(score.noise)),
        "total": score.total,
        "imbalance": score.imbalance,
        "calibrated": score.calibrated,
        "units": score.units,
        "word": score.word,
        "bound": score.bound(task.discount)._asdict(),
    }
    if not whole:
        return sums
    outputs = {
        name: np.asarray(getattr(score, name)).tolist()
        for name in PIL._fields
        if name not in ("members", "between_fold_variance", "units")
    }
    return {**sums, "outputs": outputs, "released": score.released}


def actions_dict(actions: Box | Discrete) -> dict[str, Any]:
    """A space of actions as JSON; `actions_of` reads it back."""
    return {"choices": actions.n} if isinstance(actions, Discrete) else actions._asdict()


def actions_of(given: dict[str, Any]) -> Box | Discrete:
    return Discrete(given["choices"]) if "choices" in given else Box(tuple(given["low"]), tuple(given["high"]))


def replay_dict(curve: Replay | None) -> dict[str, Any] | None:
    return None if curve is None else {name: np.asarray(v).tolist() for name, v in curve._asdict().items()}


def load_posterior(out: str | os.PathLike[str], model: WorldModel | None = None) -> Posterior:
    """The posterior that `offing posterior` left in a folder; `model` is needed if it is nobody's by name."""
    folder = Path(out)
    result = finished(folder)
    if result is None:
        raise BadInput(f"{folder}: holds no finished posterior ({RESULT} is missing)")
    try:
        world = result["world"]
        arrays = unpack(folder / world["arrays"])
        task = world["task"]
        known = Task(task["horizon"], task["discount"], actions_of(task["actions"]))
        model = model or models.get(world["model"])
        return model.load(Saved(arrays, world["rest"]), known)
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{folder}: the posterior in it is damaged or of another version") from None
