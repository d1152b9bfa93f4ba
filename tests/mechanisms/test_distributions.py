"""Exact distributions, by formulas, enumeration and other libraries, and the divergences between them."""

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import DiscreteGaussianPrivacyLoss
from scipy import integrate, stats

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import PureDP
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.distributions.distributions import (
    ABOVE,
    BELOW,
    STOPPED,
    log_gaussian_delta,
    transcript_distribution,
)
from dpaudit.mechanisms.distributions.released_values import MassBelow
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


def test_the_density_of_a_maximum_integrates_to_one_and_to_the_cdf():
    distribution = MaximumLaplaceDistribution((0.0, 1.0, 1.2), 0.3)

    def density(z):
        return float(np.exp(distribution.log_density(z)))

    stops = [-20, 0, 1.0, 1.2, 25]
    parts = [integrate.quad(density, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(stops)]
    assert sum(parts) == pytest.approx(1.0, abs=1e-10)
    assert sum(parts[:2]) == pytest.approx(float(distribution.cdf(1.0)), abs=1e-10)
    assert float(distribution.cdf(0.5)) == pytest.approx(
        math.prod(m.LaplaceDistribution(z, 0.3).cdf(0.5) for z in distribution.locations)
    )
    assert float(distribution.sf(30.0)) == pytest.approx(
        sum(m.LaplaceDistribution(z, 0.3).sf(30.0) for z in distribution.locations), rel=1e-9
    )


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


# Divergences against enumeration and integration.


def positive_part(distribution_x, distribution_y, epsilon, stops):
    """∫ (f_x − e^ε f_y)⁺ by quadrature on pieces: the slow and obvious hockey stick."""

    def integrand(z):
        return max(0.0, math.exp(distribution_x.log_density(z)) - math.exp(epsilon + distribution_y.log_density(z)))

    pairs = itertools.pairwise(stops)
    return sum(integrate.quad(integrand, a, b, epsabs=1e-13, limit=200)[0] for a, b in pairs)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.9, 1.4, 3.0])
@pytest.mark.parametrize("kind", [m.LaplaceDistribution, m.GaussianDistribution])
@pytest.mark.parametrize(("x", "y"), [(0.0, 1.2), (1.2, 0.0)])
def test_hockey_stick_of_continuous_distributions(kind, x, y, epsilon):
    stops = [-30.0, *np.linspace(-8, 8, 33), 30.0]
    expected = positive_part(kind(x, 0.8), kind(y, 0.8), epsilon, sorted({*stops, x, y}))
    assert m.hockey_stick(kind(x, 0.8), kind(y, 0.8), epsilon) == pytest.approx(expected, abs=1e-8)


def test_delta_of_leaky_distributions_is_that_of_their_noise_and_the_atom():
    x, y = (m.RareLeakLaplace(0.5, 0.01, sensitivity=2.0).distribution(answer) for answer in (0.0, 6.0))
    noise = m.LaplaceDistribution(0.0, 4.0), m.LaplaceDistribution(6.0, 4.0)
    for epsilon in (0.0, 0.3, 0.5, 1.0):
        exact = positive_part(*noise, epsilon, [-200, 0, 3 - 2 * epsilon, 6, 200])
        assert m.hockey_stick(x, y, epsilon) == pytest.approx(0.99 * exact + 0.01, rel=1e-9)
    assert m.exact_delta(x, x, 0.0) == 0.0  # both leak the same point
    for delta in (0.011, 0.05, 0.3):
        assert m.exact_delta(x, y, m.exact_epsilon(x, y, delta)) == pytest.approx(delta, rel=1e-9)
    assert m.exact_epsilon(x, y, 0.999) == 0.0


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


def test_delta_is_the_integral_over_the_plane():
    x, y = m.GaussianVectorDistribution((0.0, 0.0), 1.0), m.GaussianVectorDistribution((0.6, 0.8), 1.0)
    side, step = np.linspace(-7, 8, 601, retstep=True)
    plane = np.stack(np.meshgrid(side, side), axis=-1)
    excess = np.exp(x.log_density(plane)) - math.exp(0.5) * np.exp(y.log_density(plane))
    assert m.exact_delta(x, y, 0.5) == pytest.approx(np.maximum(excess, 0.0).sum() * step**2, rel=1e-4)


def test_hockey_stick_of_finite_distributions_is_the_best_of_all_events():
    p, q = np.array([0.5, 0.2, 0.3, 0.0]), np.array([0.1, 0.4, 0.25, 0.25])
    with np.errstate(divide="ignore"):
        distribution_x, distribution_y = m.FiniteDistribution(tuple(np.log(p))), m.FiniteDistribution(tuple(np.log(q)))
    events = [[bool(event >> k & 1) for k in range(4)] for event in range(16)]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        best = max(p[event].sum() - math.exp(epsilon) * q[event].sum() for event in events)
        assert m.hockey_stick(distribution_x, distribution_y, epsilon) == pytest.approx(best, abs=1e-15)


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


PAIRS = [
    (m.LaplaceDistribution(0, 0.5), m.LaplaceDistribution(1, 0.5)),
    (m.GaussianDistribution(0, 0.5), m.GaussianDistribution(1, 0.5)),
    (m.GaussianDistribution(0, 30.0), m.GaussianDistribution(1, 30.0)),
    (m.GeometricDistribution(0, RATIO), m.GeometricDistribution(4, RATIO)),
    (m.GeometricDistribution(0, 0.01), m.GeometricDistribution(1, 0.01)),
    (m.GeometricDistribution(0, 0.8), m.GeometricDistribution(20, 0.8)),  # the best event is above the stationary point
    (m.FiniteDistribution.from_log_weights([0, 1, 3, 2.0]), m.FiniteDistribution.from_log_weights([1, 0, 2, 4.0])),
]


@pytest.mark.parametrize(("distribution_x", "distribution_y"), PAIRS)
def test_exact_epsilon_inverts_exact_delta_is_symmetric_and_falls(distribution_x, distribution_y):
    deltas = [0, 1e-30, 1e-12, 1e-9, 1e-4, 1e-3, 0.01, 0.1, 0.2, 0.5, 0.9]
    epsilons = [m.exact_epsilon(distribution_x, distribution_y, delta) for delta in deltas]
    assert epsilons == sorted(epsilons, reverse=True)
    assert epsilons == [m.exact_epsilon(distribution_y, distribution_x, delta) for delta in deltas]
    for epsilon, delta in zip(epsilons[1:], deltas[1:], strict=True):
        reached = m.exact_delta(distribution_x, distribution_y, epsilon)
        assert reached <= delta if epsilon == 0 else reached == pytest.approx(delta, rel=1e-8, abs=1e-14)


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


def test_discrete_distributions_with_values_of_one_side_only():
    distribution, other = (
        m.DiscreteDistribution((-1.0, 0.5, 2.0), tuple(np.log([0.2, 0.3, 0.5]))),
        m.DiscreteDistribution((0.5, 2.0), (HALF, HALF)),
    )
    assert m.exact_epsilon(distribution, other) == INF
    assert [m.exact_delta(distribution, other, epsilon) for epsilon in (0.0, math.log(1.5))] == pytest.approx(
        [0.2, 0.2]
    )
    assert m.exact_epsilon(other, distribution, delta=0.2) == pytest.approx(0.0, abs=1e-12)
    assert m.exact_epsilon(other, m.DiscreteDistribution((0.5, 2.0), tuple(np.log([0.2, 0.8])))) == pytest.approx(
        math.log(2.5)
    )


def coins(*probabilities):
    return m.ProductDistribution(tuple(m.FiniteDistribution((math.log1p(-p), math.log(p))) for p in probabilities))


def test_product_divergence_against_enumeration():
    """Enumerate the sixteen joint outcomes of four coordinates; the best event is the set with positive excess."""
    distribution_x, distribution_y = coins(0.2, 0.5, 0.5, 0.9), coins(0.4, 0.5, 0.3, 0.8)
    outcomes = np.array(list(itertools.product([0, 1], repeat=4)))
    p, q = np.exp(distribution_x.log_density(outcomes)), np.exp(distribution_y.log_density(outcomes))
    largest = float(np.log(p / q).max())
    assert distribution_x.epsilon_from(distribution_y, 0.0) == pytest.approx(largest, rel=1e-12)
    assert m.hockey_stick(distribution_x, distribution_y, largest + 1e-9) == 0.0
    moved = coins(0.2, 0.5, 0.3, 0.9)
    q = np.exp(moved.log_density(outcomes))
    for epsilon in (0.0, 0.1, 0.4):
        expected = np.maximum(0.0, p - math.exp(epsilon) * q).sum()
        assert m.hockey_stick(distribution_x, moved, epsilon) == pytest.approx(expected, abs=1e-14)
    assert m.exact_epsilon(distribution_x, moved, 0.05) == pytest.approx(
        m.exact_epsilon(coins(0.5), coins(0.3), 0.05), rel=1e-14
    )


# Exact Rényi divergences against sums, integrals and the limits of small and large orders.


@pytest.mark.parametrize(
    ("distribution_x", "distribution_y", "log_ratio"),
    [
        (m.LaplaceDistribution(0.0, 2.0), m.LaplaceDistribution(3.0, 2.0), 3 / 2),
        (m.LaplaceDistribution(1.0, 0.5), m.LaplaceDistribution(0.5, 0.5), 1.0),
        (m.GaussianDistribution(0.0, 2.0), m.GaussianDistribution(1.0, 2.0), None),
    ],
    ids=["laplace", "laplace-near", "gaussian"],
)
@pytest.mark.parametrize("order", [1.01, 1.5, 2, 7])
def test_renyi_divergences_are_integrals(distribution_x, distribution_y, log_ratio, order):
    def integrand(z):
        return math.exp(order * distribution_x.log_density(z) + (1 - order) * distribution_y.log_density(z))

    moment = integrate.quad(integrand, -60, 60, points=(0, 0.5, 1, 3), limit=400, epsabs=1e-13)[0]
    found = m.exact_renyi(distribution_x, distribution_y, order)
    assert found == pytest.approx(math.log(moment) / (order - 1), rel=1e-7)
    assert found == pytest.approx(m.exact_renyi(distribution_y, distribution_x, order), rel=1e-12)
    if log_ratio is not None:
        assert found < log_ratio
        assert m.exact_renyi(distribution_x, distribution_y, 1e6) == pytest.approx(log_ratio, rel=1e-4)


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


@pytest.mark.parametrize("order", [1.3, 2, 5])
def test_finite_distributions_by_the_sum_over_outcomes(order):
    """An adaptive search, whose two directions differ."""
    x, y = (m.UpAndDown(0.6, 5).distribution(value) for value in (0, 3))
    for one, two in ((x, y), (y, x)):
        p, q = one.probabilities, two.probabilities
        moment = float(np.sum(p**order * q ** (1 - order)))
        assert m.exact_renyi(one, two, order) == pytest.approx(math.log(moment) / (order - 1), rel=1e-12)
    assert m.exact_renyi(x, y, order) != pytest.approx(m.exact_renyi(y, x, order), rel=1e-3)
    sure, either = m.FiniteDistribution((0.0, -math.inf)), m.FiniteDistribution((HALF, HALF))
    assert (m.exact_renyi(either, sure, order), m.exact_renyi(sure, either, order)) == (INF, pytest.approx(-HALF))


# Chains: the distribution of a mechanism that is chosen for the output of another.


def follow_up(answer):
    """Return a finer question after a yes."""
    return m.RandomisedResponse(0.3, k=3) if answer == 0 else m.RandomisedResponse(0.7, k=3)


def same_or_noisier(answer):
    return m.LaplaceMechanism(1.0 if answer == 0 else 0.5)


def joint_table(distribution_x, distribution_y, ranges):
    """Return both distributions as distributions of a row's index among all rows."""
    rows = list(itertools.product(*ranges))
    return [
        m.FiniteDistribution(tuple(distribution.log_density(rows).tolist()))
        for distribution in (distribution_x, distribution_y)
    ]


TWO_STEPS = m.AdaptiveComposition(m.RandomisedResponse(1.0), follow_up, then_claim=PureDP(0.7))


def test_a_chain_is_the_distribution_of_its_rows():
    x, y = TWO_STEPS.distribution(0), TWO_STEPS.distribution(1)
    ranges = [range(2), range(3)]
    table_x, table_y = joint_table(x, y, ranges)  # FiniteDistribution checks that the probabilities add to 1
    for epsilon in (0.0, 0.2, 0.35, 0.8, 1.2, 1.69, 1.71, 3.0):
        assert m.hockey_stick(x, y, epsilon) == pytest.approx(m.hockey_stick(table_x, table_y, epsilon), abs=1e-15)
        assert m.hockey_stick(y, x, epsilon) == pytest.approx(m.hockey_stick(table_y, table_x, epsilon), abs=1e-15)
    for delta in (0.0, 1e-9, 0.01, 0.2, 0.4, 0.9):
        assert m.exact_epsilon(x, y, delta) == pytest.approx(m.exact_epsilon(table_x, table_y, delta), abs=1e-12)
    assert m.exact_epsilon(x, y) == pytest.approx(1.7, rel=1e-12)  # attains the claim
    assert TWO_STEPS.claim == PureDP(1.7)


def test_a_chain_that_ends_in_real_numbers():
    chain = m.AdaptiveComposition(m.RandomisedResponse(0.5), same_or_noisier, then_claim=PureDP(1.0))
    x, y = chain.distribution(0), chain.distribution(1)

    def gain(z, o, epsilon):
        p, q = (math.exp(distribution.log_density([o, z])) for distribution in (x, y))
        return max(p - math.exp(epsilon) * q, 0.0)

    for epsilon in (0.0, 0.3, 0.7, 1.4):
        found = sum(integrate.quad(gain, -40, 40, (o, epsilon), points=(0, 1), limit=200)[0] for o in range(2))
        assert m.hockey_stick(x, y, epsilon) == pytest.approx(found, abs=1e-7)
    assert m.exact_epsilon(x, y) == pytest.approx(1.5, rel=1e-12)
    at = m.exact_epsilon(x, y, 0.1)
    assert m.exact_delta(x, y, at) == pytest.approx(0.1, abs=1e-12)


def test_an_outcome_of_one_side_only_has_no_finite_epsilon():
    coin = m.FiniteDistribution((math.log(0.5), math.log(0.5)))
    sure, either = m.FiniteDistribution((0.0, -math.inf)), m.FiniteDistribution((math.log(0.75), math.log(0.25)))
    x, y = m.ChainDistribution(either, (coin, coin)), m.ChainDistribution(sure, (coin, coin))
    assert m.exact_epsilon(x, y) == math.inf
    assert m.exact_epsilon(x, y, 0.2) == math.inf
    assert m.exact_epsilon(x, y, 0.3) == 0.0
    assert m.hockey_stick(y, x, 0.1) == pytest.approx(1 - math.exp(0.1) * 0.75, rel=1e-12)
    assert m.hockey_stick(x, y, 5.0) == pytest.approx(0.25, rel=1e-12)


# Transcripts of the sparse vector technique, by other integrals.


def probability(mechanism, answers, transcript):
    """Return the probability of a transcript by adaptive mpmath quadrature over each noisy threshold in turn.

    It is independent of the distribution's code: integrals over the threshold instead of its noise, no logarithms,
    other nodes.
    """
    a, b = mpmath.mpf(mechanism.threshold_scale), mpmath.mpf(mechanism.query_scale)

    def is_above(answer, level):
        if b == 0:
            return mpmath.mpf(answer >= level)
        tail = mpmath.exp(-abs(answer - level) / b) / 2
        return 1 - tail if answer >= level else tail

    def with_one_draw(part):
        def integrand(level):
            density = mpmath.exp(-abs(level - mechanism.threshold) / a) / (2 * a)
            chances = [is_above(answer, level) if code else 1 - is_above(answer, level) for answer, code in part]
            return density * mpmath.fprod(chances)

        stops = sorted({mechanism.threshold, *(answer for answer, _ in part)})
        return mpmath.quad(integrand, [stops[0] - 60 * a, *stops, stops[-1] + 60 * a])

    looked_at = [(answer, code) for answer, code in zip(answers, transcript, strict=True) if code != STOPPED]
    if not mechanism.refresh:
        return float(with_one_draw(looked_at))
    product, part = mpmath.mpf(1), []
    for answer, code in looked_at:
        part.append((answer, code))
        if code == ABOVE:
            product, part = product * with_one_draw(part), []
    return float(product * with_one_draw(part) if part else product)


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
    for transcript, log_probability in zip(distribution.rows, distribution.log_probabilities, strict=True):
        exact = probability(engine, answers, transcript)
        assert math.exp(log_probability) == pytest.approx(exact, rel=1e-10, abs=1e-25)


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


# Sparse vectors that release values: their distributions against transcript distributions, other integrals and runs.


ANSWERS = (0.3, 1.7, -0.4)
CLAIM = PureDP(1.0)


def compared(cutoff=1, refresh=False, threshold=0.25):
    return m.NoisyThreshold(CLAIM, 2.0, 3.0, cutoff=cutoff, threshold=threshold, refresh=refresh, release_value=True)


def fresh(cutoff=1, refresh=False):
    return m.NoisyThreshold(
        CLAIM, 2.0, 3.0, cutoff=cutoff, threshold=0.25, refresh=refresh, release_value=True, value_scale=1.5
    )


def named(mechanism):
    """Return a test id without the address of the query."""
    kind = "fresh" if mechanism.value_scale > 0 else "compared"
    return f"{kind}-{mechanism.cutoff}{'-refresh' * mechanism.refresh}"


def nodes(stops, reach):
    """Integrate by Gauss-Legendre on pieces of at most 2 that break at these places, and `reach` beyond them."""
    stops = sorted({*stops, min(stops) - reach, max(stops) + reach})
    edges = np.unique(
        np.concatenate([np.linspace(a, b, math.ceil((b - a) / 2) + 1) for a, b in itertools.pairwise(stops)])
    )
    t, w = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges) / 2
    return ((edges[1:] + edges[:-1])[:, None] / 2 + half[:, None] * t).ravel(), (half[:, None] * w).ravel()


@pytest.mark.parametrize(("a", "b"), [(2.0, 2.0), (1.0, 3.0), (4.0, 0.5)])
@pytest.mark.parametrize("x", [(), (0.0,), (-1.0, 0.5, 0.5, 2.0), (1.0, 1.0), (-0.3, -2.0)], ids=len)
def test_it_is_the_integral(a, b, x):
    def integrand(z):
        chances = [math.exp(-abs(z - i) / b) / 2 for i in x]
        below = [p if z < i else 1 - p for p, i in zip(chances, x, strict=True)]
        return math.exp(-abs(z) / a) / (2 * a) * math.prod(below)

    mass = MassBelow.of(np.array(x), a, b)
    points = [-7.0, -1.0, -0.2, 0.0, 0.75, 2.0, 11.0]
    found = mass.log_up_to(np.array([*points, math.inf]))
    for u, log_mass in zip([*points, 60.0 * a], found.tolist(), strict=True):
        lowest, length = min(-2.0, u), 1 / (1 / a + len(x) / b)  # below `lowest`, one exponential of this length
        tail = [lowest - length * reach for reach in (60, 25, 10, 4, 1)]
        stops = [*tail, lowest, *(edge for edge in sorted({0.0, *x}) if lowest < edge < u), u]
        pieces = [integrate.quad(integrand, *ends, epsabs=0.0)[0] for ends in itertools.pairwise(stops)]
        assert log_mass == pytest.approx(math.log(math.fsum(pieces)), abs=1e-9)


def test_far_below_it_is_one_exponential():
    low, lower = MassBelow.of(np.array([0.0, 1.0]), 2.0, 4.0).log_up_to(np.array([-5000.0, -6000.0]))
    assert low - lower == pytest.approx(1000.0)  # 1/2 + 2/4 per unit


@pytest.mark.parametrize("mechanism", [compared(1), compared(3), fresh(1), compared(2, refresh=True)], ids=named)
def test_one_value_integrates_to_its_transcript(mechanism):
    """Integrated over all values, the densities give the transcript probabilities of independent code."""
    distribution = mechanism.distribution(ANSWERS)
    transcripts = transcript_distribution(
        np.array(ANSWERS) - mechanism.threshold, 2.0, 3.0, mechanism.cutoff, refresh=mechanism.refresh
    )
    z, weight = nodes([*ANSWERS, 0.25], 120.0)
    for above in range(3):
        rows = np.full((len(z), 3), np.nan)
        rows[:, above] = z
        code = [0, 0, 0] if mechanism.cutoff > 1 else [0] * above + [1] + [-1] * (2 - above)
        code[above] = ABOVE
        exact = math.exp(transcripts.log_density([code])[0])
        assert weight @ np.exp(distribution.log_density(rows)) == pytest.approx(exact, rel=1e-9)
    if mechanism.cutoff <= 3:
        silence = distribution.log_density(np.full((1, 3), np.nan))
        assert silence == pytest.approx(transcripts.log_density([[0, 0, 0]]), abs=1e-10)


@pytest.mark.parametrize("mechanism", [compared(2), compared(2, refresh=True), fresh(2)], ids=named)
def test_two_values_integrate_to_their_transcript(mechanism):
    distribution = mechanism.distribution(ANSWERS)
    transcripts = transcript_distribution(np.array(ANSWERS) - 0.25, 2.0, 3.0, 2, refresh=mechanism.refresh)
    z, weight = nodes([*ANSWERS, 0.25], 70.0)
    # One triangle on each side of the diagonal, where the smaller of the two compared values changes.
    t, w = np.polynomial.legendre.leggauss(60)
    exact = math.exp(transcripts.log_density([[1, 0, 1]])[0])
    total = 0.0
    for side in (-1.0, 1.0):
        for start, stop in itertools.pairwise([0.0, 2.5, 10.0, 30.0, 100.0]):
            apart = side * ((start + stop) / 2 + (stop - start) / 2 * t)
            first, second = np.broadcast_arrays(z[:, None], z[:, None] + apart)
            rows = np.stack([first.ravel(), np.full(first.size, np.nan), second.ravel()], axis=1)
            density = np.exp(distribution.log_density(rows)).reshape(first.shape)
            total += weight @ density @ w * (stop - start) / 2
    assert total == pytest.approx(exact, rel=2e-4)  # the second value's density has corners inside the pieces


@pytest.mark.parametrize("below", [0, 1, 5])
def test_a_small_value_after_some_below(below):
    """For answers 0, Pr[all below, then a value ≤ 0] is a double integral of exponentials."""
    z, weight = nodes([0.0], 80.0)
    rows = np.full((len(z), below + 1), np.nan)
    rows[:, -1] = z
    distribution = m.NoisyThreshold(CLAIM, 2.0, 2.0, cutoff=1, release_value=True).distribution([0.0] * (below + 1))
    exact = 1 / (4 * 2**below * (below + 1) * (below + 2))
    assert weight[z < 0] @ np.exp(distribution.log_density(rows))[z < 0] == pytest.approx(exact, rel=1e-10)


def follow(outputs, distribution, alarm=1e-8):
    """Whether the events "one value alone, and at most t" are as frequent as the integrals of the density say.

    The limits are exact binomial ones: true for runs of the distribution with probability at least 1 − alarm.
    """
    z, weight = nodes([*ANSWERS, 0.25, -3.0, 4.0], 120.0)
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
