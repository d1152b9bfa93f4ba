"""Laplace and geometric noise on answers, histograms and statistics of graphs.

The random test has a false-alarm probability of 1e-8.
"""

import itertools
import math
import pickle

import mpmath
import networkx as nx
import numpy as np
import pytest
from scipy import integrate, stats

import dpaudit.mechanisms as m
from dpaudit import EdgeNeighbours, NodeNeighbours, check
from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.faulty.calibration import RisingLawWithAtom
from dpaudit.mechanisms.noise.laplace import OFFSET, degrees_of
from dpaudit.mechanisms.noise_samplers import grid_step

# The Laplace mechanism.


@pytest.mark.parametrize(("x", "y"), [(0, 3.0), (10.5, 7.5), (1, 1.5), (0, 0)])
def test_claim_holds_exactly_and_is_attained_at_the_sensitivity(x, y):
    mechanism = m.LaplaceMechanism(0.7, sensitivity=3.0)
    assert mechanism.claim == PureDP(0.7)
    assert m.exact_epsilon(mechanism.law(x), mechanism.law(y)) == pytest.approx(0.7 * abs(x - y) / 3, rel=1e-14)


def test_law_is_that_of_the_query_answer():
    assert m.LaplaceMechanism(0.5, query=len).law("abc") == m.LaplaceLaw(3.0, 2.0)


def test_outputs_for_every_answer_lie_on_one_grid():
    mechanism = m.LaplaceMechanism(0.3)
    for answer in (0, 1, 0.1, -1e6 / 3):
        steps = mechanism.sample(answer, 5000, np.random.default_rng(1)) / grid_step(mechanism.scale)
        assert np.array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("answer", [math.nan, "many", [1.0, 2.0]])
def test_answers_that_are_no_numbers_are_refused(answer):
    with pytest.raises(DatasetError, match="which is not a finite number; use a query"):
        m.LaplaceMechanism(1).law(answer)


def test_an_answer_beyond_the_grid_is_refused():
    with pytest.raises(DatasetError, match=r"answer=1000000000000\.0 is too large for a double"):
        m.LaplaceMechanism(1).sample(1e12, 1, np.random.default_rng())


# The geometric mechanism.


@pytest.mark.parametrize(("x", "y"), [(0, 3), (10, 7), (1, 2), (5, 5)])
def test_claim_holds_exactly_and_is_attained_at_the_sensitivity_of_geometric(x, y):
    mechanism = m.GeometricMechanism(0.7, sensitivity=3)
    assert mechanism.claim == PureDP(0.7)
    assert m.exact_epsilon(mechanism.law(x), mechanism.law(y)) == pytest.approx(0.7 * abs(x - y) / 3, rel=1e-12)


@pytest.mark.parametrize("answer", [0.5, 2.0**60])
def test_answers_that_are_not_whole_are_refused(answer):
    with pytest.raises(DatasetError, match="which is not a whole number within"):
        m.GeometricMechanism(1).law(answer)


def test_answers_that_are_no_numbers_are_refused_of_geometric():
    with pytest.raises(DatasetError, match="which is not a finite number"):
        m.GeometricMechanism(1).law(math.nan)


# Laplace noise by the inverse CDF: open ends and misprints. One random test per sampler, at 1e-8.

RUNS = 100_000


ALARM = 1e-8


MISPRINTS = [faulty.AnswerInTheBranchLaplace(0.5), faulty.MixedUniformsLaplace(0.5)]


class ConstantGenerator:
    """Stand-in for a generator whose uniform numbers on [0, 1) all have this value."""

    def __init__(self, number):
        self.number = number

    def random(self, size):
        return np.full(size, self.number)


FIRST, LAST = 0.0, 1 - 2.0**-53  # the ends of what Generator.random gives


def is_far(counts, probabilities, runs):
    """Return whether a count is outside its exact binomial limits; true for the right law with probability ≤ ALARM."""
    each = ALARM / (2 * len(counts))
    low, high = stats.binom.ppf(each, runs, probabilities), stats.binom.isf(each, runs, probabilities)
    return bool(np.any((counts < low) | (counts > high)))


def test_it_is_the_inverse_of_the_cdf():
    law = m.LaplaceLaw(3.0, 0.7)
    xi = np.array([-0.5 + 1e-9, -0.4, -1e-3, 0.0, 1e-300, 0.1, 0.49, 0.5 - 1e-9])
    np.testing.assert_allclose(law.cdf(m.inverse_laplace_cdf(xi, 3.0, 0.7)) - 0.5, xi, rtol=1e-7, atol=1e-16)
    z = np.linspace(-10, 12, 45)
    np.testing.assert_allclose(m.inverse_laplace_cdf(law.cdf(z) - 0.5, 3.0, 0.7), z, atol=1e-8)


def test_it_is_right_to_the_last_bits():
    for xi in (-0.5 + 2.0**-54, -0.3, 1e-20, 2.0**-54, 0.5 - 2.0**-53):
        with mpmath.workdps(50):
            exact = float(-mpmath.sign(xi) * mpmath.log(1 - 2 * abs(mpmath.mpf(xi))))
        assert float(m.inverse_laplace_cdf(xi)) == pytest.approx(exact, rel=4e-16)


def test_shapes_and_symmetry():
    xi = np.random.default_rng(1).random((3, 4)) - 0.5
    assert m.inverse_laplace_cdf(xi).shape == (3, 4)
    assert np.array_equal(m.inverse_laplace_cdf(-xi), -m.inverse_laplace_cdf(xi))


@pytest.mark.parametrize("xi", [0.5, -0.5, [0.0, 0.7], math.nan], ids=str)
def test_the_ends_of_the_interval_are_refused(xi):
    with pytest.raises(OptionError, match=r"outside \(-1/2, 1/2\), whose ends give infinite noise; use open_uniform"):
        m.inverse_laplace_cdf(xi)


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


@pytest.mark.parametrize("number", [FIRST, LAST])
def test_the_largest_noise_is_finite(number):
    mechanism = m.LaplaceByInverseCDF(0.5)
    (output,) = mechanism.sample(7, 1, ConstantGenerator(number))
    assert abs(output - 7) / mechanism.scale == pytest.approx(53 * math.log(2), abs=2.0**-20)


def test_the_naive_sampler_gives_minus_infinity_at_the_end_that_it_includes():
    """The end occurs once in 2⁵³ draws, so the test sets it."""
    naive = faulty.ClosedEndLaplace(0.5)
    assert naive.sample(7, 2, ConstantGenerator(FIRST)).tolist() == [-math.inf, -math.inf]
    assert np.isfinite(naive.sample(7, 2, ConstantGenerator(LAST))).all()
    assert naive.sample(7, 1, ConstantGenerator(0.5)) == 7.0
    assert naive.truth == naive.claim == PureDP(0.5)


def test_it_is_the_laplace_mechanism_but_for_the_sampler():
    mechanism, usual = m.LaplaceByInverseCDF(0.3, 2.0, len), m.LaplaceMechanism(0.3, 2.0, len)
    assert (mechanism.law("abc"), mechanism.claim, mechanism.scale) == (usual.law("abc"), usual.claim, usual.scale)
    assert mechanism != usual
    outputs = mechanism.sample("abc", 5000, np.random.default_rng(1)) / grid_step(mechanism.scale)
    assert np.array_equal(outputs, np.rint(outputs))
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


@pytest.mark.parametrize("mechanism", [m.LaplaceByInverseCDF, *map(type, MISPRINTS), faulty.ClosedEndLaplace])
def test_parameters_are_refused_as_by_the_laplace_mechanism(mechanism):
    with pytest.raises(ClaimError, match="epsilon=0 is not allowed"):
        mechanism(0)
    with pytest.raises(ClaimError, match="sensitivity=-1 is not allowed"):
        mechanism(1, -1)
    with pytest.raises(DatasetError, match="not a finite number"):
        mechanism(1).sample(math.nan, 1, np.random.default_rng(1))


# twin, answer, value of half of the outputs, range of the others
SUPPORTS = [
    (MISPRINTS[0], -3.0, -3.0 - 2 * math.log(8.0), -math.inf, -3.0),
    (MISPRINTS[0], 0.0, -2 * math.log(2.0), -math.inf, 0.0),
    (MISPRINTS[0], 0.5, 0.5, -math.inf, 0.5),
    (MISPRINTS[0], 1.0, math.inf, -math.inf, 1.0),
    (MISPRINTS[0], 5.0, math.nan, -math.inf, 5.0),
    (MISPRINTS[1], -3.0, math.nan, -3.0, -3.0 + 2 * math.log(2.0)),
    (MISPRINTS[1], 5.0, math.nan, 5.0, 5.0 + 2 * math.log(2.0)),
]


@pytest.mark.parametrize(("twin", "answer", "atom", "low", "high"), SUPPORTS)
def test_misprints_give_what_their_laws_say(twin, answer, atom, low, high):
    law = twin.law(answer)
    assert law.atom == pytest.approx(atom, abs=1e-14, nan_ok=True)
    outputs, step = twin.sample(answer, RUNS, np.random.default_rng(2)), grid_step(2.0)
    at_atom = np.isclose(outputs, law.atom, rtol=0.0, atol=step / 2, equal_nan=True)
    others = outputs[~at_atom]
    assert low - step <= others.min() <= others.max() <= high + step
    assert law.atom_probability == 0.5
    # Quantiles of the other outputs by the law; none of them is the atom.
    points = law.location + law.scale * np.log(np.linspace(0.1, 0.92, 9) + (0.0 if math.isinf(low) else 1.0))
    counts = [at_atom.sum(), *(outputs[:, None] <= points).sum(axis=0), *(outputs[:, None] > points).sum(axis=0)]
    assert not is_far(np.array(counts), np.array([0.5, *law.cdf(points), *law.sf(points)]), RUNS)


@pytest.mark.parametrize("twin", [MISPRINTS[0], MISPRINTS[1]], ids=str)
@pytest.mark.parametrize("answer", [-3.0, 0.0, 1.0, 5.0])
def test_laws_are_consistent(twin, answer):
    law = twin.law(answer)
    low, high = law.location + 2 * max(law.low, -60), law.location + 2 * law.high
    mass, _ = integrate.quad(lambda z: math.exp(law.log_density(z)), low, high, epsabs=1e-12)
    assert mass == pytest.approx(0.5, abs=1e-9)
    z = np.linspace(low + 1e-3, high - 1e-3, 50)
    z = z[z != law.atom]
    below = np.array([integrate.quad(lambda t: math.exp(law.log_density(t)), low, end)[0] for end in z])
    is_above = np.where(z >= law.atom, 0.5, 0.0)
    np.testing.assert_allclose(law.cdf(z), below + is_above, atol=1e-9)
    np.testing.assert_allclose(law.cdf(z) + law.sf(z), 0.5 if math.isnan(law.atom) else 1.0, rtol=1e-14)
    assert float(law.cdf(-math.inf)) == 0.0
    assert float(law.cdf(math.inf)) == (0.5 if math.isnan(law.atom) else 1.0)
    assert float(law.sf(math.inf)) == 0.0
    assert float(law.log_density(law.atom)) == math.inf
    assert float(law.log_density(high + 7.1)) == -math.inf


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
@pytest.mark.parametrize(
    ("twin", "x", "y"),
    [
        (twin, x, y)
        for twin in MISPRINTS
        for x, y in [(0.0, 1.0), (1.0, 0.0), (5.0, 5.5), (6.0, 5.0), (0.2, 3.0), (0.0, 9.0)]
    ],
)
def test_divergence_of_misprints_by_quadrature(twin, x, y, epsilon):
    p, q = twin.law(x), twin.law(y)

    def excess(z):
        return max(0.0, math.exp(p.log_density(z)) - math.exp(epsilon + float(q.log_density(z))))

    ends = sorted({v for law in (p, q) for v in (law.location + 2 * max(law.low, -40), law.location + 2 * law.high)})
    expected = sum(integrate.quad(excess, a, b, epsabs=1e-11)[0] for a, b in itertools.pairwise(ends))
    same_atom = p.atom == q.atom or (math.isnan(p.atom) and math.isnan(q.atom))
    expected += 0.0 if same_atom else 0.5
    found = p.delta_from(q, epsilon)
    assert found == pytest.approx(expected, abs=1e-8)
    assert p.epsilon_from(q, found + 1e-6) <= epsilon
    assert found < 1e-6 or p.epsilon_from(q, found - 1e-6) >= epsilon
    assert m.exact_delta(p, q, epsilon) >= found


@pytest.mark.parametrize("twin", MISPRINTS, ids=str)
@pytest.mark.parametrize(("x", "y"), [(0, 1), (0.5, 0.2), (1, 2), (5, 6)])
def test_misprints_keep_no_finite_epsilon(twin, x, y):
    assert twin.claim == PureDP(0.5)
    assert twin.truth is None
    assert m.exact_epsilon(twin.law(x), twin.law(y)) == math.inf
    assert m.exact_epsilon(twin.law(x), twin.law(x)) == 0.0
    assert m.exact_delta(twin.law(x), twin.law(y), 100.0) > 0.1


def test_laws_of_other_kinds_do_not_compare():
    with pytest.raises(OptionError, match="no closed form"):
        m.exact_epsilon(MISPRINTS[0].law(0), MISPRINTS[1].law(0))
    with pytest.raises(OptionError, match="no closed form"):
        m.exact_epsilon(MISPRINTS[0].law(0), RisingLawWithAtom(0.0, 1.0, -math.inf, 0.0, 0.0))


@pytest.mark.parametrize(("x", "y"), [(0, 1), (5, 6)])
def test_audits_find_atoms_infinities_and_nan(x, y):
    """The right sampler is refuted with probability at most alpha=5e-9."""
    settings = {"claim": PureDP(0.5), "runs": 10_000, "seed": 1, "alpha": 5e-9, "jobs": 1}
    assert not check(m.LaplaceByInverseCDF(0.5), x, y, **settings).is_refuted
    for twin in MISPRINTS:
        result = check(twin, x, y, **settings)
        assert result.is_refuted
        assert result.bound > 3


# Histograms and product laws: the exact loss of one row under both kinds of neighbours.

ROWS = [0, 1, 1, 2]


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
@pytest.mark.parametrize(
    ("sensitivity", "added", "replaced"), [(1, 0.8, 1.6), (2, 0.4, 0.8)], ids=["for-add-remove", "for-replace"]
)
def test_a_row_loses_one_bin_or_two(noise, sensitivity, added, replaced):
    mechanism = m.HistogramMechanism(0.8, k=4, sensitivity=sensitivity, noise=noise)
    assert mechanism.claim == PureDP(0.8)
    law = mechanism.law(ROWS)
    assert m.exact_epsilon(law, mechanism.law([*ROWS, 3])) == pytest.approx(added, rel=1e-12)
    assert m.exact_epsilon(law, mechanism.law(ROWS[:-1])) == pytest.approx(added, rel=1e-12)
    assert m.exact_epsilon(law, mechanism.law([*ROWS[:-1], 3])) == pytest.approx(replaced, rel=1e-12)
    assert m.exact_epsilon(law, mechanism.law(ROWS[::-1])) == 0.0


def test_the_twin_loses_twice_its_claim_where_a_row_is_replaced():
    twin = faulty.HalfNoiseHistogram(0.5, k=3)
    found = m.exact_epsilon(twin.law([0, 1]), twin.law([0, 2]))
    assert found == pytest.approx(twin.truth.epsilon, rel=1e-12)
    assert (twin.claim, twin.truth) == (PureDP(0.5), PureDP(1.0))
    assert m.exact_epsilon(twin.law([0, 1]), twin.law([0])) == pytest.approx(0.5, rel=1e-12)  # right for add/remove


def test_bins_hold_the_counts():
    mechanism = m.HistogramMechanism(1.0, k=4)
    assert [law.location for law in mechanism.law(ROWS).marginals] == [1, 2, 1, 0]
    assert [law.location for law in mechanism.law([]).marginals] == [0] * 4
    assert [law.location for law in mechanism.law(np.array([3.0, 3.0])).marginals] == [0, 0, 0, 2]
    whole = m.HistogramMechanism(1.0, k=4, noise="geometric").sample(ROWS, 10, np.random.default_rng(1))
    assert (whole.dtype, whole.shape) == (np.int64, (10, 4))
    assert m.HistogramMechanism(1.0, k=4).sample(ROWS, 10, np.random.default_rng(1)).dtype == np.float64


@pytest.mark.parametrize("rows", [[4], [-1], [0.5], [math.nan], ["a"], 3, [[0, 1]], None])
def test_rows_that_are_no_categories_are_refused(rows):
    with pytest.raises(DatasetError, match=r"is not a list of rows in range\(k=4\); give each row as a whole number"):
        m.HistogramMechanism(1.0, k=4).law(rows)


def coins(*probabilities):
    return m.ProductLaw(tuple(m.FiniteLaw((math.log1p(-p), math.log(p))) for p in probabilities))


def test_product_density_is_the_product():
    law = m.ProductLaw((m.LaplaceLaw(0, 1), m.GaussianLaw(2, 3), m.GeometricLaw(0, 0.5)))
    rows = np.array([[0.3, 1.0, 2], [-4.0, 2.0, 0], [0.0, 0.0, 0.5]])
    expected = stats.laplace.logpdf(rows[:2, 0]) + stats.norm.logpdf(rows[:2, 1], 2, 3) + np.log([1 / 12, 1 / 3])
    np.testing.assert_allclose(law.log_density(rows)[:2], expected, rtol=1e-12)
    assert law.log_density(rows)[2] == -math.inf


def test_product_divergence_against_enumeration():
    """Enumerate the sixteen joint outcomes of four coordinates; the best event is the set with positive excess."""
    law_x, law_y = coins(0.2, 0.5, 0.5, 0.9), coins(0.4, 0.5, 0.3, 0.8)
    outcomes = np.array(list(itertools.product([0, 1], repeat=4)))
    p, q = np.exp(law_x.log_density(outcomes)), np.exp(law_y.log_density(outcomes))
    largest = float(np.log(p / q).max())
    assert law_x.epsilon_from(law_y, 0.0) == pytest.approx(largest, rel=1e-12)
    assert m.hockey_stick(law_x, law_y, largest + 1e-9) == 0.0
    moved = coins(0.2, 0.5, 0.3, 0.9)
    q = np.exp(moved.log_density(outcomes))
    for epsilon in (0.0, 0.1, 0.4):
        expected = np.maximum(0.0, p - math.exp(epsilon) * q).sum()
        assert m.hockey_stick(law_x, moved, epsilon) == pytest.approx(expected, abs=1e-14)
    assert m.exact_epsilon(law_x, moved, 0.05) == pytest.approx(
        m.exact_epsilon(coins(0.5), coins(0.3), 0.05), rel=1e-14
    )


def test_what_no_closed_form_is_known_for_is_refused():
    law_x, law_y = coins(0.2, 0.5), coins(0.4, 0.4)
    for call in (
        lambda: m.exact_delta(law_x, law_y, 0.1),
        lambda: m.exact_epsilon(law_x, law_y, 0.1),
        lambda: m.exact_epsilon(law_x, coins(0.2)),
        lambda: m.exact_epsilon(law_x, m.ProductLaw((m.LaplaceLaw(0, 1), m.LaplaceLaw(0, 1)))),
    ):
        with pytest.raises(OptionError, match="have no closed form for their divergence"):
            call()
    with pytest.raises(OptionError, match="number of marginals=0 is not allowed; use one law or more"):
        m.ProductLaw(())


# A rare leak: the law with its atom is exactly (epsilon, delta)-DP, without a pure guarantee.

MECHANISM = m.RareLeakLaplace(0.5, 0.01, sensitivity=2.0)


def test_claim_and_name():
    assert MECHANISM.claim == ApproxDP(0.5, 0.01)
    assert str(MECHANISM) == "RareLeakLaplace(epsilon=0.5, delta=0.01, sensitivity=2)"


def test_law_is_a_mixture():
    law, noise = MECHANISM.law(3.0), stats.laplace(3.0, 4.0)
    points = np.array([-20.0, 3.0, 900.0, OFFSET + 2.9, OFFSET + 3.0, OFFSET + 40.0])
    is_passed = points >= OFFSET + 3.0
    np.testing.assert_allclose(law.cdf(points), 0.99 * noise.cdf(points) + 0.01 * is_passed, rtol=1e-12)
    np.testing.assert_allclose(law.sf(points), 0.99 * noise.sf(points) + 0.01 * ~is_passed, rtol=1e-12)
    assert law.log_density(OFFSET + 3.0) == pytest.approx(math.log(0.01))
    assert law.log_density(5.0) == pytest.approx(math.log(0.99) + noise.logpdf(5.0))


@pytest.mark.parametrize(("x", "y", "epsilon"), [(0.0, 2.0, 0.0), (0.0, 2.0, 0.3), (0.0, 2.0, 0.5), (0.0, 6.0, 0.5)])
def test_delta_is_the_positive_part_of_the_difference(x, y, epsilon):
    """By quadrature of the densities, plus the whole atom unless the other law has it."""
    p, q = stats.laplace(x, 4.0).pdf, stats.laplace(y, 4.0).pdf

    def excess(z):
        return 0.99 * max(0.0, p(z) - math.exp(epsilon) * q(z))

    stops = [-200, x, (x + y) / 2 - epsilon * 4 / 2, y, 200]
    exact = math.fsum(integrate.quad(excess, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(stops))
    found = m.hockey_stick(MECHANISM.law(x), MECHANISM.law(y), epsilon)
    assert found == pytest.approx(exact + 0.01, rel=1e-9)


def test_claim_is_exact_and_no_smaller_delta_helps():
    law, moved = MECHANISM.law(0.0), MECHANISM.law(2.0)
    assert m.exact_delta(law, moved, 0.5) == pytest.approx(0.01, rel=1e-12)
    assert m.exact_epsilon(law, moved, 0.01) == pytest.approx(0.5, rel=1e-12)
    assert m.exact_epsilon(law, moved) == m.exact_epsilon(law, moved, 0.0099) == math.inf
    assert m.exact_epsilon(law, moved, 0.999) == 0.0
    assert m.exact_epsilon(law, MECHANISM.law(0.0)) == 0.0  # both leak the same point
    assert m.exact_delta(law, MECHANISM.law(0.0), 0.0) == 0.0


@pytest.mark.parametrize("delta", [0.011, 0.05, 0.3])
def test_epsilon_and_delta_are_inverse(delta):
    law, moved = MECHANISM.law(0.0), MECHANISM.law(5.0)
    epsilon = m.exact_epsilon(law, moved, delta)
    assert epsilon > 0
    assert m.exact_delta(law, moved, epsilon) == pytest.approx(delta, rel=1e-9)


def test_leaks_are_as_rare_as_said_and_tell_the_answer():
    runs = 200_000
    outputs = MECHANISM.sample(1.3, runs, np.random.default_rng(1))
    is_leak = outputs > 500.0
    hits = stats.binom(runs, 0.01)
    assert hits.ppf(ALARM / 2) <= is_leak.sum() <= hits.isf(ALARM / 2)
    assert set(outputs[is_leak].tolist()) == {OFFSET + 1.3}
    assert np.all(outputs[~is_leak] % grid_step(4.0) == 0)


def test_other_noise_does_not_compare():
    with pytest.raises(OptionError, match="no closed form"):
        m.exact_epsilon(MECHANISM.law(0.0), m.RareLeakLaplace(0.5, 0.02, sensitivity=2.0).law(0.0))
    with pytest.raises(OptionError, match="no closed form"):
        m.exact_epsilon(MECHANISM.law(0.0), m.RareLeakLaplace(0.5, 0.01).law(0.0))


# Private graph statistics: sensitivities over all small graphs, and true and false claims on both relations.

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
        largest = max(m.exact_epsilon(mechanism.law(x), mechanism.law(y)) for x, y in pairs)
        assert largest == pytest.approx(0.6, rel=1e-12)


def test_laws_by_hand():
    star = nx.star_graph(["hub", "ann", "bob", "cyd"])
    ratio = math.exp(-0.5)
    assert m.EdgeCountMechanism(0.5).law(star) == m.GeometricLaw(3, ratio)
    assert m.EdgeCountMechanism(0.5, NODES, max_degree=4).law(star) == m.GeometricLaw(3, math.exp(-0.5 / 4))
    assert m.DegreeHistogramMechanism(2.0, 4).law(star) == m.ProductLaw(
        tuple(m.GeometricLaw(n, ratio) for n in (0, 3, 0, 1, 0))
    )
    counted_in_the_last = m.DegreeHistogramMechanism(2.0, 2).law(star)
    assert [law.location for law in counted_in_the_last.marginals] == [0, 3, 1]


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_every_kind_of_graph_is_counted(kind):
    graph = kind([(1, 2), (2, 2), (2, 3), (3, 1)])
    assert m.EdgeCountMechanism(1.0).law(graph).location == graph.number_of_edges() == 4
    assert degrees_of(graph).tolist() == [2, 4, 2]
    assert m.EdgeCountMechanism(1.0).law(kind()).location == 0


def test_a_loop_moves_one_node_by_two_places():
    graph = nx.Graph([(1, 2)])
    with_loop = nx.Graph([(1, 2), (1, 1)])
    assert histogram_change((graph, with_loop), 3) == 2


def test_noise_for_edges_gives_a_person_what_group_privacy_says():
    """k edges of a person cost k·epsilon, so 1/epsilon edges cost at most 1."""
    mechanism = m.EdgeCountMechanism(0.25)
    for k in (1, 2, 4):
        hub = nx.star_graph(k)
        alone = nx.create_empty_copy(hub)
        assert EDGES.distance(hub, alone) == k
        assert m.exact_epsilon(mechanism.law(hub), mechanism.law(alone)) == pytest.approx(0.25 * k, rel=1e-12)


def test_noise_for_edges_claimed_for_nodes_is_refuted():
    """Each true claim is refuted with probability at most alpha=5e-9."""
    twin = faulty.EdgeNoiseForNodes(0.5, max_degree=4)
    hub, leaves = nx.star_graph(4), nx.empty_graph(range(1, 5))
    assert NODES.distance(hub, leaves) == 1
    assert m.exact_epsilon(twin.law(hub), twin.law(leaves)) == pytest.approx(twin.truth.epsilon, rel=1e-12)
    assert twin.truth == PureDP(2.0)
    settings = {"runs": 20_000, "seed": 1, "alpha": 5e-9, "jobs": 1}
    assert check(twin, hub, leaves, claim=twin.claim, adjacency=NODES, **settings).bound > 1.0
    assert not check(twin, hub, leaves, claim=twin.truth, adjacency=NODES, **settings).is_refuted
    right = m.EdgeCountMechanism(0.5, NODES, max_degree=4)
    assert not check(right, hub, leaves, claim=right.claim, adjacency=NODES, **settings).is_refuted


def test_a_degree_histogram_for_one_end_of_an_edge_is_refuted():
    twin, right = faulty.OneEndDegreeHistogram(1.0, max_degree=2), m.DegreeHistogramMechanism(1.0, max_degree=2)
    edge, none = nx.path_graph(2), nx.empty_graph(2)
    assert m.exact_epsilon(twin.law(edge), twin.law(none)) == pytest.approx(2.0, rel=1e-12)
    assert twin.truth == PureDP(2.0)
    settings = {"claim": PureDP(1.0), "adjacency": EDGES, "runs": 5_000, "seed": 1, "alpha": 5e-9, "jobs": 1}
    assert check(twin, edge, none, **settings).is_refuted
    assert not check(right, edge, none, **settings).is_refuted


def test_the_false_histogram_does_not_show_where_a_count_is_left_and_entered():
    twin = faulty.OneEndDegreeHistogram(1.0)
    path, shorter = nx.path_graph(3), nx.Graph([(0, 1)])
    shorter.add_node(2)
    assert m.exact_epsilon(twin.law(path), twin.law(shorter)) == pytest.approx(1.0, rel=1e-12)


def test_outputs_are_whole_numbers_and_graphs_are_left_alone():
    graph = nx.path_graph(5)
    for mechanism, shape in ((m.EdgeCountMechanism(1.0), (7,)), (m.DegreeHistogramMechanism(1.0, 3), (7, 4))):
        outputs = mechanism.sample(graph, 7, np.random.default_rng(1))
        assert outputs.shape == shape
        assert outputs.dtype == np.int64
    assert nx.utils.graphs_equal(graph, nx.path_graph(5))


@pytest.mark.parametrize(
    ("mechanism", "line"),
    [
        (m.EdgeCountMechanism(0.5), "EdgeCount(epsilon=0.5, for edges)"),
        (m.EdgeCountMechanism(0.5, NODES, 10), "EdgeCount(epsilon=0.5, for nodes of degree 10)"),
        (m.DegreeHistogramMechanism(0.5, 10), "DegreeHistogram(epsilon=0.5, for edges)"),
        (m.DegreeHistogramMechanism(0.5, 10, NODES), "DegreeHistogram(epsilon=0.5, for nodes of degree 10)"),
        (faulty.EdgeNoiseForNodes(0.5), "EdgeNoiseForNodes(epsilon=0.5, max_degree=3)"),
        (faulty.OneEndDegreeHistogram(0.5), "OneEndDegreeHistogram(epsilon=0.5, max_degree=3)"),
    ],
)
def test_lines_and_pickles(mechanism, line):
    assert str(mechanism) == line
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: m.EdgeCountMechanism(0), ClaimError, "epsilon=0 is not allowed"),
        (
            lambda: m.EdgeCountMechanism(1, NODES),
            ClaimError,
            "max_degree=None is not a number of edges; use a whole number",
        ),
        (lambda: m.EdgeCountMechanism(1, NODES, 0), ClaimError, "max_degree=0 is not a number of edges"),
        (
            lambda: m.EdgeCountMechanism(1, "node"),
            ClaimError,
            r"adjacency='node' is not a relation of graphs; use EdgeNeighbours\(\)",
        ),
        (lambda: m.DegreeHistogramMechanism(1, 2.5), ClaimError, r"max_degree=2\.5 is not a number of edges"),
        (lambda: m.DegreeHistogramMechanism(-1, 2), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: m.DegreeHistogramMechanism(1, 2, NodeNeighbours), ClaimError, "is not a relation of graphs"),
        (lambda: faulty.EdgeNoiseForNodes(1, 0), ClaimError, "max_degree=0 is not a number of edges"),
        (lambda: faulty.OneEndDegreeHistogram(1, 0), ClaimError, "max_degree=0 is not a number of edges"),
        (lambda: m.EdgeCountMechanism(1).law([1, 2]), DatasetError, r"type list is not a graph; use a networkx\.Graph"),
        (
            lambda: m.EdgeCountMechanism(1, NODES, 2).law(nx.star_graph(5)),
            DatasetError,
            "a node has 5 edges, but the noise hides only max_degree=2; use a larger max_degree",
        ),
        (
            lambda: m.DegreeHistogramMechanism(1, 2, NODES).sample(nx.star_graph(3), 1, np.random.default_rng(1)),
            DatasetError,
            "a node has 3 edges",
        ),
    ],
    ids=range(12),
)
def test_errors_of_graph_statistics(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_largest_degree_has_no_part_in_a_claim_for_edges():
    with pytest.raises(ClaimError, match="max_degree=3 does not apply to a claim for edges"):
        m.EdgeCountMechanism(0.5, max_degree=3)


def test_twin_refuses_nodes_of_a_larger_degree_than_its_truth_is_for():
    import networkx as nx

    with pytest.raises(DatasetError):
        faulty.EdgeNoiseForNodes(1.0, 3).law(nx.star_graph(9))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: m.LaplaceMechanism(0),
            ClaimError,
            "epsilon=0 is not allowed; use 0 < epsilon < inf (the noise has scale",
        ),
        (lambda: m.LaplaceMechanism(-1), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: m.LaplaceMechanism(math.nan), ClaimError, "epsilon=nan is not allowed"),
        (lambda: m.LaplaceMechanism(math.inf), ClaimError, "epsilon=inf is not allowed"),
        (
            lambda: m.LaplaceMechanism(1, sensitivity=0),
            ClaimError,
            "sensitivity=0 is not allowed; use 0 < sensitivity < inf",
        ),
        (lambda: m.GeometricMechanism(0), ClaimError, "epsilon=0 is not allowed; use 0 < epsilon < inf"),
        (lambda: m.GeometricMechanism(math.nan), ClaimError, "epsilon=nan is not allowed"),
        (lambda: m.GeometricMechanism(1, sensitivity=0), ClaimError, "sensitivity=0 is not allowed"),
        (
            lambda: m.GeometricMechanism(1, sensitivity=1.5),
            ClaimError,
            "sensitivity=1.5 is not a whole number; use 1, 2, … or Laplace",
        ),
        (lambda: m.GeometricMechanism(1e-10), ClaimError, "epsilon=1e-10 is too small for exact integers"),
        (lambda: m.HistogramMechanism(0, k=3), ClaimError, "epsilon=0 is not allowed"),
        (lambda: m.HistogramMechanism(math.nan, k=3), ClaimError, "epsilon=nan is not allowed"),
        (lambda: m.HistogramMechanism(1, k=0), ClaimError, "k=0 is not a number of categories; use a whole number"),
        (lambda: m.HistogramMechanism(1, k=2.5), ClaimError, "k=2.5 is not a number of categories"),
        (
            lambda: m.HistogramMechanism(1, k=3, sensitivity=0.5),
            ClaimError,
            "sensitivity=0.5 is not allowed; use 1 <= sensitivity",
        ),
        (lambda: m.HistogramMechanism(1, k=3, sensitivity=math.inf), ClaimError, "sensitivity=inf is not allowed"),
        (
            lambda: m.HistogramMechanism(1, k=3, noise="gaussian"),
            ClaimError,
            "noise='gaussian' is unknown; use \"laplace\" or",
        ),
        (lambda: faulty.HalfNoiseHistogram(1, k=0), ClaimError, "k=0 is not a number of categories"),
        (lambda: m.RareLeakLaplace(0.5, 0.0), ClaimError, "delta=0.0 is not allowed; use 0 < delta < 1"),
        (lambda: m.RareLeakLaplace(0.5, 1.0), ClaimError, "delta=1.0 is not allowed"),
        (lambda: m.RareLeakLaplace(0.0, 0.1), ClaimError, "epsilon=0.0 is not allowed"),
        (lambda: m.RareLeakLaplace(1.0, 0.1, sensitivity=math.inf), ClaimError, "sensitivity=inf is not allowed"),
        (lambda: m.RareLeakLaplace(1.0, 0.1).law("Ann"), DatasetError, "'Ann', which is not a finite number"),
        (lambda: m.LeakyLaplaceLaw(m.LaplaceLaw(0, 1), 1000.0, 0.0), OptionError, "probability=0.0 is not allowed"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
