"""An evaluation as one page: what each policy will earn, the methods side by side, and why they differ."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from . import evaluation_figures as drawn
from . import evaluation_words as words
from .page import FACTS, environment
from .verdict import number


def evaluation_page(told: dict[str, Any]) -> str:
    """The HTML page of an evaluation as `evaluation.json` has it."""
    pictures = {"past": drawn.past(told), "far": drawn.far(told), "loss": drawn.loss(told)}
    return (
        environment()
        .get_template("evaluation.html.jinja")
        .render(
            told=told,
            policies=[_policy(told, name) for name in told["estimates"]],
            checks=[_check(check) for check in told["checks"] if check["about"] in ("log", "worlds")],
            past=words.past(told),
            far=words.far(told),
            pictures={name: Markup(text) for name, text in pictures.items() if text},
            blocks=_blocks(told),
            facts=_facts(told),
        )
    )


def _policy(told: dict[str, Any], name: str) -> dict[str, Any]:
    methods = told["estimates"][name]
    mine = [check for check in told["checks"] if check["about"] == name]
    caution = [
        check for check in told["checks"] if not check["passed"] and check["about"] in ("log", "worlds", name)
    ]
    conformal = methods["predictive"]["conformal"]
    pictures = {"methods": drawn.methods(told, name), "width": drawn.width(told, name)}
    return {
        "name": name,
        "tone": "unsure" if caution else "go",
        "headline": words.headline(told, name),
        "cautions": len(caution),
        "checks": [_check(check) for check in mine],
        "table": _table(methods),
        "explained": [one["explained"] for method, one in methods.items() if method != "predictive"],
        "missing": words.missing(told, name),
        "notes": {method: one["notes"] for method, one in methods.items() if one["notes"]},
        "more": words.more(told, name),
        "conformal": None if conformal is None else " to ".join(map(number, conformal["interval"])),
        "pictures": {kind: Markup(text) for kind, text in pictures.items() if text},
    }


def _check(check: dict[str, Any]) -> dict[str, str]:
    sentence = check["sentence"]
    kind = "yes" if check["passed"] else "no"
    return {"question": check["question"], "answer": sentence[:1].upper() + sentence[1:], "kind": kind}


def _table(methods: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for method, one in methods.items():
        earned = one["return"]
        agrees = "" if method == "predictive" else "agrees" if one["agrees"] else "differs"
        well = "" if method == "predictive" else "well" if not one["faults"] else "see below"
        rows.append([method, *_cells(one), *(_cells(earned) if earned else ("", "", "")), agrees, well])
    head = ["method", "value", "low", "high", "return", "low", "high", "beside the worlds", "health"]
    return {"head": head, "rows": rows}


def _cells(one: dict[str, Any]) -> tuple[str, str, str]:
    low, high = one["interval"]
    return number(one["median"]), number(low), number(high)


def _blocks(told: dict[str, Any]) -> dict[str, Any] | None:
    blocks = told["backtest"].get("blocks")
    if not blocks:
        return None
    rows = [
        [
            f"{b['first']} to {b['last']}",
            str(b["episodes"]),
            *map(number, (b["logged"], b["predicted"], *b["interval"])),
        ]
        for b in blocks
    ]
    return {"head": ["among episodes", "of them", "logged", "foretold", "low", "high"], "rows": rows}


def _facts(told: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [(label, str(told[name])) for name, label in FACTS.items() if told.get(name) is not None]
    tried = f"{len(told['posterior']['settings'])} of the posterior"
    return [
        *facts,
        ("rows", number(told["rows"])),
        ("settings tried", tried),
        ("seconds", number(told["seconds"])),
    ]
