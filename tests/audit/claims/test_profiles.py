"""Privacy profiles and Mironov's propositions against their definitions."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpaudit import TradeOffCurve
from dpaudit.audit.inference.confidence_bands import concave_hull
from dpaudit.claims import NFoldComposition, ProbabilityPreservation

GRID = np.linspace(0.0, 1.0, 201)
CURVES = [
    TradeOffCurve((0.1, 0.4), (0.6, 0.2)),
    TradeOffCurve((0.0, 0.3), (0.7, 0.0)),  # a jump and a flat end
    TradeOffCurve((0.2,), (0.0,)),  # a flat end only
    TradeOffCurve((0.0,), (0.9,)),  # a jump only
    TradeOffCurve((1e-9, 0.5), (0.3, 1e-12)),
]


def stated(curve, rate):
    """Compute f with NumPy: linear between the points, (0, 1) and (1, 0)."""
    a, b = curve.false_positive, curve.false_negative
    return np.interp(rate, [0.0] * (a[0] > 0) + [*a, 1.0], [1.0] * (a[0] > 0) + [*b, 0.0])


def curve_of(p, q):
    """The trade-off curve of two discrete distributions, by Neyman and Pearson."""
    order = np.argsort(-p / q)
    rates, powers = concave_hull(np.cumsum(q[order])[:-1], np.cumsum(p[order])[:-1])
    return TradeOffCurve(tuple(rates.tolist()), tuple((1.0 - powers).clip(0.0, 1.0).tolist()))


def randomised(p, q):
    """(rate on q, power on p) of tests that reject each outcome with a probability of 0, ¼, …, 1."""
    tests = np.array(list(itertools.product(np.linspace(0.0, 1.0, 5), repeat=len(p))))
    return tests @ q, tests @ p


@pytest.mark.parametrize("excess", [0.0, 0.07])
@pytest.mark.parametrize("curve", CURVES, ids=range(len(CURVES)))
def test_the_boundary_is_the_largest_power_that_both_conditions_allow(curve, excess):
    """Every p on a grid with steps of 1e-4 is tried."""
    p = np.linspace(0.0, 1.0, 10_001)
    found = curve.with_parameter(excess).max_power(GRID[1:-1])[0]
    for q, value in zip(GRID[1:-1], found, strict=True):
        allowed = (1.0 - p >= stated(curve, q) - excess - 1e-12) & (q >= stated(curve, 1.0 - p) - excess - 1e-12)
        assert p[allowed].max() == pytest.approx(value, abs=1.01e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_claim_is_kept_in_both_orders_where_no_randomised_test_crosses_its_boundary(seed):
    """The boundary in one order of the datasets is equivalent to the stated curve in both orders."""
    rng = np.random.default_rng(seed)
    p, q, other_p, other_q = rng.dirichlet(np.ones(3), 4)
    curve = curve_of(other_p, other_q)
    rate, power = randomised(p, q)
    needed = max((power - 1 + stated(curve, rate)).max(), (rate - 1 + stated(curve, power)).max())
    assert np.maximum(curve.parameter_of(power, rate), 0.0).max() == pytest.approx(max(needed, 0.0), abs=1e-9)
    if 0.0 < needed < 0.999:
        at_it, below = (curve.with_parameter(s).max_power(rate)[0] for s in (needed + 1e-9, 0.999 * needed - 1e-9))
        assert np.all(power <= at_it + 1e-9)
        assert np.any(power > below)


def test_the_curve_of_two_distributions_bounds_their_tests_in_one_order_only():
    """Outcome 2 is far more likely on x: the curve of x against y, claimed for both orders, is refuted."""
    p, q = np.array([0.5, 0.4, 0.1]), np.array([0.2, 0.799, 0.001])
    curve = curve_of(p, q)
    rate, power = randomised(p, q)
    assert np.all(power <= 1.0 - stated(curve, rate) + 1e-12)
    assert np.any(rate > 1.0 - stated(curve, power) + 0.05)
    assert np.any(power > curve.max_power(rate)[0] + 0.05)
    # The two orders give the curve and its inverse; a curve below both is kept.
    rates = np.linspace(0.0, 1.0, 2001)
    powers = np.maximum(1.0 - stated(curve, rates), 1.0 - stated(curve_of(q, p), rates))
    rates, powers = concave_hull(rates, powers)
    safe = TradeOffCurve(tuple(rates.tolist()), tuple((1.0 - powers).tolist()))
    assert np.all(power <= safe.max_power(rate)[0] + 1e-12)
    assert np.all(rate <= safe.max_power(power)[0] + 1e-12)


@pytest.mark.parametrize("curve", CURVES, ids=range(len(CURVES)))
def test_value_and_complement_keep_their_digits(curve):
    """Compare with exact fractions, also next to 0 and to 1, where differences are below the spacing of doubles."""
    a, b = map(list, (curve.false_positive, curve.false_negative))
    knots = (
        [(Fraction(0), Fraction(1))] * (a[0] > 0)
        + [(Fraction(x), Fraction(y)) for x, y in zip(a, b, strict=True)]
        + [(Fraction(1), Fraction(0))]
    )
    swapped = sorted({y: x for x, y in reversed(knots)}.items())
    swapped += [(Fraction(1), Fraction(0))] * (swapped[-1][0] < 1)

    def exact(points, u):
        (x0, y0), (x1, y1) = next(pair for pair in itertools.pairwise(points) if pair[0][0] <= u <= pair[1][0])
        return y0 + (y1 - y0) * (u - x0) / (x1 - x0)

    for small in (1e-300, 1e-20, 1e-9, 1e-4, 0.03, 0.3, 0.49):
        for q, rest in ((small, 1.0 - small), (1.0 - small, small)):
            u = Fraction(q) if q < rest else 1 - Fraction(rest)
            complement = max(exact(knots, u), exact(swapped, u))
            found = curve.max_power(q, rest)
            assert float(found[0]) == pytest.approx(float(1 - complement), rel=1e-12)
            assert float(found[1]) == pytest.approx(float(complement), rel=1e-12)


ENDS = np.geomspace(1e-300, 1e-3, 40)
Q = np.concatenate([ENDS, np.linspace(0.001, 0.999, 400), 1 - ENDS[::-1]])
REST = np.concatenate([1 - ENDS, 1 - np.linspace(0.001, 0.999, 400), ENDS[::-1]])


def preserved(order, divergence, q, rest):
    """Proposition 10 in both directions, in mpmath: (value, complement)."""
    exponent = (mpmath.mpf(order) - 1) / order
    forward = min((mpmath.exp(divergence) * q) ** exponent, mpmath.mpf(1))
    backward = mpmath.exp(-mpmath.mpf(divergence)) * rest ** (1 / exponent)
    return min(forward, 1 - backward), max(1 - forward, backward)


def n_fold(epsilon, n, q, rest):
    """Proposition 4 as printed, in mpmath: (value, complement)."""
    if q >= mpmath.exp(-4 * mpmath.mpf(epsilon) ** 2 * n):
        return mpmath.mpf(1), mpmath.mpf(0)
    value = q * mpmath.exp(2 * epsilon * mpmath.sqrt(n * mpmath.log(1 / q)))
    return value, 1 - value


@pytest.mark.parametrize(
    ("kind", "parameters", "oracle"),
    [
        *((ProbabilityPreservation, pair, preserved) for pair in itertools.product((1.1, 30.0), (0.0, 3.0))),
        *((NFoldComposition, pair, n_fold) for pair in ((0.01, 1), (0.5, 10), (3.0, 100))),
    ],
)
@pytest.mark.parametrize("end", [1e-300, 1e-9, 0.25, 0.5])
def test_value_and_complement_are_accurate_in_the_relative_sense(kind, parameters, oracle, end):
    with mpmath.workdps(340):  # 1 − 1e-300 must differ from 1
        near_zero, near_one = (mpmath.mpf(end), 1 - mpmath.mpf(end)), (1 - mpmath.mpf(end), mpmath.mpf(end))
        for q, rest in (near_zero, near_one):
            found = [float(side) for side in kind(*parameters).max_power(float(q), float(rest))]
            expected = [float(side) for side in oracle(*parameters, q, rest)]
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-323)


@given(
    st.one_of(
        st.builds(ProbabilityPreservation, st.floats(1.01, 1e3), st.floats(0, 30)),
        st.builds(NFoldComposition, st.floats(0, 10), st.integers(1, 1000)),
    ),
    st.floats(1e-3, 5.0),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_boundaries_are_monotone_concave_and_nested_and_parameters_invert_them(claim, more):
    value, rest = claim.max_power(Q, REST)
    assert np.all(np.diff(value) >= -1e-15)
    assert np.all(np.diff(rest) <= 1e-15)
    assert np.all(value >= Q * (1 - 1e-12))
    assert np.all(rest <= REST * (1 + 1e-12))
    assert np.all(np.diff(claim.max_power(np.linspace(0, 1, 1001))[0], 2) <= 1e-12)
    larger_value, smaller_rest = claim.with_parameter(claim.parameter + more).max_power(Q, REST)
    assert np.all(larger_value >= value * (1 - 1e-15))  # the last digit depends on the version of numpy
    assert np.all(smaller_rest <= rest)
    inside = (value < 1 - 1e-6) & (value > 1e-250)
    found = claim.parameter_of(value, Q, rest, REST)[inside]
    np.testing.assert_allclose(found, claim.parameter, rtol=1e-6, atol=1e-6)


def responses(epsilon, k):
    """Power and false-positive rate of every best test of k randomised responses: at least j true answers."""
    keep = 1 / (1 + math.exp(-epsilon))
    j = np.arange(k + 1)
    return binom.sf(j - 1, k, keep), binom.sf(j - 1, k, 1 - keep)


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
@pytest.mark.parametrize("n", [1, 40])
def test_n_responses_keep_it_and_four_times_as_many_and_more_do_not(epsilon, n):
    claim = NFoldComposition(epsilon, n)
    for responded in (n, 2 * n):
        p, q = responses(epsilon, responded)
        assert np.all(p <= claim.max_power(q)[0] * (1 + 1e-12))
    if epsilon * epsilon * n < 1:
        p, q = responses(epsilon, 16 * n)
        assert np.any(p > claim.max_power(q)[0] * 1.01)
