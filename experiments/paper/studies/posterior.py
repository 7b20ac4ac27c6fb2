"""PIL, error and spread against rows, and what tuning by PIL chooses beside the best in hindsight and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from offing.data import Log
from offing.online.play import task_of
from offing.posterior.models.ensemble import Hypers
from offing.tune.candidates import pad_starts
from offing.types import Policy, Posterior
from offing.value.predictive import predictive

from ..parts import Numbers, Part, Place, Settings
from .hands import hands
from .tasks import BRAX, EVERY, GYMNAX, Source
from .truth import earn
from .worlds import about, fit, loss, settings_of, varied

LEVEL = 0.9
COPIES = 64  # episodes in every world
FULL_ROWS = {"gymnax": (500, 1_000, 3_000, 10_000), "brax": (20_000, 50_000, 200_000, 500_000)}
TUNED_ROWS = (1_000, 5_000)
SEEDS = (0, 1, 2)


def parts(scale: str) -> list[Part]:
    """A log's worlds each (`rows-...`), and its settings one by one, judged by what comes (`tuned-...`)."""
    if scale == "smoke":
        toy = EVERY["toy"]
        return [rows_part(toy, 400, 0, scale, 10), *tuned_parts("smoke", "toy", 400, 0, 20)]
    listed = [rows_part(s, n, seed, "quick", 60) for s in GYMNAX for n in FULL_ROWS["gymnax"] for seed in SEEDS]
    for source in GYMNAX:
        for rows in TUNED_ROWS:
            listed += [part for seed in SEEDS for part in tuned_parts("quick", source.name, rows, seed, 200)]
    listed += [rows_part(s, n, 0, "large", 60) for s in BRAX for n in FULL_ROWS["brax"]]
    return listed


def rows_part(source: Source, rows: int, seed: int, scale: str, seconds: float) -> Part:
    settings: Settings = {"task": source.name, "rows": rows, "seed": seed, "scale": scale}
    hardware = "GPU" if scale == "large" else "CPU"
    name = f"rows-{source.name}-{rows}-{seed}"
    return Part("posterior", name, "plan", hardware, seconds, settings, of_rows, source.needs, (), source.brought)


def tuned_parts(scale: str, task: str, rows: int, seed: int, seconds: float) -> list[Part]:
    """Settings one by one, and the truth of the policies that they are judged by."""
    settings = {"task": task, "rows": rows, "seed": seed, "scale": scale}
    source, env = EVERY[task], EVERY[task].env
    name = f"{task}-{rows}-{seed}"
    episodes: Settings = {"env": env, "episodes": 8 if scale == "smoke" else 400, "seed": 1_000}
    return [
        Part("posterior", f"hands-{env}", "collect", "CPU", 5, episodes, truth_of_hands),
        Part(
            "posterior",
            f"tuned-{name}",
            "plan",
            "CPU",
            seconds,
            settings,
            tuned,
            (f"posterior/hands-{env}", *source.needs),
        ),
    ]


def of_rows(place: Place, settings: Settings) -> Numbers:
    """What `offing posterior LOG --rows N --seed S` finds."""
    source, rows, seed = EVERY[str(settings["task"])], settings["rows"], settings["seed"]
    log = source.load(place, rows, seed)
    return about(fit(place, log, seed, str(settings["scale"])), log.task)


def truth_of_hands(place: Place, settings: Settings) -> Numbers:
    """What the written controllers truly earn."""
    del place
    env, pool = str(settings["env"]), hands(str(settings["env"]))
    earned = earn(pool, task_of(env)[0], env, settings["episodes"], settings["seed"])
    return earned.columns()


def tuned(place: Place, settings: Settings) -> Numbers:
    """Every setting's worlds alone, judged by what they say of written controllers; and what PIL chooses."""
    task, rows, seed = str(settings["task"]), settings["rows"], settings["seed"]
    scale, source = str(settings["scale"]), EVERY[task]
    log, pool = source.load(place, rows, seed), hands(source.env)
    truth = place.read(f"posterior/hands-{source.env}")["numbers"]
    true = np.array(truth["return"])
    tried = settings_of(scale, rows)
    chosen = fit(place, log, seed, scale, tried).choice
    cases = [("tried", setting) for setting in tried] + [(name, one) for name, one in defaults(scale, rows)]
    names = varied([setting for _, setting in cases])
    judged = []
    for (kind, setting), differs in zip(cases, names, strict=True):
        fitted = fit(place, log, seed, scale, [setting])
        error, inside = off(fitted.worlds, pool, log, true)
        score = loss(fitted.choice.pil, log.task)
        picked = kind == "tried" and same(setting, chosen.points[chosen.index])
        judged.append(
            {"kind": kind, "setting": differs, **score, "nll": fitted.choice.nll[0], "off": error,
             "inside": inside, "chosen": picked}
        )  # fmt: skip
    return {"tried": judged, "range": float(np.ptp(true)), "policies": len(pool)}


def same(setting: Any, chosen: Any) -> bool:
    """Whether a setting is the chosen one, whose learning rate the choice may have changed."""
    if not hasattr(setting, "lr"):
        return setting == chosen
    return replace(setting, lr=chosen.lr) == chosen


def defaults(scale: str, rows: int) -> list[tuple[str, Any]]:
    """Settings that nobody chose: the library's own, and the paper's for Gymnax with as many updates as ours."""
    if scale == "smoke":
        return []
    updates = settings_of(scale, rows)[0].updates
    paper = Hypers(updates=updates, batch_size=64, members=7, elites=5, linear=0.0, bootstrap=0.0, beta=0.0)
    return [("library default", Hypers(updates=updates)), ("paper's table", paper)]


def off(worlds: Posterior, pool: Sequence[Policy], log: Log, true: np.ndarray) -> tuple[float, float]:
    """Mean absolute error of the policies' returns, as a share of their range, and the share inside 90%."""
    judge = pad_starts(worlds)
    said = [predictive(jax.random.key(7), policy, judge, log.data, copies=COPIES).returns for policy in pool]
    medians = np.array([one.median for one in said])
    pairs = np.array([one.interval(LEVEL) for one in said])
    inside = (pairs[:, 0] <= true) & (true <= pairs[:, 1])
    return float(np.mean(np.abs(medians - true)) / np.ptp(true)), float(inside.mean())
