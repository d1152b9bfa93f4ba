"""Laplace noise by the inverse CDF: open ends and misprints. One random test per sampler, at 1e-8."""

import itertools
import math
import pickle

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit import PureDP, check
from dpaudit import mechanisms as m
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms.faulty import AnswerInTheBranchLaplace, ClosedEndLaplace, MixedUniformsLaplace
from dpaudit.mechanisms.faulty.noise.faulty_inverse_cdf import RisingLawWithAtom
from dpaudit.mechanisms.noise_samplers import grid_step

RUNS = 100_000
ALARM = 1e-8
MISPRINTS = [AnswerInTheBranchLaplace(0.5), MixedUniformsLaplace(0.5)]


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
    naive = ClosedEndLaplace(0.5)
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


@pytest.mark.parametrize("mechanism", [m.LaplaceByInverseCDF, *map(type, MISPRINTS), ClosedEndLaplace])
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
