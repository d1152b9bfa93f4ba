"""How often a claim lets an observer guess right whether a canary was included.

A coin of its own includes each canary with probability π, ½ unless stated. For (ε, δ)-DP towards a change of any one
canary, an observer who says "in" is right with odds of at most e^ε π/(1 − π), except for a slip that δ pays for:

    Pr[guess in and canary in] ≤ F(Pr[guess in and canary out]),   F(b) = e^ε π/(1 − π) · b + π δ.

With fair coins the same F, with δ in place of π δ, holds for guesses of both kinds together, since the means of both
directions are taken. A claim given by a concave boundary B has F(b) = π B(b/(1 − π)) and F(b) = B(b).

Proof: docs/proofs/canaries.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import expit


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A line F(b) = e^log_odds · b + slip above the rate of right guesses, given the rate of wrong ones.

    Parameters
    ----------
    log_odds : float
        Logarithm of the largest odds of a right guess; ε for fair coins.
    delta : float
        What the line adds, for each canary.
    """

    log_odds: float
    delta: float

    @property
    def right(self) -> float:
        """Largest probability of a right guess without a slip, σ."""
        return float(expit(self.log_odds))

    @property
    def wrong(self) -> float:
        """1 − σ, with all its digits."""
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
