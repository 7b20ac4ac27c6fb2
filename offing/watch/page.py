"""What was watched, as `watch.json` and as a page with the curves."""

from __future__ import annotations

from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from ..report import figures
from ..report.jsonable import to_json
from ..report.page import environment
from ..report.store import write, write_json
from .columns import ERROR as COLUMN_ERROR
from .earning import ERROR
from .watch import Watched

TONES = {"KEEP": "go", "STOP": "stop"}
DRAWN = 8  # columns that one picture shows
HIGHEST = 4.0  # times what settles a question: evidence beyond that is drawn there


def save(out: Path, deployment: Watched, name: str) -> list[Path]:
    """Writes `watch.json` and `watch.html` into a folder."""
    write_json(out / "watch.json", {"data": name, **to_json(deployment)})  # type: ignore[dict-item]
    write(out / "watch.html", page(deployment, name).encode())
    return [out / "watch.json", out / "watch.html"]


def page(deployment: Watched, name: str) -> str:
    """One page that stands alone."""
    made = environment()
    loaders = [jinja2.PackageLoader("offing.watch", "."), *([made.loader] if made.loader else [])]
    made.loader = jinja2.ChoiceLoader(loaders)
    pictures = {"returns": returns(deployment), "evidence": evidence(deployment), "columns": columns(deployment)}
    return made.get_template("watch.html.jinja").render(
        deployment=deployment,
        name=name,
        tone=TONES.get(deployment.word, "unsure"),
        sentences=[sentence[0].upper() + sentence[1:] + "." for sentence in deployment.sentences()[:-1]],
        pictures={key: Markup(text) for key, text in pictures.items()},
    )


def returns(deployment: Watched) -> str:
    """Returns as they came, their running mean, the promised interval and the baseline."""
    got, promise = np.array(deployment.returns), deployment.promise
    times = np.arange(1, len(got) + 1)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axhspan(promise.low, promise.high, color=figures.BLUE, alpha=0.12, linewidth=0, label="promised")
        axes.axhline(promise.baseline, color=figures.ORANGE, linestyle=(0, (4, 2)), label="baseline")
        axes.scatter(times, got, s=10, color=figures.MUTED, linewidths=0, label="episodes")
        axes.plot(times, np.cumsum(got) / times, color=figures.INK, label="mean so far")
        axes.set(xlabel="episode", ylabel="return")
        figures.plain_axis(axes.xaxis)
        figures.plain_axis(axes.yaxis)
        figure.legend(frameon=False, loc="outside upper left", ncols=4, columnspacing=1.2)

    return figures.svg("returns", "Returns of the deployed policy, and what was promised", 560, 260, paint)


def evidence(deployment: Watched) -> str:
    """Evidence that it earns too little, and that it beats the baseline, after every episode."""
    curves = np.array(deployment.evidence).reshape(-1, 2) / np.log(10)
    return _curves(
        "evidence",
        "Evidence after every episode",
        {"earns less than promised": curves[:, 0], "beats the baseline": curves[:, 1]},
        -np.log10(ERROR),
    )


def columns(deployment: Watched) -> str:
    """Evidence that a column has changed, for those that have most of it."""
    most = sorted(deployment.columns, key=lambda name: -max(deployment.columns[name], default=0.0))[:DRAWN]
    curves = {name: np.array(deployment.columns[name]) / np.log(10) for name in most}
    due = np.log10(3 * len(deployment.columns) / COLUMN_ERROR)
    return _curves("columns", "Evidence that a column has changed", curves, due)


def _curves(name: str, title: str, curves: dict[str, np.ndarray], due: float) -> str:
    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for label, curve in curves.items():
            held = np.minimum(curve, HIGHEST * due)
            axes.plot(np.arange(1, len(curve) + 1), held, label=label, linewidth=1.4)
        axes.axhline(due, color=figures.ORANGE, linestyle=(0, (4, 2)))
        axes.set(xlabel="episode", ylabel="evidence (powers of ten)")
        figures.plain_axis(axes.xaxis)
        figures.plain_axis(axes.yaxis)
        figure.legend(frameon=False, loc="outside upper left", ncols=3, columnspacing=1.2)

    return figures.svg(name, title, 560, 260, paint)
