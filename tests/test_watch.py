"""Watching a deployed policy: evidence that may be looked at after every episode."""

import numpy as np
import pytest

from offing.watch.earning import KEEP, NOT_YET, STOP, Earning, promise_of
from offing.watch.evidence import Bet, Both

WORLDS = np.random.default_rng(0).normal(100, 20, (8, 256)) + np.linspace(-10, 10, 8)[:, None]
PROMISE = promise_of(WORLDS, 100.0, (75.0, 125.0), 60.0, (0.0, 500.0))


def deployed(mean, seed, episodes=200, spread=30.0):
    """What Earning says after each episode of a deployment with that mean."""
    rng = np.random.default_rng(seed)
    earning = Earning(PROMISE)
    return [earning.update(x).word for x in rng.normal(mean, spread, episodes)]


def test_a_promise_that_just_holds_is_rarely_stopped():
    stopped = sum(STOP in deployed(75.0, seed) for seed in range(100))
    assert stopped <= 9  # 5% asked; 10 or more of 100 has probability 0.03 even at 5%


def test_a_broken_promise_is_stopped():
    assert sum(STOP in deployed(75.0 - 12.5, seed) for seed in range(40)) >= 36


def test_a_policy_that_earns_what_was_promised_is_kept():
    words = [deployed(100.0, seed) for seed in range(20)]
    assert sum(said[-1] == KEEP for said in words) >= 19
    assert words[0][0] == NOT_YET


def test_what_is_missing_is_said():
    earning = Earning(PROMISE)
    for x in np.random.default_rng(1).normal(100, 30, 3):
        standing = earning.update(x)
    assert standing.word == NOT_YET
    assert 1 <= standing.more < 100


def test_wealth_does_not_grow_on_average_where_the_claim_holds():
    rng = np.random.default_rng(2)
    totals = []
    for _ in range(400):
        bet = Bet(1.0)
        for y in rng.choice([-1.0, 1.0], 30):
            bet.update(y)
        totals.append(np.exp(bet.total))
    assert np.mean(totals) == pytest.approx(1.0, abs=0.25)


def test_a_late_change_is_found_and_dated():
    bets, rng = Both(-0.1, 0.1), np.random.default_rng(3)
    for x in rng.uniform(-0.5, 0.5, 256):
        assert bets.update(x) < 5
    for _ in range(80):
        total = bets.update(rng.uniform(0.2, 0.8))
    assert total > 9
    assert bets.since == 255
    assert bets.side == 1
