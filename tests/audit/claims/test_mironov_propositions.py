"""The two propositions as claims: high precision, implications, and compositions that keep or break them."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpaudit import NFoldComposition, ProbabilityPreservation, PureDP, RenyiDP
from dpaudit.audit.errors import ClaimError
from dpaudit.audit.inference.boundary_test import Counts, joint_test

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
    ("claim", "oracle"),
    [
        (ProbabilityPreservation(order, divergence), lambda *q, a=order, t=divergence: preserved(a, t, *q))
        for order in (1.1, 2.0, 30.0)
        for divergence in (0.0, 0.1, 3.0)
    ]
    + [
        (NFoldComposition(epsilon, n), lambda *q, e=epsilon, n=n: n_fold(e, n, *q))
        for epsilon, n in ((0.01, 1), (0.1, 4), (0.5, 10), (3.0, 100))
    ],
    ids=lambda value: "oracle" if callable(value) else str(value),
)
@pytest.mark.parametrize("end", [1e-300, 1e-30, 1e-9, 0.015625, 0.25, 0.5])
def test_value_and_complement_are_accurate_in_the_relative_sense(claim, oracle, end):
    with mpmath.workdps(340):  # 1 − 1e-300 must differ from 1
        near_zero, near_one = (mpmath.mpf(end), 1 - mpmath.mpf(end)), (1 - mpmath.mpf(end), mpmath.mpf(end))
        for q, rest in (near_zero, near_one):
            found = [float(side) for side in claim.max_power(float(q), float(rest))]
            expected = [float(side) for side in oracle(q, rest)]
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-323)


@given(
    st.one_of(
        st.builds(ProbabilityPreservation, st.floats(1.01, 1e3), st.floats(0, 30)),
        st.builds(NFoldComposition, st.floats(0, 10), st.integers(1, 1000)),
    ),
    st.floats(1e-3, 5.0),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_boundaries_are_monotone_concave_and_nested_and_strengths_invert_them(claim, more):
    value, rest = claim.max_power(Q, REST)
    assert np.all(np.diff(value) >= -1e-15)
    assert np.all(np.diff(rest) <= 1e-15)
    assert np.all(value >= Q * (1 - 1e-12))
    assert np.all(rest <= REST * (1 + 1e-12))
    assert np.all(np.diff(claim.max_power(np.linspace(0, 1, 1001))[0], 2) <= 1e-12)
    larger_value, smaller_rest = claim.with_strength(claim.strength + more).max_power(Q, REST)
    assert np.all(larger_value >= value * (1 - 1e-15))  # the last digit depends on the version of numpy
    assert np.all(smaller_rest <= rest)
    inside = (value < 1 - 1e-6) & (value > 1e-250)
    found = claim.strength_of(value, Q, rest, REST)[inside]
    np.testing.assert_allclose(found, claim.strength, rtol=1e-6, atol=1e-6)


def test_probability_preservation_is_looser_than_the_divergence_it_follows_from():
    for order, divergence in ((1.5, 0.2), (2.0, 0.1), (10.0, 2.0)):
        stated, tight = ProbabilityPreservation(order, divergence), RenyiDP(order, divergence)
        assert np.all(tight.max_power(Q, REST)[0] <= stated.max_power(Q, REST)[0] * (1 + 1e-9))


def test_no_composition_is_allowed_more_than_everything():
    """The claim allows everything from q = exp(−4ε²n) on."""
    claim, edge = NFoldComposition(0.25, 4), math.exp(-1)
    value, rest = claim.max_power([edge * (1 + 1e-9), 0.5, 0.9, 1.0])
    assert value.tolist() == [1.0] * 4
    assert rest.tolist() == [0.0] * 4
    assert float(claim.max_power(edge * (1 - 1e-6))[0]) < 1


def responses(epsilon, k):
    """Power and false-positive rate of every best test of k randomised responses: at least j true answers."""
    keep = 1 / (1 + math.exp(-epsilon))
    j = np.arange(k + 1)
    return binom.sf(j - 1, k, keep), binom.sf(j - 1, k, 1 - keep)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_n_responses_keep_it_and_four_times_as_many_and_more_do_not(epsilon, n):
    claim = NFoldComposition(epsilon, n)
    p, q = responses(epsilon, n)
    assert np.all(p <= claim.max_power(q)[0] * (1 + 1e-12))
    p, q = responses(epsilon, 2 * n)
    assert np.all(p <= claim.max_power(q)[0] * (1 + 1e-12))
    if epsilon * epsilon * n < 1:
        p, q = responses(epsilon, 16 * n)
        assert np.any(p > claim.max_power(q)[0] * 1.01)


def test_pure_dp_implies_one_fold_for_small_q():
    """e^ε q is below q exp(2ε √ln(1/q)) for ln(1/q) ≥ ¼."""
    q = np.geomspace(1e-200, math.exp(-0.25), 50)
    assert np.all(PureDP(0.7).max_power(q)[0] <= NFoldComposition(0.7, 1).max_power(q)[0] * (1 + 1e-12))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ProbabilityPreservation(1.0, 0.1), "order=1.0 is not allowed"),
        (lambda: ProbabilityPreservation(2.0, -0.1), "divergence=-0.1 is not allowed"),
        (lambda: NFoldComposition(-1.0, 2), "epsilon=-1.0 is not allowed"),
        (lambda: NFoldComposition(1.0, 0), "n=0 is not allowed"),
        (lambda: NFoldComposition(1.0, 2.5), "n=2.5 is not a whole number"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ClaimError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (ProbabilityPreservation(2.0, 0.1), "Rényi divergence of order 2 >= {:.4g} by probability preservation"),
        (NFoldComposition(0.1, 10), "epsilon >= {:.4g} of each of 10 composed mechanisms"),
    ],
)
def test_a_bound_on_either_names_what_it_bounds(claim, words):
    p, bound = joint_test(Counts(hits_x=40_000, runs_x=100_000, hits_y=1_000, runs_y=100_000), claim, alpha=0.05)
    assert p < 1e-6
    observed = float(claim.strength_of(0.4, 0.01))
    assert 0.95 * observed < bound < observed
    assert claim.describe_strength(bound) == words.format(bound)
