"""Randomised response with a wrong coin, for some answers only, remembered, or bit by bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.claim import check_number
from ....audit.claims.pure_approx_gaussian import PureDP
from ...laws.laws import FiniteLaw
from ...laws.product import ProductLaw
from ...local.randomised_response import RandomisedResponse, one_value, response_law
from ...noise_samplers import Integers, draw_indices
from ..flaw import Flaw
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class BiasedCoinResponse(Flaw):
    """Warner's two coins, of which the second says yes with probability `bias` and not ½: more than ln 3.

    In practice the forced answer is yes less often, so that the estimate is less noisy. A yes is then the truth more
    often: the loss is ln(1 + 1/bias) for bias ≤ ½.
    """

    bias: float = 0.25

    def __post_init__(self) -> None:
        check_number("bias", self.bias, 0, 1, "a coin's probability of yes", closed=False)

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # a field elsewhere
        """ln 3, as for two fair coins."""
        return math.log(3)

    @property
    def truth(self) -> PureDP:
        return PureDP(math.log1p(1 / min(self.bias, 1 - self.bias)))

    def law(self, dataset: Any) -> FiniteLaw:
        """The output's exact law: 0 for no, 1 for yes."""
        yes = 0.5 * one_value(dataset, 2) + 0.5 * self.bias
        return FiniteLaw((math.log1p(-yes), math.log(yes)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent bits, shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)


@dataclass(frozen=True, slots=True)
class OnlyYesRandomised(Flaw):
    """Randomised response for those who would say yes, while a no is a no: no finite epsilon.

    In practice only the sensitive answer seems to need protection. A yes then comes from a yes.
    """

    epsilon: float

    def law(self, dataset: Any) -> FiniteLaw:
        """The output's exact law: 0 for no, 1 for yes."""
        return response_law(1, 2, self.epsilon) if one_value(dataset, 2) else FiniteLaw((0.0, -math.inf))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent bits, shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)


@dataclass(frozen=True, slots=True)
class RememberedResponse(Flaw):
    """A person's bits over time, each randomised once a value and then repeated: no finite epsilon.

    In practice a randomised answer is memoised so that repeated questions gain nothing, which is right as long as the
    value stays. When it changes, so may the answer; when it does not, the answer never changes. With `is_remembered`
    false every report is drawn anew at its share of epsilon, and the claim holds.

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
class OneHotBits:
    """A value in range(k) as k bits, one of them 1, each through randomised response at `epsilon_each`."""

    epsilon_each: float
    k: int
    claim: PureDP

    def law(self, dataset: Any) -> ProductLaw:
        return ProductLaw(tuple(response_law(bit, 2, self.epsilon_each) for bit in self._bits(dataset)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        each = RandomisedResponse(self.epsilon_each)
        return np.stack([each.sample(bit, size, rng) for bit in self._bits(dataset)], axis=1)

    def _bits(self, dataset: Any) -> list[int]:
        value = one_value(dataset, self.k)
        return [int(j == value) for j in range(self.k)]


@dataclass(frozen=True, slots=True)
class OneHotAtFullEpsilon(Twin):
    """A value as k bits, one of them 1, each randomised at epsilon: 2·epsilon, as two bits change.

    In practice "each bit is epsilon-DP" is read as a statement of the whole report. Half of epsilon for each bit is
    right.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation (unary encoding).
    """

    epsilon: float
    k: int = 3

    def __post_init__(self) -> None:
        RandomisedResponse(self.epsilon, self.k)  # refuses the same

    @property
    def runs_as(self) -> OneHotBits:
        return OneHotBits(self.epsilon, self.k, self.claim)

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def truth(self) -> PureDP:
        return PureDP(2 * self.epsilon)
