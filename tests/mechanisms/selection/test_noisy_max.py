"""Report noisy max: laws against quadrature, permutations and the exponential mechanism; claims on random pairs."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import DatasetError
from dpaudit.mechanisms import ExponentialMechanism, ReportNoisyMax, exact_epsilon

COUNTS = [
    [3.0], [0.0, 0.0], [0.0, 1.0, 2.5, 2.5, -4.0], [0.0, 40.0, 39.0],
]  # fmt: skip
NOISES = ["laplace", "exponential", "gumbel"]


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize(("noise", "law"), [("laplace", stats.laplace), ("exponential", stats.expon)])
def test_law_by_adaptive_quadrature(counts, noise, law):
    mechanism = ReportNoisyMax(1.0, sensitivity=0.5, noise=noise)  # scale 1
    found = mechanism.law(counts).probabilities
    stops = sorted({min(counts) - 40, *counts, max(counts) + 40})
    for i, count in enumerate(counts):

        def integrand(z, i=i, count=count):
            return law.pdf(z - count) * math.prod(law.cdf(z - c) for j, c in enumerate(counts) if j != i)

        pairs = itertools.pairwise(stops)
        expected = sum(integrate.quad(integrand, a, b, epsabs=1e-13, limit=100)[0] for a, b in pairs)
        assert found[i] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("counts", [*COUNTS, list(np.linspace(0, 30, 60)), [0.0, 900.0], [0.0] * 300])
def test_probabilities_add_to_one(noise, counts):
    assert ReportNoisyMax(1.0, noise=noise).law(counts).probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_two_laplace_candidates_in_closed_form():
    """The difference of two Laplace variables has the tail e^{−d}(2 + d)/4."""
    for gap in (0.0, 0.3, 7.0, 600.0):
        loser = ReportNoisyMax(2.0, noise="laplace").law([gap, 0.0]).log_probabilities[1]
        assert loser == pytest.approx(-gap + math.log((2 + gap) / 4), rel=1e-12, abs=1e-13)


def test_exponential_noise_is_permute_and_flip():
    """In a random order, stop at a candidate with probability e^{(count − largest)/scale}."""
    counts = np.array([0.0, 1.0, 2.5, 2.5, -1.0])
    chances = np.exp((counts - counts.max()) / 2)
    expected = np.zeros(5)
    for order in itertools.permutations(range(5)):
        passed = 1.0
        for candidate in order:
            expected[candidate] += passed * chances[candidate] / math.factorial(5)
            passed *= 1 - chances[candidate]
    found = ReportNoisyMax(1.0, noise="exponential").law(counts).probabilities
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("monotone", [False, True])
def test_gumbel_noise_is_the_exponential_mechanism(monotone):
    counts = [0.0, 1.0, -2.0]
    expected = ExponentialMechanism(0.7, 2.0, monotone=monotone).law(counts).probabilities
    found = ReportNoisyMax(0.7, 2.0, monotone=monotone, noise="gumbel").law(counts).probabilities
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("monotone", [False, True])
def test_neighbours_drawn_at_random_stay_within_the_claim(noise, monotone):
    mechanism = ReportNoisyMax(0.8, 2.0, monotone=monotone, noise=noise)
    assert mechanism.claim == PureDP(0.8)
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts = rng.normal(0, 5, 5)
        other = counts + rng.uniform(0 if monotone else -2, 2, 5)
        assert exact_epsilon(mechanism.law(counts), mechanism.law(other)) <= 0.8 + 1e-12


@pytest.mark.parametrize("noise", NOISES)
def test_claim_is_approached_when_a_far_candidate_rises_and_the_rest_fall(noise):
    mechanism = ReportNoisyMax(1.0, noise=noise)
    x, y = [40.0, 0.0], [39.0, 1.0]
    assert exact_epsilon(mechanism.law(x), mechanism.law(y)) > 0.95


def test_counts_that_cannot_be_used_are_refused():
    with pytest.raises(DatasetError, match="which is not a vector of scores"):
        ReportNoisyMax(1).law(3)
    with pytest.raises(DatasetError, match="too far to integrate their law"):
        ReportNoisyMax(1).law([0.0, 1e9])
