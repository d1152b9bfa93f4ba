"""Frequency oracles with the coins of another protocol, a wrong size, or a report that says more than it should."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from ....audit.errors import ClaimError
from ...laws.laws import FiniteLaw
from ...laws.row_law import RowLaw
from ...local.frequency_oracles import HadamardResponse, LocalHashing, SubsetSelection, best_size, hashed
from ...local.randomised_response import one_value, response_law
from ...local.unary_encoding import BitReports, ThresholdedHistogram, UnaryEncoding, unary_coins
from ...noise_samplers import Integers, draw_indices
from ..flaw import Flaw
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class MixedUnaryCoins(Twin):
    """Unary encoding with the 1 kept as in the symmetric form and the 0 as in the optimised one: 3ε/2.

    In practice, a switch between SUE and OUE sets only one of the two probabilities. The 1 of SUE adds ε/2 to the log
    odds ratio, and the 0 of OUE adds ε.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, Section 4.
    """

    epsilon: float
    k: int = 4

    def __post_init__(self) -> None:
        UnaryEncoding(self.epsilon, self.k)  # the right mechanism refuses the same parameters

    @property
    def runs_as(self) -> BitReports:
        return BitReports(unary_coins(self.epsilon, False)[0], unary_coins(self.epsilon, True)[1], self.k)


@dataclass(frozen=True, slots=True)
class TrueBitSetTwice(Twin):
    """Unary encoding that sets the true bit with probability p but does not clear it: ln(1 + p/(q(1 − p))).

    In practice, all k bits are drawn at once as if they were 0, and then the true bit is set to 1 with probability p.
    It is 1 with probability p + (1 − p)q instead of p. For ε = 1, OUE loses 1.551 and SUE 1.680.

    References
    ----------
    Arcolezi & Gambs (2024), Revealing the true cost of locally differentially private protocols: an auditing
    perspective, found this bug; pure-LDP, issue 11, describes the fix (version 1.2.0).
    """

    epsilon: float
    k: int = 4
    is_optimised: bool = True

    def __post_init__(self) -> None:
        UnaryEncoding(self.epsilon, self.k)  # the right mechanism refuses the same parameters

    @property
    def runs_as(self) -> BitReports:
        kept, added = unary_coins(self.epsilon, self.is_optimised)
        return BitReports(kept + (1 - kept) * added, added, self.k)


@dataclass(frozen=True, slots=True)
class OnesNeverCleared(Twin):
    """Unary encoding that turns 0s into 1s at random but keeps every 1: no finite ε.

    In practice, a loop sets the bits that are to be 1 and leaves the others as they are, in the array that holds the
    encoded value. A value whose bit is reported as 0 is then certainly not the true one.

    References
    ----------
    Erlingsson, Pihur & Korolova (2014), RAPPOR (a 1 is reported as 0 with probability f/2).
    """

    epsilon: float
    k: int = 4

    def __post_init__(self) -> None:
        UnaryEncoding(self.epsilon, self.k)  # the right mechanism refuses the same parameters

    @property
    def truth(self) -> None:
        return None

    @property
    def runs_as(self) -> BitReports:
        return BitReports(1.0, unary_coins(self.epsilon, False)[1], self.k)


@dataclass(frozen=True, slots=True)
class HalfNoiseThreshold(Twin):
    """Thresholded histogram encoding with Laplace noise of scale 1/ε for 2/ε: nearly twice the loss.

    In practice, the sensitivity of a one-hot vector is taken to be 1, as of a count when a row is added. Replacing the
    value changes two bits, so it is 2.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, Section 4.
    """

    epsilon: float
    k: int = 4

    @property
    def runs_as(self) -> ThresholdedHistogram:
        return ThresholdedHistogram(2 * self.epsilon, self.k)


@dataclass(frozen=True, slots=True)
class BinaryHashingOdds(Twin):
    """Optimised local hashing whose report keeps the hash with the odds of binary hashing: ε + ln(g − 1).

    In practice, binary local hashing is extended to g hashes and the probability e^ε/(1 + e^ε) stays.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, Section 4 (the
    probability is e^ε/(e^ε + g − 1)).
    """

    epsilon: float
    k: int = 8
    g: int | None = None

    def __post_init__(self) -> None:
        LocalHashing(self.epsilon, self.k, self.g)  # the right mechanism refuses the same parameters

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

    def law(self, dataset: Any) -> RowLaw:
        """Exact law of the rows (hash function, report)."""
        value = one_value(dataset, self.k)
        rows = tuple((function, report) for function in range(self.k) for report in range(self._right.n_reports))
        found = np.full((self.k, self._right.n_reports), -np.inf)
        found[value] = self._report_law(value).log_probabilities
        return RowLaw(rows, tuple(found.ravel().tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent rows (hash function, report), shape (size, 2), int64."""
        value = one_value(dataset, self.k)
        report = draw_indices(self._report_law(value).probabilities, size, rng)
        return np.stack([np.full(size, value), report], axis=1)

    @property
    def _right(self) -> LocalHashing:
        return LocalHashing(self.epsilon, self.k, n_hashes=self.k)

    def _report_law(self, value: int) -> FiniteLaw:
        truth = int(hashed(value, self.k, self._right.n_reports)[value])
        return response_law(truth, self._right.n_reports, self.epsilon)


@dataclass(frozen=True, slots=True)
class SubsetOfWrongSize(Twin):
    """Subset selection that keeps the value as for the best size ω but draws a smaller set: ε + .539 for k = 10.

    In practice, ω = k/(e^ε + 1) is rounded up in one place and down in another. With ω′ values in the set, the loss is
    ε + ln(ω(k − ω′)/(ω′(k − ω))).

    References
    ----------
    Ye & Barg (2018), Optimal schemes for discrete distribution estimation under locally differential privacy.
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

    References
    ----------
    Ye & Barg (2018), Optimal schemes for discrete distribution estimation under locally differential privacy (reports
    are sets).
    """

    epsilon: float
    k: int = 5
    size: int = 3

    def __post_init__(self) -> None:
        self._as_set  # noqa: B018  # refuses the same parameters

    @property
    def _as_set(self) -> SubsetSelection:
        return SubsetSelection(self.epsilon, self.k, self.size)

    def law(self, dataset: Any) -> RowLaw:
        """Exact law of the lists."""
        value = one_value(dataset, self.k)
        lacking, having = self._as_set.law(value).log_shares
        lacking -= math.log(math.perm(self.k - 1, self.size))
        having -= math.log(math.perm(self.k - 1, self.size - 1))
        rows = tuple(permutations(range(self.k), self.size))
        found = (having if row[0] == value else -math.inf if value in row else lacking for row in rows)
        return RowLaw(rows, tuple(found))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent lists, shape (size, `self.size`), int64."""
        value = one_value(dataset, self.k)
        has_value = rng.random(size) < math.exp(self._as_set.law(value).log_shares[1])
        order = rng.random((size, self.k))
        order[:, value] = np.where(has_value, -1.0, 2.0)
        return np.argsort(order, axis=1)[:, : self.size].astype(np.int64)


@dataclass(frozen=True, slots=True)
class HadamardOrAnyColumn(Twin):
    """Hadamard response that draws any column, not one with −1, when it does not draw one with +1: ln(1 + 2e^ε).

    In practice, "a column with +1 with probability e^ε/(1 + e^ε), otherwise at random" is read as any column, which may
    have +1 too.

    References
    ----------
    Acharya, Sun & Zhang (2019), Hadamard response: estimating distributions privately, efficiently, and with little
    communication.
    """

    epsilon: float
    k: int = 7

    def __post_init__(self) -> None:
        HadamardResponse(self.epsilon, self.k)  # the right mechanism refuses the same parameters

    @property
    def runs_as(self) -> HadamardResponse:
        # With p = e^ε/(1 + e^ε): (p + (1 − p)/2)/((1 − p)/2) = 1 + 2p/(1 − p).
        return HadamardResponse(math.log1p(2 * math.exp(self.epsilon)), self.k)
