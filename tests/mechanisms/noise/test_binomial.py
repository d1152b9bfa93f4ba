"""Binomial noise: law and delta against integers and fractions; the conformance test covers the sampler."""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP
from dpaudit.audit.errors import DatasetError, OptionError
from dpaudit.mechanisms.noise.binomial import MOST_FLIPS


def masses(n):
    """Pr[heads = 0 … n], exactly."""
    return [Fraction(math.comb(n, k), 2**n) for k in range(n + 1)]


@pytest.mark.parametrize("n", [2, 10, 100, 400])
def test_law_is_the_binomial_one(n):
    law, k = m.BinomialLaw(5, n), np.arange(n + 1) - n // 2 + 5
    exact = masses(n)
    up_to = list(itertools.accumulate(exact))
    np.testing.assert_allclose(np.exp(law.log_density(k)), [float(p) for p in exact], rtol=1e-11)
    np.testing.assert_allclose(law.cdf(k), [float(p) for p in up_to], rtol=1e-11)
    np.testing.assert_allclose(law.sf(k), [float(1 - p) for p in up_to], rtol=1e-11)


def test_law_between_and_beyond_its_outcomes():
    law = m.BinomialLaw(0, 10)
    assert law.log_density([-6, -5.5, 0.5, 6, math.inf]).tolist() == [-math.inf] * 5
    assert law.cdf(0.5) == law.cdf(0.0)
    assert law.cdf([-math.inf, -6, 5, 1e9, math.inf]).tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert law.sf([-math.inf, -6, 5, math.inf]).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_many_coins_keep_the_relative_accuracy():
    law = m.BinomialLaw(0, MOST_FLIPS)
    k = np.array([0, 300, 2000, 5000])
    oracle = stats.binom(MOST_FLIPS, 0.5)
    np.testing.assert_allclose(law.log_density(k), oracle.logpmf(k + MOST_FLIPS // 2), rtol=1e-9)
    np.testing.assert_allclose(law.sf(k), oracle.sf(k + MOST_FLIPS // 2), rtol=1e-9)


@pytest.mark.parametrize("n", [2, 8, 60])
@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_delta_is_the_sum_of_what_exceeds(n, shift, epsilon):
    p, q = masses(n) + [Fraction(0)] * shift, [Fraction(0)] * shift + masses(n)
    factor = Fraction(math.exp(epsilon))
    expected = float(sum(max(a - factor * b, Fraction(0)) for a, b in zip(p, q, strict=True)))
    law_x, law_y = m.BinomialLaw(7, n), m.BinomialLaw(7 + shift, n)
    assert m.hockey_stick(law_x, law_y, epsilon) == pytest.approx(expected, rel=1e-12)
    assert m.hockey_stick(law_y, law_x, epsilon) == m.hockey_stick(law_x, law_y, epsilon)
    ends = float(sum(masses(n)[:shift]))
    if epsilon > 0 and ends < expected < 1:
        assert m.exact_epsilon(law_x, law_y, expected) == pytest.approx(epsilon, rel=1e-9)


def test_delta_covers_the_ends_where_the_loss_is_infinite():
    """The lowest outcome has probability 2⁻ⁿ on one side and 0 on the other: so no finite epsilon holds."""
    law_x, law_y = m.BinomialLaw(0, 8), m.BinomialLaw(1, 8)
    assert m.hockey_stick(law_x, law_y, 500.0) == pytest.approx(2.0**-8, rel=1e-14)
    assert m.exact_epsilon(law_x, law_y, 0.9 * 2.0**-8) == math.inf
    assert m.exact_epsilon(law_x, law_y, 1.1 * 2.0**-8) < 10
    assert m.exact_epsilon(law_x, law_x, 0.0) == 0.0
    assert m.exact_delta(m.BinomialLaw(0, 8), m.BinomialLaw(9, 8), 3.0) == pytest.approx(1.0)  # nothing in common
    assert m.exact_delta(m.BinomialLaw(0, 8), m.BinomialLaw(100, 8), 3.0) == pytest.approx(1.0)


@pytest.mark.parametrize("n", [10, 100])
def test_answers_nearer_than_the_sensitivity_are_harder_to_tell_apart(n):
    laws = [m.BinomialLaw(shift, n) for shift in range(6)]
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        deltas = [m.exact_delta(laws[0], law, epsilon) for law in laws]
        assert deltas == sorted(deltas)


def test_many_coins_are_as_good_as_normal_noise():
    n = 250_000
    mechanism = m.BinomialMechanism(n, epsilon=0.02, sensitivity=5)
    assert mechanism.delta == pytest.approx(m.gaussian_delta(0.02, scale=math.sqrt(n) / 2, sensitivity=5.0), rel=2e-3)


def test_claim_is_exact_at_the_sensitivity():
    mechanism = m.BinomialMechanism(100, epsilon=0.5, sensitivity=2, query=len)
    assert mechanism.claim == ApproxDP(0.5, mechanism.delta)
    x, y = mechanism.law([1] * 4), mechanism.law([1] * 2)
    assert m.exact_delta(x, y, 0.5) == mechanism.delta
    assert m.exact_epsilon(x, y, mechanism.delta) == pytest.approx(0.5, rel=1e-9)


def test_outputs_stay_within_half_the_coins():
    outputs = m.BinomialMechanism(4, 1.0).sample(10, 50_000, np.random.default_rng(1))
    assert np.unique(outputs).tolist() == [8, 9, 10, 11, 12]


def test_no_delta_rounds_to_a_pure_claim():
    mechanism = m.BinomialMechanism(4096, 10.0)
    assert mechanism.claim.delta == sys.float_info.min
    assert m.exact_epsilon(mechanism.law(0), mechanism.law(1)) == math.inf


def test_laws_of_different_numbers_of_coins_are_not_compared():
    with pytest.raises(OptionError, match="no closed form"):
        m.exact_delta(m.BinomialLaw(0, 10), m.BinomialLaw(0, 12), 1.0)
    with pytest.raises(OptionError, match="n_flips=3"):
        m.BinomialLaw(0, 3)


def test_answers_have_to_be_whole():
    with pytest.raises(DatasetError, match="not a whole number"):
        m.BinomialMechanism(10, 1.0).law(0.5)
