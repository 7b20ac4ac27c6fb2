"""Metrics over pools of policies, against values worked by hand; ties, constants, and what chance gives."""

import itertools

import numpy as np
import pytest
from scipy import stats

from offing.types import BadInput
from offing.value import metrics
from offing.value.estimate import ValueEstimate

X, Y = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0, 7.0])


def about(median, half):
    """An estimate with three worlds whose median and deviation are known."""
    return ValueEstimate(np.array([[median - half], [median], [median + half]]))


def test_absolute_error_and_its_chance():
    found = metrics.absolute_error(X, Y)
    assert found.value == pytest.approx((1 + 1 + 1 + 1 + 2) / 5)
    everyone = np.mean([abs(x - y) for x, y in itertools.product(X, Y)])
    assert found.chance == pytest.approx(everyone)
    assert found.value <= found.luck < found.chance
    assert found.policies == 5


def test_correlations_by_hand():
    r = metrics.pearson(X, Y)
    assert r.value == pytest.approx(12 / np.sqrt(10 * 21.2))
    middle = np.arctanh(r.value)
    np.testing.assert_allclose((r.low, r.high), np.tanh([middle - 1.96 / np.sqrt(2), middle + 1.96 / np.sqrt(2)]))
    assert r.p == pytest.approx(stats.pearsonr(X, Y)[1])
    assert metrics.spearman(X, Y).value == pytest.approx(1 - 6 * 4 / (5 * 24))  # ranks off by 1 in four places
    assert metrics.kendall(X, Y).value == pytest.approx((8 - 2) / 10)
    assert (r.chance, r.luck > 0.5) == (0.0, True)


def test_ties_share_their_ranks():
    x, y = [1.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 3.0]
    assert metrics.spearman(x, y).value == pytest.approx(stats.spearmanr(x, y)[0])
    assert metrics.kendall(x, y).value == pytest.approx(stats.kendalltau(x, y)[0])
    assert metrics.kendall(x, y).value == pytest.approx(4 / np.sqrt(5 * 5))


@pytest.mark.parametrize("figure", [metrics.pearson, metrics.spearman, metrics.kendall])
def test_a_constant_says_nothing(figure):
    found = figure(np.full(5, 3.0), Y)
    assert (found.value, found.low, found.high, found.p) == (0.0, -1.0, 1.0, 1.0)
    perfect = figure(Y, Y)
    assert perfect.value == pytest.approx(1.0)
    assert perfect.low > 0.9


def test_luck_is_what_shuffling_reaches_one_time_in_twenty():
    rng = np.random.default_rng(1)
    luck = metrics.pearson(rng.normal(size=30), np.arange(30.0)).luck
    assert luck == pytest.approx(0.306, abs=0.03)  # the one-sided 5% point of r at n = 30


def test_regret_of_choosing_the_best_and_the_worst():
    truths = np.array([0.0, 4.0, 10.0])
    assert metrics.regret([1.0, 2.0, 3.0], truths).value == 0.0
    assert metrics.regret([3.0, 2.0, 1.0], truths).value == 1.0
    assert metrics.regret([3.0, 2.0, 1.0], truths, k=2).value == pytest.approx(0.6)
    assert metrics.regret([3.0, 2.0, 1.0], truths, k=2, scaled=False).value == pytest.approx(6.0)
    assert metrics.regret([3.0, 2.0, 1.0], truths, k=3).value == 0.0
    with pytest.raises(BadInput, match="3 policies"):
        metrics.regret([3.0, 2.0, 1.0], truths, k=4)


def test_regret_breaks_ties_at_random_and_not_by_order():
    truths = np.array([10.0, 4.0, 0.0, 2.0])
    tied = metrics.regret([7.0, 7.0, 7.0, 1.0], truths)
    assert tied.value == pytest.approx((0 + 0.6 + 1) / 3)
    assert (tied.low, tied.high) == (0.0, 1.0)
    some = metrics.regret([9.0, 9.0, 8.0, 8.0], [4.0, 0.0, 10.0, 2.0], k=3)  # two are sure, one of two is drawn
    assert some.value == pytest.approx((0.0 + 0.6) / 2)


def test_a_constant_has_the_regret_of_chance():
    rng = np.random.default_rng(0)
    truths = rng.normal(size=11)
    for k in (1, 5):
        found = metrics.regret(np.zeros(11), truths, k)
        assert found.value == pytest.approx(found.chance)
        draws = [truths[rng.permutation(11)[:k]].max() for _ in range(20_000)]
        assert found.chance == pytest.approx(np.mean(truths.max() - draws) / np.ptp(truths), abs=0.006)
    assert metrics.regret(np.zeros(11), truths, 5).luck == 0.0  # five of eleven hold the best nearly half the time


def test_coverage_with_its_binomial_interval():
    pairs = np.stack([np.zeros(10), np.ones(10)], 1)
    found = metrics.coverage(pairs, np.r_[np.full(9, 0.5), 2.0])
    assert found.value == pytest.approx(0.9)
    np.testing.assert_allclose((found.low, found.high), stats.binomtest(9, 10).proportion_ci())
    assert metrics.binomial(0, 5)[0] == 0.0
    assert metrics.binomial(5, 5) == (pytest.approx(0.025 ** (1 / 5)), 1.0)
    half = stats.t.ppf(0.95, 2) * np.sqrt(4 / 3)
    estimates = [about(0.0, 1.0)] * 2
    assert metrics.coverage(estimates, [half - 0.01, half + 0.01]).value == 0.5


def test_interval_score_by_hand():
    found = metrics.interval_score(np.array([[0.0, 1.0], [0.0, 1.0]]), [0.5, 1.5], level=0.8)
    assert found.value == pytest.approx((1 + (1 + 10 * 0.5)) / 2)
    with pytest.raises(BadInput, match="a low and a high"):
        metrics.interval_score(np.zeros(3), np.zeros(3))


def test_crps_of_draws_by_hand_and_of_students_distribution():
    found = metrics.crps(np.array([[0.0, 2.0], [5.0, 5.0]]), [1.0, 7.0])
    assert found.value == pytest.approx(((1 - 0.5) + 2) / 2)
    sure = about(3.0, 0.0)
    assert metrics.crps([sure, sure], [3.0, 5.0]).value == pytest.approx(1.0)  # then it is the absolute error
    many = ValueEstimate(np.random.default_rng(0).normal(size=(2_001, 1)))  # Student's is Gaussian with so many
    at_centre = many.deviation * (np.sqrt(2) - 1) / np.sqrt(np.pi)
    assert metrics.crps([many, many], [many.median] * 2).value == pytest.approx(at_centre, rel=0.02)


def test_a_gate_errs_both_ways():
    truths = [5.0, 5.0, -5.0, 5.0, -5.0]
    found = metrics.gate([True, True, True, False, False], truths, threshold=0.0)
    assert (found.false_deploy.value, found.false_hold.value) == (pytest.approx(1 / 3), 0.5)
    assert (found.deployed, found.held) == (3, 2)
    assert (found.false_deploy.chance, found.false_hold.chance) == (0.4, 0.6)
    np.testing.assert_allclose(
        (found.false_deploy.low, found.false_deploy.high), stats.binomtest(1, 3).proportion_ci()
    )
    sure = metrics.gate([about(5.0, 0.1), about(5.0, 100.0)], [1.0, 1.0], threshold=0.0)
    assert (sure.deployed, sure.held, sure.false_hold.value) == (1, 1, 1.0)
    none = metrics.gate([False, False], [1.0, -1.0], threshold=0.0)
    assert np.isnan(none.false_deploy.value)


def test_what_cannot_be_compared_is_said():
    with pytest.raises(BadInput, match="one of each"):
        metrics.pearson([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(BadInput, match="finite"):
        metrics.pearson([1.0, np.nan], [1.0, 2.0])
    assert set(metrics.table([about(1.0, 1.0), about(2.0, 1.0)], [1.0, 2.0])) >= {"pearson", "regret@1"}
