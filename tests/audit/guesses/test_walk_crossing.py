"""Walks of guesses: exact fractions, sums, and the event that the bets stand for."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.audit.guesses import guess_bets as walks
from dpaudit.audit.guesses.guess_bets import (
    bets_tail,
    guess_numbers,
    largest_refuted,
    log_wealth,
    most_telling,
    walk_crossing,
)


def exact(numbers, most_wrong, right):
    """The probability of a crossing in fractions, guess by guess."""
    law, crossed = {0: Fraction(1)}, Fraction(0)
    most = dict(zip(numbers, most_wrong, strict=True))
    for number in range(1, numbers[-1] + 1):
        after = {}
        for wrong, mass in law.items():
            after[wrong] = after.get(wrong, 0) + mass * right
            after[wrong + 1] = after.get(wrong + 1, 0) + mass * (1 - right)
        crossed += sum(after.pop(wrong) for wrong in list(after) if wrong <= most.get(number, -1))
        law = after
    return float(crossed)


@pytest.mark.parametrize("odds", [Fraction(1, 50), Fraction(1), Fraction(3), Fraction(400)])
@pytest.mark.parametrize(
    ("numbers", "most_wrong"),
    [((1, 2, 3), (0, -1, 1)), ((4, 9, 30), (-1, 1, 6)), ((2, 5, 40), (-1, -1, 3)), ((10,), (10,)), ((10,), (-1,))],
)
def test_crossings_are_exact(numbers, most_wrong, odds):
    found = walk_crossing(numbers, most_wrong, math.log(odds))
    assert found == pytest.approx(exact(numbers, most_wrong, odds / (1 + odds)), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize(("log_odds", "wrong"), [(800.0, 0.0), (40.0, 4e-18), (-40.0, 1.0), (-800.0, 1.0)])
def test_extreme_odds(log_odds, wrong):
    assert walk_crossing((5, 20), (-1, 0), log_odds) == pytest.approx(1.0 - wrong, abs=1e-15)


@pytest.mark.parametrize("wrong", [0.5, 0.27, 1e-3, 1e-6])
def test_law_of_many_guesses_keeps_its_digits(wrong):
    law, first = walks._binomial(1_000_000, math.log1p(-wrong) - math.log(wrong))
    expected = binom.pmf(np.arange(first, first + len(law)), 1_000_000, wrong)
    kept = expected > 1e-25
    assert law[kept] == pytest.approx(expected[kept], rel=1e-10)
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)


def test_transformed_and_direct_sums_agree(monkeypatch):
    numbers = guess_numbers(60_000)
    most_wrong = tuple(int(0.27 * n - 2.2 * math.sqrt(n)) if n > 200 else -1 for n in numbers)
    walk_crossing.cache_clear()
    transformed = walk_crossing(numbers, most_wrong, 1.0)
    monkeypatch.setattr(walks, "_DIRECT", 1 << 30)
    walk_crossing.cache_clear()
    assert transformed == pytest.approx(walk_crossing(numbers, most_wrong, 1.0), rel=1e-10)
    assert 1e-6 < transformed < 1.0


def test_numbers_count_one_by_one_and_then_in_a_geometric_grid():
    assert guess_numbers(5) == (1, 2, 3, 4, 5)
    numbers = guess_numbers(100_000)
    assert numbers[:33] == (*range(1, 33), 35)
    assert numbers[-1] == 100_000
    assert max(b / a for a, b in itertools.pairwise(numbers[32:])) < 1.12


@pytest.mark.parametrize("level", [0.3, 0.05, 1e-9])
def test_largest_refuted_strength_is_on_the_level(level):
    numbers, right = (10, 40, 200), (10, 38, 150)
    refuted = largest_refuted(right, numbers, level)
    v = np.array(right, dtype=float)
    wealth = [log_wealth(v, np.array(numbers) - v, at).max() for at in (refuted, refuted + 1e-6)]
    assert wealth[0] >= -math.log(level) > wealth[1]
    place = most_telling(right, numbers, level)
    assert log_wealth(v, np.array(numbers) - v, refuted).argmax() == place


def test_tails_of_bets_hold_for_every_sequence_of_guesses():
    numbers, level = guess_numbers(7), 0.1
    sequences = [tuple(itertools.accumulate(guesses)) for guesses in itertools.product((0, 1), repeat=7)]
    refuted = {right: largest_refuted(right, numbers, level) for right in sequences}
    for log_odds in (0.0, 1.0, 3.0):
        sigma = 1.0 / (1.0 + math.exp(-log_odds))
        tails = {right: bets_tail(refuted[right], numbers, level, log_odds) for right in sequences}
        for p in sorted(set(tails.values())):
            as_small = sum(sigma ** r[-1] * (1.0 - sigma) ** (7 - r[-1]) for r in sequences if tails[r] <= p)
            assert as_small <= p + 1e-9
        assert min(tails.values()) == pytest.approx(sigma**7, rel=1e-9)  # all guesses right: nothing refutes more


def test_bets_without_right_guesses_refute_nothing():
    assert largest_refuted((0, 0), (5, 10), 0.05) == -math.inf
    assert bets_tail(-math.inf, (5, 10), 0.05, 1.0) == 1.0


def test_more_right_guesses_refute_more():
    numbers = guess_numbers(50)
    found = [largest_refuted(tuple(max(0, n - wrong) for n in numbers), numbers, 0.05) for wrong in range(50)]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) > 10
