"""Correct guesses of which canaries are in, and how many of a fixed number a claim allows.

Independent coins include each canary with probability π, ½ unless stated. For (ε, δ)-DP towards a change of any one
canary, correct guesses have the rate F(b) = e^t b + d at most where wrong ones have the rate b (`GuessLimit`); a claim
given by a concave boundary has F⁻¹ in place of the line. G of m canaries are guessed, and V guesses are correct.

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
from typing import Literal

import numpy as np
from scipy.special import bdtr, expit

from ..errors import OptionError
from ..inference.binomial_tails import ROUNDING
from ..options import check_fields
from ..printing import shorten

Guess = Literal["both", "in", "out"]
Kind = Literal["betting", "counts", "steinke", "f-dp"]
FEWEST, MOST = 8, 10**7
"""Fewest and most canaries of an audit; eight guesses are all correct by chance with probability 2⁻⁸."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryGuesses:
    """How many guesses were correct among the first so many.

    Attributes
    ----------
    canaries : int
        Canaries, or pairs of canaries, each with a coin of its own.
    numbers, correct : tuple of int, same length
        Increasing numbers of guesses, each with the correct ones among the first so many.
    answer : {"both", "in", "out"}
        The answers that were guessed; "both" needs a probability of 0.5.
    probability : float
        Probability with which each canary was included.
    """

    canaries: int
    numbers: tuple[int, ...]
    correct: tuple[int, ...]
    answer: Guess = "both"
    probability: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self)
        steps = zip((0, *self.numbers), self.numbers, (0, *self.correct), self.correct, strict=False)
        if (
            len(self.numbers) != len(self.correct)
            or not self.numbers
            or self.numbers[-1] > self.canaries
            or not all(after > before and 0 <= v - u <= after - before for before, after, u, v in steps)
            or not 0.0 < self.probability < 1.0
            or not isinstance(self.answer, str)
            or (self.answer == "both" and self.probability != 0.5)
        ):
            raise OptionError(
                f"correct={shorten(self.correct)} among the first numbers={shorten(self.numbers)} of canaries="
                f"{shorten(self.canaries)} are impossible with answer={shorten(self.answer)} and probability="
                f"{shorten(self.probability)}; use increasing numbers, at most one correct guess for each.",
                canaries=self.canaries,
            )

    def correct_among(self, guesses: int) -> int:
        """Return the correct guesses among the first so many."""
        return self.correct[self.numbers.index(guesses)]

    @property
    def prior(self) -> float:
        """Probability of a correct guess without a look at the scores."""
        return 1.0 - self.probability if self.answer == "out" else self.probability


@dataclass(frozen=True, slots=True)
class CanaryTest:
    """A test of guesses and its share of alpha."""

    kind: Kind
    guesses: int  # their number, fixed before; for bets the largest number
    alpha: float

    def __str__(self) -> str:
        return f"{self.kind} ({'up to ' * (self.kind == 'betting')}{self.guesses:,} guesses)"


_AT_ONCE = 64  # terms of a sum at once
LARGEST_LOG_ODDS = 700.0
"""Log-odds that doubles can hold."""
_STILL = 1e-13  # of the probability so far: steps that add less end the recursion, which then refutes nothing


@dataclass(frozen=True, slots=True)
class GuessLimit:
    """A line F(b) = e^log_odds · b + slip above the rate of correct guesses, given the rate of incorrect ones."""

    log_odds: float  # the largest of a correct guess; ε for a probability of 0.5
    delta: float  # what the line adds, for each canary

    @property
    def incorrect(self) -> float:
        """1 − σ: least probability of an incorrect guess without a slip, with all its digits."""
        return float(expit(-self.log_odds))

    def slip(self, canaries: int) -> float:
        """Largest probability that the guesses on so many canaries escape the limit."""
        return canaries * self.delta * self.incorrect


def line(epsilon: float, delta: float, *, probability: float = 0.5, both: bool) -> GuessLimit:
    """Return the limit of (ε, δ)-DP: for guesses of both kinds (a probability of 0.5), or only of "in".

    Guesses of "out" are guesses of "in" with 1 − π in place of π.
    """
    if both:
        return GuessLimit(epsilon, delta)
    return GuessLimit(epsilon + math.log(probability) - math.log1p(-probability), probability * delta)


def right_tail(right: int, guesses: int, limit: GuessLimit) -> float:
    """β = Pr[Bin(G, σ) ≥ v]: the probability of `right` or more right ones without slips."""
    return float(bdtr(guesses - right, guesses, limit.incorrect)) if right > 0 else 1.0


def count_tail(right: int, guesses: int, canaries: int, limit: GuessLimit) -> float:
    """Largest probability of `right` or more right ones among `guesses`, a number fixed before; attained."""
    tail = right_tail(right, guesses, limit)
    if limit.delta == 0.0 or tail == 1.0:
        return tail
    most = limit.incorrect * right / (1.0 - tail)
    factor = min(limit.incorrect, _tail_over_mass(right, guesses, limit, most) * (1.0 - tail) / right)
    return min(1.0, tail + canaries * limit.delta * factor)


def _tail_over_mass(right: int, guesses: int, limit: GuessLimit, most: float) -> float:
    """β/b(v) = Σ_k b(v + k)/b(v), which does not underflow as both of them do; or a part of it above `most`."""
    total, last, start, size = 1.0, 1.0, right, _AT_ONCE
    odds = math.exp(min(limit.log_odds, LARGEST_LOG_ODDS))
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


def steinke_tail(right: int, guesses: int, canaries: int, limit: GuessLimit) -> float:
    """The published bound on the same probability; 1 if it is above ½, since it need not hold there."""
    tail = right_tail(right, guesses, limit)
    if limit.delta == 0.0 or right <= 0:
        return tail if tail <= 0.5 else 1.0
    fewer = np.arange(1, right + 1)
    between = bdtr(guesses - right + fewer, guesses, limit.incorrect) - tail
    found = tail + 2.0 * canaries * limit.delta * float((between / fewer).max())
    return found if found <= 0.5 else 1.0


def is_impossible(tail: float, right: int, guesses: int, canaries: int, inverse: Callable[[float], float]) -> bool:
    """Whether Pr[V ≥ right] < `tail` for every mechanism that keeps the curve, of which `inverse` is F⁻¹."""
    if right <= 0:
        return False
    above = right * tail / canaries  # A_c
    below = (guesses - right) * tail / canaries  # canaries guessed wrong, V ≥ c
    enough = guesses / canaries * (1.0 + ROUNDING)
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
