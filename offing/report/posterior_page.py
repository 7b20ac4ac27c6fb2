"""A posterior as one page: how well the worlds know how wrong they are, and which settings were tried."""

from __future__ import annotations

from ..wording import number
from . import figures
from .labels import differing, shown
from .page import environment, pictures
from .reports import ChosenWorlds, PosteriorReport
from .table import summary

PAGE = "posterior.html"
HEAD = ("NLL", "E", "V", "PIL", "imbalance", "")


def posterior_page(report: PosteriorReport) -> str:
    """The HTML page of a posterior."""
    worlds = ChosenWorlds(
        settings=report.settings, chosen=report.chosen, replay=report.replay, noise_scale=report.noise_scale
    )
    names = differing([tried.setting for tried in report.settings])
    rows = [
        [
            *(number(each) for each in (tried.nll, tried.error, tried.spread, tried.total)),
            f"{tried.imbalance:+.2f}",
            tried.word,
            *(shown(tried.setting.get(name)) for name in names),
        ]
        for tried in report.settings
    ]
    return (
        environment()
        .get_template("posterior.html.jinja")
        .render(
            **pictures(
                {"calibration": lambda: figures.calibration(worlds), "replay": lambda: figures.replay(worlds)}
            ),
            report=report,
            sentences=summary(report)[:-1],
            tried={"head": [*HEAD, *names], "rows": rows, "chosen": report.chosen},
            smoke=report.scale == "smoke",
        )
    )
