"""The ladder of insufficient noise: losses in closed form, means by other integrals.

Each count is outside its limits with probability at most 1e-8.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.experiments.published import ladder
from dpaudit.experiments.published.exposed_means import STEP, BoundedMean
from dpaudit.mechanisms import LaplaceLaw, exact_delta

from .test_suites import RATIOS, is_near

ENTRIES = {entry.name: entry for entry in ladder.entries()}


def mean_above(mean, total, count, t):
    """Pr[A/max(1, C) > t] of the noisy sum A and count C, by adaptive quadrature over the count."""
    scale = 2 / mean.epsilon

    def integrand(c):
        density = math.exp(-abs(c - count) / scale) / (2 * scale)
        return density * float(LaplaceLaw(total, scale).sf(t * max(c, 1.0)))

    stops = sorted({1.0, float(count), *([total / t] if t else [])})
    edges = [stops[0] - 60 * scale, *stops, stops[-1] + 60 * scale]
    return sum(integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in itertools.pairwise(edges))


def test_the_gaussian_delta_is_above_the_claimed_one():
    entry = ENTRIES["Gaussian sum 0.95"]
    delta = exact_delta(entry.mechanism.law(entry.x), entry.mechanism.law(entry.y), 1.0)
    assert 0.011 < delta < 0.013


class TestBoundedMean:
    @pytest.mark.parametrize("ratio", RATIOS)
    def test_the_loss_on_the_pair_in_closed_form(self, ratio):
        """The noise of the count compensates the factor e^{−εc/2} of the tail up to the true count."""
        entry, epsilon = ENTRIES[f"mean {ratio:.2f}"], 1 / ratio
        n = len(entry.x)
        assert sum(entry.x) == n % 2
        expected = epsilon - math.log1p(epsilon / (3 + (n - 1) * epsilon))
        assert entry.exact == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize(
        "ratio", [pytest.param(each, marks=pytest.mark.evidence if 0.5 < each < 1.0 else ()) for each in RATIOS]
    )
    def test_no_other_output_of_the_pair_loses_more(self, ratio):
        entry = ENTRIES[f"mean {ratio:.2f}"]
        x, y = entry.mechanism.law(entry.x), entry.mechanism.law(entry.y)
        z = np.linspace(-1, 1, 101)
        assert (x.log_density(z) - y.log_density(z)).max() == pytest.approx(entry.exact, rel=1e-9)

    def test_the_law_by_other_integrals(self):
        mean, rows = BoundedMean(0.8, -2.0, 4.0), [4.0, 4.0, 1.0, 7.0, -2.0]  # 2 half ranges, 5 rows
        law = mean.law(rows)
        for z in (-1.9, 0.5, 1.0, 2.5, 3.9):
            exact = mean_above(mean, 2.0, 5, (z - 1) / 3)
            assert float(law.sf(z)) == pytest.approx(exact, rel=1e-9)
            assert float(law.cdf(z)) == pytest.approx(1 - exact, rel=1e-9)
            slope = (float(law.cdf(z + 1e-5)) - float(law.cdf(z - 1e-5))) / 2e-5
            assert math.exp(law.log_density(z)) == pytest.approx(slope, rel=1e-6)
        ends = np.exp(law.log_density([-2.0, 4.0]))
        inside = integrate.quad(lambda z: math.exp(law.log_density(z)), -2.0, 4.0, points=[1.0, 2.2], epsabs=1e-9)[0]
        assert ends.sum() + inside == pytest.approx(1.0, abs=1e-7)
        assert ends[1] == pytest.approx(mean_above(mean, 2.0, 5, 1.0), rel=1e-9)
        assert law.log_density([-2.1, 4.1]).tolist() == [-math.inf, -math.inf]
        assert law.cdf([-2.1, 4.0]).tolist() == [0.0, 1.0]
        assert law.sf([-2.1, 4.0]).tolist() == [1.0, 0.0]

    @pytest.mark.evidence
    def test_outputs_follow_the_law(self):
        mean, rows, runs = BoundedMean(0.8, -2.0, 4.0), [4.0, 4.0, 1.0, 7.0, -2.0], 100_000
        outputs = mean.sample(rows, runs, np.random.default_rng(1))
        assert outputs.min() == -2.0
        assert outputs.max() == 4.0
        assert np.all(outputs % STEP == 0)
        law = mean.law(rows)
        for z in (-2.0, 0.0, 1.0, 2.5, 3.999):
            assert is_near(np.count_nonzero(outputs <= z), runs, float(law.cdf(z)))

    @pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (-math.inf, 1.0), (0.0, math.nan)])
    def test_bounds(self, bounds):
        with pytest.raises(ClaimError, match="is not allowed"):
            BoundedMean(1.0, *bounds)

    @pytest.mark.parametrize("dataset", [3.0, [[1.0]], ["one"], [math.nan]])
    def test_rows_that_are_not_numbers(self, dataset):
        with pytest.raises(DatasetError, match="is not a list of numbers"):
            BoundedMean(1.0).sample(dataset, 1, np.random.default_rng(1))
