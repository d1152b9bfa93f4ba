"""Laws against scipy.stats, and divergences against enumeration, integration and hand-made events."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.audit.errors import OptionError
from dpaudit.mechanisms import (
    FiniteLaw,
    GaussianLaw,
    GeometricLaw,
    LaplaceLaw,
    exact_delta,
    exact_epsilon,
    hockey_stick,
)
from dpaudit.mechanisms.faulty.selection import MaximumLaplaceLaw
from dpaudit.mechanisms.laws.laws import log_gaussian_delta

RATIO = math.exp(-0.7)
LAWS = [
    (LaplaceLaw(1.5, 2.0), stats.laplace(1.5, 2.0), np.linspace(-120, 120, 481)),
    (GaussianLaw(-0.5, 3.0), stats.norm(-0.5, 3.0), np.linspace(-100, 100, 401)),
    (GeometricLaw(3, RATIO), stats.dlaplace(0.7, loc=3), np.arange(-60, 61)),
    (
        FiniteLaw((math.log(0.2), math.log(0.5), -math.inf, math.log(0.3))),
        stats.rv_discrete(values=([0, 1, 3], [0.2, 0.5, 0.3])),
        np.arange(-2, 7),
    ),
]


@pytest.mark.parametrize(("law", "oracle", "outputs"), LAWS, ids=lambda v: type(v).__name__)
class TestAgainstScipy:
    def test_log_density(self, law, oracle, outputs):
        if isinstance(law, (LaplaceLaw, GaussianLaw)):
            np.testing.assert_allclose(law.log_density(outputs), oracle.logpdf(outputs), rtol=1e-12)
        else:
            np.testing.assert_allclose(np.exp(law.log_density(outputs)), oracle.pmf(outputs), rtol=1e-12)

    def test_cdf_in_the_lower_tail(self, law, oracle, outputs):
        np.testing.assert_allclose(law.cdf(outputs), oracle.cdf(outputs), rtol=1e-12, atol=1e-300)

    def test_cdf_and_sf_add_to_one(self, law, oracle, outputs):
        np.testing.assert_allclose(law.cdf(outputs) + law.sf(outputs), 1.0, rtol=1e-15)


def test_upper_tails_keep_their_relative_accuracy():
    assert LaplaceLaw(0, 1).sf(300.0) == pytest.approx(math.exp(-300) / 2, rel=1e-13)
    assert GaussianLaw(1, 2).sf(61.0) == pytest.approx(stats.norm.sf(30.0), rel=1e-12)
    assert GeometricLaw(2, 0.5).sf(200) == pytest.approx(0.5**199 / 1.5, rel=1e-12)
    tiny = FiniteLaw((math.log1p(-1e-20), math.log(1e-20)))
    assert tiny.sf(0) == pytest.approx(1e-20, rel=1e-12)


def test_discrete_laws_give_nothing_between_the_integers():
    assert GeometricLaw(0, 0.5).log_density(0.5) == -math.inf
    assert GeometricLaw(0, 0.5).cdf(0.5) == GeometricLaw(0, 0.5).cdf(0)
    assert FiniteLaw((0.0,)).log_density([-1, 0, 0.5, 1]).tolist() == [-math.inf, 0.0, -math.inf, -math.inf]


@pytest.mark.parametrize("law", [LaplaceLaw(1.0, 0.3), GaussianLaw(1.0, 0.3), MaximumLaplaceLaw((0.0, 1.0, 1.2), 0.3)])
def test_densities_integrate_to_one_and_to_the_cdf(law):
    def density(z):
        return float(np.exp(law.log_density(z)))

    stops = [-20, 0, 1.0, 1.2, 25]
    parts = [integrate.quad(density, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(stops)]
    assert sum(parts) == pytest.approx(1.0, abs=1e-10)
    assert sum(parts[:2]) == pytest.approx(float(law.cdf(1.0)), abs=1e-10)


def test_geometric_masses_add_to_one():
    assert np.exp(GeometricLaw(2, 0.9).log_density(np.arange(-600, 600))).sum() == pytest.approx(1.0, abs=1e-12)


def test_largest_of_laplaces_is_the_product_of_their_cdfs():
    law = MaximumLaplaceLaw((0.0, 1.0), 2.0)
    z = np.array([-50.0, -1.0, 0.5, 3.0, 80.0])
    expected = stats.laplace.cdf(z, 0, 2) * stats.laplace.cdf(z, 1, 2)
    np.testing.assert_allclose(law.cdf(z), expected, rtol=1e-12)
    assert float(law.sf(80.0)) == pytest.approx(stats.laplace.sf(80, 0, 2) + stats.laplace.sf(80, 1, 2), rel=1e-9)


def positive_part(law_x, law_y, epsilon, stops):
    """∫ (f_x − e^ε f_y)⁺ by quadrature on pieces: the slow and obvious hockey stick."""

    def integrand(z):
        return max(0.0, math.exp(law_x.log_density(z)) - math.exp(epsilon + law_y.log_density(z)))

    pairs = itertools.pairwise(stops)
    return sum(integrate.quad(integrand, a, b, epsabs=1e-13, limit=200)[0] for a, b in pairs)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.9, 1.4, 3.0])
@pytest.mark.parametrize("kind", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize(("x", "y"), [(0.0, 1.2), (1.2, 0.0)])
def test_hockey_stick_of_continuous_laws(kind, x, y, epsilon):
    stops = [-30.0, *np.linspace(-8, 8, 33), 30.0]
    expected = positive_part(kind(x, 0.8), kind(y, 0.8), epsilon, sorted({*stops, x, y}))
    assert hockey_stick(kind(x, 0.8), kind(y, 0.8), epsilon) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7, 1.0, 2.05, 2.1, 5.0])
@pytest.mark.parametrize(("x", "y"), [(0, 1), (0, 3), (4, 0), (2, 2)])
def test_hockey_stick_of_geometric_laws(x, y, epsilon):
    k = np.arange(-200, 205)
    p, q = (np.exp(GeometricLaw(location, RATIO).log_density(k)) for location in (x, y))
    expected = np.maximum(0.0, p - math.exp(epsilon) * q).sum()
    assert hockey_stick(GeometricLaw(x, RATIO), GeometricLaw(y, RATIO), epsilon) == pytest.approx(expected, abs=1e-14)


def test_hockey_stick_of_finite_laws_is_the_best_of_all_events():
    p, q = np.array([0.5, 0.2, 0.3, 0.0]), np.array([0.1, 0.4, 0.25, 0.25])
    with np.errstate(divide="ignore"):
        law_x, law_y = FiniteLaw(tuple(np.log(p))), FiniteLaw(tuple(np.log(q)))
    events = [[bool(event >> k & 1) for k in range(4)] for event in range(16)]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        best = max(p[event].sum() - math.exp(epsilon) * q[event].sum() for event in events)
        assert hockey_stick(law_x, law_y, epsilon) == pytest.approx(best, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.1, 1.0, 10.0, 50.0, 400.0])
@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.49, 0.51, 1.0, 7.0, 30.0])
def test_gaussian_delta_in_sixty_digits(mu, epsilon):
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)

        def phi(z):
            return mpmath.erfc(-z / mpmath.sqrt(2)) / 2

        expected = float(mpmath.log(phi(m / 2 - e / m) - mpmath.exp(e) * phi(-m / 2 - e / m)))
    assert log_gaussian_delta(mu, epsilon) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("mu", [1e-12, 1e-7, 1e-3])
@pytest.mark.parametrize("u", [-1.0, 0.0, 0.7, 5.0, 29.99, 30.0, 37.0, 200.0, 1e5])
def test_gaussian_delta_of_near_laws_does_not_cancel(mu, u):
    """δ is of order μ (φ(u) − u Φ(−u)), u = ε/μ: the smaller μ, the more digits the two terms share."""
    epsilon = max(u, 0.0) * mu + (mu * mu / 4 if u < 0 else 0.0)  # u < 0 represents ε below μ²/2
    with mpmath.workdps(80):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        first, second = (mpmath.erfc((e / m + sign * m / 2) / mpmath.sqrt(2)) / 2 for sign in (-1, 1))
        expected = mpmath.log(first - mpmath.exp(e) * second)
    assert log_gaussian_delta(mu, epsilon) == pytest.approx(float(expected), rel=1e-13)


def test_gaussian_delta_at_the_ends():
    assert log_gaussian_delta(0.0, 0.0) == -math.inf
    assert log_gaussian_delta(1e-300, 1.0) == -math.inf
    assert log_gaussian_delta(1e3, 1.0) == pytest.approx(0.0, abs=1e-300)
    assert log_gaussian_delta(1e200, 1.0) == 0.0
    assert log_gaussian_delta(1e-300, 0.0) == pytest.approx(math.log(1e-300 / math.sqrt(2 * math.pi)), rel=1e-14)


PAIRS = [
    (LaplaceLaw(0, 0.5), LaplaceLaw(1, 0.5)),
    (GaussianLaw(0, 0.5), GaussianLaw(1, 0.5)),
    (GaussianLaw(0, 30.0), GaussianLaw(1, 30.0)),
    (GeometricLaw(0, RATIO), GeometricLaw(4, RATIO)),
    (GeometricLaw(0, 0.01), GeometricLaw(1, 0.01)),
    (FiniteLaw.from_log_weights([0, 1, 3, 2.0]), FiniteLaw.from_log_weights([1, 0, 2, 4.0])),
]


@pytest.mark.parametrize(("law_x", "law_y"), PAIRS)
@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-3, 0.01, 0.2, 0.5, 0.9])
def test_exact_epsilon_inverts_exact_delta(law_x, law_y, delta):
    epsilon = exact_epsilon(law_x, law_y, delta)
    reached = exact_delta(law_x, law_y, epsilon)
    if epsilon == 0:
        assert reached <= delta
    else:
        assert reached == pytest.approx(delta, rel=1e-8, abs=1e-14)


@pytest.mark.parametrize("mu", [1e-12, 1e-7, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-80, 1e-20, 1e-14, 0.01, 0.999])
def test_exact_epsilon_of_normal_laws_is_the_root_to_a_relative_1e_9(mu, delta):
    epsilon = exact_epsilon(GaussianLaw(0, 1), GaussianLaw(mu, 1), delta)
    if delta >= math.exp(log_gaussian_delta(mu, 0.0)):
        assert epsilon == 0.0
    else:
        above, below = (log_gaussian_delta(mu, epsilon * (1 + by)) for by in (1e-9, -1e-9))
        assert above < math.log(delta) < below


@pytest.mark.parametrize(("law_x", "law_y"), PAIRS)
def test_exact_epsilon_is_symmetric_and_falls_with_delta(law_x, law_y):
    values = [exact_epsilon(law_x, law_y, delta) for delta in (0, 1e-9, 1e-4, 0.1, 0.5)]
    assert values == sorted(values, reverse=True)
    assert values == [exact_epsilon(law_y, law_x, delta) for delta in (0, 1e-9, 1e-4, 0.1, 0.5)]


def test_pure_epsilons():
    assert exact_epsilon(LaplaceLaw(0, 0.5), LaplaceLaw(1, 0.5)) == 2.0
    assert exact_epsilon(GeometricLaw(0, RATIO), GeometricLaw(-4, RATIO)) == pytest.approx(2.8, rel=1e-14)
    assert exact_epsilon(GaussianLaw(0, 1), GaussianLaw(1e-3, 1)) == math.inf
    assert exact_epsilon(GaussianLaw(2, 1), GaussianLaw(2, 1)) == 0.0
    impossible = FiniteLaw((0.0, -math.inf))
    fair = FiniteLaw.from_log_weights([0, 0])
    assert exact_epsilon(impossible, fair) == math.inf
    assert exact_epsilon(impossible, fair, delta=0.5) == pytest.approx(0.0)
    assert exact_epsilon(impossible, fair, delta=0.4) == math.inf
    assert exact_epsilon(impossible, impossible) == 0.0


def test_exact_epsilon_of_tables_where_probabilities_are_below_any_double():
    """The truthful answer has loss 800 and probability nearly 1: epsilon = ln((1 − delta)/e^−800)."""
    laws = [FiniteLaw((0.0, -800.0)), FiniteLaw((-800.0, 0.0))]
    assert exact_epsilon(*laws, 0.1) == pytest.approx(800 + math.log(0.9), rel=1e-12)


def test_a_delta_that_a_set_of_outcomes_attains_covers_it():
    tenth = math.log(0.1)
    laws = [FiniteLaw((math.log(0.9), tenth, -math.inf)), FiniteLaw((math.log(0.9), -math.inf, tenth))]
    assert exact_epsilon(*laws, 0.1) == pytest.approx(0.0, abs=1e-12)
    assert exact_epsilon(*laws, 0.0999) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LaplaceLaw(0, 0), "scale=0 is not allowed; use 0 < scale < inf."),
        (lambda: GaussianLaw(0, math.nan), "scale=nan is not allowed; use 0 < scale < inf."),
        (lambda: GeometricLaw(0, 1.0), "ratio=1.0 is not allowed; use 0 < ratio < 1."),
        (lambda: FiniteLaw((0.0, 0.0)), "sum of probabilities=2.0 is not allowed; use logarithms of"),
        (lambda: hockey_stick(*PAIRS[0], -1), "epsilon=-1 is not allowed; use 0 <= epsilon < inf."),
        (lambda: exact_epsilon(*PAIRS[0], math.nan), "delta=nan is not allowed; use 0 <= delta < 1."),
        (
            lambda: exact_delta(LaplaceLaw(0, 1), LaplaceLaw(0, 2), 1),
            "no closed form for their divergence; use two laws",
        ),
        (lambda: exact_epsilon(LaplaceLaw(0, 1), GaussianLaw(0, 1)), "no closed form for their divergence"),
        (lambda: exact_epsilon(FiniteLaw((0.0,)), PAIRS[-1][0]), "no closed form for their divergence"),
        (lambda: exact_epsilon(*[MaximumLaplaceLaw((0.0,), 1.0)] * 2), "no closed form for their divergence"),
    ],
)
def test_errors(call, message):
    with pytest.raises(OptionError) as caught:
        call()
    assert message in str(caught.value)
