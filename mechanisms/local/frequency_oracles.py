"""Frequency oracles: unary encoding, hashing, subset selection, Hadamard response, and memoised reports."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
from scipy.special import gammaln, logsumexp

from ...audit.claims.claim import PureDP, check_number
from ..distributions.distributions import FiniteDistribution, ProductDistribution, RowDistribution, SubsetDistribution
from ..distributions.divergences import DrawnByItsDistribution, DrawnWithDistribution, PureMechanism, RunsAs
from ..noise_samplers import Floats, Integers, draw_indices
from ..queries import check_count, check_value
from .randomised_response import binomial_distribution, one_value, response_distribution

__all__ = [
    "UnaryEncoding", "ThresholdedHistogram", "LocalHashing", "SubsetSelection", "HadamardResponse", "MemoisedBits",
    "MemoisedResponse",
]  # fmt: skip

# Unary encoding: a value as k bits, one of them 1, each reported at random.

MOST_EPSILON: Final = 30.0
"""Largest ε of coins that are given by their probabilities: 1 − p is then exact to a relative 10⁻⁹."""


def check_oracle(epsilon: float, k: int, most: float = math.inf) -> None:
    """Raise a `ClaimError` unless 0 < epsilon < most and there are two values or more."""
    check_number("epsilon", epsilon, 0, most, "the report of a value is random", closed=False)
    check_count("k", k, "values", least=2)


def bit_distribution(one: float) -> FiniteDistribution:
    """Return the distribution of a bit that is 1 with this probability."""
    return FiniteDistribution((math.log1p(-one) if one < 1 else -math.inf, math.log(one)))


def one_hot_distribution(value: int, k: int, one: FiniteDistribution, zero: FiniteDistribution) -> ProductDistribution:
    """Return the distribution of k independent places, `one` at the value and `zero` elsewhere."""
    return ProductDistribution(tuple(one if place == value else zero for place in range(k)))


def one_hot(value: int, k: int, coins: tuple[float, float]) -> Floats:
    """Return the first coin at the value and the second elsewhere, shape (k,)."""
    return np.where(np.arange(k) == value, *coins)


@dataclass(frozen=True, slots=True)
class BitReports:
    """A value in range(k) as k bits, reported independently: `kept` = Pr[1 after a 1], `added` = Pr[1 after a 0]."""

    kept: float
    added: float
    k: int

    def __post_init__(self) -> None:
        check_count("k", self.k, "values", least=2)

    @property
    def claim(self) -> PureDP:
        """The log odds ratio of a reported 1."""
        return PureDP(log_odds_of_one((self.kept, self.added)))

    def distribution(self, dataset: Any) -> ProductDistribution:
        return one_hot_distribution(
            one_value(dataset, self.k), self.k, bit_distribution(self.kept), bit_distribution(self.added)
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        chances = one_hot(one_value(dataset, self.k), self.k, (self.kept, self.added))
        return (rng.random((size, self.k)) < chances).astype(np.int64)


@dataclass(frozen=True, slots=True)
class UnaryEncoding(RunsAs, PureMechanism):
    """A value as k bits, one of them 1, each reported at random: epsilon-DP for epsilon below 30, attained.

    Symmetric unary encoding (SUE, basic RAPPOR) keeps every bit with probability e^{ε/2}/(1 + e^{ε/2}). Optimised unary
    encoding (OUE) keeps the 1 with probability ½ and turns a 0 into a 1 with probability 1/(1 + e^ε). The loss of two
    values is the log odds ratio of a reported 1, which is ε in both forms.

    Source: Wang, Blocki, Li & Jha (2017), Section 4; Erlingsson, Pihur & Korolova (2014).

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_epsilon
    >>> oracle = UnaryEncoding(epsilon=1, k=4, is_optimised=True)
    >>> print(oracle, round(exact_epsilon(oracle.distribution(0), oracle.distribution(3)), 12))
    UnaryEncoding(epsilon=1, k=4, is_optimised=True) 1.0
    """

    k: int
    is_optimised: bool = False

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k, MOST_EPSILON)

    @property
    def runs_as(self) -> BitReports:
        """The coins of the bits."""
        return BitReports(*unary_coins(self.epsilon, self.is_optimised), self.k)


def unary_coins(epsilon: float, is_optimised: bool) -> tuple[float, float]:
    """Return the probabilities of a reported 1 after a 1 and after a 0, for OUE or SUE."""
    if is_optimised:
        return 0.5, 1 / (1 + math.exp(epsilon))
    return 1 / (1 + math.exp(-epsilon / 2)), 1 / (1 + math.exp(epsilon / 2))


@functools.lru_cache(maxsize=64)
def best_threshold(epsilon: float) -> float:
    """Return the threshold in [½, 1] with the least variance of an estimated frequency near 0."""
    from scipy.optimize import minimize_scalar

    def variance(threshold: float) -> float:
        kept, added = _above(threshold - 1, epsilon), _above(threshold, epsilon)
        return added * (1 - added) / (kept - added) ** 2

    return float(minimize_scalar(variance, bounds=(0.5, 1.0), method="bounded").x)


def _above(excess: float, epsilon: float) -> float:
    """Return the probability that Laplace noise of scale 2/ε exceeds a number."""
    tail = math.exp(-abs(excess) * epsilon / 2) / 2
    return tail if excess > 0 else 1 - tail


@dataclass(frozen=True, slots=True)
class ThresholdedHistogram(RunsAs, PureMechanism):
    """Thresholding with histogram encoding (THE): which of k noisy bits exceed a threshold: epsilon-DP, not attained.

    A value is k bits, one of them 1, and each gets Laplace noise of scale 2/ε. The noisy bits without a threshold (SHE)
    are `HistogramMechanism` with sensitivity 2 on the list of one row. By default the threshold is the one in [½, 1]
    with the least variance of an estimate.

    Source: Wang, Blocki, Li & Jha (2017), Section 4.
    """

    k: int
    threshold: float | None = None

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k, MOST_EPSILON)
        if self.threshold is not None:
            check_number("threshold", self.threshold, -math.inf, math.inf, "noisy bits above it are 1", closed=False)

    def __str__(self) -> str:
        return f"ThresholdedHistogram(epsilon={self.epsilon:g}, k={self.k}, threshold={self._cut:.4g})"

    @property
    def _cut(self) -> float:
        return best_threshold(self.epsilon) if self.threshold is None else self.threshold

    @property
    def runs_as(self) -> BitReports:
        """The coins of the bits."""
        return BitReports(_above(self._cut - 1, self.epsilon), _above(self._cut, self.epsilon), self.k)


# Frequency oracles with one report of a few numbers: local hashing, subset selection, Hadamard response.

_MULTIPLIER: Final = 0x9E3779B97F4A7C15
"""Odd, near 2⁶⁴/φ; its powers modulo 2⁶⁴ are the multipliers."""


def hashed(value: int, n_hashes: int, g: int) -> Integers:
    """Return the value's hash in range(g) by each hash function, shape (n_hashes,).

    Multiply-shift hashing: function s multiplies by its own odd number modulo 2⁶⁴, and the upper half of the product
    selects one of g equal parts of its range (Dietzfelbinger et al. 1997, Journal of Algorithms 25).
    """
    word = 2**64
    multipliers = (pow(_MULTIPLIER, power, word) for power in range(1, n_hashes + 1))
    return np.array([(value + 1) * multiplier % word // 2**32 * g // 2**32 for multiplier in multipliers])


MOST_ROWS: Final = 2**16
"""Largest number of different reports of local hashing."""


@functools.lru_cache(maxsize=64)
def hashing_distribution(value: int, n_hashes: int, g: int, log_odds: float) -> RowDistribution:
    """Return the distribution of (hash function, report), the value's hash e^log_odds times as likely as another."""
    found = np.concatenate(
        [response_distribution(int(one), g, log_odds).log_probabilities for one in hashed(value, n_hashes, g)]
    )
    return RowDistribution(tuple(product(range(n_hashes), range(g))), tuple((found - math.log(n_hashes)).tolist()))


@dataclass(frozen=True, slots=True)
class LocalHashing(PureMechanism):
    """A random hash function, and the value's hash through randomised response: epsilon-DP.

    A pair of values attains the claim if a function tells them apart. Binary local hashing (BLH) has g = 2; optimised
    local hashing (OLH), the default, has g = e^ε + 1, rounded. The functions are a fixed family, as in fast local
    hashing.

    Source: Wang, Blocki, Li & Jha (2017), Section 4; Bassily & Smith (2015), Local, private, efficient protocols for
    succinct histograms; Cormode, Maddock & Maple (2021).
    """

    k: int
    g: int | None = None
    n_hashes: int = 16

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k)
        check_count("g", self.n_reports, "hashes", least=2)
        check_count("n_hashes", self.n_hashes, "hash functions")
        why = f"with {self.n_hashes} hash functions is too much for a table; use g * n_hashes <= {MOST_ROWS}."
        check_value("g", self.n_reports, self.n_reports * self.n_hashes <= MOST_ROWS, why)

    def __str__(self) -> str:
        return f"LocalHashing(epsilon={self.epsilon:g}, k={self.k}, g={self.n_reports}, n_hashes={self.n_hashes})"

    @property
    def n_reports(self) -> int:
        """Number of hashes g."""
        return round(math.exp(min(self.epsilon, 40.0))) + 1 if self.g is None else self.g

    def distribution(self, dataset: Any) -> RowDistribution:
        return hashing_distribution(one_value(dataset, self.k), self.n_hashes, self.n_reports, self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        hashes = hashed(one_value(dataset, self.k), self.n_hashes, self.n_reports)
        function = rng.integers(0, self.n_hashes, size)
        shift = draw_indices(
            response_distribution(0, self.n_reports, self.epsilon).probabilities, size, rng
        )  # 0: the truth
        return np.stack([function, (hashes[function] + shift) % self.n_reports], axis=1)


@dataclass(frozen=True, slots=True)
class SubsetSelection(PureMechanism):
    """A random subset of `size` values, as membership bits, that prefers the true one: epsilon-DP, attained.

    A subset with the value is e^ε times as likely as one without it. By default the size is k/(e^ε + 1), rounded, and
    at least 1.

    Source: Ye & Barg (2018); Wang, Huang, Wang, Nie, Xu, Yang, Li & Qiao (2016), Mutual information optimally local
    private discrete distribution estimation (k-subset mechanism).
    """

    k: int
    size: int | None = None

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k)
        check_count("size", self.n_members, "values")
        why = f"of k={self.k} values says nothing; use 1 <= size < k."
        check_value("size", self.n_members, self.n_members < self.k, why)

    def __str__(self) -> str:
        return f"SubsetSelection(epsilon={self.epsilon:g}, k={self.k}, size={self.n_members})"

    @property
    def n_members(self) -> int:
        """Number of values in the subset."""
        return best_size(self.epsilon, self.k) if self.size is None else self.size

    def distribution(self, dataset: Any) -> SubsetDistribution:
        return SubsetDistribution(one_value(dataset, self.k), self.k, self.n_members, self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        distribution = self.distribution(dataset)
        order = rng.random((size, self.k))  # the members have the lowest numbers
        has_value = rng.random(size) < math.exp(distribution.log_shares[1])
        order[:, distribution.value] = np.where(has_value, -1.0, 2.0)
        last = np.partition(order, self.n_members - 1, axis=1)[:, [self.n_members - 1]]
        return (order <= last).astype(np.int64)


def best_size(epsilon: float, k: int) -> int:
    """Return the subset size with the least variance: k/(e^ε + 1), rounded, and at least 1."""
    return max(1, round(k / (math.exp(min(epsilon, 700.0)) + 1)))


@dataclass(frozen=True, slots=True)
class HadamardResponse(DrawnByItsDistribution, PureMechanism):
    """A column in which the value's row of a Hadamard matrix is probably +1: epsilon-DP, attained by every pair.

    The matrix has K rows, the least power of two above k, and value v has row v + 1, half of whose entries are +1. A
    column with +1 is e^ε times as likely as one with −1.

    Source: Acharya, Sun & Zhang (2019), high privacy.
    """

    k: int

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k)

    def distribution(self, dataset: Any) -> FiniteDistribution:
        row = one_value(dataset, self.k) + 1
        is_minus = [(row & column).bit_count() % 2 for column in range(2 ** self.k.bit_length())]
        return FiniteDistribution.from_log_weights([-self.epsilon * minus for minus in is_minus])


# Repeated reports of one value with memoisation: a permanent response, and a fresh response to it in each report.


def log_odds_of_one(coins: tuple[float, float]) -> float:
    """Return the log odds ratio of a reported 1 after a 1 and after a 0; infinite if a bit is certain."""
    one, zero = coins
    if one == 1 or zero == 0:
        return math.inf
    return math.log(one / zero) + math.log1p(-zero) - math.log1p(-one)


def reported_once(coins: tuple[float, float], log_odds: float) -> tuple[float, float]:
    """Return the coins of one report: a permanent bit with these coins, kept with odds e^log_odds."""
    kept = 1 / (1 + math.exp(-log_odds))
    one, zero = (coin * kept + (1 - coin) * (1 - kept) for coin in coins)
    return one, zero


@functools.lru_cache(maxsize=64)
def bit_odds(epsilon_permanent: float, epsilon_first: float, is_optimised: bool) -> float:
    """Return the log-odds of the second coin of a bit with which one report of k bits loses `epsilon_first`."""
    coins = unary_coins(epsilon_permanent, is_optimised)
    return _odds(lambda odds: log_odds_of_one(reported_once(coins, odds)), epsilon_first)


@functools.lru_cache(maxsize=64)
def response_odds(epsilon_permanent: float, epsilon_first: float, k: int) -> float:
    """Return the log-odds of the second response with which one report of k values loses `epsilon_first`."""
    first = response_distribution(0, k, epsilon_permanent).probabilities

    def loss(odds: float) -> float:
        second = response_distribution(0, k, odds).probabilities
        same = first[0] * second[0] + (k - 1) * first[1] * second[1]
        return math.log(same * (k - 1) / (1 - same))

    return _odds(loss, epsilon_first)


def _odds(loss: Callable[[float], float], wanted: float) -> float:
    """Return the log-odds at which an increasing loss has the wanted value."""
    from scipy.optimize import brentq

    upper = 1.0
    while loss(upper) < wanted:
        upper *= 2
    return float(brentq(lambda odds: loss(odds) - wanted, 0.0, upper, xtol=1e-14, rtol=1e-14))


@dataclass(frozen=True, slots=True)
class _Memoised(DrawnWithDistribution):
    """A permanent response that loses `epsilon_permanent`, of which each report loses `epsilon_first` at most."""

    epsilon_permanent: float
    epsilon_first: float
    k: int
    reports: int = 1

    def __post_init__(self) -> None:
        check_oracle(self.epsilon_permanent, self.k, MOST_EPSILON)
        check_number("epsilon_first", self.epsilon_first, 0, math.inf, "the loss of one report", closed=False)
        check_count("reports", self.reports, "reports")
        why = f"with epsilon_permanent={self.epsilon_permanent!r} is too large; use epsilon_first < epsilon_permanent."
        check_value("epsilon_first", self.epsilon_first, self.epsilon_first < self.epsilon_permanent, why)

    @property
    def epsilon(self) -> float:
        """`epsilon_first` for one report, `epsilon_permanent` for more."""
        return self.epsilon_first if self.reports == 1 else self.epsilon_permanent

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class MemoisedBits(_Memoised):
    """Reports of k memoised bits (RAPPOR): `epsilon_first`-DP for one, `epsilon_permanent`-DP for any number.

    The permanent step is unary encoding at `epsilon_permanent`, drawn once; `is_optimised` takes OUE (L-OSUE) instead
    of SUE (L-SUE, basic RAPPOR). Every report keeps each permanent bit with the same probability. The output is the
    number of reported 1s at each place, which is a sufficient statistic. Every pair of values is a worst pair; the loss
    of many reports tends to `epsilon_permanent`.

    Source: Erlingsson, Pihur & Korolova (2014); Arcolezi, Couchot, Al Bouna & Xiao (2021).
    """

    is_optimised: bool = False

    def __str__(self) -> str:
        epsilons = f"{self.epsilon_permanent:g}, {self.epsilon_first:g}"
        return f"MemoisedBits({epsilons}, k={self.k}, reports={self.reports}, is_optimised={self.is_optimised})"

    def distribution(self, dataset: Any) -> ProductDistribution:
        """The exact distribution of the numbers of 1s; each is a mixture of two binomials."""
        odds = bit_odds(self.epsilon_permanent, self.epsilon_first, self.is_optimised)
        after = [binomial_distribution(self.reports, each).log_probabilities for each in (-odds, odds)]
        one, zero = (
            FiniteDistribution.from_log_weights(logsumexp(after, axis=0, b=[[1 - coin], [coin]]))
            for coin in self._coins
        )
        return one_hot_distribution(one_value(dataset, self.k), self.k, one, zero)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        chances = one_hot(one_value(dataset, self.k), self.k, self._coins)
        kept = 1 / (1 + math.exp(-bit_odds(self.epsilon_permanent, self.epsilon_first, self.is_optimised)))
        memory = rng.random((size, self.k)) < chances
        return rng.binomial(self.reports, np.where(memory, kept, 1 - kept)).astype(np.int64)

    @property
    def _coins(self) -> tuple[float, float]:
        return unary_coins(self.epsilon_permanent, self.is_optimised)


@dataclass(frozen=True, slots=True)
class MemoisedResponse(_Memoised):
    """Reports of a memoised value (L-GRR): `epsilon_first`-DP for one, `epsilon_permanent`-DP for any number.

    The permanent step is randomised response of k values, drawn once, and every report is a randomised response to it.
    The output is how often each value was reported, which is a sufficient statistic. Every pair of values is a worst
    pair.

    Source: Arcolezi, Couchot, Al Bouna & Xiao (2021).
    """

    def __str__(self) -> str:
        epsilons = f"{self.epsilon_permanent:g}, {self.epsilon_first:g}"
        return f"MemoisedResponse({epsilons}, k={self.k}, reports={self.reports})"

    def distribution(self, dataset: Any) -> RowDistribution:
        """The exact distribution of the numbers of reports; a mixture of k multinomials."""
        first = response_distribution(one_value(dataset, self.k), self.k, self.epsilon_permanent).log_probabilities
        rows = tuple(row for row in product(range(self.reports + 1), repeat=self.k) if sum(row) == self.reports)
        counts = np.array(rows)
        second = np.array(
            [response_distribution(memory, self.k, self._odds).log_probabilities for memory in range(self.k)]
        )
        ways = gammaln(self.reports + 1) - gammaln(counts + 1).sum(axis=1)
        found = ways + logsumexp(counts @ second.T + np.array(first), axis=1)
        return RowDistribution(rows, tuple(found.tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        value = one_value(dataset, self.k)
        memory = draw_indices(response_distribution(value, self.k, self.epsilon_permanent).probabilities, size, rng)
        second = np.array([response_distribution(each, self.k, self._odds).probabilities for each in range(self.k)])
        return rng.multinomial(self.reports, second[memory]).astype(np.int64)

    @property
    def _odds(self) -> float:
        return response_odds(self.epsilon_permanent, self.epsilon_first, self.k)
