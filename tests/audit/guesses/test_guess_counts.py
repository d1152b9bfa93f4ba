"""Counts of right guesses: exact fractions, far tails, the recursion, and refused numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from math import comb

import pytest

from dpaudit.audit.errors import OptionError
from dpaudit.audit.guesses.canary_guesses import CanaryGuesses, CanaryTest
from dpaudit.audit.guesses.guess_ceiling import Ceiling, line
from dpaudit.audit.guesses.guess_counts import count_tail, right_tail, steinke_tail
from dpaudit.audit.guesses.trade_off_recursion import is_impossible


def exact(right, guesses, canaries, odds, delta):
    """The closed form of theorem 2 in fractions."""
    sigma = odds / (1 + odds)
    law = [comb(guesses, j) * sigma**j * (1 - sigma) ** (guesses - j) for j in range(guesses + 1)]
    tail = sum(law[right:])
    return min(1.0, float(tail + canaries * delta * tail * (1 - tail) / (right * law[right])))


@pytest.mark.parametrize("odds", [Fraction(1), Fraction(3), Fraction(2000), Fraction(1, 7)])
@pytest.mark.parametrize(("guesses", "canaries"), [(8, 8), (60, 200), (150, 400)])
def test_counts_equal_the_closed_form(odds, guesses, canaries):
    for right, delta in itertools.product(
        (1, guesses // 3, guesses // 2, guesses - 2, guesses), (Fraction(0), Fraction(1, 10**5), Fraction(1, 4))
    ):
        found = count_tail(right, guesses, canaries, Ceiling(math.log(odds), float(delta)))
        assert found == pytest.approx(exact(right, guesses, canaries, odds, delta), rel=1e-9, abs=1e-300)


def test_far_tails_keep_their_factor():
    """Where β and b(v) underflow, their ratio does not: with ε = 0 all guesses right give δ."""
    assert count_tail(5_000, 5_000, 5_000, Ceiling(0.0, 1e-5)) == pytest.approx(1e-5, rel=1e-9)
    assert count_tail(1_000_000, 1_000_000, 10**6, Ceiling(2.0, 1e-9)) == pytest.approx(1e-9, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-4, 0.2])
def test_counts_are_monotone_and_between_no_slip_and_theorem_1(delta):
    ceiling = Ceiling(1.0, delta)
    found = [count_tail(right, 40, 90, ceiling) for right in range(41)]
    assert found == sorted(found, reverse=True)
    assert found[0] == 1.0
    for right in range(41):
        without = right_tail(right, 40, ceiling)
        assert without <= found[right] <= min(1.0, without + ceiling.slip(90)) + 1e-12


def test_published_bound_is_never_smaller():
    for epsilon, delta, guesses in itertools.product((0.0, 0.5, 2.0, 5.0), (1e-6, 1e-3, 0.05), (1, 7, 120)):
        ceiling = Ceiling(epsilon, delta)
        for right in range(1, guesses + 1):
            published = steinke_tail(right, guesses, 2 * guesses, ceiling)
            assert published <= 0.5 or published == 1.0
            assert published >= count_tail(right, guesses, 2 * guesses, ceiling) * (1.0 - 1e-9)


def test_recursion_without_slips_is_the_binomial_tail():
    ratio = math.exp(-1.0)

    def inverse(power):
        return max(ratio * power, 1.0 - (1.0 - power) / ratio)

    for right in (8, 9, 10):  # all right: the recursion runs along one line down to no right guess
        tail = right_tail(right, 10, Ceiling(1.0, 0.0))
        assert is_impossible(tail * 1.5, right, 10, 10, inverse)
    assert not is_impossible(right_tail(10, 10, Ceiling(1.0, 0.0)) * (1.0 - 1e-6), 10, 10, 10, inverse)
    assert is_impossible(right_tail(10, 10, Ceiling(1.0, 0.0)) * (1.0 + 1e-6), 10, 10, 10, inverse)
    assert not is_impossible(0.5, 0, 10, 10, inverse)
    assert not is_impossible(0.5, 10, 10, 10, lambda power: 0.0)


def test_ceilings():
    assert line(1.0, 0.1, both=True) == Ceiling(1.0, 0.1)
    inward = line(1.0, 0.1, probability=0.2, both=False)
    assert inward.right == pytest.approx(0.2 * math.e / (0.8 + 0.2 * math.e))
    assert inward.delta == pytest.approx(0.02)
    assert inward.right + inward.wrong == pytest.approx(1.0)
    assert inward.slip(10) == pytest.approx(10 * 0.02 * inward.wrong)
    assert Ceiling(800.0, 0.0).wrong == 0.0


def test_guesses_know_their_numbers():
    guesses = CanaryGuesses(canaries=20, numbers=(5, 10), right=(4, 7), said="out", probability=0.3)
    assert guesses.right_among(10) == 7
    assert guesses.prior == 0.7
    assert str(CanaryTest("betting", 1_000, 0.05)) == "betting (up to 1,000 guesses)"
    assert str(CanaryTest("counts", 12, 0.05)) == "counts (12 guesses)"


@pytest.mark.parametrize(
    ("numbers", "right", "probability"),
    [
        ((), (), 0.5),
        ((5,), (6,), 0.5),
        ((5,), (-1,), 0.5),
        ((5, 5), (1, 1), 0.5),
        ((5, 6), (1, 3), 0.5),
        ((5, 9), (3, 2), 0.5),
        ((5, 11), (3, 3), 0.5),
        ((5,), (3, 3), 0.5),
        ((5,), (3,), 0.4),
        ((5,), (3,), 1.0),
    ],
)
def test_impossible_guesses_are_refused(numbers, right, probability):
    with pytest.raises(OptionError, match=r"impossible .*; use increasing numbers"):
        CanaryGuesses(canaries=10, numbers=numbers, right=right, probability=probability)
