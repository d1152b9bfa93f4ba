"""Randomised response with a wrong coin, for some answers only, remembered, or bit by bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.claim import PureDP, check_number
from ...laws.laws import FiniteLaw
from ...local.randomised_response import RandomisedResponse, one_value, response_law
from ...local.unary_encoding import UnaryEncoding
from ...noise_samplers import Integers, draw_indices
from ..flaw import Flaw
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class BiasedCoinResponse(Flaw):
    """Warner's two coins, the second of which says yes with probability `bias`: ln(1 + 1/bias), ln 3 for bias ½.

    In practice, a forced yes is made rarer so that the estimate is less noisy; Warner (1965) has fair coins. A yes is
    then the truth more often. The stated loss is for bias ≤ ½; for a larger bias, 1 − bias takes its place.
    """

    bias: float = 0.25

    def __post_init__(self) -> None:
        check_number("bias", self.bias, 0, 1, "a coin's probability of yes", closed=False)

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # a field elsewhere
        """ln 3, the loss of two fair coins."""
        return math.log(3)

    @property
    def truth(self) -> PureDP:
        return PureDP(math.log1p(1 / min(self.bias, 1 - self.bias)))

    def law(self, dataset: Any) -> FiniteLaw:
        """Exact law of the output: 0 for no, 1 for yes."""
        yes = 0.5 * one_value(dataset, 2) + 0.5 * self.bias
        return FiniteLaw((math.log1p(-yes), math.log(yes)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent bits, shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)


@dataclass(frozen=True, slots=True)
class OnlyYesRandomised(Flaw):
    """Randomised response for a yes, while a no is sent unchanged: no finite ε.

    In practice, only the sensitive answer seems to need protection. A yes then always comes from a yes.
    """

    epsilon: float

    def law(self, dataset: Any) -> FiniteLaw:
        """Exact law of the output: 0 for no, 1 for yes."""
        return response_law(1, 2, self.epsilon) if one_value(dataset, 2) else FiniteLaw((0.0, -math.inf))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent bits, shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)


@dataclass(frozen=True, slots=True)
class RememberedResponse(Flaw):
    """A person's bits over time, each value randomised once and its response repeated: no finite ε.

    In practice, a randomised answer is memoised so that repeated questions gain nothing (Ding, Kulkarni & Yekhanin
    2017). That is right while the value stays the same. When the value changes, the answer may change; when it does
    not, the answer never changes. With `is_remembered` false every report is drawn anew at its share of ε, and the
    claim holds.

    References
    ----------
    Ding, Kulkarni & Yekhanin (2017), Collecting telemetry data privately, on memoisation and values that change.
    """

    epsilon: float
    is_remembered: bool = True

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent rows of bits, shape (size, n_reports), int64."""
        values = [one_value(value, 2) for value in dataset]
        if not self.is_remembered:
            each = RandomisedResponse(self.epsilon / len(values))
            return np.stack([each.sample(value, size, rng) for value in values], axis=1)
        memory = [RandomisedResponse(self.epsilon).sample(value, size, rng) for value in range(2)]
        return np.stack([memory[value] for value in values], axis=1)


@dataclass(frozen=True, slots=True)
class OneHotAtFullEpsilon(Twin):
    """A value as k bits, one of them 1, each randomised at ε: 2ε, as two bits change.

    In practice, "each bit is ε-DP" is read as a statement about the whole report (Wang, Blocki, Li & Jha 2017). ε/2 for
    each bit is right.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation (unary encoding).
    """

    epsilon: float
    k: int = 3

    def __post_init__(self) -> None:
        RandomisedResponse(self.epsilon, self.k)  # the right mechanism refuses the same parameters

    @property
    def runs_as(self) -> UnaryEncoding:
        return UnaryEncoding(2 * self.epsilon, self.k)
