"""Bounds on the strength of a claim from counts: published figures, curves on a grid, detectable excesses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import (
    ApproxDP,
    GaussianDP,
    PrivacyProfile,
    PureDP,
    RenyiDP,
    TradeOffCurve,
    ZeroConcentratedDP,
    epsilon_from_guesses,
)
from dpaudit.audit.canaries.canary_tests import ceilings, least_wrong, refuted_strength, refutes, tail
from dpaudit.audit.canaries.plan import fixed_numbers, plan_tests
from dpaudit.audit.canaries.smallest_excess import best_rates, smallest_excess
from dpaudit.audit.errors import ClaimError, OptionError
from dpaudit.audit.guesses.canary_guesses import CanaryGuesses, CanaryTest


def counted(canaries, guesses, right, **options):
    return CanaryGuesses(canaries=canaries, numbers=(guesses,), right=(right,), **options)


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "published", "bound", "pure"),
    [
        (10**4, 10**4, 10**4, 7.834, 8.113, 8.113),
        (10**5, 10**5, 10**5, 8.128, 10.416, 10.416),
        (10**4, 10**3, 700, 0.729, 0.731, 0.732),
        (10**4, 10**4, 5_500, 0.167, 0.167, 0.167),
        (10**5, 100, 100, 0.809, 3.423, 3.493),
        (10**5, 10**3, 950, 2.495, 2.697, 2.702),
    ],
)
def test_bounds_from_counts(canaries, guesses, right, published, bound, pure):
    """The first column agrees with the published code of Steinke, Nasr & Jagielski at δ = 1e-5."""
    assert round(epsilon_from_guesses(right, guesses, canaries, delta=1e-5), 3) == bound
    assert round(epsilon_from_guesses(right, guesses, canaries), 3) == pure
    test, guessed = CanaryTest("steinke", guesses, 0.05), counted(canaries, guesses, right)
    assert round(refuted_strength(test, ApproxDP(0.0, 1e-5), guessed), 3) == published


def test_all_right_without_slips_is_a_power():
    assert epsilon_from_guesses(10, 10, alpha=0.1) == pytest.approx(-math.log(0.1 ** (-0.1) - 1), rel=1e-5)
    assert epsilon_from_guesses(5, 10) == 0.0


@pytest.mark.parametrize(
    "numbers", [(10, 10, 5), (-1, 10), (11, 10), (0, 0), ("a", 10), (None, 10), (5.5, 10), (True, 1)]
)
def test_numbers_that_do_not_fit_are_refused(numbers):
    with pytest.raises(OptionError, match="do not fit; use whole numbers"):
        epsilon_from_guesses(*numbers)


def test_other_options_that_are_refused():
    with pytest.raises(ClaimError, match="delta=1"):
        epsilon_from_guesses(5, 10, delta=1.0)
    with pytest.raises(OptionError, match="pass canaries"):
        epsilon_from_guesses(10, 10, delta=1e-5)
    assert epsilon_from_guesses(10, 10, 10, delta=1e-9) == pytest.approx(epsilon_from_guesses(10, 10), abs=1e-3)
    with pytest.raises(OptionError, match="alpha=2"):
        epsilon_from_guesses(5, 10, alpha=2)


@pytest.mark.parametrize("kind", ["counts", "steinke", "f-dp", "betting"])
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(0.8)], ids=str)
def test_p_value_verdict_and_bound_agree_and_are_monotone(kind, claim):
    bounds, tails = [], []
    for right in range(40, 101, 15):
        guesses, test = counted(100, 100, right), CanaryTest(kind, 100, 0.05)
        found, bound = tail(test, claim, guesses), refuted_strength(test, claim, guesses)
        assert refutes(test, claim, guesses) == (found <= 0.05) == (bound > claim.strength)
        if bound:
            assert refutes(test, claim.with_strength(bound), guesses)
        tails.append(found)
        bounds.append(bound)
    assert tails == sorted(tails, reverse=True)
    assert bounds == sorted(bounds)
    assert bounds[0] == 0.0 < bounds[-1]


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_recursion_never_refutes_more_than_the_exact_law(epsilon):
    for delta in (0.0, 1e-3, 0.05):
        for right in range(1, 31):
            found = [
                tail(CanaryTest(kind, 30, 0.05), ApproxDP(epsilon, delta), counted(40, 30, right))
                for kind in ("f-dp", "counts")
            ]
            assert found[0] >= found[1] * (1.0 - 1e-6) or found[1] > 0.9


CURVES = [
    ZeroConcentratedDP(0.5),
    ZeroConcentratedDP(20.0),
    RenyiDP(2.0, 1.0),
    PureDP(0.5).group(2),
    GaussianDP(0.5).group(2),
    TradeOffCurve((0.0, 0.1, 0.5), (0.9, 0.7, 0.2), 0.01),
    PrivacyProfile((0.0, 1.0, 2.0), (0.3, 0.1, 0.02)),
    ApproxDP(1.0, 0.1),
    GaussianDP(20.0),
]


@pytest.mark.parametrize("claim", CURVES, ids=str)
def test_least_wrong_is_never_above_the_curve_and_close_to_it(claim):
    least = least_wrong(claim, counted(10, 10, 5), 1e-6)
    rates = np.concatenate([np.geomspace(1e-6, 0.5, 60), 1.0 - np.geomspace(1e-9, 0.5, 60), [1.0]])
    exact = claim.max_power(1.0 - rates, rates)[1]
    found = np.array([least(float(rate)) for rate in rates])
    assert np.all(found <= exact * (1.0 + 1e-9) + 1e-14)
    assert np.all(found >= exact * (1.0 - 1e-3) - 1e-14)


def test_least_wrong_of_one_answer():
    least = least_wrong(PureDP(1.0), counted(10, 10, 5, said="in", probability=0.2), 0.01)
    assert least(0.1) == pytest.approx(0.8 * 0.5 / math.e)
    assert least(0.2) == pytest.approx(0.8)
    assert least(0.9) == pytest.approx(0.8)


def test_claims_for_larger_strengths_help_where_delta_costs_much():
    """At ε = 0 the slip is m δ/2, but (2, δ)-DP follows from the claim and costs less."""
    guesses = counted(100, 100, 100)
    assert ceilings(ApproxDP(0.0, 1e-3), guesses)[0].slip(100) > 0.04
    assert tail(CanaryTest("betting", 100, 0.05), ApproxDP(0.0, 1e-3), guesses) < 0.02


def test_plans():
    shape = counted(1_000, 1_000, 0)
    assert fixed_numbers(1_000) == (31, 125, 500)
    assert fixed_numbers(24) == (12,)
    assert fixed_numbers(8) == (8,)

    def kinds(claim, method="auto", numbers=None):
        tests = plan_tests(method, numbers, claim, shape, 0.05)
        assert sum(test.alpha for test in tests) == pytest.approx(0.05)
        return [test.kind for test in tests]

    assert kinds(PureDP(1.0)) == ["betting"]
    assert kinds(ApproxDP(1.0, 1e-6)) == ["betting"]
    assert kinds(ApproxDP(1.0, 1e-3)) == ["betting", *["counts"] * 3]
    assert kinds(GaussianDP(1.0)) == ["f-dp"] * 3
    assert kinds(RenyiDP(2.0, 1.0)) == ["f-dp"] * 3
    assert kinds(PureDP(1.0), numbers=(5, 7)) == ["counts"] * 2


def test_best_rates_attain_the_curve():
    for claim, options in (
        (PureDP(1.0), {}),
        (GaussianDP(1.0), {}),
        (GaussianDP(1.0), {"said": "in", "probability": 0.2}),
    ):
        guesses = counted(1_000, 1_000, 0, **options)
        numbers = [10, 300, 900]
        rates = best_rates(claim, guesses, numbers)
        least = least_wrong(claim, guesses, 1e-6)
        for number, rate in zip(numbers, rates, strict=True):
            assert least(rate * number / 1_000) == pytest.approx((1.0 - rate) * number / 1_000, rel=1e-5)
    assert best_rates(PureDP(1.0), counted(10, 10, 0), [10]) == pytest.approx([math.e / (1 + math.e)])
    assert best_rates(ApproxDP(0.0, 0.5), counted(10, 10, 0), [2]) == pytest.approx([1.0])


def test_detectable_excess_falls_with_the_canaries():
    def excess(canaries, **options):
        guesses = counted(canaries, canaries, 0, **options)
        return smallest_excess((CanaryTest("counts", canaries, 0.05),), PureDP(1.0), guesses, 0.95)

    assert excess(10) == math.inf or excess(10) > excess(100) > excess(1_000) > 0.0
    assert excess(10**6) < 0.02
    assert excess(1_000, said="in") >= excess(1_000)


def test_detectable_excess_is_positive_even_if_the_claim_itself_is_refuted():
    assert 0.0 < smallest_excess((CanaryTest("counts", 100, 0.999),), PureDP(1.0), counted(100, 100, 0), 0.95) < 1e-3


@pytest.mark.parametrize("canaries", [12, 100])
def test_detectable_excess_is_the_least_with_the_stated_power(canaries):
    """Independent guesses at the claim's odds: the fewest right ones that refute occur with probability 0.95."""
    test, claim, guesses = CanaryTest("counts", canaries, 0.05), PureDP(0.5), counted(canaries, canaries, 0)
    fewest = next(right for right in range(canaries + 1) if refutes(test, claim, counted(canaries, canaries, right)))
    found = claim.epsilon + smallest_excess((test,), claim, guesses, 0.95)
    power = [binom.sf(fewest - 1, canaries, 1 / (1 + math.exp(-epsilon))) for epsilon in (found - 0.01, found)]
    assert power[0] < 0.95 <= power[1]
