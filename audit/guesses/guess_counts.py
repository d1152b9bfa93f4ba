"""How often a claim lets an observer guess right whether canaries were included, if the number of guesses was fixed.

Independent coins include each canary with probability π, ½ unless stated. For (ε, δ)-DP towards a change of any one
canary, correct guesses have the rate F(b) = e^t b + d at most where wrong ones have the rate b (`Ceiling`); a claim
given by a concave boundary has F⁻¹ in place of the line. Of m canaries G are guessed, and V guesses are correct:
`count_tail` is the largest Pr[V ≥ v] under a line, and `is_impossible` bounds it under a whole curve.

Proof: docs/proofs/canaries.md

References
----------
Steinke, Nasr & Jagielski (2023), Privacy auditing with one (1) training run, Theorem 5.2. Mahloujifar, Melis &
Chaudhuri (2024), Auditing f-differential privacy in one run, Theorem 3.2 and Algorithm 3: the same recursion.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, expit

_AT_ONCE = 64  # terms of a sum at once
LARGEST_LOG_ODDS = 700.0
"""Log-odds that doubles can hold."""
_STILL = 1e-13  # of the probability so far: steps that add less end the recursion, which then refutes nothing
_ROUNDING = 1e-9  # of the number of guesses, relative


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A line F(b) = e^log_odds · b + slip above the rate of correct guesses, given the rate of wrong ones."""

    log_odds: float  # the largest of a correct guess; ε for fair coins
    delta: float  # what the line adds, for each canary

    @property
    def wrong(self) -> float:
        """1 − σ: least probability of an incorrect guess without a slip, with all its digits."""
        return float(expit(-self.log_odds))

    def slip(self, canaries: int) -> float:
        """Largest probability that the guesses on so many canaries escape the ceiling."""
        return canaries * self.delta * self.wrong


def line(epsilon: float, delta: float, *, probability: float = 0.5, both: bool) -> Ceiling:
    """Return the ceiling of (ε, δ)-DP: for guesses of both kinds (fair coins), or of "in" alone.

    Guesses of "out" alone are guesses of "in" with coins of probability 1 − π.
    """
    if both:
        return Ceiling(epsilon, delta)
    return Ceiling(epsilon + math.log(probability) - math.log1p(-probability), probability * delta)


def right_tail(right: int, guesses: int, ceiling: Ceiling) -> float:
    """β = Pr[Bin(G, σ) ≥ v]: the probability of `right` or more right ones without slips."""
    return float(bdtr(guesses - right, guesses, ceiling.wrong)) if right > 0 else 1.0


def count_tail(right: int, guesses: int, canaries: int, ceiling: Ceiling) -> float:
    """Largest probability of `right` or more right ones among `guesses`, a number fixed before; attained."""
    tail = right_tail(right, guesses, ceiling)
    if ceiling.delta == 0.0 or tail == 1.0:
        return tail
    most = ceiling.wrong * right / (1.0 - tail)
    factor = min(ceiling.wrong, _tail_over_mass(right, guesses, ceiling, most) * (1.0 - tail) / right)
    return min(1.0, tail + canaries * ceiling.delta * factor)


def _tail_over_mass(right: int, guesses: int, ceiling: Ceiling, most: float) -> float:
    """β/b(v) = Σ_k b(v + k)/b(v), which does not underflow as both of them do; or a part of it above `most`."""
    total, last, start, size = 1.0, 1.0, right, _AT_ONCE
    odds = math.exp(min(ceiling.log_odds, LARGEST_LOG_ODDS))
    while start < guesses and total <= most:
        at = np.arange(start, min(start + size, guesses), dtype=np.float64)
        ratios = (guesses - at) / (at + 1.0) * odds
        with np.errstate(over="ignore"):
            terms = last * np.cumprod(ratios)
        total, last = total + float(terms.sum()), float(terms[-1])
        if ratios[-1] < 1.0 and last * ratios[-1] / (1.0 - ratios[-1]) < 0.5 * sys.float_info.epsilon * total:
            break
        start, size = start + len(at), 2 * size
    return total


def steinke_tail(right: int, guesses: int, canaries: int, ceiling: Ceiling) -> float:
    """The published bound on the same probability; 1 where it is above ½, since it need not hold there."""
    tail = right_tail(right, guesses, ceiling)
    if ceiling.delta == 0.0 or right <= 0:
        return tail if tail <= 0.5 else 1.0
    fewer = np.arange(1, right + 1)
    between = bdtr(guesses - right + fewer, guesses, ceiling.wrong) - tail
    found = tail + 2.0 * canaries * ceiling.delta * float((between / fewer).max())
    return found if found <= 0.5 else 1.0


def is_impossible(tail: float, right: int, guesses: int, canaries: int, inverse: Callable[[float], float]) -> bool:
    """Whether Pr[V ≥ right] < `tail` for every mechanism that keeps the curve, of which `inverse` is F⁻¹."""
    if right <= 0:
        return False
    above = right * tail / canaries  # A_c
    below = (guesses - right) * tail / canaries  # canaries guessed wrong, V ≥ c
    enough = guesses / canaries * (1.0 + _ROUNDING)
    for count in range(right - 1, -1, -1):
        least = inverse(min(above, 1.0))
        added = least - below
        if added <= _STILL * below:
            return False
        above += count / (guesses - count) * added
        below = least
        if above + below > enough:
            return True
    return False
