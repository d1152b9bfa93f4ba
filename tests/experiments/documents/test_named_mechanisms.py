"""Experiments on mechanisms named in passing: exact values by other sums, pairs, post-processing."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import Verdict
from dpaudit.experiments.documents.named_mechanisms import SubsetCount, experiments
from dpaudit.experiments.documents.named_sparse_vector import LastOutput, property_counts
from dpaudit.experiments.statements.gaussian_statements import IsBelow
from dpaudit.mechanisms import DiscreteGaussianLaw
from dpaudit.mechanisms.faulty import SparseVectorReleasingValue, Twin

ALARM = 1e-8
CASES = [case for experiment in experiments() for case in experiment.cases]
BY_NAME = {case.name: case for case in CASES}


def test_every_variant_of_the_sparse_vector_is_refuted():
    """Algorithms 3 to 6 of Lyu, Su & Li are each refuted with their own claim."""
    variants = set()
    for case in CASES:
        if case.expected is Verdict.REFUTED and case.name.startswith("M2"):
            mechanism = case.mechanism
            while not isinstance(mechanism, Twin):
                mechanism = mechanism.mechanism
            assert case.claim == mechanism.claim
            variants.add(type(mechanism).__name__)
    assert len(variants) == 4


def binomial_delta(n_flips, shift, epsilon):
    """Sum over the probabilities of heads 0 to n and of the same shifted by `shift`."""
    heads = np.arange(-shift, n_flips + shift + 1)
    p, q = stats.binom.pmf(heads, n_flips, 0.5), stats.binom.pmf(heads - shift, n_flips, 0.5)
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("M5-sensitivity-1", binomial_delta(16, 1, 0.5)),
        ("M5-sensitivity-2", binomial_delta(64, 2, 1.0)),
        ("M5-two-apart", binomial_delta(64, 2, 1.0)),
        ("M5-a-quarter-of-the-coins", binomial_delta(16, 2, 1.0)),
    ],
)
def test_deltas_of_coins(name, exact):
    case = BY_NAME[name]
    assert case.exact == pytest.approx(exact, rel=1e-9)
    assert case.claim.bound_on == "delta"
    assert (case.exact > case.claim.delta * (1 + 1e-9)) == (case.expected is Verdict.REFUTED)


def discrete_gaussian(sigma, location=0):
    k = np.arange(-20, 21)
    weights = np.exp(-((k - location) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def test_delta_of_discrete_normal_noise():
    p, q = discrete_gaussian(1.5), discrete_gaussian(1.5, 1)
    assert BY_NAME["M6-delta"].exact == pytest.approx(np.maximum(p - math.e * q, 0).sum(), rel=1e-9)
    p, q = discrete_gaussian(0.49), discrete_gaussian(0.49, 1)
    assert BY_NAME["M6-variance"].exact == pytest.approx(np.maximum(p - math.exp(0.5) * q, 0).sum(), rel=1e-9)


@pytest.mark.parametrize(("name", "shift"), [("M6-zcdp", 1), ("M6-zcdp-two", 2), ("M6-zcdp-two-linear", 2)])
def test_rho_is_the_divergence_at_whole_orders(name, shift):
    """D_a = a rho for a = 2, 3, 4, and less between integers, by sums over the integers."""
    p, q = discrete_gaussian(1.5), discrete_gaussian(1.5, shift)
    np.testing.assert_allclose(p, np.exp(DiscreteGaussianLaw(0, 1.5).log_density(np.arange(-20, 21))), rtol=1e-9)

    def divergence_by_order(a):
        return np.log(np.sum(p**a * q ** (1 - a))) / (a - 1) / a

    case = BY_NAME[name]
    assert [divergence_by_order(a) for a in (2, 3, 4)] == pytest.approx([case.exact] * 3, rel=1e-9)
    assert divergence_by_order(1.5) <= case.exact * (1 + 1e-12)
    assert (case.exact > case.claim.rho * (1 + 1e-9)) == (case.expected is Verdict.REFUTED)


def test_the_epsilon_of_eight_randomised_responses_at_a_delta():
    """The largest ln((P − delta)/Q) over the sets {at least t truths}, by binomial tails."""
    truth = math.exp(0.25) / (1 + math.exp(0.25))
    t = np.arange(9)
    p, q = stats.binom.sf(t - 1, 8, truth), stats.binom.sf(t - 1, 8, 1 - truth)
    useful = p > 0.01
    exact = np.log((p - 0.01)[useful] / q[useful]).max()
    case = BY_NAME["M8-fold-delta"]
    assert case.exact == case.claim.epsilon == pytest.approx(exact, rel=1e-9)
    assert BY_NAME["M8-fold-delta-root"].claim.epsilon < exact < 2.0


@pytest.mark.evidence
def test_the_released_value_has_the_stated_loss():
    """A double integral of exponentials (test_sparse_vector.py) is 1/640 for answers 0, and e⁻²/640 for answers 1."""
    case, runs = BY_NAME["M2-value-released"], 200_000
    assert case.mechanism == IsBelow(LastOutput(SparseVectorReleasingValue(1.0)), 0.0)
    for dataset, chance in ((case.x, 1 / 640), (case.y, math.exp(-2) / 640)):
        hits = case.mechanism.sample(dataset, runs, np.random.default_rng(6)).sum()
        limits = stats.binom(runs, chance)
        assert limits.ppf(ALARM / 2) <= hits <= limits.isf(ALARM / 2)


def test_a_subset_count_moves_by_one_at_most():
    count = SubsetCount(frozenset({0, 2}))
    for rows in itertools.product(range(3), repeat=3):
        assert count(rows) == rows.count(0) + rows.count(2)
        for new in range(3):
            assert abs(count(rows) - count((new, *rows[1:]))) <= 1
        assert count(rows) - count(rows[1:]) in (0, 1)


def test_counts_of_properties_move_one_way():
    case = BY_NAME["M1-monotone"]
    x, y = property_counts(case.x), property_counts(case.y)
    assert (y - x).tolist() == [1, 1, 1, 1, 1, 0]
    assert property_counts([(1, 0), (1, 1)]).tolist() == [2, 1]


def test_pairs_are_neighbours_of_their_relation():
    for case in CASES:
        case.adjacency.check(case.x, case.y, case.distance)  # raises an error for a larger distance
