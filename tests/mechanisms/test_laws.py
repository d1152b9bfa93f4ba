"""Exact laws and the losses between them.

Random tests have a false-alarm probability of 1e-8 each.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms.faulty.selection import MaximumLaplaceLaw
from dpaudit.mechanisms.laws.laws import ABOVE, log_gaussian_delta, transcript_law
from dpaudit.mechanisms.laws.released_values import MassBelow

# Laws against scipy.stats, and divergences against enumeration, integration and hand-made events.

RATIO = math.exp(-0.7)


LAWS = [
    (m.LaplaceLaw(1.5, 2.0), stats.laplace(1.5, 2.0), np.linspace(-120, 120, 481)),
    (m.GaussianLaw(-0.5, 3.0), stats.norm(-0.5, 3.0), np.linspace(-100, 100, 401)),
    (m.GeometricLaw(3, RATIO), stats.dlaplace(0.7, loc=3), np.arange(-60, 61)),
    (
        m.FiniteLaw((math.log(0.2), math.log(0.5), -math.inf, math.log(0.3))),
        stats.rv_discrete(values=([0, 1, 3], [0.2, 0.5, 0.3])),
        np.arange(-2, 7),
    ),
]


@pytest.mark.parametrize(("law", "oracle", "outputs"), LAWS, ids=lambda v: type(v).__name__)
class TestAgainstScipy:
    def test_log_density(self, law, oracle, outputs):
        if isinstance(law, (m.LaplaceLaw, m.GaussianLaw)):
            np.testing.assert_allclose(law.log_density(outputs), oracle.logpdf(outputs), rtol=1e-12)
        else:
            np.testing.assert_allclose(np.exp(law.log_density(outputs)), oracle.pmf(outputs), rtol=1e-12)

    def test_cdf_in_the_lower_tail(self, law, oracle, outputs):
        np.testing.assert_allclose(law.cdf(outputs), oracle.cdf(outputs), rtol=1e-12, atol=1e-300)

    def test_cdf_and_sf_add_to_one(self, law, oracle, outputs):
        np.testing.assert_allclose(law.cdf(outputs) + law.sf(outputs), 1.0, rtol=1e-15)


def test_upper_tails_keep_their_relative_accuracy():
    assert m.LaplaceLaw(0, 1).sf(300.0) == pytest.approx(math.exp(-300) / 2, rel=1e-13)
    assert m.GaussianLaw(1, 2).sf(61.0) == pytest.approx(stats.norm.sf(30.0), rel=1e-12)
    assert m.GeometricLaw(2, 0.5).sf(200) == pytest.approx(0.5**199 / 1.5, rel=1e-12)
    tiny = m.FiniteLaw((math.log1p(-1e-20), math.log(1e-20)))
    assert tiny.sf(0) == pytest.approx(1e-20, rel=1e-12)


def test_discrete_laws_give_nothing_between_the_integers():
    assert m.GeometricLaw(0, 0.5).log_density(0.5) == -math.inf
    assert m.GeometricLaw(0, 0.5).cdf(0.5) == m.GeometricLaw(0, 0.5).cdf(0)
    assert m.FiniteLaw((0.0,)).log_density([-1, 0, 0.5, 1]).tolist() == [-math.inf, 0.0, -math.inf, -math.inf]


@pytest.mark.parametrize(
    "law", [m.LaplaceLaw(1.0, 0.3), m.GaussianLaw(1.0, 0.3), MaximumLaplaceLaw((0.0, 1.0, 1.2), 0.3)]
)
def test_densities_integrate_to_one_and_to_the_cdf(law):
    def density(z):
        return float(np.exp(law.log_density(z)))

    stops = [-20, 0, 1.0, 1.2, 25]
    parts = [integrate.quad(density, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(stops)]
    assert sum(parts) == pytest.approx(1.0, abs=1e-10)
    assert sum(parts[:2]) == pytest.approx(float(law.cdf(1.0)), abs=1e-10)


def test_geometric_masses_add_to_one():
    assert np.exp(m.GeometricLaw(2, 0.9).log_density(np.arange(-600, 600))).sum() == pytest.approx(1.0, abs=1e-12)


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
@pytest.mark.parametrize("kind", [m.LaplaceLaw, m.GaussianLaw])
@pytest.mark.parametrize(("x", "y"), [(0.0, 1.2), (1.2, 0.0)])
def test_hockey_stick_of_continuous_laws(kind, x, y, epsilon):
    stops = [-30.0, *np.linspace(-8, 8, 33), 30.0]
    expected = positive_part(kind(x, 0.8), kind(y, 0.8), epsilon, sorted({*stops, x, y}))
    assert m.hockey_stick(kind(x, 0.8), kind(y, 0.8), epsilon) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7, 1.0, 2.05, 2.1, 5.0])
@pytest.mark.parametrize(("x", "y"), [(0, 1), (0, 3), (4, 0), (2, 2)])
def test_hockey_stick_of_geometric_laws(x, y, epsilon):
    k = np.arange(-200, 205)
    p, q = (np.exp(m.GeometricLaw(location, RATIO).log_density(k)) for location in (x, y))
    expected = np.maximum(0.0, p - math.exp(epsilon) * q).sum()
    assert m.hockey_stick(m.GeometricLaw(x, RATIO), m.GeometricLaw(y, RATIO), epsilon) == pytest.approx(
        expected, abs=1e-14
    )


def test_hockey_stick_of_finite_laws_is_the_best_of_all_events():
    p, q = np.array([0.5, 0.2, 0.3, 0.0]), np.array([0.1, 0.4, 0.25, 0.25])
    with np.errstate(divide="ignore"):
        law_x, law_y = m.FiniteLaw(tuple(np.log(p))), m.FiniteLaw(tuple(np.log(q)))
    events = [[bool(event >> k & 1) for k in range(4)] for event in range(16)]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        best = max(p[event].sum() - math.exp(epsilon) * q[event].sum() for event in events)
        assert m.hockey_stick(law_x, law_y, epsilon) == pytest.approx(best, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.1, 1.0, 10.0, 50.0, 400.0])
@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.49, 0.51, 1.0, 7.0, 30.0])
def test_gaussian_delta_in_sixty_digits(mu, epsilon):
    with mpmath.workdps(60):
        d, e = mpmath.mpf(mu), mpmath.mpf(epsilon)

        def phi(z):
            return mpmath.erfc(-z / mpmath.sqrt(2)) / 2

        expected = float(mpmath.log(phi(d / 2 - e / d) - mpmath.exp(e) * phi(-d / 2 - e / d)))
    assert log_gaussian_delta(mu, epsilon) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("mu", [1e-12, 1e-7, 1e-3])
@pytest.mark.parametrize("u", [-1.0, 0.0, 0.7, 5.0, 29.99, 30.0, 37.0, 200.0, 1e5])
def test_gaussian_delta_of_near_laws_does_not_cancel(mu, u):
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
    (m.LaplaceLaw(0, 0.5), m.LaplaceLaw(1, 0.5)),
    (m.GaussianLaw(0, 0.5), m.GaussianLaw(1, 0.5)),
    (m.GaussianLaw(0, 30.0), m.GaussianLaw(1, 30.0)),
    (m.GeometricLaw(0, RATIO), m.GeometricLaw(4, RATIO)),
    (m.GeometricLaw(0, 0.01), m.GeometricLaw(1, 0.01)),
    (m.FiniteLaw.from_log_weights([0, 1, 3, 2.0]), m.FiniteLaw.from_log_weights([1, 0, 2, 4.0])),
]


@pytest.mark.parametrize(("law_x", "law_y"), PAIRS)
@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-3, 0.01, 0.2, 0.5, 0.9])
def test_exact_epsilon_inverts_exact_delta(law_x, law_y, delta):
    epsilon = m.exact_epsilon(law_x, law_y, delta)
    reached = m.exact_delta(law_x, law_y, epsilon)
    if epsilon == 0:
        assert reached <= delta
    else:
        assert reached == pytest.approx(delta, rel=1e-8, abs=1e-14)


@pytest.mark.parametrize("mu", [1e-12, 1e-7, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-80, 1e-20, 1e-14, 0.01, 0.999])
def test_exact_epsilon_of_normal_laws_is_the_root_to_a_relative_1e_9(mu, delta):
    epsilon = m.exact_epsilon(m.GaussianLaw(0, 1), m.GaussianLaw(mu, 1), delta)
    if delta >= math.exp(log_gaussian_delta(mu, 0.0)):
        assert epsilon == 0.0
    else:
        above, below = (log_gaussian_delta(mu, epsilon * (1 + by)) for by in (1e-9, -1e-9))
        assert above < math.log(delta) < below


@pytest.mark.parametrize(("law_x", "law_y"), PAIRS)
def test_exact_epsilon_is_symmetric_and_falls_with_delta(law_x, law_y):
    values = [m.exact_epsilon(law_x, law_y, delta) for delta in (0, 1e-9, 1e-4, 0.1, 0.5)]
    assert values == sorted(values, reverse=True)
    assert values == [m.exact_epsilon(law_y, law_x, delta) for delta in (0, 1e-9, 1e-4, 0.1, 0.5)]


def test_pure_epsilons():
    assert m.exact_epsilon(m.LaplaceLaw(0, 0.5), m.LaplaceLaw(1, 0.5)) == 2.0
    assert m.exact_epsilon(m.GeometricLaw(0, RATIO), m.GeometricLaw(-4, RATIO)) == pytest.approx(2.8, rel=1e-14)
    assert m.exact_epsilon(m.GaussianLaw(0, 1), m.GaussianLaw(1e-3, 1)) == math.inf
    assert m.exact_epsilon(m.GaussianLaw(2, 1), m.GaussianLaw(2, 1)) == 0.0
    impossible = m.FiniteLaw((0.0, -math.inf))
    fair = m.FiniteLaw.from_log_weights([0, 0])
    assert m.exact_epsilon(impossible, fair) == math.inf
    assert m.exact_epsilon(impossible, fair, delta=0.5) == pytest.approx(0.0)
    assert m.exact_epsilon(impossible, fair, delta=0.4) == math.inf
    assert m.exact_epsilon(impossible, impossible) == 0.0


def test_exact_epsilon_of_tables_where_probabilities_are_below_any_double():
    """The truthful answer has loss 800 and probability nearly 1: epsilon = ln((1 − delta)/e^−800)."""
    laws = [m.FiniteLaw((0.0, -800.0)), m.FiniteLaw((-800.0, 0.0))]
    assert m.exact_epsilon(*laws, 0.1) == pytest.approx(800 + math.log(0.9), rel=1e-12)


def test_a_delta_that_a_set_of_outcomes_attains_covers_it():
    tenth = math.log(0.1)
    laws = [m.FiniteLaw((math.log(0.9), tenth, -math.inf)), m.FiniteLaw((math.log(0.9), -math.inf, tenth))]
    assert m.exact_epsilon(*laws, 0.1) == pytest.approx(0.0, abs=1e-12)
    assert m.exact_epsilon(*laws, 0.0999) == math.inf


# Exact Rényi divergences against sums, integrals and the limits of small and large orders.


@pytest.mark.parametrize(
    ("law_x", "law_y", "log_ratio"),
    [
        (m.LaplaceLaw(0.0, 2.0), m.LaplaceLaw(3.0, 2.0), 3 / 2),
        (m.LaplaceLaw(1.0, 0.5), m.LaplaceLaw(0.5, 0.5), 1.0),
        (m.GaussianLaw(0.0, 2.0), m.GaussianLaw(1.0, 2.0), None),
    ],
    ids=["laplace", "laplace-near", "gaussian"],
)
@pytest.mark.parametrize("order", [1.01, 1.5, 2, 7])
def test_renyi_divergences_are_integrals(law_x, law_y, log_ratio, order):
    def integrand(z):
        return math.exp(order * law_x.log_density(z) + (1 - order) * law_y.log_density(z))

    moment = integrate.quad(integrand, -60, 60, points=(0, 0.5, 1, 3), limit=400, epsabs=1e-13)[0]
    found = m.exact_renyi(law_x, law_y, order)
    assert found == pytest.approx(math.log(moment) / (order - 1), rel=1e-7)
    assert found == pytest.approx(m.exact_renyi(law_y, law_x, order), rel=1e-12)
    if log_ratio is not None:
        assert found < log_ratio
        assert m.exact_renyi(law_x, law_y, 1e6) == pytest.approx(log_ratio, rel=1e-4)


@pytest.mark.parametrize("order", [1.1, 2, 20])
@pytest.mark.parametrize("n", [1, 10, 100])
def test_independent_outputs_add_up(n, order):
    one, fold = m.RandomisedResponse(0.3), m.RandomisedResponseFold(0.3, n)
    single = m.exact_renyi(one.law(0), one.law(1), order)
    assert m.exact_renyi(fold.law(0), fold.law(1), order) == pytest.approx(n * single, rel=1e-9)
    laplace = m.LaplaceMechanism(0.3)
    many = m.composed(laplace, n)
    single = m.exact_renyi(laplace.law(0.0), laplace.law(1.0), order)
    assert m.exact_renyi(many.law(0.0), many.law(1.0), order) == pytest.approx(n * single, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0])
def test_epsilon_bounds_the_divergence_of_every_order(epsilon):
    """Mironov (2017), Lemma 1, has 2aε²; Bun & Steinke (2016), Proposition 3.3, the tight aε²/2."""
    for order in (1.001, 1.5, 2, 10, 1000):
        for mechanism, x, y in ((m.RandomisedResponse(epsilon), 0, 1), (m.LaplaceMechanism(epsilon), 0.0, 1.0)):
            found = m.exact_renyi(mechanism.law(x), mechanism.law(y), order)
            assert 0 < found <= min(order * epsilon**2 / 2, epsilon)
    response = m.RandomisedResponse(0.001)
    tight = m.exact_renyi(response.law(0), response.law(1), 3)
    assert tight == pytest.approx(3 * 0.001**2 / 2, rel=1e-5)  # no smaller constant holds


def test_an_impossible_outcome_has_an_infinite_divergence():
    some, all_ = m.FiniteLaw((0.0, -math.inf)), m.FiniteLaw((math.log(0.5), math.log(0.5)))
    assert m.exact_renyi(all_, some, 2) == math.inf
    assert m.exact_renyi(some, all_, 2) == pytest.approx(math.log(2))


@pytest.mark.parametrize("order", [1.3, 2, 5])
def test_finite_laws_by_the_sum_over_outcomes(order):
    """An adaptive search, whose two directions differ."""
    x, y = (m.UpAndDown(0.6, 5).law(value) for value in (0, 3))
    for one, two in ((x, y), (y, x)):
        p, q = one.probabilities, two.probabilities
        moment = float(np.sum(p**order * q ** (1 - order)))
        assert m.exact_renyi(one, two, order) == pytest.approx(math.log(moment) / (order - 1), rel=1e-12)
    assert m.exact_renyi(x, y, order) != pytest.approx(m.exact_renyi(y, x, order), rel=1e-3)


def test_divergences_grow_with_the_order_from_that_of_kullback_and_leibler():
    response, laplace = m.RandomisedResponse(0.7), m.LaplaceMechanism(0.7)
    for law_x, law_y, limit in (
        (response.law(0), response.law(1), 0.7 * math.tanh(0.35)),
        (laplace.law(0.0), laplace.law(1.0), 0.7 - 1 + math.exp(-0.7)),
    ):
        found = [m.exact_renyi(law_x, law_y, order) for order in (1 + 1e-6, 1.5, 2, 4, 64, 1e4)]
        assert found == sorted(found)
        assert found[0] == pytest.approx(limit, rel=1e-5)
        assert found[-1] == pytest.approx(0.7, rel=1e-3)
        assert m.exact_renyi(law_x, law_x, 3) == pytest.approx(0.0, abs=1e-12)


def test_products_of_other_laws_are_refused():
    one, two = m.ProductLaw((m.LaplaceLaw(0, 1),)), m.ProductLaw((m.LaplaceLaw(0, 1), m.LaplaceLaw(0, 1)))
    with pytest.raises(OptionError, match="have no closed form"):
        m.exact_renyi(one, two, 2)


@pytest.mark.parametrize("order", [1, 0.5, math.inf, math.nan])
def test_orders_outside_the_range_are_refused(order):
    with pytest.raises(OptionError, match=r"order=.* is not allowed; use 1 < order < inf"):
        m.exact_renyi(m.LaplaceLaw(0, 1), m.LaplaceLaw(0, 1), order)


@pytest.mark.parametrize(
    ("law_x", "law_y"),
    [
        (m.LaplaceLaw(0, 1), m.LaplaceLaw(0, 2)),
        (m.LaplaceLaw(0, 1), m.GaussianLaw(0, 1)),
        (m.GeometricLaw(0, 0.5), m.GeometricLaw(1, 0.5)),
    ],
    ids=["scales", "kinds", "geometric"],
)
def test_laws_without_a_closed_form_are_refused(law_x, law_y):
    with pytest.raises(OptionError, match="have no closed form"):
        m.exact_renyi(law_x, law_y, 2)


# Sparse vectors that release values: their laws against transcript laws, other integrals and runs.

ALARM = 1e-8


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


def follow(outputs, law):
    """Return whether the events "one value alone, and at most t" are as frequent as the density's integrals say.

    The limits are exact binomial ones: true for runs of the law with probability at least 1 − ALARM.
    """
    z, weight = nodes([*ANSWERS, 0.25, -3.0, 4.0], 120.0)
    is_within = []
    for above, limit in itertools.product(range(3), (-3.0, 0.25, 1.7, 4.0)):
        rows = np.full((len(z), 3), np.nan)
        rows[:, above] = z
        probability = weight[z < limit] @ np.exp(law.log_density(rows[z < limit]))
        hits = np.sum(np.isnan(np.delete(outputs, above, axis=1)).all(axis=1) & (outputs[:, above] <= limit))
        count = stats.binom(len(outputs), probability)
        is_within.append(count.ppf(ALARM / 24) <= hits <= count.isf(ALARM / 24))
    return all(is_within)


class TestMassBelow:
    @pytest.mark.parametrize(("a", "b"), [(2.0, 2.0), (1.0, 3.0), (4.0, 0.5)])
    @pytest.mark.parametrize("x", [(), (0.0,), (-1.0, 0.5, 0.5, 2.0), (1.0, 1.0), (-0.3, -2.0)], ids=len)
    def test_it_is_the_integral(self, a, b, x):
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

    def test_far_below_it_is_one_exponential(self):
        mass = MassBelow.of(np.array([0.0, 1.0]), 2.0, 4.0)
        low, lower = mass.log_up_to(np.array([-5000.0, -6000.0]))
        assert low - lower == pytest.approx(1000.0)  # 1/2 + 2/4 per unit
        assert math.isfinite(lower)

    @pytest.mark.parametrize("x", [np.zeros(21), np.array([0.0, 900.0])], ids=["many", "far"])
    def test_what_it_cannot_hold(self, x):
        with pytest.raises(DatasetError, match="use fewer answers, or answers nearer"):
            MassBelow.of(x, 1.0, 1.0)


class TestLaws:
    @pytest.mark.parametrize("mechanism", [compared(1), compared(3), fresh(1), compared(2, refresh=True)], ids=named)
    def test_one_value_integrates_to_its_transcript(self, mechanism):
        """Integrated over all values, the densities give the transcript probabilities of independent code."""
        law = mechanism.law(ANSWERS)
        transcripts = transcript_law(
            np.array(ANSWERS) - mechanism.threshold, 2.0, 3.0, mechanism.cutoff, refresh=mechanism.refresh
        )
        z, weight = nodes([*ANSWERS, 0.25], 120.0)
        for above in range(3):
            rows = np.full((len(z), 3), np.nan)
            rows[:, above] = z
            code = [0, 0, 0] if mechanism.cutoff > 1 else [0] * above + [1] + [-1] * (2 - above)
            code[above] = ABOVE
            exact = math.exp(transcripts.log_density([code])[0])
            assert weight @ np.exp(law.log_density(rows)) == pytest.approx(exact, rel=1e-9)
        if mechanism.cutoff <= 3:
            silence = law.log_density(np.full((1, 3), np.nan))
            assert silence == pytest.approx(transcripts.log_density([[0, 0, 0]]), abs=1e-10)

    @pytest.mark.parametrize("mechanism", [compared(2), compared(2, refresh=True), fresh(2)], ids=named)
    def test_two_values_integrate_to_their_transcript(self, mechanism):
        law = mechanism.law(ANSWERS)
        transcripts = transcript_law(np.array(ANSWERS) - 0.25, 2.0, 3.0, 2, refresh=mechanism.refresh)
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
                density = np.exp(law.log_density(rows)).reshape(first.shape)
                total += weight @ density @ w * (stop - start) / 2
        assert total == pytest.approx(exact, rel=2e-4)  # the second value's density has corners inside the pieces

    @pytest.mark.parametrize("below", [0, 1, 5])
    def test_a_small_value_after_some_below(self, below):
        """For answers 0, Pr[all below, then a value ≤ 0] is a double integral of exponentials; simulation agrees."""
        mechanism = m.NoisyThreshold(CLAIM, 2.0, 2.0, cutoff=1, release_value=True)
        z, weight = nodes([0.0], 80.0)
        rows = np.full((len(z), below + 1), np.nan)
        rows[:, -1] = z
        density = np.exp(mechanism.law([0.0] * (below + 1)).log_density(rows))
        exact = 1 / (4 * 2**below * (below + 1) * (below + 2))
        assert weight[z < 0] @ density[z < 0] == pytest.approx(exact, rel=1e-10)

    @pytest.mark.parametrize("mechanism", [compared(1), compared(2), compared(2, refresh=True), fresh(2)], ids=named)
    def test_runs_follow_the_law(self, mechanism):
        assert follow(mechanism.sample(ANSWERS, 100_000, np.random.default_rng(4)), mechanism.law(ANSWERS))

    def test_runs_of_another_mechanism_do_not(self):
        """Wrong twins: the same transcripts with other values, and new threshold noise for the second value."""
        outputs = fresh(2).sample(ANSWERS, 100_000, np.random.default_rng(4))
        assert not follow(outputs, compared(2).law(ANSWERS))
        outputs = compared(2).sample(ANSWERS, 100_000, np.random.default_rng(4))
        assert not follow(outputs, compared(2, refresh=True).law(ANSWERS))

    def test_what_cannot_be_has_no_density(self):
        rows = [[1.0, 2.0, 3.0], [1.0, 2.0, math.nan]]
        for mechanism in (compared(1), fresh(1)):
            assert np.all(np.isneginf(mechanism.law(ANSWERS).log_density(rows)))
        assert compared(2).law(ANSWERS).log_density(rows).tolist()[0] == -math.inf
        assert compared(2).law(ANSWERS).log_density(rows)[1] > -10

    def test_rows_in_any_order(self):
        law = compared(2).law(ANSWERS)
        rows = compared(2).sample(ANSWERS, 500, np.random.default_rng(2))
        one_by_one = np.concatenate([law.log_density(row[None]) for row in rows])
        assert law.log_density(rows) == pytest.approx(one_by_one, rel=1e-14)


class TestLargestLoss:
    def test_it_is_the_published_one_where_all_answers_move(self):
        """m answers below, then a small value, lose exactly (m + 1)/2 epsilon."""
        mechanism = m.NoisyThreshold(CLAIM, 2.0, 2.0, cutoff=1, threshold=0.5, release_value=True)
        for n in (1, 4, 10):
            x, y = mechanism.law([0.0] * n), mechanism.law([1.0] * n)
            assert x.epsilon_from(y, 0.0) == pytest.approx(n / 2, rel=1e-9)

    @pytest.mark.parametrize("mechanism", [compared(1), compared(2), compared(2, refresh=True), fresh(2)], ids=named)
    @pytest.mark.parametrize("moves", [(1, 1, 1), (1, -1, 1), (-1, 1, 0)], ids=str)
    def test_nothing_exceeds_it_and_something_comes_near(self, mechanism, moves):
        x, y = mechanism.law(ANSWERS), mechanism.law(np.add(ANSWERS, moves))
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

    def test_where_it_is_not_known(self):
        for one in (compared(), fresh()):
            with pytest.raises(OptionError, match="use delta=0"):
                one.law(ANSWERS).epsilon_from(one.law(ANSWERS), 0.1)
            with pytest.raises(OptionError, match="no closed form"):
                one.law(ANSWERS).epsilon_from(one.law([0.0]), 0.0)


def test_fresh_values_lie_on_a_grid_around_the_answers():
    mechanism = m.NoisyThreshold(CLAIM, 2.0, 3.0, cutoff=2, threshold=-1e6, release_value=True, value_scale=1.5)
    outputs = mechanism.sample([0.5, 100.5, 7.0], 50_000, np.random.default_rng(3))
    assert np.isnan(outputs[:, 2]).all()
    assert np.all(outputs[:, :2] % 2.0**-20 == 0)
    below = stats.binom(50_000, stats.laplace(100.5, 1.5).cdf(99.0))
    assert below.ppf(ALARM / 2) <= (outputs[:, 1] <= 99.0).sum() <= below.isf(ALARM / 2)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: m.LaplaceLaw(0, 0), OptionError, "scale=0 is not allowed; use 0 < scale < inf."),
        (lambda: m.GaussianLaw(0, math.nan), OptionError, "scale=nan is not allowed; use 0 < scale < inf."),
        (lambda: m.GeometricLaw(0, 1.0), OptionError, "ratio=1.0 is not allowed; use 0 < ratio < 1."),
        (lambda: m.FiniteLaw((0.0, 0.0)), OptionError, "sum of probabilities=2.0 is not allowed; use logarithms of"),
        (lambda: m.hockey_stick(*PAIRS[0], -1), OptionError, "epsilon=-1 is not allowed; use 0 <= epsilon < inf."),
        (lambda: m.exact_epsilon(*PAIRS[0], math.nan), OptionError, "delta=nan is not allowed; use 0 <= delta < 1."),
        (
            lambda: m.exact_delta(m.LaplaceLaw(0, 1), m.LaplaceLaw(0, 2), 1),
            OptionError,
            "no closed form for their divergence; use two laws",
        ),
        (
            lambda: m.exact_epsilon(m.LaplaceLaw(0, 1), m.GaussianLaw(0, 1)),
            OptionError,
            "no closed form for their divergence",
        ),
        (
            lambda: m.exact_epsilon(m.FiniteLaw((0.0,)), PAIRS[-1][0]),
            OptionError,
            "no closed form for their divergence",
        ),
        (
            lambda: m.exact_epsilon(*[MaximumLaplaceLaw((0.0,), 1.0)] * 2),
            OptionError,
            "no closed form for their divergence",
        ),
        (lambda: m.NoisyThreshold(CLAIM, 1.0, 1.0, value_scale=2.0), ClaimError, "value_scale=2 applies to"),
        (lambda: m.NoisyThreshold(CLAIM, 1.0, 1.0, value_scale=-2.0), ClaimError, "value_scale=-2.0 is not allowed"),
        (lambda: compared().law([0.0] * 21), DatasetError, "21 answers span"),
        (lambda: compared(9).law([0.0] * 20), OptionError, "use at most 16384: fewer answers"),
        (lambda: fresh().law([0.0] * 63), DatasetError, "63 answers have 64 transcripts"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
