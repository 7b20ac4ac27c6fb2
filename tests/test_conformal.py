"""Conformal intervals: coverage on exchangeable policies, and the failures that they state."""

import numpy as np
import pytest

from offing.types import BadInput
from offing.value.conformal import calibrate, least
from offing.value.estimate import ValueEstimate


def pool(rng, count, shift=0.0):
    """Policies whose estimates are three times surer than they should be, and `shift` deviations too high."""
    truths = rng.normal(0.0, 10.0, count)
    sizes = rng.uniform(0.5, 2.0, count)
    medians = truths + 3 * sizes * rng.normal(size=count) + 3 * sizes * shift
    worlds = np.array([-1.0, 0.0, 1.0]) * np.sqrt(3 / 4)  # a deviation of 1
    return [ValueEstimate((m + s * worlds)[:, None]) for m, s in zip(medians, sizes, strict=True)], truths


def covered(found, estimates, truths):
    return np.mean(
        [low <= t <= high for (low, high), t in zip(map(found.interval, estimates), truths, strict=True)]
    )


def test_coverage_holds_for_exchangeable_policies():
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(100):
        found = calibrate(*pool(rng, 19), level=0.9)
        shares.append(covered(found, *pool(rng, 20)))
    assert np.mean(shares) == pytest.approx(0.9, abs=0.03)  # 18 of 20 ranks, exactly 0.9
    estimates, truths = pool(rng, 1_000)
    bare = np.mean([e.deviation * 1.645 > abs(e.median - t) for e, t in zip(estimates, truths, strict=True)])
    assert bare < 0.6  # what the estimates said of themselves


def test_a_shifted_pool_is_not_covered_and_the_note_says_so():
    rng = np.random.default_rng(1)
    found = calibrate(*pool(rng, 99), level=0.9)
    assert covered(found, *pool(rng, 500)) > 0.85
    assert covered(found, *pool(rng, 500, shift=2.0)) < 0.6
    assert "exchangeable" in found.note


def test_the_best_looking_of_many_is_not_covered_either():
    """Estimates that are noise alone: the highest of 50 has overshot, and its interval knows nothing of that."""
    rng = np.random.default_rng(2)
    found = calibrate(*pool(rng, 99), level=0.9)
    hits = []
    for _ in range(100):
        estimates = [
            ValueEstimate(e.returns - e.median + x)
            for e, x in zip(pool(rng, 50)[0], rng.normal(0, 4, 50), strict=True)
        ]
        best = max(estimates, key=lambda e: e.median)
        hits.append(np.ptp(found.interval(best)) / 2 > abs(best.median))
    assert np.mean(hits) < 0.6


def test_the_factor_is_the_right_order_statistic():
    estimates = [ValueEstimate(np.array([[-1.0], [0.0], [1.0]]) * np.sqrt(3 / 4))] * 9
    found = calibrate(estimates, np.arange(1.0, 10.0), level=0.9)
    assert (found.factor, found.policies) == (pytest.approx(9.0), 9)
    assert calibrate(estimates, np.arange(1.0, 10.0), level=0.5).factor == pytest.approx(5.0)
    assert found.interval(estimates[0]) == (pytest.approx(-9.0), pytest.approx(9.0))
    bounded = estimates[0]._replace(bounds=(-2.0, 3.0))
    assert found.interval(bounded) == (-2.0, 3.0)


def test_too_few_policies_promise_nothing():
    estimates, truths = pool(np.random.default_rng(0), 8)
    found = calibrate(estimates, truths, level=0.9)
    assert found.factor == np.inf
    assert found.interval(estimates[0]) == (-np.inf, np.inf)
    assert (least(0.9), least(0.95)) == (9, 19)
    assert "too few" in found.note


def test_what_cannot_be_calibrated_is_said():
    with pytest.raises(BadInput, match="one of each"):
        calibrate(pool(np.random.default_rng(0), 3)[0], [1.0])
    with pytest.raises(BadInput, match="between 0 and 1"):
        calibrate(*pool(np.random.default_rng(0), 3), level=1.0)
