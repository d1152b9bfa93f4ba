"""Repeated reports without the permanent step, or with the loss of a single report claimed for all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from ....audit.claims.claim import PureDP
from ...laws.laws import FiniteLaw
from ...laws.product import ProductLaw
from ...local.memoised_reports import MemoisedBits, bit_odds, log_odds_of_one, reported_once
from ...local.randomised_response import one_value
from ...local.unary_encoding import unary_coins
from ...noise_samplers import Integers
from ..twin import Twin


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
