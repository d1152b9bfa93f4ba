"""Samplers of noise, calibration, and mechanisms that add noise to answers, histograms and statistics of graphs.

Random tests use fixed seeds; each has a false-alarm probability of at most 1e-7.
"""

import itertools
import math
import sys

import mpmath
import networkx as nx
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from scipy import stats

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import PureDP
from dpaudit.domains import EdgeNeighbours, NodeNeighbours
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms import noise_samplers as noise
from dpaudit.mechanisms.faulty.calibration import misprinted_newton, scale_from_chi
from dpaudit.mechanisms.noise.gaussian import LARGEST_SIGMA, discrete_gaussian
from dpaudit.mechanisms.noise.laplace import degrees_of
from dpaudit.mechanisms.noise_samplers import grid_step

from .cells import is_far, is_off

# Samplers: standard distributions, grids and the ends of the uniform numbers.

RUNS = 100_000


def filled(fill):
    def draw(size, rng):
        out = np.empty(size)
        fill(out, rng)
        return out

    return draw


SAMPLERS = [
    (filled(noise.fill_laplace), stats.laplace),
    (filled(noise.fill_gaussian), stats.norm),
    (filled(noise.fill_exponential), stats.expon),
    *(
        (lambda size, rng, s=s: noise.two_sided_geometric(s, size, rng), m.GeometricDistribution(0, math.exp(-1 / s)))
        for s in (0.2, 1.0, 7.3)
    ),
    *(
        (lambda size, rng, s=s: discrete_gaussian(s, size, rng), m.DiscreteGaussianDistribution(0, s))
        for s in (0.2, 0.5, 0.999, 1.0, 2.7, 11.0)
    ),
]


@pytest.mark.parametrize(("draw", "distribution"), SAMPLERS)
def test_samplers_follow_their_distribution(draw, distribution):
    assert not is_far(distribution, draw(RUNS, np.random.default_rng(1)))


def test_the_check_of_counts_sees_a_scale_wrong_by_a_twentieth_and_a_rounded_normal():
    rng = np.random.default_rng(2)
    assert is_far(stats.laplace, 1.05 * noise.standard_laplace(RUNS, rng))
    for sigma in (0.5, 2.7):
        distribution = m.DiscreteGaussianDistribution(0, sigma)
        assert is_far(distribution, discrete_gaussian(1.05 * sigma, RUNS, rng))
        if sigma < 1:  # rounding adds 1/12 to the variance
            assert is_far(distribution, np.rint(rng.normal(scale=sigma, size=RUNS)).astype(np.int64))


def test_moments_of_wide_noise():
    """Mean and second moment, each within 5.9 standard errors (two-sided 4e-9)."""
    draws = discrete_gaussian(LARGEST_SIGMA, RUNS, np.random.default_rng(3)) / LARGEST_SIGMA
    assert abs(draws.mean()) < 5.9 / math.sqrt(RUNS)
    assert abs((draws**2).mean() - 1) < 5.9 * math.sqrt(2 / RUNS)


@pytest.mark.parametrize("n_outcomes", [1, 2, 5, 300])
def test_indices_are_drawn_with_their_probabilities(n_outcomes):
    shares = np.random.default_rng(3).dirichlet(np.ones(n_outcomes))
    shares[1:3] = 0.0 if n_outcomes > 3 else shares[1:3]  # outcomes that are impossible
    shares /= shares.sum()
    draws = noise.draw_indices(shares, RUNS, np.random.default_rng(4))
    assert not is_off(np.bincount(draws, minlength=n_outcomes), shares, RUNS)


@pytest.mark.parametrize("scale", [1e-9, 0.3, 1.0, 1.5, 2.0, 12345.678])
def test_the_grid_is_a_power_of_two_of_the_stated_size(scale):
    step = grid_step(scale)
    assert math.frexp(step)[0] == 0.5
    assert 2.0**-21 < step / scale <= 2.0**-20


@pytest.mark.parametrize("answer", [0.0, 1.0, 10.1, -3.3e-7, 1e9 + 0.123456789, 2.0**30])
def test_rounding_is_to_the_nearest_grid_point_of_the_exact_sum(answer):
    values = np.random.default_rng(6).laplace(size=2000)
    step = noise.grid_step(1.0)
    outputs = noise.round_to_grid(values.copy(), 1.0, answer)
    multiples = outputs / step
    assert np.array_equal(multiples, np.rint(multiples))
    # In units of the step: the answer splits exactly, and noise and remainder add with 30 spare bits.
    whole = round(answer / step)
    expected = whole + np.rint(values / step + (answer / step - whole))
    assert np.array_equal(multiples, expected)


def test_rounding_leaves_no_signed_zero():
    assert not np.signbit(noise.round_to_grid(np.array([-1e-12, 1e-12, -0.0]), 1.0)).any()


@pytest.mark.parametrize(
    "mechanism",
    [
        m.LaplaceMechanism(0.3),
        m.LaplaceByInverseCDF(0.3),
        m.GaussianMechanism(1.0, 0.01),
        m.VectorGaussianMechanism(1.0, 1e-5, query=lambda answer: [answer, 7 * answer]),
    ],
    ids=str,
)
def test_outputs_for_every_answer_lie_on_one_grid(mechanism):
    for answer in (0, 1, 0.1, math.pi, -1e6 / 3):
        steps = mechanism.sample(answer, 1000, np.random.default_rng(1)) / grid_step(mechanism.scale)
        assert np.array_equal(steps, np.rint(steps))


class ConstantGenerator:
    """Stand-in for a generator whose uniform numbers on [0, 1) all have this value."""

    def __init__(self, number):
        self.number = number

    def random(self, size):
        return np.full(size, self.number)


FIRST, LAST = 0.0, 1 - 2.0**-53  # the ends of what Generator.random gives


def test_it_is_the_inverse_of_the_cdf():
    distribution = m.LaplaceDistribution(3.0, 0.7)
    xi = np.array([-0.5 + 1e-9, -0.4, -1e-3, 0.0, 1e-300, 0.1, 0.49, 0.5 - 1e-9])
    np.testing.assert_allclose(distribution.cdf(m.inverse_laplace_cdf(xi, 3.0, 0.7)) - 0.5, xi, rtol=1e-7, atol=1e-16)
    z = np.linspace(-10, 12, 45)
    np.testing.assert_allclose(m.inverse_laplace_cdf(distribution.cdf(z) - 0.5, 3.0, 0.7), z, atol=1e-8)


def test_it_is_right_to_the_last_bits():
    for xi in (-0.5 + 2.0**-54, -0.3, 1e-20, 2.0**-54, 0.5 - 2.0**-53):
        with mpmath.workdps(50):
            exact = float(-mpmath.sign(xi) * mpmath.log(1 - 2 * abs(mpmath.mpf(xi))))
        assert float(m.inverse_laplace_cdf(xi)) == pytest.approx(exact, rel=4e-16)


def test_the_uniform_numbers_are_odd_multiples_and_never_an_end():
    """At both ends of the generator's range, without rounding."""
    for number in (FIRST, 2.0**-53, 0.5 - 2.0**-53, 0.5, LAST, *np.random.default_rng(1).random(1000)):
        (xi,) = m.open_uniform(1, ConstantGenerator(number))
        assert -0.5 < xi < 0.5
        odd = int(xi * 2.0**54)
        assert odd / 2.0**54 == xi
        assert odd % 2 == 1
        assert odd == 2 * int(number * 2.0**53) + 1 - 2**53
    assert m.open_uniform(1, ConstantGenerator(FIRST)) == -m.open_uniform(1, ConstantGenerator(LAST))


def test_the_largest_noise_is_finite_unless_an_end_is_included():
    """The end occurs once in 2⁵³ draws, so the test sets it."""
    mechanism, naive = m.LaplaceByInverseCDF(0.5), faulty.ClosedEndLaplace(0.5)
    for number in (FIRST, LAST):
        (output,) = mechanism.sample(7, 1, ConstantGenerator(number))
        assert abs(output - 7) / mechanism.scale == pytest.approx(53 * math.log(2), abs=2.0**-20)
    assert naive.sample(7, 2, ConstantGenerator(FIRST)).tolist() == [-math.inf, -math.inf]
    assert np.isfinite(naive.sample(7, 2, ConstantGenerator(LAST))).all()
    assert naive.sample(7, 1, ConstantGenerator(0.5)) == 7.0
    assert naive.truth == naive.claim == PureDP(0.5)
    usual = m.LaplaceMechanism(0.5)
    assert (mechanism.distribution(3), mechanism.claim) == (usual.distribution(3), usual.claim)


# Misprints of the inverse: their distributions have an atom, a half of the line, and no finite loss.

MISPRINTS = [faulty.AnswerInTheBranchLaplace(0.5), faulty.MixedUniformsLaplace(0.5)]
SUPPORTS = [
    (MISPRINTS[0], -3.0, -3.0 - 2 * math.log(8.0), -math.inf, -3.0),
    (MISPRINTS[0], 0.0, -2 * math.log(2.0), -math.inf, 0.0),
    (MISPRINTS[0], 0.5, 0.5, -math.inf, 0.5),
    (MISPRINTS[0], 1.0, math.inf, -math.inf, 1.0),
    (MISPRINTS[0], 5.0, math.nan, -math.inf, 5.0),
    (MISPRINTS[1], -3.0, math.nan, -3.0, -3.0 + 2 * math.log(2.0)),
    (MISPRINTS[1], 5.0, math.nan, 5.0, 5.0 + 2 * math.log(2.0)),
]


@pytest.mark.parametrize(("variant", "answer", "atom", "low", "high"), SUPPORTS)
def test_misprints_give_what_their_distributions_say(variant, answer, atom, low, high):
    distribution, step = variant.distribution(answer), grid_step(2.0)
    assert distribution.atom == pytest.approx(atom, abs=1e-14, nan_ok=True)
    outputs = variant.sample(answer, RUNS, np.random.default_rng(2))
    at_atom = np.isclose(outputs, distribution.atom, rtol=0.0, atol=step / 2, equal_nan=True)
    others = outputs[~at_atom]
    assert low - step <= others.min() <= others.max() <= high + step
    assert distribution.atom_probability == 0.5
    # Parts of the other outputs by the distribution; none of their ends is the atom.
    points = distribution.location + distribution.scale * np.log(
        np.linspace(0.1, 0.92, 9) + (0.0 if math.isinf(low) else 1.0)
    )
    points = points[points != atom]
    masses = np.diff([0.0, *(distribution.cdf(points) - np.where(points >= distribution.atom, 0.5, 0.0)), 0.5])
    counts = np.histogram(others, [-np.inf, *points, np.inf])[0]
    assert not is_off(np.append(counts, at_atom.sum()), np.append(masses, 0.5), RUNS)
    # The other functions by that one; NaN is on neither side of a number.
    above, below = distribution.sf(points), distribution.cdf(points)
    assert above + below == pytest.approx(0.5 if math.isnan(atom) else 1.0)
    slopes = (distribution.cdf(points + 1e-6) - distribution.cdf(points - 1e-6)) / 2e-6
    assert np.exp(distribution.log_density(points)) == pytest.approx(slopes, rel=1e-6)
    assert distribution.log_density([distribution.atom, answer + 9.0]).tolist() == [math.inf, -math.inf]
    assert (
        math.isnan(atom) or np.diff(distribution.cdf([np.nextafter(distribution.atom, -9), distribution.atom])) >= 0.5
    )


# Calibration of Gaussian noise against sixty digits and an independent accountant.

EPSILONS, DELTAS = [1e-6, 0.01, 1.0, 4.0, 100.0], [1e-300, 1e-30, 1e-5, 0.5, 1 - 1e-6]


def normal_tail(z):
    return mpmath.erfc(z / mpmath.sqrt(2)) / 2


def exact_gaussian_delta(epsilon, scale, digits):
    """Balle & Wang's formula as written, at sensitivity 1."""
    with mpmath.workdps(digits):
        s, e = mpmath.mpf(scale), mpmath.mpf(epsilon)
        return normal_tail(e * s - 1 / (2 * s)) - mpmath.exp(e) * normal_tail(e * s + 1 / (2 * s))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
def test_analytic_scale_is_the_root_to_a_relative_1e_9(epsilon, delta):
    scale = m.analytic_gaussian_scale(epsilon, delta)
    digits = 60 - 2 * int(math.log10(delta))
    above, below = (exact_gaussian_delta(epsilon, scale * (1 + by), digits) for by in (1e-9, -1e-9))
    assert above < delta < below


@pytest.mark.parametrize("delta", [1e-10, 0.1])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
def test_an_independent_accountant_finds_the_same_delta(epsilon, delta):
    scale = m.analytic_gaussian_scale(epsilon, delta, sensitivity=3.0)
    accountant = GaussianPrivacyLoss(scale, sensitivity=3.0)
    assert accountant.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("scale", [0.2, 1.0, 8.0])
def test_loss_tail_is_the_normal_one(epsilon, scale):
    """The loss at an output z = answer + noise is (z²)/(2σ²) − (z − S)²/(2σ²), a half-line in z."""
    sensitivity = 1.5
    edge = sensitivity / 2 + epsilon * scale**2 / sensitivity  # above it, the loss of N(S, σ²) to N(0, σ²) exceeds ε
    x, y = m.GaussianDistribution(sensitivity, scale), m.GaussianDistribution(0.0, scale)
    assert x.log_density(edge) - y.log_density(edge) == pytest.approx(epsilon, abs=1e-10)
    assert m.gaussian_loss_tail(epsilon, scale, sensitivity) == pytest.approx(float(x.sf(edge)), rel=1e-10)
    assert m.gaussian_loss_tail(epsilon, scale, sensitivity) >= m.gaussian_delta(epsilon, scale, sensitivity)


def test_right_values_of_gaussian_calibration():
    assert m.gaussian_loss_tail(1, m.analytic_gaussian_scale(1, 1e-5)) == pytest.approx(1.61e-4, rel=2e-3)  # 16 delta
    assert m.analytic_gaussian_scale(1, 1e-5, 7.0) == pytest.approx(7 * m.analytic_gaussian_scale(1, 1e-5), rel=1e-14)
    # The classical formula is enough up to epsilon 1 and fails at 10.
    for epsilon, delta in itertools.product([0.01, 0.3, 1.0], [1e-12, 1e-5, 0.1, 0.5]):
        assert m.classical_gaussian_scale(epsilon, delta) >= m.analytic_gaussian_scale(epsilon, delta)
    assert m.gaussian_delta(10, scale=math.sqrt(2 * math.log(1.25 / 0.1)) / 10) == pytest.approx(0.406, abs=5e-4)
    classical = m.GaussianMechanism(0.8, 1e-6, sensitivity=2.5, calibration="classical")
    assert m.exact_epsilon(classical.distribution(0), classical.distribution(2.5), 1e-6) <= 0.8


def test_claims_with_a_delta_that_rounds_to_zero_are_not_pure():
    for mechanism in (m.DiscreteGaussianMechanism(1.0, 60.0), m.BinomialMechanism(4096, 10.0)):
        assert mechanism.claim.delta == sys.float_info.min
        assert m.exact_epsilon(mechanism.distribution(0), mechanism.distribution(1)) == math.inf
    many = m.BinomialMechanism(250_000, epsilon=0.02, sensitivity=5)
    assert many.delta == pytest.approx(m.gaussian_delta(0.02, scale=250.0, sensitivity=5.0), rel=2e-3)


VARIANTS = [faulty.VarianceAsScaleGaussian, faulty.OneForEpsilonGaussian, faulty.MisprintedNewtonGaussian]


def test_a_wrong_chi_is_independent_of_the_sensitivity_and_the_right_one_gives_the_right_scale():
    for epsilon, ratio in {0.1: 1.355, 0.5: 1.175, 1.0: 1.0, 1.1: 0.764}.items():
        variant = faulty.OneForEpsilonGaussian(epsilon, 1e-5)
        assert variant.scale / variant.right_scale == pytest.approx(ratio, abs=1e-3)
    assert 2.0 < misprinted_newton(1.0, 1e-5, tolerance=1e-3, most_steps=1000) < 2.0001  # the solution is 2.543
    assert misprinted_newton(0.5, 1e-5, tolerance=1e-3, most_steps=1000) == pytest.approx(2.0, abs=1e-3)
    for kind in VARIANTS[1:]:
        assert kind(0.7, 1e-5, sensitivity=7.0).scale == pytest.approx(7 * kind(0.7, 1e-5).scale, rel=1e-14)
    for epsilon in (0.1, 1.0, 4.0):
        scale = m.analytic_gaussian_scale(epsilon, 1e-5)
        chi = (epsilon * scale - 1 / (2 * scale)) / math.sqrt(2)
        assert scale_from_chi(chi, epsilon, 1.0) == pytest.approx(scale, rel=1e-12)


# Queries, domains, histograms and graphs.


def test_clipping_keeps_members_and_the_direction_of_others():
    ball = m.Ball(2.0, 3)
    assert ball([1.0, -1.0, 0.5]) == (1.0, -1.0, 0.5)
    assert m.Ball(2.0, 2)([0.0, 0.0]) == (0.0, 0.0)
    for vector in ([3.0, -4.0], [1e308, 1e308], [1e-300, 5.0], [1.9, 1.9]):
        clipped = np.array(m.Ball(2.0, 2)(vector))
        assert math.hypot(*clipped) == pytest.approx(2.0, rel=1e-14)
        np.testing.assert_allclose(clipped / 2.0, np.array(vector) / math.hypot(*np.divide(vector, 1e200)) / 1e200)
    assert [m.Interval(-1, 3)(value) for value in (-7, 0.5, 8)] == [-1.0, 0.5, 3.0]
    assert (m.Interval(-1, 3).diameter, ball.diameter) == (4, 4.0)


def test_bins_hold_the_counts():
    mechanism, rows = m.HistogramMechanism(1.0, k=4), [0, 1, 1, 2]
    for dataset, counts in [(rows, [1, 2, 1, 0]), ([], [0] * 4), (np.array([3.0, 3.0]), [0, 0, 0, 2])]:
        assert [distribution.location for distribution in mechanism.distribution(dataset).marginals] == counts


EDGES, NODES = EdgeNeighbours(), NodeNeighbours()


def graphs_on(n_nodes):
    """Yield every simple graph on the nodes 0 … n − 1."""
    pairs = list(itertools.combinations(range(n_nodes), 2))
    for chosen in itertools.product([False, True], repeat=len(pairs)):
        graph = nx.empty_graph(n_nodes)
        graph.add_edges_from(itertools.compress(pairs, chosen))
        yield graph


def edge_neighbours(n_nodes):
    for graph in graphs_on(n_nodes):
        for edge in graph.edges:
            other = graph.copy()
            other.remove_edge(*edge)
            yield graph, other


def node_neighbours(n_nodes, max_degree):
    for graph in graphs_on(n_nodes):
        if degrees_of(graph).max() <= max_degree:
            other = graph.copy()
            other.remove_node(n_nodes - 1)
            yield graph, other


def histogram_change(pair, max_degree):
    counts = [np.bincount(np.minimum(degrees_of(graph), max_degree), minlength=max_degree + 1) for graph in pair]
    return np.abs(counts[0] - counts[1]).sum()


@pytest.mark.parametrize("max_degree", [1, 2, 3, 4])
def test_sensitivities_are_the_largest_changes_over_all_small_graphs(max_degree):
    assert max(histogram_change(pair, max_degree) for pair in edge_neighbours(4)) == 4
    assert m.DegreeHistogramMechanism(1.0, max_degree).sensitivity == 4
    pairs = list(node_neighbours(max_degree + 1, max_degree))
    assert max(x.number_of_edges() - y.number_of_edges() for x, y in pairs) == max_degree
    assert m.EdgeCountMechanism(1.0, NODES, max_degree).sensitivity == max_degree
    largest = max(histogram_change(pair, max_degree) for pair in pairs)
    assert largest == 2 * max_degree + 1 == m.DegreeHistogramMechanism(1.0, max_degree, NODES).sensitivity


@pytest.mark.parametrize("adjacency", [EDGES, NODES], ids=str)
def test_claims_hold_exactly_on_all_small_graphs_and_are_attained(adjacency):
    pairs = list(edge_neighbours(4) if adjacency == EDGES else node_neighbours(4, 3))
    for mechanism in (
        m.EdgeCountMechanism(0.6, adjacency, None if adjacency == EDGES else 3),
        m.DegreeHistogramMechanism(0.6, 3, adjacency),
    ):
        assert mechanism.claim == PureDP(0.6)
        assert all(adjacency.distance(x, y) == 1 for x, y in pairs)
        largest = max(m.exact_epsilon(mechanism.distribution(x), mechanism.distribution(y)) for x, y in pairs)
        assert largest == pytest.approx(0.6, rel=1e-12)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_every_kind_of_graph_is_counted(kind):
    graph = kind([(1, 2), (2, 2), (2, 3), (3, 1)])
    assert m.EdgeCountMechanism(1.0).distribution(graph).location == graph.number_of_edges() == 4
    assert degrees_of(graph).tolist() == [2, 4, 2]
    assert m.EdgeCountMechanism(1.0).distribution(kind()).location == 0
    star = nx.star_graph(4)  # the hub's degree is counted in the last bin
    assert [
        distribution.location for distribution in m.DegreeHistogramMechanism(1.0, 4).distribution(star).marginals
    ] == [0, 4, 0, 0, 1]
    assert [
        distribution.location for distribution in m.DegreeHistogramMechanism(1.0, 2).distribution(star).marginals
    ] == [0, 4, 1]
