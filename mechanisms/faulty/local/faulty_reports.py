"""Reports of the local model with wrong coins, without clipping, exposed too often, or remembered wrongly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from ....audit.claims.claim import ApproxDP, PureDP, check_number
from ...laws.laws import FiniteLaw
from ...laws.product import ProductLaw
from ...local.local_gaussian import Domain, LocalGaussianMechanism
from ...local.memoised_reports import MemoisedBits, bit_odds, log_odds_of_one, reported_once
from ...local.name_and_shame import NameAndShame
from ...local.randomised_response import RandomisedResponse, one_value, response_law
from ...local.unary_encoding import UnaryEncoding, unary_coins
from ...noise.gaussian import GaussianMechanism
from ...noise.gaussian_vector import VectorGaussianMechanism
from ...noise_samplers import Integers, draw_indices
from ...queries import identity
from ..flaw import Flaw
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class UnclippedLocalGaussian(Twin):
    """A person's value with noise for a domain to which the value is not clipped: no (ε, δ) holds.

    In practice, the sensitivity is taken as max − min of the data seen so far, or of what a sensor should deliver, and
    the value is sent unchanged. The bug shows as soon as a value leaves the domain, and more the farther it lies.
    """

    epsilon: float
    delta: float
    domain: Domain

    def __str__(self) -> str:
        return f"UnclippedLocalGaussian(epsilon={self.epsilon:g}, delta={self.delta:g}, domain={self.domain})"

    @property
    def runs_as(self) -> GaussianMechanism | VectorGaussianMechanism:
        clipped = LocalGaussianMechanism(self.epsilon, self.delta, self.domain)
        return replace(clipped.runs_as, query=identity)

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    truth = None


@dataclass(frozen=True, slots=True)
class TwiceExposed(Twin):
    """Each row exposed with probability 2δ where δ is claimed: (0, 2δ)-DP.

    In practice, δ is taken for a constant of the program and spent on each of the two halves of a report. The bug shows
    where a row is replaced, and in the number of people exposed.
    """

    delta: float

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0, 0.5, "each row is exposed with twice this probability", closed=False)

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # a field elsewhere
        """0: the claim allows for exposure only."""
        return 0.0

    @property
    def runs_as(self) -> NameAndShame:
        return NameAndShame(2 * self.delta)

    @property
    def claim(self) -> ApproxDP:
        return NameAndShame(self.delta).claim


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


@dataclass(frozen=True, slots=True)
class RedrawnMemo(Twin):
    """Reports of memoised bits whose permanent bits are drawn anew for each report: reports · ε₁ instead of ε∞.

    In practice, the permanent bits live in a cache that is lost with every restart or new installation. Every report
    then has independent noise, and the losses add up.

    References
    ----------
    Erlingsson, Pihur & Korolova (2014), RAPPOR (why the permanent bits are kept).
    """

    epsilon: float
    epsilon_first: float
    k: int = 4
    reports: int = 4

    def __post_init__(self) -> None:
        MemoisedBits(self.epsilon, self.epsilon_first, self.k, self.reports)  # refuses the same parameters

    @property
    def runs_as(self) -> FreshBits:
        odds = bit_odds(self.epsilon, self.epsilon_first, False)
        return FreshBits(*reported_once(unary_coins(self.epsilon, False), odds), self.k, self.reports)


@dataclass(frozen=True, slots=True)
class FreshBits:
    """Numbers of 1s in independent reports of k bits: reports times the log odds ratio of a reported 1."""

    kept: float
    added: float
    k: int
    reports: int

    @property
    def claim(self) -> PureDP:
        return PureDP(self.reports * log_odds_of_one((self.kept, self.added)))

    def law(self, dataset: Any) -> ProductLaw:
        value, ones = one_value(dataset, self.k), np.arange(self.reports + 1)
        ways = -gammaln(ones + 1) - gammaln(self.reports - ones + 1)
        one, zero = (
            FiniteLaw.from_log_weights(ways + ones * math.log(coin / (1 - coin))) for coin in (self.kept, self.added)
        )
        return ProductLaw(tuple(one if place == value else zero for place in range(self.k)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        chances = np.full(self.k, self.added)
        chances[one_value(dataset, self.k)] = self.kept
        return rng.binomial(self.reports, chances, (size, self.k)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class FirstReportForAll(Twin):
    """Several reports of memoised bits with the loss of a single one claimed for all: up to ε∞ instead of ε₁.

    In practice, the epsilon of one report is published, and the server collects a report a day. The loss grows from ε₁
    to ε∞ with the number of reports.

    References
    ----------
    Erlingsson, Pihur & Korolova (2014), RAPPOR (both epsilons).
    """

    epsilon: float
    epsilon_permanent: float
    k: int = 4
    reports: int = 4

    def __post_init__(self) -> None:
        MemoisedBits(self.epsilon_permanent, self.epsilon, self.k, self.reports)  # refuses the same parameters

    @property
    def runs_as(self) -> MemoisedBits:
        return MemoisedBits(self.epsilon_permanent, self.epsilon, self.k, self.reports)


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
