"""A finished run and its log -> an Explanation: figures and sentences in the table's own names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..data import Log
from ..report import results
from ..report.store import load_posterior
from ..report.verdict import number, percent
from ..types import Discrete, Policy, Posterior
from .gather import Imagined, Logged, imagined, importance, logged, scale
from .regions import Region, behaviour_value, brought
from .tree import Tree, fidelity, grow

DEPTHS = (2, 3, 4)  # of the tree: a deeper one is taken if it says WORTH more
WORTH = 0.05
TERMS = {
    "epistemic": "worlds differ",
    "starts": "few starts are known",
    "gap": "it earns more in its training worlds",
    "rare": "a rare episode was not rolled out",
}


@dataclass(frozen=True)
class World:
    """One world: what the policy earns in it, and the column whose course differs most from the other worlds'."""

    value: float
    column: str
    off: float  # mean over steps, in widths of the log's range


@dataclass(frozen=True)
class Explanation:
    """What a policy does, where it departs from the behaviour, and what its promise hangs on."""

    names: tuple[str, ...]
    action_names: tuple[str, ...]
    discrete: bool
    importance: tuple[float, ...]  # of every column for what is done; the largest is 1
    shares: dict[
        str, tuple[float, float]
    ]  # by action: share of choices or mean amount, the policy's and the log's
    tree: Tree
    fidelity: float  # on episodes that the tree was not grown on
    regions: tuple[Region, ...]
    difference: float  # promised return less the behaviour's, which regions add up to
    promised: tuple[float, float, float]  # that difference by the promise: low, median, high
    hangs_on: dict[str, float]  # rank correlation of an episode's return with a column's mean in it
    worlds: tuple[World, ...]  # from the worst to the best
    terms: dict[str, float]  # what makes the interval wide, as standard deviations
    logged: Logged
    imagined: Imagined

    def sentences(self) -> list[str]:
        """The explanation in words."""
        return [*_does(self), *_brings(self), *_fails(self)]


def explain(folder: str | Path, log: Log, seed: int = 0) -> Explanation:
    """What `offing sorel` or `torel` left in a folder, explained by the log that it learned from."""
    folder = Path(folder)
    policy, _ = results.load_policy(folder)
    report: dict[str, Any] = dict(results.plain_report(folder))
    return explained(policy, load_posterior(folder), log, report, seed)


def _term(earned: dict[str, Any], name: str) -> float:
    value = abs(float(earned.get(name) or earned.get("fields", {}).get(name) or 0.0))
    return float(np.sqrt(value)) if name == "starts" else value


def explained(policy: Policy, worlds: Posterior, log: Log, report: dict[str, Any], seed: int = 0) -> Explanation:
    """A policy of a run, its worlds, its log and what `result.json` says."""
    judge = worlds.fold(worlds.folds - 1)
    found, dreamt = logged(policy, log.data), imagined(jax.random.key(seed), policy, judge)
    discrete = isinstance(worlds.task.actions, Discrete)
    names = log.columns.names or tuple(f"obs[{i}]" for i in range(found.obs.shape[1]))
    acted = log.columns.action_names or tuple(f"action[{i}]" for i in range(found.policy.shape[1]))
    other = found.episode % 2 == 1
    tree, faithful = _tree(found, other, discrete)
    mean = float(report["behaviour"]["mean"])
    low, high = report["return"]["interval"]
    leaf = tree.leaf_of(dreamt.obs.reshape(-1, dreamt.obs.shape[-1])).reshape(dreamt.alive.shape)
    value = behaviour_value(found, dreamt.obs.shape[0], mean)
    brings, share, begun = brought(dreamt, value, leaf, tree.count)
    at = tree.leaf_of(found.obs)
    means = lambda x: [x[at == i].mean(0) if (at == i).any() else x.mean(0) for i in range(tree.count)]
    rows = zip(tree.regions(names), share, means(found.policy), means(found.behaviour), brings, strict=True)
    return Explanation(
        names=names,
        action_names=acted,
        discrete=discrete,
        importance=tuple(importance(policy, found).tolist()),
        shares={
            name: (float(found.policy[:, i].mean()), float(found.behaviour[:, i].mean()))
            for i, name in enumerate(acted)
        },
        tree=tree,
        fidelity=faithful,
        regions=tuple(Region(words, float(s), p, b, float(x)) for words, s, p, b, x in rows),
        difference=float(dreamt.returns.mean()) - begun,
        promised=(low - mean, float(report["return"]["median"]) - mean, high - mean),
        hangs_on=_hangs_on(dreamt, names),
        worlds=_worlds(dreamt, scale(judge), names),
        terms={words: _term(report["return"], name) for name, words in TERMS.items()},
        logged=found,
        imagined=dreamt,
    )


def _tree(found: Logged, other: np.ndarray, discrete: bool) -> tuple[Tree, float]:
    """A tree grown on half of the episodes, as deep as is worth it, and its fidelity on the other half."""
    unit, best = _spread(found.policy, discrete), None
    for depth in DEPTHS:
        tree = _scaled(grow(found.obs[~other], found.policy[~other] / unit, depth), unit)
        right = fidelity(tree, found.obs[other], found.policy[other], discrete)
        if best is None or right > best[1] + WORTH:
            best = (tree, right)
    assert best is not None
    return best


def _spread(action: np.ndarray, discrete: bool) -> np.ndarray:
    return np.ones(action.shape[1]) if discrete else np.maximum(action.std(0), 1e-9)


def _scaled(tree: Tree, unit: np.ndarray) -> Tree:
    """The tree with actions in their own units again."""
    yes, no = (None if side is None else _scaled(side, unit) for side in (tree.yes, tree.no))
    return Tree(tree.says * unit, tree.share, tree.column, tree.at, yes, no)


def _hangs_on(dreamt: Imagined, names: tuple[str, ...]) -> dict[str, float]:
    ranked = lambda x: np.argsort(np.argsort(x)).astype(float)
    count = np.maximum(dreamt.alive.sum(0), 1)[..., None]
    mean = ((dreamt.obs * dreamt.alive[..., None]).sum(0) / count).reshape(-1, len(names))
    returns = ranked(dreamt.returns.ravel())
    found = {}
    for i, name in enumerate(names):
        flat = np.ptp(mean[:, i]) == 0 or np.ptp(returns) == 0
        found[name] = 0.0 if flat else float(np.corrcoef(ranked(mean[:, i]), returns)[0, 1])
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


def _worlds(dreamt: Imagined, width: np.ndarray, names: tuple[str, ...]) -> tuple[World, ...]:
    alive = dreamt.alive[..., None]
    course = (dreamt.obs * alive).sum((0, 2)) / np.maximum(alive.sum((0, 2)), 1)  # [M, S]
    off = (course - np.median(course, 0)) / width
    values = dreamt.returns.mean(1)
    worst = np.abs(off).argmax(1)
    return tuple(World(float(values[m]), names[worst[m]], float(off[m, worst[m]])) for m in np.argsort(values))


def _does(found: Explanation) -> list[str]:
    order = np.argsort(found.importance)[::-1]
    most = [f"{found.names[i]} ({found.importance[i]:.2f})" for i in order[:3] if found.importance[i] > 0.02]
    kind = "of the choices" if found.discrete else "of the variance of what it does"
    said = [f"What it does hangs most on {', '.join(most)}." if most else "It does the same everywhere."]
    for name, (policy, behaviour) in list(found.shares.items())[:6]:
        if found.discrete:
            said.append(
                f"It chooses {name} in {percent(policy)} of the log's states; the log has {percent(behaviour)}."
            )
        else:
            said.append(
                f"{name} is {number(policy)} on average over the log's states; the log has {number(behaviour)}."
            )
    return [*said, f"The tree below says {percent(found.fidelity)} {kind}, on episodes that it was not grown on."]


def _brings(found: Explanation) -> list[str]:
    low, median, high = found.promised
    said = [
        f"Beyond the behaviour's return it is promised {number(median)} ({number(low)} to {number(high)}); "
        f"the regions below add up to {number(found.difference)}."
    ]
    best = max(found.regions, key=lambda region: region.brings)
    return [*said, f"Most of it, {number(best.brings)} an episode, comes from where {best.words}."]


def _fails(found: Explanation) -> list[str]:
    worst, middle = found.worlds[0], found.worlds[len(found.worlds) // 2]
    way = "higher" if worst.off > 0 else "lower"
    said = [
        f"In the worst world it earns {number(worst.value)}, in the middle one {number(middle.value)}; "
        f"{worst.column} runs {way} there, by {percent(abs(worst.off))} of its range in the log."
    ]
    name, sign = next(iter(found.hangs_on.items()))
    said.append(f"Imagined returns hang most on {name} (rank correlation {sign:+.2f}).")
    most = max(found.terms, key=lambda term: found.terms[term])
    return [*said, f"What makes the interval wide is, most of all, that {most} ({number(found.terms[most])})."]
