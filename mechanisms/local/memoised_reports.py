"""Repeated reports of one value with memoisation: a permanent response, and a fresh response to it in each report."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from ...audit.claims.claim import PureDP, check_number
from ...audit.errors import ClaimError
from ..laws.laws import FiniteLaw
from ..laws.product import ProductLaw
from ..laws.row_law import RowLaw
from ..noise_samplers import Integers, draw_indices
from ..parameter_checks import check_count
from .randomised_response import one_value, response_law
from .unary_encoding import MOST_EPSILON, check_oracle, unary_coins


def log_odds_of_one(coins: tuple[float, float]) -> float:
    """Return the log odds ratio of a reported 1 after a 1 and after a 0."""
    one, zero = coins
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
    first = response_law(0, k, epsilon_permanent).probabilities

    def loss(odds: float) -> float:
        second = response_law(0, k, odds).probabilities
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
class _Memoised:
    """A permanent response that loses `epsilon_permanent`, of which each report loses `epsilon_first` at most."""

    epsilon_permanent: float
    epsilon_first: float
    k: int
    reports: int = 1

    def __post_init__(self) -> None:
        check_oracle(self.epsilon_permanent, self.k, MOST_EPSILON)
        check_number("epsilon_first", self.epsilon_first, 0, math.inf, "the loss of one report", closed=False)
        check_count("reports", self.reports, "reports")
        if not self.epsilon_first < self.epsilon_permanent:
            raise ClaimError(
                f"epsilon_first={self.epsilon_first!r} with epsilon_permanent={self.epsilon_permanent!r} is not "
                "allowed; use epsilon_first < epsilon_permanent.",
                epsilon_first=self.epsilon_first,
                epsilon_permanent=self.epsilon_permanent,
            )

    @property
    def epsilon(self) -> float:
        """`epsilon_first` for one report, `epsilon_permanent` for more."""
        return self.epsilon_first if self.reports == 1 else self.epsilon_permanent

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, for all reports of one value together."""
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class MemoisedBits(_Memoised):
    """Reports of k memoised bits (RAPPOR): `epsilon_first`-DP for one, `epsilon_permanent`-DP for any number.

    The permanent step is unary encoding at `epsilon_permanent`, drawn once. Every report keeps each permanent bit with
    the same probability, chosen such that a single report loses `epsilon_first`. The output is the number of reported
    1s at each place, which is a sufficient statistic. All reports are computed from the permanent bits, so together
    they lose at most `epsilon_permanent`, which is the limit for many reports. Every pair of values is a worst pair.

    Parameters
    ----------
    epsilon_permanent, epsilon_first : float
        In nats, 0 < epsilon_first < epsilon_permanent < 30.
    k : int
        Number of values, at least 2.
    reports : int
    is_optimised : bool
        Permanent step by OUE (L-OSUE) instead of SUE (L-SUE, basic RAPPOR).

    References
    ----------
    Erlingsson, Pihur & Korolova (2014), RAPPOR (permanent and instantaneous response); Arcolezi, Couchot, Al
    Bouna & Xiao (2021), Improving the utility of locally differentially private protocols for longitudinal and
    multidimensional frequency estimates (L-SUE, L-OSUE).

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_epsilon
    >>> for reports in (1, 5, 50):
    ...     oracle = MemoisedBits(2, 1, k=4, reports=reports)
    ...     print(oracle.claim, round(exact_epsilon(oracle.law(0), oracle.law(1)), 4))
    1-DP 1.0
    2-DP 1.9872
    2-DP 2.0
    """

    is_optimised: bool = False

    def __str__(self) -> str:
        epsilons = f"{self.epsilon_permanent:g}, {self.epsilon_first:g}"
        return f"MemoisedBits({epsilons}, k={self.k}, reports={self.reports}, is_optimised={self.is_optimised})"

    def law(self, dataset: Any) -> ProductLaw:
        """The exact law of the numbers of 1s; each is a mixture of two binomials."""
        value = one_value(dataset, self.k)
        ones = np.arange(self.reports + 1)
        ways = -gammaln(ones + 1) - gammaln(self.reports - ones + 1)
        odds = bit_odds(self.epsilon_permanent, self.epsilon_first, self.is_optimised)
        after = [FiniteLaw.from_log_weights(ways + odds * n).log_probabilities for n in (self.reports - ones, ones)]
        one, zero = (
            FiniteLaw.from_log_weights(logsumexp(after, axis=0, b=[[1 - coin], [coin]])) for coin in self._coins
        )
        return ProductLaw(tuple(one if place == value else zero for place in range(self.k)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent rows of numbers of 1s, shape (size, k), int64."""
        one, zero = self._coins
        chances = np.full(self.k, zero)
        chances[one_value(dataset, self.k)] = one
        kept = 1 / (1 + math.exp(-bit_odds(self.epsilon_permanent, self.epsilon_first, self.is_optimised)))
        memory = rng.random((size, self.k)) < chances
        return rng.binomial(self.reports, np.where(memory, kept, 1 - kept)).astype(np.int64)

    @property
    def _coins(self) -> tuple[float, float]:
        return unary_coins(self.epsilon_permanent, self.is_optimised)


@dataclass(frozen=True, slots=True)
class MemoisedResponse(_Memoised):
    """Reports of a memoised value (L-GRR): `epsilon_first`-DP for one, `epsilon_permanent`-DP for any number.

    The permanent step is randomised response of k values at `epsilon_permanent`, drawn once. Every report is a
    randomised response to the permanent value, such that a single report loses `epsilon_first`. The output is how often
    each value was reported, which is a sufficient statistic. Every pair of values is a worst pair.

    Parameters
    ----------
    epsilon_permanent, epsilon_first : float
        In nats, 0 < epsilon_first < epsilon_permanent < 30.
    k : int
        Number of values, at least 2.
    reports : int

    References
    ----------
    Arcolezi, Couchot, Al Bouna & Xiao (2021), Improving the utility of locally differentially private protocols for
    longitudinal and multidimensional frequency estimates (L-GRR).

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_epsilon
    >>> oracle = MemoisedResponse(2, 1, k=3, reports=5)
    >>> print(oracle.claim, round(exact_epsilon(oracle.law(0), oracle.law(1)), 4))
    2-DP 1.9954
    """

    def __str__(self) -> str:
        epsilons = f"{self.epsilon_permanent:g}, {self.epsilon_first:g}"
        return f"MemoisedResponse({epsilons}, k={self.k}, reports={self.reports})"

    def law(self, dataset: Any) -> RowLaw:
        """The exact law of the numbers of reports; a mixture of k multinomials."""
        first = response_law(one_value(dataset, self.k), self.k, self.epsilon_permanent).log_probabilities
        rows = tuple(row for row in product(range(self.reports + 1), repeat=self.k) if sum(row) == self.reports)
        counts = np.array(rows)
        second = np.array([response_law(memory, self.k, self._odds).log_probabilities for memory in range(self.k)])
        ways = gammaln(self.reports + 1) - gammaln(counts + 1).sum(axis=1)
        found = ways + logsumexp(counts @ second.T + np.array(first), axis=1)
        return RowLaw(rows, tuple(found.tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent rows of numbers of reports, shape (size, k), int64."""
        value = one_value(dataset, self.k)
        memory = draw_indices(response_law(value, self.k, self.epsilon_permanent).probabilities, size, rng)
        second = np.array([response_law(each, self.k, self._odds).probabilities for each in range(self.k)])
        return rng.multinomial(self.reports, second[memory]).astype(np.int64)

    @property
    def _odds(self) -> float:
        return response_odds(self.epsilon_permanent, self.epsilon_first, self.k)
