"""Reports and frequency oracles of the local model with wrong coins, sizes or memory, or that say too much.

References
----------
Acharya, Sun & Zhang (2019), Hadamard response: estimating distributions privately, efficiently, and with little
communication.
Arcolezi & Gambs (2024), Revealing the true cost of locally differentially private protocols: an auditing perspective,
found `TrueBitSetTwice`; pure-LDP, issue 11, describes the fix (version 1.2.0).
Ding, Kulkarni & Yekhanin (2017), Collecting telemetry data privately, on memoisation and values that change.
Erlingsson, Pihur & Korolova (2014), RAPPOR: both epsilons, why the permanent bits are kept, and a 1 that is reported as
0 with probability f/2.
Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, Section 4: unary and
histogram encoding, and the probability e^ε/(e^ε + g − 1) of local hashing.
Ye & Barg (2018), Optimal schemes for discrete distribution estimation under locally differential privacy (reports are
sets).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from scipy.special import gammaln

from ...audit.claims.claim import ApproxDP, PureDP, check_number
from ...audit.errors import ClaimError
from ..distributions.distributions import FiniteDistribution, ProductDistribution, RowDistribution
from ..distributions.divergences import DrawnByItsDistribution
from ..local.frequency_oracles import (
    BitReports,
    HadamardResponse,
    LocalHashing,
    MemoisedBits,
    SubsetSelection,
    ThresholdedHistogram,
    UnaryEncoding,
    best_size,
    bit_odds,
    hashed,
    log_odds_of_one,
    reported_once,
    unary_coins,
)
from ..local.randomised_response import (
    Domain,
    LocalGaussianMechanism,
    NameAndShame,
    RandomisedResponse,
    one_value,
    response_distribution,
)
from ..noise.gaussian import GaussianMechanism, VectorGaussianMechanism
from ..noise_samplers import Integers, draw_indices
from ..queries import identity
from .flaw import Flaw, Variant

__all__ = [
    "UnclippedLocalGaussian", "TruthAmongTheLies", "BinaryOddsForManyValues", "TwiceExposed", "BiasedCoinResponse",
    "OnlyYesRandomised", "RememberedResponse", "OneHotAtFullEpsilon", "MixedUnaryCoins", "TrueBitSetTwice",
    "OnesNeverCleared", "HalfNoiseThreshold", "BinaryHashingOdds", "HashChosenByTheValue", "SubsetOfWrongSize",
    "SubsetInOrder", "HadamardOrAnyColumn", "RedrawnMemo", "FirstReportForAll",
]  # fmt: skip

# Reports of the local model with wrong coins, without clipping, exposed too often, or remembered wrongly.


@dataclass(frozen=True, slots=True)
class UnclippedLocalGaussian(Variant):
    """A person's value with noise for a domain to which the value is not clipped: no (ε, δ) holds.

    In practice, the sensitivity is taken as max − min of the data seen so far, or of what a sensor should deliver, and
    the value is sent unchanged. The bug shows as soon as a value leaves the domain, and more the farther it lies.
    """

    epsilon: float
    delta: float
    domain: Domain
    claim = property(lambda t: ApproxDP(t.epsilon, t.delta))
    truth = None

    def __str__(self) -> str:
        return f"UnclippedLocalGaussian(epsilon={self.epsilon:g}, delta={self.delta:g}, domain={self.domain})"

    @property
    def runs_as(self) -> GaussianMechanism | VectorGaussianMechanism:
        clipped = LocalGaussianMechanism(self.epsilon, self.delta, self.domain)
        return replace(clipped.runs_as, query=identity)


@dataclass(frozen=True, slots=True)
class TwiceExposed(Variant):
    """Each row exposed with probability 2δ where δ is claimed: (0, 2δ)-DP.

    In practice, δ is taken for a constant of the program and spent on each of the two halves of a report. The bug shows
    where a row is replaced, and in the number of people exposed.
    """

    delta: float
    runs_as = property(lambda t: NameAndShame(2 * t.delta))
    claim = property(lambda t: NameAndShame(t.delta).claim)

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0, 0.5, "each row is exposed with twice this probability", closed=False)

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # a field elsewhere
        """0: the claim allows for exposure only."""
        return 0.0


@dataclass(frozen=True, slots=True)
class TruthAmongTheLies(Variant):
    """The value with probability p = e^ε/(e^ε + k − 1), else any of all k values: ln(1 + k e^ε/(k − 1)) instead of ε.

    In practice, two descriptions are mixed: "answer truly with probability p, else flip a coin" needs a smaller p, as
    the coin may give the true value too. The bug shows on every pair.
    """

    epsilon: float
    k: int = 2
    right = property(lambda t: RandomisedResponse(t.epsilon, t.k))
    # (p + (1−p)/k) / ((1−p)/k) = 1 + kp/(1−p), and p/(1−p) = e^ε/(k−1).
    runs_as = property(lambda t: RandomisedResponse(math.log1p(t.k / (t.k - 1) * math.exp(t.epsilon)), t.k))


@dataclass(frozen=True, slots=True)
class BinaryOddsForManyValues(Variant):
    """The value with the binary probability e^ε/(1 + e^ε) although there are k values: ε + ln(k − 1).

    In practice, the code for yes and no is extended to a menu and the formula stays (Kairouz, Bonawitz & Ramage 2016
    give the formula for k values). For k = 2 it is correct.
    """

    epsilon: float
    k: int = 5
    right = property(lambda t: RandomisedResponse(t.epsilon, t.k))
    runs_as = property(lambda t: RandomisedResponse(t.epsilon + math.log(t.k - 1), t.k))


@dataclass(frozen=True, slots=True)
class RedrawnMemo(Variant):
    """Reports of memoised bits whose permanent bits are drawn anew for each report: reports · ε₁ instead of ε∞.

    In practice, the permanent bits live in a cache that is lost with every restart or new installation. Every report
    then has independent noise, and the losses add up.
    """

    epsilon: float
    epsilon_first: float
    k: int = 4
    reports: int = 4
    right = property(lambda t: MemoisedBits(t.epsilon, t.epsilon_first, t.k, t.reports))

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
    claim = property(lambda t: PureDP(t.reports * log_odds_of_one((t.kept, t.added))))

    def distribution(self, dataset: Any) -> ProductDistribution:
        value, ones = one_value(dataset, self.k), np.arange(self.reports + 1)
        ways = -gammaln(ones + 1) - gammaln(self.reports - ones + 1)
        one, zero = (
            FiniteDistribution.from_log_weights(ways + ones * math.log(coin / (1 - coin)))
            for coin in (self.kept, self.added)
        )
        return ProductDistribution(tuple(one if place == value else zero for place in range(self.k)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        chances = np.full(self.k, self.added)
        chances[one_value(dataset, self.k)] = self.kept
        return rng.binomial(self.reports, chances, (size, self.k)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class FirstReportForAll(Variant):
    """Several reports of memoised bits with the loss of a single one claimed for all: up to ε∞ instead of ε₁.

    In practice, the epsilon of one report is published, and the server collects a report a day. The loss grows from ε₁
    to ε∞ with the number of reports.
    """

    epsilon: float
    epsilon_permanent: float
    k: int = 4
    reports: int = 4
    right = property(lambda t: MemoisedBits(t.epsilon_permanent, t.epsilon, t.k, t.reports))
    runs_as = property(lambda t: MemoisedBits(t.epsilon_permanent, t.epsilon, t.k, t.reports))


@dataclass(frozen=True, slots=True)
class BiasedCoinResponse(DrawnByItsDistribution, Flaw):
    """Warner's two coins, the second of which says yes with probability `bias`: ln(1 + 1/bias), ln 3 for bias ½.

    In practice, a forced yes is made rarer so that the estimate is less noisy; Warner (1965) has fair coins. A yes is
    then the truth more often. The stated loss is for bias ≤ ½; for a larger bias, 1 − bias takes its place.
    """

    bias: float = 0.25
    truth = property(lambda t: PureDP(math.log1p(1 / min(t.bias, 1 - t.bias))))

    def __post_init__(self) -> None:
        check_number("bias", self.bias, 0, 1, "a coin's probability of yes", closed=False)

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # a field elsewhere
        """ln 3, the loss of two fair coins."""
        return math.log(3)

    def distribution(self, dataset: Any) -> FiniteDistribution:
        """Exact distribution of the output: 0 for no, 1 for yes."""
        yes = 0.5 * one_value(dataset, 2) + 0.5 * self.bias
        return FiniteDistribution((math.log1p(-yes), math.log(yes)))


@dataclass(frozen=True, slots=True)
class OnlyYesRandomised(DrawnByItsDistribution, Flaw):
    """Randomised response for a yes, while a no is sent unchanged: no finite ε.

    In practice, only the sensitive answer seems to need protection. A yes then always comes from a yes.
    """

    epsilon: float

    def distribution(self, dataset: Any) -> FiniteDistribution:
        """Exact distribution of the output: 0 for no, 1 for yes."""
        return (
            response_distribution(1, 2, self.epsilon) if one_value(dataset, 2) else FiniteDistribution((0.0, -math.inf))
        )


@dataclass(frozen=True, slots=True)
class RememberedResponse(Flaw):
    """A person's bits over time, each value randomised once and its response repeated: no finite ε.

    In practice, a randomised answer is memoised so that repeated questions gain nothing (Ding, Kulkarni & Yekhanin
    2017). That is right while the value stays the same. When the value changes, the answer may change; when it does
    not, the answer never changes. With `is_remembered` false every report is drawn anew at its share of ε, and the
    claim holds.
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
class OneHotAtFullEpsilon(Variant):
    """A value as k bits, one of them 1, each randomised at ε: 2ε, as two bits change.

    In practice, "each bit is ε-DP" is read as a statement about the whole report (Wang, Blocki, Li & Jha 2017). ε/2 for
    each bit is right.
    """

    epsilon: float
    k: int = 3
    right = property(lambda t: RandomisedResponse(t.epsilon, t.k))
    runs_as = property(lambda t: UnaryEncoding(2 * t.epsilon, t.k))


# Frequency oracles with the coins of another protocol, a wrong size, or a report that says more than it should.


@dataclass(frozen=True, slots=True)
class MixedUnaryCoins(Variant):
    """Unary encoding with the 1 kept as in the symmetric form and the 0 as in the optimised one: 3ε/2.

    In practice, a switch between SUE and OUE sets only one of the two probabilities. The 1 of SUE adds ε/2 to the log
    odds ratio, and the 0 of OUE adds ε.
    """

    epsilon: float
    k: int = 4
    right = property(lambda t: UnaryEncoding(t.epsilon, t.k))
    runs_as = property(lambda t: BitReports(unary_coins(t.epsilon, False)[0], unary_coins(t.epsilon, True)[1], t.k))


@dataclass(frozen=True, slots=True)
class TrueBitSetTwice(Variant):
    """Unary encoding that sets the true bit with probability p but does not clear it: ln(1 + p/(q(1 − p))).

    In practice, all k bits are drawn at once as if they were 0, and then the true bit is set to 1 with probability p.
    It is 1 with probability p + (1 − p)q instead of p. For ε = 1, OUE loses 1.551 and SUE 1.680.
    """

    epsilon: float
    k: int = 4
    is_optimised: bool = True
    right = property(lambda t: UnaryEncoding(t.epsilon, t.k))

    @property
    def runs_as(self) -> BitReports:
        kept, added = unary_coins(self.epsilon, self.is_optimised)
        return BitReports(kept + (1 - kept) * added, added, self.k)


@dataclass(frozen=True, slots=True)
class OnesNeverCleared(Variant):
    """Unary encoding that turns 0s into 1s at random but keeps every 1: no finite ε.

    In practice, a loop sets the bits that are to be 1 and leaves the others as they are, in the array that holds the
    encoded value. A value whose bit is reported as 0 is then certainly not the true one.
    """

    epsilon: float
    k: int = 4
    right = property(lambda t: UnaryEncoding(t.epsilon, t.k))
    truth = None
    runs_as = property(lambda t: BitReports(1.0, unary_coins(t.epsilon, False)[1], t.k))


@dataclass(frozen=True, slots=True)
class HalfNoiseThreshold(Variant):
    """Thresholded histogram encoding with Laplace noise of scale 1/ε for 2/ε: nearly twice the loss.

    In practice, the sensitivity of a one-hot vector is taken to be 1, as of a count when a row is added. Replacing the
    value changes two bits, so it is 2.
    """

    epsilon: float
    k: int = 4
    runs_as = property(lambda t: ThresholdedHistogram(2 * t.epsilon, t.k))


@dataclass(frozen=True, slots=True)
class BinaryHashingOdds(Variant):
    """Optimised local hashing whose report keeps the hash with the odds of binary hashing: ε + ln(g − 1).

    In practice, binary local hashing is extended to g hashes and the probability e^ε/(1 + e^ε) stays.
    """

    epsilon: float
    k: int = 8
    g: int | None = None
    right = property(lambda t: LocalHashing(t.epsilon, t.k, t.g))

    @property
    def runs_as(self) -> LocalHashing:
        g = LocalHashing(self.epsilon, self.k, self.g).n_reports
        return LocalHashing(self.epsilon + math.log(g - 1), self.k, g)


@dataclass(frozen=True, slots=True)
class HashChosenByTheValue(Flaw):
    """Local hashing whose hash function is chosen by the value: no finite ε.

    In practice, the random seed of the hash function is derived from the value, so that a run can be repeated. The seed
    is part of the report, and says which value was hashed.
    """

    epsilon: float
    k: int = 8

    def __post_init__(self) -> None:
        LocalHashing(self.epsilon, self.k)  # the right mechanism refuses the same parameters

    def distribution(self, dataset: Any) -> RowDistribution:
        """Exact distribution of the rows (hash function, report)."""
        value = one_value(dataset, self.k)
        rows = tuple((function, report) for function in range(self.k) for report in range(self._right.n_reports))
        found = np.full((self.k, self._right.n_reports), -np.inf)
        found[value] = self._report_distribution(value).log_probabilities
        return RowDistribution(rows, tuple(found.ravel().tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent rows (hash function, report), shape (size, 2), int64."""
        value = one_value(dataset, self.k)
        report = draw_indices(self._report_distribution(value).probabilities, size, rng)
        return np.stack([np.full(size, value), report], axis=1)

    @property
    def _right(self) -> LocalHashing:
        return LocalHashing(self.epsilon, self.k, n_hashes=self.k)

    def _report_distribution(self, value: int) -> FiniteDistribution:
        truth = int(hashed(value, self.k, self._right.n_reports)[value])
        return response_distribution(truth, self._right.n_reports, self.epsilon)


@dataclass(frozen=True, slots=True)
class SubsetOfWrongSize(Variant):
    """Subset selection that keeps the value as for the best size ω but draws a smaller set: ε + .539 for k = 10.

    In practice, ω = k/(e^ε + 1) is rounded up in one place and down in another. With ω′ values in the set, the loss is
    ε + ln(ω(k − ω′)/(ω′(k − ω))).
    """

    epsilon: float
    k: int = 10
    size: int = 2

    def __post_init__(self) -> None:
        SubsetSelection(self.epsilon, self.k, self.size)  # the right mechanism refuses the same parameters
        best = best_size(self.epsilon, self.k)
        if self.size >= best:
            raise ClaimError(f"size={self.size} keeps the claim; use a size below the best, {best}.", size=self.size)

    @property
    def runs_as(self) -> SubsetSelection:
        best = best_size(self.epsilon, self.k)
        excess = math.log(best * (self.k - self.size) / (self.size * (self.k - best)))
        return SubsetSelection(self.epsilon + excess, self.k, self.size)


@dataclass(frozen=True, slots=True)
class SubsetInOrder(Flaw):
    """Subset selection whose list begins with the true value if the set has it: no finite ε.

    In practice, the list is built with the kept value in front and sent as it is. A value in another place is then
    certainly not the true one. As a set, the report loses ε; sorting or shuffling the list is right.
    """

    epsilon: float
    k: int = 5
    size: int = 3

    def __post_init__(self) -> None:
        self._as_set  # noqa: B018  # refuses the same parameters

    @property
    def _as_set(self) -> SubsetSelection:
        return SubsetSelection(self.epsilon, self.k, self.size)

    def distribution(self, dataset: Any) -> RowDistribution:
        """Exact distribution of the lists."""
        value = one_value(dataset, self.k)
        lacking, having = self._as_set.distribution(value).log_shares
        lacking -= math.log(math.perm(self.k - 1, self.size))
        having -= math.log(math.perm(self.k - 1, self.size - 1))
        rows = tuple(permutations(range(self.k), self.size))
        found = (having if row[0] == value else -math.inf if value in row else lacking for row in rows)
        return RowDistribution(rows, tuple(found))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent lists, shape (size, `self.size`), int64."""
        value = one_value(dataset, self.k)
        has_value = rng.random(size) < math.exp(self._as_set.distribution(value).log_shares[1])
        order = rng.random((size, self.k))
        order[:, value] = np.where(has_value, -1.0, 2.0)
        return np.argsort(order, axis=1)[:, : self.size].astype(np.int64)


@dataclass(frozen=True, slots=True)
class HadamardOrAnyColumn(Variant):
    """Hadamard response that draws any column, not one with −1, when it does not draw one with +1: ln(1 + 2e^ε).

    In practice, "a column with +1 with probability e^ε/(1 + e^ε), otherwise at random" is read as any column, which may
    have +1 too.
    """

    epsilon: float
    k: int = 7
    right = property(lambda t: HadamardResponse(t.epsilon, t.k))
    # With p = e^ε/(1 + e^ε): (p + (1 − p)/2)/((1 − p)/2) = 1 + 2p/(1 − p).
    runs_as = property(lambda t: HadamardResponse(math.log1p(2 * math.exp(t.epsilon)), t.k))
