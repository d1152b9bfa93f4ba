"""Permute-and-flip: its law against the algorithm as written, noisy max and the exponential mechanism.

The histogram is in test_conformance.py. The equivalence of samplers is one random test here, false alarm 1e-8.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, exact_epsilon

UTILITIES = [[3.0], [0.0, 0.0], [0.0, 1.0, 2.5, 2.5, -1.0], [0.0, 40.0, 39.0], list(np.linspace(0, 9, 6))]


@pytest.mark.parametrize("utilities", UTILITIES)
def test_law_by_all_orders(utilities):
    """In each order, the first candidate whose coin with probability e^{(u − max u)/2} says yes."""
    chances = np.exp((np.array(utilities) - max(utilities)) / 2)
    expected = np.zeros(len(utilities))
    for order in itertools.permutations(range(len(utilities))):
        passed = 1 / math.factorial(len(utilities))
        for candidate in order:
            expected[candidate] += passed * chances[candidate]
            passed *= 1 - chances[candidate]
    np.testing.assert_allclose(PermuteAndFlip(1.0).law(utilities).probabilities, expected, rtol=1e-13)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    "utilities", [*UTILITIES, [0.0] * 60, np.linspace(0, 40, 120), [0.0, -1e6, -2.0, -1e300]], ids=range(8)
)
def test_law_is_that_of_exponential_noise(utilities, monotone):
    """Ding et al. (2021): one law is a mean over orders, the other an integral over the winning noise."""
    flips = PermuteAndFlip(0.8, 0.5, monotone=monotone).law(utilities)
    noise = ReportNoisyMax(0.8, 0.5, monotone=monotone, noise="exponential").law(utilities)
    np.testing.assert_allclose(flips.log_probabilities, noise.log_probabilities, rtol=1e-12, atol=1e-12)
    assert flips.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_two_candidates_in_closed_form_refute_theorem_3_13():
    """The worse of two candidates wins with probability ½ e^{−cε/2}, unlike in the exponential mechanism."""
    for c in (0.5, 3.0, 100.0):
        flips, exponential = (m(0.9).law([0.0, c]).log_probabilities[0] for m in (PermuteAndFlip, ExponentialMechanism))
        assert flips == pytest.approx(-math.log(2) - 0.45 * c, rel=1e-14)
        assert exponential == pytest.approx(-0.45 * c - math.log1p(math.exp(-0.45 * c)), rel=1e-14)
        assert flips < exponential - 0.05


@pytest.mark.parametrize("utilities", UTILITIES)
def test_expected_utility_is_never_below_that_of_the_exponential_mechanism(utilities):
    flips, exponential = (m(0.7).law(utilities).probabilities for m in (PermuteAndFlip, ExponentialMechanism))
    assert flips @ utilities >= exponential @ utilities - 1e-12


@pytest.mark.parametrize("monotone", [False, True])
def test_neighbours_drawn_at_random_stay_within_the_claim(monotone):
    mechanism = PermuteAndFlip(0.8, 2.0, monotone=monotone)
    assert mechanism.claim == PureDP(0.8)
    rng = np.random.default_rng(1)
    for _ in range(100):
        utilities = rng.normal(0, 5, 5)
        other = utilities + rng.uniform(0 if monotone else -2, 2, 5)
        assert exact_epsilon(mechanism.law(utilities), mechanism.law(other)) <= 0.8 + 1e-12


def test_the_claim_is_approached_and_the_monotone_saving_is_false_where_others_fall():
    x, y = [40.0, 0.0], [39.0, 1.0]
    assert 0.95 < exact_epsilon(PermuteAndFlip(1.0).law(x), PermuteAndFlip(1.0).law(y)) <= 1.0 + 1e-12
    saving = PermuteAndFlip(1.0, monotone=True)
    assert exact_epsilon(saving.law(x), saving.law(y)) == pytest.approx(2.0, rel=1e-12)


def test_its_sampler_and_that_of_noisy_max_agree():
    """Two algorithms, one law: each count is within its exact binomial limits (false alarm 1e-8)."""
    utilities, runs = [0.0, 1.0, 2.5, 2.5, -1.0], 200_000
    probabilities = PermuteAndFlip(1.0).law(utilities).probabilities
    low, high = (stats.binom.ppf(q, runs, probabilities) for q in (1e-8 / 20, 1 - 1e-8 / 20))
    for mechanism in (PermuteAndFlip(1.0), ReportNoisyMax(1.0, noise="exponential")):
        counts = np.bincount(mechanism.sample(utilities, runs, np.random.default_rng(3)), minlength=5)
        assert np.all((low <= counts) & (counts <= high))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PermuteAndFlip(0), ClaimError, "epsilon=0 is not allowed; use 0 < epsilon < inf"),
        (lambda: PermuteAndFlip(1, math.inf), ClaimError, "sensitivity=inf is not allowed"),
        (lambda: PermuteAndFlip(1).law([math.nan]), DatasetError, "the score of candidate 0 is nan"),
    ],
    ids=["epsilon", "sensitivity", "nan"],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
