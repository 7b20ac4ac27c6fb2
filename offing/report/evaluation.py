"""What an evaluation found: `evaluation.json` and its page, whole or not at all; and on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from ..tune.evaluate import Evaluation
from ..value.backtest import Backtest
from ..value.estimate import Judged, ValueEstimate
from . import evaluation_words as words
from .disagree import apart, explained, faults
from .evaluation_page import evaluation_page
from .health import checks
from .results import choice_dict
from .store import pil_dict, read_json, write, write_json
from .verdict import number

RESULT, PAGE = "evaluation.json", "evaluation.html"


def found(out: Path) -> dict[str, Any] | None:
    """The evaluation in a folder, or None if there is none."""
    return read_json(out / RESULT)


def save_evaluation(out: Path, result: Evaluation, facts: dict[str, Any]) -> dict[str, Any]:
    """Writes the page, then `evaluation.json`: a result exists once that does."""
    told = evaluation_dict(result, facts)
    write(out / PAGE, evaluation_page(told).encode())
    write_json(out / RESULT, told)
    return told


def evaluation_dict(result: Evaluation, facts: dict[str, Any]) -> dict[str, Any]:
    """An evaluation as JSON; what is not a finite number is None."""
    task = result.worlds.task
    told = {
        "system": "evaluate",
        **facts,
        "level": result.level,
        "task": {"horizon": task.horizon, "discount": task.discount},
        "estimates": {name: _estimates(name, result) for name in result.estimates},
        "left_out": result.left_out,
        "backtest": _backtest(result),
        "horizon": _horizon(result),
        "more_data": _more(result),
        "checks": [check._asdict() for check in checks(result)],
        "behaviour": result.behaviour._asdict(),
        "pil": pil_dict(result.pil, task, whole=True),
        "posterior": choice_dict(result.posterior, result.worlds),
        "notes": list(result.notes),
        "online_samples": 0,
    }
    return plain(told)


def plain(value: Any) -> Any:
    """Numbers as Python's and as JSON has them: None for what is not finite."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _estimates(name: str, result: Evaluation) -> dict[str, Any]:
    judged, sentences = result.estimates[name], explained(name, result)
    told = {}
    for method, one in judged.items():
        told[method] = {
            **_value(one.estimate, result.level),
            "return": None if one.returns is None else _value(one.returns, result.level),
            "health": one.health,
            "faults": faults(method, one),
            "notes": list(one.notes),
        }
        if method != "predictive":
            told[method] |= {
                "agrees": not apart(one, judged["predictive"], result.level),
                "explained": sentences[method],
            }
    told["predictive"]["conformal"] = _conformal(judged["predictive"], result)
    return told


def _value(estimate: ValueEstimate, level: float) -> dict[str, Any]:
    return {
        "median": estimate.median,
        "interval": list(estimate.interval(level)),
        "level": level,
        "deviation": estimate.deviation,
        "range": list(estimate.range),
    }


def _conformal(judged: Judged, result: Evaluation) -> dict[str, Any] | None:
    """The return's interval by the factor that makes those of the log's own behaviour hold."""
    if not isinstance(result.backtest, Backtest) or judged.returns is None:
        return None
    by = result.backtest.conformal
    return {"interval": list(by.interval(judged.returns)), "level": by.level} if np.isfinite(by.factor) else None


def _backtest(result: Evaluation) -> dict[str, Any]:
    past = result.backtest
    if not isinstance(past, Backtest):
        return {"left_out": past}
    blocks = [
        {
            **{field: getattr(block, field) for field in ("fold", "first", "last", "episodes", "logged")},
            "predicted": block.predicted.median,
            "interval": list(block.predicted.interval(past.level)),
        }
        for block in past.blocks
    ]
    by = past.conformal
    return {
        "blocks": blocks,
        "inside": past.inside,
        "level": past.level,
        "held": past.held,
        "bias": past.bias,
        "error": past.error,
        "conformal": {"factor": by.factor, "policies": by.policies, "note": by.note},
    }


def _horizon(result: Evaluation) -> dict[str, Any] | None:
    far = result.horizon
    if far is None:
        return None
    return {
        "steps": far.steps,
        "error": far.error,
        "spread": far.spread,
        "agree": far.agree,
        "trusted": far.trusted,
        "largest": far.last,
        "share": far.share,
    }


def _more(result: Evaluation) -> dict[str, Any]:
    found = result.more_data
    widths = {
        name: {
            "points": [{"rows": n, "half_width": w} for n, w in zip(width.rows, width.halves, strict=True)],
            "law": {"slope": np.sqrt(width.law.slope), "floor": np.sqrt(width.law.floor)},
            "now": width.now,
            "target": width.target,
            "rows": width.needed.rows,
            "between": [width.needed.low, width.needed.high],
        }
        for name, width in found.widths.items()
    }
    return {
        "extrapolation": True,
        "points": [
            {"rows": n, "pil": loss.total, "error": loss.e, "spread": loss.v}
            for n, loss in zip(found.rows, found.pil, strict=True)
        ],
        "law": found.law._asdict(),
        "slope": found.slope,
        "widths": widths,
    }


# ---- on a terminal


def estimates_table(told: dict[str, Any]) -> Table:
    """Policies by methods: discounted value, undiscounted return, and whether the method agrees and is well."""
    level = f"{told['level']:.0%}"
    table = Table(title=None, box=None, header_style="bold")
    for head in ("policy", "method", "value", level, "return", level, "worlds", "health"):
        left = head in ("policy", "method", "worlds", "health")
        table.add_column(head, justify="left" if left else "right", overflow="fold", no_wrap=head != "policy")
    for name, methods in told["estimates"].items():
        for place, (method, one) in enumerate(methods.items()):
            agrees = "" if method == "predictive" else "agrees" if one["agrees"] else "differs"
            well = "" if method == "predictive" else "see below" if one["faults"] else "well"
            row = [*_cells(one), *(_cells(one["return"]) if one["return"] else ("", "")), agrees, well]
            table.add_row("" if place else name, method, *row)
        for method in told["left_out"][name]:
            table.add_row("", method, "–", "", "", "", "", "left out")
    return table


def _cells(one: dict[str, Any]) -> tuple[str, str]:
    low, high = one["interval"]
    return number(one["median"]), f"{number(low)} … {number(high)}"


def summary(told: dict[str, Any], out: Path) -> list[str]:
    """What was found, in sentences."""
    loss = told["pil"]
    said = [
        f"{told['data']}: {told['rows']:,} rows, seed {told['seed']}, {len(told['posterior']['settings'])} "
        f"settings of worlds ({told['scale']}), {told['seconds']:.0f} s",
        f"PIL {loss['total']:.3g} nats a step = error {loss['error']:.3g} + spread {loss['spread']:.3g}: "
        f"{loss['word']}",
        f"value: discounted by {told['task']['discount']:g}, which all methods give; return: what an episode of "
        f"at most {told['task']['horizon']} steps adds up to",
    ]
    for name, methods in told["estimates"].items():
        said.append(words.headline(told, name))
        said += [f"  {one['explained']}" for method, one in methods.items() if method != "predictive"]
        said += [f"  {sentence}" for sentence in words.missing(told, name)]
        said.append(f"  {words.more(told, name)}")
    said += [*words.past(told), words.far(told)]
    failed = [check for check in told["checks"] if not check["passed"]]
    for check in failed:
        about = "" if check["about"] in ("log", "worlds") else f"{check['about']}: "
        said.append(f"CAUTION {about}{check['question']} {check['sentence']}")
    if not failed:
        said.append(f"all {len(told['checks'])} checks passed")
    said += [f"note: {note}" for note in told["notes"]]
    return [*said, f"{out / PAGE}  online samples used: {told['online_samples']}"]
