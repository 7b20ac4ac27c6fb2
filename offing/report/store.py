"""Results on disk: arrays and JSON, no pickle, whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from .. import hypers
from ..pil import PIL
from ..posterior import models
from ..tune.choose import PosteriorChoice
from ..types import BadInput, Box, Discrete, Posterior, Saved, Task, WorldModel
from .jsonable import Json, from_json, to_json
from .reports import (
    ChosenWorlds,
    Curve,
    Facts,
    Loss,
    PosteriorReport,
    SavedWorlds,
    Space,
    TaskReport,
    TriedWorlds,
    upgraded,
)

RESULT = "posterior.json"
WORK = ".work"
Report = TypeVar("Report")


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
    name = name_of(kind, content)
    write(out / name, content)
    return name


def name_of(kind: str, content: bytes) -> str:
    """The file name that its content gives it."""
    return f"{kind}-{hashlib.sha256(content).hexdigest()[:12]}.npz"


def drop_others(out: Path, kind: str, name: str) -> None:
    """Removes what earlier runs kept of that kind."""
    for old in out.glob(f"{kind}-*.npz"):
        if old.name != name:
            old.unlink(missing_ok=True)


def read_json(path: Path) -> Json:
    """What a result says, or None if there is none."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise BadInput(f"{path}: damaged; remove it to run again") from None


def write_json(path: Path, report: object) -> None:
    """A report, or anything plain, as strict JSON."""
    write(path, (json.dumps(to_json(report), indent=1, allow_nan=False) + "\n").encode())


class Folder:
    """A cache on disk: finished chunks of one run, known by the run's request."""

    def __init__(self, out: Path, identity: str):
        self.path = out / WORK / identity

    def get(self, name: str) -> list[np.ndarray] | None:
        try:
            arrays = unpack(self.path / f"{name}.npz")
            return [arrays[f"a{i}"] for i in range(len(arrays))]
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


def identity(fingerprint: str, seed: int, settings: Sequence[object], version: str, *more: object) -> str:
    """What makes two runs the same one: the log, the seed, the settings, the version, and what else it takes."""
    request = json.dumps([fingerprint, seed, [hypers.asdict(s) for s in settings], version, *more], sort_keys=True)
    return hashlib.sha256(request.encode()).hexdigest()[:16]


def finished(out: Path) -> PosteriorReport | None:
    """The report in a folder, or None if there is none."""
    return read_report(PosteriorReport, out / RESULT)


def save_posterior(out: Path, choice: PosteriorChoice, facts: Facts) -> PosteriorReport:
    """Writes the arrays, then `posterior.json`, which names them: a result exists once the JSON does."""
    arrays = keep(out, "posterior", choice.model.save(choice.picked).arrays)
    report = posterior_report(choice, facts)
    write_json(out / RESULT, report)
    drop_others(out, "posterior", arrays)
    return report


def posterior_report(choice: PosteriorChoice, facts: Facts) -> PosteriorReport:
    """What a choice of worlds came to, as `posterior.json` has it."""
    posterior, worlds = choice.picked, chosen_worlds(choice, choice.picked)
    kept = choice.model.save(posterior)
    saved = SavedWorlds(
        arrays=name_of("posterior", pack(kept.arrays)),
        model=choice.model.name,
        rest=kept.rest,
        folds=posterior.folds,
        members=posterior.members,
        task=task_report(posterior.task),
    )
    return PosteriorReport(
        **{**vars(facts), "notes": tuple(choice.notes)},
        settings=worlds.settings,
        chosen=worlds.chosen,
        reference=choice.reference,
        pil=loss_report(choice.pil, posterior.task, whole=True),
        noise_scale=worlds.noise_scale,
        replay=worlds.replay,
        readings=worlds.readings,
        chance=tuple(np.asarray(choice.share, float).tolist()),
        world=saved,
    )


def chosen_worlds(choice: PosteriorChoice, worlds: Posterior) -> ChosenWorlds:
    """The settings of worlds that were tried, and the chosen one's."""
    tried = tuple(
        TriedWorlds(**vars(loss_report(score, worlds.task)), setting=hypers.asdict(point), nll=nll)
        for point, nll, score in zip(choice.points, choice.nll, choice.scores, strict=True)
    )
    curve = None if choice.replay is None else from_json(Curve, to_json(choice.replay))
    return ChosenWorlds(
        settings=tried,
        chosen=choice.index,
        replay=curve,
        noise_scale=float(np.mean(choice.share)),
        readings=choice.readings,
    )


def loss_report(score: PIL, task: Task, whole: bool = False) -> Loss:
    """A PIL's sums, and with `whole` each output's numbers too."""
    outputs = {
        name: tuple(np.asarray(getattr(score, name)).tolist())
        for name in (PIL._fields if whole else ())
        if np.ndim(getattr(score, name)) == 1
    }
    return Loss(
        error=score.e,
        spread=score.v,
        noise=float(np.mean(score.noise)),
        total=score.total,
        imbalance=score.imbalance,
        calibrated=bool(score.calibrated),
        units=int(score.units),
        word=score.word,
        bound=score.bound(task.discount),
        outputs=outputs,
        released=score.released if whole else {},
    )


def pil_dict(score: PIL, task: Task, whole: bool = False) -> Json:
    """A PIL as JSON."""
    return to_json(loss_report(score, task, whole))


def task_report(task: Task) -> TaskReport:
    """A task as reports have it; `task_of` reads it back."""
    box = task.actions
    space = Space(choices=box.n) if isinstance(box, Discrete) else Space(low=tuple(box.low), high=tuple(box.high))
    return TaskReport(horizon=task.horizon, discount=task.discount, actions=space)


def task_of(report: TaskReport) -> Task:
    space = report.actions
    actions = Box(space.low, space.high) if space.choices is None else Discrete(space.choices)
    return Task(report.horizon, report.discount, actions)


def read_report(kind: type[Report], path: Path) -> Report | None:
    """The report in a file, or None if there is none; BadInput if it is something else."""
    plain = read_json(path)
    return None if plain is None else from_json(kind, upgraded(plain), str(path))


def load_posterior(out: str | os.PathLike[str], model: WorldModel | None = None) -> Posterior:
    """The posterior that `offing posterior` left in a folder; `model` is needed if it is nobody's by name."""
    folder = Path(out)
    report = finished(folder)
    if report is None:
        raise BadInput(f"{folder}: holds no finished posterior ({RESULT} is missing)")
    try:
        world = report.world
        saved = Saved(unpack(folder / world.arrays), world.rest)
        return (model or models.get(world.model)).load(saved, task_of(world.task))
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{folder}: the posterior in it is damaged or of another version") from None


# ---- as a table


class Table(Protocol):
    """A DataFrame of pandas, or an Arrow table where pandas is not installed."""

    def __len__(self) -> int: ...


def frame(columns: Mapping[str, list[object]]) -> Table:
    """Columns as a DataFrame of pandas, or as an Arrow table where pandas is not installed."""
    try:
        import pandas
    except ImportError:
        pass
    else:
        return pandas.DataFrame(dict(columns))
    try:
        import pyarrow
    except ImportError:
        raise BadInput("to_frame: needs pandas or pyarrow; pip install pandas") from None
    return pyarrow.table({name: [_cell(x) for x in column] for name, column in columns.items()})


def _cell(value: object) -> object:
    return str(value) if isinstance(value, (tuple, dict)) else value
