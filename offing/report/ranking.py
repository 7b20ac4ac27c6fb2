"""What TOReL found, on disk: every trial, the chosen policy, the page; whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from .. import hypers
from ..tune.systems import Ranking
from ..tune.trials import Trial
from .figures import shown
from .ranking_page import order, ranking_page, varied
from .results import PAGE, RESULT, choice_dict, keep_episodes, policy_dict, predicted_dict
from .store import drop_others, pil_dict, save_posterior, write, write_json
from .verdict import number

ROWS = 12  # trials that a terminal is shown


def save_ranking(
    out: Path, result: Ranking, level: float, facts: dict[str, Any], seconds: dict[str, float]
) -> dict[str, Any]:
    """Writes posterior, policy, episodes and page, then `result.json`: a result exists once that does.

    `seconds` are those that each planner's trials took together.
    """
    task, best = result.worlds.task, result.trials[result.index]
    save_posterior(out, result.posterior._replace(picked=result.worlds), facts)
    episodes = keep_episodes(out, result.predicted)
    policy = policy_dict(out, result.picked, best.planner, [hypers.asdict(best.setting)], 0, result.worlds)
    told = {
        "system": result.system,
        "promise": result.promise,
        "select": result.select,
        **facts,
        "posterior": choice_dict(result.posterior, result.worlds),
        "trials": [trial_dict(trial, level, _part(trial, result, seconds)) for trial in result.trials],
        "chosen": result.index,
        "indistinguishable": list(result.alike),
        "saved": result.saved,
        "policy": policy,
        "pil": pil_dict(result.pil, task, whole=True),
        **predicted_dict(result.predicted, level),
        "episodes": episodes,
        "behaviour": result.behaviour._asdict(),
        "notes": list(result.notes),
        "online_samples": 0,
    }
    write(out / PAGE, ranking_page(told).encode())
    write_json(out / RESULT, told)
    drop_others(out, "policy", policy["arrays"])
    drop_others(out, "episodes", episodes)
    return told


def trial_dict(trial: Trial, level: float, seconds: float) -> dict[str, Any]:
    """A trial as JSON."""
    return {
        "planner": trial.planner,
        "setting": hypers.asdict(trial.setting),
        "seed": trial.seed,
        "score": _finite(trial.score),
        "interval": [_finite(end) for end in trial.estimate.interval(level)],
        "predicted": _finite(trial.returns.median),
        "value": _finite(trial.value.median),
        "updates": round(
            trial.share * trial.setting.updates * getattr(trial.setting, "every", 1)
        ),  # gradient steps
        "share": trial.share,
        "seconds": seconds,
    }


def _finite(x: float) -> float | None:
    """None for what JSON has no number for: a trial that diverged."""
    return float(x) if np.isfinite(x) else None


def _part(trial: Trial, result: Ranking, seconds: dict[str, float]) -> float:
    """A trial's part of the time that its planner took, by its part of the updates."""
    whole = sum(each.share for each in result.trials if each.planner == trial.planner)
    return round(seconds.get(trial.planner, 0.0) * trial.share / whole, 2)


def trials_table(told: dict[str, Any], most: int = ROWS) -> Table:
    """The best of the trials, for a terminal."""
    trials = told["trials"]
    names = varied(trials)
    table = Table(title=None, box=None, header_style="bold")
    for head in ("", "planner", *names, "seed", "score", "interval", ""):
        table.add_column(head, justify="left" if head in ("", "planner") else "right", no_wrap=True)
    for place, i in enumerate(order(told)[:most]):
        trial = trials[i]
        mark = "chosen" if i == told["chosen"] else "alike" if i in told["indistinguishable"] else ""
        low, high = trial["interval"]
        cells = [shown(trial["setting"][name]) if name in trial["setting"] else "" for name in names]
        reach = f"{number(low)} … {number(high)}"
        row = [str(place + 1), trial["planner"], *cells, str(trial["seed"]), number(trial["score"]), reach, mark]
        table.add_row(*row)
    return table


def summary(told: dict[str, Any], out: Path) -> list[str]:
    """What was found, in sentences."""
    earned, loss, best = told["return"], told["pil"], told["trials"][told["chosen"]]
    alike, low, high = len(told["indistinguishable"]), *earned["interval"]
    setting = ", ".join(f"{k} {shown(v)}" for k, v in best["setting"].items())
    said = [
        f"{told['data']}: {told['rows']:,} rows, seed {told['seed']}, {len(told['trials'])} trials of "
        f"{', '.join(dict.fromkeys(t['planner'] for t in told['trials']))} ({told['space']}), "
        f"{told['seconds']:.0f} s",
        f"PIL {loss['total']:.3g} nats a step = error {loss['error']:.3g} + spread {loss['spread']:.3g}: "
        f"{loss['word']}",
        f"chosen: {best['planner']} ({setting})",
        f"in held-out worlds it earns {earned['median']:,.1f} ({low:,.1f} … {high:,.1f}); logged behaviour "
        f"{told['behaviour']['mean']:,.1f}",
    ]
    if alike:
        said.append(f"{alike} other trials cannot be told apart from it offline: their intervals overlap its own")
    if told["saved"]:
        said.append(f"halving spared {told['saved']:.0%} of all updates")
    if told["select"] != "predictive":
        said.append(f"ranked by {told['select']}, for comparison; worlds were not asked")
    said += [f"note: {note}" for note in told["notes"]]
    said.append("this ranks settings; it does not promise what they earn (for that: offing sorel)")
    return [*said, f"{out / PAGE}  online samples used: {told['online_samples']}"]
