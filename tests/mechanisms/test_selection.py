"""Distributions of selections: the exponential mechanism, permute-and-flip, noisy max and auctions, by slow code."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate

import dpaudit.mechanisms as m
from dpaudit.mechanisms import faulty

RIGHT = m.ExponentialMechanism(1.0)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e12, 1e100, 1e300])
@pytest.mark.parametrize("monotone", [False, True])
def test_log_probabilities_are_exact_for_utilities_of_any_size(size, monotone):
    """Relative error against 400 digits, although each exponent is as large as the utilities."""
    mechanism = m.ExponentialMechanism(0.7, 3.0, monotone=monotone)
    utilities = size * np.array([1.0, 0.999999, -0.25, 1.0, 0.0])
    with mpmath.workdps(400):
        rate = mpmath.mpf(0.7) / (3 if monotone else 6)
        exponents = [rate * mpmath.mpf(float(u)) for u in utilities]
        total = mpmath.log(mpmath.fsum(mpmath.exp(e - exponents[0]) for e in exponents)) + exponents[0]
        expected = [float(e - total) for e in exponents]
    np.testing.assert_allclose(mechanism.distribution(utilities).log_probabilities, expected, rtol=5e-15)


def test_only_differences_of_scores_count():
    assert RIGHT.distribution([1e15, 1e15 + 2]) == RIGHT.distribution([0.0, 2.0])
    assert set(RIGHT.sample([0.0, 2e6, 1e6], 1000, np.random.default_rng(1)).tolist()) == {1}
    months = [{"budget": 10}, {"budget": 12}]  # any objects are candidates
    nearness = m.EachCandidate(lambda salaries, month: -abs(sum(salaries) - month["budget"]), months)
    assert m.ExponentialMechanism(1.0, utilities=nearness).distribution([5, 6, 1]) == RIGHT.distribution([-2.0, 0.0])


@pytest.mark.parametrize("monotone", [False, True])
def test_each_half_of_the_loss_is_within_half_of_epsilon(monotone):
    """The proof of Theorem 3.10 in numbers: the candidate's term and the normaliser's add up to the loss."""
    rng = np.random.default_rng(0)
    y = rng.normal(0, 10, 5)
    x, half = y + rng.uniform(0 if monotone else -2, 2, 5), 0.6 if monotone else 0.3
    mechanism = m.ExponentialMechanism(0.6, 2.0, monotone=monotone)
    own, normaliser = mechanism.loss_parts(x, y)
    assert max(np.abs(own).max(), abs(normaliser)) <= half
    assert not monotone or normaliser <= 0 <= own.min()
    losses = np.subtract(mechanism.distribution(x).log_probabilities, mechanism.distribution(y).log_probabilities)
    np.testing.assert_allclose(own + normaliser, losses, atol=1e-13)


UTILITIES = [[3.0], [0.0, 0.0], [0.0, 1.0, 2.5, 2.5, -1.0], [0.0, 40.0, 39.0], list(np.linspace(0, 9, 6))]


@pytest.mark.parametrize("utilities", [*UTILITIES, [0.0, -2e3, -41.0]])
def test_distribution_by_all_orders(utilities):
    """In each order, the first candidate whose coin with probability e^{(u − max u)/2} says yes."""
    chances = np.exp((np.array(utilities) - max(utilities)) / 2)
    expected = np.zeros(len(utilities))
    for order in itertools.permutations(range(len(utilities))):
        passed = 1 / math.factorial(len(utilities))
        for candidate in order:
            expected[candidate] += passed * chances[candidate]
            passed *= 1 - chances[candidate]
    np.testing.assert_allclose(m.PermuteAndFlip(1.0).distribution(utilities).probabilities, expected, rtol=1e-13)


def mean_over_orders(places):
    """Log-probability that a candidate's coin says yes and all coins before it say no; their number k is uniform.

    means[i, k] is the mean product of k of the numbers q other than q[i]. With n numbers, the new number q[j] among
    them, E_k becomes ((n − k) E_k + k q[j] E_{k−1})/n. Nothing is subtracted, so nothing cancels.
    """
    q, k = -np.expm1(places), np.arange(len(places))
    means = np.tile((k == 0).astype(float), (len(q), 1))
    for j in k:
        others = k != j
        n, rows = ((k > j) + j)[others, None], means[others]
        rows[:, 1:] = ((n - k[1:]) * rows[:, 1:] + k[1:] * q[j] * rows[:, :-1]) / n
        means[others] = rows
    return places + np.log(means.mean(axis=1))


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    "utilities", [*UTILITIES, [0.0] * 60, np.linspace(0, 40, 120), [0.0, -1e6, -2.0, -1e300]], ids=range(8)
)
def test_noisy_max_is_permute_and_flip_or_the_exponential_mechanism(utilities, monotone):
    """Ding et al. (2021): the mean over orders is the integral over the winning noise."""
    for kind, noise in ((m.PermuteAndFlip, "exponential"), (m.ExponentialMechanism, "gumbel")):
        distribution = kind(0.8, 0.5, monotone=monotone).distribution(utilities)
        noisy = m.ReportNoisyMax(0.8, 0.5, monotone=monotone, noise=noise).distribution(utilities)
        np.testing.assert_allclose(distribution.log_probabilities, noisy.log_probabilities, rtol=1e-12, atol=1e-12)
    flips = m.PermuteAndFlip(0.8, 0.5, monotone=monotone)
    expected = mean_over_orders((np.array(utilities) - max(utilities)) / flips.scale)
    np.testing.assert_allclose(flips.distribution(utilities).log_probabilities, expected, rtol=1e-12, atol=1e-12)
    flips, exponential = (kind(0.7).distribution(utilities) for kind in (m.PermuteAndFlip, m.ExponentialMechanism))
    gain = (flips.probabilities - exponential.probabilities) @ np.array(utilities)
    assert gain >= -1e-12 * max(1.0, np.abs(utilities).max())  # the expected utility is never lower


COUNTS = [[3.0], [0.0, 0.0], [0.0, 1.0, 2.5, 2.5, -4.0], [0.0, 40.0, 39.0]]


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_distribution_by_adaptive_quadrature(counts, noise):
    """By the density and the distribution function of the noise, as formulas: SciPy's take fifty times longer."""

    def pdf(z):
        return math.exp(-abs(z)) / 2 if noise == "laplace" else math.exp(-z) * (z >= 0)

    def cdf(z):
        if noise == "laplace":
            return math.exp(z) / 2 if z < 0 else 1 - math.exp(-z) / 2
        return -math.expm1(-max(z, 0.0))

    mechanism = m.ReportNoisyMax(1.0, sensitivity=0.5, noise=noise)  # scale 1
    found = mechanism.distribution(counts).probabilities
    stops = sorted({min(counts) - 40, *counts, max(counts) + 40})
    for i, count in enumerate(counts):

        def integrand(z, i=i, count=count):
            return pdf(z - count) * math.prod(cdf(z - c) for j, c in enumerate(counts) if j != i)

        pairs = itertools.pairwise(stops)
        expected = sum(integrate.quad(integrand, a, b, epsabs=1e-13, limit=100)[0] for a, b in pairs)
        assert found[i] == pytest.approx(expected, abs=1e-10)


def test_two_laplace_candidates_in_closed_form():
    """The difference of two Laplace variables has the tail e^{−d}(2 + d)/4."""
    for gap in (0.0, 0.3, 7.0, 600.0):
        loser = m.ReportNoisyMax(2.0, noise="laplace").distribution([gap, 0.0]).log_probabilities[1]
        assert loser == pytest.approx(-gap + math.log((2 + gap) / 4), rel=1e-12, abs=1e-13)


# The pumpkin auction.

CENTS = tuple(cents / 100 for cents in range(1, 501))


def test_the_best_price_is_the_lowest_bid():
    """K, who bids 3.01, also buys at 1.00: the revenue is 4.00 there and at most 3.01 at other prices."""
    revenue = dict(zip(CENTS, m.Revenue(CENTS)(m.PUMPKIN_BIDS).tolist(), strict=True))
    assert revenue[1.00] == 4.00 == max(revenue.values())
    assert [revenue[price] for price in (1.01, 3.00, 3.01, 3.02)] == [1.01, 3.00, 3.01, 0.0]
    assert m.Revenue((1.00, 1.01))(m.PUMPKIN_BIDS[:3]).tolist() == [3.0, 0.0]  # a cent more loses everything
    bids = np.random.default_rng(1).choice(CENTS, 40)
    expected = [price * sum(bid >= price for bid in bids) for price in CENTS]
    np.testing.assert_allclose(m.Revenue(CENTS)(bids), expected, rtol=1e-15)
    assert m.Revenue((1.0, 2.0))([]).tolist() == [0, 0]


def test_the_price_is_drawn_for_its_revenue():
    auction = m.PostedPriceAuction(2.0, (1.0, 2.0, 3.0))
    weights = np.exp(2.0 / (2 * 3) * np.array([4.0, 2.0, 3.0]))
    distribution = auction.distribution(m.PUMPKIN_BIDS)
    np.testing.assert_allclose(distribution.probabilities, weights / weights.sum(), rtol=1e-14)
    assert distribution.values == (1.0, 2.0, 3.0)
    variant = faulty.PricesFromTheBids(1.0)
    distributions = [variant.distribution(bids) for bids in (m.PUMPKIN_BIDS, m.PUMPKIN_BIDS[:3])]
    assert [each.values for each in distributions] == [(1.0, 3.01), (1.0,)]
    assert variant.truth is None
    assert 0.3 < distributions[0].probabilities[1] < 0.5
    assert m.exact_delta(*distributions, 50.0) == pytest.approx(distributions[0].probabilities[1], rel=1e-12)


# Faulty selections.


def test_weights_that_underflow_make_a_candidate_impossible_and_are_right_elsewhere():
    near, scores = faulty.UnderflowingExponential(1.0), [0.0, 1.0, -3.0]
    assert near.distribution(scores).probabilities == pytest.approx(RIGHT.distribution(scores).probabilities, rel=1e-12)
    assert near.distribution([-1490.0, -1490.0]).probabilities.tolist() == [0.5, 0.5]
    assert near.distribution([-1491.0, -1490.0]).probabilities.tolist() == [0.0, 1.0]


def test_flips_in_a_fixed_order_stop_at_the_first_of_the_best():
    distribution = faulty.FlipWithoutPermuting(1.0).distribution([-1.0, 0.0, 0.0, -2.0])
    first = math.exp(-0.5)
    assert distribution.probabilities.tolist() == pytest.approx([first, 1 - first, 0.0, 0.0])
    orders = itertools.permutations([-1.0, 0.0, -2.0])
    in_any_order = [
        faulty.FlipWithoutPermuting(1.0).distribution(order).probabilities[order.index(0.0)] for order in orders
    ]
    right = m.PermuteAndFlip(1.0).distribution([-1.0, 0.0, -2.0])
    assert np.mean(in_any_order) == pytest.approx(right.probabilities[1], rel=1e-12)


def test_distributions_and_losses_of_faulty_selections():
    assert m.ExponentialMechanism(math.log(10)).distribution([0.0, 2.0]).probabilities == pytest.approx(
        [1 / 11, 10 / 11]
    )
    assert faulty.OneNoiseForAll(1.0).distribution([1.0, 2.0, 2.0]).probabilities.tolist() == [0, 1, 0]
    for charged in (1, 2):
        found = faulty.TopCandidates(1.0, charged=charged).log_probabilities([0.0, 1.0, 3.0])
        assert math.fsum(map(math.exp, found.values())) == pytest.approx(1.0)
        each = m.ExponentialMechanism(1.0 / charged)
        first, then = (
            each.distribution([0.0, 1.0, 3.0]).probabilities[2],
            each.distribution([0.0, 1.0]).probabilities[0],
        )
        assert math.exp(found[2, 0]) == pytest.approx(first * then, rel=1e-12)
        mechanism = faulty.TopCandidates(1.0, charged=charged)
        log_x, log_y = (mechanism.log_probabilities(scores) for scores in ((0.0,) * 4, (1.0, 1.0, -1.0, -1.0)))
        loss = max(abs(log_x[order] - log_y[order]) for order in log_x)
        assert loss <= mechanism.truth.epsilon
        assert loss > 1.3 if charged == 1 else loss < 1.0  # twice the loss of one, unless charged for both
    for parts in (1, 2):
        mechanism = faulty.WinnerWithNoisyCount(1.0, parts)
        log_x, log_y = (np.array(mechanism.winners(each).log_probabilities) for each in ((0.0, 0.0), (1.0, -1.0)))
        loss = max(abs(log_x - log_y)) + 1 / parts  # given the winner, its count is Laplace of rate 1/parts, moved by 1
        assert (loss > 1.0) == (parts == 1)
        assert loss <= mechanism.truth.epsilon
