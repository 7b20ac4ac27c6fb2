"""What is in a log, what is wrong with it, and what it covers: plain numbers, and an answer with its reasons.

Nothing here grows with the log but a few numbers a row: columns are read in chunks; quantiles, neighbours and
controllers come from rows drawn by a seed; per-episode sums are vectorised. One file, since one table of limits
serves every question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..types import Box, Dataset, Discrete, Task
from .dataset import Log, broken

CELLS = 1 << 21  # numbers read at once
SAMPLE = 100_000  # rows that quantiles and counts of values are taken from
TEACH, ASK = 8_192, 2_048  # rows that teach what to expect in a state, and rows of other episodes that ask
NEIGHBOURS = 5
WIDE = 64  # wider states are mixed into this many columns, and rarer choices are one, to foretell actions
FEATURES = 192  # random, of the state, from which actions are predicted
TURNS, STEPS = 96, 128  # episodes, and rows of each, that are searched for controllers taking turns
CONTROLLERS = 4  # at most as many are told apart
TRIES = 4  # at dealing episodes to them
NEAR = 1e-3  # standard deviations: rows closer than that are near-duplicates
TIES = 3  # rows that share the very largest or smallest value of a column: it stops there, and is a wall
VALUES = 20  # a column with no more different values than this is a label or a switch, not a measurement
BLOCKS = 20  # pieces of the log, in time order, that drift is read off
BINS = 40

BROKEN = 0.01  # share of the steps inside episodes that may start elsewhere than the step before ended
LEAST = 100  # rows: with fewer nothing can be said
ROWS = 1_000  # rows that a world can be learned from
EPISODES = 25  # a fifth is held out, and that worlds are calibrated is not shown on fewer than five
FOLLOWS = 0.85  # share of the actions' variance that the state may explain
TAKEN = 0.9  # share of discrete actions that the state may foretell
CERTAIN = 0.95  # share that a few controllers explain between them if there is nothing else
PLAINLY = 0.25  # of what one controller leaves unexplained, more of them leave at most this
SLIVER = 0.06  # of the actions' range that actions in alike states must differ by (standard deviation)
DRIFT = 0.5  # standard deviations that a column may move from the first quarter of a log to the last
SURE = 4.0  # standard errors by which a drift must show
COPIES = 0.05  # share of the rows that may be copies of others


class Column(NamedTuple):
    """Every row of every column at a glance."""

    mean: np.ndarray  # [W]
    std: np.ndarray  # [W]
    low: np.ndarray  # [W]
    high: np.ndarray  # [W]


class Rows(NamedTuple):
    """The rows in use, as numpy sees them."""

    obs: np.ndarray  # [N, S]
    action: np.ndarray  # [N, A]
    reward: np.ndarray  # [N]
    next_obs: np.ndarray  # [N, S]
    done: np.ndarray  # [N]
    episode: np.ndarray  # [N]
    in_order: bool  # as logged: drawing some of the episodes mixes them

    @property
    def count(self) -> int:
        return len(self.reward)


View = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # rows -> states [N, S], actions [N, A]


class Answer(NamedTuple):
    """SOReL, TOReL or neither yet; why, as answers to questions; and what else to know."""

    system: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


def inspect(log: Log, seed: int = 0) -> dict[str, Any]:
    """Everything that can be said of a log without learning a world from it, ready for JSON."""
    data, task, rows = rows_of(log.data), log.task, log.data.rows
    rng = np.random.default_rng([seed, 3])
    drawn = np.sort(rng.choice(rows, min(rows, SAMPLE), replace=False, shuffle=False))
    obs, action = glance(data.obs, rows), glance(data.action, rows)
    reward = glance(data.reward[:, None], rows)
    marks = first_rows(data)
    found = {
        "data": log.name,
        "fingerprint": log.fingerprint,
        "seed": seed,
        "notes": list(log.notes),
        "rows": rows,
        "obs_width": len(obs.mean),
        "action_kind": "discrete" if isinstance(task.actions, Discrete) else "continuous",
        "action_width": task.actions.width,
        "horizon": task.horizon,
        "discount": task.discount,
        "bytes": int(sum(leaf.nbytes for leaf in data[:5])),
        "ends": int(np.count_nonzero(data.done)),
        "episodes": None if marks is None else episodes(data, task, marks),
        "rewards": spread(data.reward[drawn], reward, 0),
        "observations": observations(data, obs, drawn),
        "actions": actions(data, task, action, drawn) | choices(data, task, obs, marks, rng),
        "coverage": coverage(data, obs, action, marks, rng),
        "copies": copies(data, (obs, action, reward), marks),
        "drift": drift(data, (obs, action, reward)),
        "broken": broken(log.data),
    }
    return {**found, "answer": decide(found)._asdict()}


def rows_of(data: Dataset) -> Rows:
    """The rows of a dataset that are in use."""
    steps = data.steps
    parts = (steps.obs, steps.action, steps.reward, steps.next_obs, steps.done, data.episode)
    return Rows(*(np.asarray(part)[: data.rows] for part in parts), in_order=data.rows == len(data.episode))


def blocks(rows: int, width: int) -> Iterator[slice]:
    """Pieces of the log that hold about CELLS numbers each."""
    size = max(1, CELLS // width)
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def glance(array: np.ndarray, rows: int) -> Column:
    """Mean, deviation, least and greatest of every column, exactly, in one pass of chunks."""
    shift = array[0].astype(np.float64)
    width = array.shape[1]
    total, square = np.zeros(width), np.zeros(width)
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    for block in blocks(rows, width):
        part = array[block]
        low, high = np.minimum(low, part.min(0)), np.maximum(high, part.max(0))
        part = part - shift
        total += part.sum(0)
        square += np.einsum("nw,nw->w", part, part)
    mean = total / rows
    std = np.where(high > low, np.sqrt(np.maximum(square / rows - mean**2, 0.0)), 0.0)
    return Column(mean + shift, std, low, high)


def spread(drawn: np.ndarray, whole: Column, i: int) -> dict[str, Any]:
    """One column: mean, deviation and range of all rows; quartiles and the count of values of those drawn."""
    first, middle, third = np.quantile(drawn.astype(np.float64), (0.25, 0.5, 0.75))
    return {
        "mean": float(whole.mean[i]),
        "std": float(whole.std[i]),
        "min": float(whole.low[i]),
        "q25": float(first),
        "median": float(middle),
        "q75": float(third),
        "max": float(whole.high[i]),
        "values": len(np.unique(drawn)),
    }


def summed(values: np.ndarray) -> dict[str, Any]:
    """As `spread`, of one number an episode, with a histogram."""
    values = np.asarray(values, np.float64)
    counts, edges = np.histogram(values, BINS)
    told = spread(values, glance(values[:, None], len(values)), 0)
    return {**told, "histogram": {"counts": counts.tolist(), "edges": edges.tolist()}}


def first_rows(data: Rows) -> np.ndarray | None:
    """The first row of every episode [E]; None for a bag of transitions."""
    episode = data.episode
    return None if episode[0] < 0 else np.flatnonzero(np.r_[True, episode[1:] != episode[:-1]])


def episodes(data: Rows, task: Task, first: np.ndarray) -> dict[str, Any]:
    """Lengths, ends, and returns with and without discount."""
    rows = data.count
    lengths = np.diff(np.r_[first, rows])
    ended = data.done[first + lengths - 1] > 0
    reward = data.reward.astype(np.float64)
    returns = np.add.reduceat(reward, first)
    reward *= task.discount ** (np.arange(rows) - np.repeat(first, lengths))
    whole = ended | (lengths >= task.horizon)
    groups = np.linspace(0, len(first), min(len(first), 100) + 1).astype(int)[:-1]  # for a line over time
    counts = np.diff(np.r_[groups, len(first)])
    return {
        "count": len(first),
        "terminated": int(ended.sum()),
        "cut": int(np.sum(~ended & (lengths < task.horizon))),
        "at_horizon": int(np.sum(~ended & (lengths >= task.horizon))),
        "lengths": summed(lengths),
        "returns": summed(returns),
        "whole_returns": summed(returns[whole]) if whole.any() else None,
        "discounted": summed(np.add.reduceat(reward, first)),
        "in_time": {"episode": groups.tolist(), "returns": (np.add.reduceat(returns, groups) / counts).tolist()},
    }


def observations(data: Rows, obs: Column, drawn: np.ndarray) -> list[dict[str, Any]]:
    """Every column of the observations: its spread, whether it is constant, and where it stops at a wall."""
    rows, after = data.count, data.next_obs
    then = glance(after, rows)
    ties = np.zeros((2, len(obs.mean)), np.int64)
    for block in blocks(rows, len(obs.mean)):
        ties += [np.count_nonzero(after[block] == edge.astype(after.dtype), 0) for edge in (then.low, then.high)]
    told = []
    for i in range(len(obs.mean)):
        column = spread(data.obs[drawn, i], obs, i)
        low, high = min(obs.low[i], then.low[i]), max(obs.high[i], then.high[i])
        real = low < high and column["values"] > VALUES
        walls = [
            float(e) if real and n >= TIES else None
            for e, n in zip((then.low[i], then.high[i]), ties[:, i], strict=True)
        ]
        told.append(
            {**column, "min": float(low), "max": float(high), "constant": bool(low == high), "walls": walls}
        )
    return told


def actions(data: Rows, task: Task, whole: Column, drawn: np.ndarray) -> dict[str, Any]:
    """How actions spread over their range, or over the choices."""
    action, still = data.action[drawn], bool(np.all(whole.low == whole.high))
    if isinstance(task.actions, Discrete):
        return {"still": still, "shares": whole.mean.tolist(), "used": float(np.mean(whole.mean > 0))}
    told = []
    low, high = np.array(task.actions.low), np.array(task.actions.high)
    for i, column in enumerate(action.T):
        ends = (low[i], high[i] if high[i] > low[i] else low[i] + 1.0)
        counts = np.histogram(np.clip(column, *ends), BINS, ends)[0]
        told.append(
            {
                **spread(column, whole, i),
                "low": float(low[i]),
                "high": float(high[i]),
                "histogram": counts.tolist(),
            }
        )
    room = 1e-6 * (high - low)
    at_edge = np.mean((action <= low + room) | (action >= high - room))
    tenths = np.array([column["histogram"] for column in told]).reshape(len(told), 10, -1).sum(-1) / len(drawn)
    return {"still": still, "columns": told, "at_the_edge": float(at_edge), "used": float(np.mean(tenths >= 0.01))}


def choices(
    data: Rows, task: Task, obs: Column, first: np.ndarray | None, rng: np.random.Generator
) -> dict[str, Any]:
    """How actions depend on the state: how much it explains, what is left over, how many controllers there are.

    Actions are foretold from the state by rows of other episodes: by a line, by random features and by
    neighbours, whichever errs least. What is left over is what alike states were tried with.
    """
    teach, ask = _halves(data, first, rng)
    view = _view(data, task, obs, rng)
    (seen, known), (asked, truth) = view(teach), view(ask)
    lift = _features(seen.shape[1], FEATURES, rng)
    guesses = [np.broadcast_to(known.mean(0), truth.shape), _nearest(seen, known, asked)]
    guesses += [f(asked) @ _ridge(f(seen), known, r) for f, r in ((_affine, 1e-6), (lift, 1e-4), (lift, 1e-2))]
    if isinstance(task.actions, Box):
        guesses += [snapped for guess in guesses if (snapped := _snap(guess, known)) is not None]
    errors = np.array([np.mean((truth - guess) ** 2, 0) for guess in guesses])  # [G, A]
    best = int(errors.sum(1).argmin())
    whole = max(float(errors[0].sum()), 1e-12)
    told: dict[str, Any] = {"explained": float(np.clip(1 - errors[best].sum() / whole, 0, 1))}
    if isinstance(task.actions, Box):
        width = np.array(task.actions.high) - np.array(task.actions.low)
        left = np.sqrt(errors.min(0)) / np.where(width > 0, width, 1.0)
        told |= {
            "foretold": told["explained"],
            "left_over": float(left.mean()),
            "left_over_columns": left.tolist(),
        }
    else:
        hits = max(_score(guess, truth, task) for guess in guesses)
        told |= {"foretold": hits, "left_over": 1 - hits}
    return {**told, "controllers": controllers(data, task, view, first, rng)}


def controllers(
    data: Rows, task: Task, view: View, first: np.ndarray | None, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Whether episodes were driven by one controller, by a few taking turns, or each in its own way.

    For k = 1, 2, ... episodes are dealt to k predictors of the action, each to the one that foretells half of its
    rows best; the other half says how well. None if there are no episodes long enough to tell.
    """
    if first is None:
        return None
    lengths = np.diff(np.r_[first, data.count])
    long = np.flatnonzero(lengths >= 16)
    if len(long) < 4:
        return None
    long = rng.permutation(long)[:TURNS]
    steps = min(STEPS, int(np.median(lengths[long])) // 2 * 2)
    rows = first[long, None] + np.linspace(0, lengths[long] - 1, steps, axis=1).astype(int)  # [E, R]
    state, y = (part.reshape(*rows.shape, -1) for part in view(rows.ravel()))  # [E, R, S], [E, R, A]
    x = _features(state.shape[-1], FEATURES // 4, rng)(state)  # [E, R, F]
    fit, test = (x[:, 0::2], y[:, 0::2]), (x[:, 1::2], y[:, 1::2])
    scores = [
        max(_score(test[0] @ weight, test[1], task) for weight in _dealt(*fit, k, rng))
        for k in range(1, min(CONTROLLERS, len(long) // 2) + 1)
    ]
    alone = _score(_alone(state, fit[1]), test[1], task)
    limit = CERTAIN if isinstance(task.actions, Box) else TAKEN
    better = lambda k, score: k == 1 or 1 - score < PLAINLY * (1 - scores[0])
    enough = [k for k, score in enumerate(scores, 1) if score >= limit and better(k, score)]
    return {"foretold": scores, "alone": alone, "count": enough[0] if enough else None, "episodes": len(long)}


def _dealt(x: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The weights of k predictors, each fitted to the episodes that it foretells best [E, F, A]; several tries."""
    episodes, steps, width = x.shape
    turned = x.transpose(0, 2, 1)
    gram, cross = turned @ x + 1e-3 * steps * np.eye(width), turned @ y  # [E, F, F], [E, F, A]
    flat, known = x.reshape(-1, width), y.reshape(episodes * steps, -1)
    for _ in range(1 if k == 1 else TRIES):
        whose = rng.permutation(episodes) % k
        weights = np.zeros((k, *cross.shape[1:]))
        for _ in range(15):
            for j in range(k):
                own = whose == j if np.any(whose == j) else np.arange(episodes) == rng.integers(episodes)
                weights[j] = np.linalg.solve(gram[own].sum(0), cross[own].sum(0))
            errors = [
                np.mean((flat @ weight - known) ** 2, 1).reshape(episodes, steps).mean(1) for weight in weights
            ]
            old, whose = whose, np.argmin(errors, 0)
            if np.array_equal(whose, old):
                break
        yield weights[whose]


def _alone(state: np.ndarray, known: np.ndarray) -> np.ndarray:
    """What each episode's even rows say of its odd ones, by a line of its own [E, R, A]."""
    centre = state[:, 0::2].mean(1, keepdims=True)
    x, asked, mean = state[:, 0::2] - centre, state[:, 1::2] - centre, known.mean(1, keepdims=True)
    turned, size = x.transpose(0, 2, 1), x.var((1, 2))[:, None, None]
    gram = turned @ x + (1e-2 * x.shape[1] * size + 1e-9) * np.eye(x.shape[2])
    return mean + asked @ np.linalg.solve(gram, turned @ (known - mean))


def _score(guess: np.ndarray, truth: np.ndarray, task: Task) -> float:
    """Share of the variance explained, or of the choices foretold."""
    if isinstance(task.actions, Discrete):
        taken = truth.argmax(-1)
        return float(np.mean((guess.argmax(-1) == taken) & (taken < WIDE)))  # that it is a rare one does not count
    whole = float(truth.var((0, 1)).sum())
    return float(np.clip(1 - np.mean((truth - guess) ** 2, (0, 1)).sum() / whole, 0, 1)) if whole > 0 else 1.0


def coverage(
    data: Rows, obs: Column, action: Column, first: np.ndarray | None, rng: np.random.Generator
) -> dict[str, float]:
    """How near rows are to those of other episodes, in standard deviations a column; in how many directions."""
    here, there = (
        np.concatenate(
            [
                _scaled(data.obs[p], obs.mean, obs.std),
                _scaled(data.action[p], action.mean, action.std),
            ],
            1,
        )
        for p in _halves(data, first, rng)
    )
    apart = np.concatenate([_distances(part, here).min(1) for part in _parts(there)]) / np.sqrt(here.shape[1])
    cross = there - there.mean(0)
    cross = cross @ cross.T if len(cross) < cross.shape[1] else cross.T @ cross  # the same directions either way
    return {
        "median_distance": float(np.median(apart)),
        "far_distance": float(np.quantile(apart, 0.99)),
        "directions": float(np.trace(cross) ** 2 / max(np.sum(cross**2), 1e-12)),
        "width": here.shape[1],
    }


def copies(data: Rows, whole: tuple[Column, Column, Column], first: np.ndarray | None) -> dict[str, Any]:
    """Share of the rows (state, action, reward) that repeat another, exactly or nearly; and of whole episodes."""
    rows = data.count
    mean, unit = np.concatenate([w.mean for w in whole]), np.concatenate([w.std for w in whole]) * NEAR
    unit = np.where(unit > 0, unit, 1.0)
    odd = np.random.default_rng(0).integers(1 << 62, size=len(mean), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    exact, near = np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)
    for block in blocks(rows, len(mean)):
        part = np.concatenate([data.obs[block], data.action[block], data.reward[block, None]], 1)
        exact[block] = _hash((part + np.float32(0)).view(np.uint32).astype(np.uint64), odd)  # no negative zero
        near[block] = _hash(np.rint((part - mean) / unit).astype(np.int64).view(np.uint64), odd)
    again = {} if first is None else {"episodes": len(first) - _distinct(np.add.reduceat(exact, first))}
    return {"exact": 1 - _distinct(exact) / rows, "near": 1 - _distinct(near) / rows, **again}


def _distinct(hashes: np.ndarray) -> int:
    """How many different ones there are; sorts them in place."""
    hashes.sort()
    return 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))


def _hash(words: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """One number a row, alike for rows that are alike [N, W] -> [N]."""
    words = words * odd
    words ^= words >> np.uint64(29)
    return (words * odd[::-1]).sum(1, dtype=np.uint64)


def drift(data: Rows, whole: tuple[Column, Column, Column]) -> dict[str, Any] | None:
    """How far columns move from the first quarter of the log to the last, in standard deviations.

    None where rows are few, or no longer in the order that they were logged in.
    """
    rows = data.count
    if rows < 2 * BLOCKS or not data.in_order:
        return None
    told: dict[str, Any] = {}
    quarter = BLOCKS // 4
    edges = np.linspace(0, rows, BLOCKS + 1).astype(int)
    arrays = (data.obs, data.action, data.reward[:, None])
    for name, array, column in zip(("observations", "actions", "rewards"), arrays, whole, strict=True):
        means = np.array([array[a:b].mean(0, dtype=np.float64) for a, b in pairwise(edges)])
        unit = np.where(column.std > 0, column.std, 1.0)
        start, end = means[:quarter], means[-quarter:]
        moved = np.abs(end.mean(0) - start.mean(0)) / unit
        doubt = np.sqrt((start.var(0, ddof=1) + end.var(0, ddof=1)) / quarter) / unit
        sure = moved > SURE * doubt
        told[name] = {
            "moved": float(moved.max()),
            "column": int(moved.argmax()),
            "sure": [int(i) for i in np.flatnonzero(sure & (moved > DRIFT))],
        }
    return told


def decide(found: dict[str, Any]) -> Answer:
    """Is the log diverse enough to learn a world and trust it, or should an offline planner be tuned on it?

    SOReL promises a value, so it needs a world that is right wherever a new policy may go, hence a log in which
    alike states were met with different actions; and episodes to hold out, or nothing shows that it is right.
    """
    asked = [_whole(found), _enough(found)]
    if found["rows"] >= LEAST:
        asked.append(tried := _tried(found))
        if tried[0] == "SOReL":
            asked.append(_turns(found))
    answers = [answer for answer in asked if answer is not None]
    systems = [system for system, _ in answers]
    system = next((s for s in ("neither yet", "TOReL") if s in systems), "SOReL")
    return Answer(system, tuple(reason for _, reason in answers), tuple(warn(found)))


def _answer(system: str, question: str, because: str) -> tuple[str, str]:
    return system, f"{question} {'Yes' if system == 'SOReL' else 'No'}: {because}."


def _whole(found: dict[str, Any]) -> tuple[str, str] | None:
    if found["episodes"] is None:
        return None
    share = _percent(found["broken"])
    because = f"{share} of the steps inside its episodes do not start where the step before ended"
    if found["broken"] <= BROKEN:
        return _answer("SOReL", "Does the log hang together?", because)
    because += f" (at most {BROKEN:.0%} may), so rows are missing, mixed up or mislabelled; repair that first"
    return _answer("neither yet", "Does the log hang together?", because)


def _enough(found: dict[str, Any]) -> tuple[str, str]:
    question, rows = "Is there enough of it?", found["rows"]
    count = None if found["episodes"] is None else found["episodes"]["count"]
    have = f"{rows:,} rows" + ("" if count is None else f" in {count:,} episode{'s' * (count != 1)}")
    if rows < LEAST or count == 1:
        why = (
            "with one episode none can be held out"
            if rows >= LEAST
            else f"at least {LEAST} rows are needed to tell"
        )
        return _answer("neither yet", question, f"{have}; {why}")
    if rows < ROWS:
        return _answer("TOReL", question, f"{have}; a world that can be trusted takes {ROWS:,} or more")
    if count is None:
        why = "without episodes nothing says where one begins, and rows held out may lie beside rows learned from"
        return _answer(
            "TOReL", question, f"{have} but no episodes; {why}, so a predicted value could not be trusted"
        )
    if count < EPISODES:
        why = f"from {EPISODES} on, enough can be held out to show that learned worlds know how wrong they are"
        return _answer("TOReL", question, f"{have}; {why}")
    return _answer("SOReL", question, have)


def _tried(found: dict[str, Any]) -> tuple[str, str]:
    question, acts = "Were alike states met with different actions?", found["actions"]
    share, left = acts["foretold"], acts["left_over"]
    if acts["still"]:
        return _answer("TOReL", question, "the action is always the same")
    if found["action_kind"] == "discrete":
        fit, because = share <= TAKEN, f"the state foretells {_percent(share)} of the choices"
        narrow = f"above {TAKEN:.0%} the log shows what one way of acting leads to, and not what others would"
        return _answer("SOReL" if fit else "TOReL", question, because if fit else f"{because}; {narrow}")
    because = (
        f"the state explains {_percent(share)} of how actions vary, and in alike states they differ by "
        f"{_percent(left)} of their range"
    )
    if share > FOLLOWS:
        why = f"above {FOLLOWS:.0%} the state all but settles the action, and where others lead is not shown"
        return _answer("TOReL", question, f"{because}; {why}")
    if left < SLIVER:
        why = f"under {SLIVER:.0%} little is shown of where other actions lead"
        return _answer("TOReL", question, f"{because}; {why}")
    return _answer("SOReL", question, because)


def _turns(found: dict[str, Any]) -> tuple[str, str] | None:
    told = found["actions"]["controllers"]
    if told is None:
        return None
    question, count = "Did more than a few controllers drive it?", told["count"]
    what = "the choices" if found["action_kind"] == "discrete" else "how actions vary"
    if count is not None:
        share = _percent(told["foretold"][count - 1])
        because = (
            f"{count} controllers that take turns by episode explain {share} of {what}, so a state was met with "
            f"{count} actions at most"
        )
        if count == 1:
            because = f"one controller explains {share} of {what} in the episodes that it was learned from"
        return _answer("TOReL", question, because)
    one, alone, most = told["foretold"][0], told["alone"], len(told["foretold"])
    share = _percent(max(told["foretold"]))
    several = (
        "and episodes differ in how they act"
        if alone > one + 0.1
        else "and episodes act alike on the whole, each with much chance"
    )
    return _answer(
        "SOReL", question, f"{most} deterministic ones explain no more than {share} of {what}, {several}"
    )


def warn(found: dict[str, Any]) -> Iterator[str]:
    """What else to know before using the log."""
    columns, told = found["observations"], found["episodes"]
    named = lambda these: (
        ", ".join(f"obs[{i}]" for i in these[:8]) + (f" and {len(these) - 8} more" if len(these) > 8 else "")
    )
    if same := [i for i, c in enumerate(columns) if c["constant"]]:
        yield f"{named(same)}: constant, and says nothing"
    if few := [
        i for i, c in enumerate(columns) if not c["constant"] and c["values"] <= min(VALUES, found["rows"] // 10)
    ]:
        yield f"{named(few)}: few values, like a switch or a label"
    if walls := [i for i, c in enumerate(columns) if any(w is not None for w in c["walls"])]:
        yield f"{named(walls)}: stops at a value that {TIES} rows or more share, as at the end of a rail"
    if found["rewards"]["min"] == found["rewards"]["max"]:
        alike = (
            ": all policies earn alike"
            if found["ends"] == 0
            else ", so only when episodes end tells policies apart"
        )
        yield "every reward is the same" + alike
    if found["copies"]["exact"] > COPIES:
        yield f"{_percent(found['copies']['exact'])} of the rows are exact copies of other rows"
    elif found["copies"]["near"] > COPIES:
        yield f"{_percent(found['copies']['near'])} of the rows nearly repeat other rows"
    if found["copies"].get("episodes"):
        yield f"{found['copies']['episodes']:,} episodes are copies of others: held out, they prove nothing"
    for name, moved in (found["drift"] or {}).items():
        if moved["sure"]:
            yield (
                f"{name} drift: by {moved['moved']:.1f} standard deviations from the first quarter of the log "
                "to the last, as when a learner learns, a world changes, or a log is sorted"
            )
    if told is not None and found["ends"] == 0:
        yield "no episode ended by itself: learned worlds will end at the horizon alone"
    if told is not None and told["cut"] > told["count"] // 2:
        yield f"{told['cut']:,} of {told['count']:,} episodes are cut short: their returns are parts of returns"
    if found["action_kind"] == "discrete" and found["actions"]["used"] < 1:
        never = [str(i) for i, share in enumerate(found["actions"]["shares"]) if share == 0]
        yield f"choices that were never taken: {', '.join(never[:20])}"
    if found["action_kind"] == "continuous" and found["actions"]["used"] < 0.5 and found["rows"] >= LEAST:
        yield f"only {_percent(found['actions']['used'])} of the actions' allowed range was used"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share == 0 or share >= 0.1 else f"{share:.1%}" if share >= 0.001 else "under 0.1%"


def _halves(data: Rows, first: np.ndarray | None, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """At most TEACH rows of one half of the episodes, and ASK rows of the other."""
    rows = data.count
    if first is None or len(first) == 1:
        cut = rows // 2
        parts = (
            (np.arange(cut), np.arange(cut, rows)) if first is not None else np.split(rng.permutation(rows), [cut])
        )
    else:
        lengths = np.diff(np.r_[first, rows])
        side = np.repeat(rng.permutation(len(first)) % 2 == 0, lengths)
        parts = np.flatnonzero(side), np.flatnonzero(~side)
    pick = lambda part, most: rng.choice(part, min(len(part), most), replace=False, shuffle=False)
    return pick(parts[0], TEACH), pick(parts[1], ASK)


def _view(data: Rows, task: Task, obs: Column, rng: np.random.Generator) -> View:
    """States and actions of rows as they are foretold from and as they are foretold: scaled, and not too wide."""
    width = len(obs.mean)
    mix = rng.normal(size=(width, WIDE)) / np.sqrt(width) if width > WIDE else None
    rare = None
    if isinstance(task.actions, Discrete) and task.actions.n > WIDE:
        rare = np.argsort(-np.bincount(data.action.argmax(1), minlength=task.actions.n))

    def view(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = _scaled(data.obs[rows], obs.mean, obs.std)
        action = data.action[rows].astype(np.float64)
        if rare is not None:
            action = np.concatenate([action[:, rare[:WIDE]], action[:, rare[WIDE:]].sum(1, keepdims=True)], 1)
        return state if mix is None else state @ mix, action

    return view


def _scaled(rows: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    return (rows - mean) / np.where(std > 0, std, 1.0)


def _parts(rows: np.ndarray) -> list[np.ndarray]:
    return np.split(rows, range(512, len(rows), 512))


def _distances(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    squared = (points**2).sum(1)[:, None] + (rows**2).sum(1) - 2 * points @ rows.T
    return np.sqrt(np.maximum(squared, 0.0))


def _nearest(seen: np.ndarray, known: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """What the nearest rows did, on average [Q, A]."""
    count = min(NEIGHBOURS, len(seen))
    near = [np.argpartition(_distances(part, seen), count - 1, axis=1)[:, :count] for part in _parts(asked)]
    return known[np.concatenate(near)].mean(1)


def _affine(x: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones((*x.shape[:-1], 1)), x], -1)


def _features(width: int, count: int, rng: np.random.Generator) -> Any:
    """A map of states to themselves and to random ridges of them."""
    weight, bias = rng.normal(size=(width, count)) / np.sqrt(width), rng.normal(size=count)
    return lambda x: np.concatenate([_affine(x), np.tanh(1.5 * x @ weight + bias)], -1)


def _ridge(x: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Weights of a ridge regression [F, A]."""
    gram = x.T @ x
    gram[np.diag_indices(len(gram))] += ridge * len(x)
    return np.linalg.solve(gram, x.T @ y)


def _snap(guess: np.ndarray, known: np.ndarray) -> np.ndarray | None:
    """Guesses moved to the nearest of the few values that actions take; None if they take many."""
    values = [np.unique(column) for column in known.T]
    if max(map(len, values)) > VALUES:
        return None
    nearest = [v[np.abs(g[:, None] - v).argmin(1)] for g, v in zip(guess.T, values, strict=True)]
    return np.stack(nearest, 1)
