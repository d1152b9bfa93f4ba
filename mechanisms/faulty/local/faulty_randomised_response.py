"""Randomised response that keeps the truth too often."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....audit.claims.pure_approx_gaussian import PureDP
from ...local.randomised_response import RandomisedResponse
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class TruthAmongTheLies(Twin):
    """Keeps the value with probability p = e^ε/(e^ε + k − 1), and else draws from all k values, the true one too.

    In practice two descriptions are mixed: "answer truly with probability p, else flip a coin" needs a smaller p. The
    odds of the truth become 1 + k e^ε/(k − 1) to 1 instead of e^ε. Shows on every pair.
    """

    epsilon: float
    k: int = 2

    def __post_init__(self) -> None:
        RandomisedResponse(self.epsilon, self.k)  # what it should be: refuses the same

    @property
    def runs_as(self) -> RandomisedResponse:
        return RandomisedResponse(self.truth.epsilon, self.k)

    @property
    def truth(self) -> PureDP:
        # (p + (1−p)/k) / ((1−p)/k) = 1 + kp/(1−p), and p/(1−p) = e^ε/(k−1).
        return PureDP(math.log1p(self.k / (self.k - 1) * math.exp(self.epsilon)))


@dataclass(frozen=True, slots=True)
class BinaryOddsForManyValues(Twin):
    """Keeps the value with the binary probability e^ε/(1 + e^ε) although there are k values: ε + ln(k − 1).

    In practice the code for yes and no is extended to a menu and the formula stays. For k = 2 it is correct.
    """

    epsilon: float
    k: int = 5

    def __post_init__(self) -> None:
        RandomisedResponse(self.epsilon, self.k)  # what it should be: refuses the same

    @property
    def runs_as(self) -> RandomisedResponse:
        return RandomisedResponse(self.truth.epsilon, self.k)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon + math.log(self.k - 1))
