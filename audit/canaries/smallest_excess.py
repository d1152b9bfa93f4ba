"""The smallest excess over a claim that guesses of so many canaries detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import bdtrik

from ..claims.claim import Claim
from ..guesses.canary_guesses import CanaryGuesses, CanaryTest
from ..inference.binomial_tails import Array
from .canary_tests import refutes

_HALVINGS = 30
_ROUNDING = 1e-6  # of a number of guesses
_PRECISION, _LEAST = 1e-3, 1e-9  # of the excess, and of the strength
_RATIO, _FEWEST = 4, 12  # of numbers of guesses that are tried for bets, and the least of them


def best_rates(claim: Claim, guesses: CanaryGuesses, numbers: Sequence[int]) -> Array:
    """Share of right guesses that the claim allows where so many canaries are guessed on average.

    Right guesses have the rate F(w) where wrong ones have the rate w, and F(w) + w is the share that is guessed.
    """
    share = np.array(numbers, dtype=np.float64) / guesses.canaries
    prior = 1.0 if guesses.said == "both" else guesses.prior
    most = 1.0 if guesses.said == "both" else 1.0 - prior
    boundary = claim.reversed() if guesses.said == "out" else claim
    low, high = np.zeros_like(share), np.full_like(share, most)
    for _ in range(_HALVINGS):
        wrong = 0.5 * (low + high)
        is_less = prior * boundary.max_power(wrong / most)[0] + wrong < share
        low, high = np.where(is_less, wrong, low), np.where(is_less, high, wrong)
    return np.clip(1.0 - high / share, 0.0, 1.0)


def all_right(guesses: CanaryGuesses, most: int) -> CanaryGuesses:
    """The guesses if all were right, of which at most so many can be."""
    return replace(guesses, right=tuple(min(number, most) for number in guesses.numbers))


def smallest_excess(tests: Sequence[CanaryTest], claim: Claim, guesses: CanaryGuesses, power: float) -> float:
    """Return the smallest excess that is refuted with probability `power`, if canaries show as much as they can.

    Each canary then tells its coin as clearly as the claim at that strength allows, independently of the others. With
    probability `power` at least as many guesses are right as are assumed, for one of the numbers of guesses.
    """
    tried = [(test, number) for test in tests for number in _numbers(test, guesses)]

    def is_detected(strength: float) -> bool:
        numbers = [number for _, number in tried]
        rates = best_rates(claim.with_strength(strength), guesses, numbers)
        # Fewer right guesses than the first whole number at which the distribution function exceeds 1 − power have at
        # most that probability.
        right = np.ceil(np.maximum(bdtrik(1.0 - power, np.array(numbers, dtype=np.float64), rates), 0.0) - _ROUNDING)
        return any(
            refutes(test, claim, _guessed(guesses, number, int(some)))
            for (test, number), some in zip(tried, right, strict=True)
        )

    most = claim.max_strength if math.isfinite(claim.max_strength) else claim.strength + 40.0
    low, high = claim.strength, most * (1.0 - 1e-9)
    if not is_detected(high):
        return math.inf
    while high - low > max(_PRECISION * (high - claim.strength), _LEAST * max(high, _LEAST)):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_detected(middle) else (middle, high)
    return high - claim.strength


def _numbers(test: CanaryTest, guesses: CanaryGuesses) -> list[int]:
    """The number of guesses of a test, or for bets some that count: all canaries, a quarter and so on."""
    if test.kind != "betting":
        return [test.guesses]
    wanted = float(test.guesses)
    found: list[int] = []
    while wanted >= _FEWEST or not found:
        found.append(min(guesses.numbers, key=lambda number: abs(number - wanted)))
        wanted /= _RATIO
    return found


def _guessed(guesses: CanaryGuesses, number: int, right: int) -> CanaryGuesses:
    """So many right guesses among a number, as late as possible, and none after it: no other number refutes more."""
    numbers = np.array(guesses.numbers)
    late = np.clip(right - (number - numbers), 0, right)
    return replace(guesses, right=tuple(late.tolist()))
