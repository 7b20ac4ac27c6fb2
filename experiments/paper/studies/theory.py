"""The theory, held to problems in which everything is known: no simulator, no net, seconds on one core.

tabular   a few states and actions, Dirichlet posteriors: Theorem 1's bound against the true regret
linear    s' = a s + b u + noise, reward exp(-s^2), conjugate posteriors: the same, by Gaussian moments
rate      N times PIL, for a linear-Gaussian world model: it goes to the number of parameters, halved and doubled
wrong     a world that bends, learned by straight lines: what of PIL stays, and what the library says of it
curves    the paper's own figure: the bound for C d / N, with C = 1
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy import special

import offing
from offing.data import split, take
from offing.pil import PIL, evidence, judge, regret_bound
from offing.posterior.models import linear
from offing.tune.choose import learned_elsewhere
from offing.types import Json

from ..parts import Numbers, Part, Place, Settings, Work

SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000)
MEMBERS = 32  # worlds of a fold
HORIZON = 150  # steps after which a discounted sum is over


def parts(scale: str) -> list[Part]:
    """One part each; all of them on one core."""
    few = scale == "smoke"
    sizes: Json = [10, 100] if few else list(SIZES)
    problems = 2 if few else 40
    every: dict[str, tuple[Work, Settings, float]] = {
        "tabular": (tabular, {"sizes": sizes, "problems": problems, "discount": 0.9, "seed": 0}, 20),
        "linear": (control, {"sizes": sizes, "problems": problems, "discount": 0.9, "seed": 0}, 10),
        "rate": (
            rate,
            {
                "sizes": [200] if few else [100, 300, 1_000, 3_000, 10_000],
                "seeds": [0] if few else [0, 1, 2],
                "members": MEMBERS,
            },
            60,
        ),
        "wrong": (
            wrong,
            {
                "rows": [400] if few else [400, 1_600, 6_400],
                "bends": [0.0, 0.5] if few else [0.0, 0.25, 0.5],
                "seeds": [0] if few else [0, 1, 2],
            },
            100,
        ),
        "curves": (curves, {"discounts": [0.9, 0.99, 0.998], "parameters": [10, 100, 1_000]}, 1),
    }
    return [
        Part("theory", name, "plan", "CPU", 3.0 if few else seconds, settings, work)
        for name, (work, settings, seconds) in every.items()
    ]


def curves(place: Place, settings: Settings) -> Numbers:
    """Normalised regret bounds against rows: for more parameters, and for later rewards."""
    del place
    rows = np.logspace(0, 8, 81)
    bound = lambda count, discount: [0.5 * regret_bound(count / n, discount).theorem for n in rows]
    of = lambda names: settings[names]
    return {
        "rows": rows.tolist(),
        "parameters": {str(count): bound(count, 0.99) for count in of("parameters")},
        "discounts": {str(discount): bound(100, discount) for discount in of("discounts")},
    }


# ---- a few states


def tabular(place: Place, settings: Settings) -> Numbers:
    """Theorem 1 where all policies can be listed: regret of the Bayes policy, PIL and bound, problem by problem.

    Rewards are known and lie within 0 and 1; next states are not. `rows` are those of every state and action.
    """
    del place
    states, actions, discount = 4, 3, settings["discount"]
    rng = np.random.default_rng(settings["seed"])
    policies = np.stack(np.meshgrid(*[range(actions)] * states, indexing="ij"), -1).reshape(-1, states)
    results = []
    for _ in range(settings["problems"]):
        true = rng.dirichlet(np.ones(states), (states, actions))
        reward = rng.uniform(size=(states, actions))
        for rows in settings["sizes"]:
            counts = np.stack([rng.multinomial(rows, p) for p in true.reshape(-1, states)]).reshape(true.shape)
            results.append((rows, *one_table(true, reward, 1.0 + counts, policies, discount, rng)))
    return summed(results, discount)


def one_table(
    true: np.ndarray,
    reward: np.ndarray,
    counts: np.ndarray,
    policies: np.ndarray,
    discount: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Regret of the Bayes-optimal policy and the largest PIL of any policy, for one posterior."""
    drawn = np.stack([rng.dirichlet(row, 64) for row in counts.reshape(-1, counts.shape[-1])], 1)
    drawn = drawn.reshape(64, *counts.shape)
    bayes = int(np.argmax(returns(drawn, reward, policies, discount).mean(0)))
    truth = returns(true, reward, policies, discount)
    total = counts.sum(-1, keepdims=True)
    logs = special.digamma(counts) - special.digamma(total)  # E log p under the posterior
    information = np.sum(true * (np.log(np.maximum(true, 1e-300)) - logs), -1)  # E KL of a state and action
    visits = np.stack([occupancy(true, policy, discount) for policy in policies])  # [P, S]
    chosen = np.stack([information[np.arange(len(policy)), policy] for policy in policies])
    return float(truth.max() - truth[bayes]), float(np.max(np.sum(visits * chosen, 1)))


def returns(moves: np.ndarray, reward: np.ndarray, policies: np.ndarray, discount: float) -> np.ndarray:
    """Discounted returns from the first state of all policies [P, S], in worlds [..., S, A, S]: [..., P]."""
    states = np.arange(policies.shape[1])
    chains = moves[..., states, policies, :]  # [..., P, S, S]
    earned = np.broadcast_to(reward[states, policies][..., None], (*chains.shape[:-1], 1))
    return np.linalg.solve(np.eye(len(states)) - discount * chains, earned)[..., 0, 0]


def occupancy(moves: np.ndarray, policy: np.ndarray, discount: float) -> np.ndarray:
    """Shares of discounted time in each state, from the first: what the paper's arithmetico-geometric mean is."""
    chain = moves[np.arange(len(policy)), policy]
    start = np.eye(len(policy))[0]
    return (1 - discount) * np.linalg.solve(np.eye(len(policy)) - discount * chain.T, start)


# ---- a straight line


def control(place: Place, settings: Settings) -> Numbers:
    """Theorem 1 for s' = a s + b u + noise, u = -k s, reward exp(-s^2): returns and PIL by Gaussian moments.

    The gains k are those that are stable, whatever a and b: the bound is over the policies that one would take.
    """
    del place
    discount, rng = settings["discount"], np.random.default_rng(settings["seed"])
    noise, gains, results = 0.3, np.linspace(0.0, 1.5, 16), []
    direction = np.stack([np.ones(len(gains)), -gains], 1)  # [G, 2]
    for _ in range(settings["problems"]):
        truth_of = np.array([rng.uniform(0.5, 0.8), rng.uniform(0.2, 0.4)])
        for rows in settings["sizes"]:
            x = rng.normal(size=(rows, 2))  # states and actions
            y = x @ truth_of + noise * rng.normal(size=rows)
            covariance = np.linalg.inv(x.T @ x / noise**2 + np.eye(2))
            mean = covariance @ (x.T @ y) / noise**2
            drawn = rng.multivariate_normal(mean, covariance, 64)
            expected = bells(drawn @ direction.T, noise, discount)[0].mean(0)
            earned, squares = bells(direction @ truth_of, noise, discount)
            off = np.square(direction @ (mean - truth_of))
            spread = np.einsum("ki,ij,kj->k", direction, covariance, direction)
            information = (off + spread) * squares / (2 * noise**2)
            results.append((rows, float(earned.max() - earned[np.argmax(expected)]), float(information.max())))
    return summed(results, discount)


def bells(slope: np.ndarray, noise: float, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """Discounted sums of E exp(-s_t^2), from s_0 = 1, and discounted means of E s_t^2, for every closed loop."""
    slope = np.clip(slope, -1.0, 1.0)
    mean, variance = np.ones(slope.shape), np.zeros(slope.shape)
    earned, squares = np.zeros(slope.shape), np.zeros(slope.shape)
    for t in range(HORIZON):
        wide, weight = 1 + 2 * variance, discount**t
        earned += weight * np.exp(-np.square(mean) / wide) / np.sqrt(wide)
        squares += (1 - discount) * weight * (np.square(mean) + variance)
        mean, variance = slope * mean, slope**2 * variance + noise**2
    return earned, squares


def summed(results: list[tuple[int, float, float]], discount: float) -> Numbers:
    """Regret, PIL and bound by rows, as shares of the largest regret that rewards within 0 and 1 allow."""
    rows, regret, information = (np.array(column) for column in zip(*results, strict=True))
    most = 1 / (1 - discount)
    bounds = np.array([regret_bound(i, discount).value for i in information])
    sizes = np.unique(rows)
    by = lambda column: [float(np.mean(column[rows == n])) for n in sizes]
    return {
        "rows": sizes.tolist(),
        "regret": by(regret / most),
        "pil": by(information),
        "bound": by(np.minimum(bounds, 1.0)),
        "not_vacuous": by(bounds < 1),
        "violations": int(np.sum(regret / most > bounds + 1e-9)),
        "cases": len(rows),
        "slope": float(np.polyfit(np.log(sizes), np.log(by(information)), 1)[0]) if len(sizes) > 1 else None,
    }


# ---- the library's own worlds


def straight(rows: int, seed: int, bend: float = 0.0, noise: float = 0.2) -> dict[str, Any]:
    """Columns of a log: three states that follow a line and `bend` times a wave, one amount, episodes of 20."""
    rng = np.random.default_rng([seed, rows])
    turn = np.array([[0.8, 0.1, 0.0], [0.0, 0.7, 0.2], [0.1, 0.0, 0.6]])
    obs, action, count = np.zeros((rows + 1, 3)), rng.uniform(-1, 1, (rows, 1)), rows // 20
    final, ends = np.zeros((-(-rows // 20), 3)), np.arange(19, rows, 20)
    for t in range(rows):
        if t % 20 == 0:
            obs[t] = rng.normal(size=3)
        after = turn @ obs[t] + 0.3 * action[t] + bend * np.cos(2 * obs[t]) + noise * rng.normal(size=3)
        final[t // 20], obs[t + 1] = after, after
    truncated = np.zeros(rows, bool)
    truncated[ends] = True
    reward = obs[:rows, 0] - 0.1 * action[:, 0] + noise * rng.normal(size=rows)
    named = {"obs": obs[:rows], "action": action, "reward": reward, "final_obs": final[:count]}
    plain = {name: column.astype(np.float32) for name, column in named.items()}
    ended = {"terminated": np.zeros(rows, bool), "truncated": truncated}
    settings = {"horizon": np.int64(20), "discount": np.float64(0.9)}
    edges = {"action_low": -np.ones(1, np.float32), "action_high": np.ones(1, np.float32)}
    return {**plain, **ended, **settings, **edges}


def measured(columns: dict[str, Any], seed: int, members: int) -> tuple[PIL, int]:
    """PIL of `offing`'s linear worlds on episodes that they have not seen, and the rows a fold learned from."""
    log = offing.load(columns)
    hypers = linear.Hypers(members=members)
    where, _ = split(log.data, seed, hypers.folds)
    prepared = linear.model.prepare(log.data, log.task)
    fitted = linear.model.fit(jax.random.key(seed), hypers, log.data, where, prepared.arrays, prepared.shape)
    worlds = linear.model.posterior(fitted, hypers, prepared, log.data, log.task)
    held, others = take(log.data, where.held), learned_elsewhere(log.data, where)
    return judge(evidence(worlds, held, others)), int(np.mean(where.sizes))


def rate(place: Place, settings: Settings) -> Numbers:
    """N times spread and error of linear worlds: both go to half the number of weights that the log teaches."""
    del place
    rows = settings["sizes"]
    results: dict[str, list[float]] = {"rows": [], "pil": [], "exact": []}
    weights = 5 * 4  # of (1, three states, an amount), for four outputs
    for count in rows:
        each = []
        for seed in settings["seeds"]:
            found, used = measured(straight(2 * count, seed), seed, settings["members"])
            each.append((used, found.v))
        used, spread = np.mean(each, 0)
        results["rows"].append(float(used))
        results["pil"].append(float(spread))
        results["exact"].append(weights / 2 / float(used))
    slope = np.polyfit(np.log(results["rows"]), np.log(results["pil"]), 1)[0] if len(rows) > 1 else None
    return {**results, "weights": weights, "slope": slope}


def wrong(place: Place, settings: Settings) -> Numbers:
    """Straight lines for a world that bends: error stays, spread does not, and the word for it changes."""
    del place
    results = []
    for bend in settings["bends"]:
        for count in settings["rows"]:
            for seed in settings["seeds"]:
                found, used = measured(straight(count, seed, bend), seed, MEMBERS)
                results.append({"bend": bend, "rows": used, "seed": seed, "error": found.e, "spread": found.v,
                                "imbalance": found.imbalance, "word": found.word})  # fmt: skip
    return {"each": results}
