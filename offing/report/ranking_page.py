"""A ranking as one page: the first setting, those indistinguishable from it, and what each one changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ..value.support import OUTSIDE
from ..wording import number, percent
from . import canvas, figures
from .canvas import BLUE, LINE, MUTED, ORANGE
from .labels import differing, shown
from .page import FACTS, Table, environment, pictures, support_rows
from .reports import TorelReport, TriedPolicy

MOST = 40  # trials that a picture lists


def ranking_page(result: TorelReport) -> str:
    """The HTML page of a ranking as `result.json` has it."""
    best = result.trials[result.chosen]
    drawn = {
        "ranking": lambda: ranking(result),
        "effects": lambda: effects(result),
        "calibration": lambda: figures.calibration(result.posterior),
        "replay": lambda: figures.replay(result.posterior),
    }
    return (
        environment()
        .get_template("ranking.html.jinja")
        .render(
            result=result,
            best=best,
            setting=", ".join(f"{k.replace('_', ' ')} {shown(v)}" for k, v in best.setting.items()),
            sentences=sentences(result),
            reasons=reasons(result),
            **pictures(drawn),
            trials=_table(result),
            support=support_rows(result.support),
            facts=_facts(result),
        )
    )


def order(result: TorelReport) -> list[int]:
    """The trials from best to worst; those that halving stopped come after those that it did not."""
    trials = result.trials
    return sorted(range(len(trials)), key=lambda i: (-trials[i].share, *_last(trials[i].score)))


def _last(score: float | None) -> tuple[bool, float]:
    """How a score sorts, the highest first and none at the end."""
    return score is None, -(score or 0.0)


def varied(trials: Sequence[TriedPolicy]) -> list[str]:
    """Names of the hyperparameters in which trials of one planner differ, for all planners."""
    names: dict[str, None] = {}
    for planner in dict.fromkeys(trial.planner for trial in trials):
        names |= dict.fromkeys(differing([t.setting for t in trials if t.planner == planner]))
    return list(names)


def sentences(result: TorelReport) -> list[str]:
    """What came first, by how much, and what the number is good for."""
    best, indistinguishable = result.trials[result.chosen], len(result.indistinguishable)
    lines = [
        f"Of {len(result.trials)} trials this one earns most in worlds learned from the log: "
        f"{number(best.score)}, where the logged behaviour earned {number(result.behaviour.mean)}."
    ]
    if indistinguishable:
        others = "one other trial" if indistinguishable == 1 else f"{indistinguishable} other trials"
        lines.append(f"It is indistinguishable offline from {others}: their intervals overlap.")
    else:
        lines.append("No other setting's interval reaches it.")
    lines.append("This ranks settings. It does not promise what they earn, and never says GO.")
    return lines


def reasons(result: TorelReport) -> list[dict[str, str]]:
    """Whether the ranking can be trusted, as questions with answers."""
    loss, outside = result.pil, result.support.outside
    low, high = result.trials[result.chosen].interval
    yes = lambda good: "yes" if good else "no"
    return [
        {
            "question": "Do the worlds know how wrong they are?",
            "answer": f"{loss.word}: error {number(loss.error)}, spread {number(loss.spread)} nats.",
            "kind": yes(loss.calibrated),
        },
        {
            "question": "Does the chosen policy stay inside the log?",
            "answer": f"{percent(outside)} of its imagined steps lie outside.",
            "kind": yes(outside <= OUTSIDE),
        },
        {
            "question": "Does the log tell the settings apart?",
            "answer": f"{len(result.indistinguishable)} of {len(result.trials) - 1} others reach into "
            f"{number(low)} to {number(high)}.",
            "kind": yes(not result.indistinguishable),
        },
    ]


def ranking(result: TorelReport) -> str:
    """Every trial's score with its interval, the best on top."""
    trials = result.trials
    placed = order(result)[:MOST]
    placed = placed if result.chosen in placed else [*placed[:-1], result.chosen]
    rows = np.arange(len(placed))
    score = canvas.drawable([trials[i].score for i in placed])
    ends = canvas.drawable([trials[i].interval for i in placed])
    labels = [f"{place + 1} {trials[i].planner}" for place, i in enumerate(placed)]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        canvas.grid(axes, "x")
        axes.hlines(rows, ends[:, 0], ends[:, 1], color=LINE, linewidth=3)
        colours = [ORANGE if i == result.chosen else BLUE for i in placed]
        axes.scatter(score, rows, s=30, c=colours, zorder=3)
        axes.axvline(result.behaviour.mean, color=MUTED, linestyle="--", linewidth=1.2)
        axes.set_yticks(rows, labels)
        axes.set(
            xlabel="predicted return (dashed: logged behaviour)",
            xlim=canvas.limits([*score, *ends.ravel(), result.behaviour.mean]),
            ylim=(len(rows) - 0.4, -0.6),
        )
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        canvas.plain_axis(axes.xaxis)

    return canvas.svg("ranking", "Every trial's predicted return", 520, 70 + 18 * len(rows), paint)


def effects(result: TorelReport) -> str | None:
    """For every hyperparameter that differs, scores against its values; None if nothing was varied."""
    trials = [trial for trial in result.trials if trial.share == 1.0]
    names = varied(trials)[:6]
    if not names:
        return None
    score = canvas.drawable([trial.score for trial in trials])

    def paint(figure: Figure) -> None:
        panels = np.atleast_1d(figure.subplots(1, len(names), sharey=True))
        for axes, name in zip(panels, names, strict=True):
            has = [i for i, trial in enumerate(trials) if name in trial.setting]
            values = [trials[i].setting[name] for i in has]
            kinds = sorted(set(values), key=lambda value: (isinstance(value, str), value))
            at = np.array([kinds.index(value) for value in values])
            canvas.grid(axes, "y")
            axes.scatter(at, score[has], s=14, color=BLUE, alpha=0.5)
            means = [np.nanmean(score[has][at == k]) for k in range(len(kinds))]
            axes.plot(np.arange(len(kinds)), means, color=ORANGE)
            axes.set_xticks(np.arange(len(kinds)), [shown(v) for v in kinds])
            axes.tick_params(axis="x", labelrotation=45 if len(kinds) > 4 else 0)
            axes.set(xlabel=name.replace("_", " "), xlim=(-0.5, len(kinds) - 0.5))
        panels[0].set_ylabel("predicted return")

    return canvas.svg("effects", "What each hyperparameter changes", 180 * len(names) + 60, 220, paint)


def _table(result: TorelReport) -> Table:
    trials, placed = result.trials, order(result)
    names = varied(trials)
    rows = []
    for i in placed:
        trial = trials[i]
        low, high = trial.interval
        cells = [shown(trial.setting[name]) if name in trial.setting else "" for name in names]
        rows.append([trial.planner, *cells, str(trial.seed), number(trial.score), number(low), number(high)])
    head = ["planner", *(name.replace("_", " ") for name in names), "seed", "score", "low", "high"]
    return Table(head, rows, placed.index(result.chosen))


def _facts(result: TorelReport) -> list[tuple[str, str]]:
    facts = [(label, str(getattr(result, name))) for name, label in FACTS.items()]
    tried = f"{len(result.posterior.settings)} of the posterior, {len(result.trials)} trials"
    more = [("rows", number(result.rows)), ("settings tried", tried), ("seconds", number(result.seconds))]
    if result.saved:
        more.append(("updates that halving spared", percent(result.saved)))
    return [*facts, *more]
