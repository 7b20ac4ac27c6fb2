"""Results read back from the folder that a run left, with all that they can do."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from ..data import Log
from ..report.actor import Actor, load_actor
from ..report.posterior_page import PAGE as POSTERIOR_PAGE
from ..report.posterior_page import posterior_page
from ..report.reports import PosteriorReport, Predicted, SorelReport, TorelReport
from ..report.results import estimate_of, read_result
from ..report.store import RESULT as POSTERIOR
from ..report.store import finished, load_posterior, unpack, write
from ..types import BadInput, Posterior
from ..value.estimate import ValueEstimate
from .results import Explains, PosteriorResult, Saver, SorelResult, TorelResult

WithLog = TypeVar("WithLog", bound=Explains)


def with_log(result: WithLog | None, log: Log) -> WithLog | None:
    """A result that was read from a folder, with the log that was given."""
    return None if result is None else replace(result, log=log)


def read_sorel(folder: Path) -> SorelResult | None:
    """The result that SOReL left in a folder, or None if there is none."""
    report = read_result(folder)
    if report is None:
        return None
    if not isinstance(report, SorelReport):
        raise BadInput(f"{folder}: holds the result of another run; choose another folder, or pass --fresh")
    return SorelResult(**vars(report), **_live(folder, report)._asdict())


def read_torel(folder: Path) -> TorelResult | None:
    """The result that TOReL left in a folder, or None if there is none."""
    report = read_result(folder)
    if report is None:
        return None
    if not isinstance(report, TorelReport):
        raise BadInput(f"{folder}: holds the result of another run; choose another folder, or pass --fresh")
    return TorelResult(**vars(report), **_live(folder, report)._asdict())


def read_finished(folder: Path) -> SorelResult | TorelResult:
    """The result that SOReL or TOReL left in a folder; BadInput if there is none."""
    report = read_result(folder)
    if report is None:
        raise BadInput(f"{folder}: holds no finished result")
    kind = SorelResult if isinstance(report, SorelReport) else TorelResult
    return kind(**vars(report), **_live(folder, report)._asdict())


def read_posterior(folder: Path) -> PosteriorResult | None:
    """The posterior in a folder, or None if there is none."""
    report = finished(folder)
    if report is None:
        return None
    saver = lambda to: _copy_posterior(folder, report, to)
    return PosteriorResult(**vars(report), worlds=load_posterior(folder), saver=saver)


def _copy(source: Path, folder: Path) -> None:
    """The files of a finished run in another folder; the JSON last, since a result exists once that does."""
    names = [item for item in sorted(source.iterdir()) if item.is_file() and not item.name.startswith(".")]
    folder.mkdir(parents=True, exist_ok=True)
    for item in sorted(names, key=lambda item: item.suffix == ".json"):
        shutil.copyfile(item, folder / item.name)


def _copy_posterior(folder: Path, report: PosteriorReport, to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    write(to / POSTERIOR_PAGE, posterior_page(report).encode())
    for name in (report.world.arrays, POSTERIOR):
        shutil.copyfile(folder / name, to / name)


class _Live(NamedTuple):
    """The fields of a result that its JSON does not hold."""

    policy: Actor
    worlds: Posterior
    estimate: ValueEstimate
    saver: Saver


def _live(folder: Path, report: Predicted) -> _Live:
    try:
        returns = unpack(folder / report.episodes)["return"]
    except (OSError, ValueError, KeyError):
        raise BadInput(f"{folder}: the result in it is damaged; --fresh runs it again") from None
    return _Live(
        policy=load_actor(folder),
        worlds=load_posterior(folder),
        estimate=estimate_of(report.returns, returns),
        saver=lambda to: _copy(folder, to),
    )
