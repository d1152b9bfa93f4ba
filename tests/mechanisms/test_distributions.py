"""Exact distributions, by formulas, enumeration and other libraries, and the divergences between them."""

import dataclasses
import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import DiscreteGaussianPrivacyLoss
from scipy import stats
from scipy.special import logsumexp

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import PureDP
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.distributions.distributions import (
    ABOVE,
    BELOW,
    STOPPED,
    log_gaussian_delta,
)
from dpaudit.mechanisms.faulty.selection import MaximumLaplaceDistribution
from dpaudit.mechanisms.noise.gaussian import LARGEST_SIGMA, MOST_FLIPS
from dpaudit.mechanisms.noise.laplace import OFFSET

INF = math.inf
RATIO = math.exp(-0.7)
HALF = math.log(0.5)


# Distributions against scipy and exact weights.

DISTRIBUTIONS = [
    (m.LaplaceDistribution(1.5, 2.0), stats.laplace(1.5, 2.0), np.linspace(-120, 120, 481)),
    (m.GaussianDistribution(-0.5, 3.0), stats.norm(-0.5, 3.0), np.linspace(-100, 100, 401)),
    (m.GeometricDistribution(3, RATIO), stats.dlaplace(0.7, loc=3), np.arange(-60, 61)),
    (
        m.FiniteDistribution((math.log(0.2), math.log(0.5), -math.inf, math.log(0.3))),
        stats.rv_discrete(values=([0, 1, 3], [0.2, 0.5, 0.3])),
        np.arange(-2, 7),
    ),
]


@pytest.mark.parametrize(("distribution", "oracle", "outputs"), DISTRIBUTIONS, ids=lambda v: type(v).__name__)
def test_distributions_are_those_of_scipy(distribution, oracle, outputs):
    if isinstance(distribution, (m.LaplaceDistribution, m.GaussianDistribution)):
        np.testing.assert_allclose(distribution.log_density(outputs), oracle.logpdf(outputs), rtol=1e-12)
    else:
        np.testing.assert_allclose(np.exp(distribution.log_density(outputs)), oracle.pmf(outputs), rtol=1e-12)
    np.testing.assert_allclose(distribution.cdf(outputs), oracle.cdf(outputs), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(distribution.cdf(outputs) + distribution.sf(outputs), 1.0, rtol=1e-15)


def probabilities(sigma, reach):
    """Return Pr[k] for k = −reach … reach, by summation with forty digits."""
    with mpmath.workdps(40):
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(-reach, reach + 1)]
        total = mpmath.fsum(weights)
        return [weight / total for weight in weights]


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.0, 3.3, 20.0])
def test_distribution_is_the_normalised_weights(sigma):
    reach = math.ceil(15 * sigma) + 2
    expected = probabilities(sigma, reach)
    distribution, k = m.DiscreteGaussianDistribution(5, sigma), np.arange(-reach, reach + 1) + 5
    np.testing.assert_allclose(np.exp(distribution.log_density(k)), [float(p) for p in expected], rtol=1e-11)
    with mpmath.workdps(40):
        above = [float(mpmath.fsum(expected[i + 1 :])) for i in range(len(expected) - 1)]
        up_to = [float(mpmath.fsum(expected[: i + 1])) for i in range(len(expected) - 1)]
    # For smaller tails, the mass beyond the reach is visible.
    np.testing.assert_allclose(distribution.sf(k[:-1]), above, rtol=1e-11, atol=1e-45)
    np.testing.assert_allclose(distribution.cdf(k[:-1]), up_to, rtol=1e-11, atol=1e-45)
    np.testing.assert_allclose(distribution.cdf(k) + distribution.sf(k), 1.0, rtol=1e-15)


def masses(n):
    """Pr[heads = 0 … n], exactly."""
    return [Fraction(math.comb(n, k), 2**n) for k in range(n + 1)]


@pytest.mark.parametrize("n", [2, 10, 100, 400])
def test_distribution_is_the_binomial_one(n):
    distribution, k = m.BinomialDistribution(5, n), np.arange(n + 1) - n // 2 + 5
    exact = masses(n)
    up_to = list(itertools.accumulate(exact))
    np.testing.assert_allclose(np.exp(distribution.log_density(k)), [float(p) for p in exact], rtol=1e-11)
    np.testing.assert_allclose(distribution.cdf(k), [float(p) for p in up_to], rtol=1e-11)
    np.testing.assert_allclose(distribution.sf(k), [float(1 - p) for p in up_to], rtol=1e-11)


def test_many_coins_keep_the_relative_accuracy():
    distribution = m.BinomialDistribution(0, MOST_FLIPS)
    k = np.array([0, 300, 2000, 5000])
    oracle = stats.binom(MOST_FLIPS, 0.5)
    np.testing.assert_allclose(distribution.log_density(k), oracle.logpmf(k + MOST_FLIPS // 2), rtol=1e-9)
    np.testing.assert_allclose(distribution.sf(k), oracle.sf(k + MOST_FLIPS // 2), rtol=1e-9)


def test_wide_distribution_is_the_normal_one():
    distribution, normal = m.DiscreteGaussianDistribution(3, LARGEST_SIGMA), m.GaussianDistribution(3, LARGEST_SIGMA)
    k = np.linspace(-5, 5, 11).round() * 1e4
    np.testing.assert_allclose(distribution.cdf(k), normal.cdf(k + 0.5), rtol=1e-8)
    np.testing.assert_allclose(distribution.log_density(k), normal.log_density(k), rtol=1e-12)


def test_upper_tails_keep_their_relative_accuracy():
    assert m.LaplaceDistribution(0, 1).sf(300.0) == pytest.approx(math.exp(-300) / 2, rel=1e-13)
    assert m.GaussianDistribution(1, 2).sf(61.0) == pytest.approx(stats.norm.sf(30.0), rel=1e-12)
    assert m.GeometricDistribution(2, 0.5).sf(200) == pytest.approx(0.5**199 / 1.5, rel=1e-12)
    tiny = m.FiniteDistribution((math.log1p(-1e-20), math.log(1e-20)))
    assert tiny.sf(0) == pytest.approx(1e-20, rel=1e-12)


@pytest.mark.parametrize(
    ("distribution", "support", "points"),
    [
        (m.GeometricDistribution(0, 0.5), range(-60, 61), [0.5]),
        (m.FiniteDistribution((0.0,)), [0], [-1, 0.5, 1]),
        (m.DiscreteGaussianDistribution(0, 1.0), range(-12, 13), [0.5, INF]),
        (m.BinomialDistribution(0, 10), range(-5, 6), [-6, -5.5, 0.5, 6, INF]),
        (
            m.DiscreteDistribution((-1.0, 0.5, 2.0), tuple(np.log([0.2, 0.3, 0.5]))),
            [-1.0, 0.5, 2.0],
            [-2.0, 0.0, 1.0, 3.0],
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_discrete_distributions_give_nothing_between_and_beyond_their_outcomes(distribution, support, points):
    masses = np.exp(distribution.log_density(list(support)))
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(np.isneginf(distribution.log_density(points)))
    for z in [*points, -INF, INF, -1e9, 1e9]:
        assert distribution.cdf(z) == pytest.approx(masses[np.array(support) <= z].sum(), abs=1e-12)
        assert distribution.sf(z) == pytest.approx(masses[np.array(support) > z].sum(), abs=1e-12)


def test_the_density_of_a_maximum_is_that_of_the_product_of_distribution_functions():
    distribution, (z, width) = MaximumLaplaceDistribution((0.0, 1.0, 1.2), 0.3), numbers(-10, 15)
    each = [m.LaplaceDistribution(location, 0.3) for location in distribution.locations]
    up_to = np.cumsum(width * np.exp(distribution.log_density(z)))
    assert up_to == pytest.approx(distribution.cdf(z + width / 2), abs=1e-6)
    assert distribution.cdf(z) == pytest.approx(math.prod(one.cdf(z) for one in each), rel=1e-12)
    assert float(distribution.sf(30.0)) == pytest.approx(sum(one.sf(30.0) for one in each), rel=1e-9)


def test_density_is_the_multivariate_normal_one():
    distribution = m.GaussianVectorDistribution((1.0, -2.0, 0.5), 1.7)
    rows = np.random.default_rng(1).normal(size=(20, 3)) * 5
    expected = stats.multivariate_normal.logpdf(rows, mean=[1.0, -2.0, 0.5], cov=1.7**2 * np.eye(3))
    np.testing.assert_allclose(distribution.log_density(rows), expected, rtol=1e-12)
    np.testing.assert_allclose(distribution.log_density(rows[0]), expected[0], rtol=1e-12)
    assert [marginal.location for marginal in distribution.marginals] == [1.0, -2.0, 0.5]


def test_product_density_is_the_product():
    distribution = m.ProductDistribution(
        (m.LaplaceDistribution(0, 1), m.GaussianDistribution(2, 3), m.GeometricDistribution(0, 0.5))
    )
    rows = np.array([[0.3, 1.0, 2], [-4.0, 2.0, 0], [0.0, 0.0, 0.5]])
    expected = stats.laplace.logpdf(rows[:2, 0]) + stats.norm.logpdf(rows[:2, 1], 2, 3) + np.log([1 / 12, 1 / 3])
    np.testing.assert_allclose(distribution.log_density(rows)[:2], expected, rtol=1e-12)
    assert distribution.log_density(rows)[2] == -math.inf


def test_a_leaky_distribution_is_a_mixture():
    distribution, noise = m.RareLeakLaplace(0.5, 0.01, sensitivity=2.0).distribution(3.0), stats.laplace(3.0, 4.0)
    points = np.array([-20.0, 3.0, 900.0, OFFSET + 2.9, OFFSET + 3.0, OFFSET + 40.0])
    is_passed = points >= OFFSET + 3.0
    np.testing.assert_allclose(distribution.cdf(points), 0.99 * noise.cdf(points) + 0.01 * is_passed, rtol=1e-12)
    np.testing.assert_allclose(distribution.sf(points), 0.99 * noise.sf(points) + 0.01 * ~is_passed, rtol=1e-12)
    assert distribution.log_density(OFFSET + 3.0) == pytest.approx(math.log(0.01))
    assert distribution.log_density(5.0) == pytest.approx(math.log(0.99) + noise.logpdf(5.0))


# Divergences against one slow sum over all outputs, or over the middles of narrow cells.


def numbers(low, high, width=1 / 1000):
    """Return the middles of cells, and their widths."""
    middles = np.arange(low, high, width) + width / 2
    return middles, np.full(len(middles), width)


def outcomes(values):
    return np.array(values), np.ones(len(values))


def rows_of(*ranges):
    return outcomes(list(itertools.product(*ranges)))


def finite(*probabilities):
    with np.errstate(divide="ignore"):
        return m.FiniteDistribution(tuple(np.log(probabilities)))


def coins(*probabilities):
    return m.ProductDistribution(tuple(finite(1 - p, p) for p in probabilities))


def follow_up(answer):
    """Return a finer question after a yes."""
    return m.RandomisedResponse(0.3 if answer == 0 else 0.7, k=3)


def same_or_noisier(answer):
    return m.LaplaceMechanism(1.0 if answer == 0 else 0.5)


def both(mechanism, x, y):
    return mechanism.distribution(x), mechanism.distribution(y)


def located(kind, x, y, scale):
    return kind(x, scale), kind(y, scale)


TWO_STEPS = m.AdaptiveComposition(m.RandomisedResponse(1.0), follow_up, then_claim=PureDP(0.7))
THEN_REAL = m.AdaptiveComposition(m.RandomisedResponse(0.5), same_or_noisier, then_claim=PureDP(1.0))
(LINE, WIDTHS), (FAR, NEAR) = numbers(-40, 40), numbers(-150, 150, 1 / 100)
BESIDE = np.column_stack([np.repeat([0, 1], len(LINE)), np.tile(LINE, 2)]), np.tile(WIDTHS, 2)
PLANE = np.stack(np.meshgrid(*[numbers(-7, 8, 1 / 40)[0]] * 2), axis=-1).reshape(-1, 2)
LEAKY, LEAKS = m.RareLeakLaplace(0.5, 0.01, sensitivity=2.0), [OFFSET, OFFSET + 6.0]
HALVES = finite(0.5, 0.5)
CHAINS = (  # an entry that one side never has, and entries after it that lose more one way than the other
    m.ChainDistribution(finite(0.75, 0.25), (finite(0.9, 0.1), HALVES)),
    m.ChainDistribution(finite(1.0, 0.0), (HALVES, HALVES)),
)
SETS = [bits for bits in itertools.product((0, 1), repeat=5) if sum(bits) == 2]
# both distributions, outputs with their widths, and the error of the sum
PAIRS = [
    *(
        (located(kind, x, y, scale), numbers(-30, 30), 1e-6)
        for kind in (m.LaplaceDistribution, m.GaussianDistribution)
        for x, y, scale in ((0.0, 1.2, 0.8), (0.0, 1.0, 0.5), (0.0, 3.0, 2.0))
    ),
    (located(m.GaussianDistribution, 0, 1, 30.0), numbers(-300, 300, 1 / 100), 1e-6),
    *(
        (located(m.GeometricDistribution, 0, shift, ratio), outcomes(range(-200, 201)), 1e-12)
        for shift, ratio in ((4, RATIO), (1, 0.01), (20, 0.8))  # at 20, the best event is above the stationary point
    ),
    (both(LEAKY, 0.0, 6.0), (np.append(FAR, LEAKS), np.append(NEAR, [1, 1])), 1e-6),
    ((finite(0.5, 0.2, 0.3, 0.0), finite(0.1, 0.4, 0.25, 0.25)), outcomes(range(4)), 1e-15),
    (tuple(map(m.FiniteDistribution.from_log_weights, ([0, 1, 3, 2.0], [1, 0, 2, 4.0]))), outcomes(range(4)), 1e-15),
    (both(m.UpAndDown(0.6, 5), 0, 3), outcomes(range(6)), 1e-14),
    (both(m.RandomisedResponseFold(0.3, 10), 0, 1), outcomes(range(11)), 1e-14),
    (
        (m.DiscreteDistribution((-1.0, 0.5, 2.0), tuple(np.log([0.2, 0.3, 0.5]))),
         m.DiscreteDistribution((0.5, 2.0), (HALF, HALF))),
        outcomes([-1.0, 0.5, 2.0]), 1e-15,
    ),
    ((coins(0.2, 0.5, 0.5, 0.9), coins(0.2, 0.5, 0.3, 0.9)), rows_of(*[range(2)] * 4), 1e-14),
    (both(TWO_STEPS, 0, 1), rows_of(range(2), range(3)), 1e-14),
    (both(THEN_REAL, 0, 1), BESIDE, 1e-6),
    (CHAINS, rows_of(range(2), range(2)), 1e-14),
    (tuple(m.GaussianVectorDistribution(at, 1.0) for at in ((0.0, 0.0), (0.6, 0.8))), (PLANE, 1 / 40**2), 1e-4),
    (both(m.SubsetSelection(1.0, 5, size=2), 0, 3), outcomes(SETS), 1e-14),
    (both(m.SparseVector(2.0, 2), (0.5, -1.0, 0.0), (1.0, 0.0, -1.0)), rows_of(*[(-1, 0, 1)] * 3), 1e-12),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "outputs", "error"), PAIRS)
def test_divergences_are_sums_over_the_outputs(pair, outputs, error):
    (points, widths), deltas = outputs, [1e-30, 1e-12, 1e-9, 1e-4, 1e-3, 0.01, 0.09, 0.19, 0.5, 0.9]
    is_leaky, is_normal = (
        isinstance(pair[0], kind)
        for kind in (m.LeakyLaplaceDistribution, (m.GaussianDistribution, m.GaussianVectorDistribution))
    )
    for one, two in (pair, pair[::-1]):
        log_p, log_q = (distribution.log_density(points) + np.log(widths) for distribution in (one, two))
        p, q, is_possible = np.exp(log_p), np.exp(log_q), log_p > -INF
        losses = log_p[is_possible] - log_q[is_possible]
        assert p.sum() == pytest.approx(1.0, abs=error)
        assert m.hockey_stick(one, one, 0.0) == one.epsilon_from(one, 0.0) == 0.0
        if isinstance(one, m.ScalarDistribution):
            ends = points + widths / 2 * (widths < 1)
            assert one.cdf(ends) == pytest.approx(np.cumsum(p), abs=error)
            assert one.sf(ends) == pytest.approx(1 - np.cumsum(p), abs=error)
        for epsilon in (0.0, 0.2, 0.7, 1.4, 3.0):
            exact = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
            assert m.hockey_stick(one, two, epsilon) == pytest.approx(exact, abs=error)
        largest = INF if is_leaky or is_normal else max(losses.max(), 0.0)
        epsilons = [one.epsilon_from(two, delta) for delta in (0.0, *deltas)]
        assert epsilons[0] == pytest.approx(largest, rel=1e-9)
        assert epsilons == sorted(epsilons, reverse=True)
        for epsilon, delta in zip(epsilons[1:], deltas, strict=True):
            if epsilon == INF:
                assert delta < (0.011 if is_leaky else p[q == 0].sum())
            elif epsilon == 0:
                assert m.hockey_stick(one, two, 0.0) <= delta * (1 + 1e-9)
            else:
                least = 1e-12 if isinstance(one, m.ChainDistribution) else 1e-14
                assert m.hockey_stick(one, two, epsilon) == pytest.approx(delta, rel=1e-8, abs=least)
        if isinstance(
            one, (m.LaplaceDistribution, m.GaussianDistribution, m.FiniteDistribution, m.ProductDistribution)
        ):
            for order in (1.01, 1.5, 2, 7, 2 if is_normal else 1e6):
                exact = logsumexp(log_p[is_possible] + (order - 1) * losses) / (order - 1)
                assert m.exact_renyi(one, two, order) == pytest.approx(exact, abs=max(10, 1 / (order - 1)) * error)


def exact_number(probability):
    is_fraction = isinstance(probability, Fraction)
    return mpmath.mpf(probability.numerator) / probability.denominator if is_fraction else probability


def discrete_pairs():
    """Distributions and their outcomes' probabilities on both sides, with exact fractions or forty digits."""
    for sigma, shift in itertools.product((0.4, 1.0, 2.5, 12.0), (1, 3)):
        p = probabilities(sigma, math.ceil(30 * sigma) + shift)
        yield (
            m.DiscreteGaussianDistribution(0, sigma),
            m.DiscreteGaussianDistribution(shift, sigma),
            p[shift:],
            p[:-shift],
        )
    for n, shift in itertools.product((2, 8, 60), (1, 3)):
        zeros = [Fraction(0)] * shift
        yield m.BinomialDistribution(7, n), m.BinomialDistribution(7 + shift, n), masses(n) + zeros, zeros + masses(n)
    for shift in (0, 1, 3, -4):
        weights = [Fraction(RATIO) ** abs(k) for k in range(-60, 61)]
        p = [weight * (1 - Fraction(RATIO)) / (1 + Fraction(RATIO)) for weight in weights]
        pad = [Fraction(0)] * abs(shift)
        x, y = (p + pad, pad + p) if shift >= 0 else (pad + p, p + pad)
        yield m.GeometricDistribution(0, RATIO), m.GeometricDistribution(shift, RATIO), x, y


@functools.cache
def exact_pairs():
    """The same with numbers of forty digits, made once."""
    with mpmath.workdps(40):
        return [
            (x, y, *(list(map(exact_number, distribution)) for distribution in (p, q)))
            for x, y, p, q in discrete_pairs()
        ]


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.05, 4.0])
def test_delta_of_discrete_distributions_is_the_sum_of_what_exceeds(epsilon):
    for distribution_x, distribution_y, p, q in exact_pairs():
        with mpmath.workdps(40):
            factor = mpmath.exp(mpmath.mpf(epsilon))
            exact = mpmath.fsum(max(a - factor * b, mpmath.mpf(0)) for a, b in zip(p, q, strict=True))
            ends = float(mpmath.fsum(a for a, b in zip(p, q, strict=True) if b == 0))
        expected = float(exact)
        is_geometric = isinstance(distribution_x, m.GeometricDistribution)
        found = m.hockey_stick(distribution_x, distribution_y, epsilon)
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-14 if is_geometric else 1e-100)
        assert m.hockey_stick(distribution_y, distribution_x, epsilon) == found
        if epsilon > 0 and max(ends, 1e-6 if is_geometric else 1e-250) < expected < 0.999:
            assert m.exact_epsilon(distribution_x, distribution_y, expected) == pytest.approx(
                epsilon, rel=1e-8, abs=1e-8
            )


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_delta_agrees_with_another_accountant(epsilon):
    for sigma, sensitivity in ((1.0, 1), (5.5, 3)):
        other = DiscreteGaussianPrivacyLoss(sigma, sensitivity=sensitivity, truncation_bound=math.ceil(14 * sigma))
        mechanism = m.DiscreteGaussianMechanism(sigma, epsilon, sensitivity=sensitivity)
        assert mechanism.delta == pytest.approx(other.get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("shift", "delta"), [(370, 0.01), (900, 0.01), (380, 1e-5)])
def test_epsilon_of_distributions_far_apart_is_nearly_that_of_normal_noise(shift, delta):
    """The smaller probabilities underflow."""
    exact = m.exact_epsilon(m.DiscreteGaussianDistribution(0, 10.0), m.DiscreteGaussianDistribution(shift, 10.0), delta)
    normal = m.exact_epsilon(m.GaussianDistribution(0, 10.0), m.GaussianDistribution(shift, 10.0), delta)
    assert exact == pytest.approx(normal, rel=0.01)


@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 1.0, 50.0, 400.0])
@pytest.mark.parametrize("mu", [1e-3, 0.49, 0.51, 7.0, 30.0])
def test_gaussian_delta_in_sixty_digits(mu, epsilon):
    with mpmath.workdps(60):
        d, e = mpmath.mpf(mu), mpmath.mpf(epsilon)

        def phi(z):
            return mpmath.erfc(-z / mpmath.sqrt(2)) / 2

        expected = float(mpmath.log(phi(d / 2 - e / d) - mpmath.exp(e) * phi(-d / 2 - e / d)))
    assert log_gaussian_delta(mu, epsilon) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("mu", [1e-12, 1e-7, 1e-3])
@pytest.mark.parametrize("u", [-1.0, 0.0, 0.7, 29.99, 30.0, 1e5])
def test_gaussian_delta_of_near_distributions_does_not_cancel(mu, u):
    """δ is of order μ (φ(u) − u Φ(−u)), u = ε/μ: the smaller μ, the more digits the two terms share."""
    epsilon = max(u, 0.0) * mu + (mu * mu / 4 if u < 0 else 0.0)  # u < 0 represents ε below μ²/2
    with mpmath.workdps(80):
        d, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        first, second = (mpmath.erfc((e / d + sign * d / 2) / mpmath.sqrt(2)) / 2 for sign in (-1, 1))
        expected = mpmath.log(first - mpmath.exp(e) * second)
    assert log_gaussian_delta(mu, epsilon) == pytest.approx(float(expected), rel=1e-13)


def test_gaussian_delta_at_the_ends():
    assert log_gaussian_delta(0.0, 0.0) == -math.inf
    assert log_gaussian_delta(1e-300, 1.0) == -math.inf
    assert log_gaussian_delta(1e3, 1.0) == pytest.approx(0.0, abs=1e-300)
    assert log_gaussian_delta(1e200, 1.0) == 0.0
    assert log_gaussian_delta(1e-300, 0.0) == pytest.approx(math.log(1e-300 / math.sqrt(2 * math.pi)), rel=1e-14)


@pytest.mark.parametrize("mu", [1e-12, 1e-7, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-80, 1e-20, 1e-14, 0.01, 0.999])
def test_exact_epsilon_of_normal_distributions_is_the_root_to_a_relative_1e_9(mu, delta):
    epsilon = m.exact_epsilon(m.GaussianDistribution(0, 1), m.GaussianDistribution(mu, 1), delta)
    if delta >= math.exp(log_gaussian_delta(mu, 0.0)):
        assert epsilon == 0.0
    else:
        above, below = (log_gaussian_delta(mu, epsilon * (1 + by)) for by in (1e-9, -1e-9))
        assert above < math.log(delta) < below


def test_a_delta_that_a_set_of_outcomes_attains_covers_it():
    tenth = math.log(0.1)
    distributions = [
        m.FiniteDistribution((math.log(0.9), tenth, -math.inf)),
        m.FiniteDistribution((math.log(0.9), -math.inf, tenth)),
    ]
    assert m.exact_epsilon(*distributions, 0.1) == pytest.approx(0.0, abs=1e-12)
    assert m.exact_epsilon(*distributions, 0.0999) == math.inf
    probable = [
        m.FiniteDistribution((0.0, -800.0)),
        m.FiniteDistribution((-800.0, 0.0)),
    ]  # the other probabilities are below any double
    assert m.exact_epsilon(*probable, 0.1) == pytest.approx(800 + math.log(0.9), rel=1e-12)


def test_coordinates_that_differ_together_have_an_exact_largest_loss():
    distribution_x, distribution_y = coins(0.2, 0.5, 0.5, 0.9), coins(0.4, 0.5, 0.3, 0.8)
    largest = math.log(0.8 / 0.6) + math.log(0.5 / 0.3) + math.log(0.9 / 0.8)
    assert distribution_x.epsilon_from(distribution_y, 0.0) == pytest.approx(largest, rel=1e-12)
    assert m.hockey_stick(distribution_x, distribution_y, largest + 1e-9) == 0.0


# Exact Rényi divergences of several outputs, and their limits at small and large orders.


@pytest.mark.parametrize("order", [1.1, 2, 20])
@pytest.mark.parametrize("n", [1, 10, 100])
def test_independent_outputs_add_up(n, order):
    one, fold = m.RandomisedResponse(0.3), m.RandomisedResponseFold(0.3, n)
    single = m.exact_renyi(one.distribution(0), one.distribution(1), order)
    assert m.exact_renyi(fold.distribution(0), fold.distribution(1), order) == pytest.approx(n * single, rel=1e-9)
    laplace = m.LaplaceMechanism(0.3)
    many = m.composed(laplace, n)
    single = m.exact_renyi(laplace.distribution(0.0), laplace.distribution(1.0), order)
    assert m.exact_renyi(many.distribution(0.0), many.distribution(1.0), order) == pytest.approx(n * single, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3.0])
def test_epsilon_bounds_the_divergence_of_every_order(epsilon):
    """Mironov (2017), Lemma 1, has 2aε²; Bun & Steinke (2016), Proposition 3.3, the tight aε²/2."""
    for order in (1.001, 2, 1000):
        for mechanism, x, y in ((m.RandomisedResponse(epsilon), 0, 1), (m.LaplaceMechanism(epsilon), 0.0, 1.0)):
            assert (
                0
                < m.exact_renyi(mechanism.distribution(x), mechanism.distribution(y), order)
                <= min(order * epsilon**2 / 2, epsilon)
            )
    small = m.RandomisedResponse(0.001)
    assert m.exact_renyi(small.distribution(0), small.distribution(1), 3) == pytest.approx(
        3 * 0.001**2 / 2, rel=1e-5
    )  # it is attained
    response, laplace = m.RandomisedResponse(epsilon), m.LaplaceMechanism(epsilon)
    for x, y, limit in (  # of order 1, Kullback and Leibler's
        (response.distribution(0), response.distribution(1), epsilon * math.tanh(epsilon / 2)),
        (laplace.distribution(0.0), laplace.distribution(1.0), epsilon - 1 + math.exp(-epsilon)),
    ):
        assert m.exact_renyi(x, y, 1 + 1e-6) == pytest.approx(limit, rel=1e-5)


# The sparse vector technique: densities of transcripts and of released values by other integrals, and runs.


def log_density(mechanism, answers, output):
    """Return ln of the density of an output by adaptive mpmath quadrature over each noisy threshold in turn.

    It is independent of the distributions' code: integrals over the threshold instead of its noise, other nodes.
    """
    a, b, c = map(mpmath.mpf, (mechanism.threshold_scale, mechanism.query_scale, mechanism.value_scale))

    def laplace(distance, scale):
        return mpmath.exp(-abs(distance) / scale) / (2 * scale)

    def chance(answer, code, level):
        tail = b and b * laplace(answer - level, b)
        below, above = (tail, 1 - tail) if answer >= level else (1 - tail, tail)
        if math.isnan(code) or not mechanism.release_value:
            return above if code == ABOVE else below
        return above * laplace(code - answer, c) if c else (level <= code) * laplace(code - answer, b)

    def with_one_draw(part):
        def integrand(level):
            chances = [chance(answer, code, level) for answer, code in part]
            return laplace(level - mechanism.threshold, a) * mpmath.fprod(chances)

        stops = sorted({mechanism.threshold, *(stop for pair in part for stop in pair if not math.isnan(stop))})
        stops = [stops[0] - 60 * a, stops[0] - 8 * a, *stops, stops[-1] + 8 * a, stops[-1] + 60 * a]
        top = max(map(integrand, [*stops, *((low + high) / 2 for low, high in itertools.pairwise(stops))]))
        return mpmath.log(top * mpmath.quad(lambda level: integrand(level) / top, stops)) if top else -INF

    total, part, left = 0, [], mechanism.cutoff or len(answers)
    for answer, code in zip(answers, output, strict=True):
        part += [(answer, code)] if left else []
        if left and (code == ABOVE or (mechanism.release_value and not math.isnan(code))):
            left -= 1
            if mechanism.refresh:
                total, part = total + with_one_draw(part), []
    return float(total + with_one_draw(part))


ANSWERS, NAN = (0.3, 1.7, -0.4), math.nan
CLAIM = PureDP(1.0)


def compared(cutoff=1, refresh=False):
    return m.NoisyThreshold(CLAIM, 2.0, 3.0, cutoff=cutoff, threshold=0.25, refresh=refresh, release_value=True)


def fresh(cutoff=1, refresh=False):
    return dataclasses.replace(compared(cutoff, refresh), value_scale=1.5)


def named(mechanism):
    """Return a test id without the address of the query."""
    kind = "fresh" if mechanism.value_scale > 0 else "compared"
    return f"{kind}-{mechanism.cutoff}{'-refresh' * mechanism.refresh}"


@pytest.mark.parametrize(
    "mechanism",
    [
        m.SparseVector(0.7, 2, threshold=0.3, sensitivity=2.0),
        m.SparseVector(2.0, 2, refresh=True),
        m.SparseVector(3.0, 5, monotone=True),
        faulty.SparseVectorWithoutQueryNoise(1.0),
        faulty.SparseVectorWithoutCutoff(2.0),
    ],
    ids=str,
)
def test_every_transcript_has_its_integral(mechanism):
    answers, engine = (-0.5, 2.0, 0.25), getattr(mechanism, "runs_as", mechanism)
    distribution = mechanism.distribution(answers)
    assert sum(map(math.exp, distribution.log_probabilities)) == pytest.approx(1.0, abs=1e-12)
    exact = [log_density(engine, answers, row) for row in distribution.rows]
    assert distribution.log_probabilities == pytest.approx(exact, abs=1e-10)


ROWS = list(itertools.product((NAN, -2.0, 0.4, 3.0), repeat=3))
LAST = [NAN, -5000.0, -7.0, -1.0, 0.0, 0.75, 11.0]


@pytest.mark.parametrize(
    ("mechanism", "answers", "rows"),
    [
        *(
            (mechanism, ANSWERS, [row for row in ROWS if 3 - np.isnan(row).sum() <= mechanism.cutoff])
            for kind in (compared, fresh)
            for mechanism in (kind(1), kind(2), kind(3), kind(2, refresh=True))
        ),
        *(
            (
                m.NoisyThreshold(CLAIM, a, b, cutoff=1, release_value=True),
                (*x, 0.5),
                [(*[NAN] * len(x), u) for u in LAST],
            )
            for a, b in [(2.0, 2.0), (1.0, 3.0), (4.0, 0.5)]
            for x in [(), (0.0,), (-1.0, 0.5, 0.5, 2.0), (1.0, 1.0), (-0.3, -2.0)]
        ),
    ],
)
def test_every_released_value_has_its_integral(mechanism, answers, rows):
    exact = [log_density(mechanism, answers, row) for row in rows]
    assert mechanism.distribution(answers).log_density(rows) == pytest.approx(exact, abs=1e-9)


def test_rows_that_cannot_be_have_no_mass():
    distribution = m.SparseVector(1.0, 1).distribution([0.0, 1.0, 2.0])
    assert distribution.rows == ((0, 0, 0), (0, 0, 1), (0, 1, -1), (1, -1, -1))
    rows = [[1, 0, 0], [1, 1, -1], [0, 0, -1], [2, 0, 0], [0, 1, 1], [math.nan, 1, -1]]
    assert np.all(distribution.log_density(rows) == -math.inf)
    assert distribution.log_density(distribution.rows).tolist() == list(distribution.log_probabilities)


@pytest.mark.parametrize(("n", "cutoff"), [(1, 1), (4, 1), (4, 2), (4, 4), (3, 9), (9, None)])
def test_transcripts_are_those_that_the_stop_allows(n, cutoff):
    distribution = m.NoisyThreshold(PureDP(1.0), 1.0, 1.0, cutoff=cutoff).distribution([0.0] * n)
    limit = n if cutoff is None else cutoff
    expected = set()
    for codes in itertools.product((BELOW, ABOVE), repeat=n):
        kept, above = [], 0
        for code in codes:
            kept.append(code if above < limit else STOPPED)
            above += code
        expected.add(tuple(kept))
    assert list(distribution.rows) == sorted(expected, key=lambda row: [code == ABOVE for code in row])


def test_scales_are_the_published_ones():
    """Lyu, Su & Li (2017): 2Δ/ε and 4cΔ/ε in Algorithm 1, 2cΔ/ε and 4cΔ/ε in Algorithm 2."""
    for refresh, threshold in ((False, 2.0), (True, 6.0)):
        mechanism = m.SparseVector(0.5, 3, sensitivity=2.0, refresh=refresh)
        assert mechanism.threshold_scale == pytest.approx(threshold * 4)
        assert mechanism.query_scale == pytest.approx(12 * 4)
    assert m.SparseVector(0.5, 3, sensitivity=2.0, monotone=True).query_scale == pytest.approx(6 * 4)
    assert m.SparseVector(0.5).claim == PureDP(0.5)


def follow(outputs, distribution, alarm=1e-8):
    """Whether the events "one value alone, and at most t" are as frequent as the integrals of the density say.

    The limits are exact binomial ones: true for runs of the distribution with probability at least 1 − alarm.
    """
    z, weight = numbers(-120, 120, 1 / 100)
    is_within = []
    for above, limit in itertools.product(range(3), (-3.0, 0.25, 1.7, 4.0)):
        rows = np.full((len(z), 3), np.nan)
        rows[:, above] = z
        probability = weight[z < limit] @ np.exp(distribution.log_density(rows[z < limit]))
        counts = np.sum(np.isnan(np.delete(outputs, above, axis=1)).all(axis=1) & (outputs[:, above] <= limit))
        count = stats.binom(len(outputs), probability)
        is_within.append(count.ppf(alarm / 24) <= counts <= count.isf(alarm / 24))
    return all(is_within)


@pytest.mark.parametrize("mechanism", [compared(1), compared(2), compared(2, refresh=True), fresh(2)], ids=named)
def test_runs_follow_the_distribution(mechanism):
    outputs = mechanism.sample(ANSWERS, 100_000, np.random.default_rng(4))
    assert follow(outputs, mechanism.distribution(ANSWERS))
    if mechanism == fresh(2):  # buggy variants: other values, and new threshold noise for the second value
        assert not follow(outputs, compared(2).distribution(ANSWERS))
    elif mechanism == compared(2):
        assert not follow(outputs, compared(2, refresh=True).distribution(ANSWERS))


def test_what_cannot_be_has_no_density():
    rows = [[1.0, 2.0, 3.0], [1.0, 2.0, math.nan]]
    for mechanism in (compared(1), fresh(1)):
        assert np.all(np.isneginf(mechanism.distribution(ANSWERS).log_density(rows)))
    assert compared(2).distribution(ANSWERS).log_density(rows).tolist()[0] == -math.inf
    assert compared(2).distribution(ANSWERS).log_density(rows)[1] > -10


@pytest.mark.parametrize("mechanism", [compared(1), compared(2), compared(2, refresh=True), fresh(2)], ids=named)
@pytest.mark.parametrize("moves", [(1, 1, 1), (1, -1, 1), (-1, 1, 0)], ids=str)
def test_nothing_exceeds_it_and_something_comes_near(mechanism, moves):
    x, y = mechanism.distribution(ANSWERS), mechanism.distribution(np.add(ANSWERS, moves))
    largest = x.epsilon_from(y, 0.0)
    levels = [-60.0, -5.0, *np.linspace(-2, 4, 61), 8.0, 20.0, 60.0, 400.0]
    rows = [
        [dict(zip(above, values, strict=True)).get(place, math.nan) for place in range(3)]
        for count in range(mechanism.cutoff + 1)
        for above in itertools.combinations(range(3), count)
        for values in itertools.product(levels, repeat=count)
    ]
    losses = x.log_density(rows) - y.log_density(rows)
    assert losses.max() <= largest + 1e-9
    assert losses.max() >= largest - 2e-3
