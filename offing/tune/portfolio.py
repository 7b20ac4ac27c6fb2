"""Candidates of many planners: all planned, all judged alike in worlds that none of them was trained in.

Planners that imagine plan in the worlds of the first fold. Those that read rows alone read the whole log. All are
judged in the worlds of the second fold, and in no others: differences are taken world by world, so all must have
played in the same ones, and worlds of the first fold have been seen by some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import planner as planners
from ..data import Log
from ..hypers import groups
from ..pil import PIL
from ..planner import Planned, clone, plan, rppo, train
from ..posterior.walk import lost_beyond
from ..types import Array, BadInput, Box, Dataset, Discrete, Key, Planner, Policy, Posterior
from ..value.predictive import TOGETHER, Known, Past, estimates, known_of, played, prepare, rollouts
from .candidates import GLANCES, ROUNDS, PolicyChoice, pad_starts
from .engine import side_by_side
from .field import Candidate, decide, distance, tail_of
from .run import ALONE, Run
from .sweep import Sweep, ahead, sweep, sweeps

ALWAYS = "bc"  # nothing worse than a clone of the behaviour is handed over where that can be seen
JUDGED = TOGETHER  # episodes in every world that candidates are compared by
LONGER = {"quick": 1, "standard": 2, "large": 2}  # times that the leading plan may go on while it still gains


class Portfolio(NamedTuple):
    """What is tried: planners with their settings, clones that plans begin at, and how often a plan goes on."""

    plain: tuple[tuple[Planner, tuple[Any, ...]], ...]  # that begin from nothing
    clones: tuple[clone.Hypers, ...] = ()
    plans: tuple[rppo.Hypers, ...] = ()
    longer: int = 0

    @property
    def settings(self) -> list[Any]:
        """All of it, for what tells one run from another."""
        return [*(s for _, settings in self.plain for s in settings), *self.clones, *self.plans]


def portfolio(
    scale: str,
    actions: Box | Discrete,
    names: Sequence[str] = (),
    core: str | None = None,
    rows: int | None = None,
) -> Portfolio:
    """The candidates of a scale that suit the kind of action, or those named; the clone is always among them.

    None of them trains for longer than so many `rows` are worth, but for the papers' own settings.
    """
    sparing = rows if scale != "paper" else None
    if not names:
        every = (planners.get(name) for name in planners.REGISTRY.own())
        added = (planners.get(name) for name in planners.REGISTRY.added())
        chosen = [p for p in (*every, *added) if scale in p.candidate and isinstance(actions, p.actions)]
    else:
        chosen = [planners.get(name) for name in dict.fromkeys(names)]
    for planner in chosen:
        if not isinstance(actions, planner.actions):
            raise BadInput(f"{planner.name}: does not plan for the kind of action that this log has")
    if ALWAYS not in {planner.name for planner in chosen}:
        chosen = [planners.get(ALWAYS), *chosen]
    known = {planner.name: planner for planner in chosen}
    plans = planners.space("rppo", scale, rows=sparing, core=core) if "rppo" in known else []
    clones: list[clone.Hypers] = []
    if "clone" in known:
        shapes = [(group.settings[0].core, group.settings[0].width) for group in groups(plans)] or [(core, None)]
        for core_, width in dict.fromkeys(shapes):
            clones += planners.space("clone", scale, rows=sparing, core=core_, width=width)
    if clones:
        plans = rppo.variants(plans)
    plain = [planner for planner in chosen if planner.name not in ("rppo", "clone")]
    rest = tuple((planner, tuple(planners.space(planner, scale, rows=sparing))) for planner in plain)
    return Portfolio(rest, tuple(clones), tuple(plans), LONGER.get(scale, 0) if clones else 0)


class Entry(NamedTuple):
    """A plan to make: a setting of rppo, and the net that it may begin at or be held near; () for none."""

    setting: rppo.Hypers
    guide: Any


class Jury(NamedTuple):
    """What candidates are judged by."""

    key: Key
    log: Log
    own: Posterior
    held: Posterior
    loss: PIL | None
    past: Past | None = None


def choose_candidate(
    key: Key,
    log: Log,
    worlds: Posterior,
    tried: Portfolio,
    loss: PIL | None = None,
    run: Run = ALONE,
    past: Past | Callable[[], Past] | None = None,
) -> PolicyChoice:
    """Every candidate planned and judged, and the one chosen that earns most where it earns least.

    `past` may be what waits for it: nothing is judged before all planners that learn from rows are trained.
    """
    k1, k2 = jax.random.split(key)
    own, held = pad_starts(worlds.fold(0)), pad_starts(worlds.fold(1))
    data = log.data._replace(starts=np.zeros((0, 1)))
    args = jax.device_put((k1, data, own, held))
    ready = _compile_plans(tried, args, held, run)
    playable = _compile_judging(k2, tried, held, data)
    imagines = lambda planner: _imagining(planner) if planner.imagines else _learning(planner)
    parts = [(planner, tuple(settings)) for planner, settings in tried.plain]
    parts += [(clone.planner, tried.clones)] if tried.clones else []
    trained = sweeps([Sweep(p.name, imagines(p), settings) for p, settings in parts], *args, run=run)
    jury = Jury(k2, log, own, held, loss, past() if callable(past) else past)
    playable()
    candidates: list[Candidate] = []
    for (planner, settings), planned in zip(parts, trained, strict=True):
        candidates += judged(jury, planner, settings, planned, run)
    ready()
    cloned = trained[-1] if tried.clones else []
    candidates += _plans(jury, tried, cloned, args, run)
    return _choice(candidates)


def _compile_plans(tried: Portfolio, args: tuple[Any, ...], held: Posterior, run: Run) -> Callable[[], object]:
    """Begins to compile the programs of plans, while what they begin at is trained; call what it gives to wait."""
    width = held.starts.shape[1]
    blank = lambda setting: clone.planner.blank(setting, width, held.task).params[0]
    guides = {(setting.core, setting.width): blank(setting) for setting in tried.clones}
    entries = [Entry(setting, guides.get((setting.core, setting.width), ())) for setting in tried.plans]
    return ahead("plan", _guided, entries, *args, run=run)


def _compile_judging(key: Key, tried: Portfolio, held: Posterior, data: Dataset) -> Callable[[], object]:
    """Begins to compile what candidates are played by, one program for policies of a kind; call it to wait."""
    parts: list[tuple[Planner, Sequence[object]]] = [*tried.plain, (clone.planner, tried.clones)]
    every = [(planner, setting) for planner, settings in parts for setting in settings]
    every += [(rppo.planner, setting) for setting in tried.plans]
    width = data.steps.obs.shape[1]
    blanks = {
        jax.tree.structure(policy): policy
        for policy in (planner.blank(setting, width, held.task) for planner, setting in every)
    }
    beside = ThreadPoolExecutor(max(len(blanks), 1) if jax.default_backend() != "cpu" else 1)
    coming = [beside.submit(prepare, key, policy, held, JUDGED) for policy in blanks.values()]
    beside.shutdown(wait=False)
    return lambda: [each.exception() for each in coming]


def _plans(
    jury: Jury, tried: Portfolio, cloned: Sequence[Planned], args: tuple[Any, ...], run: Run
) -> list[Candidate]:
    """rppo's candidates, the leading one prolonged while it still gains in held-out worlds."""
    if not tried.plans:
        return []
    guides = _guides(tried.clones, cloned)
    entries = [Entry(setting, guides.get((setting.core, setting.width), ())) for setting in tried.plans]
    planned = sweep("plan", _guided, entries, *args, run=run)
    candidates = judged(jury, rppo.planner, tried.plans, planned, run)
    for again in range(tried.longer):
        lead = max(candidates, key=lambda one: one.lower)
        if lead.planned is None or not rises(np.asarray(lead.planned.held)):
            break
        setting = replace(lead.setting, begun=1.0)
        alike = sum(jax.tree.structure(plan) == jax.tree.structure(setting) for plan in tried.plans)
        entry, part = Entry(setting, lead.policy.params[0]), run.part(f"{again}")
        more = sweep("prolong", _guided, [entry], *args, abreast=alike, run=part)  # by the program that is there
        candidates += [
            replace(one, name=f"{lead.name}, for longer")
            for one in judged(jury, rppo.planner, [setting], more, run)
        ]
    return candidates


def _guides(clones: Sequence[clone.Hypers], cloned: Sequence[Planned]) -> dict[tuple[str, int], Any]:
    """The net of every shape's clone that weighs returns most: plans begin at the better part of the log."""
    order = sorted(zip(clones, cloned, strict=True), key=lambda pair: pair[0].sharp)
    return {(setting.core, setting.width): jax.tree.map(np.asarray, one.params[0]) for setting, one in order}


def rises(held: np.ndarray) -> bool:
    """Whether a plan was still gaining in held-out worlds when its rounds were over."""
    half = held[len(held) // 2 :]
    return bool(
        len(held) > 3 and np.all(np.isfinite(held)) and held[-1] >= np.max(held) and held[-1] > half.mean()
    )


def judged(
    jury: Jury, planner: Planner, settings: Sequence[Any], planned: Sequence[Planned], run: Run = ALONE
) -> list[Candidate]:
    """What each setting came to, played in held-out worlds with the same chances as all other candidates."""
    known = known_of(jury.log.data, jury.log.task, jury.loss, jury.past)

    def one(place: int) -> Candidate:
        return _judged(jury, planner, settings[place], planned[place], known)

    candidates: list[Candidate] = []
    with ThreadPoolExecutor(side_by_side(heavy=True)) as pool:
        first = [one(0)] if planned else []  # which compiles for all
        for candidate in chain(first, pool.map(one, range(1, len(planned)))):
            candidates.append(candidate)
            run.tell(f"judge {planner.name}", len(candidates), len(settings))
    return candidates


def _judged(jury: Jury, planner: Planner, setting: Any, one: Planned, known: Known) -> Candidate:
    """One candidate, played in the worlds that judge it."""
    data = jury.log.data
    blank = planner.blank(setting, data.steps.obs.shape[1], jury.held.task)
    policy = replace(blank, params=jax.tree.map(np.asarray, one.params))
    outside = played(jury.key, policy, jury.held, JUDGED)[0]
    inside = played(jury.key, policy, jury.own, JUDGED)[0] if planner.imagines else None
    promise = estimates(outside, inside, jury.held, known)[1]
    name = planner.label(setting) if planner.label else planner.name
    far = distance(policy, data, jury.log.task)
    rounds = _run(one) if planner.imagines else None
    return Candidate(name, planner.name, setting, policy, promise, far, rounds)


def _run(planned: Planned) -> Planned:
    """The rounds that were run, without those that an early end spared."""
    ran = np.isfinite(np.asarray(planned.held))
    ran[int(planned.best)] = True  # even of a plan that diverged
    return planned._replace(own=np.asarray(planned.own)[ran], held=np.asarray(planned.held)[ran])


def _choice(candidates: Sequence[Candidate]) -> PolicyChoice:
    """The field settled, and the settings of the chosen planner as a choice among those."""
    field = decide(candidates)
    same_planner = [one for one in candidates if one.planner == field.chosen.planner]
    return PolicyChoice(
        index=next(i for i, one in enumerate(same_planner) if one is field.chosen),
        planner=field.chosen.planner,
        points=tuple(one.setting for one in same_planner),
        scores=tuple(one.promise.median for one in same_planner),
        planned=tuple(one.planned or _one_round(one) for one in same_planner),
        picked=field.chosen.policy,
        policies=tuple(one.policy for one in same_planner),
        field=field,
    )


def _one_round(one: Candidate) -> Planned:
    """The rounds of a planner that plans in no worlds: one, judged at its end."""
    value = np.array([one.promise.median])
    return Planned(one.policy.params, np.array(0), value, value, {})


# ---- programs


def _ask(own: Posterior, held: Posterior) -> Callable[[Key, Policy], tuple[Array, Array]]:
    """What rounds are compared by: the worst quarter of worlds, of the plan's own and of others.

    Where an episode is over since it left the log, the steps that it no longer takes count at the least that they
    may have earned.
    """

    every = replace(own, theta=jax.tree.map(lambda a, b: jnp.concatenate([a, b]), own.theta, held.theta))

    def ask(key: Key, policy: Policy) -> tuple[Array, Array]:
        played = rollouts(key, policy, every, GLANCES)[0]  # one program for both
        worlds = (played.returns + lost_beyond(own) * played.steps_left).mean(1)
        return tail_of(worlds[: own.members]), tail_of(worlds[own.members :])

    return ask


def _guided(entry: Entry, key: Key, data: Dataset, own: Posterior, held: Posterior) -> Planned:
    """A plan of rppo's, with its guide if it has one; it stops where held-out worlds no longer gain."""
    planner = rppo.guided(entry.guide) if entry.guide else rppo.planner
    return plan(key, entry.setting, planner, data, own, _ask(own, held), ROUNDS, stops=True)


@cache
def _imagining(planner: Planner) -> Callable[..., Planned]:
    """A plan of any planner that imagines; one function each, so that programs are found again."""

    def run(hypers: Any, key: Key, data: Dataset, own: Posterior, held: Posterior) -> Planned:
        return plan(key, hypers, planner, data, own, _ask(own, held), ROUNDS, stops=True)

    return run


@cache
def _learning(planner: Planner) -> Callable[..., Planned]:
    """A planner that reads rows alone, trained to its end."""

    def run(hypers: Any, key: Key, data: Dataset, own: Posterior, held: Posterior) -> Planned:
        del held
        first, key = jax.random.split(key)
        state = planner.init(first, hypers, data, own)
        keys = jax.random.split(key, hypers.updates)
        state, metrics = train(keys, hypers, planner, state, data, own)
        none = jnp.zeros(0)
        params = planner.policy(hypers, state, own.task).params
        return Planned(params, jnp.asarray(0), none, none, jax.tree.map(jnp.mean, metrics))

    return run
