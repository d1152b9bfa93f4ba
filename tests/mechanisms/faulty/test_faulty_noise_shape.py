"""Noise of the wrong shape, and counts forced into a range: outputs, their probabilities, and the loss.

Random tests raise a false alarm with probability 1e-8 at most each.
"""

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import DatasetError
from dpaudit.mechanisms import LaplaceLaw, exact_epsilon
from dpaudit.mechanisms import faulty as f

ALARM, RUNS = 1e-8, 100_000


def rng():
    return np.random.default_rng(3)


def are_plausible(is_hit, probability):
    """Whether the number of hits is inside the exact binomial limits."""
    limits = stats.binom(len(is_hit), probability)
    return limits.ppf(ALARM / 2) <= np.count_nonzero(is_hit) <= limits.isf(ALARM / 2)


def test_truncated_noise_stays_within_its_reach():
    outputs = f.BoundedLaplace(0.5, reach=3.0).sample(10.0, RUNS, rng())
    assert 4.0 <= outputs.min() < 4.1
    assert 15.9 < outputs.max() <= 16.0
    beyond = (math.exp(-1) - math.exp(-3)) / (1 - math.exp(-3)) / 2
    assert are_plausible(outputs > 12.0, beyond)
    assert are_plausible(outputs < 8.0, beyond)


def test_one_sided_noise_is_exponential():
    outputs = f.OneSidedLaplace(0.5).sample(10.0, RUNS, rng())
    assert outputs.min() >= 10.0
    assert are_plausible(outputs > 12.0, math.exp(-1))


def test_noise_of_few_bits_has_few_values():
    mechanism = f.FewValuesLaplace(0.5, bits=5)
    here, there = (set(mechanism.sample(answer, 5_000, rng()).tolist()) for answer in (0.0, 1.0))
    assert len(here) == len(there) == 2**5
    assert not here & there
    law = LaplaceLaw(0.0, 2.0)
    assert sorted(law.cdf(sorted(here))) == pytest.approx((np.arange(32) + 0.5) / 32, abs=1e-6)


@pytest.mark.parametrize("count", [0, 2])
def test_counts_redrawn_until_they_are_not_negative(count):
    outputs = f.RedrawnUntilNonnegative(0.5).sample(count, RUNS, rng())
    assert outputs.min() >= 0
    law = LaplaceLaw(count, 2.0)
    assert are_plausible(outputs <= 1.0, (law.cdf(1.0) - law.cdf(0.0)) / law.sf(0.0))


def test_the_loss_of_redrawing():
    z = np.linspace(0, 30, 301)

    def log_density(count):
        law = LaplaceLaw(count, 2.0)
        return law.log_density(z) - np.log(law.sf(0.0))

    losses = [np.abs(log_density(count) - log_density(count + 1)).max() for count in range(5)]
    assert losses[0] == max(losses) == pytest.approx(f.RedrawnUntilNonnegative(0.5).truth.epsilon, rel=1e-12)
    with pytest.raises(DatasetError, match="the count -1 is negative"):
        f.RedrawnUntilNonnegative(0.5).sample(-1, 1, rng())


def test_noise_rounded_towards_zero():
    mechanism = f.TowardsZeroLaplace(0.5)
    outputs = mechanism.sample(7, RUNS, rng())
    zero, one = -math.expm1(-0.5), -math.expm1(-0.5) * math.exp(-0.5) / 2
    assert outputs.dtype == np.int64
    assert are_plausible(outputs == 7, zero)
    assert are_plausible(outputs == 8, one)
    assert are_plausible(outputs == 6, one)
    assert math.log(zero / one) == pytest.approx(mechanism.truth.epsilon, rel=1e-12)


def test_a_seed_from_the_data_leaves_no_noise():
    mechanism = f.SeededByTheData(0.5)
    first = mechanism.sample([1, 2, 2], 50, rng())
    assert len(set(first)) == 1
    assert np.array_equal(first, mechanism.sample([2, 1, 2], 50, np.random.default_rng(4)))
    assert first[0] != mechanism.sample([1, 2], 1, rng())[0]


def test_scales_of_the_twins():
    assert f.BestOfDraws(0.5, k=4).law(0.0) == LaplaceLaw(0.0, 0.5)
    deviation = f.DeviationAsScaleLaplace(0.5).law(0.0).scale * math.sqrt(2)
    assert deviation == pytest.approx(2.0, rel=1e-15)
    for twin in (f.BestOfDraws(0.5, k=4), f.DeviationAsScaleLaplace(0.5)):
        assert exact_epsilon(twin.law(0.0), twin.law(1.0)) == pytest.approx(twin.truth.epsilon, rel=1e-15)
        assert twin.claim == PureDP(0.5)


def test_the_best_of_draws_is_nearest_to_the_answer():
    draws = np.random.default_rng(5).laplace(scale=2.0, size=(RUNS, 4))
    nearest = np.take_along_axis(draws, np.abs(draws).argmin(axis=1)[:, None], axis=1)[:, 0]
    law = f.BestOfDraws(0.5, k=4).law(0.0)
    for z in (-1.0, -0.1, 0.3, 2.0):
        assert are_plausible(nearest <= z, float(law.cdf(z)))


def test_a_clamped_count_has_the_masses_of_the_tails():
    law = f.RangedCount(0.5, 3, is_redrawn=False).law([1, 0])
    free = {k: (1 - math.exp(-0.5)) / (1 + math.exp(-0.5)) * math.exp(-0.5 * abs(k - 1)) for k in range(-200, 200)}
    expected = [sum(free[k] for k in range(-200, 1)), free[1], free[2], sum(free[k] for k in range(3, 200))]
    assert law.probabilities.tolist() == pytest.approx(expected, rel=1e-12)
    assert f.RangedCount(0.5, None, is_redrawn=False).law([]).probabilities.tolist() == [1.0]


@pytest.mark.parametrize("most", [1, 4])
def test_redrawing_into_a_range_loses_more_and_clamping_does_not(most):
    twin, clamped = f.RedrawnIntoRange(0.5, most), f.RangedCount(0.5, most, is_redrawn=False)
    datasets = [[1] * count for count in range(most + 1)]

    def largest(mechanism):
        laws = [mechanism.law(dataset) for dataset in datasets]
        return max(exact_epsilon(*laws[i : i + 2]) for i in range(most))

    assert largest(twin) == pytest.approx(twin.truth.epsilon, rel=1e-12)
    assert (twin.truth.epsilon > 0.5) == (most > 1)  # one step apart in {0, 1} the two normalisers are the same
    assert twin.truth.epsilon < 1.0
    assert largest(clamped) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("is_redrawn", [True, False])
def test_a_range_that_follows_the_rows_reveals_a_row(is_redrawn):
    twin = f.RangeOfTheRows(0.5, is_redrawn)
    assert exact_epsilon(twin.law([0, 1]), twin.law([0, 1, 0])) == math.inf
    assert twin.truth is None
    assert twin.sample([0, 1], 1000, rng()).max() == 2
