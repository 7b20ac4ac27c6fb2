"""What a system found, on disk: the policy, the worlds, the numbers and the page; whole or not at all."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import hypers
from .. import planner as planners
from ..tune.choose import PosteriorChoice
from ..tune.systems import Result
from ..types import BadInput, Policy, Posterior, Task
from ..value.estimate import ValueEstimate
from ..value.policies import FORMS, described, same_actions
from ..value.predictive import Predictive
from .page import page
from .store import (
    actions_dict,
    actions_of,
    drop_others,
    keep,
    pil_dict,
    read_json,
    replay_dict,
    save_posterior,
    unpack,
    write,
    write_json,
)
from .verdict import Verdict

RESULT = "result.json"
PAGE = "report.html"


def found(out: Path) -> dict[str, Any] | None:
    """The result in a folder, or None if there is none."""
    return read_json(out / RESULT)


def save_result(
    out: Path, result: Result, ruling: Verdict, baseline: float | None, level: float, facts: dict[str, Any]
) -> dict[str, Any]:
    """Writes posterior, policy, episodes and page, then `result.json`: a result exists once that does."""
    task, plans = result.worlds.task, result.policy
    save_posterior(out, result.posterior._replace(picked=result.worlds), facts)
    episodes = keep_episodes(out, result.predicted)
    mark = result.behaviour.mean if baseline is None else baseline
    stderr = result.behaviour.stderr if baseline is None else 0.0
    tried = [
        {
            **hypers.asdict(point),
            "score": score,
            "own": np.asarray(planned.own).tolist(),
            "held": np.asarray(planned.held).tolist(),
            "best": int(planned.best),
        }
        for point, score, planned in zip(plans.points, plans.scores, plans.planned, strict=True)
    ]
    policy = policy_dict(out, result.picked, plans.planner, tried, plans.index, result.worlds)
    told = {
        "system": result.system,
        "promise": result.promise,
        **facts,
        "posterior": choice_dict(result.posterior, result.worlds),
        "policy": policy,
        "pil": pil_dict(result.pil, task, whole=True),
        **predicted_dict(result.predicted, level),
        "episodes": episodes,
        "behaviour": result.behaviour._asdict(),
        "baseline": mark,
        "probability": result.predicted.returns.above(mark, stderr),
        "verdict": {"word": ruling.word, "reasons": list(ruling.reasons)},
        "notes": list(result.notes),
        "online_samples": 0,
    }
    write(out / PAGE, page(told, np.asarray(result.predicted.returns.returns)).encode())
    write_json(out / RESULT, told)
    drop_others(out, "policy", policy["arrays"])
    drop_others(out, "episodes", episodes)
    return told


def keep_episodes(out: Path, predicted: Predictive) -> str:
    """Writes what the imagined episodes earned, and says under which name."""
    return keep(out, "episodes", {"return": predicted.returns.returns, "value": predicted.value.returns})


def choice_dict(choice: PosteriorChoice, worlds: Posterior) -> dict[str, Any]:
    """The settings of worlds that were tried, and the chosen one's, as JSON."""
    return {
        "settings": [
            {**hypers.asdict(point), "nll": nll, **pil_dict(score, worlds.task)}
            for point, nll, score in zip(choice.points, choice.nll, choice.scores, strict=True)
        ],
        "chosen": choice.index,
        "replay": replay_dict(choice.replay),
        "noise_scale": float(np.mean(choice.share)),
    }


def policy_dict(
    out: Path, policy: Policy, planner: str, tried: list[dict[str, Any]], index: int, worlds: Posterior
) -> dict[str, Any]:
    """Writes the policy's arrays; what `load_policy` needs beside them, as JSON."""
    task = worlds.task
    params = {f"a{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(policy.params))}
    return {
        "planner": planner,
        "settings": tried,
        "chosen": index,
        "arrays": keep(out, "policy", params),
        "width": int(worlds.starts.shape[1]),
        "task": {"horizon": task.horizon, "discount": task.discount, "actions": actions_dict(task.actions)},
    }


def predicted_dict(predicted: Predictive, level: float) -> dict[str, Any]:
    """What a policy will earn, and how far its episodes strayed, as JSON."""
    return {
        "value": value_dict(predicted.value, level),
        "return": value_dict(predicted.returns, level),
        "length": predicted.length,
        "support": predicted.support._asdict(),
    }


def value_dict(estimate: ValueEstimate, level: float) -> dict[str, Any]:
    """A ValueEstimate as JSON."""
    return {
        "median": estimate.median,
        "mean": estimate.mean,
        "interval": list(estimate.interval(level)),
        "level": level,
        "epistemic": estimate.epistemic,
        "aleatoric": estimate.aleatoric,
        "stderr": estimate.stderr,
        "range": list(estimate.range),
        "starts": float(np.sqrt(estimate.starts)),
        "gap": estimate.gap,
        "common": estimate.common,
        "rare": estimate.rare,
        "less": estimate.less,
        "more": estimate.more,
        "widen": estimate.widen,
        "worlds": estimate.worlds.tolist(),
    }


def load_policy(out: str | os.PathLike[str]) -> tuple[Policy, Task]:
    """The policy that `offing sorel` or `offing torel` left in a folder, and the task that it is for."""
    folder = Path(out)
    told = found(folder)
    if told is None:
        raise BadInput(f"{folder}: holds no finished result ({RESULT} is missing)")
    try:
        kept = told["policy"]
        planner = planners.get(kept["planner"])
        given = kept["settings"][kept["chosen"]]
        names = set(hypers.names(planner.Hypers))
        setting = planner.Hypers(**{name: value for name, value in given.items() if name in names})
        task = Task(kept["task"]["horizon"], kept["task"]["discount"], actions_of(kept["task"]["actions"]))
        blank = planner.blank(setting, kept["width"], task)
        arrays = unpack(folder / kept["arrays"])
        leaves = [jnp.asarray(arrays[f"a{i}"]) for i in range(len(arrays))]
        shapes = [leaf.shape for leaf in jax.tree.leaves(blank.params)]
        if [leaf.shape for leaf in leaves] != shapes:
            raise ValueError("shapes")
        return replace(blank, params=jax.tree.unflatten(jax.tree.structure(blank.params), leaves)), task
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        raise BadInput(f"{folder}: the policy in it is damaged or of another version") from None


def summary(told: dict[str, Any], out: Path) -> list[str]:
    """What was found, in sentences, the verdict last."""
    earned, loss = told["return"], told["pil"]
    low, high = earned["interval"]
    tried = (
        f"{len(told['posterior']['settings'])} worlds' and {len(told['policy']['settings'])} planners' settings"
    )
    return [
        f"{told['data']}: {told['rows']:,} rows, seed {told['seed']}, {tried} ({told['scale']}), "
        f"{told['seconds']:.0f} s",
        f"PIL {loss['total']:.3g} nats a step = error {loss['error']:.3g} + spread {loss['spread']:.3g}: "
        f"{loss['word']}",
        f"predicted return {earned['median']:,.1f}, with {earned['level']:.0%} probability between {low:,.1f} and "
        f"{high:,.1f}; logged behaviour {told['behaviour']['mean']:,.1f}",
        *(f"note: {note}" for note in told["notes"]),
        f"verdict: {told['verdict']['word']}",
        *(f"  {reason}" for reason in told["verdict"]["reasons"]),
        f"{out / PAGE}  online samples used: {told['online_samples']}",
    ]


def save_play(out: Path, played: dict[str, Any]) -> None:
    """`play.json` beside the result that it checks."""
    write_json(out / "play.json", played)


def finished_policy(path: str, task: Task, width: int) -> Policy:
    """The policy of a finished run, by its folder or a file in it; BadInput if it is another task's."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    told = found(folder) or {}
    mine = (RESULT, told.get("policy", {}).get("arrays"))
    if folder != Path(path) and Path(path).name not in mine:
        raise BadInput(f"{path}: is no policy; give {FORMS}")
    policy, theirs = load_policy(folder)
    seen = told["policy"]["width"]
    if seen != width or not same_actions(theirs.actions, task.actions):
        its = f"is for observations of {seen} numbers and {described(theirs.actions)}"
        raise BadInput(f"{path}: {its}; the log has {width} numbers and {described(task.actions)}")
    return policy
