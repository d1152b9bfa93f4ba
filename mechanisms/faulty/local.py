"""Reports and frequency oracles of the local model with wrong coins, sizes or memory, or that say too much.

Sources: Acharya, Sun & Zhang (2019); Arcolezi & Gambs (2024), who found `TrueBitSetTwice` (see pure-LDP, issue 11, on
the fix); Ding, Kulkarni & Yekhanin (2017), on memoisation and values that change; Erlingsson, Pihur & Korolova (2014),
why the permanent bits are kept; Wang, Blocki, Li & Jha (2017), Section 4; Ye & Barg (2018), whose reports are sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from ...audit.claims.claim import PureDP
from ..distributions.distributions import FiniteDistribution, ProductDistribution, RowDistribution
from ..distributions.divergences import DrawnByItsDistribution, NamedByParameters
from ..local.frequency_oracles import (
    BitReports,
    LocalHashing,
    SubsetSelection,
    bit_odds,
    hashed,
    log_odds_of_one,
    one_hot,
    one_hot_distribution,
    reported_once,
    unary_coins,
)
from ..local.randomised_response import RandomisedResponse, binomial_distribution, one_value, response_distribution
from ..noise_samplers import Integers, draw_indices
from .flaw import Flaw, PureFlaw, Variant

__all__ = [
    "BiasedCoinResponse", "OnlyYesRandomised", "RememberedResponse", "TrueBitSetTwice", "HashChosenByTheValue",
    "SubsetInOrder", "RedrawnMemo",
]  # fmt: skip

# Reports of the local model with wrong coins, or remembered wrongly.


@dataclass(frozen=True, slots=True)
class RedrawnMemo(NamedByParameters, PureFlaw):
    """Reports of memoised bits whose permanent bits are drawn anew for each report: reports · ε₁ instead of ε∞.

    In practice, the permanent bits live in a cache that is lost with every restart or new installation. Every report
    then has independent noise, and the losses add up.
    """

    epsilon_first: float
    k: int = 4
    reports: int = 4
    truth = property(lambda t: PureDP(t.reports * log_odds_of_one(t._coins)))

    @property
    def _coins(self) -> tuple[float, float]:
        """Probabilities of a reported 1 after a 1 and after a 0."""
        odds = bit_odds(self.epsilon, self.epsilon_first, False)
        return reported_once(unary_coins(self.epsilon, False), odds)

    def distribution(self, dataset: Any) -> ProductDistribution:
        """Exact distribution of the numbers of 1s."""
        one, zero = (binomial_distribution(self.reports, math.log(p / (1 - p))) for p in self._coins)
        return one_hot_distribution(one_value(dataset, self.k), self.k, one, zero)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        chances = one_hot(one_value(dataset, self.k), self.k, self._coins)
        return rng.binomial(self.reports, chances, (size, self.k)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class BiasedCoinResponse(DrawnByItsDistribution, Flaw):
    """Warner's two coins, the second of which says yes with probability `bias`: ln(1 + 1/bias), ln 3 for bias ½.

    In practice, a forced yes is made rarer so that the estimate is less noisy; Warner (1965) has fair coins. A yes is
    then the truth more often. The stated loss is for bias ≤ ½; for a larger bias, 1 − bias takes its place.
    """

    bias: float = 0.25
    truth = property(lambda t: PureDP(math.log1p(1 / min(t.bias, 1 - t.bias))))
    epsilon = property(lambda t: math.log(3), doc="ln 3, the loss of two fair coins.")

    def distribution(self, dataset: Any) -> FiniteDistribution:
        yes = 0.5 * one_value(dataset, 2) + 0.5 * self.bias
        return FiniteDistribution((math.log1p(-yes), math.log(yes)))


@dataclass(frozen=True, slots=True)
class OnlyYesRandomised(DrawnByItsDistribution, PureFlaw):
    """Randomised response for a yes, while a no is sent unchanged: no finite ε.

    In practice, only the sensitive answer seems to need protection. A yes then always comes from a yes.
    """

    def distribution(self, dataset: Any) -> FiniteDistribution:
        return (
            response_distribution(1, 2, self.epsilon) if one_value(dataset, 2) else FiniteDistribution((0.0, -math.inf))
        )


@dataclass(frozen=True, slots=True)
class RememberedResponse(PureFlaw):
    """A person's bits over time, each value randomised once and its response repeated: no finite ε.

    In practice, a randomised answer is memoised so that repeated questions gain nothing (Ding, Kulkarni & Yekhanin
    2017). That is right while the value stays the same. When the value changes, the answer may change; when it does
    not, the answer never changes. With `is_remembered` false every report is drawn anew at its share of ε, and the
    claim holds.
    """

    is_remembered: bool = True

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        values = [one_value(value, 2) for value in dataset]
        if not self.is_remembered:
            each = RandomisedResponse(self.epsilon / len(values))
            return np.stack([each.sample(value, size, rng) for value in values], axis=1)
        memory = [RandomisedResponse(self.epsilon).sample(value, size, rng) for value in range(2)]
        return np.stack([memory[value] for value in values], axis=1)


# Frequency oracles with the coins of another protocol, a wrong size, or a report that says more than it should.


@dataclass(frozen=True, slots=True)
class TrueBitSetTwice(Variant):
    """Unary encoding that sets the true bit with probability p but does not clear it: ln(1 + p/(q(1 − p))).

    In practice, all k bits are drawn at once as if they were 0, and then the true bit is set to 1 with probability p.
    It is 1 with probability p + (1 − p)q instead of p. For ε = 1, OUE loses 1.551 and SUE 1.680.
    """

    k: int = 4
    is_optimised: bool = True

    @property
    def runs_as(self) -> BitReports:
        kept, added = unary_coins(self.epsilon, self.is_optimised)
        return BitReports(kept + (1 - kept) * added, added, self.k)


@dataclass(frozen=True, slots=True)
class HashChosenByTheValue(PureFlaw):
    """Local hashing whose hash function is chosen by the value: no finite ε.

    In practice, the random seed of the hash function is derived from the value, so that a run can be repeated. The seed
    is part of the report, and says which value was hashed.
    """

    k: int = 8
    _right = property(lambda t: LocalHashing(t.epsilon, t.k, n_hashes=t.k))

    def distribution(self, dataset: Any) -> RowDistribution:
        """Exact distribution of the rows (hash function, report)."""
        value = one_value(dataset, self.k)
        rows = tuple((function, report) for function in range(self.k) for report in range(self._right.n_reports))
        found = np.full((self.k, self._right.n_reports), -np.inf)
        found[value] = self._report_distribution(value).log_probabilities
        return RowDistribution(rows, tuple(found.ravel().tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        value = one_value(dataset, self.k)
        report = draw_indices(self._report_distribution(value).probabilities, size, rng)
        return np.stack([np.full(size, value), report], axis=1)

    def _report_distribution(self, value: int) -> FiniteDistribution:
        truth = int(hashed(value, self.k, self._right.n_reports)[value])
        return response_distribution(truth, self._right.n_reports, self.epsilon)


@dataclass(frozen=True, slots=True)
class SubsetInOrder(PureFlaw):
    """Subset selection whose list begins with the true value if the set has it: no finite ε.

    In practice, the list is built with the kept value in front and sent as it is. A value in another place is then
    certainly not the true one. As a set, the report loses ε; sorting or shuffling the list is right.
    """

    k: int = 5
    size: int = 3
    _as_set = property(lambda t: SubsetSelection(t.epsilon, t.k, t.size))

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
        value = one_value(dataset, self.k)
        has_value = rng.random(size) < math.exp(self._as_set.distribution(value).log_shares[1])
        order = rng.random((size, self.k))
        order[:, value] = np.where(has_value, -1.0, 2.0)
        return np.argsort(order, axis=1)[:, : self.size].astype(np.int64)
