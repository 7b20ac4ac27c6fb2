"""Logs that the other studies learn from: Brax's full replays, and counterparts of D4RL's, with their curves.

D4RL's recipe (Fu et al., 2020): SAC is trained; `medium` are draws of a policy about a third as good as the last
one, `expert` those of the last one, `medium-replay` all rows of the run until it was medium. Its files hold one to
two million rows; ours hold as many as Brax's logs give, 200,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import offing
from offing.data.dataset import runs
from offing.nets import Net
from offing.online import collect
from offing.online.columns import pieces, taken
from offing.online.copies import Copies, copies
from offing.report.store import pack, save_columns, write
from offing.types import Json

from ..parts import Numbers, Part, Place, Settings, Work
from . import d4rl, sac
from .tasks import BRAX, MUJOCO, SMOKE

POINTS = 60  # of a training curve
MEDIUM = 1 / 3  # of the way from the first checkpoint to the best
SECONDS = {"brax": 150.0, "mujoco": 5_000.0, "smoke": 8.0}


def parts(scale: str) -> list[Part]:
    """A log each."""
    if scale == "smoke":
        toy, file = SMOKE
        replay = {"env": toy.env, "rows": 1_200, "seed": 0, "file": toy.file}
        run = {"env": file.env, "steps": 256, "rows": 200, "seed": 0, "file": file.file, "random": 64}
        run |= {"mix": ["medium", "expert"], "hidden": [16], "checkpoints": 4, "judged": 2, "together": 2}
        made = [_part(toy.name, "CPU", SECONDS[scale], replay, replayed)]
        return [*made, _part(file.name, "CPU", SECONDS[scale], run, like_d4rl)]
    brax = [{"env": s.env, "rows": 1_000_000, "seed": 0, "file": s.file} for s in BRAX]
    mixes = (["medium", "expert"], ["medium"], ["replay"])
    common = {"steps": 1_000_000, "rows": 200_000, "seed": 0, "random": sac.RANDOM, "checkpoints": 40}
    common |= {"hidden": [256, 256], "judged": 8, "together": 16}
    like = [{"env": s.env, "mix": mix, "file": s.file, **common} for s, mix in zip(MUJOCO, mixes, strict=True)]
    return [
        *(_part(s.name, "GPU", SECONDS["brax"], one, replayed) for s, one in zip(BRAX, brax, strict=True)),
        *(_part(s.name, "CPU", SECONDS["mujoco"], one, like_d4rl) for s, one in zip(MUJOCO, like, strict=True)),
    ]


def _part(name: str, hardware: str, seconds: float, settings: Settings, work: Work) -> Part:
    return Part("logs", name, "collect", hardware, seconds, settings, work, makes=(str(settings["file"]),))


def replayed(place: Place, settings: Settings) -> Numbers:
    """All that a learning agent did; of Brax by `offing collect brax-NAME-full-replay`."""
    env, rows, seed = str(settings["env"]), settings["rows"], settings["seed"]
    if env.startswith("brax-"):
        columns = collect.collect(f"{env}-full-replay", rows, seed)
    else:
        columns = collect.collect(env, rows, seed, policy="random")
    save_columns(place.file(str(settings["file"])), columns)
    over = columns["terminated"] | columns["truncated"]
    ends = np.flatnonzero(over)
    returns = [columns["reward"][begin : end + 1].sum() for begin, end in _spans(ends)]
    return {"rows": len(over), "episodes": len(ends), **curve(ends + 1, np.array(returns))}


def _spans(ends: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(np.r_[0, ends[:-1] + 1].tolist(), ends.tolist(), strict=True))


def curve(steps: np.ndarray, returns: np.ndarray) -> Numbers:
    """Mean return of episodes in the order in which they ended, in as many stretches as a picture shows."""
    parts = np.array_split(np.arange(len(steps)), min(POINTS, len(steps)))
    return {
        "steps": [int(steps[part[-1]]) for part in parts],
        "returns": [float(returns[part].mean()) for part in parts],
        "best": float(np.sort(returns)[-max(1, len(returns) // 10) :].mean()),
    }


def like_d4rl(place: Place, settings: Settings) -> Numbers:
    """A log in D4RL's layout, by a SAC of ours; a file of that name that a reader brought is read as it is."""
    path = place.file(str(settings["file"]))
    if path.exists() and not path.with_suffix(".ours").exists():
        return {"ours": False, **_read(path)}
    env, seed, rows = str(settings["env"]), settings["seed"], settings["rows"]
    with ExitStack() as stack:
        where = copies(stack, env, settings["together"], 10**9)
        course = sac.train(
            where,
            settings["steps"],
            seed,
            settings["checkpoints"],
            tuple(settings["hidden"]),
            settings["random"],
        )
        worth = [_worth(actor, where, settings["judged"], seed) for actor in course.actors]
        medium = first_medium(worth)
        chosen = {"medium": course.actors[medium], "expert": course.actors[int(np.argmax(worth))]}
        mix = settings["mix"]
        episodes: list[dict[str, np.ndarray]] = []
        for number, kind in enumerate(mix):
            count = rows // len(mix)
            if kind == "replay":
                episodes += _until(course, course.at[medium], count)
            else:
                acts = sac.player(chosen[kind], where.task.actions)
                episodes += collect.episodes(acts, (), where, count, seed + number)
    about = {"algorithm": "SAC of offing's experiments", "policy": "-".join(mix), "env": env}
    d4rl.save(path, episodes, about)
    weights = {f"{i}|{j}": leaf for i, net in enumerate(course.actors) for j, leaf in enumerate(_leaves(net))}
    write(path.with_suffix(".ours"), pack(weights))
    over = np.array([len(one["reward"]) for one in episodes])
    returns = [float(one["reward"].sum()) for one in episodes]
    numbers: Numbers = {"rows": int(over.sum()), "episodes": len(over), "mean": float(np.mean(returns))}
    return {"ours": True, **numbers, "steps": course.at, "returns": worth, "medium": medium, "best": max(worth)}


def _leaves(net: Net) -> list[np.ndarray]:
    return [np.asarray(leaf) for layer in net for leaf in layer]


def _worth(actor: Net, where: Copies, episodes: int, seed: int) -> float:
    """Mean return of some episodes of an actor that draws."""
    acts = sac.player(actor, where.task.actions)
    rows = episodes * where.task.horizon
    logged = collect.episodes(acts, (), where, rows, seed + 100)
    return float(np.mean([one["reward"].sum() for one in logged[:episodes]]))


def first_medium(worth: Sequence[float]) -> int:
    """The first checkpoint that is a third of the way from the first one to the best."""
    bar = worth[0] + MEDIUM * (max(worth) - worth[0])
    return int(np.argmax(np.asarray(worth) >= bar))


def _until(course: sac.Course, steps: int, rows: int) -> list[dict[str, np.ndarray]]:
    """Episodes of the run in the order in which they ended, until it had taken so many steps."""
    turns = -(-steps // course.over.shape[1])
    over = course.over[:turns]
    ordered = sorted(pieces(over), key=lambda part: (part.end, part.env))
    return taken({name: column[:turns] for name, column in course.whole.items()}, ordered, rows)


def _read(path: Path) -> dict[str, Json]:
    log = offing.load(path)
    episode, reward = np.asarray(log.data.episode), np.asarray(log.data.steps.reward)
    returns = [float(reward[rows].sum()) for rows in runs(episode)]
    return {"rows": log.data.rows, "episodes": len(returns), "mean": float(np.mean(returns)), "name": log.name}
