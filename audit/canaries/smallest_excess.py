"""The smallest excess over a claim that guesses of so many canaries detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import bdtrik

from ..claims.claim import Claim
from ..guesses.canary_guesses import CanaryGuesses, CanaryTest
from .canary_tests import refutes

_HALVINGS = 40
_PRECISION = 1e-3  # of the excess


def best_guess(claim: Claim) -> float:
    """Probability of a right guess for a fair coin that the claim allows: c with c = B(1 − c)."""
    low, high = 0.5, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(claim.max_power(1.0 - middle, middle)[0]) >= middle else (low, middle)
    return low


def smallest_excess(tests: Sequence[CanaryTest], claim: Claim, guesses: CanaryGuesses, power: float) -> float:
    """Return the smallest excess that is refuted with probability `power`, if canaries show as much as they can.

    Each canary then tells its coin as clearly as the claim at that strength allows for a fair coin, independently of
    the others, and all are guessed. With probability `power` at least as many guesses are right as are assumed.
    """

    def is_detected(strength: float) -> bool:
        rate = best_guess(claim.with_strength(strength))
        right = max(int(bdtrik(1.0 - power, guesses.canaries, rate)), 0)
        all_guessed = _all_guessed(guesses, right)
        return any(refutes(test, claim, all_guessed) for test in tests if test.guesses == guesses.canaries)

    most = claim.max_strength if math.isfinite(claim.max_strength) else claim.strength + 40.0
    low, high = claim.strength, most * (1.0 - 1e-9)
    if not is_detected(high):
        return math.inf
    while high - low > _PRECISION * (high - claim.strength):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_detected(middle) else (middle, high)
    return high - claim.strength


def _all_guessed(guesses: CanaryGuesses, right: int) -> CanaryGuesses:
    """Right guesses of all canaries, as late as possible: earlier numbers of guesses then refute nothing."""
    numbers = np.array(guesses.numbers)
    late = np.maximum(right - (guesses.canaries - numbers), 0)
    return replace(guesses, right=tuple(late.tolist()))
