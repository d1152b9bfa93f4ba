"""Randomised response that keeps the truth too often."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...local.randomised_response import RandomisedResponse
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class TruthAmongTheLies(Twin):
    """The value with probability p = e^ε/(e^ε + k − 1), else any of all k values: ln(1 + k e^ε/(k − 1)) instead of ε.

    In practice, two descriptions are mixed: "answer truly with probability p, else flip a coin" needs a smaller p, as
    the coin may give the true value too. The bug shows on every pair.
    """

    epsilon: float
    k: int = 2

    def __post_init__(self) -> None:
        RandomisedResponse(self.epsilon, self.k)  # the right mechanism refuses the same parameters

    @property
    def runs_as(self) -> RandomisedResponse:
        # (p + (1−p)/k) / ((1−p)/k) = 1 + kp/(1−p), and p/(1−p) = e^ε/(k−1).
        return RandomisedResponse(math.log1p(self.k / (self.k - 1) * math.exp(self.epsilon)), self.k)


@dataclass(frozen=True, slots=True)
class BinaryOddsForManyValues(Twin):
    """The value with the binary probability e^ε/(1 + e^ε) although there are k values: ε + ln(k − 1).

    In practice, the code for yes and no is extended to a menu and the formula stays (Kairouz, Bonawitz & Ramage 2016
    give the formula for k values). For k = 2 it is correct.
    """

    epsilon: float
    k: int = 5

    def __post_init__(self) -> None:
        RandomisedResponse(self.epsilon, self.k)  # the right mechanism refuses the same parameters

    @property
    def runs_as(self) -> RandomisedResponse:
        return RandomisedResponse(self.epsilon + math.log(self.k - 1), self.k)
